//! `read_file`: reads a file, or a range of its lines.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use qwen_events::{
    Argument, ArgumentRole, ArgumentValue, ClaudeTool, FileLines, Media, MediaSource, NO_LAST_LINE_END,
    ToolCall, ToolDeclaration, ToolKind,
};

use crate::declared::{DeclaredTool, tool_input};
use crate::output::boundary::floor_boundary;
use crate::output::content::{self, Kind, Text};
use crate::output::notebook;
use crate::output::pdf::{self, PdfText};
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{CallContext, Outcome, ToolFuture};

const DEFAULT_LINES: u64 = 2000;

/// The name in Claude's vocabulary.
const CLAUDE_NAME: &str = "Read";

/// Most bytes of a text in one result.
const MAX_TEXT: usize = 60_000;

const DESCRIPTION: &str = "Reads a file of the workspace. Text is returned with line numbers, each followed by a tab \
that is not part of the line, after a header with the range and the number of lines; images (png, jpeg, gif, webp, \
bmp) are returned as images, PDF documents as their text. Returns at most 2000 lines: use offset and limit to read \
another part.";

pub(super) struct ReadFile;

tool_input! {
    struct Input {
        file_path: String = Argument::new(ArgumentValue::NonBlankText, "The file, absolute or relative to the workspace.").role(ArgumentRole::Path),
        offset: Option<u64> = Argument::new(ArgumentValue::Number { min: 0, max: u64::MAX }, "The number of the first line to read, counted from 1. Default 1."),
        limit: Option<u64> = Argument::new(ArgumentValue::Number { min: 1, max: u64::MAX }, "The maximum number of lines. Default 2000."),
    }
}

impl DeclaredTool for ReadFile {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("read_file", ToolKind::Read, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["ReadManyFiles", "view"])
            .claude(&[ClaudeTool::with_name(CLAUDE_NAME)]);

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call, cx).unwrap_or_else(Outcome::from)))
    }
}

fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let (Input { file_path, offset, limit }, _) = Input::parse(call)?;
    // Line 0 does not exist; models that count from 0 mean the first line.
    let lines = LineRange { first: offset.unwrap_or(1).max(1), limit: limit.unwrap_or(DEFAULT_LINES) };

    let workspace = Workspace::for_call(cx)?;
    let mut opened = workspace.open_file(&file_path)?;
    let real = opened.path.clone();
    let shown = workspace.display_path(&real);
    let bytes = content::read(&mut opened, shown)?;
    cx.session.ledger.note(&real, &opened.metadata, &bytes);
    match content::kind(&bytes) {
        Kind::Text => {
            let mut text = Text::decode(bytes);
            // Only Claude's vocabulary has a tool that edits cells; elsewhere a notebook is edited as text.
            let shows_cells =
                &*call.name == CLAUDE_NAME && real.extension().is_some_and(|end| end == "ipynb");
            if let Some(cells) = shows_cells.then(|| notebook::render(&text.body)).flatten() {
                text = Text { body: cells, bom: false, lossy: false };
            }
            Ok(select_lines(&text, lines, MAX_TEXT))
        }
        Kind::Image(mime_type) => {
            let media = Media {
                mime_type: mime_type.into(),
                source: MediaSource::Base64(STANDARD.encode(&bytes).into()),
            };
            let text = format!("{} is an image ({mime_type}, {} bytes).", shown.display(), bytes.len());
            Ok(Outcome { media: vec![media], ..Outcome::success(text) })
        }
        Kind::Pdf => read_pdf(&bytes, shown, lines),
        Kind::Binary => {
            Err(unreadable(shown, "a binary file", "a shell command such as file or xxd shows more"))
        }
    }
}

/// The text of a PDF document, page by page.
fn read_pdf(bytes: &[u8], shown: &Path, lines: LineRange) -> Result<Outcome, Refusal> {
    let PdfText::Pages(pages) = pdf::read_text(bytes) else {
        return Err(unreadable(
            shown,
            "an encrypted PDF document",
            "qpdf --decrypt, if it is installed, opens it",
        ));
    };
    if pages.iter().all(String::is_empty) {
        let hint = "it may consist of scanned images; pdftotext or an OCR program, if one is installed, may find more";
        return Err(unreadable(shown, "a PDF document without text that can be read here", hint));
    }
    let mut body = String::new();
    for (at, page) in pages.iter().enumerate() {
        body.push_str(&format!("--- page {} of {} ---\n{page}\n", at + 1, pages.len()));
    }
    Ok(select_lines(&Text { body, bom: false, lossy: false }, lines, MAX_TEXT))
}

