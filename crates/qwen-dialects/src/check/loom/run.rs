//! One run: its nodes, their output, and the reply that it must end with.

use super::super::digest::Digest;
use super::super::report::Report;
use super::thoughts::Thoughts;
use super::tools::Tools;
use crate::loom::custom::{Custom, CustomValue};
use crate::loom::wire::Body;

/// A run in progress.
#[derive(Default)]
pub(super) struct Run {
    /// True once any event arrived.
    any: bool,
    /// True once an event arrived that occurs only in a run.
    has_started: bool,
    /// True if the stream shows node runs, so that events which belong to a node must be inside one.
    shows_nodes: bool,
    /// True if an event that belongs to a node arrived before any node was shown.
    before_nodes: bool,
    position: Position,
    /// The text of the last node run.
    text: Digest,
    /// The text of the last node run that wrote any.
    last_message: Option<Digest>,
    /// The node run that wrote, if node runs are not shown.
    writer: Option<Box<str>>,
    tools: Tools,
    thoughts: Thoughts,
    ended: Option<Ended>,
    /// True if a command was executed, whose output is the reply.
    answers_command: bool,
}

/// The position of the run in the graph.
#[derive(Default)]
enum Position {
    /// Before the first node.
    #[default]
    Before,
    Inside(Node),
    /// After a node, with the kinds of state that arrived since.
    Behind(Node, State),
}

struct Node {
    name: Box<str>,
    node_id: Option<Box<str>>,
}

#[derive(Default)]
struct State {
    values: bool,
    updates: bool,
    /// The state in `values`, to compare `updates` with.
    announced: Option<Digest>,
}

/// The reported end of the run.
#[derive(Clone, Copy, PartialEq)]
enum Ended {
    /// There is no answer.
    Failed,
    /// There may be a partial answer.
    Limited,
}

impl Run {
    /// A run that was announced.
    pub(super) fn announced() -> Self {
        Self { has_started: true, ..Self::default() }
    }

    /// True if the run must still end with a reply.
    pub(super) fn needs_reply(&self) -> bool {
        self.has_started
    }

    /// True if the run may end with a reply; `announced` says whether the stream announces runs.
    pub(super) fn may_reply(&self, announced: bool) -> bool {
        self.has_started || self.answers_command || self.any && !announced
    }

    pub(super) fn event(&mut self, node_id: Option<&str>, body: &Body<'_>, report: &mut Report) {
        if self.ended.is_some() {
            report.error("run-end", "after `custom` of kind `run_end` there is only the reply");
        }
        let is_state = matches!(body, Body::Values { .. } | Body::Updates { .. });
        let is_border = matches!(body, Body::NodeEnter { .. });
        // In `got_expand` the thought id replaces the node run; events about the session belong to no node.
        let elsewhere = is_free(body) && node_id.is_none();
        if !is_border && !elsewhere && !matches!(body, Body::GotExpand { .. }) {
            self.judge_node_id(node_id, is_state, report);
        }
        self.has_started |= !is_free(body);
        self.any = true;
        match body {
            Body::NodeEnter { id } => {
                self.thoughts.enter(id);
                self.enter(id, node_id, report);
            }
            Body::NodeExit { id, .. } => self.exit(id, report),
            Body::MessageChunk { content, id } => {
                self.check_inside_node("message_chunk", Some(id), report);
                self.chunk(node_id, content);
            }
            Body::Usage { prompt_tokens, completion_tokens, total_tokens } => {
                self.check_inside_node("usage", None, report);
                if prompt_tokens.checked_add(*completion_tokens) != Some(*total_tokens) {
                    let sum = format!("{prompt_tokens} + {completion_tokens}");
                    report.error("usage", format!("`total_tokens` is {total_tokens}, not {sum}"));
                }
            }
            Body::Values { state } => self.state("values", None, state.as_str(), report),
            Body::Updates { id, state } => self.state("updates", Some(id), state.as_str(), report),
            Body::Custom { value: CustomValue::Known(custom) } => match custom.as_ref() {
                Custom::RunEnd { status } => self.run_end(status, report),
                Custom::Command { .. } => self.answers_command = true,
                _ => {}
            },
            Body::Checkpoint(checkpoint) => {
                if !is_rfc3339(&checkpoint.timestamp) {
                    let message = format!("{:?} is not an RFC 3339 time", checkpoint.timestamp);
                    report.error("timestamp", message);
                }
            }
            Body::ToolCallChunk { .. }
            | Body::ToolCall(_)
            | Body::ToolStart { .. }
            | Body::ToolOutput { .. }
            | Body::ToolEnd { .. }
            | Body::ToolApproval(_) => {
                self.check_inside_node("an event of a tool call", None, report);
                self.tools.event(body, report);
            }
            Body::RunStart { .. } | Body::Custom { .. } => {}
            step => self.thoughts.step(step, report),
        }
    }

