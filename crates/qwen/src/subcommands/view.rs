//! `qwen view`: shows a stream of any dialect as a transcript, live from a pipe or from a file.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;

use qwen_dialects::view::{ThoughtGraph, Viewer};

use super::lines::{self, LONGEST, StreamLine};
use crate::cli::ViewArgs;
use crate::print::screen;
use crate::runtime::exit;

/// Shows the stream and returns the exit code: 42 if it cannot be read.
pub fn run(args: &ViewArgs) -> u8 {
    let dialect = match super::dialect(args.dialect.as_deref()) {
        Ok(dialect) => dialect,
        Err(code) => return code,
    };
    let mut stdout = io::stdout().lock();
    let mut viewer = Viewer::new(dialect, screen(&stdout, stdout.is_terminal()));
    let mut shown = Vec::new();
    // Live: each line is shown before the next is read. A disconnected reader is a normal end.
    let mut show = |shown: &mut Vec<u8>| {
        let written = if shown.is_empty() || args.svg.is_some() {
            Ok(())
        } else {
            stdout.write_all(shown).and_then(|()| stdout.flush())
        };
        shown.clear();
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let read = lines::each(args.file.as_deref(), |line| {
        match line {
            StreamLine::Whole(line) => viewer.push_line(line, &mut shown),
            StreamLine::TooLong => viewer.push_oversized(LONGEST, &mut shown),
        }
        show(&mut shown)
    });
    viewer.finish(&mut shown);
    let _ = show(&mut shown);
    if let Err(error) = read {
        exit::report(&format!("qwen: {} cannot be read: {error}", lines::name(args.file.as_deref())));
        return 42;
    }
    args.svg.as_deref().map_or(0, |picture| draw(viewer.thoughts(), picture))
}

/// Writes the thoughts as a picture and returns the exit code.
fn draw(thoughts: &ThoughtGraph, picture: &Path) -> u8 {
    if thoughts.is_empty() {
        exit::report("qwen: the stream contains no tree or graph of thoughts that could be drawn");
        return 42;
    }
    let svg = thoughts.svg();
    let written = if picture == Path::new("-") {
        io::stdout().write_all(svg.as_bytes())
    } else {
        std::fs::write(picture, svg)
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            exit::report(&format!("qwen: {} cannot be written: {error}", picture.display()));
            1
        }
        _ => 0,
    }
}
