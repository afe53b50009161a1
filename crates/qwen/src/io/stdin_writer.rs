//! Finds the process that holds the other end of standard input.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FileType, OFlags, fstat};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, getppid};

/// True if the process that started us holds the write end of our standard input. False if that cannot be
/// determined.
pub fn is_our_parent() -> bool {
    let Some(parent) = getppid() else { return false };
    let stdin = rustix::stdio::stdin();
    let Ok(stat) = fstat(stdin) else { return false };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => holds_for_writing(parent, stat.st_dev, stat.st_ino),
        FileType::Socket => socket_peercred(stdin).is_ok_and(|peer| peer.pid == parent),
        _ => false,
    }
}

/// True if a process has the pipe open for writing.
fn holds_for_writing(process: Pid, device: u64, inode: u64) -> bool {
    let folder = format!("/proc/{}", process.as_raw_nonzero());
    let Ok(descriptors) = fs::read_dir(format!("{folder}/fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        let is_pipe = fs::metadata(descriptor.path())
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == (device, inode));
        let info = format!("{folder}/fdinfo/{}", descriptor.file_name().to_string_lossy());
        is_pipe && fs::read_to_string(info).is_ok_and(|info| is_writable(&info))
    })
}

/// Reads the open flags in the text of `/proc/PID/fdinfo/FD`.
fn is_writable(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| {
        let mode = flags & (OFlags::WRONLY | OFlags::RDWR).bits();
        mode == OFlags::WRONLY.bits() || mode == OFlags::RDWR.bits()
    })
}

#[cfg(test)]
mod tests {
    use super::is_writable;

    #[test]
    fn open_flags_tell_writers_from_readers() {
        assert!(is_writable("pos:\t0\nflags:\t0100001\nmnt_id:\t14\n"));
        assert!(is_writable("flags:\t02\n"));
        assert!(!is_writable("pos:\t0\nflags:\t0100000\n"));
        assert!(!is_writable(""));
    }
}
