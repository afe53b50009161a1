//! Conversations that a client resends in full with every request, as OpenAI-compatible clients do.

use std::sync::Arc;

use qwen_events::{CallId, Message, Part, Role};

use super::Session;

/// The normalized form in which two versions of a conversation are compared.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    /// The user's text. Our version may contain more: the files that the text refers to.
    User(Vec<Arc<str>>),
    Assistant(String),
    Call(CallId),
    Result(CallId),
}

impl Session {
    /// Merges the history that a client sent along with its prompt. Messages that the session already has are
    /// not added again, because ours contain more detail. New messages are appended. If the histories differ,
    /// the client's replaces ours.
    pub fn merge_history(&mut self, sent: Vec<Message>) {
        if sent.is_empty() {
            return;
        }
        match common_prefix_length(&self.history, &sent) {
            Some(known) => self.remember(sent.into_iter().skip(known)),
            None => self.replace_history(sent),
        }
    }
}

/// How many messages of `sent` correspond to all of `ours`; `None` if they differ. Clients may omit tool
/// calls and results.
fn common_prefix_length(ours: &[Message], sent: &[Message]) -> Option<usize> {
    let begins = |with_tools: bool| {
        let ours: Vec<Item> = ours.iter().flat_map(|message| items(message, with_tools)).collect();
        let mut rest = ours.as_slice();
        for (place, message) in sent.iter().enumerate() {
            let sent_items = items(message, with_tools);
            if rest.is_empty() && !sent_items.is_empty() {
                return Some(place);
            }
            let (same, further) = rest.split_at_checked(sent_items.len())?;
            if !same.iter().zip(&sent_items).all(|(ours, sent)| ours.covers(sent)) {
                return None;
            }
            rest = further;
        }
        rest.is_empty().then_some(sent.len())
    };
    let tells_tools = sent
        .iter()
        .flat_map(|message| &message.parts)
        .any(|part| matches!(part, Part::Call(_) | Part::Result(_)));
    begins(true).or_else(|| if tells_tools { None } else { begins(false) })
}

impl Item {
    fn covers(&self, sent: &Self) -> bool {
        match (self, sent) {
            (Self::User(ours), Self::User(sent)) => {
                let sent: String = sent.concat();
                let mut so_far = String::new();
                ours.iter().any(|part| {
                    so_far.push_str(part);
                    so_far == sent
                })
            }
            _ => self == sent,
        }
    }
}

fn items(message: &Message, with_tools: bool) -> Vec<Item> {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.clone()),
        _ => None,
    });
    let mut items = Vec::new();
    match message.role {
        Role::User => items.push(Item::User(texts.collect())),
        Role::Assistant => {
            let text: String = texts.map(|text| text.to_string()).collect();
            if !text.trim().is_empty() {
                items.push(Item::Assistant(text.trim().to_owned()));
            }
        }
        Role::Tool => {}
    }
    if with_tools {
        items.extend(message.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(Item::Call(call.id.clone())),
            Part::Result(result) => Some(Item::Result(result.call_id.clone())),
            _ => None,
        }));
    }
    items
}

#[cfg(test)]
mod tests {
    use qwen_events::{Json, ToolCall, ToolResult};

    use super::*;

    fn user(text: &str) -> Message {
        Message::text(Role::User, text)
    }

    fn assistant(text: &str) -> Message {
        Message::text(Role::Assistant, text)
    }

    fn call(id: &str) -> Message {
        let call = ToolCall::new(CallId::new(id), "glob".into(), Json::empty_object());
        Message { role: Role::Assistant, parts: vec![Part::Call(Arc::new(call))] }
    }

    fn result(id: &str) -> Message {
        let result = ToolResult {
            call_id: CallId::new(id),
            name: "glob".into(),
            text: "a".into(),
            media: Vec::new(),
            is_error: false,
        };
        Message { role: Role::Tool, parts: vec![Part::Result(result)] }
    }

    #[test]
    fn a_conversation_is_known_again_with_its_tools_and_without() {
        let ours = [user("one"), call("c1"), result("c1"), assistant("done ")];
        assert_eq!(common_prefix_length(&ours, &ours), Some(4));
        assert_eq!(common_prefix_length(&ours, &[user("one"), assistant("done")]), Some(2));
        let longer = [user("one"), assistant("done"), user("two"), assistant("2")];
        assert_eq!(common_prefix_length(&ours, &longer), Some(2));
        assert_eq!(common_prefix_length(&[], &longer), Some(0));
    }

    #[test]
    fn files_behind_the_words_do_not_make_them_others() {
        let ours =
            [Message { role: Role::User, parts: vec![Part::Text("@a".into()), Part::Text("text".into())] }];
        assert_eq!(common_prefix_length(&ours, &[user("@a")]), Some(1));
        assert_eq!(common_prefix_length(&ours, &[user("@atext")]), Some(1));
        assert_eq!(common_prefix_length(&ours, &[user("@at")]), None);
    }

    #[test]
    fn a_shorter_and_an_edited_conversation_are_others() {
        let ours = [user("one"), assistant("1"), user("two"), assistant("2")];
        assert_eq!(common_prefix_length(&ours, &ours[..2]), None);
        assert_eq!(
            common_prefix_length(&ours, &[user("one"), assistant("!"), user("two"), assistant("2")]),
            None
        );
        assert_eq!(common_prefix_length(&ours, &[user("other"), assistant("1")]), None);
        assert_eq!(
            common_prefix_length(&[user("one"), call("c1"), result("c1")], &[user("one"), call("c2")]),
            None
        );
    }
}
