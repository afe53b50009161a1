//! The live region: current activity and the composer.

use super::{Activity, Terminal};
use crate::editor::layout;
use crate::input::KeyAction;
use crate::markdown::{Rendered, highlight, render, wrap};
use crate::overlay::TranscriptView;
use crate::screen::{Caret, Picture};
use crate::text::{Color, Style, StyledLine, clean, clean_line, colored, width};
use crate::view::{seconds, summary, todo_lines};

/// The composer takes at most one part in this many of the screen.
const COMPOSER_SHARE: usize = 2;

/// The maximum number of visible suggestions.
const SUGGESTIONS: usize = 8;

/// The most columns that the names of suggestions take before their descriptions.
const LABEL: usize = 24;

impl Terminal {
    /// The desired content of the live region.
    pub(super) fn picture(&mut self) -> Picture {
        if self.phase.is_quitting() {
            return Picture::default();
        }
        let columns = self.options.columns;
        let height = self.options.rows.saturating_sub(1).max(1);
        let mut bottom = Vec::new();
        let composer = layout(&self.composer.editor, "> ", columns, (height / COMPOSER_SHARE).max(1));
        let mut caret = composer.caret;
        let mut has_caret = true;
        self.questions.begin_frame();
        if self.questions.is_open() {
            let panel = self.questions.panel(columns, height.saturating_sub(1), self.now);
            has_caret = panel.caret.is_some();
            caret = panel.caret.unwrap_or_default();
            bottom.extend(panel.rows);
        } else if let Some(picker) = &self.picker {
            caret = picker.caret();
            bottom.extend(picker.rows(columns, height.saturating_sub(1)));
        } else if let Some(search) = &self.composer.search {
            let found = self.composer.history.search(&search.text, search.skip).unwrap_or_default();
            let line = format!("search: {}", search.text);
            caret = Caret { row: 0, column: width(&line) };
            bottom.push(StyledLine::plain(line));
            bottom.push(StyledLine::styled(clean_line(found), Style::color(Color::Cyan)));
            let mut keys = StyledLine::styled("enter takes it", Style::DIM);
            if let Some(key) = self.options.keymap.keys(KeyAction::HistorySearch).first() {
                let _ = keys.push_if_fits(&format!(", {key} goes to an older one"), Style::DIM, columns);
            }
            let _ = keys.push_if_fits(", esc closes", Style::DIM, columns);
            bottom.push(keys);
        } else {
            bottom.extend(composer.rows);
            self.push_suggestions(&mut bottom);
        }
        if height > 3 {
            bottom.push(self.footer());
        }
        bottom.truncate(height);
        let mut rows_above_composer = self.rows_above_composer(height - bottom.len());
        let cut = (rows_above_composer.len() + bottom.len()).saturating_sub(height);
        rows_above_composer.drain(..cut.min(rows_above_composer.len()));
        caret.row += rows_above_composer.len();
        rows_above_composer.extend(bottom);
        Picture { rows: rows_above_composer, caret: has_caret.then_some(caret) }
    }

    /// The rows above the composer, at most `room` of them if possible.
    fn rows_above_composer(&mut self, room: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        if self.phase.turn().is_some() {
            rows.extend(self.open_answer(room));
            for running in &self.work.running {
                let spent = seconds(self.now.saturating_sub(running.since));
                let head = StyledLine::styled(format!("{} ", self.marks.current), Style::color(Color::Blue))
                    .with(summary(&running.call), Style::BOLD)
                    .with(format!(" {spent}"), Style::DIM);
                rows.push(head);
                if let Some(inside) = &running.inside {
                    rows.push(StyledLine::styled(format!("  {inside}"), Style::DIM));
                }
                rows.extend(running.tail.iter().map(|line| colored(line)));
                if !running.partial.is_empty() {
                    rows.push(colored(&running.partial));
                }
            }
        }
        if self.work.show_tasks {
            if self.phase.turn().is_some() && !self.work.todos.is_empty() {
                rows.extend(todo_lines(&self.work.todos, self.marks).into_iter().map(|line| line.line));
            }
            for (_, task) in &self.work.tasks {
                rows.push(StyledLine::styled(
                    format!("{} {task}", self.marks.current),
                    Style::color(Color::Blue),
                ));
            }
        }
        rows.extend(self.status());
        let columns = self.options.columns;
        let waiting = |text: String, style: Style| {
            let mut row = StyledLine::styled(text, style);
            let _ = row.push_if_fits(" (up takes it back)", Style::DIM, columns);
            row
        };
        for steer in &self.work.steers {
            let text = format!("joins the turn: {}", clean_line(&steer.text));
            rows.push(waiting(text, Style::color(Color::Cyan)));
        }
        for queued in &self.work.queue {
            rows.push(waiting(format!("queued: {}", clean_line(&queued.text)), Style::DIM));
        }
        if let Some((text, _)) = &self.status.notice {
            rows.push(StyledLine::styled(text.clone(), Style::color(Color::Yellow)));
        }
        if !self.questions.is_open() && self.questions.len() > 0 {
            let keys = self.options.keymap.keys(KeyAction::Question);
            rows.extend(self.questions.banner(keys.first().map(String::as_str)));
        }
        rows
    }

