//! Writes events to standard output: the only task that encodes and writes.

use std::io;
use std::time::Duration;

use futures_util::future::BoxFuture;
use qwen_dialects::Encoder;
use qwen_events::{Body, ConsoleLevel, Event};
use tokio::sync::mpsc;

use crate::io::output::Output;
use crate::print::{Reporter, TextPrinter};

/// The maximum number of events that wait for the reader. It is small, because waiting events use memory and
/// their senders can wait instead.
pub const CAPACITY: usize = 256;

/// Events that arrive fast are written together up to this size, which saves system calls.
const BATCH_BYTES: usize = 64 * 1024;

/// A line buffer that grew beyond this for one huge event is released.
const KEEP_BYTES: usize = 1024 * 1024;

/// Observes which lines each event becomes.
pub trait OutputObserver {
    /// Notes the lines of an event, which are not written yet.
    fn note(&mut self, event: &Event, lines: &[u8]);

    /// True if something that was noted has not been passed on.
    fn is_pending(&self) -> bool;

    /// Passes on what was noted. The lines are written only afterwards.
    fn flush(&mut self) -> BoxFuture<'_, ()>;
}

/// Standard output, and who observes it.
pub struct ObservedOutput<'a> {
    pub output: &'a Output,
    pub observer: Option<&'a mut dyn OutputObserver>,
}

impl ObservedOutput<'_> {
    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(observer) = &mut self.observer
            && observer.is_pending()
        {
            observer.flush().await;
        }
        self.output.write_all(bytes).await
    }
}

/// Renders events for standard output and standard error.
pub enum Renderer {
    /// Lines of a dialect for a program, and reports for its user. A worker's host reads errors in the
    /// stream, so only warnings are reported there.
    Lines(Box<dyn Encoder>, Option<Reporter>),
    /// Text for a user or a pipe, and an encoder for the debug log and transcripts, whose lines are not
    /// printed.
    Text(Box<TextPrinter>, Option<Box<dyn Encoder>>),
}

impl Renderer {
    fn render(&mut self, event: &Event, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        match self {
            Self::Lines(encoder, reporter) => {
                encoder.encode(event, out);
                match reporter {
                    Some(_) if is_turn_end(event) => {}
                    Some(reporter) => reporter.report(event, err),
                    None => warn(event, err),
                }
            }
            Self::Text(printer, unprinted) => {
                if let Some(encoder) = unprinted {
                    encoder.encode(event, &mut Vec::new());
                }
                printer.print(event, out, err);
            }
        }
    }

    /// Reports the end of a turn, after its last line was written to standard output.
    fn report_end(&mut self, event: &Event, err: &mut Vec<u8>) {
        match self {
            Self::Lines(_, Some(reporter)) => reporter.report(event, err),
            Self::Lines(_, None) => {}
            Self::Text(printer, _) => printer.report_end(event, err),
        }
    }
}

fn is_turn_end(event: &Event) -> bool {
    matches!(event.body, Body::TurnEnd(_))
}

/// Writes warnings, which not every dialect carries.
fn warn(event: &Event, err: &mut Vec<u8>) {
    if let Body::Console { level: ConsoleLevel::Warn | ConsoleLevel::Error, text, .. } = &event.body {
        err.extend_from_slice(format!("qwen: {text}\n").as_bytes());
    }
}

/// Writes events until the channel closes or the reader disconnects (an error of kind `BrokenPipe`).
pub async fn pump(
    mut events: mpsc::Receiver<Event>,
    mut renderer: Renderer,
    mut output: ObservedOutput<'_>,
) -> io::Result<()> {
    let mut out = Vec::with_capacity(8 * 1024);
    let mut err = Vec::new();
    let mut batch = Vec::with_capacity(64);
    loop {
        let spins = matches!(&renderer, Renderer::Text(printer, _) if printer.spins());
        let received = tokio::select! {
            biased;
            received = events.recv_many(&mut batch, 64) => received,
            () = tokio::time::sleep(Duration::from_millis(100)), if spins => {
                if let Renderer::Text(printer, _) = &mut renderer {
                    printer.tick(&mut err);
                }
                write_stderr(&mut err);
                continue;
            }
            () = output.output.reader_gone() => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        if received == 0 {
            return Ok(());
        }
        for event in batch.drain(..) {
            let before = out.len();
            renderer.render(&event, &mut out, &mut err);
            if let Some(observer) = &mut output.observer {
                observer.note(&event, &out[before..]);
            }
            if !err.is_empty() {
                // On a terminal both streams appear on one screen, so they are written in the order of the
                // events. A note about a message follows the line break that ends it.
                let first = if matches!(event.body, Body::MessageEnd(_)) { out.len() } else { before };
                output.write_all(&out[..first]).await?;
                out.drain(..first);
                write_stderr(&mut err);
            }
            if is_turn_end(&event) {
                renderer.report_end(&event, &mut err);
                if !err.is_empty() {
                    flush(&mut output, &mut out).await?;
                    write_stderr(&mut err);
                }
            }
            if out.len() >= BATCH_BYTES {
                flush(&mut output, &mut out).await?;
            }
        }
        flush(&mut output, &mut out).await?;
    }
}

async fn flush(output: &mut ObservedOutput<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    output.write_all(out).await?;
    out.clear();
    if out.capacity() > KEEP_BYTES {
        out.shrink_to(8 * 1024);
    }
    Ok(())
}

fn write_stderr(err: &mut Vec<u8>) {
    if !err.is_empty() {
        // Reports are best effort: the work continues even if they cannot be written.
        let _ = io::Write::write_all(&mut io::stderr(), err);
        err.clear();
    }
}
