//! `qwen view`: a stream of any dialect as a transcript, live from a pipe or from a file.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;

use qwen_dialects::view::{ViewOptions, Viewer};

use super::lines::{self, LONGEST, Line};
use crate::cli::ViewArgs;
use crate::exit;

/// The width where there is no terminal to ask.
const WIDTH: usize = 100;

/// Shows the stream and gives the exit code: 42 when it cannot be read.
pub fn run(args: &ViewArgs) -> u8 {
    let dialect = match super::dialect(args.dialect.as_deref()) {
        Ok(dialect) => dialect,
        Err(code) => return code,
    };
    let mut stdout = io::stdout().lock();
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(WIDTH);
    let mut viewer = Viewer::new(dialect, ViewOptions { color: stdout.is_terminal(), width });
    let mut shown = Vec::new();
    // Live: each line is shown before the next is waited for. When nobody looks any more, that is a normal end.
    let mut show = |shown: &mut Vec<u8>| {
        let written =
            if shown.is_empty() { Ok(()) } else { stdout.write_all(shown).and_then(|()| stdout.flush()) };
        shown.clear();
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let read = lines::each(args.file.as_deref(), |line| {
        match line {
            Line::Whole(line) => viewer.push_line(line, &mut shown),
            Line::TooLong => viewer.push_oversized(LONGEST, &mut shown),
        }
        show(&mut shown)
    });
    viewer.finish(&mut shown);
    let _ = show(&mut shown);
    if let Err(error) = read {
        exit::say(&format!("qwen: {} cannot be read: {error}", lines::name(args.file.as_deref())));
        return 42;
    }
    0
}
