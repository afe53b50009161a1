//! The stream checker: verifies that a stream follows the rules of its dialect.
//!
//! Each line is parsed into the dialect's wire types, and a small state machine per dialect tracks the
//! order of lines. Memory is bounded: digests instead of texts, and only as many names as fit a fixed
//! table.

mod acp;
pub(crate) mod bounded;
mod calls;
mod channel;
mod claude;
pub(crate) mod claude_lite;
mod core;
mod digest;
pub(crate) mod document;
pub(crate) mod guess;
mod loom;
mod multiline;
mod qwen;
mod report;
mod restart;
pub mod rules;
pub(crate) mod syntax;

pub use report::{Finding, Level};

use crate::decode::decode;
use crate::dialect::Dialect;
use document::Document;
use multiline::MultilineValue;
use report::Report;
use syntax::{Object, Violation};

/// Whether lines are checked as a stream or individually.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The lines are a complete stream, in order.
    Stream,
    /// Each line is checked individually; lines that a client sends are accepted too.
    Fragment,
}

/// Checks a stream line by line and reports violations.
pub struct Checker {
    mode: Mode,
    dialect: Option<Dialect>,
    rules: Option<Box<dyn Rules>>,
    /// Lines that are valid in any dialect, stored until the dialect is known.
    undecided: Vec<(u64, Box<[u8]>)>,
    undecided_bytes: usize,
    /// In fragment mode: a value that continues in the next line.
    multiline: Option<MultilineValue>,
    line: u64,
    /// The number of lines without a newline.
    unterminated: u64,
    /// True if the last line had none.
    last_unterminated: bool,
    /// True once a line arrived that can be checked.
    any: bool,
}

/// The maximum number of lines, and of bytes, without a known dialect.
const UNDECIDED_LINES: usize = 64;
const UNDECIDED_BYTES: usize = 1 << 20;

