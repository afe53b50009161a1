//! The many names that our tools go by.

/// Our name for a tool that a client calls by the name of its class (`EditTool`), by the name it has in Claude
/// (`Bash`) or by an earlier name (`search_file_content`). A name that is none of these stays as it is.
pub fn canonical_tool_name(name: &str) -> &str {
    match name {
        "ReadFileTool" | "ReadManyFilesTool" | "Read" | "ReadFile" => "read_file",
        "WriteFileTool" | "Write" | "WriteFile" => "write_file",
        "EditTool" | "Edit" | "MultiEdit" | "replace" => "edit",
        "ShellTool" | "Bash" | "Shell" => "run_shell_command",
        "GrepTool" | "RipGrepTool" | "Grep" | "search_file_content" => "grep_search",
        "GlobTool" | "Glob" => "glob",
        "LSTool" | "LS" | "ListFiles" => "list_directory",
        "WebFetchTool" | "WebFetch" => "web_fetch",
        "MemoryTool" | "SaveMemory" => "save_memory",
        "TodoWriteTool" | "TodoWrite" => "todo_write",
        "TaskTool" | "AgentTool" | "Task" | "Agent" | "task" => "agent",
        "SkillTool" | "Skill" => "skill",
        "AskUserQuestionTool" | "AskUserQuestion" => "ask_user_question",
        "ExitPlanModeTool" | "ExitPlanMode" => "exit_plan_mode",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_leads_to_our_name() {
        for (spelling, name) in [
            ("EditTool", "edit"),
            ("ReadFileTool", "read_file"),
            ("ShellTool", "run_shell_command"),
            ("RipGrepTool", "grep_search"),
            ("LSTool", "list_directory"),
            ("MemoryTool", "save_memory"),
            ("TaskTool", "agent"),
            ("Bash", "run_shell_command"),
            ("MultiEdit", "edit"),
            ("search_file_content", "grep_search"),
            ("replace", "edit"),
            ("task", "agent"),
            ("read_file", "read_file"),
            ("mcp__calc__add", "mcp__calc__add"),
        ] {
            assert_eq!(canonical_tool_name(spelling), name);
        }
    }
}
