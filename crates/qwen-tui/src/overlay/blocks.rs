//! The blocks of a transcript, each with its source text.

use std::collections::HashMap;
use std::sync::Arc;

use qwen_events::{
    Body, CallId, Event, PromptId, ToolCall, ToolEnd, ToolStatus, call_progress, channel_events,
    graph_events, message_pieces, notices,
};

use crate::markdown::{Rendered, render};
use crate::text::{Color, Style, StyledLine, clean, clean_line};
use crate::view::{Marks, OutputLimit, ThoughtTree, command_result, error, finished_call, summary, turn_end};

/// Follows the prompt of a rewound turn.
const REWOUND: &str = " (rewound)";

/// A block of the transcript.
#[derive(Debug)]
pub(super) struct Block {
    /// The text that a copy yields: the source, not its rendering.
    pub(super) source: String,
    /// The line that is shown while the block is folded.
    title: StyledLine,
    rendered: Vec<Rendered>,
    pub(super) is_folded: bool,
}

impl Block {
    pub(super) fn lines(&self) -> Vec<StyledLine> {
        if self.is_folded {
            let mut title = self.title.clone();
            let count = self.rendered.len();
            let lines = if count == 1 { "line" } else { "lines" };
            title.push(format!(" ({count} {lines}, f unfolds)"), Style::DIM);
            return vec![title];
        }
        self.rendered.iter().map(|line| line.line.clone()).collect()
    }
}

pub(super) fn block(source: &str, rendered: Vec<Rendered>) -> Block {
    let title = rendered.first().map(|line| line.line.clone()).unwrap_or_default();
    Block { source: source.to_owned(), title, rendered, is_folded: false }
}

/// The blocks of these events: complete, with thoughts folded. The prompts of `rewound` turns are marked: the
/// conversation no longer contains those turns.
pub(super) fn blocks(events: &[Event], rewound: &[PromptId], marks: Marks) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut thoughts = ThoughtTree::default();
    let mut started: HashMap<CallId, Arc<ToolCall>> = HashMap::new();
    for event in events.iter().filter(|event| event.scope.parent.is_none() && event.scope.thought.is_none()) {
        match &event.body {
            Body::TurnStart(start) => {
                thoughts = ThoughtTree::default();
                let is_rewound = rewound.contains(&start.prompt_id);
                let style = if is_rewound { Style::DIM } else { Style::BOLD };
                let text = clean(&start.message);
                let prompt = |line: &str| {
                    Rendered::logical(StyledLine::styled("> ", Style::color(Color::Cyan)).with(line, style))
                };
                let mut lines: Vec<Rendered> = text.lines().map(prompt).collect();
                if let Some(last) = lines.last_mut().filter(|_| is_rewound) {
                    last.line.push(REWOUND, Style::DIM);
                }
                blocks.push(block(&start.message, lines));
            }
            Body::MessageEnd(end) => {
                if !end.thought.trim().is_empty() {
                    let mut thought = block(&end.thought, render(&end.thought));
                    thought.title = StyledLine::styled("Thought", Style::DIM);
                    thought.is_folded = true;
                    blocks.push(thought);
                }
                if !end.text.trim().is_empty() {
                    blocks.push(block(&end.text, render(&end.text)));
                }
            }
            Body::ToolStart(call) => {
                started.insert(call.id.clone(), call.clone());
            }
            Body::ToolEnd(end) => {
                let started = started.remove(&end.call.id).unwrap_or_else(|| end.call.clone());
                blocks.push(call_block(end, &started, marks));
            }
            Body::Thinking(step) => blocks.push(block("", thoughts.lines(step, marks))),
            Body::CommandResult(result) => {
                let lines = command_result(result, marks);
                if !lines.is_empty() {
                    let source: Vec<String> = lines.iter().map(|line| line.line.text()).collect();
                    blocks.push(block(&source.join("\n"), lines));
                }
            }
            Body::Error(info) => blocks.push(block(&info.message, error(info, marks))),
            Body::TurnEnd(end) => {
                let lines = turn_end(end, None, marks);
                if !lines.is_empty() {
                    blocks.push(block("", lines));
                }
            }
            Body::Ready
            | graph_events!()
            | message_pieces!()
            | call_progress!()
            | Body::Session(_)
            | notices!()
            | Body::History(_)
            | Body::Custom(_)
            | channel_events!()
            | Body::Fatal(_) => {}
        }
    }
    blocks
}

/// The block of a finished call. `started` is the call as it ran.
fn call_block(end: &ToolEnd, started: &ToolCall, marks: Marks) -> Block {
    let all = OutputLimit { lines: usize::MAX, rest: String::new() };
    let mut lines = finished_call(end, Some(started), marks, &all);
    let mut source = end.text.to_string();
    if lines.len() == 1 {
        let shown = clean(&end.text);
        lines.extend(shown.lines().map(|line| Rendered::logical(StyledLine::plain(line))));
    }
    if source.is_empty() {
        source = clean_line(&lines[0].line.text());
    }
    let mut call = block(&source, lines);
    let mark = if end.status == ToolStatus::Success { marks.call } else { marks.failure };
    call.title = StyledLine::styled(format!("{mark} {}", summary(started)), Style::BOLD);
    call.is_folded = call.rendered.len() > 40;
    call
}
