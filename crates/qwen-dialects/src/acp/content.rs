//! What a call shows: text, images and diffs.

use std::borrow::Cow;

use qwen_events::{Confirmation, Display, FileDiff, Media, MediaSource, ToolCall, ToolEnd, visible_text};
use serde_json::json;

use super::sizes::{self, MAX_PART, shortened, split_at_size};
use super::wire::{ContentBlock, Location, RawJson, ToolContent};

/// A text as content of a call.
pub(super) fn text(text: &str) -> ToolContent<'_> {
    ToolContent::Content { content: ContentBlock::Text { text: shortened(text) } }
}

/// Text that is not Markdown, in a fence that no line of it can close.
pub(super) fn fenced(plain: &str) -> ToolContent<'static> {
    let plain = shortened(plain);
    let longest = plain.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let newline = if plain.ends_with('\n') { "" } else { "\n" };
    let text = format!("{fence}console\n{plain}{newline}{fence}").into();
    ToolContent::Content { content: ContentBlock::Text { text } }
}

/// An image or a mention of it, if it is too large for a line.
pub(super) fn media_block(media: &Media) -> ContentBlock<'_> {
    let mention = |what: String| ContentBlock::Text { text: what.into() };
    match &media.source {
        MediaSource::Base64(data) if !media.mime_type.starts_with("image/") => {
            mention(format!("[{}, {} bytes]", media.mime_type, data.len() / 4 * 3))
        }
        MediaSource::Base64(data) if data.len() > MAX_PART => mention(format!(
            "[image {}, {} bytes: too large to be shown]",
            media.mime_type,
            data.len() / 4 * 3
        )),
        MediaSource::Base64(data) => ContentBlock::Image {
            data: Cow::Borrowed(data),
            mime_type: Cow::Borrowed(&media.mime_type),
            uri: None,
        },
        MediaSource::Url(uri) => ContentBlock::ResourceLink {
            uri: Cow::Borrowed(uri),
            name: Cow::Borrowed(uri.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(uri)),
            mime_type: Some(Cow::Borrowed(&media.mime_type)),
        },
    }
}

/// The hunks of a change, and where each begins in the new text.
pub(super) fn diffs(change: &FileDiff) -> (Vec<ToolContent<'_>>, Vec<Location<'_>>) {
    let path = || sizes::path(&change.file_path);
    let hunks = change.hunks();
    if hunks.is_empty() {
        let old = change.original.as_deref().map(shortened);
        let diff = ToolContent::Diff { path: path(), old_text: old, new_text: shortened(&change.modified) };
        return (vec![diff], vec![Location { path: path(), line: None }]);
    }
    let (mut contents, mut locations, mut size) = (Vec::new(), Vec::new(), 0);
    for hunk in hunks {
        let side = |other: char| -> String {
            let lines = hunk.lines.iter().filter(|line| !line.starts_with([other, '\\']));
            lines.map(|line| line.get(1..).unwrap_or_default()).flat_map(|line| [line, "\n"]).collect()
        };
        let (old, new) = (side('+'), side('-'));
        size += old.len() + new.len();
        if size > MAX_PART / 2 {
            let (kept, _) = split_at_size(&new, MAX_PART / 8);
            let words = format!("Further changes are too long to be shown. The next begins:\n{kept}");
            contents.push(ToolContent::Content { content: ContentBlock::Text { text: words.into() } });
            break;
        }
        contents.push(ToolContent::Diff { path: path(), old_text: Some(old.into()), new_text: new.into() });
        locations.push(Location { path: path(), line: Some(hunk.new.0.max(1)) });
    }
    (contents, locations)
}