/// The rules of one dialect.
trait Rules: Send {
    /// Checks only the shape of the line.
    fn shape(&self, object: &Object<'_>) -> Result<(), Violation>;

    /// Checks the shape of the line and its position in the stream.
    fn line(&mut self, object: &Object<'_>, report: &mut Report);

    /// Checks the reply of a document, after its events were checked like lines.
    fn reply(&mut self, reply: &str, report: &mut Report);

    /// Checks what is missing at the end.
    fn finish(&mut self, report: &mut Report);
}

fn rules_of(dialect: Dialect) -> Box<dyn Rules> {
    match dialect {
        Dialect::Qwen => Box::new(qwen::QwenRules::default()),
        Dialect::Claude => Box::new(claude::ClaudeRules::default()),
        Dialect::ClaudeLite => Box::new(claude_lite::LiteRules::default()),
        Dialect::Loom => Box::new(loom::LoomRules::default()),
        Dialect::LoomExport => Box::new(loom::LoomRules::export()),
        Dialect::Core => Box::new(core::CoreRules::default()),
        Dialect::Acp => Box::new(acp::AcpRules::default()),
    }
}

impl Checker {
    /// A checker for a stream in `dialect`; without one, the dialect is guessed from the first lines.
    pub fn new(dialect: Option<Dialect>, mode: Mode) -> Self {
        Self {
            mode,
            dialect,
            rules: dialect.map(rules_of),
            undecided: Vec::new(),
            undecided_bytes: 0,
            multiline: None,
            line: 0,
            unterminated: 0,
            last_unterminated: false,
            any: false,
        }
    }

    /// The dialect, as given or as guessed so far.
    pub fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// Checks the next line, as read: including its newline, which only the last line may lack.
    pub fn push_line(&mut self, line: &[u8]) -> Vec<Finding> {
        self.line += 1;
        let mut report = Report::new(self.line);
        let text = line.strip_suffix(b"\n");
        self.last_unterminated = text.is_none();
        self.unterminated += u64::from(text.is_none());
        let bytes = text.unwrap_or(line);
        let text = match syntax::text(bytes) {
            Ok(text) => text,
            Err(violation) => {
                self.any = true;
                report.violation(violation);
                return report.findings();
            }
        };
        if self.mode == Mode::Fragment && self.continues_multiline(text, &mut report) {
            self.any = true;
            return report.findings();
        }
        if text.trim_ascii().is_empty() {
            report.warning("empty-line", "the line is empty; each line is one JSON object");
            return report.findings();
        }
        self.any = true;
        match Object::parse(text) {
            Err(violation) => report.violation(violation),
            Ok(object) if self.mode == Mode::Fragment => self.fragment(&object, &mut report),
            Ok(object) => self.check_or_buffer(&object, bytes, &mut report),
        }
        report.findings()
    }

    /// Reports a line that exceeded `limit` bytes and was therefore not read.
    pub fn push_oversized(&mut self, limit: usize) -> Vec<Finding> {
        self.line += 1;
        self.any = true;
        self.last_unterminated = false;
        let mut report = Report::new(self.line);
        report.error("too-long", format!("the line is longer than {limit} bytes, which no reader takes in"));
        report.findings()
    }

    /// Checks what is missing at the end of the stream.
    pub fn finish(&mut self) -> Vec<Finding> {
        let mut report = Report::new(self.line.max(1));
        if let Some(multiline) = self.multiline.take() {
            report.at(multiline.line);
            report.violation(never_whole());
            report.at(self.line);
        }
        if self.last_unterminated && self.unterminated == 1 {
            report.warning("no-newline", "the last line does not end in a newline; it may have been cut off");
        }
        if self.mode == Mode::Stream {
            if !self.any {
                report.error("empty-stream", "there is no line at all, so no turn ended either");
            } else if self.rules.is_none() {
                // All lines are common to every dialect: they are checked by the rules of the dialect that
                // defines them.
                self.decide(Dialect::Qwen, &mut report);
            }
            report.at(self.line.max(1));
            if let Some(rules) = &mut self.rules {
                rules.finish(&mut report);
            }
        }
        report.findings()
    }

    /// Assembles a value that spans several lines; returns whether `text` belongs to one.
    fn continues_multiline(&mut self, text: &str, report: &mut Report) -> bool {
        let Some(mut multiline) = self.multiline.take() else {
            if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
                self.multiline = MultilineValue::begin(self.line, text);
            }
            return self.multiline.is_some();
        };
        if !multiline.accepts(text) {
            report.at(multiline.line);
            report.violation(never_whole());
            report.at(self.line);
            return self.continues_multiline(text, report);
        }
        multiline.add(text);
        if multiline.is_whole() {
            report.at(multiline.line);
            match Object::parse(&multiline.text) {
                Ok(object) => self.fragment(&object, report),
                Err(violation) => report.violation(violation),
            }
        } else {
            self.multiline = Some(multiline);
        }
        true
    }

    fn fragment(&self, object: &Object<'_>, report: &mut Report) {
        let judged = match &self.rules {
            Some(rules) => shape_alone(rules.as_ref(), object),
            None => any_shape(object),
        };
        if let Err(violation) = judged
            && !decode(object.text.as_bytes()).is_ok_and(|commands| !commands.is_empty())
        {
            report.violation(violation);
        }
    }

    /// Checks a line, or stores it until the dialect is known.
    fn check_or_buffer(&mut self, object: &Object<'_>, bytes: &[u8], report: &mut Report) {
        if self.rules.is_none() {
            let full = self.undecided.len() >= UNDECIDED_LINES
                || self.undecided_bytes + bytes.len() > UNDECIDED_BYTES;
            match guess::dialect(object) {
                Some(dialect) => self.decide(dialect, report),
                None if full => self.decide(Dialect::Qwen, report),
                None => {
                    self.undecided_bytes += bytes.len();
                    self.undecided.push((self.line, bytes.into()));
                    return;
                }
            }
        }
        if let Some(rules) = &mut self.rules {
            judge(rules.as_mut(), object, report);
        }
    }

    /// Sets the dialect and checks the stored lines.
    fn decide(&mut self, dialect: Dialect, report: &mut Report) {
        self.dialect = Some(dialect);
        let rules = self.rules.insert(rules_of(dialect));
        for (line, bytes) in self.undecided.drain(..) {
            report.at(line);
            // They were valid text and objects when they were stored.
            if let Ok(object) = syntax::text(&bytes).and_then(Object::parse) {
                judge(rules.as_mut(), &object, report);
            }
        }
        report.at(self.line);
    }
}

fn never_whole() -> Violation {
    Violation::new("json", "the line is not JSON, and no line after it makes it so")
}

/// Checks a line, or a document whose events are checked like lines.
fn judge(rules: &mut dyn Rules, object: &Object<'_>, report: &mut Report) {
    match Document::read(object) {
        None => rules.line(object, report),
        Some(Err(violation)) => report.violation(violation),
        Some(Ok(document)) => {
            for (index, event) in document.events.iter().enumerate() {
                report.within(Some(index));
                match Object::parse(event.get()) {
                    Ok(event) => rules.line(&event, report),
                    Err(violation) => report.violation(violation),
                }
            }
            report.within(None);
            rules.reply(&document.reply, report);
        }
    }
}

/// Checks the shape of a line, or of the events of a document.
fn shape_alone(rules: &dyn Rules, object: &Object<'_>) -> Result<(), Violation> {
    match Document::read(object) {
        None => rules.shape(object),
        Some(document) => {
            document?.events.iter().try_for_each(|event| rules.shape(&Object::parse(event.get())?))
        }
    }
}

/// Checks that the line has a shape of some dialect; if not, returns the violation in the most similar
/// dialect.
fn any_shape(object: &Object<'_>) -> Result<(), Violation> {
    let likely = guess::dialect(object).unwrap_or(Dialect::Qwen);
    shape_alone(rules_of(likely).as_ref(), object).or_else(|violation| {
        let others = Dialect::ALL.into_iter().filter(|other| *other != likely);
        let fits = others.into_iter().any(|other| shape_alone(rules_of(other).as_ref(), object).is_ok());
        if fits { Ok(()) } else { Err(violation) }
    })
}
