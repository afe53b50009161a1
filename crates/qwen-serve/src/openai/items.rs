//! The items of a response, as they grow.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::SERVER_LABEL;
use crate::turn::{TurnOutcome, TurnStep};

/// An event of the response's stream: its type, and its other fields.
pub type ResponseEvent = (&'static str, Value);

/// Why a response is complete.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseEnd {
    Ended(TurnOutcome),
    /// The turn waits for the client: for results, or for an approval.
    Waits,
}

/// Builds the items of a response from the steps of its turn.
pub struct Items {
    pub output: Vec<Value>,
    /// Calls that have not ended: name and arguments.
    pub calls: BTreeMap<String, (String, String)>,
    host_tools: HashSet<String>,
    /// True for clients of Open Responses: the agent's own items have our prefix.
    is_open: bool,
    /// The place of the message that is written, and its text so far.
    message: Option<(usize, String)>,
    /// The place of the thoughts that are written.
    reasoning: Option<(usize, String)>,
    /// The places of the calls that are shown, by the call's id.
    shown: BTreeMap<String, usize>,
    has_calls: bool,
    id: String,
}

impl Items {
    /// The items of the response `id`. `calls` are open from the response that it continues.
    pub fn new(
        id: &str,
        calls: BTreeMap<String, (String, String)>,
        host_tools: HashSet<String>,
        is_open: bool,
    ) -> Self {
        Self {
            output: Vec::new(),
            calls,
            host_tools,
            is_open,
            message: None,
            reasoning: None,
            shown: BTreeMap::new(),
            has_calls: false,
            id: id.trim_start_matches("resp_").to_owned(),
        }
    }

    /// Takes the next step. Returns the reason why the response is complete, if it is.
    pub fn take(&mut self, step: TurnStep, out: &mut Vec<ResponseEvent>) -> Option<ResponseEnd> {
        match step {
            TurnStep::MessageStart => self.has_calls = false,
            TurnStep::Thought(text) | TurnStep::Search { description: text, .. } => self.thought(&text, out),
            TurnStep::Text(text) => self.text(&text, out),
            TurnStep::CallStart { id, name } => {
                self.has_calls = true;
                self.calls.insert(id.clone(), (name.clone(), String::new()));
                if self.host_tools.contains(&name) {
                    self.end_text(out);
                    let item = json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": "", "status": "in_progress"});
                    let place = self.add(item, out);
                    self.shown.insert(id, place);
                }
            }
            TurnStep::CallArguments { id, delta } => {
                if let Some((name, arguments)) = self.calls.get_mut(&id) {
                    arguments.push_str(&delta);
                    if self.host_tools.contains(name.as_str())
                        && let Some(place) = self.shown.get(&id)
                    {
                        out.push((
                            "response.function_call_arguments.delta",
                            json!({"item_id": format!("fc_{id}"), "output_index": place, "delta": delta}),
                        ));
                    }
                }
            }
            TurnStep::MessageEnd => {
                self.end_text(out);
                self.end_function_calls(out);
            }
            TurnStep::CallRunning { id } => self.call_runs(&id, out),
            TurnStep::CallEnd { id, status, output } => self.call_ended(&id, &status, &output, out),
            TurnStep::Approval { id, call_id, name, arguments, reason } => {
                self.end_text(out);
                let arguments = arguments.to_string();
                let item = if self.is_open {
                    json!({"type": "qwen:approval_request", "id": id, "status": "completed", "call_id": call_id, "name": name, "arguments": arguments, "reason": reason})
                } else {
                    json!({"type": "mcp_approval_request", "id": id, "server_label": SERVER_LABEL, "name": name, "arguments": arguments})
                };
                let place = self.add(item.clone(), out);
                out.push(("response.output_item.done", json!({"output_index": place, "item": item})));
                return Some(ResponseEnd::Waits);
            }
            TurnStep::Paused { .. } => return Some(ResponseEnd::Waits),
            TurnStep::End(end) => {
                self.end_text(out);
                return Some(ResponseEnd::Ended(end));
            }
            TurnStep::CallOutput { .. }
            | TurnStep::SubAgent { .. }
            | TurnStep::Todos(_)
            | TurnStep::ApprovalEnded { .. }
            | TurnStep::Notice { .. } => {}
        }
        None
    }

    /// Adds an item and returns its place.
    fn add(&mut self, item: Value, out: &mut Vec<ResponseEvent>) -> usize {
        let place = self.output.len();
        out.push(("response.output_item.added", json!({"output_index": place, "item": item})));
        self.output.push(item);
        place
    }

    fn done(&mut self, place: usize, out: &mut Vec<ResponseEvent>) {
        out.push(("response.output_item.done", json!({"output_index": place, "item": self.output[place]})));
    }

    fn thought(&mut self, text: &str, out: &mut Vec<ResponseEvent>) {
        if self.reasoning.is_none() {
            self.end_text(out);
            let id = format!("rs_{}_{}", self.id, self.output.len());
            let place =
                self.add(json!({"type": "reasoning", "id": id, "summary": [], "status": "in_progress"}), out);
            out.push(("response.reasoning_summary_part.added", json!({"item_id": id, "output_index": place, "summary_index": 0, "part": {"type": "summary_text", "text": ""}})));
            self.reasoning = Some((place, String::new()));
        }
        let Some((place, so_far)) = &mut self.reasoning else { return };
        so_far.push_str(text);
        let event = json!({"item_id": self.output[*place]["id"], "output_index": *place, "summary_index": 0, "delta": text});
        out.push(("response.reasoning_summary_text.delta", event));
    }

