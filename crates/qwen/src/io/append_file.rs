//! Opens files that are written in addition to the stream: traces and debug logs.

use std::fs::File;
use std::io;
use std::path::Path;

use super::host_file::{SharedPlaces, WriteMode};

/// Opens a file for appending, accessible only to its owner. Links that a command could have made in the
/// working directory are not followed. A pipe without a reader must not block the work, and standard output is
/// reserved for the protocol, whatever name it is opened by.
pub fn open(path: &Path) -> io::Result<File> {
    let shared = SharedPlaces::new(std::env::current_dir());
    let file = shared.open_file(path, WriteMode::Append)?;
    let (ours, stdout) = (rustix::fs::fstat(&file)?, rustix::fs::fstat(rustix::stdio::stdout()));
    if stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == (ours.st_dev, ours.st_ino)) {
        return Err(io::Error::other("this is standard output, which carries nothing but the protocol"));
    }
    Ok(file)
}
