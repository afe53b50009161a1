//! `edit`: replaces an exact piece of a file; as `MultiEdit` of Claude's vocabulary, several pieces of one file.

mod multiple;
mod nearest;

use std::path::Path;

use qwen_events::{
    Argument, ArgumentRole, ArgumentValue, ClaudeTool, Confirmation, ToolCall, ToolDeclaration, ToolKind,
};

use self::nearest::{DifferenceKind, LineDifference, Nearest, nearest};
use super::change::{self, ChangedFile, PlannedChange, Precondition};
use crate::declared::{DeclaredTool, tool_input};
use crate::output::content::{Text, with_crlf};
use crate::refusal::Refusal;
use crate::{Arguments, CallContext, Outcome, ToolFuture};

/// How many occurrences of an ambiguous `old_string` are listed.
const MAX_LISTED_OCCURRENCES: usize = 10;
/// Longest part of a line that is quoted in an error, in characters, and how much of it precedes a difference.
const QUOTED_LINE: usize = 160;
const QUOTED_BEFORE: usize = 60;
/// How many characters locate the beginning of a text in a line that contains it.
const LOCATING: usize = 12;

const DESCRIPTION: &str = "Replaces text in a file. old_string must occur exactly once, white space included and \
without line numbers: include enough surrounding lines to make it unique, or set replace_all to replace every \
occurrence. An empty old_string creates a file with new_string as its content. The result shows the changed lines; if \
the file had changed since you last saw it, it also shows how.";

pub(super) struct Edit;

tool_input! {
    struct Input {
        file_path: String = Argument::new(ArgumentValue::NonBlankText, "The file, absolute or relative to the workspace.").role(ArgumentRole::Path),
        old_string: String = Argument::new(ArgumentValue::Text, "The exact text to replace; empty to create a file."),
        new_string: String = Argument::new(ArgumentValue::Text, "The replacement text."),
        replace_all: Option<bool> = Argument::new(ArgumentValue::Flag, "Replace every occurrence. Default false."),
    }
}

impl DeclaredTool for Edit {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("edit", ToolKind::Edit, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["edit_file", "replace"])
            .claude(&[ClaudeTool::with_name("Edit"), multiple::CLAUDE]);

    fn confirmation(call: &ToolCall, cx: &CallContext) -> Option<Confirmation> {
        change::confirmation(plan, call, cx)
    }

    fn check(call: &ToolCall, cx: &CallContext) -> Option<Outcome> {
        change::check(plan, Self::DECLARATION, call, cx)
    }

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        change::apply(plan, call, cx)
    }
}

/// Computes the new content and the message for the model.
fn plan(call: &ToolCall, cx: &CallContext) -> Result<PlannedChange, Refusal> {
    if multiple::is_asked_for(call) {
        return multiple::plan(call, cx);
    }
    let (input, arguments) = Input::parse(call)?;
    let edit = Replacement {
        old: &input.old_string,
        new: &input.new_string,
        replace_all: input.replace_all.unwrap_or(false),
    };
    let file = ChangedFile::open(&input.file_path, Precondition::None, cx)?;
    let edited = edit.apply(file.before.as_ref(), &file.shown, &arguments)?;
    refuse_several_in_changed_file(&file, edited.count)?;
    let shown = file.shown.display();
    let summary = match (&file.before, edited.count) {
        (None, _) => format!("Created {shown}"),
        (Some(_), 0) => format!("Filled the empty file {shown}"),
        (Some(_), 1) => format!("Edited {shown}"),
        (Some(_), count) => format!("Edited {shown}: {count} occurrences"),
    };
    Ok(PlannedChange { after: edited.text, summary, file })
}

/// Refuses to replace several occurrences in a file that has changed since the model saw it: the model may
/// not know all of them.
fn refuse_several_in_changed_file(file: &ChangedFile, count: usize) -> Result<(), Refusal> {
    if count < 2 || !file.has_foreign_change() {
        return Ok(());
    }
    let text = format!(
        "{} has changed since you last saw it, and old_string is in it {count} times now. Nothing was changed. Read it again, \
         then decide.",
        file.shown.display()
    );
    Err(Refusal::new("file_changed", text))
}

