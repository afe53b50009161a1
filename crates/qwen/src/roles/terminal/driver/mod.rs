//! The thread that owns the terminal.

mod effects;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use qwen_engine::{Cancel, Stop};
use qwen_events::{Body, Command, EndStatus, Event};
use qwen_tui::{Decoder, Millis, Options, RecentTurns, Terminal, TerminalInput};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use super::clipboard::Clipboard;
use super::files::Files;
use super::tty::{PendingInput, Tty};
use super::wake::Wake;
use super::{StoredEvents, modes, stderr};
use crate::roles::worker::Incoming;
use crate::settings::{TreeContent, TrustList};

/// The capacity of the command channel to the session.
pub const COMMANDS: usize = 256;

/// The minimum time between frames for events. A key is drawn immediately.
pub const FRAME: Duration = Duration::from_millis(50);

/// While more bytes than this wait to be written, no further event is read, and the session blocks.
const MAX_BACKLOG: usize = 256 * 1024;

/// How long the session may take to end before the process exits without it.
const DRAIN: Duration = Duration::from_secs(4);

/// Messages to the terminal's thread.
pub enum DriverMessage {
    /// An event of the session.
    Event(Box<Event>),
    /// The terminal may have been resized.
    Resized,
    /// A request to suspend the process.
    Suspend,
    /// The process continues after a stop.
    Continued,
}

/// The terminal's thread, before it runs.
pub struct Driver {
    pub tty: Tty,
    pub wake: Wake,
    pub messages: mpsc::Receiver<DriverMessage>,
    /// None once the user quits.
    pub commands: Option<mpsc::Sender<Incoming>>,
    pub files: Files,
    pub editor: String,
    pub clipboard: Clipboard,
    /// The file for permanent permission rules.
    pub settings_file: Option<PathBuf>,
    pub stored: StoredEvents,
    pub trust: TrustRequest,
    /// Ring the bell and send desktop notifications.
    pub notifies: bool,
    pub in_tmux: bool,
    pub ending: Cancel,
}

/// The question whether the folder is trusted.
pub struct TrustRequest {
    /// What the folder's configuration would enable.
    pub configuration: Vec<String>,
    /// The content that the question describes.
    pub content: TreeContent,
    pub folder: PathBuf,
    pub list: Option<TrustList>,
    /// Set if the program shall start again with the folder's configuration.
    pub restart: Arc<AtomicBool>,
}

struct Running {
    driver: Driver,
    terminal: Terminal,
    decoder: Decoder,
    started: Instant,
    /// Bytes that the terminal has not accepted yet.
    pending: Vec<u8>,
    /// True while bytes of a frame are among them.
    is_frame_pending: bool,
    /// The last moment when there was certainly no unread input. Input that is read later was typed after it.
    input_was_empty: Millis,
    /// Commands that the session has not accepted yet.
    unsent: VecDeque<Command>,
    last_frame: Option<Instant>,
    /// A redraw is needed.
    dirty: bool,
    /// A key was pressed since the last frame.
    urgent: bool,
    stderr: Option<OwnedFd>,
    stderr_text: Vec<u8>,
    quit: Option<Instant>,
    /// Lines are read and appended instead of keys and frames.
    is_plain: bool,
    /// The start of a typed line that is not complete yet.
    typed: Vec<u8>,
    /// Columns and rows of the last layout.
    size: (usize, usize),
}

/// What a wait ended with.
struct Ready {
    /// The terminal has input or has disappeared.
    has_input: bool,
    /// Somebody wrote to standard error.
    has_errors: bool,
}

/// True for an event that answers what was just typed. It is drawn at once, as the key itself was, and not
/// with the next frame.
pub fn answers_key(event: &Event) -> bool {
    matches!(event.body, Body::HintResult(_) | Body::CommandResult(_))
}

fn enter(tty: &Tty, is_plain: bool, pending: PendingInput) -> io::Result<()> {
    if is_plain { tty.enter_lines(pending) } else { tty.enter(pending) }
}