    pub(super) fn reply(&mut self, reply: &str, report: &mut Report) {
        if let Position::Inside(node) = &self.position {
            report.error("node", format!("the reply comes before the `node_exit` of {:?}", node.name));
        }
        self.tools.must_be_ended("the reply", report);
        let reply = Digest::compute(reply);
        let (last, last_message) = (self.text, self.last_message);
        match self.ended {
            Some(Ended::Failed) if !reply.is_empty() => {
                report.error("reply-text", "after a run that failed the reply is empty");
            }
            Some(Ended::Failed) => {}
            _ => {
                let Some(last_message) = last_message else { return };
                let at_limit = self.ended == Some(Ended::Limited) && reply.is_empty();
                if reply != last_message && reply != last && !at_limit {
                    report.error(
                        "reply-text",
                        format!(
                            "the reply ({} bytes) is not the joined chunks of the last node run that wrote ({} bytes)",
                            reply.length(),
                            last_message.length()
                        ),
                    );
                }
            }
        }
    }

    fn enter(&mut self, id: &str, node_id: Option<&str>, report: &mut Report) {
        if std::mem::take(&mut self.before_nodes) {
            report.error(
                "node",
                format!("text, usage or a tool event came before {id:?}, the first node, was entered"),
            );
        }
        self.shows_nodes = true;
        if let Position::Inside(open) = &self.position {
            let message = format!("{id:?} is entered before the `node_exit` of {:?}", open.name);
            report.error("node", message);
        }
        self.text = Digest::default();
        self.position = Position::Inside(Node { name: id.into(), node_id: node_id.map(Into::into) });
    }

    fn exit(&mut self, id: &str, report: &mut Report) {
        self.shows_nodes = true;
        match std::mem::take(&mut self.position) {
            Position::Inside(node) => {
                if *node.name != *id {
                    let message = format!("{id:?} is left, but the node that was entered is {:?}", node.name);
                    report.error("node", message);
                }
                self.position = Position::Behind(node, State::default());
            }
            elsewhere => {
                report.error("node", format!("{id:?} is left without having been entered"));
                self.position = elsewhere;
            }
        }
        self.tools.must_be_ended("the end of its node", report);
    }

    /// Checks that an event which belongs to a node is inside one, and inside the one that it names.
    fn check_inside_node(&mut self, what: &str, names: Option<&str>, report: &mut Report) {
        match &self.position {
            Position::Inside(node) => {
                if let Some(name) = names.filter(|name| **name != *node.name) {
                    let message = format!("the `{what}` names the node {name:?} inside {:?}", node.name);
                    report.error("node", message);
                }
            }
            _ if self.shows_nodes => report.error("node", format!("{what} outside of any node")),
            _ => self.before_nodes = true,
        }
    }