/// One piece of text and what takes its place.
struct Replacement<'a> {
    old: &'a str,
    new: &'a str,
    replace_all: bool,
}

/// A text after a replacement.
struct Edited {
    text: String,
    /// How many occurrences were replaced; none in a new or empty file.
    count: usize,
}

impl Replacement<'_> {
    /// Replaces the piece in `before`, the content of the file `shown`; none if the file does not exist.
    fn apply(&self, before: Option<&Text>, shown: &Path, arguments: &Arguments) -> Result<Edited, Refusal> {
        let shown_path = shown.display();
        let Some(before) = before else {
            if !self.old.is_empty() {
                let text = format!("{shown_path} does not exist. To create it, give an empty old_string.");
                return Err(Refusal::new("file_not_found", text));
            }
            return Ok(Edited { text: self.new.to_owned(), count: 0 });
        };
        if self.old.is_empty() && before.body.is_empty() {
            return Ok(Edited { text: self.new.to_owned(), count: 0 });
        }
        if self.old.is_empty() {
            let problem = format_args!(
                "is empty, which creates a file, but {shown_path} exists; give the text to replace"
            );
            return Err(arguments.refuse("old_string", problem).into());
        }
        if self.old == self.new {
            let problem = "is the same as old_string, so nothing would change";
            return Err(arguments.refuse("new_string", problem).into());
        }
        if before.lossy {
            let text = format!(
                "{shown_path} holds bytes that are not UTF-8, which an edit would destroy. Use a shell command such \
                 as sed."
            );
            return Err(Refusal::new("binary_file", text));
        }
        let (text, count) = replace(before, self.old, self.new, self.replace_all, shown)?;
        Ok(Edited { text, count })
    }
}

/// Replaces one occurrence or all of them. Returns the new text and the number of replacements.
fn replace(
    before: &Text,
    old: &str,
    new: &str,
    replace_all: bool,
    shown: &Path,
) -> Result<(String, usize), Refusal> {
    let crlf = before.is_crlf();
    let mut old = old.to_owned();
    let mut new = if crlf { with_crlf(new) } else { new.to_owned() };
    let mut places: Vec<usize> = before.body.match_indices(&old).map(|(at, _)| at).collect();
    if places.is_empty() && before.body.contains("\r\n") {
        // Models are shown CRLF but write LF.
        old = with_crlf(&old);
        new = with_crlf(&new);
        places = before.body.match_indices(&old).map(|(at, _)| at).collect();
    }
    match places.len() {
        0 => Err(Refusal::new("edit_no_match", no_match(&before.body, &old, shown))),
        count if count > 1 && !replace_all => Err(Refusal::new(
            "edit_ambiguous",
            format!(
                "old_string is in {} {count} times ({}). Include more of the surrounding lines, or set replace_all.",
                shown.display(),
                lines_of(&before.body, &places)
            ),
        )),
        count => Ok((before.body.replace(&old, &new), count)),
    }
}

fn lines_of(text: &str, places: &[usize]) -> String {
    let mut lines: Vec<String> = places
        .iter()
        .take(MAX_LISTED_OCCURRENCES)
        .map(|&at| {
            format!("line {}", text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count() + 1)
        })
        .collect();
    if places.len() > MAX_LISTED_OCCURRENCES {
        lines.push("…".to_owned());
    }
    lines.join(", ")
}

fn no_match(text: &str, old: &str, shown: &Path) -> String {
    let missing = format!("old_string is not in {}", shown.display());
    match nearest(text, old) {
        None => format!("{missing}, and nothing like it is. Read the file again."),
        Some(Nearest { line, piece, only_white_space, first_difference }) => {
            let why = if only_white_space { ", which differs in white space only" } else { "" };
            let difference = first_difference.map(|difference| describe_difference(&difference));
            let difference = difference.unwrap_or_default();
            format!(
                "{missing}. The nearest text is at line {line}{why}:\n{piece}{difference}\nCopy old_string exactly from \
                 the file."
            )
        }
    }
}

