//! A list to choose from, offered by a command: sessions, earlier prompts, ways back.
//!
//! The list knows no command by name. The dialog says which command takes the chosen value, and whether that
//! command searches for typed text itself.

use qwen_events::{CommandResult, CommandResultBody, PromptId};
use serde_json::Value;

use crate::input::{KeyAction, KeyCode, Keymap, TerminalInput};
use crate::markdown::{Rendered, wrap};
use crate::screen::Caret;
use crate::text::{Color, Style, StyledLine, clean_line};

/// The most rows of items that are shown at once.
const SHOWN: usize = 10;

/// The most rows of the preview.
const PREVIEW: usize = 8;

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    /// The argument for the command; empty closes the list.
    value: String,
    label: String,
    detail: String,
    preview: Vec<String>,
}

/// The result of an input.
#[derive(Debug, PartialEq, Eq)]
pub enum PickerStep {
    /// The list remains open.
    Stay,
    Close,
    /// Runs the chosen command.
    Run(String),
    /// Runs this command, which answers with another list.
    Search(String),
}

#[derive(Debug)]
pub struct Picker {
    command: String,
    title: String,
    items: Vec<Item>,
    selected: usize,
    query: String,
    /// True if the command searches; otherwise the labels are filtered.
    is_searchable: bool,
    /// The search whose answer is awaited.
    pub asked: Option<PromptId>,
}

impl Picker {
    /// The list in the result of a command; none if it offers none.
    pub fn from_result(result: &CommandResult) -> Option<Self> {
        let CommandResultBody::Dialog { data, .. } = &result.body else { return None };
        let data: Value = serde_json::from_str(data.as_str()).ok()?;
        let text = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).map(clean_line).unwrap_or_default()
        };
        let lines = |value: &Value| -> Vec<String> {
            let lines = value.get("preview").and_then(Value::as_array);
            lines.into_iter().flatten().filter_map(Value::as_str).map(clean_line).collect()
        };
        let items = data.get("items")?.as_array()?.iter().map(|item| Item {
            value: text(item, "value"),
            label: text(item, "label"),
            detail: text(item, "detail"),
            preview: lines(item),
        });
        Some(Self {
            command: text(&data, "command"),
            title: text(&data, "title"),
            items: items.collect(),
            selected: 0,
            query: text(&data, "query"),
            is_searchable: data.get("searchable").and_then(Value::as_bool).unwrap_or_default(),
            asked: None,
        })
    }

    /// Takes over the entries that a search found.
    pub fn update(&mut self, found: Self) {
        self.title = found.title;
        self.items = found.items;
        self.selected = 0;
        self.asked = None;
    }

    /// True if nothing can be chosen and nothing searched.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.query.is_empty()
    }

    fn matching_items(&self) -> Vec<&Item> {
        let query = self.query.to_lowercase();
        let matches = |item: &&Item| self.is_searchable || item.label.to_lowercase().contains(&query);
        self.items.iter().filter(matches).collect()
    }

    pub fn input(&mut self, input: &TerminalInput, keymap: &Keymap) -> PickerStep {
        let TerminalInput::Key(key) = input else { return PickerStep::Stay };
        let count = self.matching_items().len();
        match (keymap.action(*key), key.code) {
            (Some(KeyAction::Up), _) => self.selected = (self.selected + count.max(1) - 1) % count.max(1),
            (Some(KeyAction::Down | KeyAction::Complete), _) => {
                self.selected = (self.selected + 1) % count.max(1);
            }
            (Some(KeyAction::PageUp), _) => self.selected = self.selected.saturating_sub(SHOWN),
            (Some(KeyAction::PageDown), _) => {
                self.selected = (self.selected + SHOWN).min(count.saturating_sub(1));
            }
            (Some(KeyAction::Submit), _) => {
                let value = self.matching_items().get(self.selected).map(|item| item.value.clone());
                return match value {
                    Some(value) => self.choose(&value),
                    None => PickerStep::Stay,
                };
            }
            (Some(KeyAction::Interrupt | KeyAction::Cancel | KeyAction::Quit), _) => {
                return PickerStep::Close;
            }
            (Some(KeyAction::Backspace), _) => {
                self.query.pop();
                return self.searched();
            }
            (None, KeyCode::Char(c)) if !key.ctrl && !key.alt => {
                self.query.push(c);
                return self.searched();
            }
            _ => {}
        }
        PickerStep::Stay
    }

    /// Chooses by number, in line mode.
    pub fn line(&self, text: &str) -> PickerStep {
        let number = text.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match number.and_then(|number| self.items.get(number)) {
            Some(item) => self.choose(&item.value),
            None => PickerStep::Close,
        }
    }

    fn choose(&self, value: &str) -> PickerStep {
        if value.is_empty() {
            PickerStep::Close
        } else {
            PickerStep::Run(format!("{} {value}", self.command))
        }
    }

    fn searched(&mut self) -> PickerStep {
        self.selected = 0;
        if self.is_searchable {
            PickerStep::Search(format!("{} {}", self.command, self.query).trim_end().to_owned())
        } else {
            PickerStep::Stay
        }
    }

    /// The entries as numbered lines.
    pub fn numbered(&self) -> Vec<String> {
        let mut lines = vec![self.title.clone()];
        for (n, item) in self.items.iter().enumerate() {
            lines.push(format!("{}. {} {}", n + 1, item.label, item.detail).trim_end().to_owned());
            lines.extend(item.preview.iter().map(|line| format!("   {line}")));
        }
        lines.push("Enter a number; anything else closes the list.".to_owned());
        lines
    }

    /// The rows of the list, at most `height` if possible. The query is in the second.
    pub fn rows(&self, columns: usize, height: usize) -> Vec<StyledLine> {
        let shown = self.matching_items();
        let mut rows = vec![StyledLine::styled(self.title.clone(), Style::color(Color::Yellow).bold())];
        rows.push(StyledLine::styled(format!("search: {}", self.query), Style::PLAIN));
        if shown.is_empty() {
            rows.push(StyledLine::styled("nothing found", Style::DIM));
        }
        let room = height.saturating_sub(3).clamp(1, SHOWN);
        let first = (self.selected + 1).saturating_sub(room);
        for (n, item) in shown.iter().enumerate().skip(first).take(room) {
            let style = if n == self.selected { Style::REVERSE } else { Style::PLAIN };
            let mut row = StyledLine::styled(item.label.clone(), style);
            if !item.detail.is_empty() {
                row.push(format!("  {}", item.detail), Style::DIM);
            }
            rows.push(row);
        }
        let left = height.saturating_sub(rows.len() + 1);
        if let Some(item) = shown.get(self.selected) {
            let line = |text: &String| Rendered::prose(StyledLine::styled(text, Style::color(Color::Cyan)));
            let lines = item.preview.iter().map(line).collect();
            let mut preview = wrap(lines, Some(columns.saturating_sub(1).max(1)));
            let most = left.min(PREVIEW);
            if preview.len() > most {
                let hidden = preview.len() - most.saturating_sub(1);
                preview.truncate(most.saturating_sub(1));
                preview.push(StyledLine::styled(format!("({hidden} more lines)"), Style::DIM));
            }
            rows.extend(preview);
        }
        rows.push(StyledLine::styled("enter chooses, esc closes", Style::DIM));
        rows
    }

    /// The caret, behind the query.
    pub fn caret(&self) -> Caret {
        Caret { row: 1, column: crate::text::width(&format!("search: {}", self.query)) }
    }
}
