//! All tools that this program declares: the built-in ones and those of the engine.

pub mod search;

use qwen_events::ToolCatalogue;

/// Every declared tool. Rules, matchers and lists resolve tool names with it.
pub const TOOLS: ToolCatalogue = ToolCatalogue::new(&[
    qwen_tools::DECLARATIONS,
    &[&crate::subagent::DECLARATION, &crate::skill::DECLARATION, &search::DECLARATION],
]);

#[cfg(test)]
mod tests {
    use super::TOOLS;

    #[test]
    fn every_spelling_of_a_tool_finds_it() {
        let spellings = [
            ("Read", "read_file"),
            ("read_file", "read_file"),
            ("ReadFileTool", "read_file"),
            ("Write", "write_file"),
            ("WriteFileTool", "write_file"),
            ("Edit", "edit"),
            ("EditTool", "edit"),
            ("MultiEdit", "edit"),
            ("NotebookEdit", "notebook_edit"),
            ("replace", "edit"),
            ("Bash", "run_shell_command"),
            ("ShellTool", "run_shell_command"),
            ("run_shell_command", "run_shell_command"),
            ("BashOutput", "shell_task"),
            ("KillShell", "shell_task"),
            ("Glob", "glob"),
            ("GlobTool", "glob"),
            ("Grep", "grep_search"),
            ("RipGrepTool", "grep_search"),
            ("search_file_content", "grep_search"),
            ("LS", "list_directory"),
            ("LSTool", "list_directory"),
            ("ListFiles", "list_directory"),
            ("WebFetch", "web_fetch"),
            ("TodoWrite", "todo_write"),
            ("Task", "agent"),
            ("AgentTool", "agent"),
            ("agent", "agent"),
            ("ExitPlanMode", "exit_plan_mode"),
            ("AskUserQuestion", "ask_user_question"),
            ("SkillTool", "skill"),
            ("MemoryTool", "save_memory"),
            ("save_memory", "save_memory"),
            ("mcp__files__Read", "mcp__files__Read"),
            ("something_else", "something_else"),
            ("Tool", "Tool"),
        ];
        for (spelling, name) in spellings {
            assert_eq!(TOOLS.canonical_name(spelling), name, "{spelling}");
        }
    }

    #[test]
    fn no_name_means_two_tools() {
        for declaration in TOOLS.all() {
            let claude = declaration.claude.iter().map(|tool| tool.name);
            for name in
                [declaration.name].into_iter().chain(declaration.aliases.iter().copied()).chain(claude)
            {
                let named: Vec<&str> =
                    TOOLS.all().filter(|other| other.answers_to(name)).map(|other| other.name).collect();
                assert_eq!(named, [declaration.name], "{name}");
            }
        }
    }

    #[test]
    fn what_claude_renames_omits_or_implies_is_an_argument_of_the_tool() {
        for declaration in TOOLS.all() {
            for claude in declaration.claude {
                let renamed =
                    claude.renamed.iter().chain(claude.also).chain(claude.implied).map(|(ours, _)| *ours);
                for name in renamed.chain(claude.absent.iter().copied()) {
                    assert!(declaration.argument(name).is_some(), "{name} of {}", declaration.name);
                }
            }
        }
    }
}
