//! Finds printed calls in a text that arrives in pieces.

use std::sync::Arc;

use qwen_events::ToolSpec;

use super::form::{TextCall, function_name, read_fenced, read_functions, read_tagged};

const TAG: &str = "<tool_call>";
const TAG_END: &str = "</tool_call>";
const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const FENCE: &str = "```";

/// Longest text that is held back as a possible call, in bytes.
const LONGEST: usize = 1 << 20;

/// A part of the scanned text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scanned {
    Text(String),
    Call(TextCall),
}

/// Separates calls from text. What may become a call is held back; everything else is passed on at once.
pub(super) struct Scanner {
    tools: Arc<[ToolSpec]>,
    /// The text that is not decided yet.
    held: String,
    /// The current line as far as it was passed on as text.
    line: String,
    /// True inside a fenced block that is not a call.
    in_fence: bool,
    /// Calls whose surroundings are not decided yet.
    candidates: Vec<Candidate>,
    /// True after a call, until other text than white space follows.
    follows_call: bool,
    out: Vec<Scanned>,
}

/// Calls that were read, and their text in case they turn out to be an example.
struct Candidate {
    text: String,
    calls: Vec<TextCall>,
    /// A fenced block is a call only if nothing but calls follows in the message.
    is_fenced: bool,
}

/// What is known about the beginning of a text.
enum Start {
    Found(Marker),
    /// It may become a marker.
    Undecided,
    Plain,
}

/// A fenced block.
enum Fence {
    Undecided,
    /// It is not a call, and its end may not have arrived.
    Open,
    /// It is complete and not a call.
    Closed {
        length: usize,
    },
    Calls {
        length: usize,
        calls: Vec<TextCall>,
    },
}

#[derive(Clone, Copy)]
enum Marker {
    Tag,
    Function,
    Fence,
}

impl Scanner {
    pub(super) fn new(tools: Arc<[ToolSpec]>) -> Self {
        Self {
            tools,
            held: String::new(),
            line: String::new(),
            in_fence: false,
            candidates: Vec::new(),
            follows_call: false,
            out: Vec::new(),
        }
    }

    /// True if a piece is plain text, whatever follows. It then counts as passed on. Most pieces are plain, and
    /// this saves copying them.
    pub(super) fn passes(&mut self, piece: &str) -> bool {
        let is_idle = self.held.is_empty() && self.candidates.is_empty() && !self.follows_call;
        let is_plain = is_idle && !piece.contains(['<', '`']);
        if is_plain {
            self.note_line(piece);
        }
        is_plain
    }

    /// Adds a piece and returns what is decided by now.
    pub(super) fn push(&mut self, piece: &str) -> Vec<Scanned> {
        self.held.push_str(piece);
        while self.step(false) {}
        std::mem::take(&mut self.out)
    }

    /// Ends the text and returns the rest.
    pub(super) fn finish(&mut self) -> Vec<Scanned> {
        while self.step(true) {}
        std::mem::take(&mut self.out)
    }

    /// Returns everything that is held back as text.
    pub(super) fn into_text(self) -> String {
        let examples: String = self.candidates.into_iter().map(|candidate| candidate.text).collect();
        examples + &self.held
    }

    /// Decides about the next part. Returns false if that needs more text, or there is none.
    fn step(&mut self, at_end: bool) -> bool {
        if !self.candidates.is_empty() && !self.decide_candidates(at_end) {
            return false;
        }
        if self.held.is_empty() {
            return false;
        }
        // Inside a fenced block only its end matters.
        let markers = if self.in_fence { "`" } else { "<`" };
        let Some(at) = self.held.find(|letter: char| markers.contains(letter)) else {
            let text = std::mem::take(&mut self.held);
            self.pass_on(text);
            return false;
        };
        if at > 0 {
            let rest = self.held.split_off(at);
            let text = std::mem::replace(&mut self.held, rest);
            self.pass_on(text);
        }
        match self.read_start() {
            Start::Undecided if !at_end => false,
            Start::Undecided | Start::Plain => {
                self.pass_on_one_character();
                true
            }
            Start::Found(Marker::Fence) => self.take_fence(at_end),
            Start::Found(Marker::Tag) => self.take_tagged(at_end),
            Start::Found(Marker::Function) => self.take_function(at_end),
        }
    }