    /// The last rows of the unfinished answer.
    fn open_answer(&self, room: usize) -> Vec<StyledLine> {
        // Only the end of a huge block is rendered, at least a byte for each cell.
        let limit = room.min(self.options.rows / 2).max(1);
        let rest = self.output.answer.rest(limit.saturating_mul(self.options.columns).max(1));
        if rest.trim().is_empty() {
            return Vec::new();
        }
        let columns = self.options.columns.saturating_sub(1).max(1);
        let mut rows = match self.output.answer.language() {
            Some(language) => vec![highlight(language, &clean(&rest))],
            None => wrap(render(&rest), Some(columns)),
        };
        let cut = rows.len().saturating_sub(limit);
        rows.drain(..cut);
        rows
    }

    /// What the turn waits for, and for how long. Keys are named as far as there is room.
    fn status(&self) -> Vec<StyledLine> {
        let Some(turn) = self.phase.turn() else { return Vec::new() };
        let columns = self.options.columns;
        let spent = seconds(self.now.saturating_sub(turn.since));
        let what = match &turn.activity {
            Activity::Ending => "Interrupting".to_owned(),
            _ if self.questions.len() > 0 => "Waiting for your answer".to_owned(),
            _ if !self.work.hooks.is_empty() => {
                let names: Vec<&str> = self.work.hooks.iter().map(|(_, name)| name.as_str()).collect();
                format!("Running the hook {}", names.join(", "))
            }
            Activity::Model => format!("Waiting for {}", self.options.model),
            Activity::Thinking => {
                let last = self.work.thought.trim_end().rsplit('\n').next().unwrap_or_default();
                let room = columns.saturating_sub("Thinking:  00m 00s · esc ".len()).min(60);
                format!("Thinking: {}", shortened(&clean_line(last), room, self.marks.ellipsis))
            }
            Activity::Answer => "Answering".to_owned(),
            Activity::Writing(tool) => format!("Preparing {tool}"),
            Activity::Tools => {
                format!("Running {} {}", self.work.running.len(), plural("call", self.work.running.len()))
            }
            Activity::Retry(text) => text.clone(),
        };
        let mut line = StyledLine::styled(what, Style::color(Color::Magenta));
        line.push(format!(" {spent}"), Style::DIM);
        // While a question is open the keys are its own.
        if turn.activity != Activity::Ending && !self.questions.is_open() {
            let mut name =
                |text: &str| line.push_if_fits(&format!(" {} {text}", self.marks.dot), Style::DIM, columns);
            let _ = name("esc interrupts") || name("esc ends it") || name("esc");
            if self.has_running_command()
                && let Some(key) = self.options.keymap.keys(KeyAction::Background).first()
            {
                name(&format!("{key} to the background"));
            }
        }
        wrap(vec![Rendered::prose(line)], Some(columns.saturating_sub(1).max(1)))
    }

    fn push_suggestions(&self, rows: &mut Vec<StyledLine>) {
        let (suggestions, selected) = self.composer.completion.list();
        let first = (selected + 1).saturating_sub(SUGGESTIONS);
        let shown = || suggestions.iter().enumerate().skip(first).take(SUGGESTIONS);
        let labels: Vec<String> = shown().map(|(_, suggestion)| clean_line(&suggestion.label)).collect();
        // The descriptions begin in the same column, unless a long name leaves no room for them.
        let widest = labels.iter().map(|label| width(label)).max().unwrap_or_default().min(LABEL);
        for ((n, suggestion), label) in shown().zip(labels) {
            let style = if n == selected { Style::REVERSE } else { Style::PLAIN };
            let gap = widest.saturating_sub(width(&label)) + 2;
            let mut line = StyledLine::styled(label, style);
            if let Some(about) = &suggestion.description {
                line.push(format!("{:gap$}{}", "", clean_line(about)), Style::DIM);
            }
            rows.push(line);
        }
        if suggestions.len() > SUGGESTIONS {
            let last = first + SUGGESTIONS;
            let note = format!("({}-{last} of {}, down shows more)", first + 1, suggestions.len());
            rows.push(StyledLine::styled(note, Style::DIM));
        }
    }

    /// Lists all keys on the whole screen: there are more than a small one has rows.
    pub(super) fn show_help(&mut self) {
        let columns = self.options.columns;
        let line = |action: &KeyAction| {
            let keys = self.options.keymap.keys(*action).join(" ");
            let line = StyledLine::styled(format!("{keys}: "), Style::color(Color::Cyan));
            Rendered::prose(line.with(action.description(), Style::PLAIN))
        };
        let lines = wrap(KeyAction::ALL.iter().map(line).collect(), Some(columns.saturating_sub(1).max(1)));
        let lines: Vec<Rendered> = lines.into_iter().map(Rendered::logical).collect();
        self.overlay = Some(TranscriptView::of_lines(&lines, columns, self.options.rows));
    }

    /// Prints the last answer again, at the current width of the terminal.
    pub(super) fn print_last_answer(&mut self) {
        if self.phase.turn().is_some() || self.output.last_answer.is_empty() {
            return;
        }
        let source = std::mem::take(&mut self.output.last_answer);
        let mut stream = crate::markdown::Stream::default();
        let mut blocks = stream.push(&source);
        blocks.extend(stream.finish());
        self.print_answer(blocks);
        self.output.last_answer = source;
    }
}

/// The text, or its beginning and a mark where it is longer than `room` characters.
fn shortened(text: &str, room: usize, mark: &str) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(mark.chars().count())).collect();
    format!("{}{mark}", kept.trim_end())
}

fn plural(word: &str, count: usize) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}
