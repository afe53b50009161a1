//! Rules: `Tool`, `Tool(pattern)`, `mcp__server__*`.

pub(crate) mod command_pattern;
mod equivalents;
mod host_pattern;
pub(crate) mod network_pattern;
pub(crate) mod path_pattern;
mod synonyms;

use std::sync::Arc;

use qwen_events::{ToolCatalogue, ToolDeclaration, ToolKind};

use crate::rules::command_pattern::CommandPattern;
use crate::rules::host_pattern::HostPattern;
use crate::rules::network_pattern::NetworkPattern;
use crate::rules::path_pattern::PathPattern;

/// Where a rule comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSource {
    /// The rule is from a settings file.
    Settings(Arc<str>),
    /// A flag of the command line.
    Flag,
    /// An answer given during the session.
    Session,
}

/// The name of rules about the connections of sandboxed programs.
pub const NETWORK: &str = "Network";

/// A rule that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the permission rule `{rule}` cannot be understood: {problem}")]
pub struct RuleError {
    rule: String,
    problem: &'static str,
}

impl RuleError {
    pub(crate) fn new(rule: &str, problem: &'static str) -> Self {
        Self { rule: rule.to_owned(), problem }
    }
}

#[derive(Debug, Clone)]
pub struct Rule {
    text: Arc<str>,
    source: RuleSource,
    tools: Tools,
    pub(crate) scope: Scope,
    /// The action that the name of one of Claude's tools implies: `KillShell` is about `kill` only.
    action: Option<&'static str>,
}

/// The tools that a rule is about.
#[derive(Debug, Clone)]
enum Tools {
    All,
    /// The declared tools of a kind.
    Kind(ToolKind, ToolCatalogue),
    Declared(&'static ToolDeclaration),
    /// A tool that is not declared here, by its name.
    Named(String),
    McpServer(String),
    Beginning(String),
    /// No tool: the connections of sandboxed programs.
    Network,
}

/// The calls of those tools that a rule is about.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    All,
    Command(CommandPattern),
    Path(PathPattern),
    Host(HostPattern),
    Network(NetworkPattern),
    /// A pattern for a tool that has none: it forbids the whole tool and allows nothing.
    Unknown,
}

impl Rule {
    /// Reads a rule about one of the declared `tools`, in either vocabulary, or about a tool of an MCP server
    /// or of the host.
    pub fn parse(text: &str, source: RuleSource, tools: ToolCatalogue) -> Result<Self, RuleError> {
        let text = text.trim();
        let error = |problem| RuleError::new(text, problem);
        let (name, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let pattern = rest.strip_suffix(')').ok_or_else(|| error("its parenthesis is not closed"))?;
                (name.trim(), Some(pattern.trim()))
            }
        };
        if name.is_empty() || name.contains([')', ' ']) {
            return Err(error("it names no tool"));
        }
        let tools = Tools::parse(name, tools);
        let scope = match pattern {
            None | Some("*" | "**") => Scope::All,
            Some("") => return Err(error("there is nothing between its parentheses")),
            Some(pattern) if matches!(tools, Tools::Network) => {
                Scope::Network(NetworkPattern::parse(pattern).map_err(error)?)
            }
            Some(pattern) => match tools.kind() {
                Some(ToolKind::Read | ToolKind::Edit) => {
                    path(pattern).ok_or_else(|| error("its pattern is not a path"))?
                }
                Some(ToolKind::Execute) => Scope::Command(
                    CommandPattern::parse(pattern).ok_or_else(|| error("its command is empty"))?,
                ),
                Some(ToolKind::Fetch) => Scope::Host(
                    HostPattern::parse(pattern).ok_or_else(|| error("expected domain: and a host name"))?,
                ),
                _ => Scope::Unknown,
            },
        };
        let action = match &tools {
            Tools::Declared(declared) => declared.action_of(name),
            Tools::All
            | Tools::Kind(..)
            | Tools::Named(_)
            | Tools::McpServer(_)
            | Tools::Beginning(_)
            | Tools::Network => None,
        };
        Ok(Self { text: text.into(), source, tools, scope, action })
    }

    /// The rule as written.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Where it comes from.
    pub fn source(&self) -> &RuleSource {
        &self.source
    }

    /// The only action of the tool that it is about.
    pub(crate) fn action(&self) -> Option<&'static str> {
        self.action
    }

    /// True if it is about a tool, by the tool's canonical name.
    pub(crate) fn concerns(&self, tool: &str) -> bool {
        match &self.tools {
            Tools::All => true,
            Tools::Kind(kind, tools) => tools.of_kind(*kind).any(|declared| declared.name == tool),
            Tools::Declared(declared) => declared.name == tool,
            Tools::Named(name) => name == tool,
            Tools::McpServer(server) => tool
                .strip_prefix(server.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("__")),
            Tools::Beginning(start) => tool.starts_with(start.as_str()),
            Tools::Network => false,
        }
    }

    /// True if it is about the connections of sandboxed programs and not about tools.
    pub(crate) fn is_about_network(&self) -> bool {
        matches!(self.tools, Tools::Network)
    }
}