/// One line about the first difference between the file and `old_string`.
fn describe_difference(LineDifference { line, kind }: &LineDifference) -> String {
    match kind {
        DifferenceKind::Text { file: None, wanted } => format!(
            "\nThe first difference is in line {line}: the file has no further line, old_string has {}.",
            quote(wanted, None)
        ),
        DifferenceKind::Text { file: Some(file), wanted } => {
            let (in_file, in_wanted) = first_difference(file, wanted);
            format!(
                "\nThe first difference is in line {line}: the file has {}, old_string has {}.",
                quote(file, Some(in_file)),
                quote(wanted, Some(in_wanted))
            )
        }
        DifferenceKind::LineEnd { file: "" } => format!(
            "\nThe first difference is at the end of line {line}: it is the last line of the file and has no line end, but \
             old_string has one there."
        ),
        DifferenceKind::LineEnd { file } => format!(
            "\nThe first difference is at the end of line {line}, which is `{}` unlike that of other lines of this piece. \
             Replace the lines one by one.",
            file.escape_default()
        ),
    }
}

/// Returns where two lines differ first, as numbers of characters. The file's line may contain more before the text.
fn first_difference(file: &str, wanted: &str) -> (usize, usize) {
    let beginning: String = wanted.chars().take(LOCATING).collect();
    let offset = file.find(&beginning).map_or(0, |at| file[..at].chars().count());
    let common = file.chars().skip(offset).zip(wanted.chars()).take_while(|(file, wanted)| file == wanted);
    let common = common.count();
    (offset + common, common)
}

/// Quotes a line around its character `at`, so that white space and characters that look like others are visible.
fn quote(line: &str, at: Option<usize>) -> String {
    let start = at.filter(|&at| at >= QUOTED_LINE).map_or(0, |at| at - QUOTED_BEFORE);
    let mut visible = if start > 0 { "…".to_owned() } else { String::new() };
    let mut characters = line.chars().enumerate().skip(start);
    for (position, character) in characters.by_ref().take(QUOTED_LINE) {
        // A difference may be between characters that look the same, such as a Latin and a Cyrillic letter.
        let differs = at == Some(position) && !character.is_ascii() && !is_ideographic(character);
        if differs || is_invisible(character) {
            visible.extend(character.escape_default());
        } else {
            visible.push(character);
        }
    }
    if characters.next().is_some() {
        visible.push('…');
    }
    format!("`{visible}`")
}

/// True for white space other than the space, and for characters that are not seen on their own: control and format
/// characters and combining marks.
fn is_invisible(character: char) -> bool {
    let is_white = character != ' ' && (character.is_whitespace() || character.is_control());
    is_white
        || matches!(character,
            '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{fe0e}' | '\u{fe0f}' | '\u{feff}')
}

