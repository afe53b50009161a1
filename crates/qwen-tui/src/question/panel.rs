//! A question as rows of the live region.

use super::choice::QuestionView;
use super::form::Form;
use super::keys::Mode;
use super::visibility::OpenQuestion;
use super::{Presentation, Questions};
use crate::Millis;
use crate::editor::{Editor, layout};
use crate::markdown::{Rendered, wrap};
use crate::screen::Caret;
use crate::text::{Color, Style, StyledLine, visible_line, width};
use crate::view::coverage;

/// The most rows of a reason; a longer one is cut.
const REASON_ROWS: usize = 3;

/// The most rows of a rule, and of a question of the model.
const RULE_ROWS: usize = 2;

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
        let key = match (key, question.is_closed_by_user) {
            (Some(key), true) => format!(" - closed, {key} opens it"),
            (Some(key), false) => format!(" - {key} to answer"),
            (None, true) => " - closed".to_owned(),
            (None, false) => String::new(),
        };
        let text = format!("? {}{count}{key}", question.title);
        Some(StyledLine::styled(text, Style::color(Color::Yellow).bold()))
    }

    /// The open question in at most `height` rows. The answers are always visible; of a subject that does not
    /// fit, its beginning, its end and the extent of the hidden part.
    pub fn panel(&mut self, columns: usize, height: usize, now: Millis) -> Panel {
        let count = self.waiting.len();
        let (Presentation::Open(open), Some(question)) = (&mut self.presentation, self.waiting.front())
        else {
            return Panel::default();
        };
        let mut bottom = Panel::default();
        push_answers(open, question, (columns, height), &mut bottom);
        let has_answers = bottom.rows.len() <= height;
        bottom.rows.truncate(height);
        // Prose, such as a plan, is wrapped by words; commands and changes are cut where a row ends.
        let subject: Vec<StyledLine> = wrap(question.subject.clone(), Some(columns.saturating_sub(1).max(1)))
            .iter()
            .flat_map(|line| cut(line, columns))
            .collect();
        let needed = subject.len().min(3);
        let mut room = height - bottom.rows.len();
        let mut rows = Vec::new();
        if room > needed {
            rows.push(head(question, open, count, columns));
            room -= 1;
        }
        let about = explanation(question, columns);
        if room >= needed + about.len() {
            room -= about.len();
            rows.extend(about);
        }
        let is_measured = push_subject(&subject, room, columns, &mut open.scroll, &mut rows);
        open.draw(now, is_measured && has_answers);
        self.is_drawn = true;
        let above = rows.len();
        rows.extend(bottom.rows);
        let caret = bottom.caret.map(|caret| Caret { row: caret.row + above, ..caret });
        Panel { rows, caret }
    }
}

fn head(question: &QuestionView, open: &OpenQuestion, count: usize, columns: usize) -> StyledLine {
    let style = Style::color(Color::Yellow).bold();
    let mut head = first_rows(&StyledLine::styled(format!("? {}", question.title), style), columns, 1)
        .pop()
        .unwrap_or_default();
    if count > 1 {
        let _ = head.push_if_fits(&format!(" (1 of {count})"), Style::DIM, columns);
    }
    if let Mode::Choosing(_) = open.mode {
        let _ = head.push_if_fits("  esc closes it", Style::DIM, columns);
    }
    head
}

/// The rows between title and subject.
fn explanation(question: &QuestionView, columns: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    for text in question.explanation() {
        let mut part = hint(&text, columns);
        if part.len() > REASON_ROWS {
            part.truncate(REASON_ROWS);
            mark_cut(part.last_mut(), columns);
        }
        rows.extend(part);
    }
    rows
}

/// Appends the subject in at most `room` rows. Returns whether all of it is among them, or at least its
/// extent.
fn push_subject(
    subject: &[StyledLine],
    room: usize,
    columns: usize,
    scroll: &mut usize,
    rows: &mut Vec<StyledLine>,
) -> bool {
    let total = subject.len();
    if total <= room {
        *scroll = 0;
        rows.extend_from_slice(subject);
        return true;
    }
    if room < 3 {
        if room > 0 {
            rows.push(hidden(subject, total, columns));
        }
        return room > 0;
    }
    if *scroll == 0 || room < 5 {
        *scroll = (*scroll).min(1);
        let first = (room - 1).div_ceil(2);
        let last = room - 1 - first;
        rows.extend_from_slice(&subject[..first]);
        rows.push(hidden(&subject[first..total - last], total, columns));
        rows.extend_from_slice(&subject[total - last..]);
        return true;
    }
    // The first and the last row stay in view while the rest scrolls between them.
    let window = room - 4;
    let last_start = total - 1 - window;
    *scroll = (*scroll).min(last_start);
    let (start, end) = (*scroll, *scroll + window);
    rows.push(subject[0].clone());
    rows.push(hidden(&subject[1..start.max(1)], total, columns));
    rows.extend_from_slice(&subject[start.max(1)..end.max(1)]);
    rows.push(hidden(&subject[end..total - 1], total, columns));
    rows.push(subject[total - 1].clone());
    true
}

