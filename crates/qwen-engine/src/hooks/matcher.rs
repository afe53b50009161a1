//! Matchers: which calls a hook applies to.

use super::HookEvent;

/// Whether a hook with `matcher` applies to `target`. A matcher is a list of names separated by `|`, in which
/// `*` matches anything. Every name of a tool matches, so `Bash` also matches `run_shell_command`.
pub(super) fn matches(event: HookEvent, matcher: Option<&str>, target: &str) -> bool {
    let Some(matcher) = matcher.map(str::trim).filter(|matcher| !matcher.is_empty()) else { return true };
    // Users often write regular expressions such as `^(Edit|Write)$` and `.*`.
    let matcher = matcher.strip_prefix('^').unwrap_or(matcher);
    let matcher = matcher.strip_suffix('$').unwrap_or(matcher);
    let inner = matcher.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    inner.unwrap_or(matcher).split('|').map(str::trim).any(|name| {
        if name.contains('*') {
            return fits(&name.replace(".*", "*"), target);
        }
        name == target || event.is_about_tools() && crate::TOOLS.is_same(name, target)
    })
}

/// Whether `target` matches `pattern`, in which each `*` matches anything.
fn fits(pattern: &str, target: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = target.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.is_empty()
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
            (Some("mcp__.*__write.*"), "mcp__db__write_row", true),
            (Some("mcp__*__write"), "mcp__db__write_row", false),
            (Some("*_file"), "write_file", true),
            (Some("*_file"), "edit", false),
            (Some("^(Edit|Write)$"), "write_file", true),
            (Some("^Edit$"), "write_file", false),
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
