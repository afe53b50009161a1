//! A tool's result as a `user` line that its reader can take in: the SDKs refuse, or die of, lines over a limit.

use std::borrow::Cow;

use qwen_events::{Media, MediaSource, ToolEnd, ToolStatus};

use super::display::ToolOutcome;
use super::message::{Block, Content, Source, UserMessage, UserRole};
use super::stream::Stream;
use super::wire::{Message, UserLine};
use crate::line::push_line;

/// The longest line that Claude's Python SDK reads, less one: its buffer must not be full.
const LINE_LIMIT: usize = (1 << 20) - 1;
/// The longest line that Qwen's Python SDK reads, less one.
const QWEN_LINE_LIMIT: usize = (1 << 16) - 1;

impl Stream {
    /// Writes the `user` line for the end of a call.
    pub(super) fn push_tool_result(&mut self, out: &mut Vec<u8>, parent: Option<&str>, end: &ToolEnd) {
        let uuid = self.mint.next();
        let limit = if self.qwen_sdk { QWEN_LINE_LIMIT } else { LINE_LIMIT };
        let start = out.len();
        let push = |out: &mut Vec<u8>, content: Content<'_>, outcome: ToolOutcome<'_>| {
            out.truncate(start);
            push_line(
                out,
                &Message::User(UserLine {
                    uuid: Some(uuid.as_str().into()),
                    session_id: Some(self.session_id.as_str().into()),
                    parent_tool_use_id: parent.map(Cow::Borrowed),
                    message: UserMessage {
                        role: UserRole::User,
                        content: Content::Blocks(vec![Block::ToolResult {
                            tool_use_id: end.call.id.as_str().into(),
                            is_error: end.status != ToolStatus::Success,
                            content: Some(content),
                        }]),
                    },
                    tool_use_result: Some(outcome),
                    is_replay: false,
                }),
            );
            (out.len() - start).saturating_sub(limit)
        };
        if push(out, content(&end.text, &end.media), ToolOutcome::from(end)) == 0 {
            return;
        }
        // Too long: first goes what people are shown, then the images, then the middle of the text.
        let bare = || ToolOutcome { display: None, ..ToolOutcome::from(end) };
        if push(out, content(&end.text, &end.media), bare()) == 0 {
            return;
        }
        let mut text = Cow::Borrowed(end.text.as_ref());
        if !end.media.is_empty() {
            text.to_mut().push_str("\n[Images were left out: they do not fit into one line.]");
        }
        let excess = push(out, Content::Text(text.as_ref().into()), bare());
        if excess > 0 {
            let room = json_len(&text).saturating_sub(excess);
            let cut = cut_middle(&text, room, end.output_file.as_deref());
            push(out, Content::Text(cut.into()), bare());
        }
    }
}

/// A text alone, or a text and its images.
fn content<'a>(text: &'a str, media: &'a [Media]) -> Content<'a> {
    if media.is_empty() {
        return Content::Text(text.into());
    }
    let text = (!text.is_empty()).then(|| Block::Text { text: text.into() });
    Content::Blocks(text.into_iter().chain(media.iter().map(medium)).collect())
}

fn medium(media: &Media) -> Block<'_> {
    let source = match &media.source {
        MediaSource::Base64(data) => {
            Source::Base64 { media_type: media.mime_type.as_ref().into(), data: data.as_ref().into() }
        }
        MediaSource::Url(url) => Source::Url { url: url.as_ref().into() },
    };
    if media.mime_type.starts_with("image/") { Block::Image { source } } else { Block::Document { source } }
}

/// The beginning and the end of `text`, and between them a note on what is missing, in at most `room` bytes of JSON.
/// A `room` too small for the note gives the note alone.
pub(super) fn cut_middle(text: &str, room: usize, whole: Option<&str>) -> String {
    let missing = text.len();
    let note = match whole {
        Some(file) => format!(
            "\n\n[… about {missing} bytes in all; the middle is left out. The whole is in {file} …]\n\n"
        ),
        None => format!("\n\n[… about {missing} bytes in all; the middle is left out …]\n\n"),
    };
    let half = room.saturating_sub(json_len(&note)) / 2;
    let head = fitting(text.chars(), half);
    let tail = fitting(text.chars().rev(), half);
    [&text[..head], &note, &text[text.len() - tail..]].concat()
}

/// How many bytes of `chars` fit into `room` bytes of JSON.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> usize {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += json_char_len(*c);
            used <= room
        })
        .map(char::len_utf8)
        .sum()
}

/// How many bytes `text` takes inside a JSON string.
fn json_len(text: &str) -> usize {
    text.chars().map(json_char_len).sum()
}

fn json_char_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_length_in_json_is_what_serde_writes(text in any::<String>()) {
            prop_assert_eq!(json_len(&text) + 2, serde_json::to_string(&text).unwrap().len());
        }

        #[test]
        fn a_cut_text_fits_and_keeps_both_ends(text in "[a-zé\"\n\u{1}\u{1F600}]{300,600}", room in 150_usize..280) {
            let cut = cut_middle(&text, room, None);
            prop_assert!(json_len(&cut) <= room, "{} > {room}", json_len(&cut));
            prop_assert_eq!(cut.chars().next(), text.chars().next());
            prop_assert_eq!(cut.chars().last(), text.chars().last());
        }
    }
}
