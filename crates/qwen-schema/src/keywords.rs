//! The keywords by what is done about them.

/// Keywords that say nothing about which values fit.
pub(crate) const ANNOTATIONS: [&str; 18] = [
    "$comment",
    "$anchor",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "discriminator",
    "id",
];

/// The names that `type` may hold.
pub(crate) const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];
