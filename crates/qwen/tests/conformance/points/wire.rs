//! What the dialects call the same things.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use mock_model::MockModel;
use mock_model::process::Program;
use qwen_dialects::Dialect;
use qwen_dialects::check::{Checker, Level, Mode};
use serde_json::{Value, json};

use crate::harness::{chat, qwen};

/// A dialect and the format that it is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Qwen,
    QwenChunks,
    Claude,
    Core,
    Loom,
}

/// A mark for a worker and its children.
pub fn mark() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("points-{}-{}-", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Wire {
    fn dialect(self) -> Dialect {
        match self {
            Self::Qwen | Self::QwenChunks => Dialect::Qwen,
            Self::Claude => Dialect::Claude,
            Self::Core => Dialect::Core,
            Self::Loom => Dialect::Loom,
        }
    }

    /// A worker that asks before it does something.
    pub fn worker(self, mock: &MockModel) -> Program {
        let format = if self == Self::QwenChunks { "stream-chunk-json" } else { "stream-json" };
        let program = qwen().with_model(mock).args(["--model", "mock", "--input-format", "stream-json"]);
        let program = program
            .args(["--output-format", format, "--dialect", self.dialect().name()])
            .args(["--session-id", "s"]);
        match self {
            Self::Claude => program.args(["--include-partial-messages", "--permission-prompt-tool", "stdio"]),
            _ => program,
        }
    }

    /// A prompt as a client of this dialect says it.
    pub fn prompt(self, id: &str) -> Value {
        match self {
            Self::Claude => json!({"type": "user", "message": {"role": "user", "content": id}}),
            _ => chat(id, id),
        }
    }

    /// A yes to a question of the worker.
    pub fn answer(self, question: &Value) -> Value {
        let id = &question["request_id"];
        let hook = question.to_string().contains("hook_callback");
        match self {
            Self::Claude => {
                let yes = if hook {
                    json!({})
                } else {
                    json!({"behavior": "allow", "updatedInput": question["request"]["input"]})
                };
                json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": yes}})
            }
            _ => {
                let yes = if hook { json!({}) } else { json!({"behavior": "approve"}) };
                json!({"type": "control_response", "request_id": id, "response": {"subtype": "success", "result": yes}})
            }
        }
    }

    /// Whether a line ends a turn.
    pub fn ends_turn(self, line: &Value) -> bool {
        let kind = line["type"].as_str().unwrap_or_default();
        match self {
            Self::Qwen | Self::QwenChunks => line["metadata"]["turn"].is_object(),
            Self::Claude => kind == "result",
            Self::Core => ["finished", "error", "user_cancelled"].contains(&kind),
            Self::Loom => line.get("reply").is_some(),
        }
    }

    /// The turns that ended, by their names where the dialect has such, and how.
    pub fn ends(self, lines: &[Value]) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ends = lines.iter().filter(|line| self.ends_turn(line));
        let told = ends.map(|line| match self {
            Self::Qwen | Self::QwenChunks => {
                (text(&line["prompt_id"]), text(&line["metadata"]["turn"]["status"]))
            }
            Self::Claude => (String::new(), text(&line["subtype"])),
            _ => (String::new(), text(&line["type"])),
        });
        told.collect()
    }

    /// What is wrong with a stream.
    pub fn faults(self, stdout: &str) -> Vec<String> {
        let mut checker = Checker::new(Some(self.dialect()), Mode::Stream);
        let mut found = Vec::new();
        for line in stdout.split_inclusive('\n') {
            found.extend(checker.push_line(line.as_bytes()));
        }
        found.extend(checker.finish());
        found.retain(|finding| finding.level == Level::Error);
        found
            .into_iter()
            .map(|finding| format!("{}: [{}] {}", finding.line, finding.rule, finding.message))
            .collect()
    }

    /// The calls that were begun and not ended, or ended more than once.
    pub fn open_calls(self, lines: &[Value]) -> Vec<String> {
        let mut calls: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let mut note = |id: &Value, begun: usize, ended: usize| {
            if let Some(id) = id.as_str() {
                let call = calls.entry(id.to_owned()).or_default();
                *call = (call.0.max(begun), call.1 + ended);
            }
        };
        for line in lines {
            match (self, line["type"].as_str().unwrap_or_default()) {
                (Self::Qwen | Self::QwenChunks, "x-qwen-tool-display") => {
                    let status = line["status"].as_str().unwrap_or_default();
                    let ended = ["success", "error", "canceled"].contains(&status);
                    note(&line["tool_call_id"], usize::from(status == "executing"), usize::from(ended));
                }
                (Self::Claude, "assistant") => {
                    each(&line["message"]["content"], "tool_use", |part| note(&part["id"], 1, 0));
                }
                (Self::Claude, "user") => {
                    each(&line["message"]["content"], "tool_result", |part| note(&part["tool_use_id"], 0, 1));
                }
                (Self::Core, "tool_call_request") => note(&line["value"]["callId"], 1, 0),
                (Self::Core, "tool_call_response") => note(&line["value"]["callId"], 0, 1),
                (Self::Loom, "tool_start") => note(&line["call_id"], 1, 0),
                (Self::Loom, "tool_end") => note(&line["call_id"], 0, 1),
                _ => {}
            }
        }
        let open = calls.into_iter().filter(|(_, (begun, ended))| begun > ended || *ended > 1);
        open.map(|(id, (begun, ended))| format!("{id}: begun {begun}, ended {ended}")).collect()
    }
}

fn each(parts: &Value, kind: &str, mut with: impl FnMut(&Value)) {
    parts.as_array().into_iter().flatten().filter(|part| part["type"] == kind).for_each(&mut with);
}
