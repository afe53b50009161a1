//! A chunk as servers send it: typed, borrowed, and tolerant of the deviations of compatible servers.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::tolerant::{Content, Count, MixedContent, Text};

/// A chunk of a stream, or the complete answer of a server that does not stream.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub model: Text<'a>,
    #[serde(borrow)]
    pub choices: FirstChoice<'a>,
    pub usage: Option<Box<Counts>>,
    /// The location of Groq's usage.
    pub x_groq: Option<Box<Extension>>,
    /// The location of llama.cpp's token counts.
    pub timings: Option<Box<Timings>>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    /// If present without choices, the chunk itself is an error.
    pub message: Content,
}

/// The relevant choice: the one with index 0, or without an index. We never request a second one, and other
/// choices must not be mixed into the answer.
#[derive(Debug, Default)]
pub(super) struct FirstChoice<'a>(pub Option<Choice<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for FirstChoice<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;
        impl<'de> Visitor<'de> for ListVisitor {
            type Value = FirstChoice<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of choices")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(FirstChoice(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut ours = None;
                while let Some(choice) = items.next_element::<Choice<'de>>()? {
                    if ours.is_none() && choice.index.0 == 0 {
                        ours = Some(choice);
                    }
                }
                Ok(FirstChoice(ours))
            }
        }
        deserializer.deserialize_any(ListVisitor)
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    pub index: Count,
    #[serde(borrow)]
    pub delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub message: Option<Box<Delta<'a>>>,
    #[serde(borrow)]
    pub finish_reason: Text<'a>,
    pub usage: Option<Box<Counts>>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// The delta of a message.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    pub content: MixedContent,
    pub reasoning_content: Content,
    pub reasoning: Content,
    pub refusal: Content,
    #[serde(borrow)]
    pub tool_calls: Option<Vec<CallDelta<'a>>>,
    /// The legacy form of a single call; some servers still send it.
    #[serde(borrow)]
    pub function_call: Option<Box<Function<'a>>>,
    /// OpenRouter's blocks of reasoning, which some models require back.
    #[serde(borrow)]
    pub reasoning_details: Option<&'a RawValue>,
    /// Google's additional message content, which must be sent back.
    #[serde(borrow)]
    pub extra_content: Option<&'a RawValue>,
    pub usage: Option<Box<Counts>>,
}

/// The delta of a call.
#[derive(Debug, Default)]
pub(super) struct CallDelta<'a> {
    pub index: Option<Count>,
    pub id: Text<'a>,
    pub function: Option<Function<'a>>,
    /// Fields that the wire does not define, verbatim.
    pub fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for CallDelta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CallVisitor;
        impl<'de> Visitor<'de> for CallVisitor {
            type Value = CallDelta<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tool call")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut call = CallDelta::default();
                while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "index" => call.index = map.next_value()?,
                        "id" => call.id = map.next_value()?,
                        "function" => call.function = map.next_value()?,
                        "type" => drop(map.next_value::<IgnoredAny>()?),
                        _ => call.fields.push((key, map.next_value()?)),
                    }
                }
                Ok(call)
            }
        }
        deserializer.deserialize_map(CallVisitor)
    }
}

/// A function's name and arguments, or pieces of them.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
}

impl Function<'_> {
    /// True if it has a name or a piece of the arguments.
    pub fn has_content(&self) -> bool {
        !self.name.0.is_empty() || !self.arguments().is_empty()
    }

    /// The arguments as text, whether sent as a text or as an object.
    pub fn arguments(&self) -> Cow<'_, str> {
        match self.arguments.map(RawValue::get) {
            None | Some("null") => Cow::Borrowed(""),
            Some(text) if text.starts_with('"') => match serde_json::from_str::<Text<'_>>(text) {
                Ok(Text(text)) => text,
                Err(_) => Cow::Borrowed(text),
            },
            Some(object) => Cow::Borrowed(object),
        }
    }
}

/// Tokens as a server counts them.
#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    #[serde(alias = "input_tokens")]
    pub prompt_tokens: Count,
    #[serde(alias = "output_tokens")]
    pub completion_tokens: Count,
    pub prompt_cache_hit_tokens: Count,
    pub prompt_tokens_details: Option<PromptDetails>,
    pub completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub cached_tokens: Count,
    pub cache_creation_input_tokens: Count,
}

#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    pub reasoning_tokens: Count,
}

/// A provider-specific extension of a chunk.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Extension {
    pub usage: Option<Box<Counts>>,
}

/// Token counts of llama.cpp, if it reports no usage.
#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(default)]
pub(super) struct Timings {
    pub cache_n: Count,
    pub prompt_n: Count,
    pub predicted_n: Count,
}

impl From<Timings> for Counts {
    fn from(timings: Timings) -> Self {
        Self {
            prompt_tokens: Count(timings.cache_n.0.saturating_add(timings.prompt_n.0)),
            completion_tokens: timings.predicted_n,
            prompt_cache_hit_tokens: timings.cache_n,
            ..Self::default()
        }
    }
}
