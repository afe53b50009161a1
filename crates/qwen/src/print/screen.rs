//! Properties of the terminal.

use std::os::fd::AsFd;

use qwen_dialects::view::ViewOptions;

use crate::settings::Invocation;

/// The width and height without a terminal.
const WIDTH: usize = 100;
const HEIGHT: usize = 24;

/// The view options for a terminal, or for output that is not a terminal.
pub fn screen(file: impl AsFd, is_terminal: bool) -> ViewOptions {
    let size = rustix::termios::tcgetwinsize(file).ok();
    let given = |count: u16| Some(usize::from(count)).filter(|count| *count > 0);
    let width = size.and_then(|size| given(size.ws_col)).unwrap_or(WIDTH);
    let height = size.and_then(|size| given(size.ws_row)).unwrap_or(HEIGHT);
    // `NO_COLOR` turns off colors but not cursor movement.
    let plain = Invocation::current()
        .is_ok_and(|invocation| invocation.var("NO_COLOR").is_some_and(|value| !value.is_empty()));
    let dumb = is_dumb_terminal();
    ViewOptions {
        color: is_terminal && !plain && !dumb,
        width,
        height: (is_terminal && !dumb).then_some(height),
    }
}

/// True if the terminal cannot interpret escape sequences.
pub fn is_dumb_terminal() -> bool {
    Invocation::current().is_ok_and(|invocation| invocation.var("TERM").is_some_and(|term| term == "dumb"))
}
