//! `edit`: replaces an exact piece of a file; as `MultiEdit` of Claude's vocabulary, several pieces of one file.

mod multiple;
mod nearest;

use std::path::Path;

use qwen_events::{
    Argument, ArgumentRole, ArgumentValue, ClaudeTool, Confirmation, ToolCall, ToolDeclaration, ToolKind,
};

use self::nearest::{Nearest, nearest};
use super::change::{self, ChangedFile, PlannedChange, Precondition};
use crate::declared::{DeclaredTool, tool_input};
use crate::output::content::{Text, with_crlf};
use crate::refusal::Refusal;
use crate::{Arguments, CallContext, Outcome, ToolFuture};

/// How many occurrences of an ambiguous `old_string` are listed.
const MAX_LISTED_OCCURRENCES: usize = 10;
/// Longest part of a line that is quoted in an error, in characters.
const QUOTED_LINE: usize = 160;

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
            let difference = first_difference.map_or_else(String::new, |difference| {
                format!(
                    "\nThe first difference is in line {}: the file has {}, old_string has {}.",
                    difference.line,
                    quote(difference.file.as_deref()),
                    quote(Some(&difference.wanted))
                )
            });
            format!(
                "{missing}. The nearest text is at line {line}{why}:\n{piece}{difference}\nCopy old_string exactly from \
                 the file."
            )
        }
    }
}

/// Quotes a line so that white space is visible.
fn quote(line: Option<&str>) -> String {
    match line {
        None => "no further line".to_owned(),
        Some(line) => {
            let visible: String = line.chars().take(QUOTED_LINE).flat_map(show_white_space).collect();
            let cut = if line.chars().nth(QUOTED_LINE).is_some() { "…" } else { "" };
            format!("`{visible}{cut}`")
        }
    }
}

/// Names white space other than the space by its escape sequence.
fn show_white_space(character: char) -> impl Iterator<Item = char> {
    let escaped = (character != ' ' && (character.is_whitespace() || character.is_control()))
        .then(|| character.escape_default());
    let plain = escaped.is_none().then_some(character);
    escaped.into_iter().flatten().chain(plain)
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
        let error = edited(text, "%%%%", "x", false).unwrap_err();
        assert!(error.contains("nothing like it"), "{error}");
    }
}