/// What the user judges when a call needs approval.
pub(super) fn confirmation<'a>(
    call: &'a ToolCall,
    confirmation: &'a Confirmation,
    reason: &'a str,
) -> Vec<ToolContent<'a>> {
    let mut contents = match confirmation {
        Confirmation::Edit(change) => diffs(change).0,
        Confirmation::Exec { command, .. } => vec![fenced(&visible_text(command))],
        Confirmation::Mcp { .. } => vec![fenced(&visible_text(call.arguments.as_str()))],
        Confirmation::Info { prompt, urls } => {
            let lines: Vec<&str> = std::iter::once(&**prompt).chain(urls.iter().map(|url| &**url)).collect();
            vec![fenced(&visible_text(&lines.join("\n")))]
        }
        Confirmation::Plan { plan } => vec![text(plan)],
    };
    if !reason.is_empty() && !matches!(confirmation, Confirmation::Plan { .. }) {
        contents.push(text(reason));
    }
    contents
}

/// What a call produced, and the lines that it changed.
pub(super) fn result(end: &ToolEnd, is_command: bool) -> (Vec<ToolContent<'_>>, Vec<Location<'_>>) {
    let mut locations = Vec::new();
    let mut contents = match &end.display {
        Some(Display::FileDiff(change)) => {
            let (diffs, places) = diffs(change);
            locations = places;
            diffs
        }
        Some(Display::Text(shown)) if !is_command => vec![text(shown)],
        Some(Display::Plan { plan, .. }) => vec![text(plan)],
        Some(Display::Task(task)) => vec![text(task.result.as_deref().unwrap_or(&end.text))],
        _ if end.text.is_empty() => Vec::new(),
        Some(Display::Text(_) | Display::TodoList(_)) | None if is_command => vec![fenced(&end.text)],
        Some(Display::Text(_) | Display::TodoList(_)) | None => vec![text(&end.text)],
    };
    let media = end.media.iter().take(4).map(|media| ToolContent::Content { content: media_block(media) });
    contents.extend(media);
    (contents, locations)
}

/// The result for programs.
pub(super) fn raw_output(end: &ToolEnd) -> RawJson<'static> {
    let mut output = json!({"text": shortened(&end.text)});
    if let Some(code) = end.exit_code {
        output["exitCode"] = code.into();
    }
    if let Some(code) = end.error_code {
        output["error"] = code.into();
    }
    if let Some(file) = &end.output_file {
        output["outputFile"] = (&**file).into();
    }
    RawJson(output.to_string().into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use qwen_events::DiffStat;

    use super::*;

    fn change(original: Option<&str>, modified: &str, diff: &str) -> FileDiff {
        FileDiff {
            file_name: "a".into(),
            file_path: "/w/a".into(),
            diff: diff.into(),
            original: original.map(Arc::from),
            modified: modified.into(),
            stat: DiffStat::default(),
        }
    }

    #[test]
    fn a_change_has_a_diff_and_a_location_per_hunk() {
        let diff = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n@@ -9 +9,2 @@\n 9\n+10\n";
        let change = change(Some("…"), "…", diff);
        let (contents, locations) = diffs(&change);
        let diff = |old: &'static str, new: &'static str| ToolContent::Diff {
            path: "/w/a".into(),
            old_text: Some(old.into()),
            new_text: new.into(),
        };
        assert_eq!(contents, [diff("1\n2\n", "one\n2\n"), diff("9\n", "9\n10\n")]);
        assert_eq!(locations.iter().map(|place| place.line).collect::<Vec<_>>(), [Some(1), Some(9)]);
    }

    #[test]
    fn a_new_file_has_no_old_text() {
        let change = change(None, "hi\n", "");
        let (contents, _) = diffs(&change);
        let diff = ToolContent::Diff { path: "/w/a".into(), old_text: None, new_text: "hi\n".into() };
        assert_eq!(contents, [diff]);
    }

    #[test]
    fn a_fence_cannot_be_closed_by_its_text() {
        let ToolContent::Content { content: ContentBlock::Text { text } } = fenced("a\n````\nb") else {
            panic!("not a text");
        };
        assert_eq!(text, "`````console\na\n````\nb\n`````");
    }
}
