//! Further flags about tools and what they may do.

use clap::Args;

/// Further flags about tools and what they may do.
#[derive(Args, Debug, Default)]
pub struct ToolFlags {
    /// Run everything without asking
    #[arg(long, hide = true)]
    pub dangerously_skip_permissions: bool,

    /// Names of tools and arguments: `qwen`, or `claude`, the default for Claude's own hosts
    #[arg(long, value_name = "VOCABULARY", value_parser = ["qwen", "claude"], help_heading = "Agent")]
    pub tool_names: Option<String>,

    /// Use only the MCP servers of --mcp-config
    #[arg(long, help_heading = "MCP")]
    pub strict_mcp_config: bool,

    /// Use only these MCP servers
    #[arg(long, value_name = "NAMES", alias = "allowedMcpServerNames", hide = true)]
    pub allowed_mcp_server_names: Vec<String>,

    /// How deep sub-agents may start sub-agents, 1 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), hide = true)]
    pub max_subagent_depth: Option<u32>,

    /// Disable these slash commands
    #[arg(long, value_name = "NAMES", hide = true)]
    pub disabled_slash_commands: Vec<String>,
}

/// The items of lists of tools and rules, separated by commas or spaces.
pub fn rules<'a>(lists: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    split(lists, |letter| letter == ',' || letter.is_whitespace())
}

/// The items of comma-separated lists. A comma within parentheses belongs to its item.
pub fn items<'a>(lists: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    split(lists, |letter| letter == ',')
}

fn split<'a>(
    lists: impl IntoIterator<Item = &'a String>,
    is_separator: impl Fn(char) -> bool,
) -> Vec<String> {
    let mut items = Vec::new();
    for list in lists {
        let (mut depth, mut start) = (0usize, 0);
        for (at, letter) in list.char_indices() {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ if depth == 0 && is_separator(letter) => {
                    items.push(&list[start..at]);
                    start = at + letter.len_utf8();
                }
                _ => {}
            }
        }
        items.push(&list[start..]);
    }
    items.into_iter().map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_parentheses_belongs_to_its_rule() {
        for (lists, expected) in [
            (&["a,b"][..], &["a", "b"][..]),
            (&["Bash(echo a,b),Edit", "Read"], &["Bash(echo a,b)", "Edit", "Read"]),
            (&["Bash(f (a,b),c)"], &["Bash(f (a,b),c)"]),
            (&[" a , ,b,"], &["a", "b"]),
            (&[""], &[]),
            (&["a),b"], &["a)", "b"]),
        ] {
            let lists: Vec<String> = lists.iter().map(|list| (*list).to_owned()).collect();
            assert_eq!(items(&lists), expected);
        }
    }

    #[test]
    fn rules_may_have_spaces_between_them_and_in_their_parentheses() {
        let list = "Bash(git *) Edit,\tRead(/a b/**)".to_owned();
        assert_eq!(rules([&list]), ["Bash(git *)", "Edit", "Read(/a b/**)"]);
    }
}
