//! Tool vocabularies: the names of tools and arguments that a session uses with the model and its host.

use std::sync::Arc;

use qwen_events::{Argument, ClaudeTool, Confirmation, Json, ToolCall, ToolDeclaration, ToolSpec};
use serde_json::{Map, Value};

use crate::declared::schema;
use crate::{Tool, ToolCx, ToolFuture};

/// The names that a session uses for tools and their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolVocabulary {
    /// Our own names, which Qwen Code's hosts also use.
    #[default]
    Qwen,
    /// Claude's.
    Claude,
}

impl ToolVocabulary {
    /// Parses the name of a vocabulary.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "qwen" => Some(Self::Qwen),
            "claude" => Some(Self::Claude),
            _ => None,
        }
    }

    /// Renames `tool` for this vocabulary. One of our tools can become several.
    pub(crate) fn offer(self, tool: Arc<dyn Tool>) -> Vec<Arc<dyn Tool>> {
        let declared = tool.declaration().filter(|_| self == Self::Claude);
        match declared.filter(|declared| !declared.claude.is_empty() && *tool.spec().name == *declared.name) {
            Some(declared) => {
                let named =
                    |claude| Arc::new(ClaudeNamed::new(tool.clone(), declared, claude)) as Arc<dyn Tool>;
                declared.claude.iter().map(named).collect()
            }
            None => vec![tool],
        }
    }
}

/// One of our tools under a name of Claude's vocabulary. Its calls use Claude's names everywhere except
/// inside the tool.
struct ClaudeNamed {
    tool: Arc<dyn Tool>,
    claude: &'static ClaudeTool,
    spec: ToolSpec,
}

impl ClaudeNamed {
    fn new(tool: Arc<dyn Tool>, declared: &'static ToolDeclaration, claude: &'static ClaudeTool) -> Self {
        let implied = |name: &str| claude.implied.iter().any(|(ours, _)| *ours == name);
        let arguments: Vec<Argument> = declared
            .arguments
            .iter()
            .filter(|argument| !claude.absent.contains(&argument.name) && !implied(argument.name))
            .map(|argument| Argument { name: claude_name(claude, argument.name), ..*argument })
            .collect();
        // A tool whose schema depends on the session declares no arguments.
        let parameters = if declared.arguments.is_empty() {
            tool.spec().parameters.clone()
        } else {
            Json::trusted(schema(&arguments))
        };
        let description = tool.spec().description.clone();
        Self { tool, claude, spec: ToolSpec { name: claude.name.into(), description, parameters } }
    }

    /// Translates a call to our names.
    fn ours(&self, call: &ToolCall) -> ToolCall {
        let Ok(Value::Object(given)) = serde_json::from_str(call.arguments.as_str()) else {
            return call.clone();
        };
        let mut arguments: Map<String, Value> =
            given.into_iter().map(|(name, value)| self.argument(name, value)).collect();
        for (name, value) in self.claude.implied {
            arguments.entry(*name).or_insert_with(|| Value::from(*value));
        }
        let arguments = Json::trusted(Value::from(arguments).to_string());
        ToolCall { name: self.tool.spec().name.clone(), arguments, ..call.clone() }
    }

    fn argument(&self, name: String, value: Value) -> (String, Value) {
        let renamed = self.claude.renamed.iter().find(|(_, claude)| *claude == name);
        let name = renamed.map_or(name, |(ours, _)| (*ours).to_owned());
        match value.as_u64().filter(|_| self.claude.from_one.contains(&name.as_str())) {
            Some(line) => (name, Value::from(line.saturating_sub(1))),
            None => (name, value),
        }
    }
}

fn claude_name(claude: &ClaudeTool, ours: &'static str) -> &'static str {
    claude.renamed.iter().find(|(name, _)| *name == ours).map_or(ours, |(_, claude)| claude)
}

impl Tool for ClaudeNamed {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        self.tool.declaration()
    }

    fn confirmation(&self, call: &ToolCall, cx: &ToolCx) -> Option<Confirmation> {
        self.tool.confirmation(&self.ours(call), cx)
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(async move { self.tool.run(&self.ours(call), cx).await })
    }
}
