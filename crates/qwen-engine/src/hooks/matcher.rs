//! Matchers: which calls a hook applies to.

use regex::Regex;

use super::HookEvent;

/// True if a hook with `matcher` applies to `target`. A matcher is a list of names separated by `|`, in which
/// `*` matches anything, or a regular expression that matches a part of a name. Every name of a tool counts,
/// so `Bash` and `^Ba` also match `run_shell_command`.
pub(super) fn matches(event: HookEvent, matcher: Option<&str>, target: &str) -> bool {
    let Some(matcher) = matcher.map(str::trim).filter(|matcher| !matcher.is_empty()) else { return true };
    let is_list = matcher.chars().all(|letter| letter.is_alphanumeric() || "_-| ,*".contains(letter));
    if matcher.split(['|', ',']).map(str::trim).any(|name| is_named(event, name, target)) {
        return true;
    }
    if is_list {
        return false;
    }
    match Regex::new(matcher) {
        Ok(pattern) => names(event, target).any(|name| pattern.is_match(name)),
        // A guard with an expression that cannot be evaluated, such as one with a look-ahead, guards every
        // call.
        Err(_) => true,
    }
}

/// True if one entry of a list names `target`.
fn is_named(event: HookEvent, name: &str, target: &str) -> bool {
    if name.contains('*') && name.chars().all(|letter| letter.is_alphanumeric() || "_-.*".contains(letter)) {
        let pattern = name.replace(".*", "*");
        return names(event, target).any(|known| fits(&pattern, known));
    }
    name == target || event.is_about_tools() && crate::TOOLS.is_same(name, target)
}

/// All names of `target`: only itself, unless it is a tool.
fn names(event: HookEvent, target: &str) -> impl Iterator<Item = &str> {
    let declared = if event.is_about_tools() { crate::TOOLS.find(target) } else { None };
    let declared = declared.into_iter().flat_map(|declared| {
        let claude = declared.claude.iter().map(|tool| tool.name);
        std::iter::once(declared.name).chain(declared.aliases.iter().copied()).chain(claude)
    });
    std::iter::once(target).chain(declared)
}

/// True if `target` matches `pattern`, in which each `*` matches anything.
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
            (Some("*_file"), "run_shell_command", false),
            (Some("^(Edit|Write)$"), "write_file", true),
            (Some("^Edit$"), "write_file", false),
            (Some("Web.*"), "web_fetch", true),
            (Some("Web.*"), "WebFetch", true),
            (Some("Notebook.*"), "run_shell_command", false),
            (Some("^mcp__"), "mcp__db__query", true),
            (Some("mcp__.+"), "mcp__db__query", true),
            (Some("^mcp__(db|web)__(write|delete)"), "mcp__db__write_row", true),
            (Some("^mcp__(db|web)__(write|delete)"), "mcp__db__query", false),
            (Some("Bash|mcp__.*"), "run_shell_command", true),
            (Some("[Bb]ash"), "run_shell_command", true),
            (Some("(?i)^bash$"), "Bash", true),
            (Some("Multi?Edit"), "edit", true),
            (Some("^(?!Read$).*"), "run_shell_command", true),
            (Some("Edit|Write|MultiEdit"), "Read", false),
            (Some("Edit,Write"), "Write", true),
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