impl Tools {
    /// `Read` and `Edit` cover all tools of their kind.
    fn parse(name: &str, tools: ToolCatalogue) -> Self {
        match name {
            "*" => return Self::All,
            NETWORK => return Self::Network,
            "Read" => return Self::Kind(ToolKind::Read, tools),
            "Edit" => return Self::Kind(ToolKind::Edit, tools),
            _ => {}
        }
        if let Some(start) = name.strip_suffix('*') {
            return match start.strip_suffix("__") {
                Some(server) if server.starts_with("mcp__") => Self::McpServer(server.to_owned()),
                _ => Self::Beginning(start.to_owned()),
            };
        }
        if let Some(server) = name.strip_prefix("mcp__")
            && !server.contains("__")
        {
            return Self::McpServer(name.to_owned());
        }
        match tools.find(name) {
            Some(declared) => Self::Declared(declared),
            None => Self::Named(name.trim().to_owned()),
        }
    }

    /// The kind of the tools, where they are declared.
    fn kind(&self) -> Option<ToolKind> {
        match self {
            Self::Kind(kind, _) => Some(*kind),
            Self::Declared(declared) => Some(declared.kind),
            Self::All | Self::Named(_) | Self::McpServer(_) | Self::Beginning(_) | Self::Network => None,
        }
    }
}

fn path(pattern: &str) -> Option<Scope> {
    PathPattern::parse(pattern).map(Scope::Path)
}

#[cfg(test)]
mod tests {
    use qwen_events::ToolCatalogue;

    use super::{Rule, RuleSource};

    const TOOLS: ToolCatalogue = ToolCatalogue::new(&[qwen_tools::DECLARATIONS]);

    fn rule(text: &str) -> Rule {
        Rule::parse(text, RuleSource::Flag, TOOLS).unwrap()
    }

    #[test]
    fn a_rule_concerns_the_tools_it_names_and_no_other() {
        let cases: [(&str, &[&str], &[&str]); 12] = [
            ("Read", &["read_file", "list_directory", "glob", "grep_search"], &["edit", "run_shell_command"]),
            ("Edit", &["edit", "write_file"], &["read_file"]),
            ("Write", &["write_file"], &["edit"]),
            ("Bash", &["run_shell_command"], &["edit"]),
            ("ShellTool(git status)", &["run_shell_command"], &["edit"]),
            ("Grep", &["grep_search"], &["read_file"]),
            ("mcp__files", &["mcp__files__read", "mcp__files"], &["mcp__files2__read", "mcp__other__read"]),
            ("mcp__files__*", &["mcp__files__read"], &["mcp__files2__read", "mcp__other__files"]),
            ("mcp__files__read", &["mcp__files__read"], &["mcp__files__read_all", "mcp__files__write"]),
            ("mcp__*", &["mcp__files__read"], &["read_file"]),
            ("*", &["edit", "mcp__a__b"], &[]),
            ("weather", &["weather"], &["weather_report"]),
        ];
        for (text, yes, no) in cases {
            let rule = rule(text);
            for tool in yes {
                assert!(rule.concerns(tool), "{text} should concern {tool}");
            }
            for tool in no {
                assert!(!rule.concerns(tool), "{text} should not concern {tool}");
            }
        }
    }

    #[test]
    fn a_rule_that_says_nothing_is_an_error_that_names_it() {
        for text in [
            "",
            "Bash(git log",
            "Bash()",
            "(ls)",
            "WebFetch(example.com)",
            "Read(a[)",
            "two words",
            "Network(https://a.b/)",
        ] {
            let error = Rule::parse(text, RuleSource::Flag, TOOLS).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
