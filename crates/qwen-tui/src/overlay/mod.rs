//! The whole transcript on the alternate screen: scrolled, searched, folded, copied block by block.
//!
//! It is built from the events of the session log when it is opened and dropped when it is closed, so a
//! long session costs nothing while it is closed. Only this module uses absolute rows: the alternate screen
//! has no scrollback to protect.

mod blocks;

use qwen_events::{Event, PromptId};

use self::blocks::{Block, block, blocks};
use crate::input::{Key, KeyAction, KeyCode, Keymap, TerminalInput};
use crate::markdown::Rendered;
use crate::text::{Style, StyledLine, clean_line, cut};
use crate::view::Marks;

const ENTER: &str = "\x1b[?1049h\x1b[?1007h";
const LEAVE: &str = "\x1b[?1007l\x1b[?1049l";

/// The result of an input.
#[derive(Debug, PartialEq, Eq)]
pub enum OverlayStep {
    /// The overlay remains open.
    Stay,
    /// Closes the overlay without a result.
    Close,
    /// Copies this text to the clipboard.
    Copy(String),
}

#[derive(Debug)]
pub struct TranscriptView {
    blocks: Vec<Block>,
    /// The row at the top of the screen.
    top: usize,
    search: Option<String>,
    /// True while a search term is being typed.
    is_typing: bool,
    is_shown: bool,
    size: (usize, usize),
    /// The rows at the current width, each with the block that it belongs to.
    rows: Vec<(usize, StyledLine)>,
}

impl TranscriptView {
    /// The transcript of these events, shown from its end. The turns `rewound` are marked.
    pub fn new(
        events: &[Event],
        rewound: &[PromptId],
        marks: Marks,
        (columns, rows): (usize, usize),
    ) -> Self {
        let mut transcript = Self::of_blocks(blocks(events, rewound, marks), columns, rows);
        transcript.top = transcript.last_top();
        transcript
    }

    /// These lines, shown from their start.
    pub fn of_lines(lines: &[Rendered], columns: usize, rows: usize) -> Self {
        let source: Vec<String> = lines.iter().map(|line| line.line.text()).collect();
        Self::of_blocks(vec![block(&source.join("\n"), lines.to_vec())], columns, rows)
    }

    fn of_blocks(blocks: Vec<Block>, columns: usize, rows: usize) -> Self {
        let mut transcript = Self {
            blocks,
            top: 0,
            search: None,
            is_typing: false,
            is_shown: false,
            size: (columns.max(2), rows.max(2)),
            rows: Vec::new(),
        };
        transcript.lay_out();
        transcript
    }

