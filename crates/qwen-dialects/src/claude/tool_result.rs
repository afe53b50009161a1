//! A tool's result as a `user` line within the reader's line limit.

use std::borrow::Cow;

use qwen_events::{Media, MediaSource, ToolEnd, ToolStatus};

use super::stream::Stream;
use super::stream::limit::{cut_middle, json_len};
use super::wire::display::ToolOutcome;
use super::wire::message::{Block, Content, Source, UserMessage, UserRole};
use super::wire::tool_output::ToolOutput;
use super::wire::{Message, UserLine};
use crate::line::push_line;

impl Stream {
    /// Writes the `user` line for the end of a call.
    pub(super) fn push_tool_result(&mut self, out: &mut Vec<u8>, parent: Option<&str>, end: &ToolEnd) {
        let uuid = self.uuids.next();
        let limit = self.longest;
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
                    tool_use_result: Some(Box::new(outcome)),
                    is_replay: false,
                }),
            );
            (out.len() - start).saturating_sub(limit)
        };
        if push(out, content(&end.text, &end.media), self.tool_outcome(end)) == 0 {
            return;
        }
        // Too long: first the display is dropped, then the images, then the middle of the text.
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

    /// How a call went, with what a host of Claude's family reads about a successful one.
    fn tool_outcome<'a>(&self, end: &'a ToolEnd) -> ToolOutcome<'a> {
        let mut outcome = ToolOutcome::from(end);
        if self.claude_host && end.status == ToolStatus::Success {
            outcome.output = ToolOutput::from_end(end);
            if matches!(outcome.output, Some(ToolOutput::Agent { .. })) {
                outcome.status = "completed".into();
            }
        }
        outcome
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