/// True for characters of scripts in which an escape sequence would hide more than it shows.
fn is_ideographic(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(before: &str, old: &str, new: &str, all: bool) -> Result<(String, usize), String> {
        let refused = |refusal: Refusal| crate::Outcome::from(refusal).text;
        replace(&Text::decode(before.into()), old, new, all, Path::new("f")).map_err(refused)
    }

    #[test]
    fn an_exact_piece_is_replaced_once_or_everywhere() {
        assert_eq!(edited("a b c", "b", "x", false), Ok(("a x c".to_owned(), 1)));
        assert_eq!(edited("b b\nb", "b", "x", true), Ok(("x x\nx".to_owned(), 3)));
        assert_eq!(edited("aaa", "aa", "b", true), Ok(("ba".to_owned(), 1)));
        assert_eq!(
            edited("b\nc\nb", "b", "x", false),
            Err("old_string is in f 2 times (line 1, line 3). Include more of the surrounding lines, or set replace_all."
                .to_owned())
        );
    }

    #[test]
    fn line_ends_stay_as_the_file_has_them() {
        for (before, old, new, after) in [
            ("a\r\nb\r\n", "a\nb", "x\ny", "x\r\ny\r\n"),
            ("a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "x", "x\r\n"),
            ("a\nb\r\nc\n", "b\nc", "x\ny", "a\nx\r\ny\n"),
            ("a\nb\r\nc\n", "a", "x\ny", "x\ny\nb\r\nc\n"),
        ] {
            assert_eq!(edited(before, old, new, false), Ok((after.to_owned(), 1)), "{before:?} {old:?}");
        }
    }

    #[test]
    fn a_piece_that_is_not_there_is_answered_with_the_nearest() {
        let text = "fn one() {}\n\nfn two() {\n    body();\n}\n";
        let error = edited(text, "fn two() {\n  body();\n}", "x", false).unwrap_err();
        assert!(
            error.contains("line 3, which differs in white space only:\nfn two() {\n    body();\n}\n"),
            "{error}"
        );
        let error = edited(text, "fn tvo() {", "x", false).unwrap_err();
        assert!(error.contains("nearest text is at line 3:\nfn two() {\n"), "{error}");
        assert!(
            error.contains(
                "first difference is in line 3: the file has `fn two() {`, old_string has `fn tvo() {`."
            ),
            "{error}"
        );
        let error = edited(text, "fn two() {\n\tbody();\n}", "x", false).unwrap_err();
        assert!(
            error.contains(
                "first difference is in line 4: the file has `    body();`, old_string has `\\tbody();`."
            ),
            "{error}"
        );
        let error = edited("a\nlast", "last\n", "x\n", false).unwrap_err();
        assert!(error.contains("at the end of line 2: it is the last line of the file"), "{error}");
        let error = edited("one\r\ntwo\nthree\r\n", "one\ntwo\nthree", "x", false).unwrap_err();
        assert!(error.contains("at the end of line 2, which is `\\n` unlike"), "{error}");
        let error = edited("let x = 1; // more\n", "let x = 1;\n", "x", false).unwrap_err();
        assert!(error.contains("the file has `let x = 1; // more`, old_string has `let x = 1;`."), "{error}");
        let error = edited(text, "%%%%", "x", false).unwrap_err();
        assert!(error.contains("nothing like it"), "{error}");
    }

    #[test]
    fn a_difference_is_shown_where_it_is_and_as_what_it_is() {
        let difference = |file: &str, wanted: &str| {
            let error = edited(file, wanted, "", false).unwrap_err();
            let (_, difference) = error.split_once("the file has ").unwrap_or_default();
            difference.lines().next().unwrap_or_default().to_owned()
        };
        for (file, wanted, shown) in [
            ("zero\u{200b}width", "zerowidth", "`zero\\u{200b}width`, old_string has `zerowidth`."),
            (
                "a cafe\u{301} in town",
                "a caf\u{e9} in town",
                "`a cafe\\u{301} in town`, old_string has `a caf\\u{e9} in town`.",
            ),
            ("v\u{430}lue = 1", "value = 1", "`v\\u{430}lue = 1`, old_string has `value = 1`."),
            ("日本語 text", "日木語 text", "`日本語 text`, old_string has `日木語 text`."),
        ] {
            assert_eq!(difference(file, wanted), shown);
        }
        let line = |value: &str| format!("{}{value};{}", "a = 1; ".repeat(50), "b = 2; ".repeat(50));
        let shown = difference(&line("needle(1)"), &line("needle(2)"));
        assert!(shown.contains("needle(1)") && shown.contains("needle(2)") && shown.len() < 500, "{shown}");
        let rest = format!("}} {}", line("needle(1)"));
        let shown = difference(&rest, &line("needle(2)"));
        assert!(shown.contains("needle(1)") && shown.contains("needle(2)"), "{shown}");
    }
}
