//! The viewer: shows a stream of any dialect as a transcript, live or from a file.
//!
//! A small reader per dialect turns lines into events; one renderer writes the transcript. Lines are merged
//! by session and by number, and the content of a stream cannot manipulate the terminal.

mod call;
mod event;
mod order;
mod paint;
mod read;
mod render;
mod sequencer;
mod session;
mod steps;
mod thoughts;
mod words;

use crate::check::document::Document;
use crate::check::guess;
use crate::check::syntax::Object;
use crate::dialect::Dialect;
use event::{End, ViewEvent, ViewLine};
use order::Order;
use read::Reader;
use render::Renderer;
use sequencer::BlockSequencer;
pub use steps::step_lines;
pub use thoughts::ThoughtGraph;

/// The appearance of a transcript.
#[derive(Debug, Clone, Copy)]
pub struct ViewOptions {
    /// True to use colours and other terminal styles.
    pub color: bool,
    /// The width of the terminal, in columns.
    pub width: usize,
    /// The height of the terminal, in lines, if the output can be redrawn; none otherwise.
    pub height: Option<usize>,
}

/// Turns a stream into a transcript, line by line.
pub struct Viewer {
    dialect: Option<Dialect>,
    reader: Option<Box<dyn Reader>>,
    order: Order,
    sequencer: BlockSequencer,
    renderer: Renderer,
}

impl Viewer {
    /// A viewer for a stream in `dialect`; without one, the dialect of each line is guessed.
    pub fn new(dialect: Option<Dialect>, options: ViewOptions) -> Self {
        Self {
            dialect,
            reader: dialect.map(read::reader),
            order: Order::default(),
            sequencer: BlockSequencer::default(),
            renderer: Renderer::new(options),
        }
    }

    /// Processes the next line and appends the output to `out`.
    pub fn push_line(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            return;
        }
        let lines = match Object::parse(text) {
            Ok(object) => self.read(&object),
            Err(_) => vec![ViewLine::new(ViewEvent::Unknown(text.to_owned()))],
        };
        for line in lines {
            self.order.push(line, &mut |line| {
                self.sequencer.push(line, &mut |line| self.renderer.show(line, out));
            });
        }
    }

    /// Reports a line that exceeded `limit` bytes and was therefore not read.
    pub fn push_oversized(&mut self, limit: usize, out: &mut Vec<u8>) {
        let note = ViewLine::new(ViewEvent::Unknown(format!("a line longer than {limit} bytes")));
        self.order
            .push(note, &mut |line| self.sequencer.push(line, &mut |line| self.renderer.show(line, out)));
    }

    /// Shows the pending lines and closes the transcript.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.order.finish(&mut |line| self.sequencer.push(line, &mut |line| self.renderer.show(line, out)));
        self.sequencer.finish(&mut |line| self.renderer.show(line, out));
        self.renderer.finish(out);
    }

    /// The thoughts of the last search in the stream.
    pub fn thoughts(&self) -> &ThoughtGraph {
        self.renderer.thoughts()
    }

    fn read(&mut self, object: &Object<'_>) -> Vec<ViewLine> {
        if let Some(Ok(document)) = Document::read(object) {
            let mut lines = Vec::new();
            for event in &document.events {
                match Object::parse(event.get()) {
                    Ok(event) => lines.extend(self.read_line(&event)),
                    Err(_) => lines.push(ViewLine::new(ViewEvent::Unknown(event.get().to_owned()))),
                }
            }
            let last = lines.last().cloned().unwrap_or_else(|| ViewLine::new(ViewEvent::Nothing));
            // The events of a document may already include the end of the turn.
            if !lines.iter().any(|line| matches!(line.event, ViewEvent::TurnEnd(_))) {
                let end = End { reply: document.reply, ..End::default() };
                // In a stream the reply is a separate line with its own number.
                let number = last.number.and_then(|number| number.checked_add(1));
                lines.push(ViewLine {
                    number,
                    session: last.session,
                    ..ViewLine::new(ViewEvent::TurnEnd(end))
                });
            }
            return lines;
        }
        self.read_line(object)
    }

    fn read_line(&mut self, object: &Object<'_>) -> Vec<ViewLine> {
        let guessed = guess::dialect(object);
        if self.reader.is_none()
            && let Some(dialect) = guessed
        {
            self.dialect = Some(dialect);
            self.reader = Some(read::reader(dialect));
        }
        let known = match &mut self.reader {
            Some(reader) => reader.read(object),
            // What several dialects have is shown as in the plainest of them.
            None => read::channel(object).or_else(|| read::reader(Dialect::ClaudeLite).read(object)),
        };
        // The line does not fit the dialect; the guessed dialect is tried instead.
        let other = || guessed.filter(|guessed| Some(*guessed) != self.dialect);
        known
            .or_else(|| read::reader(other()?).read(object))
            .unwrap_or_else(|| vec![ViewLine::new(ViewEvent::Unknown(object.text.to_owned()))])
    }
}
