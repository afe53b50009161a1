//! Collects the output of running tools until they end.

use std::sync::Arc;

use qwen_events::{Body, CallId, Channel, Event, Scope, Timestamp, ToolCall};

/// How much of a call's output is logged, in bytes. The result for the model is logged separately and in
/// full.
const LIMIT: usize = 64 * 1024;

/// The cost of a channel change against that limit, so that many small pieces are bounded too.
const CHANGE_COST: usize = 64;

/// The text that replaces the rest in the log.
const CUT: &str = "\n[the rest of the output is not kept in the session log]\n";

/// The output of the running calls.
#[derive(Default)]
pub(super) struct Outputs(Vec<Output>);

struct Output {
    call: Arc<ToolCall>,
    at: Timestamp,
    scope: Scope,
    /// One for each run of pieces from the same channel.
    pieces: Vec<(Channel, String)>,
    room: usize,
    cut: bool,
}

impl Outputs {
    /// Adds the output in `event`.
    pub fn push(&mut self, event: &Event) {
        let Body::ToolOutput { call, channel, text } = &event.body else { return };
        let at = self.0.iter().position(|output| output.call.id == call.id).unwrap_or_else(|| {
            self.0.push(Output {
                call: call.clone(),
                at: event.at,
                scope: event.scope.clone(),
                pieces: Vec::new(),
                room: LIMIT,
                cut: false,
            });
            self.0.len() - 1
        });
        self.0[at].push(*channel, text);
    }

    /// The output of a call that ended, in few pieces.
    pub fn take(&mut self, call: &CallId) -> Vec<Event> {
        let Some(at) = self.0.iter().position(|output| output.call.id == *call) else { return Vec::new() };
        let Output { call, at, scope, pieces, .. } = self.0.swap_remove(at);
        let event = |(channel, text): (Channel, String)| Event {
            at,
            scope: scope.clone(),
            body: Body::ToolOutput { call: call.clone(), channel, text: text.into_boxed_str() },
        };
        pieces.into_iter().map(event).collect()
    }
}

impl Output {
    fn push(&mut self, channel: Channel, text: &str) {
        if self.cut {
            return;
        }
        if self.pieces.last().is_none_or(|(last, _)| *last != channel) {
            self.pieces.push((channel, String::new()));
            self.room = self.room.saturating_sub(CHANGE_COST);
        }
        let Some((_, piece)) = self.pieces.last_mut() else { return };
        let mut taken = text.len().min(self.room);
        while !text.is_char_boundary(taken) {
            taken -= 1;
        }
        piece.push_str(&text[..taken]);
        self.room -= taken;
        if taken < text.len() {
            self.cut = true;
            piece.push_str(CUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use qwen_events::Json;

    use super::*;

    fn event(channel: Channel, text: &str) -> Event {
        let call =
            Arc::new(ToolCall::new(CallId::new("call_1"), "run_shell_command".into(), Json::empty_object()));
        let body = Body::ToolOutput { call, channel, text: text.into() };
        Event { at: Timestamp(1), scope: Scope::default(), body }
    }

    fn stored(events: &[Event]) -> Vec<(Channel, String)> {
        let mut outputs = Outputs::default();
        for event in events {
            outputs.push(event);
        }
        let taken = outputs.take(&CallId::new("call_1"));
        let piece = |event: Event| match event.body {
            Body::ToolOutput { channel, text, .. } => (channel, text.into_string()),
            other => panic!("{other:?}"),
        };
        taken.into_iter().map(piece).collect()
    }

    #[test]
    fn pieces_of_one_channel_become_one() {
        let events = [
            event(Channel::Stdout, "a"),
            event(Channel::Stdout, "b"),
            event(Channel::Stderr, "!"),
            event(Channel::Stdout, "c"),
        ];
        let expected =
            [(Channel::Stdout, "ab".into()), (Channel::Stderr, "!".into()), (Channel::Stdout, "c".into())];
        assert_eq!(stored(&events), expected);
    }

    #[test]
    fn a_flood_is_cut_at_a_character_and_says_so() {
        let flood: Vec<Event> = (0..LIMIT).map(|_| event(Channel::Stdout, "ä")).collect();
        let pieces = stored(&flood);
        assert_eq!(pieces.len(), 1);
        assert!(pieces[0].1.ends_with(CUT) && pieces[0].1.len() <= LIMIT + CUT.len());
    }

    #[test]
    fn many_small_pieces_are_bounded_too() {
        let channels = [Channel::Stdout, Channel::Stderr];
        let flood: Vec<Event> = (0..10_000).map(|n| event(channels[n % 2], "x")).collect();
        assert!(stored(&flood).len() <= LIMIT / CHANGE_COST + 1);
    }
}
