//! Enumerations of `qwen-events` that the log stores by their name on the wire.

use std::borrow::Cow;

use qwen_events::{AgentName, EndStatus, Finish};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value whose JSON form is its name.
pub(in crate::log) trait Named: Copy + 'static {
    const ALL: &'static [Self];

    fn name(self) -> &'static str;
}

impl Named for EndStatus {
    const ALL: &'static [Self] = &EndStatus::ALL;

    fn name(self) -> &'static str {
        EndStatus::name(self)
    }
}

impl Named for Finish {
    const ALL: &'static [Self] = &Finish::ALL;

    fn name(self) -> &'static str {
        self.openai()
    }
}

impl Named for AgentName {
    const ALL: &'static [Self] = &AgentName::ALL;

    fn name(self) -> &'static str {
        AgentName::name(self)
    }
}

#[derive(Debug, Clone, Copy)]
pub(in crate::log) struct ByName<T>(pub T);

impl<T: Named> Serialize for ByName<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de, T: Named> Deserialize<'de> for ByName<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        let value = T::ALL.iter().find(|value| value.name() == name);
        value.map(|value| Self(*value)).ok_or_else(|| Error::custom(format_args!("unknown name `{name}`")))
    }
}
