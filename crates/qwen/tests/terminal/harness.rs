//! A pseudo-terminal with the binary on it, and its screen.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use mock_model::process::Program;
use mock_model::{MockModel, WAIT_LIMIT};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// How long a slow line needs for a few bytes.
const LINE_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Written behind the output of a program that has ended.
const END_MARK: &[u8] = b"\0end of the output\0";

/// The binary, in a session of its own that the terminal controls.
pub fn qwen(mock: &MockModel) -> Program {
    // setsid replaces itself by the program, so the process that is started is the program.
    started_by(Program::new("setsid").args(["-c", env!("CARGO_BIN_EXE_qwen")]), mock)
}

/// The binary, started by a program whose arguments end with its path.
pub fn started_by(program: Program, mock: &MockModel) -> Program {
    in_terminal(program.with_model(mock).args(["--model", "mock"]))
}

/// Sets the environment of a plain terminal, whatever the tests run in.
pub fn in_terminal(program: Program) -> Program {
    program
        .env("TERM", "xterm-256color")
        .env("LANG", "C.UTF-8")
        .env_remove("LC_ALL")
        .env_remove("NO_COLOR")
        .env_remove("TMUX")
        .env_remove("STY")
}

/// A terminal and the program on it.
pub struct Screen {
    master: Option<File>,
    /// Kept open so that the modes can be read after the program has ended.
    slave: Option<OwnedFd>,
    is_closed: Arc<AtomicBool>,
    /// True while the terminal takes nothing from the program.
    is_stopped: Arc<(Mutex<bool>, Condvar)>,
    /// The most bytes that the line transmits in [`LINE_INTERVAL`]; 0 for any number.
    line_speed: Arc<AtomicUsize>,
    child: Child,
    pieces: Receiver<Vec<u8>>,
    pub parser: vt100::Parser,
    /// Its directories live as long as the screen.
    _program: Program,
    /// Everything that the program wrote.
    pub raw: Vec<u8>,
    /// The line modes before the program started.
    pub before: Termios,
}

impl Screen {
    /// Starts the program on a terminal of 80 by 24.
    pub fn start(program: &Program) -> Self {
        Self::sized(program, 80, 24)
    }

