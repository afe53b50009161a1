//! Tolerant JSON fields: an unexpected value in place of a text, a list or a number must not lose the
//! answer. Texts are borrowed from the event if possible.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A short text that is only inspected; empty for null and for other types.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(pub Cow<'a, str>);

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
pub(crate) struct Content(pub Box<str>);

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
            fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
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

/// The content of a model's message, in which a list may mix text with blocks of thinking.
#[derive(Debug, Default)]
pub(crate) struct MixedContent {
    pub text: Box<str>,
    pub thought: Box<str>,
}

impl<'de> Deserialize<'de> for MixedContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MixedVisitor;
        impl<'de> Visitor<'de> for MixedVisitor {
            type Value = MixedContent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, null or a list of parts")
            }
            fn visit_str<E>(self, text: &str) -> Result<MixedContent, E> {
                Ok(MixedContent { text: text.into(), thought: Box::default() })
            }
            fn visit_unit<E>(self) -> Result<MixedContent, E> {
                Ok(MixedContent::default())
            }
            fn visit_bool<E>(self, _: bool) -> Result<MixedContent, E> {
                Ok(MixedContent::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<MixedContent, A::Error> {
                let (mut text, mut thought) = (String::new(), String::new());
                while let Some(part) = parts.next_element::<MixedContent>()? {
                    text.push_str(&part.text);
                    thought.push_str(&part.thought);
                }
                Ok(MixedContent { text: text.into(), thought: thought.into() })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut part: A) -> Result<MixedContent, A::Error> {
                let (mut kind, mut text, mut thought) =
                    (Text::default(), Content::default(), Content::default());
                while let Some(Text(key)) = part.next_key::<Text<'de>>()? {
                    match &*key {
                        "type" => kind = part.next_value()?,
                        "text" | "content" => text = part.next_value()?,
                        "thinking" | "reasoning" => thought = part.next_value()?,
                        _ => drop(part.next_value::<IgnoredAny>()?),
                    }
                }
                // Keys come in any order, so the kind is checked last.
                if matches!(&*kind.0, "thinking" | "reasoning") && thought.0.is_empty() {
                    std::mem::swap(&mut text, &mut thought);
                }
                Ok(MixedContent { text: text.0, thought: thought.0 })
            }
        }
        deserializer.deserialize_any(MixedVisitor)
    }
}

/// A number of tokens; 0 for anything else, since an invalid usage must not lose the answer.
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
