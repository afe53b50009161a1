//! What bash reports about a command line at its end, besides the exit code.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::shell_directory::may_change_directory;

/// Exit code of a program that was killed by SIGPIPE, as most are whose reader has enough.
const KILLED_BY_SIGPIPE: i32 = 128 + libc::SIGPIPE;

/// Longest report that is read, in bytes.
const LONGEST: u64 = 16 * 1024;

/// A file in memory to which bash writes the exit codes of the last pipeline and its directory.
pub(super) struct ShellReport(File);

/// The content of a report. The command could write it too, so that nothing in it is trusted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedEnd {
    /// The exit codes of the last pipeline.
    codes: Vec<i32>,
    /// The directory in which the shell ended.
    pub directory: Option<PathBuf>,
}

impl ShellReport {
    /// Creates a report for a command line that may contain a pipeline or change its directory. It costs a new
    /// guardian process, so that other command lines have none.
    pub(super) fn create(command: &str) -> io::Result<Option<Self>> {
        if !command.contains('|') && !may_change_directory(command) {
            return Ok(None);
        }
        let file = rustix::fs::memfd_create("qwen-report", rustix::fs::MemfdFlags::CLOEXEC)?;
        Ok(Some(Self(File::from(file))))
    }

    /// Returns the descriptor that bash inherits, and what comes before the command line. It stays on the
    /// first line, so that the line numbers of bash's errors do not change.
    pub(super) fn prepare(&self) -> io::Result<(OwnedFd, String)> {
        let inherited = OwnedFd::from(self.0.try_clone()?);
        let fd = inherited.as_raw_fd();
        let write = format!(
            "builtin printf \"%s \" \"${{PIPESTATUS[@]}}\" >&{fd}; builtin printf \"\\n%s\\0\" \"$PWD\" >&{fd}"
        );
        Ok((inherited, format!("trap '{write}' EXIT; ")))
    }

    /// Reads the report of a shell that has ended.
    pub(super) fn read(mut self) -> ReportedEnd {
        let mut bytes = Vec::new();
        let is_read = self.0.seek(SeekFrom::Start(0)).is_ok()
            && Read::by_ref(&mut self.0).take(LONGEST).read_to_end(&mut bytes).is_ok();
        if is_read { ReportedEnd::parse(&bytes) } else { ReportedEnd::default() }
    }
}

impl ReportedEnd {
    fn parse(bytes: &[u8]) -> Self {
        let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
        let codes = String::from_utf8_lossy(lines.next().unwrap_or_default());
        let codes = codes.split_whitespace().map_while(|code| code.parse().ok()).collect();
        let directory = lines
            .next()
            .and_then(|rest| rest.strip_suffix(b"\0"))
            .filter(|path| path.first() == Some(&b'/') && !path.contains(&0))
            .map(|path| PathBuf::from(OsStr::from_bytes(path)));
        Self { codes, directory }
    }

    /// Returns a note if an earlier part of the last pipeline failed.
    pub(super) fn describe_failed_parts(&self) -> Option<String> {
        let (_, earlier) = self.codes.split_last()?;
        let failed: Vec<String> = earlier
            .iter()
            .enumerate()
            .filter(|(_, code)| **code != 0 && **code != KILLED_BY_SIGPIPE)
            .map(|(at, code)| format!("part {} of {} exited with code {code}", at + 1, self.codes.len()))
            .collect();
        (!failed.is_empty()).then(|| format!("[In the last pipeline, {}.]", failed.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_whatever_the_command_wrote_into_it() {
        let read = |bytes: &[u8]| {
            let end = ReportedEnd::parse(bytes);
            (end.codes, end.directory.map(|path| path.to_string_lossy().into_owned()))
        };
        assert_eq!(read(b"0 1 \n/a\nb\0"), (vec![0, 1], Some("/a\nb".to_owned())));
        assert_eq!(read(b"1 0 "), (vec![1, 0], None));
        for broken in [&b"0 \nrelative\0"[..], b"0 \n/a\0/b\0", b"0 \n/a", b"x\n", b""] {
            assert_eq!(read(broken).1, None, "{broken:?}");
        }
    }
}
