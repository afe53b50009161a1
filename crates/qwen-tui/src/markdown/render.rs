//! A finished block of Markdown as lines.

use std::sync::Arc;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::code::highlight;
use super::table::{join_cells, rule};
use super::{Flow, Rendered, TableRow};
use crate::text::{Color, Style, StyledLine, clean};

/// Renders Markdown as lines, without empty lines at the start and the end. Escape sequences are removed.
pub fn render(markdown: &str) -> Vec<Rendered> {
    let cleaned = clean(markdown);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = Renderer::default();
    for event in Parser::new_ext(&cleaned, options) {
        renderer.event(event);
    }
    renderer.end_line();
    while renderer.lines.last().is_some_and(|last| last.line.spans.is_empty()) {
        renderer.lines.pop();
    }
    renderer.lines
}

#[derive(Default)]
struct Renderer {
    lines: Vec<Rendered>,
    line: StyledLine,
    style: Style,
    styles: Vec<Style>,
    /// The open lists: the next number, or none for bullets.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// The language of an indented code block, while one is open.
    code: Option<String>,
    /// The target of the open link and the start of its text.
    link: Option<(String, usize)>,
    table: Option<Table>,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<StyledLine>>,
}

impl Renderer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.line.push(&*text, Style { color: Some(Color::Cyan), ..self.style }),
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => {
                self.text(&text);
            }
            Event::SoftBreak => self.line.push(" ", self.style),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.end_line();
                self.lines.push(Rendered::logical(StyledLine::styled("---", Style::DIM)));
                self.blank();
            }
            Event::TaskListMarker(done) => self.line.push(if done { "[x] " } else { "[ ] " }, self.style),
            Event::FootnoteReference(name) => self.line.push(format!("[{name}]"), self.style),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_line();
                let style = Style { underline: level == HeadingLevel::H1, ..Style::BOLD };
                self.enter(style);
            }
            Tag::Emphasis => self.enter(Style { italic: true, ..self.style }),
            Tag::Strong => self.enter(Style { bold: true, ..self.style }),
            Tag::Strikethrough => self.enter(Style { strike: true, ..self.style }),
            Tag::BlockQuote(_) => {
                self.quotes += 1;
                self.enter(Style { dim: true, ..self.style });
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_line();
                let depth = self.lists.len().saturating_sub(1);
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
                self.line.push(format!("{}{mark}", "  ".repeat(depth)), Style::PLAIN);
            }
            Tag::CodeBlock(kind) => {
                self.end_line();
                self.code = Some(match kind {
                    pulldown_cmark::CodeBlockKind::Fenced(info) => info.to_lowercase(),
                    pulldown_cmark::CodeBlockKind::Indented => String::new(),
                });
            }
            Tag::Link { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), self.line.text().len()));
                self.enter(Style { underline: true, ..self.style });
            }
            Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), self.line.text().len()));
                self.enter(self.style);
            }
            Tag::Table(_) => {
                self.end_line();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Paragraph
            | Tag::TableCell
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_line();
                if self.lists.is_empty() {
                    self.blank();
                }
            }
            TagEnd::Heading(_) => {
                self.leave();
                self.end_line();
                self.blank();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.leave(),
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.quotes = self.quotes.saturating_sub(1);
                self.leave();
            }
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.blank();
                }
            }
            TagEnd::Item => self.end_line(),
            TagEnd::CodeBlock => {
                self.code = None;
                self.blank();
            }
            TagEnd::Link | TagEnd::Image => {
                self.leave();
                if let Some((target, from)) = self.link.take()
                    && self.line.text().get(from..) != Some(target.as_str())
                {
                    // A hidden target could be any target.
                    self.line
                        .push(format!(" ({target})"), Style { color: Some(Color::Blue), ..Style::PLAIN });
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.lines.extend(table.lines());
                    self.blank();
                }
            }
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(language) = self.code.clone() {
            for line in text.lines() {
                self.lines.push(Rendered::logical(highlight(&language, line)));
            }
            return;
        }
        for (n, part) in text.split('\n').enumerate() {
            if n > 0 {
                self.end_line();
            }
            self.line.push(part, self.style);
        }
    }

    fn enter(&mut self, style: Style) {
        self.styles.push(self.style);
        self.style = style;
    }

    fn leave(&mut self) {
        self.style = self.styles.pop().unwrap_or_default();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.spans.is_empty() {
            return;
        }
        let line = if self.quotes > 0 {
            let mut quoted = StyledLine::styled("> ".repeat(self.quotes), Style::DIM);
            quoted.spans.extend(line.spans);
            quoted
        } else {
            line
        };
        self.lines.push(Rendered { line, flow: Flow::Prose });
    }

    fn blank(&mut self) {
        if self.lines.last().is_some_and(|last| !last.line.spans.is_empty()) {
            self.lines.push(Rendered::logical(StyledLine::default()));
        }
    }
}

impl Table {
    fn lines(self) -> Vec<Rendered> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(StyledLine::width).max();
        let widths: Arc<[usize]> = (0..columns).map(|column| widest(column).unwrap_or_default()).collect();
        let mut lines = Vec::new();
        for (n, mut cells) in self.rows.into_iter().enumerate() {
            if n == 0 {
                let spans = cells.iter_mut().flat_map(|cell| &mut cell.spans);
                spans.for_each(|span| span.style = span.style.bold());
            }
            let line = join_cells(&cells, &widths);
            lines.push(Rendered { line, flow: Flow::Row(TableRow { cells, widths: widths.clone() }) });
            if n == 0 {
                lines.push(Rendered { line: rule(&widths), flow: Flow::Rule(widths.clone()) });
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(markdown: &str) -> Vec<String> {
        render(markdown).iter().map(|line| line.line.text()).collect()
    }

    #[test]
    fn blocks_become_lines_without_padding() {
        assert_eq!(text("# Title\n"), ["Title"]);
        assert_eq!(text("one\ntwo **b** `c`\n"), ["one two b c"]);
        assert_eq!(text("- a\n- b\n  - c\n"), ["- a", "- b", "  - c"]);
        assert_eq!(text("3. x\n4. y\n"), ["3. x", "4. y"]);
        assert_eq!(text("> quoted\n"), ["> quoted"]);
        assert_eq!(text("| a | bb |\n|---|---|\n| ccc | d |\n"), ["a   | bb", "----|---", "ccc | d"]);
    }

    #[test]
    fn a_link_shows_where_it_leads() {
        assert_eq!(text("[here](https://example.org/x)"), ["here (https://example.org/x)"]);
        assert_eq!(text("<https://example.org>"), ["https://example.org"]);
    }

    #[test]
    fn escapes_of_the_model_do_not_survive() {
        // An entity becomes a character only when the Markdown is parsed.
        assert_eq!(text("a\x1b]0;t\x07b &#27;[2J &#x9b;2J"), ["ab [2J 2J"]);
    }
}