    fn state(&mut self, kind: &str, names: Option<&str>, json: &str, report: &mut Report) {
        if !self.shows_nodes {
            return;
        }
        let Position::Behind(node, state) = &mut self.position else {
            report.error("state", format!("`{kind}` comes right after a `node_exit`, not here"));
            return;
        };
        if let Some(name) = names.filter(|name| **name != *node.name) {
            report.error("state", format!("`updates` of {name:?} after the exit of {:?}", node.name));
        }
        let again = match kind {
            "values" => std::mem::replace(&mut state.values, true) || state.updates,
            _ => std::mem::replace(&mut state.updates, true),
        };
        let digest = canonical(json);
        if kind == "values" {
            state.announced = digest;
        } else if state.announced.is_some() && state.announced != digest {
            report.error("state", "`updates` has another state than the `values` before it");
        }
        if again {
            report.error("state", "after a `node_exit` come `values` and then `updates`, one of each");
        }
    }

    /// Checks that the lines of a node run, and the state after it, have its id.
    fn judge_node_id(&self, node_id: Option<&str>, is_state: bool, report: &mut Report) {
        let node = match &self.position {
            Position::Inside(node) => node,
            Position::Behind(node, _) if is_state => node,
            _ => return,
        };
        if node.node_id.as_deref() != node_id {
            let shown = |id: Option<&str>| id.map_or("none".to_owned(), |id| format!("{id:?}"));
            report.error(
                "node-id",
                format!(
                    "`node_id` is {} in the run of {:?}, which was entered with {}",
                    shown(node_id),
                    node.name,
                    shown(node.node_id.as_deref())
                ),
            );
        }
    }

    fn chunk(&mut self, node_id: Option<&str>, content: &str) {
        if !self.shows_nodes && self.writer.as_deref() != node_id {
            self.writer = node_id.map(Into::into);
            self.text = Digest::default();
        }
        self.text.add(content);
        self.last_message = Some(self.text);
    }

    fn run_end(&mut self, status: &str, report: &mut Report) {
        // A run that could not even begin ends this way too.
        self.has_started = true;
        self.ended = match status {
            "done" => None,
            "error" | "cancelled" | "interrupted" => Some(Ended::Failed),
            _ => Some(Ended::Limited),
        };
        if let Position::Inside(node) = &self.position {
            report.error("node", format!("the run ends before the `node_exit` of {:?}", node.name));
        }
    }
}

/// A digest of a JSON value that is independent of key order and white space.
fn canonical(json: &str) -> Option<Digest> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    Some(Digest::compute(&value.to_string()))
}

/// True if `body` may occur outside of a run.
pub(super) fn is_free(body: &Body<'_>) -> bool {
    match body {
        Body::Custom { value: CustomValue::Known(custom) } => {
            !matches!(custom.as_ref(), Custom::Thought { .. })
        }
        Body::Custom { value: CustomValue::Other(_) } => true,
        _ => false,
    }
}

/// True if `text` is a date and a time with a zone.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let pattern = b"dddd-dd-ddTdd:dd:dd";
    let Some((head, rest)) = bytes.split_at_checked(pattern.len()) else { return false };
    let fits = head.iter().zip(pattern).all(|(byte, wanted)| match wanted {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b' '),
        other => byte == other,
    });
    let zone = match rest.strip_prefix(b".") {
        None => rest,
        Some(fraction) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
    };
    let is_zone = matches!(zone, b"Z" | b"z")
        || matches!(zone, [b'+' | b'-', h1, h2, b':', m1, m2] if [h1, h2, m1, m2].iter().all(|d| d.is_ascii_digit()));
    fits && is_zone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_other_texts() {
        for good in ["2025-02-13T07:02:03Z", "2025-02-13T07:02:03.045+01:00"] {
            assert!(is_rfc3339(good), "{good}");
        }
        for bad in [
            "",
            "1739430123",
            "2025-02-13",
            "2025-02-13T07:02:03",
            "2025-02-13T07:02:03.Z",
            "2025-02-13T07:02:03é",
        ] {
            assert!(!is_rfc3339(bad), "{bad}");
        }
    }
}
