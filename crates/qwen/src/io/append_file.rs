//! Opens files that are written in addition to the stream: traces and debug logs.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file for appending, accessible only to its owner. A pipe without a reader must not block the work,
/// and standard output is reserved for the protocol, whatever name it is opened by.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = File::options().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    let (ours, stdout) = (rustix::fs::fstat(&file)?, rustix::fs::fstat(rustix::stdio::stdout()));
    if stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == (ours.st_dev, ours.st_ino)) {
        return Err(io::Error::other("this is standard output, which carries nothing but the protocol"));
    }
    Ok(file)
}