impl Driver {
    /// Runs until the session ends, the user quits or the terminal disappears.
    pub fn run(self, options: Options, recent: RecentTurns) {
        let ending = self.ending.clone();
        let stderr = stderr::redirect().unwrap_or_default();
        let is_plain = options.plain;
        let size = (options.columns, options.rows);
        if enter(&self.tty, is_plain, PendingInput::Kept).is_err() {
            stderr::restore();
            ending.stop(Stop { status: EndStatus::Interrupted, error: None });
            return;
        }
        let mut running = Running {
            terminal: Terminal::new(options, 0),
            driver: self,
            decoder: Decoder::default(),
            started: Instant::now(),
            pending: Vec::new(),
            is_frame_pending: false,
            input_was_empty: 0,
            unsent: VecDeque::new(),
            last_frame: None,
            dirty: true,
            urgent: true,
            stderr,
            stderr_text: Vec::new(),
            quit: None,
            is_plain,
            typed: Vec::new(),
            size,
        };
        running.terminal.show_recent_turns(&recent);
        drop(recent);
        let ended = running.run();
        if ended.is_err() {
            // The terminal has disappeared, and with it the user of the session.
            ending.stop(Stop { status: EndStatus::Interrupted, error: None });
        }
        running.terminal.finish();
        running.effects_at_end();
        let last = running.terminal.clear();
        running.pending.extend_from_slice(last.as_bytes());
        running.flush_at_end();
        modes::undo();
    }
}

