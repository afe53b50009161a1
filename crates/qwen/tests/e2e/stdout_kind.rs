//! Standard output as hosts give it: a pipe, a socket pair, with a reader that is the test's own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use mock_model::WAIT_LIMIT;
use mock_model::process::{Program, Run};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What standard output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdoutKind {
    /// What shells and most hosts give.
    Pipe,
    /// What Node gives.
    Socket,
}

pub const STDOUT_KINDS: [StdoutKind; 2] = [StdoutKind::Pipe, StdoutKind::Socket];

/// The reading end, not read until the test wants to.
pub struct Reader {
    input: BufReader<fs::File>,
    /// Tells whether there is room; given away before reading, or the end would never come.
    probe: Option<OwnedFd>,
}

impl StdoutKind {
    /// Starts the program with its standard output to this kind of thing.
    pub fn start(self, program: &Program) -> (Run, Reader) {
        let (reader, writer): (OwnedFd, OwnedFd) = match self {
            Self::Pipe => {
                let (reader, writer) = std::io::pipe().unwrap();
                (reader.into(), writer.into())
            }
            Self::Socket => {
                let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
                (reader.into(), writer.into())
            }
        };
        let probe = writer.try_clone().unwrap();
        let run = program.start_onto(Stdio::from(writer), Stdio::piped());
        (run, Reader { input: BufReader::new(reader.into()), probe: Some(probe) })
    }
}

impl Reader {
    /// Waits until the writer has filled all there is. Nothing tells when that is so, hence the asking.
    #[track_caller]
    pub fn wait_full(&self) {
        let probe = self.probe.as_ref().unwrap();
        let deadline = Instant::now() + WAIT_LIMIT;
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        while poll(&mut [PollFd::new(probe, PollFlags::OUT)], Some(&now)).unwrap() > 0 {
            assert!(Instant::now() < deadline, "standard output never filled up");
            thread::yield_now();
        }
    }

    /// The next line; none at the end.
    #[track_caller]
    pub fn line(&mut self) -> Option<String> {
        self.probe = None;
        let patience = Timespec { tv_sec: i64::try_from(WAIT_LIMIT.as_secs()).unwrap(), tv_nsec: 0 };
        if self.input.buffer().is_empty() {
            let ready =
                poll(&mut [PollFd::new(&self.input.get_ref().as_fd(), PollFlags::IN)], Some(&patience));
            assert_eq!(ready, Ok(1), "no line came");
        }
        let mut line = String::new();
        (self.input.read_line(&mut line).unwrap() > 0).then_some(line)
    }

    /// All that is left.
    pub fn rest(&mut self) -> String {
        std::iter::from_fn(|| self.line()).collect()
    }
}

/// Waits until the program leaves alone what the server at `port` has sent it: it sleeps although there is
/// something to read. Nothing tells when that is so, hence the asking, more than once, since a look at two
/// things is not one look.
#[track_caller]
pub fn wait_stuck(run: &Run, port: u16) {
    let deadline = Instant::now() + WAIT_LIMIT;
    let mut seen = 0;
    while seen < 100 {
        assert!(Instant::now() < deadline, "the program goes on reading");
        let stuck = unread(port) && sleeps(run);
        seen = if stuck { seen + 1 } else { 0 };
        thread::yield_now();
    }
}

/// Whether a connection to `port` holds bytes that its owner has not read.
fn unread(port: u16) -> bool {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[2].ends_with(&remote)
            && fields[4].split_once(':').is_some_and(|(_, queue)| queue != "00000000")
    })
}

/// Whether the program waits for something.
pub fn sleeps(run: &Run) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", run.pid())).unwrap();
    stat.rsplit(") ").next().is_some_and(|fields| fields.starts_with('S'))
}

/// The memory that the process has allocated, in bytes. Pages of the program file do not count: a debug build has many.
pub fn allocated_memory(run: &Run) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}
