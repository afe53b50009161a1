//! Which calls a hook is about.

use qwen_tools::permissions::canonical_tool_name;

use super::HookEvent;

/// Whether a hook with `matcher` wants to hear about `target`. A matcher is a list of names separated by `|`; `*` at
/// the end of a name stands for any rest. Tools go by all their names, so `Bash` is `run_shell_command` too.
pub(super) fn matches(event: HookEvent, matcher: Option<&str>, target: &str) -> bool {
    let Some(matcher) = matcher.map(str::trim).filter(|matcher| !matcher.is_empty()) else { return true };
    matcher.split('|').map(str::trim).any(|name| {
        // `.*` is how people who think of regular expressions write "any".
        let prefix = name.strip_suffix(".*").or_else(|| name.strip_suffix('*'));
        match prefix {
            Some(prefix) => target.starts_with(prefix),
            None if name == target => true,
            None => event.is_about_tools() && canonical_tool_name(name) == canonical_tool_name(target),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_names_tools_by_any_of_their_names() {
        let cases = [
            (None, "edit", true),
            (Some(""), "edit", true),
            (Some("*"), "edit", true),
            (Some(".*"), "edit", true),
            (Some("Bash"), "run_shell_command", true),
            (Some("run_shell_command"), "run_shell_command", true),
            (Some("Edit|Write"), "write_file", true),
            (Some("Edit | Write"), "write_file", true),
            (Some("Edit|Write"), "read_file", false),
            (Some("mcp__db__*"), "mcp__db__query", true),
            (Some("mcp__db__.*"), "mcp__db__query", true),
            (Some("mcp__db__*"), "mcp__web__query", false),
            (Some("edi"), "edit", false),
        ];
        for (matcher, tool, expected) in cases {
            assert_eq!(matches(HookEvent::PreToolUse, matcher, tool), expected, "{matcher:?} {tool}");
        }
    }

    #[test]
    fn outside_of_tools_a_name_is_only_itself() {
        assert!(matches(HookEvent::SessionStart, Some("startup|resume"), "resume"));
        assert!(!matches(HookEvent::PreCompact, Some("Read"), "read_file"));
    }
}