impl Running {
    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let is_over = self.messages(self.now());
            let next_tick = self.terminal.tick(self.now());
            self.effects();
            self.send();
            self.paint()?;
            if self.terminal.is_asking() {
                // The answer must have been typed after the question became visible.
                self.check_input_empty()?;
            }
            if is_over {
                return Ok(());
            }
            if self.quit.is_some_and(|since| since.elapsed() > DRAIN) {
                // The session does not end in time; the guardian ends its tools.
                modes::undo();
                std::process::exit(0);
            }
            let ready = self.wait(next_tick)?;
            self.read(&mut buffer, ready.has_input)?;
            if ready.has_errors {
                self.read_stderr();
            }
        }
    }

    fn now(&self) -> Millis {
        Millis::try_from(self.started.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Handles the session's messages. Returns true if no more will follow.
    fn messages(&mut self, now: Millis) -> bool {
        while self.can_accept_messages() {
            match self.driver.messages.try_recv() {
                Ok(DriverMessage::Event(event)) => {
                    self.terminal.event(&event, now);
                    self.dirty = true;
                    self.urgent |= answers_key(&event);
                }
                Ok(DriverMessage::Resized) => self.check_size(),
                Ok(DriverMessage::Suspend) => self.suspend(),
                Ok(DriverMessage::Continued) => self.resume(),
                Err(mpsc::error::TryRecvError::Empty) => return false,
                Err(mpsc::error::TryRecvError::Disconnected) => return true,
            }
        }
        false
    }

    /// False while the terminal is too slow for what is already to be written.
    fn can_accept_messages(&self) -> bool {
        self.terminal.backlog() + self.pending.len() < MAX_BACKLOG
    }

    /// Passes commands to the session until its channel is full.
    fn send(&mut self) {
        while let Some(commands) = &self.driver.commands
            && let Some(command) = self.unsent.pop_front()
        {
            match commands.try_send(Ok(vec![command])) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(Ok(unsent))) => {
                    for command in unsent {
                        self.unsent.push_front(command);
                    }
                    return;
                }
                Err(_) => self.driver.commands = None,
            }
        }
        if self.quit.is_some() {
            self.driver.commands = None;
        }
    }

    fn paint(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.terminal.awaits_frame() {
            self.dirty = true;
            self.urgent = true;
            if !self.check_input_empty()? {
                // What was typed before the question is visible is handled before it is drawn.
                return Ok(());
            }
        }
        let is_due = self.urgent || self.last_frame.is_none_or(|last| last.elapsed() >= FRAME);
        if self.pending.is_empty() && self.dirty && is_due {
            modes::set_overlaid(self.terminal.is_overlaid());
            // A frame for the wrong size would damage the display, and the signal may be late.
            self.check_size();
            let frame = self.terminal.frame();
            self.pending.extend_from_slice(frame.as_bytes());
            self.is_frame_pending = true;
            self.last_frame = Some(Instant::now());
            self.dirty = false;
            self.urgent = false;
            if self.is_plain {
                // A line that is read after this frame was entered after it was drawn. A fast user, or a program, may
                // answer before the next wait.
                self.check_input_empty()?;
            }
            self.flush()?;
        }
        Ok(())
    }

    fn check_size(&mut self) {
        let size = self.driver.tty.size();
        if size != self.size {
            self.size = size;
            self.terminal.resize(size.0, size.1);
            self.dirty = true;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            match self.driver.tty.write(&self.pending)? {
                0 => return Ok(()),
                count => {
                    self.pending.drain(..count);
                }
            }
        }
        if std::mem::take(&mut self.is_frame_pending) {
            self.terminal.frame_written(self.now());
        }
        Ok(())
    }

    /// Returns whether there is no unread input, and records the time if so.
    fn check_input_empty(&mut self) -> io::Result<bool> {
        let now = self.now();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.driver.tty, PollFlags::IN)];
        match poll(&mut fds, Some(&at_once)) {
            Ok(0) => {
                self.input_was_empty = now;
                Ok(true)
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the remaining bytes, for as long as a working terminal would need.
    fn flush_at_end(&mut self) {
        let until = Instant::now() + Duration::from_secs(1);
        while self.flush().is_ok() && !self.pending.is_empty() && Instant::now() < until {
            let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let _ = poll(&mut [PollFd::new(&self.driver.tty, PollFlags::OUT)], Some(&patience));
        }
    }

    /// Waits for input, a message or the next tick.
    fn wait(&mut self, next_tick: Option<Millis>) -> io::Result<Ready> {
        let now = self.now();
        let mut deadline = next_tick;
        let mut at = |moment: Millis| deadline = Some(deadline.map_or(moment, |other| other.min(moment)));
        if let Some(moment) = self.decoder.deadline() {
            at(moment);
        }
        // Messages wait for the time of the next frame, or for a terminal that is too slow.
        let passed = self.last_frame.map_or(FRAME, |last| last.elapsed());
        let is_early = passed < FRAME;
        if is_early || (self.dirty && self.pending.is_empty()) {
            let left = FRAME.saturating_sub(passed).as_millis();
            at(now + Millis::try_from(left).unwrap_or_default() + 1);
        }
        let is_idle = !is_early && self.can_accept_messages();
        self.driver.wake.set_idle(is_idle);
        if is_idle && !self.driver.messages.is_empty() {
            at(now);
        }
        if !self.unsent.is_empty() || self.quit.is_some() {
            at(now + 50);
        }
        let left = deadline.map(|moment| moment.saturating_sub(now));
        let timeout = left.map(|left| Timespec {
            tv_sec: i64::try_from(left / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(left % 1000).unwrap_or_default() * 1_000_000,
        });
        let mut wanted = PollFlags::IN;
        if !self.pending.is_empty() {
            wanted |= PollFlags::OUT;
        }
        let mut fds =
            vec![PollFd::new(&self.driver.tty, wanted), PollFd::new(&self.driver.wake, PollFlags::IN)];
        if let Some(stderr) = &self.stderr {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        let is_expired = match poll(&mut fds, timeout.as_ref()) {
            Ok(count) => count == 0,
            Err(rustix::io::Errno::INTR) => false,
            Err(error) => return Err(error.into()),
        };
        let state = fds[0].revents();
        if is_expired {
            self.input_was_empty = deadline.unwrap_or(now).max(now);
        }
        let is_woken = !fds[1].revents().is_empty();
        let has_errors = fds.get(2).is_some_and(|stderr| !stderr.revents().is_empty());
        if state.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
            && !state.contains(PollFlags::IN)
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if next_tick.is_some_and(|tick| self.now() >= tick) {
            self.dirty = true;
        }
        if is_woken {
            self.driver.wake.clear();
        }
        self.driver.wake.set_idle(false);
        Ok(Ready { has_input: !state.is_empty(), has_errors })
    }

    fn read(&mut self, buffer: &mut [u8], has_input: bool) -> io::Result<()> {
        let mut inputs: Vec<TerminalInput> = Vec::new();
        if has_input && let Some(count) = self.driver.tty.read(buffer)? {
            if self.is_plain {
                self.read_lines(&buffer[..count]);
                return Ok(());
            }
            self.decoder.feed(&buffer[..count], self.now(), &mut inputs);
        }
        let now = self.now();
        self.decoder.idle(now, &mut inputs);
        for input in inputs {
            self.terminal.input_since(&input, self.input_was_empty, now);
            self.dirty = true;
            self.urgent = true;
        }
        Ok(())
    }

    /// Handles whole lines that the kernel has edited.
    fn read_lines(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                0x03 => {
                    self.typed.clear();
                    self.terminal.line_interrupt();
                }
                0x1a => self.suspend(),
                b'\n' => {
                    let line = std::mem::take(&mut self.typed);
                    self.terminal.line(&String::from_utf8_lossy(&line), self.input_was_empty, self.now());
                }
                byte => self.typed.push(*byte),
            }
        }
        self.dirty = true;
        self.urgent = true;
    }

    /// Turns the lines written to standard error into notices.
    fn read_stderr(&mut self) {
        let Some(stderr) = &self.stderr else { return };
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = rustix::io::read(stderr, &mut buffer) {
            self.stderr_text.extend_from_slice(&buffer[..count]);
        }
        while let Some(end) = self.stderr_text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.stderr_text.drain(..=end).collect();
            self.terminal.warn(&String::from_utf8_lossy(&line));
            self.dirty = true;
        }
    }

    /// Releases the terminal, stops the process, and takes the terminal over again when it continues.
    fn suspend(&mut self) {
        self.release_screen();
        let own = rustix::process::getpid();
        // Stop the whole process group, as the kernel does for the key, unless we do not lead the group.
        let _ = if rustix::process::getpgrp() == own {
            rustix::process::kill_current_process_group(rustix::process::Signal::STOP)
        } else {
            rustix::process::kill_process(own, rustix::process::Signal::STOP)
        };
        // The stop reaches this thread a moment later, and the terminal is not ours until the process
        // continues.
        while let Some(message) = self.driver.messages.blocking_recv() {
            match message {
                DriverMessage::Continued => break,
                DriverMessage::Event(event) => self.terminal.event(&event, self.now()),
                DriverMessage::Resized | DriverMessage::Suspend => {}
            }
        }
        self.acquire_screen();
    }

    /// Restores the terminal after the process was stopped from outside and continued.
    fn resume(&mut self) {
        modes::undo();
        self.acquire_screen();
    }

    fn release_screen(&mut self) {
        let last = self.terminal.clear();
        self.pending.extend_from_slice(last.as_bytes());
        self.flush_at_end();
        self.pending.clear();
        modes::undo();
    }

    fn acquire_screen(&mut self) {
        if let Ok(reader) = stderr::redirect() {
            self.stderr = reader;
        }
        // If the terminal has disappeared, the next read reports it.
        let _ = enter(&self.driver.tty, self.is_plain, PendingInput::Discarded);
        self.check_size();
        self.terminal.repaint();
        self.dirty = true;
        self.urgent = true;
    }
}
