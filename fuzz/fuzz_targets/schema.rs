//! Whatever a schema says, it is read or refused, and checking a value against it ends and says the same
//! twice.

#![no_main]

use libfuzzer_sys::fuzz_target;
use qwen_schema::Schema;

fuzz_target!(|texts: (&str, &str)| {
    let (schema, value) = texts;
    let Ok((schema, _)) = Schema::parse_supported(schema) else { return };
    let Ok(value) = serde_json::from_str(value) else { return };
    assert_eq!(schema.problems(&value, "value"), schema.problems(&value, "value"));
});
