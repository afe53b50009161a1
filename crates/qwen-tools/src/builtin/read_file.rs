//! `read_file`: reads a file, or a range of its lines.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use qwen_events::{
    Argument, ArgumentRole, ArgumentValue, ClaudeTool, Media, MediaSource, ToolCall, ToolDeclaration,
    ToolKind,
};

use crate::declared::{DeclaredTool, tool_input};
use crate::output::content::{self, Kind, Text};
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{CallContext, Outcome, ToolFuture};

const DEFAULT_LINES: u64 = 2000;

/// An argument that only calls in Claude's vocabulary have: `offset` is the number of the first line there.
const COUNTS_FROM_ONE: &str = "counts_from_one";

const DESCRIPTION: &str = "Gives the content of a file in the workspace: text as it is, images (png, jpeg, gif, webp, \
bmp) as images. Long files come in parts: at most 2000 lines at once, with a note that says where to read on. Use \
offset and limit to read another part.";

pub(super) struct ReadFile;

tool_input! {
    struct Input {
        file_path: String = Argument::new(ArgumentValue::NonBlankText, "The file, absolute or relative to the workspace.").role(ArgumentRole::Path),
        offset: Option<u64> = Argument::new(ArgumentValue::Number { min: 0, max: u64::MAX }, "How many lines to skip from the start. Default 0."),
        limit: Option<u64> = Argument::new(ArgumentValue::Number { min: 1, max: u64::MAX }, "How many lines to give at most. Default 2000."),
    }
}

impl DeclaredTool for ReadFile {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("read_file", ToolKind::Read, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["ReadManyFiles", "view"])
            .claude(&[ClaudeTool {
                from_one: &["offset"],
                added: &[Argument {
                    name: "pages",
                    ..Argument::new(ArgumentValue::Text, "Has no effect: pages of PDF files cannot be read.")
                }],
                defaults: &[(COUNTS_FROM_ONE, "true")],
                ..ClaudeTool::named("Read")
            }]);

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call, cx).unwrap_or_else(Outcome::from)))
    }
}

fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let (Input { file_path, offset, limit }, arguments) = Input::parse(call)?;
    let lines = LineRange {
        skipped: offset.unwrap_or(0),
        limit: limit.unwrap_or(DEFAULT_LINES),
        counts_from_one: arguments.optional_bool(COUNTS_FROM_ONE)? == Some(true),
    };

    let workspace = Workspace::of(cx)?;
    let mut opened = workspace.open_file(&file_path)?;
    let real = opened.path.clone();
    let shown = workspace.shown(&real);
    let bytes = content::read(&mut opened, shown)?;
    cx.ledger.note(&real, &opened.metadata, &bytes);
    match content::kind(&bytes) {
        Kind::Text => Ok(part(&Text::of(bytes), lines, cx.output_limit.saturating_mul(2))),
        Kind::Image(mime_type) => {
            let media = Media {
                mime_type: mime_type.into(),
                source: MediaSource::Base64(STANDARD.encode(&bytes).into()),
            };
            let text = format!("{} is an image ({mime_type}, {} bytes).", shown.display(), bytes.len());
            Ok(Outcome { media: vec![media], ..Outcome::success(text) })
        }
        Kind::Pdf => Err(unreadable(shown, "a PDF document", "pdftotext, if it is there, makes text of it")),
        Kind::Binary => {
            Err(unreadable(shown, "a binary file", "a shell command such as file or xxd tells more"))
        }
    }
}

fn unreadable(shown: &Path, what: &str, hint: &str) -> Refusal {
    Refusal::new("binary_file", format!("{} is {what} and cannot be shown as text; {hint}.", shown.display()))
}

/// Which lines are requested.
#[derive(Clone, Copy)]
struct LineRange {
    skipped: u64,
    limit: u64,
    /// True if the `offset` of the call was the number of the first line, and not how many lines to skip.
    counts_from_one: bool,
}

/// Returns the requested lines, up to `max_chars`, with a note if some are missing.
fn part(text: &Text, LineRange { skipped, limit, counts_from_one }: LineRange, max_chars: usize) -> Outcome {
    if text.body.is_empty() {
        return Outcome::success("(the file is empty)");
    }
    let lines: Vec<&str> = text.body.split_inclusive('\n').collect();
    let start = usize::try_from(skipped).unwrap_or(usize::MAX);
    if start >= lines.len() {
        return Outcome::failure(
            "invalid_arguments",
            format!("`offset` skips {skipped} lines, but the file has {} lines.", lines.len()),
        );
    }
    let wanted = lines.iter().skip(start).take(usize::try_from(limit).unwrap_or(usize::MAX));
    let mut given = String::new();
    let mut chars = 0;
    let mut end = start;
    let mut cut_line = false;
    for line in wanted {
        let length = line.chars().count();
        if chars + length > max_chars {
            if end > start {
                break;
            }
            // A single line that is too long is cut.
            given.extend(line.chars().take(max_chars).chain(['\n']));
            cut_line = true;
            end += 1;
            break;
        }
        given.push_str(line);
        chars += length;
        end += 1;
    }
    let mut notes = Vec::new();
    if start > 0 || end < lines.len() {
        notes.push(format!("lines {} to {end} of {}", start + 1, lines.len()));
    }
    if end < lines.len() {
        notes.push(format!("read on with offset {}", end + usize::from(counts_from_one)));
    }
    if cut_line {
        notes.push(format!("this line is longer than {max_chars} characters and was cut"));
    }
    if text.lossy {
        notes.push("bytes that are not UTF-8 are shown as \u{fffd}".to_owned());
    }
    if !notes.is_empty() {
        given.insert_str(0, &format!("[{}]\n", notes.join("; ")));
    }
    Outcome::success(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(skipped: u64, limit: u64, counts_from_one: bool) -> LineRange {
        LineRange { skipped, limit, counts_from_one }
    }

    fn part_of(text: &str, offset: u64, limit: u64, max_chars: usize) -> String {
        part(&Text::of(text.into()), lines(offset, limit, false), max_chars).text
    }

    #[test]
    fn a_part_says_which_lines_it_is_and_where_to_read_on() {
        let text = "a\r\nb\nc\nd";
        for (offset, limit, max_chars, expected) in [
            (0, 9, 99, "a\r\nb\nc\nd"),
            (1, 2, 99, "[lines 2 to 3 of 4; read on with offset 3]\nb\nc\n"),
            (3, 9, 99, "[lines 4 to 4 of 4]\nd"),
            (0, 9, 5, "[lines 1 to 2 of 4; read on with offset 2]\na\r\nb\n"),
            (
                0,
                9,
                2,
                "[lines 1 to 1 of 4; read on with offset 1; this line is longer than 2 characters and was cut]\na\r\n",
            ),
        ] {
            assert_eq!(part_of(text, offset, limit, max_chars), expected, "{offset} {limit} {max_chars}");
        }
        assert_eq!(part(&Text::of(text.into()), lines(4, 1, false), 9).error_code, Some("invalid_arguments"));
        assert_eq!(part_of("", 0, 1, 9), "(the file is empty)");
        let claude = part(&Text::of(text.into()), lines(1, 2, true), 99).text;
        assert!(claude.contains("[lines 2 to 3 of 4; read on with offset 4]"), "{claude}");
    }
}
