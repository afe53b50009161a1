//! A file that is written beside the stream: traces, and what is kept for whoever looks for a fault.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file to add to, for whoever owns it alone. A pipe that nobody reads must not hold up the work, and standard
/// output is the protocol's, by whatever name.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = File::options().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    let (ours, stdout) = (rustix::fs::fstat(&file)?, rustix::fs::fstat(rustix::stdio::stdout()));
    if stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == (ours.st_dev, ours.st_ino)) {
        return Err(io::Error::other("this is standard output, which carries nothing but the protocol"));
    }
    Ok(file)
}
