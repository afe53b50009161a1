//! A chunk as servers send it: typed, borrowed, and tolerant of what the imitators of this wire make of it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A chunk of a stream, or the whole answer of a server that does not stream.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub model: Text<'a>,
    #[serde(borrow)]
    pub choices: First<Choice<'a>>,
    pub usage: Option<Counts>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// One choice; we never ask for a second.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub message: Option<Delta<'a>>,
    #[serde(borrow)]
    pub finish_reason: Text<'a>,
    pub usage: Option<Counts>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// What is new.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    pub content: Content,
    pub reasoning_content: Content,
    pub reasoning: Content,
    pub refusal: Content,
    #[serde(borrow)]
    pub tool_calls: Option<Vec<CallDelta<'a>>>,
}

/// What is new about a call.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct CallDelta<'a> {
    pub index: Option<u64>,
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub function: Option<Function<'a>>,
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
    /// The arguments as text, whether they came as a text or as the object itself.
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
    pub prompt_tokens: Count,
    pub completion_tokens: Count,
    pub prompt_cache_hit_tokens: Count,
    pub prompt_tokens_details: Option<PromptDetails>,
    pub completion_tokens_details: Option<CompletionDetails>,
}

/// What the prompt's tokens are made of.
#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub cached_tokens: Count,
    pub cache_creation_input_tokens: Count,
}

/// What the completion's tokens are made of.
#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    pub reasoning_tokens: Count,
}

/// A short text that is looked at and forgotten; empty for null and for what is no text.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Text::default())
            }
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(number.to_string())))
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// The text of a message or thought: a string, null, or a list of parts with texts in them.
#[derive(Debug, Default)]
pub(super) struct Content(pub Box<str>);

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, null or a list of parts")
            }
            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content(text.into()))
            }
            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
                let mut text = String::new();
                while let Some(Content(part)) = parts.next_element()? {
                    text.push_str(&part);
                }
                Ok(Content(text.into()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut part: A) -> Result<Content, A::Error> {
                let mut text = Content::default();
                while let Some(Text(key)) = part.next_key()? {
                    if matches!(&*key, "text" | "content" | "thinking") {
                        text = part.next_value()?;
                    } else {
                        part.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(text)
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// The first of a list; none for null and for an empty one.
#[derive(Debug)]
pub(super) struct First<T>(pub Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FirstVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
            type Value = First<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(First(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let first = items.next_element()?;
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_any(FirstVisitor(PhantomData))
    }
}

/// A number of tokens; what is no count counts as none, since an odd usage must not cost the answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;
        impl<'de> Visitor<'de> for CountVisitor {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of tokens")
            }
            fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
                Ok(Count(count))
            }
            fn visit_i64<E>(self, _negative: i64) -> Result<Count, E> {
                Ok(Count(0))
            }
            fn visit_f64<E>(self, count: f64) -> Result<Count, E> {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the cast saturates, and a count is whole and positive"
                )]
                Ok(Count(count as u64))
            }
            fn visit_unit<E>(self) -> Result<Count, E> {
                Ok(Count(0))
            }
            fn visit_str<E>(self, text: &str) -> Result<Count, E> {
                Ok(Count(text.parse().unwrap_or(0)))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
                Ok(Count(0))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Count, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Count(0))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Count(0))
            }
        }
        deserializer.deserialize_any(CountVisitor)
    }
}
