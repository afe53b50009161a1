//! Spec 2: the Loom stream protocol, and in [`export`] its older form with single keys.

pub mod custom;
pub mod export;
pub mod wire;

mod encode;
mod modes;
mod project;
mod protocol_form;
mod timestamp;

pub use encode::LoomEncoder;
pub use export::ExportEncoder;
pub use timestamp::rfc3339;

/// The schemas of these dialects' streams.
pub(crate) fn schemas() -> Vec<(&'static str, schemars::Schema)> {
    vec![
        ("loom-stream", schemars::schema_for!(wire::Line<'static>)),
        ("loom-export-stream", schemars::schema_for!(export::Line<'static>)),
    ]
}
