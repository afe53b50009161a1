//! Reading and writing the JSON of model servers.

pub(crate) mod tolerant;
mod writer;

pub(crate) use writer::JsonWriter;
