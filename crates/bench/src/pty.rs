//! A program on a pseudo-terminal that answers nothing: what it writes, and when.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use mock_model::monotonic_ns;
use rustix::process::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::output::contains;
use crate::process::Measured;

/// The longest wait for an expected output.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// How much of the output is searched; what is waited for is shorter than a part of it.
const WINDOW: usize = 256 * 1024;

pub struct Pty {
    process: Child,
    master: File,
    pieces: Receiver<(u64, Vec<u8>)>,
    /// The end of what was written since the last search began.
    seen: Vec<u8>,
    pub started_ns: u64,
    /// How much was read, and in how many pieces.
    pub bytes: usize,
    pub writes: usize,
}

impl Measured for Pty {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }
}

impl Pty {
    /// Starts a program on a terminal of 120 by 40.
    pub fn start(mut command: Command) -> Result<Self, String> {
        let open = || -> std::io::Result<(File, String)> {
            let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            let name = ptsname(&master, Vec::new())?;
            let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(master.as_fd(), size)?;
            Ok((File::from(master), name.to_string_lossy().into_owned()))
        };
        let (master, name) = open().map_err(|error| format!("cannot open a pseudo-terminal: {error}"))?;
        let slave = || -> Result<Stdio, String> {
            let slave = File::options().read(true).write(true).open(&name);
            slave.map(Stdio::from).map_err(|error| format!("cannot open {name}: {error}"))
        };
        command.stdin(slave()?).stdout(slave()?).stderr(slave()?);
        let mut reader = master.try_clone().map_err(|error| format!("cannot share {name}: {error}"))?;
        let (sender, pieces) = channel();
        let started_ns = monotonic_ns();
        let process = command.spawn().map_err(|error| format!("cannot start the terminal: {error}"))?;
        // The command holds the other end of the terminal, whose end is what stops the thread.
        drop(command);
        thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send((monotonic_ns(), buffer[..count].to_vec())).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, master, pieces, seen: Vec::new(), started_ns, bytes: 0, writes: 0 })
    }

    /// Types; what is searched for from now on must come after it. Returns when it was typed.
    pub fn type_keys(&mut self, keys: &str) -> Result<u64, String> {
        self.drain();
        self.seen.clear();
        let now = monotonic_ns();
        self.master.write_all(keys.as_bytes()).map_err(|error| format!("cannot type: {error}"))?;
        Ok(now)
    }

    /// Types more than the terminal's buffer takes, without waiting for it.
    pub fn paste(&mut self, bytes: Vec<u8>) -> Result<u64, String> {
        self.drain();
        self.seen.clear();
        let mut master =
            self.master.try_clone().map_err(|error| format!("cannot share a terminal: {error}"))?;
        let now = monotonic_ns();
        thread::spawn(move || master.write_all(&bytes));
        Ok(now)
    }

    /// When the program had written `text`.
    pub fn wait_for(&mut self, text: &str) -> Result<u64, String> {
        let until = Instant::now() + WAIT_LIMIT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok((at, piece)) = self.pieces.recv_timeout(left) else {
                let end = self.seen.len().saturating_sub(300);
                let tail = String::from_utf8_lossy(&self.seen[end..]).escape_debug().to_string();
                return Err(format!("the terminal did not show {text:?}; it ended with {tail}"));
            };
            self.take(&piece);
            if contains(&self.seen, text.as_bytes()) {
                return Ok(at);
            }
        }
    }

    /// Reads for this long; how much was written, and in how many pieces.
    pub fn watch(&mut self, time: Duration) -> (usize, usize) {
        self.drain();
        let (bytes, writes) = (self.bytes, self.writes);
        let until = Instant::now() + time;
        while let Ok((_, piece)) = self.pieces.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.take(&piece);
        }
        (self.bytes - bytes, self.writes - writes)
    }

    /// Waits until the program writes nothing any more. A running turn writes every second.
    pub fn until_quiet(&mut self) {
        let until = Instant::now() + WAIT_LIMIT;
        while self.watch(Duration::from_millis(1200)).0 > 0 && Instant::now() < until {}
    }

    fn drain(&mut self) {
        while let Ok((_, piece)) = self.pieces.try_recv() {
            self.take(&piece);
        }
    }

    fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        self.writes += 1;
        self.seen.extend_from_slice(piece);
        if self.seen.len() > 2 * WINDOW {
            self.seen.drain(..self.seen.len() - WINDOW);
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
