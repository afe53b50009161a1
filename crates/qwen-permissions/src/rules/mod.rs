//! Rules: `Tool`, `Tool(pattern)`, `mcp__server__*`.

pub(crate) mod command_pattern;
mod host_pattern;
pub(crate) mod path_pattern;

use std::sync::Arc;

use crate::names::canonical_tool_name;
use crate::rules::command_pattern::CommandPattern;
use crate::rules::host_pattern::HostPattern;
use crate::rules::path_pattern::PathPattern;

/// Where a rule comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSource {
    /// A settings file.
    Settings(Arc<str>),
    /// A flag of the command line.
    Flag,
    /// An answer given during the session.
    Session,
}

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

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    text: Arc<str>,
    source: RuleSource,
    tools: Tools,
    pub(crate) scope: Scope,
}

/// The tools that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Tools {
    All,
    Readers,
    Editors,
    One(String),
    McpServer(String),
    Beginning(String),
}

/// The calls of those tools that a rule is about.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    All,
    Command(CommandPattern),
    Path(PathPattern),
    Host(HostPattern),
    /// A pattern for a tool that has none: it forbids the whole tool and allows nothing.
    Unknown,
}

impl Rule {
    /// Reads a rule.
    pub fn parse(text: &str, source: RuleSource) -> Result<Self, RuleError> {
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
        let tools = Tools::parse(name);
        let scope = match pattern {
            None | Some("*" | "**") => Scope::All,
            Some("") => return Err(error("there is nothing between its parentheses")),
            Some(pattern) => match &tools {
                Tools::Readers | Tools::Editors => {
                    path(pattern).ok_or_else(|| error("its pattern is no path"))?
                }
                Tools::One(tool) => match tool.as_str() {
                    "run_shell_command" => Scope::Command(
                        CommandPattern::parse(pattern).ok_or_else(|| error("its command is empty"))?,
                    ),
                    "read_file" | "list_directory" | "glob" | "grep_search" | "edit" | "write_file" => {
                        path(pattern).ok_or_else(|| error("its pattern is no path"))?
                    }
                    "web_fetch" => Scope::Host(
                        HostPattern::parse(pattern)
                            .ok_or_else(|| error("expected domain: and a host name"))?,
                    ),
                    _ => Scope::Unknown,
                },
                _ => Scope::Unknown,
            },
        };
        Ok(Self { text: text.into(), source, tools, scope })
    }

    /// The rule as written.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Where it comes from.
    pub fn source(&self) -> &RuleSource {
        &self.source
    }

    /// Whether it is about a tool, by the tool's canonical name.
    pub(crate) fn concerns(&self, tool: &str) -> bool {
        match &self.tools {
            Tools::All => true,
            Tools::Readers => matches!(tool, "read_file" | "list_directory" | "glob" | "grep_search"),
            Tools::Editors => matches!(tool, "edit" | "write_file"),
            Tools::One(name) => tool == name,
            Tools::McpServer(server) => tool
                .strip_prefix(server.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("__")),
            Tools::Beginning(start) => tool.starts_with(start.as_str()),
        }
    }
}

impl Tools {
    fn parse(name: &str) -> Self {
        match name {
            "*" => return Self::All,
            "Read" => return Self::Readers,
            "Edit" => return Self::Editors,
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
        Self::One(canonical_tool_name(name).into_owned())
    }
}

fn path(pattern: &str) -> Option<Scope> {
    PathPattern::parse(pattern).map(Scope::Path)
}

#[cfg(test)]
mod tests {
    use super::{Rule, RuleSource};

    fn rule(text: &str) -> Rule {
        Rule::parse(text, RuleSource::Flag).unwrap()
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
            ("Task", &["agent"], &["task_write"]),
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
        for text in ["", "Bash(git log", "Bash()", "(ls)", "WebFetch(example.com)", "Read(a[)", "two words"] {
            let error = Rule::parse(text, RuleSource::Flag).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
