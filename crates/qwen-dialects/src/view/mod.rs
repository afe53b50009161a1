//! The viewer: a stream of any dialect as a transcript for a person, live or from a file.
//!
//! A small reader for each dialect turns lines into what a person would see; one renderer writes it down. Lines are
//! merged by session and by number, and nothing that a stream holds can harm the terminal it is shown on.

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

/// How a transcript looks.
#[derive(Debug, Clone, Copy)]
pub struct ViewOptions {
    /// Colours and other looks that a terminal knows.
    pub color: bool,
    /// The width of the terminal, in columns.
    pub width: usize,
    /// The height of the terminal, in lines, where what was written can be drawn anew; none where it cannot.
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
    /// A viewer for a stream in `dialect`; without one, each line is taken for what it looks like.
    pub fn new(dialect: Option<Dialect>, options: ViewOptions) -> Self {
        Self {
            dialect,
            reader: dialect.map(read::reader),
            order: Order::default(),
            sequencer: BlockSequencer::default(),
            renderer: Renderer::new(options),
        }
    }

    /// Shows the next line: appends to `out` what can be shown now.
    pub fn push_line(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            return;
        }
        let heard = match Object::parse(text) {
            Ok(object) => self.read(&object),
            Err(_) => vec![ViewLine::of(ViewEvent::Unknown(text.to_owned()))],
        };
        for heard in heard {
            self.order.push(heard, &mut |line| {
                self.sequencer.push(line, &mut |line| self.renderer.show(line, out));
            });
        }
    }

    /// Reports a line that was longer than `limit` bytes and was therefore not read.
    pub fn push_oversized(&mut self, limit: usize, out: &mut Vec<u8>) {
        let note = ViewLine::of(ViewEvent::Unknown(format!("a line longer than {limit} bytes")));
        self.order
            .push(note, &mut |line| self.sequencer.push(line, &mut |line| self.renderer.show(line, out)));
    }

    /// Shows what was still waiting, and closes the transcript.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.order.finish(&mut |line| self.sequencer.push(line, &mut |line| self.renderer.show(line, out)));
        self.sequencer.finish(&mut |line| self.renderer.show(line, out));
        self.renderer.finish(out);
    }

    /// The thoughts of the last search that the stream told.
    pub fn thoughts(&self) -> &ThoughtGraph {
        self.renderer.thoughts()
    }

    fn read(&mut self, object: &Object<'_>) -> Vec<ViewLine> {
        if let Some(Ok(document)) = Document::read(object) {
            let mut heard = Vec::new();
            for event in &document.events {
                match Object::parse(event.get()) {
                    Ok(event) => heard.extend(self.read_line(&event)),
                    Err(_) => heard.push(ViewLine::of(ViewEvent::Unknown(event.get().to_owned()))),
                }
            }
            let last = heard.last().cloned().unwrap_or_else(|| ViewLine::of(ViewEvent::Nothing));
            // A document of events that tell their own end has nothing new to say here.
            if !heard.iter().any(|heard| matches!(heard.event, ViewEvent::TurnEnd(_))) {
                let end = End { reply: document.reply, ..End::default() };
                // In a stream the reply is a line with a number of its own.
                let number = last.number.and_then(|number| number.checked_add(1));
                heard.push(ViewLine {
                    number,
                    event: ViewEvent::TurnEnd(end),
                    parent: None,
                    session: last.session,
                });
            }
            return heard;
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
            None => read::channel(object),
        };
        // Not what it should be; perhaps it is what it looks like.
        let other = || guessed.filter(|guessed| Some(*guessed) != self.dialect);
        known
            .or_else(|| read::reader(other()?).read(object))
            .unwrap_or_else(|| vec![ViewLine::of(ViewEvent::Unknown(object.text.to_owned()))])
    }
}
