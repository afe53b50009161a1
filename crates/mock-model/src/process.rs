//! A process under control.
