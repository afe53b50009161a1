//! Styled lines. Only the terminal's own 16 colours are used, and never a background.

use std::borrow::Cow;

use super::{clean, grapheme_width, graphemes, width};

/// A colour of the terminal's palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// For errors and removed lines.
    Red,
    /// For success and added lines.
    Green,
    /// For questions and warnings.
    Yellow,
    /// Links and headings of groups.
    Blue,
    /// For keywords in code.
    Magenta,
    /// For code and names.
    Cyan,
}

impl Color {
    fn code(self) -> u8 {
        match self {
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Blue => 34,
            Self::Magenta => 35,
            Self::Cyan => 36,
        }
    }
}

/// The style of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// None is the terminal's default colour.
    pub color: Option<Color>,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    /// Foreground and background exchanged.
    pub reverse: bool,
    pub strike: bool,
}

impl Style {
    /// The terminal's default style.
    pub const PLAIN: Self = Self {
        color: None,
        bold: false,
        dim: false,
        italic: false,
        underline: false,
        reverse: false,
        strike: false,
    };
    pub const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub const DIM: Self = Self { dim: true, ..Self::PLAIN };
    pub const REVERSE: Self = Self { reverse: true, ..Self::PLAIN };

    pub const fn color(color: Color) -> Self {
        Self { color: Some(color), ..Self::PLAIN }
    }

    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// Writes the sequence that selects this style, regardless of the current one.
    pub fn select(self, colors: bool, out: &mut String) {
        out.push_str("\x1b[0");
        let flags = [
            (self.bold, 1),
            (self.dim, 2),
            (self.italic, 3),
            (self.underline, 4),
            (self.reverse, 7),
            (self.strike, 9),
        ];
        for (_, code) in flags.into_iter().filter(|(set, _)| *set) {
            out.push_str(&format!(";{code}"));
        }
        if let Some(color) = self.color.filter(|_| colors) {
            out.push_str(&format!(";{}", color.code()));
        }
        out.push('m');
    }
}

/// A piece of a line in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub style: Style,
}

/// One line, without a line feed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StyledLine {
    /// Its pieces. Made by [`StyledLine::push`], which cleans them.
    pub spans: Vec<Span>,
}

impl StyledLine {
    /// A line in the terminal's own look.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::styled(text, Style::PLAIN)
    }

    /// A line in one style.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self::default().with(text, style)
    }

    /// The line with a further piece.
    pub fn with(mut self, text: impl Into<String>, style: Style) -> Self {
        self.push(text, style);
        self
    }

    /// Appends a piece. Everything that a terminal would act on is removed here, so no line ever contains
    /// an untrusted escape.
    pub fn push(&mut self, text: impl Into<String>, style: Style) {
        let text = text.into();
        let text = match clean(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(cleaned) => cleaned,
        };
        let text = if text.contains('\n') { text.replace('\n', " ") } else { text };
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.spans.push(Span { text, style }),
        }
    }

    /// Appends a piece if the line then fits into the region of a terminal with `columns`. Returns whether it
    /// does.
    pub fn push_if_fits(&mut self, text: &str, style: Style, columns: usize) -> bool {
        let fits = self.width() + width(text) < columns;
        if fits {
            self.push(text, style);
        }
        fits
    }

    /// The width in cells.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    /// The text without styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Writes the line for the terminal, without a line feed.
    pub fn encode(&self, colors: bool, out: &mut String) {
        let mut styled = false;
        for span in &self.spans {
            if span.style != Style::PLAIN || styled {
                span.style.select(colors, out);
                styled = span.style != Style::PLAIN;
            }
            out.push_str(&span.text);
        }
        if styled {
            out.push_str("\x1b[0m");
        }
    }
}

impl From<&str> for StyledLine {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

/// A line in rows of at most `limit` cells.
pub fn cut(line: &StyledLine, limit: usize) -> Vec<StyledLine> {
    let limit = limit.max(2);
    let mut rows = vec![StyledLine::default()];
    let mut used = 0;
    for span in &line.spans {
        for cluster in graphemes(&span.text) {
            let (cluster, cells) =
                if cluster == "\t" { ("    ", 4) } else { (cluster, grapheme_width(cluster).0) };
            if used + cells > limit {
                rows.push(StyledLine::default());
                used = 0;
            }
            used += cells;
            if let Some(row) = rows.last_mut() {
                row.push(cluster, span.style);
            }
        }
    }
    rows
}
