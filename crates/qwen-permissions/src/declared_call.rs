//! What a call will do, read from its arguments as its tool declares them.

use std::path::{Path, PathBuf};

use qwen_events::{ArgumentRole, ToolCall, ToolDeclaration, ToolKind};
use serde_json::{Map, Value};

use crate::CallFacts;

/// What a call will do.
#[derive(Debug)]
pub struct DeclaredCall {
    tool: String,
    kind: ToolKind,
    cwd: PathBuf,
    paths: Vec<PathBuf>,
    command: Option<String>,
    url: Option<String>,
    action: Option<String>,
}

impl DeclaredCall {
    /// Reads a call that is made in `cwd`. Without a declaration the effects are unknown, and the policy
    /// asks.
    pub fn read(call: &ToolCall, declaration: Option<&ToolDeclaration>, cwd: &Path) -> Self {
        let mut made = Self {
            tool: call.name.to_string(),
            kind: declaration.map_or(ToolKind::Undeclared, |declaration| declaration.kind),
            cwd: cwd.to_owned(),
            paths: Vec::new(),
            command: None,
            url: None,
            action: None,
        };
        let Some(declaration) = declaration.filter(|declaration| declaration.kind != ToolKind::Mcp) else {
            return made;
        };
        declaration.name.clone_into(&mut made.tool);
        // An argument of the wrong type counts as absent: the tool itself refuses such a call, and the
        // judgement does not become more permissive.
        let given: Map<String, Value> = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
        let text = |name: &str| given.get(name).and_then(Value::as_str);
        for argument in declaration.arguments {
            let Some(text) = text(argument.name) else { continue };
            match argument.role {
                ArgumentRole::Path => made.paths.push(PathBuf::from(text)),
                ArgumentRole::WorkingDirectory => made.cwd = cwd.join(text),
                ArgumentRole::Command => made.command = Some(text.to_owned()),
                ArgumentRole::Url => made.url = Some(text.to_owned()),
                ArgumentRole::Plain => {}
            }
        }
        let implied = declaration.claude.iter().find_map(|tool| tool.implied.first());
        made.action = declaration
            .action_of(&call.name)
            .or_else(|| implied.and_then(|(name, _)| text(name)))
            .map(str::to_owned);
        if made.kind == ToolKind::Read && made.paths.is_empty() {
            made.paths.push(cwd.to_owned());
        }
        made
    }

    /// The same for the policy.
    pub fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: &self.tool,
            kind: self.kind,
            cwd: &self.cwd,
            paths: self.paths.clone(),
            command: self.command.as_deref(),
            url: self.url.as_deref(),
            action: self.action.as_deref(),
        }
    }

    /// The command that the call runs.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref().filter(|_| self.kind == ToolKind::Execute)
    }

    /// The address that the call visits.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref().filter(|_| self.kind == ToolKind::Fetch)
    }
}
