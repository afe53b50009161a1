//! What bash reports about a command line at its end, besides the exit code.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};

/// Exit code of a program that was killed by SIGPIPE, as most are whose reader has enough.
const KILLED_BY_SIGPIPE: i32 = 128 + libc::SIGPIPE;

/// Longest report that is read, in bytes.
const LONGEST: u64 = 16 * 1024;

/// A file in memory to which bash writes the exit codes of the last pipeline.
pub(super) struct ShellReport(File);

impl ShellReport {
    /// Creates a report for a command line that may contain a pipeline. It costs a new guardian process, so
    /// that other command lines have none.
    pub(super) fn create(command: &str) -> io::Result<Option<Self>> {
        if !command.contains('|') {
            return Ok(None);
        }
        let file = rustix::fs::memfd_create("qwen-report", rustix::fs::MemfdFlags::CLOEXEC)?;
        Ok(Some(Self(File::from(file))))
    }

    /// Returns the descriptor that bash inherits, and what comes before the command line. It stays on the
    /// first line, so that the line numbers of bash's errors do not change.
    pub(super) fn prepare(&self) -> io::Result<(OwnedFd, String)> {
        let inherited = OwnedFd::from(self.0.try_clone()?);
        let write = format!("builtin printf \"%s \" \"${{PIPESTATUS[@]}}\" >&{}", inherited.as_raw_fd());
        Ok((inherited, format!("trap '{write}' EXIT; ")))
    }

    /// Returns a note if an earlier part of the last pipeline failed.
    pub(super) fn describe_failed_parts(mut self) -> Option<String> {
        let mut text = String::new();
        self.0.seek(SeekFrom::Start(0)).ok()?;
        Read::by_ref(&mut self.0).take(LONGEST).read_to_string(&mut text).ok()?;
        let codes: Vec<i32> = text.split_whitespace().map_while(|code| code.parse().ok()).collect();
        let (_, earlier) = codes.split_last()?;
        let failed: Vec<String> = earlier
            .iter()
            .enumerate()
            .filter(|(_, code)| **code != 0 && **code != KILLED_BY_SIGPIPE)
            .map(|(at, code)| format!("part {} of {} exited with code {code}", at + 1, codes.len()))
            .collect();
        (!failed.is_empty()).then(|| format!("[In the last pipeline, {}.]", failed.join(", ")))
    }
}