    /// Applies a new terminal size.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        let block = self.rows.get(self.top).map_or(0, |(block, _)| *block);
        self.size = (columns.max(2), rows.max(2));
        self.lay_out();
        self.go_to_block(block);
    }

    fn lay_out(&mut self) {
        let limit = self.size.0 - 1;
        self.rows.clear();
        for (number, block) in self.blocks.iter().enumerate() {
            for line in block.lines() {
                self.rows.extend(cut(&line, limit).into_iter().map(|row| (number, row)));
            }
            self.rows.push((number, StyledLine::default()));
        }
    }

    fn last_top(&self) -> usize {
        self.rows.len().saturating_sub(self.height())
    }

    fn height(&self) -> usize {
        self.size.1 - 1
    }

    fn go_to_block(&mut self, block: usize) {
        let at = self.rows.iter().position(|(number, _)| *number == block).unwrap_or_default();
        self.top = at.min(self.last_top());
    }

    pub fn input(&mut self, input: &TerminalInput, keymap: &Keymap) -> OverlayStep {
        let TerminalInput::Key(key) = input else { return OverlayStep::Stay };
        let action = keymap.action(*key);
        if self.is_typing {
            return self.type_word(*key, action);
        }
        let page = self.height().saturating_sub(1).max(1);
        match (key.code, action) {
            (_, Some(KeyAction::Interrupt | KeyAction::Transcript | KeyAction::Cancel | KeyAction::Quit))
            | (KeyCode::Char('q'), None) => return OverlayStep::Close,
            (_, Some(KeyAction::Up)) | (KeyCode::Char('k'), None) => self.top = self.top.saturating_sub(1),
            (_, Some(KeyAction::Down)) | (KeyCode::Char('j'), None) => self.top += 1,
            (_, Some(KeyAction::PageUp)) | (KeyCode::Char('b'), None) => {
                self.top = self.top.saturating_sub(page);
            }
            (_, Some(KeyAction::PageDown)) | (KeyCode::Char(' '), None) => self.top += page,
            (_, Some(KeyAction::LineStart)) | (KeyCode::Char('g'), None) => self.top = 0,
            (_, Some(KeyAction::LineEnd)) | (KeyCode::Char('G'), None) => self.top = usize::MAX,
            (KeyCode::Char('/'), None) => {
                self.search = Some(String::new());
                self.is_typing = true;
            }
            (KeyCode::Char('n'), None) => self.find(self.top + 1, true),
            (KeyCode::Char('N'), None) => self.find(self.top, false),
            (KeyCode::Char('f'), None) | (_, Some(KeyAction::Complete)) => self.fold(),
            (KeyCode::Char('c'), None) => {
                if let Some(block) = self.rows.get(self.top).and_then(|(number, _)| self.blocks.get(*number))
                {
                    return OverlayStep::Copy(block.source.clone());
                }
            }
            _ => {}
        }
        self.top = self.top.min(self.last_top());
        OverlayStep::Stay
    }

    fn type_word(&mut self, key: Key, action: Option<KeyAction>) -> OverlayStep {
        let word = self.search.get_or_insert_default();
        match (key.code, action) {
            (_, Some(KeyAction::Submit)) => {
                self.is_typing = false;
                self.find(self.top, true);
            }
            (_, Some(KeyAction::Backspace)) => {
                word.pop();
            }
            (_, Some(KeyAction::Interrupt | KeyAction::Cancel)) => {
                self.is_typing = false;
                self.search = None;
            }
            (KeyCode::Char(c), None) if !key.ctrl && !key.alt => word.push(c),
            _ => {}
        }
        OverlayStep::Stay
    }

    /// Scrolls to the next or previous row that contains the search term.
    fn find(&mut self, from: usize, forward: bool) {
        let Some(word) = self.search.as_ref().filter(|word| !word.is_empty()).map(|word| word.to_lowercase())
        else {
            return;
        };
        // A match in a folded block unfolds it.
        let holds = |block: &Block| block.is_folded && block.source.to_lowercase().contains(&word);
        let mut opened = false;
        for block in self.blocks.iter_mut().filter(|block| holds(block)) {
            block.is_folded = false;
            opened = true;
        }
        let before =
            self.rows.get(from.min(self.rows.len().saturating_sub(1))).map_or(0, |(block, _)| *block);
        let from = if opened {
            self.lay_out();
            self.rows.iter().position(|(block, _)| *block == before).unwrap_or_default()
        } else {
            from
        };
        let matches =
            |(_, (_, row)): &(usize, &(usize, StyledLine))| row.text().to_lowercase().contains(&word);
        let mut rows = self.rows.iter().enumerate();
        let found = if forward {
            rows.clone().skip(from).find(matches).or_else(|| rows.find(matches))
        } else {
            rows.clone().take(from).rfind(matches).or_else(|| rows.rfind(matches))
        };
        if let Some((at, _)) = found {
            self.top = at.min(self.last_top());
        }
    }

    fn fold(&mut self) {
        let Some(number) = self.rows.get(self.top).map(|(number, _)| *number) else { return };
        if let Some(block) = self.blocks.get_mut(number) {
            block.is_folded = !block.is_folded;
        }
        self.lay_out();
        self.go_to_block(number);
    }

    /// The bytes that draw the overlay.
    pub fn frame(&mut self, colors: bool) -> String {
        let mut out = String::from("\x1b[?2026h");
        if !std::mem::replace(&mut self.is_shown, true) {
            out.push_str(ENTER);
        }
        let word = self.search.clone().unwrap_or_default().to_lowercase();
        for n in 0..self.height() {
            out.push_str(&format!("\x1b[{};1H", n + 1));
            if let Some((_, row)) = self.rows.get(self.top + n) {
                let is_hit = !word.is_empty() && row.text().to_lowercase().contains(&word);
                if is_hit {
                    StyledLine::styled(row.text(), Style::REVERSE).encode(colors, &mut out);
                } else {
                    row.encode(colors, &mut out);
                }
            }
            out.push_str("\x1b[K");
        }
        out.push_str(&format!("\x1b[{};1H", self.size.1));
        let status = if self.is_typing {
            format!("/{}", clean_line(self.search.as_deref().unwrap_or_default()))
        } else {
            let last = (self.top + self.height()).min(self.rows.len());
            let mut line = StyledLine::plain(format!("{last}/{}", self.rows.len()));
            for key in ["q close", "/ search", "n next", "c copy block", "f fold"] {
                let _ = line.push_if_fits(&format!("  {key}"), Style::PLAIN, self.size.0);
            }
            line.text()
        };
        let status: String = status.chars().take(self.size.0 - 1).collect();
        StyledLine::styled(status, Style::DIM).encode(colors, &mut out);
        out.push_str("\x1b[K\x1b[?2026l");
        out
    }

    /// The bytes that restore the main screen.
    pub fn leave(&self) -> &'static str {
        if self.is_shown { LEAVE } else { "" }
    }
}