    /// Classifies the beginning of the held text.
    fn read_start(&self) -> Start {
        for (text, marker) in [(FENCE, Marker::Fence), (TAG, Marker::Tag), (FUNCTION, Marker::Function)] {
            if self.held.starts_with(text) {
                let is_fence = matches!(marker, Marker::Fence);
                let begins_line = self.line.trim().is_empty();
                let is_plain = if is_fence { !begins_line } else { self.is_quoted() };
                return if is_plain { Start::Plain } else { Start::Found(marker) };
            }
            if text.starts_with(self.held.as_str()) {
                return Start::Undecided;
            }
        }
        Start::Plain
    }

    /// True inside inline code, quotation marks or a block quote.
    fn is_quoted(&self) -> bool {
        let before = self.line.trim();
        let is_block_quote = before.starts_with('>');
        is_block_quote
            || before.matches('`').count() % 2 == 1
            || before.ends_with(['"', '\'', '“', '‘', '«', '('])
    }

    /// Reads a fenced block. One that is not a call is passed on, and what follows in it is text.
    fn take_fence(&mut self, at_end: bool) -> bool {
        if self.in_fence {
            self.in_fence = false;
            return self.pass_on_prefix(FENCE.len());
        }
        match self.classify_fence(at_end) {
            Fence::Undecided => false,
            Fence::Open => self.open_plain_fence(),
            Fence::Closed { length } => self.pass_on_prefix(length),
            Fence::Calls { length, calls } => self.add_candidate(length, calls, true),
        }
    }

    /// Classifies the fenced block with which the held text begins.
    fn classify_fence(&self, at_end: bool) -> Fence {
        let Some((language, body)) = self.held[FENCE.len()..].split_once('\n') else {
            return if at_end { Fence::Open } else { Fence::Undecided };
        };
        let is_json = matches!(language.trim(), "" | "json" | "jsonc" | "tool_call" | "tool_code" | "tool");
        let begins_call = body.trim_start().is_empty() || body.trim_start().starts_with(['{', '[']);
        if !is_json || !begins_call {
            return Fence::Open;
        }
        let Some(end) = body.find("\n```") else {
            return if at_end || self.held.len() > LONGEST { Fence::Open } else { Fence::Undecided };
        };
        let length = self.held.len() - body.len() + end + "\n```".len();
        match read_fenced(&body[..end], &self.tools) {
            Some(calls) => Fence::Calls { length, calls },
            None => Fence::Closed { length },
        }
    }

    fn open_plain_fence(&mut self) -> bool {
        self.in_fence = true;
        self.pass_on_prefix(FENCE.len())
    }

    /// Reads `<tool_call>`. Without JSON or a function after it, it is a word in a sentence.
    fn take_tagged(&mut self, at_end: bool) -> bool {
        let body = self.held[TAG.len()..].trim_start();
        let is_call = ["{", "[", FUNCTION, "<function ", FENCE].iter().any(|start| body.starts_with(start));
        let may_be_call =
            ["{", "[", FUNCTION, "<function ", FENCE].iter().any(|start| start.starts_with(body));
        if !is_call {
            return if may_be_call && !at_end { false } else { self.pass_on_one_character() };
        }
        let length = match find_tag_end(&self.held, at_end || self.held.len() > LONGEST) {
            Some(end) => end + TAG_END.len(),
            // The end of the message ends an open tag: servers may treat the closing one as a stop sequence.
            None if at_end => self.held.len(),
            None if self.held.len() > LONGEST => return self.pass_on_one_character(),
            None => return false,
        };
        let content = &self.held[TAG.len()..length];
        let content = content.strip_suffix(TAG_END).unwrap_or(content).to_owned();
        let calls = read_tagged(&content, &self.tools);
        self.add_candidate(length, calls, false)
    }

    /// Reads `<function=NAME>` without a tag around it. The tool must be known.
    fn take_function(&mut self, at_end: bool) -> bool {
        let Some(name) = function_name(&self.held) else {
            return if at_end || self.held.len() > 200 { self.pass_on_one_character() } else { false };
        };
        if !self.tools.iter().any(|tool| *tool.name == *name) {
            return self.pass_on_one_character();
        }
        let mut length = match self.held.find(FUNCTION_END) {
            Some(end) => end + FUNCTION_END.len(),
            None if at_end => self.held.len(),
            None if self.held.len() > LONGEST => return self.pass_on_one_character(),
            None => return false,
        };
        let calls = read_functions(&self.held[..length], &self.tools);
        // Some templates lose the opening tag and keep the closing one.
        let after = self.held[length..].trim_start();
        if after.starts_with(TAG_END) {
            length = self.held.len() - after.len() + TAG_END.len();
        } else if TAG_END.starts_with(after) && !at_end {
            return false;
        }
        self.add_candidate(length, calls, false)
    }

