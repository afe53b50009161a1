//! The terminal interface of `qwen`, as a pure state machine.
//!
//! Bytes typed by the user, events of the session, ticks and resizes go in; bytes for the terminal and
//! [`Effect`]s come out. The crate does no I/O, reads no clock and starts nothing: the binary owns the
//! terminal and passes the time in. That keeps every screen reproducible in a test, and makes the terminal
//! one more reader of the events and one more writer of commands, like a dialect.
//!
//! The parts, and why they are separate:
//!
//! - [`input`]: [`input::Decoder`] turns bytes into [`input::TerminalInput`]s. It is the only code that reads
//!   what the terminal sends, so it is bounded and fuzzed: any byte sequence yields inputs, never a panic,
//!   never unbounded memory, and a bracketed paste without an end cannot block the keyboard. `input::keymap`
//!   maps keys to [`input::KeyAction`]s, so that keys can be remapped in one place.
//! - [`text`]: the only place where foreign text becomes printable ([`text::clean`]), and where width is
//!   measured, by grapheme. Everything shown passes through it.
//! - [`screen`]: [`screen::LiveRegion`] knows what is painted below the finished output and produces the
//!   smallest update. It never touches what is above it: finished output is printed once, with plain line
//!   feeds, and belongs to the terminal.
//! - [`editor`]: the composer: text, caret, undo, kill ring, pastes as chips, history.
//! - [`markdown`]: splits a streaming answer into finished blocks and an open rest, and renders a block as
//!   lines.
//! - `view`: one function per kind of block (tool call, diff, todo list, notice): event in, lines out.
//! - `question`: open questions, oldest first. A question takes no key before the user turned to it, so a
//!   draft can never answer it.
//! - `picker`: a list to choose from, offered by a command.
//! - `overlay`: the whole transcript on the alternate screen, built from the session log when it is opened.
//! - [`app`]: [`Terminal`], which owns the state and wires the parts.

pub mod app;
pub mod editor;
pub mod input;
pub mod markdown;
mod overlay;
mod picker;
mod question;
pub mod screen;
pub mod text;
mod view;

pub use app::{Effect, FooterItem, GreetingLine, Options, RecentTurns, Terminal, WorkspaceName};
pub use input::{Decoder, TerminalInput};

/// A point in time on a monotonic clock, in milliseconds. Only differences matter.
pub type Millis = u64;
