//! Permission rules of a host.

use serde_json::Value;

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    Allow,
    Deny,
    /// The host's callback decides; without one the call is denied.
    Ask,
}

/// Rules such as `read_file` or `run_shell_command(git *)`: a tool, and a pattern for its command, path or
/// URL in which `*` matches anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermissionRules {
    pub allow: Vec<String>,
    /// Calls about which the callback decides.
    pub ask: Vec<String>,
    pub deny: Vec<String>,
}

impl PermissionRules {
    /// The decision of the rules about a call; none if no rule matches. Deny beats ask beats allow.
    pub fn ruling(&self, tool: &str, arguments: &Value) -> Option<Ruling> {
        let lists = [(&self.deny, Ruling::Deny), (&self.ask, Ruling::Ask), (&self.allow, Ruling::Allow)];
        lists
            .into_iter()
            .find(|(rules, _)| rules.iter().any(|rule| fits(rule, tool, arguments)))
            .map(|(_, ruling)| ruling)
    }
}

fn fits(rule: &str, tool: &str, arguments: &Value) -> bool {
    let Some((name, pattern)) = rule.strip_suffix(')').and_then(|rule| rule.split_once('(')) else {
        return rule == tool || rule == "*";
    };
    let subject = ["command", "file_path", "absolute_path", "path", "url", "pattern"]
        .into_iter()
        .find_map(|key| arguments[key].as_str());
    name == tool && subject.is_some_and(|subject| matches(pattern, subject))
}

/// True if `text` matches `pattern`, in which `*` matches anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut last = None;
    for piece in pieces {
        if let Some(piece) = last.replace(piece) {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
    }
    match last {
        None => rest.is_empty(),
        Some(piece) => rest.ends_with(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, expected) in [
            ("git *", "git log", true),
            ("git *", "git", false),
            ("*", "", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("plain", "plain", true),
            ("plain", "plainer", false),
            ("*rm*", "x; rm y", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
