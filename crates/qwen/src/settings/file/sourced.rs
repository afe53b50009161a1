//! A value with the place where it was written.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// The struct name with which a value requests its position from the deserializer.
pub(super) const NAME: &str = "$Sourced";
pub(super) const VALUE: &str = "$value";
pub(super) const ORIGIN: &str = "$origin";

/// A value and where it was written: `/path/settings.json:3`, or the name of a flag.
#[derive(Debug, Clone, PartialEq)]
pub struct Sourced<T> {
    pub value: T,
    /// Where it was written.
    pub origin: Arc<str>,
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Sourced<T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts<T>(PhantomData<T>);

        impl<'a, T: Deserialize<'a>> Visitor<'a> for Parts<T> {
            type Value = Sourced<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Sourced<T>, A::Error> {
                let (mut value, mut origin) = (None, String::new());
                while let Some(key) = map.next_key::<&str>()? {
                    match key {
                        VALUE => value = Some(map.next_value()?),
                        _ => origin = map.next_value()?,
                    }
                }
                let value = value.ok_or_else(|| serde::de::Error::missing_field(VALUE))?;
                Ok(Sourced { value, origin: origin.into() })
            }
        }

        deserializer.deserialize_struct(NAME, &[VALUE, ORIGIN], Parts(PhantomData))
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for Sourced<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<T>()
    }
}
