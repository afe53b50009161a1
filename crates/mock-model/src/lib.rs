//! mock-model