/// A row that states how much is not shown.
fn hidden(rows: &[StyledLine], total: usize, columns: usize) -> StyledLine {
    let characters: usize = rows.iter().map(|row| row.text().chars().count()).sum();
    let note = format!("({} of {total} rows hidden, {characters} characters", rows.len());
    let mut note = StyledLine::styled(note, Style::color(Color::Yellow));
    for key in ["; v shows all", ", up and down scroll"] {
        let _ = note.push_if_fits(key, Style::DIM, columns.saturating_sub(1));
    }
    note.push(")", Style::color(Color::Yellow));
    note
}

fn push_answers(
    open: &OpenQuestion,
    question: &QuestionView,
    (columns, height): (usize, usize),
    panel: &mut Panel,
) {
    match &open.mode {
        Mode::Form => {
            if let Some(form) = &question.form {
                push_form(form, columns, usize::MAX, panel);
                if panel.rows.len() > height {
                    *panel = Panel::default();
                    push_form(form, columns, 1, panel);
                }
            }
        }
        Mode::Rule { editor, always, problem } => {
            let place =
                if *always { "Always allow (saved to your settings):" } else { "Allow in this session:" };
            panel.rows.push(StyledLine::styled(place, Style::BOLD));
            write(editor, "> ", columns, panel);
            let about = match problem {
                Some(problem) => format!("This is not a rule: {problem}"),
                None => coverage(&editor.text()),
            };
            panel.rows.extend(hint(&about, columns));
            panel.rows.extend(hint("enter adds the rule and approves the call, esc goes back", columns));
        }
        Mode::Changing(editor) => {
            panel.rows.push(StyledLine::styled("Run this instead:", Style::BOLD));
            write(editor, "> ", columns, panel);
            panel.rows.extend(hint("enter runs it, esc goes back", columns));
        }
        Mode::Objecting(editor) => {
            panel.rows.push(StyledLine::styled("No, and tell the model:", Style::BOLD));
            write(editor, "> ", columns, panel);
            panel.rows.extend(hint("enter declines with this message, esc goes back", columns));
        }
        Mode::Choosing(selected) => {
            if let Some(rule) = &question.rule {
                let rule = StyledLine::styled(format!("rule: {}", visible_line(rule)), Style::DIM);
                panel.rows.extend(first_rows(&rule, columns, RULE_ROWS));
            }
            let mut line = StyledLine::default();
            for choice in question.choices().iter().copied() {
                let style = if choice == *selected { Style::REVERSE } else { Style::PLAIN };
                let text = format!("{} {}", choice.key(), question.label(choice));
                if line.width() + text.len() + 2 >= columns && !line.spans.is_empty() {
                    panel.rows.push(std::mem::take(&mut line));
                }
                if !line.spans.is_empty() {
                    line.push("  ", Style::PLAIN);
                }
                line.push(text, style);
            }
            panel.rows.push(line);
        }
    }
}

/// Appends the current question of a form, with at most `option_rows` rows for each option.
fn push_form(form: &Form, columns: usize, option_rows: usize, panel: &mut Panel) {
    let (asked, title) = form.current();
    let room = columns.saturating_sub(1).max(1);
    panel.rows.extend(wrap(vec![Rendered::prose(StyledLine::styled(title, Style::BOLD))], Some(room)));
    for (n, (label, about)) in asked.options.iter().enumerate() {
        let mark = if form.chosen.contains(&n) {
            "[x] "
        } else if asked.several {
            "[ ] "
        } else {
            ""
        };
        let style = if n == form.cursor { Style::REVERSE } else { Style::PLAIN };
        let mut line = StyledLine::styled(format!("{}. {mark}{}", n + 1, visible_line(label)), style);
        if !about.is_empty() {
            line.push(format!("  {}", visible_line(about)), Style::DIM);
        }
        let mut rows = wrap(vec![Rendered::prose(line)], Some(room));
        if rows.len() > option_rows {
            rows.truncate(option_rows);
            mark_cut(rows.last_mut(), columns);
        }
        panel.rows.extend(rows);
    }
    let sign = format!("{}. ", asked.options.len() + 1);
    if form.is_writing() {
        write(&form.words, &sign, columns, panel);
    } else {
        panel.rows.push(StyledLine::styled(format!("{sign}something else"), Style::DIM));
    }
    let keys = if asked.several { "space marks, enter confirms" } else { "a number or enter answers" };
    panel.rows.extend(hint(&format!("{keys}, esc closes the question"), columns));
}

fn write(editor: &Editor, sign: &str, columns: usize, panel: &mut Panel) {
    let layout = layout(editor, sign, columns, 5);
    panel.caret = Some(Caret { row: panel.rows.len() + layout.caret.row, column: layout.caret.column });
    panel.rows.extend(layout.rows);
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

/// The first rows of a line; a mark shows that there are more.
fn first_rows(line: &StyledLine, columns: usize, count: usize) -> Vec<StyledLine> {
    let mut rows = cut(line, columns);
    if rows.len() > count {
        rows.truncate(count);
        mark_cut(rows.last_mut(), columns);
    }
    rows
}

/// Ends a row with the mark for a cut text.
fn mark_cut(row: Option<&mut StyledLine>, columns: usize) {
    const MARK: &str = " (cut)";
    let Some(row) = row else { return };
    while row.width() + width(MARK) >= columns {
        let Some(last) = row.spans.last_mut() else { return };
        if last.text.pop().is_none() {
            row.spans.pop();
        }
    }
    row.push(MARK, Style::DIM);
}
