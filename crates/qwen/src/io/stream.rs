//! From events to standard output: the one task that encodes and writes.

use std::io::{self, IsTerminal};
use std::time::Duration;

use qwen_dialects::Encoder;
use qwen_events::{Body, ConsoleLevel, Event};
use tokio::sync::mpsc;

use crate::io::output::Output;
use crate::print::{Activity, TextPrinter};

/// How many events may wait for the reader. Small: what waits here is memory, and who speaks can wait instead.
pub const CAPACITY: usize = 256;

/// Writing in one go saves system calls when events come fast; more than this is written in several.
const BATCH_BYTES: usize = 64 * 1024;

/// A line buffer that grew beyond this for one huge event is given back.
const KEEP_BYTES: usize = 1024 * 1024;

/// Who reads the events.
pub enum Reader {
    /// A program, in a dialect, and the people who started it, where there are any.
    Lines(Box<dyn Encoder>, Option<Activity>),
    /// A person, or a pipe that wants words.
    Text(Box<TextPrinter>),
}

impl Reader {
    /// A reader for people. With `result_only` the result as data is all that they are given.
    pub fn text(result_only: bool) -> Self {
        let printer = TextPrinter::new(io::stdout().is_terminal(), io::stderr().is_terminal());
        Self::Text(Box::new(printer.result_only(result_only)))
    }

    fn take(&mut self, event: &Event, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        match self {
            Self::Lines(encoder, people) => {
                encoder.encode(event, out);
                match people {
                    Some(people) => people.render(event, err),
                    None => warn(event, err),
                }
            }
            Self::Text(printer) => printer.print(event, out, err),
        }
    }
}

/// Warnings are for people too, and not every dialect has a place for them.
fn warn(event: &Event, err: &mut Vec<u8>) {
    if let Body::Console { level: ConsoleLevel::Warn | ConsoleLevel::Error, text, .. } = &event.body {
        err.extend_from_slice(format!("qwen: {text}\n").as_bytes());
    }
}

/// Writes events until there are no more, or the reader is gone (an error of kind `BrokenPipe`).
pub async fn pump(mut events: mpsc::Receiver<Event>, mut reader: Reader, output: &Output) -> io::Result<()> {
    let mut out = Vec::with_capacity(8 * 1024);
    let mut err = Vec::new();
    let mut batch = Vec::with_capacity(64);
    loop {
        let spins = matches!(&reader, Reader::Text(printer) if printer.spins());
        let received = tokio::select! {
            biased;
            received = events.recv_many(&mut batch, 64) => received,
            () = tokio::time::sleep(Duration::from_millis(100)), if spins => {
                if let Reader::Text(printer) = &mut reader {
                    printer.tick(&mut err);
                }
                write_stderr(&mut err);
                continue;
            }
            () = output.reader_gone() => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        if received == 0 {
            return Ok(());
        }
        for event in batch.drain(..) {
            let before = out.len();
            reader.take(&event, &mut out, &mut err);
            if !err.is_empty() {
                // On a terminal both end up on one screen, so they are written in the order of the events.
                output.write_all(&out[..before]).await?;
                out.drain(..before);
                write_stderr(&mut err);
            }
            if out.len() >= BATCH_BYTES {
                flush(output, &mut out).await?;
            }
        }
        flush(output, &mut out).await?;
    }
}

async fn flush(output: &Output, out: &mut Vec<u8>) -> io::Result<()> {
    output.write_all(out).await?;
    out.clear();
    if out.capacity() > KEEP_BYTES {
        out.shrink_to(8 * 1024);
    }
    Ok(())
}

fn write_stderr(err: &mut Vec<u8>) {
    if !err.is_empty() {
        // Words for people are best effort: without anyone to read them the work still goes on.
        let _ = io::Write::write_all(&mut io::stderr(), err);
        err.clear();
    }
}
