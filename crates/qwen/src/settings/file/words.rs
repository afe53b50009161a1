//! Values written as keywords, durations, or a single text instead of a list.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Unexpected, Visitor};

use crate::settings::limits;

/// Deserializes a keyword with `parse`; `expected` lists the valid ones.
pub(super) fn word<'a, D: Deserializer<'a>, T>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let word = String::deserialize(deserializer)?;
    parse(&word).ok_or_else(|| Error::invalid_value(Unexpected::Str(&word), &expected))
}

/// Deserializes a duration: seconds, or a text like `90s`, `5m`.
pub(super) fn time<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    struct Time;

    impl Visitor<'_> for Time {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of seconds, or a time like \"90s\" or \"5m\"")
        }

        #[expect(clippy::cast_precision_loss, reason = "no one waits for 2^53 seconds")]
        fn visit_u64<E: Error>(self, seconds: u64) -> Result<Duration, E> {
            self.visit_f64(seconds as f64)
        }

        fn visit_f64<E: Error>(self, seconds: f64) -> Result<Duration, E> {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| E::invalid_value(Unexpected::Float(seconds), &self))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            limits::duration(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_any(Time).map(Some)
}

/// Deserializes a list of texts; a single text is a list of one.
pub(super) fn texts<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Texts<T>(PhantomData<T>);

    impl<'a> Visitor<'a> for Texts<String> {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a list of texts")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'a>>(self, list: A) -> Result<Vec<String>, A::Error> {
            Deserialize::deserialize(SeqAccessDeserializer::new(list))
        }
    }

    deserializer.deserialize_any(Texts(PhantomData))
}