    fn add_candidate(&mut self, length: usize, calls: Vec<TextCall>, is_fenced: bool) -> bool {
        let rest = self.held.split_off(length);
        let text = std::mem::replace(&mut self.held, rest);
        self.candidates.push(Candidate { text, calls, is_fenced });
        true
    }

    /// Decides whether candidates are calls, by what follows them. Returns false if that needs more text.
    fn decide_candidates(&mut self, at_end: bool) -> bool {
        let is_fenced = self.candidates.iter().any(|candidate| candidate.is_fenced);
        let after =
            if is_fenced { self.held.trim_start() } else { self.held.trim_start_matches([' ', '\t']) };
        if after.is_empty() {
            if at_end {
                self.held.clear();
                self.accept_candidates();
            }
            return at_end;
        }
        let followers: &[&str] =
            if is_fenced { &[TAG, FUNCTION, FENCE] } else { &[TAG, FUNCTION, "\n", "\r"] };
        if followers.iter().any(|start| after.starts_with(start)) {
            let is_next_fence = is_fenced && after.starts_with(FENCE);
            let skipped = self.held.len() - after.len();
            if !is_next_fence {
                self.held.drain(..skipped);
                self.accept_candidates();
                return true;
            }
            // Another fenced block decides: keep the white space with the earlier one.
            let space: String = self.held.drain(..skipped).collect();
            if let Some(last) = self.candidates.last_mut() {
                last.text.push_str(&space);
            }
            return match self.classify_fence(at_end) {
                Fence::Undecided => false,
                Fence::Calls { length, calls } => self.add_candidate(length, calls, true),
                Fence::Open | Fence::Closed { .. } => {
                    self.reject_candidates();
                    true
                }
            };
        }
        if !at_end && followers.iter().any(|start| start.starts_with(after)) {
            return false;
        }
        self.reject_candidates();
        true
    }

    fn accept_candidates(&mut self) {
        for candidate in std::mem::take(&mut self.candidates) {
            self.out.extend(candidate.calls.into_iter().map(Scanned::Call));
        }
        self.line.clear();
        self.follows_call = true;
    }

    /// The candidates are examples in a text.
    fn reject_candidates(&mut self) {
        let text: String = std::mem::take(&mut self.candidates).into_iter().map(|c| c.text).collect();
        self.pass_on(text);
    }

    fn pass_on_one_character(&mut self) -> bool {
        let length = self.held.chars().next().map_or(0, char::len_utf8);
        self.pass_on_prefix(length)
    }

    fn pass_on_prefix(&mut self, length: usize) -> bool {
        let rest = self.held.split_off(length);
        let text = std::mem::replace(&mut self.held, rest);
        self.pass_on(text);
        true
    }

    fn pass_on(&mut self, mut text: String) {
        if self.follows_call {
            let space = text.len() - text.trim_start().len();
            text.drain(..space);
        }
        if text.is_empty() {
            return;
        }
        self.follows_call = false;
        self.note_line(&text);
        match self.out.last_mut() {
            Some(Scanned::Text(last)) => last.push_str(&text),
            _ => self.out.push(Scanned::Text(text)),
        }
    }

    /// Records text that was passed on.
    fn note_line(&mut self, text: &str) {
        match text.rfind('\n') {
            Some(at) => text[at + 1..].clone_into(&mut self.line),
            None => self.line.push_str(text),
        }
    }
}

/// Finds the closing tag of a call, which may contain one in a JSON string. With `is_decided` nothing more is
/// waited for: if the tag is only found in a string, the call is malformed and ends there.
fn find_tag_end(text: &str, is_decided: bool) -> Option<usize> {
    let first = text.find(TAG_END)?;
    if text[TAG.len()..].trim_start().starts_with("<function") {
        return Some(first);
    }
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate().skip(TAG.len()) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            // A JSON string has no line end: the quotes are not balanced.
            b'\n' if in_string && at > first => return Some(first),
            b'<' if !in_string && text[at..].starts_with(TAG_END) => return Some(at),
            _ => {}
        }
    }
    is_decided.then_some(first)
}