    fn text(&mut self, text: &str, out: &mut Vec<ResponseEvent>) {
        if self.message.is_none() {
            self.end_text(out);
            let id = format!("msg_{}_{}", self.id, self.output.len());
            let item = json!({"type": "message", "id": id, "status": "in_progress", "role": "assistant", "content": []});
            let place = self.add(item, out);
            let part = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
            out.push((
                "response.content_part.added",
                json!({"item_id": id, "output_index": place, "content_index": 0, "part": part}),
            ));
            self.message = Some((place, String::new()));
        }
        let Some((place, so_far)) = &mut self.message else { return };
        so_far.push_str(text);
        let event = json!({"item_id": self.output[*place]["id"], "output_index": *place, "content_index": 0, "delta": text, "logprobs": []});
        out.push(("response.output_text.delta", event));
    }

    /// Completes the thoughts and the message that are written.
    fn end_text(&mut self, out: &mut Vec<ResponseEvent>) {
        if let Some((place, text)) = self.reasoning.take() {
            let id = self.output[place]["id"].clone();
            let part = json!({"type": "summary_text", "text": text});
            out.push((
                "response.reasoning_summary_text.done",
                json!({"item_id": id, "output_index": place, "summary_index": 0, "text": text}),
            ));
            out.push((
                "response.reasoning_summary_part.done",
                json!({"item_id": id, "output_index": place, "summary_index": 0, "part": part}),
            ));
            self.output[place]["summary"] = json!([part]);
            self.output[place]["status"] = "completed".into();
            self.done(place, out);
        }
        if let Some((place, text)) = self.message.take() {
            let id = self.output[place]["id"].clone();
            let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
            out.push(("response.output_text.done", json!({"item_id": id, "output_index": place, "content_index": 0, "text": text, "logprobs": []})));
            out.push((
                "response.content_part.done",
                json!({"item_id": id, "output_index": place, "content_index": 0, "part": part}),
            ));
            let item = &mut self.output[place];
            item["content"] = json!([part]);
            item["status"] = "completed".into();
            item["phase"] = if self.has_calls { "commentary" } else { "final_answer" }.into();
            self.done(place, out);
        }
    }

    /// Completes the calls that the client runs: their message is complete.
    fn end_function_calls(&mut self, out: &mut Vec<ResponseEvent>) {
        let shown = std::mem::take(&mut self.shown);
        for (id, place) in shown {
            let item = &mut self.output[place];
            if item["type"] != "function_call" || item["status"] != "in_progress" {
                self.shown.insert(id, place);
                continue;
            }
            let arguments = self.calls.get(&id).map(|call| call.1.clone()).unwrap_or_default();
            item["arguments"] = arguments.as_str().into();
            item["status"] = "completed".into();
            let name = item["name"].clone();
            out.push(("response.function_call_arguments.done", json!({"item_id": format!("fc_{id}"), "output_index": place, "name": name, "arguments": arguments})));
            self.done(place, out);
        }
    }

    fn call_runs(&mut self, id: &str, out: &mut Vec<ResponseEvent>) {
        let Some((name, arguments)) = self.calls.get(id).cloned() else { return };
        if self.shown.contains_key(id) || self.host_tools.contains(&name) {
            return;
        }
        let item_id = format!("mcp_{id}");
        let item = if self.is_open {
            json!({"type": "qwen:tool_call", "id": item_id, "status": "in_progress", "name": name, "arguments": arguments, "output": null})
        } else {
            json!({"type": "mcp_call", "id": item_id, "status": "in_progress", "server_label": SERVER_LABEL, "name": name, "arguments": "", "output": null, "error": null, "approval_request_id": null})
        };
        let place = self.add(item, out);
        self.shown.insert(id.to_owned(), place);
        if !self.is_open {
            let at = json!({"item_id": item_id, "output_index": place});
            let with = |key: &str| {
                let mut event = at.clone();
                event[key] = arguments.as_str().into();
                event
            };
            out.push(("response.mcp_call.in_progress", at.clone()));
            out.push(("response.mcp_call_arguments.delta", with("delta")));
            out.push(("response.mcp_call_arguments.done", with("arguments")));
            self.output[place]["arguments"] = arguments.into();
        }
    }

    fn call_ended(&mut self, id: &str, status: &str, output: &str, out: &mut Vec<ResponseEvent>) {
        // A call that was refused never ran.
        self.call_runs(id, out);
        self.calls.remove(id);
        let Some(place) = self.shown.remove(id) else { return };
        if self.output[place]["type"] == "function_call" {
            return;
        }
        let is_success = status == "success";
        let item = &mut self.output[place];
        item["status"] = if is_success { "completed" } else { "failed" }.into();
        let key = if is_success || self.is_open { "output" } else { "error" };
        item[key] = output.into();
        if !self.is_open {
            let event = if is_success { "response.mcp_call.completed" } else { "response.mcp_call.failed" };
            out.push((event, json!({"item_id": format!("mcp_{id}"), "output_index": place})));
        }
        self.done(place, out);
    }
}
