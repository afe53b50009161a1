//! What tools are called by the people who write rules.

use std::borrow::Cow;

/// The name of a tool in this program, for any name that its SDKs, its settings and their cousins use.
///
/// A name that is not known stands for itself.
pub fn canonical_tool_name(name: &str) -> Cow<'_, str> {
    let name = name.trim();
    if name.starts_with("mcp__") {
        return Cow::Borrowed(name);
    }
    // `ShellTool` and `Shell` are one, as are `read_file`, `ReadFile` and `readFile`.
    let mut folded: String = name
        .chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect();
    if folded.len() > "tool".len() && folded.ends_with("tool") {
        folded.truncate(folded.len() - "tool".len());
    }
    let canonical = match folded.as_str() {
        "read" | "readfile" | "view" => "read_file",
        "write" | "writefile" => "write_file",
        "edit" | "editfile" | "multiedit" | "notebookedit" | "replace" => "edit",
        "glob" | "findfiles" => "glob",
        "grep" | "grepsearch" | "ripgrep" | "searchfilecontent" | "searchtext" => "grep_search",
        "ls" | "listdirectory" | "listfiles" | "readfolder" => "list_directory",
        "bash" | "shell" | "runshellcommand" => "run_shell_command",
        "todowrite" | "todo" => "todo_write",
        "webfetch" => "web_fetch",
        "websearch" => "web_search",
        "savememory" | "memory" => "save_memory",
        "askuserquestion" => "ask_user_question",
        "task" | "agent" => "agent",
        "skill" => "skill",
        "exitplanmode" => "exit_plan_mode",
        _ => return Cow::Borrowed(name),
    };
    Cow::Borrowed(canonical)
}

#[cfg(test)]
mod tests {
    use super::canonical_tool_name;

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
            ("NotebookEdit", "edit"),
            ("replace", "edit"),
            ("Bash", "run_shell_command"),
            ("ShellTool", "run_shell_command"),
            ("run_shell_command", "run_shell_command"),
            ("Glob", "glob"),
            ("GlobTool", "glob"),
            ("Grep", "grep_search"),
            ("search_file_content", "grep_search"),
            ("LS", "list_directory"),
            ("LSTool", "list_directory"),
            ("WebFetch", "web_fetch"),
            ("WebSearch", "web_search"),
            ("TodoWrite", "todo_write"),
            ("Task", "agent"),
            ("agent", "agent"),
            ("ExitPlanMode", "exit_plan_mode"),
            ("AskUserQuestion", "ask_user_question"),
            ("Skill", "skill"),
            ("save_memory", "save_memory"),
            ("mcp__files__Read", "mcp__files__Read"),
            ("something_else", "something_else"),
            ("Tool", "Tool"),
        ];
        for (spelling, name) in spellings {
            assert_eq!(canonical_tool_name(spelling), name, "{spelling}");
        }
    }
}