fn unreadable(shown: &Path, what: &str, hint: &str) -> Refusal {
    Refusal::new("binary_file", format!("{} is {what} and cannot be shown as text; {hint}.", shown.display()))
}

/// Which lines are requested.
#[derive(Clone, Copy)]
struct LineRange {
    /// Counted from 1.
    first: u64,
    limit: u64,
}

/// Returns the requested lines with their numbers, up to `max_bytes`, after a header.
fn select_lines(text: &Text, LineRange { first, limit }: LineRange, max_bytes: usize) -> Outcome {
    let lines: Vec<&str> = text.body.split_inclusive('\n').collect();
    let start = usize::try_from(first - 1).unwrap_or(usize::MAX);
    if start >= lines.len() && start > 0 {
        return Outcome::failure(
            "invalid_arguments",
            format!("`offset` is {first}, but the file has {} lines.", lines.len()),
        );
    }
    let wanted = lines.iter().skip(start).take(usize::try_from(limit).unwrap_or(usize::MAX));
    let mut given = String::new();
    let mut end = start;
    let mut cut_line = false;
    for line in wanted {
        let line = line.trim_end_matches('\n').trim_end_matches('\r');
        if given.len() + line.len() > max_bytes {
            if end > start {
                break;
            }
            // A single line that is too long is cut.
            end += 1;
            FileLines::write_line(end, &line[..floor_boundary(line, max_bytes)], &mut given);
            cut_line = true;
            break;
        }
        end += 1;
        FileLines::write_line(end, line, &mut given);
    }
    let mut notes = Vec::new();
    if lines.is_empty() {
        notes.push("the file is empty".to_owned());
    } else if end < lines.len() {
        notes.push(format!("continue with offset {}", end + 1));
    } else if !text.body.ends_with('\n') {
        notes.push(NO_LAST_LINE_END.to_owned());
    }
    if cut_line {
        notes.push(format!("this line is longer than {max_bytes} bytes and was cut"));
    }
    if text.is_crlf() {
        notes.push("lines end with CRLF".to_owned());
    } else if text.body.contains("\r\n") {
        notes.push("some lines end with CRLF".to_owned());
    }
    if text.lossy {
        notes.push("bytes that are not UTF-8 are shown as \u{fffd}".to_owned());
    }
    let mut result = String::with_capacity(given.len() + 64);
    FileLines::write_header(start + usize::from(end > start), end, lines.len(), &notes, &mut result);
    result.push_str(&given);
    Outcome::success(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(text: &str, first: u64, limit: u64, max_bytes: usize) -> Outcome {
        select_lines(&Text::decode(text.into()), LineRange { first, limit }, max_bytes)
    }

    #[test]
    fn every_read_has_a_header_with_range_and_total_and_numbers_its_lines() {
        let text = "a\r\nb\nc\nd";
        for (first, limit, max_bytes, expected) in [
            (
                1,
                9,
                99,
                "[lines 1 to 4 of 4; the last line has no line end; some lines end with CRLF]\n1\ta\n2\tb\n3\tc\n4\td\n",
            ),
            (2, 2, 99, "[lines 2 to 3 of 4; continue with offset 4; some lines end with CRLF]\n2\tb\n3\tc\n"),
            (
                4,
                9,
                99,
                "[lines 4 to 4 of 4; the last line has no line end; some lines end with CRLF]\n4\td\n",
            ),
            (1, 9, 5, "[lines 1 to 2 of 4; continue with offset 3; some lines end with CRLF]\n1\ta\n2\tb\n"),
        ] {
            assert_eq!(select(text, first, limit, max_bytes).text, expected, "{first} {limit} {max_bytes}");
        }
        assert_eq!(select(text, 5, 1, 9).error_code, Some("invalid_arguments"));
        assert_eq!(select("", 1, 1, 9).text, "[lines 0 to 0 of 0; the file is empty]\n");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_characters() {
        assert_eq!(
            select("€€€\nx\n", 1, 9, 4).text,
            "[lines 1 to 1 of 2; continue with offset 2; this line is longer than 4 bytes and was cut]\n1\t€\n"
        );
    }
}
