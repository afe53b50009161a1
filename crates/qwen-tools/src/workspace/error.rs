//! Why a path cannot be used.

use std::io;
use std::path::{Path, PathBuf};

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It leads out of the workspace.
    #[error("{} is outside the workspace, or a link that leads out of it; only files in the workspace can be used", .0.display())]
    Outside(PathBuf),
    #[error("{} does not exist", .0.display())]
    NotFound(PathBuf),
    /// A directory where a file is needed.
    #[error("{} is a directory, not a file", .0.display())]
    IsDirectory(PathBuf),
    /// A file where a directory is needed.
    #[error("{} is not a directory", .0.display())]
    NotDirectory(PathBuf),
    /// A part of the path before its last name is not a directory.
    #[error("{} does not exist: a part of its path is a file, not a directory", .0.display())]
    ThroughFile(PathBuf),
    /// A device, a pipe, a socket or a file of a virtual file system.
    #[error("{} is a device, a pipe, a socket or a kernel file; only regular files can be used", .0.display())]
    Special(PathBuf),
    /// Readable but not writable.
    #[error("{} may be read but not written: it is kept for the session's own output", .0.display())]
    ReadOnly(PathBuf),
    /// The path is empty, contains a NUL, or does not end in a file name.
    #[error("{:?} is not the path of a file", .0.display())]
    NoName(PathBuf),
    /// The file was moved while it was opened.
    #[error("{} was moved or replaced while it was being opened; try again", .0.display())]
    Moved(PathBuf),
    /// Any other system error.
    #[error("{} cannot be opened: {source}", path.display())]
    System {
        /// The path that was requested.
        path: PathBuf,
        source: io::Error,
    },
    /// The working directory cannot be opened.
    #[error("The working directory {} cannot be opened: {source}", path.display())]
    NoWorkspace {
        /// The working directory that cannot be opened.
        path: PathBuf,
        source: io::Error,
    },
}

impl PathError {
    /// Converts a system error for a path.
    pub(super) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path),
            io::ErrorKind::NotADirectory => Self::ThroughFile(path),
            io::ErrorKind::IsADirectory => Self::IsDirectory(path),
            // A socket, or a FIFO or device without a peer.
            _ if source.raw_os_error() == Some(libc::ENXIO) => Self::Special(path),
            _ => Self::System { path, source },
        }
    }

    /// Replaces the path with the one that was requested.
    pub(super) fn with_requested_path(self, asked: &Path) -> Self {
        match self {
            Self::Outside(_) => Self::Outside(asked.into()),
            other => other,
        }
    }

    /// A stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Outside(_) => "path_outside_workspace",
            Self::NotFound(_) => "file_not_found",
            Self::IsDirectory(_) => "is_a_directory",
            Self::NotDirectory(_) | Self::ThroughFile(_) => "not_a_directory",
            Self::Special(_) => "not_a_regular_file",
            Self::ReadOnly(_) => "permission_denied",
            Self::NoName(_) => "invalid_arguments",
            Self::Moved(_) => "file_changed",
            Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "permission_denied"
            }
            Self::System { .. } | Self::NoWorkspace { .. } => "io_error",
        }
    }
}
