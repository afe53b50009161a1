//! Checks tool names in rules and lists: a name that is in no vocabulary is a typing error.

use qwen_engine::TOOLS;
use qwen_events::Behavior;

use crate::settings::file::nearest;

/// Tools of the other vocabularies (Claude's and Qwen Code's) without a counterpart here. A rule about one of
/// them has no effect and is not an error.
const FOREIGN: &[&str] = &[
    "AgentOutputTool",
    "Artifact",
    "Config",
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "KillBash",
    "LSP",
    "ListAgents",
    "ListMcpResources",
    "ListMcpResourcesTool",
    "Monitor",
    "NotebookRead",
    "PowerShell",
    "PushNotification",
    "REPL",
    "ReadMcpResource",
    "ReadMcpResourceDir",
    "ReadMcpResourceDirTool",
    "ReadMcpResourceTool",
    "RefreshMcpTools",
    "RemoteTrigger",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "SendUserFile",
    "SendUserMessage",
    "SlashCommand",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TodoRead",
    "ToolSearch",
    "Workflow",
    "cron_create",
    "cron_delete",
    "cron_list",
    "lsp",
    "monitor",
    "read_many_files",
    "send_message",
    "structured_output",
    "web_search",
];

/// True if the rule names a tool of some vocabulary.
pub fn is_tool_rule(rule: &str) -> bool {
    problem(rule, false).is_none()
}

/// Describes what is wrong with the tool name of a rule, and suggests a similar name. In a worker, a name
/// that is similar to none of ours may be a tool that the host declares later.
pub(crate) fn problem(rule: &str, in_worker: bool) -> Option<String> {
    let name = rule.split('(').next().unwrap_or(rule).trim();
    if name.is_empty() || name.contains('*') || name.starts_with("mcp__") {
        return None;
    }
    if name == qwen_permissions::NETWORK
        || TOOLS.find(name).is_some()
        || FOREIGN.iter().any(|tool| folded(tool) == folded(name))
    {
        return None;
    }
    let claude = ["Bash", "Read", "Edit", "Write", "Glob", "Grep", "WebFetch", "TodoWrite", "Task"];
    let similar = nearest(name, claude.into_iter().chain(TOOLS.all().map(|tool| tool.name)));
    if in_worker && similar.is_none() {
        return None;
    }
    let similar = similar.map(|similar| format!("; did you mean '{similar}'?")).unwrap_or_default();
    Some(format!("'{rule}' names no tool: there is no tool '{name}'{similar}"))
}

/// The name without case and underscores, so that `WebSearch` equals `web_search`.
fn folded(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// True if a rule with such an error must not be ignored.
pub(crate) fn is_fatal(behavior: Behavior) -> bool {
    match behavior {
        Behavior::Deny | Behavior::Ask => true,
        Behavior::Allow => false,
    }
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn names_of_every_vocabulary_are_known_and_others_are_not() {
        for known in [
            "Bash",
            "Bash(git *)",
            "read_file",
            "ReadFileTool",
            "WebSearch",
            "mcp__a__b",
            "*",
            "Task",
            "Skill",
            "KillShell",
            "PowerShell",
            "Workflow",
        ] {
            assert_eq!(problem(known, false), None, "{known}");
        }
        assert_eq!(problem("get_weather", true), None, "a host may declare it");
        assert!(problem("get_weather", false).is_some());
        let problem = problem("Bsah(rm *)", true).expect("a problem");
        assert!(problem.contains("'Bsah'") && problem.contains("did you mean 'Bash'"), "{problem}");
    }
}
