//! The paths that calls and commands name, and which of them are in the workspace, protected or denied.

pub(crate) mod argument_paths;
pub(crate) mod denied_paths;
pub(crate) mod named_paths;
pub(crate) mod protected;
pub(crate) mod workspace;
