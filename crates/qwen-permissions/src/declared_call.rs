//! What a call will do, read from its arguments as its tool declares them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use qwen_events::{ArgumentRole, ToolCall, ToolDeclaration, ToolKind};
use serde_json::{Map, Value};

/// What a call will do: the description that the policy judges.
#[derive(Debug, Clone)]
pub struct DeclaredCall<'a> {
    /// The canonical name of the tool.
    pub(crate) tool: Cow<'a, str>,
    /// What kind of work it does.
    pub(crate) kind: ToolKind,
    /// The directory that it works in, absolute.
    pub(crate) cwd: Cow<'a, Path>,
    /// The paths that it works on, as given.
    pub(crate) paths: Vec<PathBuf>,
    command: Option<Cow<'a, str>>,
    pub(crate) url: Option<Cow<'a, str>>,
    /// What it does, for a tool of ours that replaces several of Claude's, such as `kill`.
    pub(crate) action: Option<Cow<'a, str>>,
}

impl<'a> DeclaredCall<'a> {
    /// Creates the description of a call without paths, command and address.
    pub fn new(tool: &'a str, kind: ToolKind, cwd: &'a Path) -> Self {
        let (tool, cwd) = (Cow::Borrowed(tool), Cow::Borrowed(cwd));
        Self { tool, kind, cwd, paths: Vec::new(), command: None, url: None, action: None }
    }

    /// Adds paths that the call works on.
    pub fn with_paths(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.paths.extend(paths);
        self
    }

    /// Sets the command that the call runs.
    pub fn with_command(mut self, command: &'a str) -> Self {
        self.command = Some(Cow::Borrowed(command));
        self
    }

    /// Sets the address that the call visits.
    pub fn with_url(mut self, url: &'a str) -> Self {
        self.url = Some(Cow::Borrowed(url));
        self
    }

    /// Reads a call that is made in `cwd`. Without a declaration the effects are unknown, and the policy
    /// asks.
    pub fn read(call: &'a ToolCall, declaration: Option<&ToolDeclaration>, cwd: &'a Path) -> Self {
        let kind = declaration.map_or(ToolKind::Undeclared, |declaration| declaration.kind);
        let mut made = Self::new(&call.name, kind, cwd);
        let Some(declaration) = declaration.filter(|declaration| declaration.kind != ToolKind::Mcp) else {
            return made;
        };
        made.tool = Cow::Borrowed(declaration.name);
        // An argument of the wrong type counts as absent: the tool itself refuses such a call, and the
        // judgement does not become more permissive.
        let given: Map<String, Value> = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
        let text = |name: &str| given.get(name).and_then(Value::as_str);
        for argument in declaration.arguments {
            let Some(text) = text(argument.name) else { continue };
            match argument.role {
                ArgumentRole::Path => made.paths.push(PathBuf::from(text)),
                ArgumentRole::WorkingDirectory => made.cwd = Cow::Owned(cwd.join(text)),
                ArgumentRole::Command => made.command = Some(Cow::Owned(text.to_owned())),
                ArgumentRole::Url => made.url = Some(Cow::Owned(text.to_owned())),
                ArgumentRole::Plain => {}
            }
        }
        let implied = declaration.claude.iter().find_map(|tool| tool.implied.first());
        let action = declaration.action_of(&call.name).or_else(|| implied.and_then(|(name, _)| text(name)));
        made.action = action.map(|action| Cow::Owned(action.to_owned()));
        if made.kind == ToolKind::Read && made.paths.is_empty() {
            made.paths.push(cwd.to_owned());
        }
        made
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