    /// Starts the program on a terminal of this size.
    pub fn sized(program: &Program, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        tcsetwinsize(master.as_fd(), size(columns, rows)).unwrap();
        // Whoever runs the tests must not get it as its controlling terminal, which would hang up with the
        // test.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let slave: OwnedFd = open();
        let before = tcgetattr(&slave).unwrap();
        let mut command = program.command();
        command.stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        let child = command.spawn().unwrap();
        let master = File::from(master);
        let mut reader = master.try_clone().unwrap();
        let (sender, pieces) = channel();
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = is_closed.clone();
        let is_stopped: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let stopped = is_stopped.clone();
        let line_speed: Arc<AtomicUsize> = Arc::default();
        let speed = line_speed.clone();
        thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            let patience = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            while !closed.load(Ordering::Relaxed) {
                drop(stopped.1.wait_while(stopped.0.lock().unwrap(), |stopped| *stopped).unwrap());
                let ready = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&patience)).unwrap();
                if ready == 0 {
                    continue;
                }
                let most = match speed.load(Ordering::Relaxed) {
                    0 => buffer.len(),
                    bytes => {
                        // The time that a slow line needs for the bytes.
                        poll(&mut [], Some(&LINE_INTERVAL)).unwrap();
                        bytes
                    }
                };
                match reader.read(&mut buffer[..most]) {
                    Ok(count @ 1..) if sender.send(buffer[..count].to_vec()).is_ok() => {}
                    _ => return,
                }
            }
        });
        let parser = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 10_000);
        Self {
            _program: program.clone(),
            master: Some(master),
            slave: Some(slave),
            child,
            pieces,
            is_closed,
            is_stopped,
            line_speed,
            parser,
            raw: Vec::new(),
            before,
        }
    }

    /// Starts the program and waits for its first frame.
    #[track_caller]
    pub fn ready(program: &Program) -> Self {
        let mut screen = Self::start(program);
        screen.wait_for("> ");
        screen
    }

    /// Types.
    pub fn type_keys(&mut self, keys: &str) {
        self.master.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Types bytes, which need not be text.
    pub fn type_bytes(&mut self, bytes: &[u8]) {
        self.master.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Types more than the terminal's buffer takes while the program's output is read.
    pub fn type_in_background(&mut self, bytes: Vec<u8>) {
        let mut master = self.master.as_ref().unwrap().try_clone().unwrap();
        thread::spawn(move || master.write_all(&bytes));
    }

    /// Types until the program ends.
    #[track_caller]
    pub fn type_until_it_ends(&mut self, keys: &str) {
        let until = Instant::now() + WAIT_LIMIT;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "the program does not end:\n{}", self.contents());
            self.type_keys(keys);
            if let Ok(piece) = self.pieces.recv_timeout(std::time::Duration::from_millis(20)) {
                self.take(&piece);
            }
        }
        self.wait();
    }

    /// Takes nothing from the program any more, like a terminal whose flow is stopped.
    pub fn stop_reading(&mut self) {
        *self.is_stopped.0.lock().unwrap() = true;
    }

    /// Takes what the program writes again.
    pub fn go_on_reading(&mut self) {
        *self.is_stopped.0.lock().unwrap() = false;
        self.is_stopped.1.notify_all();
    }

    /// Takes a thousand bytes in a second, like a slow line.
    pub fn slow_down(&mut self) {
        self.line_speed.store(20, Ordering::Relaxed);
    }

    /// Waits for this many pieces of output.
    #[track_caller]
    pub fn read_pieces(&mut self, count: usize) {
        for _ in 0..count {
            let piece = self.pieces.recv_timeout(WAIT_LIMIT).unwrap();
            self.take(&piece);
        }
    }

    /// Lets time pass as it does for a user who looks at the screen, and shows what is written meanwhile.
    pub fn pass_time(&mut self, time: std::time::Duration) {
        let until = Instant::now() + time;
        while let Ok(piece) = self.pieces.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.take(&piece);
        }
    }

    /// What is on the screen.
    pub fn contents(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until the screen shows `text`.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        self.wait_until(&format!("{text:?} on the screen"), |screen| screen.contents().contains(text));
    }

    /// Waits until the screen no longer shows `text`.
    #[track_caller]
    pub fn wait_gone(&mut self, text: &str) {
        self.wait_until(&format!("no {text:?} on the screen"), |screen| !screen.contents().contains(text));
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) {
        let until = Instant::now() + WAIT_LIMIT;
        loop {
            if is_so(self.parser.screen()) {
                return;
            }
            match self.pieces.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.take(&piece),
                Err(error) => panic!("waited for {what} ({error}):\n{}\n", self.contents()),
            }
        }
    }

    fn take(&mut self, piece: &[u8]) {
        self.raw.extend_from_slice(piece);
        self.parser.process(piece);
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        tcsetwinsize(self.master.as_ref().unwrap().as_fd(), size(columns, rows)).unwrap();
        self.parser.screen_mut().set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
    }

    /// The program's process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// The line modes now.
    pub fn line_modes(&self) -> Termios {
        tcgetattr(self.slave.as_ref().unwrap()).unwrap()
    }

    /// Closes the terminal's window.
    pub fn hang_up(&mut self) {
        self.master = None;
        self.slave = None;
        self.is_closed.store(true, Ordering::Relaxed);
        // The thread that reads must let go of it too.
        self.go_on_reading();
    }

    /// Waits for the program's end and reads what is left.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + WAIT_LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "the program does not end:\n{}", self.contents());
            match self.pieces.recv_timeout(std::time::Duration::from_millis(20)) {
                Ok(piece) => self.take(&piece),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        };
        self.read_rest(until);
        status
    }

    /// Reads everything that the program wrote before it ended.
    fn read_rest(&mut self, until: Instant) {
        // It comes before anything that is written to the terminal now. A terminal that was closed takes
        // nothing.
        let is_marked = self.slave.as_ref().is_some_and(|slave| rustix::io::write(slave, END_MARK).is_ok());
        let mut rest: Vec<u8> = Vec::new();
        let mark = |rest: &[u8]| rest.windows(END_MARK.len()).position(|window| window == END_MARK);
        while is_marked && mark(&rest).is_none() {
            match self.pieces.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(piece) => rest.extend_from_slice(&piece),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Some(at) = mark(&rest) {
            rest.drain(at..at + END_MARK.len());
        }
        self.take(&rest);
        while let Ok(piece) = self.pieces.try_recv() {
            self.take(&piece);
        }
    }

    /// Waits for raw bytes, which need not show on the screen.
    #[track_caller]
    pub fn wait_for_raw(&mut self, bytes: &[u8]) {
        let until = Instant::now() + WAIT_LIMIT;
        while !contains(&self.raw, bytes) {
            match self.pieces.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.take(&piece),
                Err(error) => panic!("{} was not written ({error})", bytes.escape_ascii()),
            }
        }
    }

    /// Asserts that the terminal is as it was before the program: modes undone, cursor shown, line modes
    /// restored.
    #[track_caller]
    pub fn assert_given_back(&self) {
        let screen = self.parser.screen();
        assert!(!screen.bracketed_paste(), "bracketed paste is still on");
        assert!(!screen.hide_cursor(), "the cursor is still hidden");
        assert!(!screen.alternate_screen(), "the alternate screen is still shown");
        for (set, unset) in [
            (&b"\x1b[>1u"[..], &b"\x1b[<u"[..]),
            (b"\x1b[?1004h", b"\x1b[?1004l"),
            (b"\x1b[>4;1m", b"\x1b[>4;0m"),
        ] {
            let count =
                |bytes: &[u8]| self.raw.windows(bytes.len()).filter(|window| *window == bytes).count();
            assert_eq!(count(set), count(unset), "{} is not undone", set.escape_ascii());
        }
    }

    /// Asserts that the line modes are those from before.
    #[track_caller]
    pub fn assert_cooked(&self) {
        let now = self.line_modes();
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether `bytes` occur in `all`.
pub fn contains(all: &[u8], bytes: &[u8]) -> bool {
    all.windows(bytes.len()).any(|window| window == bytes)
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
