//! Why a path cannot be used.

use std::io;
use std::path::{Path, PathBuf};

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It leads out of the workspace.
    #[error("{} is outside the workspace, or a link that leads out of it; only files in the workspace can be used", .0.display())]
    Outside(PathBuf),
    /// There is nothing.
    #[error("{} does not exist", .0.display())]
    NotFound(PathBuf),
    /// It is a directory and should be a file.
    #[error("{} is a directory, not a file", .0.display())]
    IsDirectory(PathBuf),
    /// It is a file and should be a directory.
    #[error("{} is not a directory", .0.display())]
    NotDirectory(PathBuf),
    /// It is a device, a pipe, a socket or made up by the kernel.
    #[error("{} is a device, a pipe, a socket or a kernel file; only regular files can be used", .0.display())]
    Special(PathBuf),
    /// It may be read and not written.
    #[error("{} may be read but not written: it is kept for the session's own output", .0.display())]
    ReadOnly(PathBuf),
    /// It is empty, holds a NUL, or ends in what is no file name.
    #[error("{:?} is no path of a file", .0.display())]
    NoName(PathBuf),
    /// Somebody moved it while it was looked at.
    #[error("{} was moved or replaced while it was being opened; try again", .0.display())]
    Moved(PathBuf),
    /// The system says no.
    #[error("{} cannot be opened: {source}", path.display())]
    System {
        /// What was asked for.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The working directory itself is gone.
    #[error("The working directory {} cannot be opened: {source}", path.display())]
    NoWorkspace {
        /// The working directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl PathError {
    /// What an error of the system means for a path.
    pub(super) fn of(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path),
            io::ErrorKind::NotADirectory => Self::NotDirectory(path),
            io::ErrorKind::IsADirectory => Self::IsDirectory(path),
            // A socket, or a FIFO or device without its other side.
            _ if source.raw_os_error() == Some(libc::ENXIO) => Self::Special(path),
            _ => Self::System { path, source },
        }
    }

    /// The same error about the path that was really asked for.
    pub(super) fn about(self, asked: &Path) -> Self {
        match self {
            Self::Outside(_) => Self::Outside(asked.into()),
            other => other,
        }
    }

    /// A stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Outside(_) => "path_outside_workspace",
            Self::NotFound(_) => "file_not_found",
            Self::IsDirectory(_) => "is_a_directory",
            Self::NotDirectory(_) => "not_a_directory",
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
