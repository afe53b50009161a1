//! Text mode for a person: styled words on standard output, a spinner and the tools' activity on standard
//! error.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use mock_model::process::{Run, Signal};
use mock_model::{MockModel, Reply, ReplyEvent, WAIT_LIMIT, gate, sse};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::harness::qwen;

/// A terminal's screen side, read as it comes.
pub struct Screen {
    pieces: Receiver<Vec<u8>>,
    seen: String,
}

/// A pseudo-terminal: what a person sees, and the end that the program writes to.
pub fn terminal() -> (Screen, OwnedFd) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    tcsetwinsize(screen.as_fd(), Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    // Whoever runs the tests must not get it as its controlling terminal, which would hang up with the test.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let inner = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
    let (sender, pieces) = channel();
    let mut file = File::from(screen);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        // The end of a terminal is an error (EIO), not an end of file.
        while let Ok(count @ 1..) = file.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    (Screen { pieces, seen: String::new() }, inner)
}

impl Screen {
    /// Waits until the screen has shown `text`.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.pieces.recv_timeout(WAIT_LIMIT) {
                Ok(piece) => self.seen.push_str(&String::from_utf8(piece).unwrap()),
                Err(error) => panic!("{text:?} was not shown ({error}): {:?}", self.seen),
            }
        }
    }

    /// All that was shown, once the program has ended.
    #[track_caller]
    pub fn all(mut self) -> String {
        loop {
            match self.pieces.recv_timeout(WAIT_LIMIT) {
                Ok(piece) => self.seen.push_str(&String::from_utf8(piece).unwrap()),
                Err(RecvTimeoutError::Disconnected) => return self.seen,
                Err(RecvTimeoutError::Timeout) => panic!("the terminal stays open: {:?}", self.seen),
            }
        }
    }
}

/// A run on two terminals, so that what goes where can be told.
fn on_terminals(mock: &MockModel, args: &[&str]) -> (Run, Screen, Screen) {
    let (out, out_end) = terminal();
    let (err, err_end) = terminal();
    let program = qwen().with_model(mock).args(args).env("TERM", "xterm-256color").env_remove("NO_COLOR");
    let mut run = program.start_onto(Stdio::from(out_end), Stdio::from(err_end));
    run.close_stdin();
    (run, out, err)
}

#[test]
fn words_are_styled_and_activity_goes_to_standard_error() {
    let mock = MockModel::with([
        Reply::new([
            gate("thinking"),
            ReplyEvent::Text("Let me **look** at `it`.".into()).step(),
            ReplyEvent::call("c1", "list_directory", r#"{"path":"."}"#).step(),
        ]),
        Reply::text("# Title\nDone."),
    ]);
    let (run, out, mut err) = on_terminals(&mock, &["-p", "look", "--yolo"]);
    mock.reached("thinking");
    err.wait_for("thinking");
    mock.open("thinking");
    let code = run.wait().code;
    let (out, err) = (out.all(), err.all());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("\x1b[1mlook\x1b[0m") && out.contains("\x1b[36mit\x1b[0m"), "{out:?}");
    assert!(out.contains("\x1b[1m# Title\x1b[0m") && out.ends_with("Done.\r\n"), "{out:?}");
    assert!(!out.contains("thinking") && !out.contains("list_directory"), "only words: {out:?}");
    assert!(err.contains("list_directory"), "the tool is shown: {err:?}");
    assert!(!err.contains("Done."), "{err:?}");
    assert!(err.contains("\r\x1b[K"), "the spinner is taken away: {err:?}");
}

#[test]
fn a_models_escape_sequences_do_not_drive_the_terminal() {
    let mock = MockModel::with([Reply::text("a\u{1b}[2Jb\u{1b}]52;c;eA==\u{7}c\u{9b}31md\r")]);
    let (run, out, _err) = on_terminals(&mock, &["-p", "x"]);
    assert_eq!(run.wait().code, Some(0));
    let out = out.all();
    assert!(!out.contains('\u{1b}') && !out.contains('\u{7}') && !out.contains('\u{9b}'), "{out:?}");
}

#[test]
fn an_error_is_told_on_a_line_of_its_own() {
    let mock = MockModel::with([Reply::new([sse::text("Hel")])]);
    let (run, out, err) = on_terminals(&mock, &["-p", "x"]);
    assert_eq!(run.wait().code, Some(1));
    assert_eq!(out.all(), "Hel\r\n");
    let err = err.all();
    assert!(err.lines().nth_back(1).unwrap().contains("qwen: the stream of the model"), "{err:?}");
    assert!(err.lines().last().unwrap().contains("qwen: session "), "{err:?}");
}

#[test]
fn an_interrupt_leaves_a_clean_screen() {
    let mock = MockModel::with([Reply::new([gate("never")])]);
    let (run, out, mut err) = on_terminals(&mock, &["-p", "x"]);
    mock.reached("never");
    err.wait_for("thinking");
    run.signal(Signal::INT);
    assert_eq!(run.wait().code, Some(130));
    assert_eq!(out.all(), "");
    let err = err.all();
    assert!(err.contains("\r\x1b[Kqwen: cancelled\r\n"), "{err:?}");
}

#[test]
fn json_on_a_terminal_stays_json() {
    let mock = MockModel::with([Reply::text("**Hi**")]);
    let (run, out, err) = on_terminals(&mock, &["-p", "x", "--output-format", "stream-json"]);
    assert_eq!(run.wait().code, Some(0));
    let out = out.all();
    assert!(out.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{out:?}");
    assert_eq!(err.all(), "", "no spinner beside JSON");
}
