//! Tool vocabularies: the names of tools and arguments that a session uses with the model and its host.

use std::sync::Arc;

use qwen_events::{Argument, ClaudeTool, Confirmation, Json, ToolCall, ToolDeclaration, ToolKind, ToolSpec};
use serde_json::{Map, Value};

use crate::declared::{schema, with_arguments};
use crate::{CallContext, Outcome, Tool, ToolFuture, builtin};

/// The names that a session uses for tools and their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolVocabulary {
    /// Our own names, which Qwen Code's hosts also use.
    #[default]
    Qwen,
    /// The names of Claude's tools and arguments.
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
            .map(|argument| Argument {
                name: claude_name(claude, argument.name),
                required: argument.required
                    && !has_default(claude, argument.name)
                    && !claude.also.iter().any(|(ours, _)| *ours == argument.name),
                ..*argument
            })
            .chain(further_names(declared, claude))
            .chain(claude.added.iter().copied())
            .collect();
        // A tool whose schema depends on the session declares no arguments.
        let parameters = if declared.arguments.is_empty() {
            Json::trusted(with_arguments(tool.spec().parameters.as_str(), claude.added))
        } else {
            Json::trusted(in_claudes_words(&schema(&arguments)))
        };
        let description = claude.description.unwrap_or(&tool.spec().description);
        let description = in_claudes_words(description).into();
        Self { tool, claude, spec: ToolSpec { name: claude.name.into(), description, parameters } }
    }

    /// Translates a call to our names.
    fn translate(&self, call: &ToolCall) -> ToolCall {
        let Ok(Value::Object(given)) = serde_json::from_str(call.arguments.as_str()) else {
            return call.clone();
        };
        let mut arguments: Map<String, Value> =
            given.into_iter().map(|(name, value)| self.argument(name, value)).collect();
        for (name, value) in self.claude.implied {
            arguments.entry(*name).or_insert_with(|| Value::from(*value));
        }
        for (name, value) in self.claude.defaults {
            arguments.entry(*name).or_insert_with(|| serde_json::from_str(value).unwrap_or_default());
        }
        let arguments = Json::trusted(Value::from(arguments).to_string());
        // The name stays Claude's, because errors about the arguments contain it.
        ToolCall { arguments, ..call.clone() }
    }

    fn argument(&self, name: String, value: Value) -> (String, Value) {
        let mut names = self.claude.renamed.iter().chain(self.claude.also);
        let renamed = names.find(|(_, claude)| *claude == name);
        let name = renamed.map_or(name, |(ours, _)| (*ours).to_owned());
        (name, value)
    }
}

/// The arguments under the further names that Claude's tool accepts.
fn further_names(
    declared: &'static ToolDeclaration,
    claude: &'static ClaudeTool,
) -> impl Iterator<Item = Argument> {
    let also = |(ours, name): &(&'static str, &'static str)| {
        Some(Argument { name, required: false, ..*declared.argument(ours)? })
    };
    claude.also.iter().filter_map(also)
}

fn has_default(claude: &ClaudeTool, ours: &str) -> bool {
    claude.defaults.iter().any(|(name, _)| *name == ours)
}

/// A text about tools with Claude's names in place of ours.
pub fn in_claudes_words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    while let Some(start) = rest.find(is_letter) {
        words.push_str(&rest[..start]);
        let word = &rest[start..];
        let end = word.find(|letter: char| !is_letter(letter)).unwrap_or(word.len());
        // Names that are also ordinary words are recognised after "tool".
        let is_named = words.ends_with(" tool ");
        words.push_str(claude_word(&word[..end], is_named).unwrap_or(&word[..end]));
        rest = &word[end..];
    }
    words.push_str(rest);
    words
}

/// Claude's word for one of our names. A name without an underscore counts only where it `is_named` as a
/// tool.
fn claude_word(word: &str, is_named: bool) -> Option<&'static str> {
    if !word.contains('_') && !is_named {
        return None;
    }
    if let Some(declared) = builtin::DECLARATIONS.iter().find(|declared| declared.name == word) {
        return declared.claude.first().map(|claude| claude.name);
    }
    let renamed = |claude: &ClaudeTool| {
        claude.renamed.iter().find(|(ours, _)| *ours == word).map(|(_, claude)| *claude)
    };
    // An argument that has its name in one of the tools stays as it is.
    let declared = builtin::DECLARATIONS
        .iter()
        .filter(|declared| declared.claude.iter().all(|tool| renamed(tool).is_some()));
    declared.flat_map(|declared| declared.claude).find_map(renamed)
}

fn claude_name(claude: &ClaudeTool, ours: &'static str) -> &'static str {
    claude.renamed.iter().find(|(name, _)| *name == ours).map_or(ours, |(_, claude)| claude)
}

/// Puts Claude's names into the text of an outcome that names tools.
fn translate(mut outcome: Outcome) -> Outcome {
    if outcome.mentions_tools {
        outcome.text = in_claudes_words(&outcome.text);
    }
    outcome
}

impl Tool for ClaudeNamed {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        self.tool.declaration()
    }

    fn confirmation(&self, call: &ToolCall, cx: &CallContext) -> Option<Confirmation> {
        self.tool.confirmation(&self.translate(call), cx)
    }

    fn only_reads(&self, call: &ToolCall) -> bool {
        match self.tool.declaration().map(|declaration| declaration.kind) {
            // The arguments of these calls decide, such as the choice of a sub-agent.
            Some(ToolKind::Session) => self.tool.only_reads(&self.translate(call)),
            kind => kind.is_some_and(ToolKind::only_reads),
        }
    }

    fn check(&self, call: &ToolCall, cx: &CallContext) -> Option<Outcome> {
        self.tool.check(&self.translate(call), cx).map(translate)
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { translate(self.tool.run(&self.translate(call), cx).await) })
    }
}
