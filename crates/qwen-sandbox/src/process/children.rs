//! Finding the children of this process without allocating, for the guardian.
//!
//! Linux only: needs `/proc`.
#![expect(unsafe_code, reason = "used after a fork, where only raw system calls may be made")]

use std::ffi::{c_char, c_void};
use std::os::fd::RawFd;

use libc::pid_t;

/// Visits the kernel's list of this thread's children. Returns false if the kernel has no such list.
pub(super) unsafe fn each_child_listed(mut visit: impl FnMut(pid_t)) -> bool {
    // SAFETY: only system calls on a buffer of this frame, whose length they are given.
    unsafe {
        let fd = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return false;
        }
        let mut buffer = [0u8; 4096];
        let mut pid: pid_t = 0;
        loop {
            let got = libc::read(fd, buffer.as_mut_ptr().cast::<c_void>(), buffer.len());
            let Some(piece) = filled(&buffer, got) else { break };
            for &byte in piece {
                if byte.is_ascii_digit() {
                    pid = pid.wrapping_mul(10).wrapping_add(pid_t::from(byte - b'0'));
                } else {
                    visit(pid);
                    pid = 0;
                }
            }
        }
        libc::close(fd);
        true
    }
}

/// Finds this process's children among all processes.
pub(super) unsafe fn each_child_among_all(mut visit: impl FnMut(pid_t)) {
    #[repr(align(8))]
    struct Entries([u8; 8192]);
    // SAFETY: only system calls on buffers of this frame, whose lengths they are given.
    unsafe {
        let me = libc::getpid();
        let proc = libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        let mut entries = Entries([0; 8192]);
        loop {
            let got = libc::syscall(libc::SYS_getdents64, proc, entries.0.as_mut_ptr(), entries.0.len());
            let Some(mut rest) = filled(&entries.0, isize::try_from(got).unwrap_or(-1)) else { break };
            // An entry: 8 bytes inode, 8 bytes offset, 2 bytes its own length, 1 byte type, the name and a
            // zero.
            while let (Some(&[low, high]), Some(name)) = (rest.get(16..18), rest.get(19..)) {
                let length = usize::from(u16::from_ne_bytes([low, high]));
                if let Some(pid) = leading_number(name)
                    && parent_of(proc, name) == Some(me)
                {
                    visit(pid);
                }
                match rest.get(length..) {
                    Some(next) if length > 0 => rest = next,
                    _ => break,
                }
            }
        }
        libc::close(proc);
    }
}

/// The part of a buffer that a call has filled; `None` at the end or after an error.
fn filled(buffer: &[u8], got: isize) -> Option<&[u8]> {
    usize::try_from(got).ok().and_then(|n| buffer.get(..n)).filter(|piece| !piece.is_empty())
}

fn leading_number(text: &[u8]) -> Option<pid_t> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit());
    let mut number: Option<pid_t> = None;
    for &digit in digits {
        number = Some(number.unwrap_or(0).wrapping_mul(10).wrapping_add(pid_t::from(digit - b'0')));
    }
    number
}

/// The parent of the process whose directory in `/proc` is called `name`.
unsafe fn parent_of(proc: RawFd, name: &[u8]) -> Option<pid_t> {
    let mut path = [0u8; 32];
    let digits = name.iter().take_while(|b| b.is_ascii_digit()).take(20).count();
    path.get_mut(..digits)?.copy_from_slice(name.get(..digits)?);
    path.get_mut(digits..digits + 5)?.copy_from_slice(b"/stat");
    let mut stat = [0u8; 512];
    // SAFETY: the path ends with a NUL of its zeroed buffer, and the call is given the length of `stat`.
    let got = unsafe {
        let fd = libc::openat(proc, path.as_ptr().cast::<c_char>(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let got = libc::read(fd, stat.as_mut_ptr().cast::<c_void>(), stat.len());
        libc::close(fd);
        got
    };
    parent_in_stat(stat.get(..usize::try_from(got).ok()?)?)
}

/// Reads `pid (name) state parent …`, where the name may contain any character, including brackets and
/// spaces.
fn parent_in_stat(stat: &[u8]) -> Option<pid_t> {
    let end = stat.iter().rposition(|&b| b == b')')?;
    leading_number(stat.get(end + 4..)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_with_and_without_the_kernels_list() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = pid_t::try_from(child.id()).unwrap();
        let (mut listed, mut scanned) = (Vec::new(), Vec::new());
        // SAFETY: the visitors only collect.
        let has_list = unsafe {
            each_child_among_all(|pid| scanned.push(pid));
            each_child_listed(|pid| listed.push(pid))
        };
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(scanned.contains(&pid), "{scanned:?}");
        assert_eq!(listed.contains(&pid), has_list, "{listed:?}");
    }

    #[test]
    fn the_parent_is_found_behind_any_process_name() {
        for (stat, parent) in [
            (&b"7 (sh) S 42 7 7"[..], Some(42)),
            (b"7 (a) b (c) ) S 1 7 7", Some(1)),
            (b"7 (x) R 0 0", Some(0)),
            (b"7 (unfinished", None),
            (b"", None),
        ] {
            assert_eq!(parent_in_stat(stat), parent, "{}", String::from_utf8_lossy(stat));
        }
    }
}
