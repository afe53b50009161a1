//! Writes JSON directly into a line.
//!
//! The most frequent lines of a stream are written here without serde, around a prefix rendered once;
//! everything else is a wire type that serde writes. Both produce the same bytes, which tests verify.

use serde::Serialize;

/// Appends `value` as one line.
pub(crate) fn push_line(out: &mut Vec<u8>, value: &impl Serialize) {
    push_value(out, value);
    out.push(b'\n');
}

/// Appends `value` as JSON.
pub(crate) fn push_value(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing into memory cannot fail, and no wire type has a map with keys that are not strings.
    let written = serde_json::to_writer(&mut *out, value);
    debug_assert!(written.is_ok(), "{written:?}");
}

/// Appends `text` as a JSON string, quotes included.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    push_value(out, &text);
}

/// Appends a whole number.
pub(crate) fn push_number(out: &mut Vec<u8>, number: u64) {
    push_value(out, &number);
}
