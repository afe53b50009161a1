//! A question as rows of the live region.

use super::{Mode, Presentation, Questions};
use crate::editor::{Editor, layout};
use crate::markdown::{Rendered, wrap};
use crate::screen::Caret;
use crate::text::{Color, Style, StyledLine};

/// The rows of a question.
#[derive(Debug, Default)]
pub struct Panel {
    pub rows: Vec<StyledLine>,
    /// The caret, while text is being written.
    pub caret: Option<Caret>,
}

impl Questions {
    /// The line that announces an open question, and the key that goes to it.
    pub fn banner(&self, key: Option<&str>) -> Option<StyledLine> {
        let question = self.first()?;
        let count = if self.len() > 1 { format!(" (1 of {})", self.len()) } else { String::new() };
        let key = key.map(|key| format!(" - {key} to answer")).unwrap_or_default();
        let text = format!("? {}{count}{key}", question.title);
        Some(StyledLine::styled(text, Style::color(Color::Yellow).bold()))
    }

    /// The open question in at most `height` rows: the answers are always visible, the subject scrolls.
    pub fn panel(&mut self, columns: usize, height: usize) -> Panel {
        let (Presentation::Open { scroll, mode, .. }, Some(question)) =
            (&mut self.presentation, self.waiting.front())
        else {
            return Panel::default();
        };
        let mut head =
            StyledLine::styled(format!("? {}", question.title), Style::color(Color::Yellow).bold());
        if self.waiting.len() > 1 {
            head.push(format!(" (1 of {})", self.waiting.len()), Style::DIM);
        }
        if let Mode::Choosing(_) = mode {
            let _ = head.push_if_fits("  esc leaves it open", Style::DIM, columns);
        }
        let mut rows = vec![head];
        let who = if question.from_agent { "A sub-agent asks: " } else { "" };
        if !question.reason.is_empty() || question.from_agent {
            rows.extend(hint(&format!("{who}{}", question.reason), columns));
        }
        let mut panel = Panel::default();
        let mut bottom = Vec::new();
        match mode {
            Mode::Form => {
                if let Some(form) = &question.form {
                    let (asked, title) = form.current();
                    bottom.extend(cut(&StyledLine::styled(title, Style::BOLD), columns));
                    for (n, (label, about)) in asked.options.iter().enumerate() {
                        let mark = if form.chosen.contains(&n) {
                            "[x] "
                        } else if asked.several {
                            "[ ] "
                        } else {
                            ""
                        };
                        let style = if n == form.cursor { Style::REVERSE } else { Style::PLAIN };
                        let mut line = StyledLine::styled(format!("{}. {mark}{label}", n + 1), style);
                        if !about.is_empty() {
                            line.push(format!("  {about}"), Style::DIM);
                        }
                        bottom.push(line);
                    }
                    let sign = format!("{}. ", asked.options.len() + 1);
                    if form.is_writing() {
                        write(&form.words, &sign, columns, &mut bottom, &mut panel);
                    } else {
                        bottom.push(StyledLine::styled(format!("{sign}something else"), Style::DIM));
                    }
                    let keys = if asked.several {
                        "space marks, enter confirms"
                    } else {
                        "a number or enter answers"
                    };
                    let keys = format!("{keys}, esc leaves the question open");
                    bottom.extend(hint(&keys, columns));
                }
            }
            Mode::Rule { editor, always } => {
                let place =
                    if *always { "Always allow (saved to your settings):" } else { "Allow in this session:" };
                bottom.push(StyledLine::styled(place, Style::BOLD));
                write(editor, "> ", columns, &mut bottom, &mut panel);
                bottom.extend(hint("enter saves the rule and says yes, esc goes back", columns));
            }
            Mode::Objecting(editor) => {
                bottom.push(StyledLine::styled("No, and tell the model:", Style::BOLD));
                write(editor, "> ", columns, &mut bottom, &mut panel);
                bottom.extend(hint("enter says no with this message, esc goes back", columns));
            }
            Mode::Choosing(selected) => {
                if let Some(rule) = &question.rule {
                    bottom.extend(cut(&StyledLine::styled(format!("rule: {rule}"), Style::DIM), columns));
                }
                let mut line = StyledLine::default();
                for choice in question.choices().iter().copied() {
                    let style = if choice == *selected { Style::REVERSE } else { Style::PLAIN };
                    let text = format!("{} {}", choice.key(), question.label(choice));
                    if line.width() + text.len() + 2 >= columns && !line.spans.is_empty() {
                        bottom.push(std::mem::take(&mut line));
                    }
                    if !line.spans.is_empty() {
                        line.push("  ", Style::PLAIN);
                    }
                    line.push(text, style);
                }
                bottom.push(line);
            }
        }
        let subject: Vec<StyledLine> =
            question.subject.iter().flat_map(|line| cut(&line.line, columns)).collect();
        let room = height.saturating_sub(rows.len() + bottom.len());
        let fits = subject.len() <= room;
        let shown = if fits { subject.len() } else { room.saturating_sub(1) };
        *scroll = (*scroll).min(subject.len().saturating_sub(shown));
        rows.extend(subject.iter().skip(*scroll).take(shown).cloned());
        if !fits {
            let last = *scroll + shown;
            let note = format!("lines {}-{last} of {}", *scroll + 1, subject.len());
            let mut note = StyledLine::styled(note, Style::DIM);
            let _ = note.push_if_fits("; v shows all", Style::DIM, columns);
            let _ = note.push_if_fits(", up and down scroll", Style::DIM, columns);
            rows.push(note);
        }
        let above = rows.len();
        rows.extend(bottom);
        if let Some(caret) = &mut panel.caret {
            caret.row += above;
        }
        panel.rows = rows;
        panel
    }
}

fn write(editor: &Editor, sign: &str, columns: usize, rows: &mut Vec<StyledLine>, panel: &mut Panel) {
    let layout = layout(editor, sign, columns, 5);
    panel.caret = Some(Caret { row: rows.len() + layout.caret.row, column: layout.caret.column });
    rows.extend(layout.rows);
}

/// A reason, or words about keys, wrapped by words.
fn hint(text: &str, columns: usize) -> Vec<StyledLine> {
    let line = Rendered::prose(StyledLine::styled(text, Style::DIM));
    wrap(vec![line], Some(columns.saturating_sub(1).max(1)))
}

/// Splits a line into rows that leave the last column free: inside the live region nothing is omitted and
/// nothing wraps automatically.
fn cut(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    crate::text::cut(line, columns.saturating_sub(1))
}
