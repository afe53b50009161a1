//! `POST /v1/responses`: one response is one turn, or the part of it up to where the client must act.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::chat::{CancelGuard, tool_names};
use super::items::{Items, ResponseEnd, ResponseEvent};
use super::stored::StoredResponse;
use super::{SERVER_LABEL, agent, seconds};
use crate::api::SseWriter;
use crate::respond::{HttpReply, Refusal, event_stream, json_reply};
use crate::server::{Call, Server};
use crate::sessions::{NewPrompt, NewSession, Session};
use crate::token::random_id;
use crate::turn::{TurnOutcome, TurnReader};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponseRequest {
    model: String,
    input: Value,
    instructions: Option<String>,
    previous_response_id: Option<String>,
    store: Option<bool>,
    stream: bool,
    tools: Vec<Value>,
    background: Option<bool>,
    conversation: Value,
    metadata: Value,
}

/// What a request gives to a turn.
#[derive(Debug, Default)]
struct Given {
    /// Messages, as chat messages.
    messages: Vec<Value>,
    /// How many of the messages come before the last result or decision.
    answered: usize,
    /// Results of calls: call id and text.
    results: Vec<(String, Value)>,
    /// Decisions: approval id, whether it is approved, and the reason.
    decisions: Vec<(String, bool, Option<String>)>,
}

/// A response that is being made.
struct Making {
    server: Rc<Server>,
    session: Rc<Session>,
    reader: TurnReader,
    items: Items,
    /// The response without its output.
    response: Value,
    is_stored: bool,
}

pub async fn create(server: &Rc<Server>, mut call: Call) -> Result<HttpReply, Refusal> {
    let is_open = call.header("openresponses-version").is_some() || call.query("items") == Some("open");
    let request: ResponseRequest = call.json(server).await?;
    let is_streamed = request.stream;
    let making = start(server, request, is_open).await?;
    if is_streamed {
        let (writer, pieces) = SseWriter::new(&server.sessions);
        tokio::task::spawn_local(write(making, writer));
        return Ok(event_stream(pieces));
    }
    let guard = CancelGuard::new(&server.sessions, &making.session);
    let response = collect(making).await;
    guard.disarm();
    Ok(json_reply(StatusCode::OK, &response))
}

async fn start(server: &Rc<Server>, request: ResponseRequest, is_open: bool) -> Result<Making, Refusal> {
    let agent = agent(&request.model)?;
    let unsupported = |name: &str| {
        Refusal::bad_request("unsupported_parameter", format!("`{name}` is not supported. Leave it out."))
    };
    if request.background == Some(true) {
        return Err(unsupported("background"));
    }
    if !request.conversation.is_null() {
        return Err(unsupported("conversation"));
    }
    if request.tools.iter().any(|tool| tool["type"] != "function" && !is_own_server(tool)) {
        return Err(unsupported("tools of another type than function"));
    }
    let mut given = read_input(&request.input)?;
    let previous = previous(server, &request, &given)?;
    if previous.is_some() && request.previous_response_id.is_none() {
        // A client that repeats its history answers the last item of it; the session has what is before.
        given.messages.drain(..given.answered);
    }
    let host_tools = match &previous {
        Some((_, previous)) if request.tools.is_empty() => previous.host_tools.iter().cloned().collect(),
        _ => tool_names(&request.tools),
    };
    let (session, reader, calls) = match previous {
        Some((id, previous)) => go_on(server, &request, &given, &id, previous, &host_tools).await?,
        None => begin(server, &request, given, agent, &host_tools).await?,
    };
    let random = random_id().map_err(|error| Refusal::internal(error.to_string()))?;
    let id = format!("resp_{random:032x}");
    let response = json!({
        "id": id, "object": "response", "created_at": seconds(), "status": "in_progress",
        "model": request.model, "output": [], "error": null, "incomplete_details": null,
        "instructions": request.instructions, "metadata": if request.metadata.is_object() { request.metadata } else { json!({}) },
        "parallel_tool_calls": true, "previous_response_id": request.previous_response_id,
        "store": request.store.unwrap_or(true), "temperature": 1.0, "top_p": 1.0, "tool_choice": "auto",
        "tools": request.tools, "truncation": "disabled", "text": {"format": {"type": "text"}},
        "reasoning": {"effort": null, "summary": null}, "max_output_tokens": null, "background": false,
        "service_tier": "default", "usage": null, "user": null,
    });
    let items = Items::new(&id, calls, host_tools, is_open);
    Ok(Making {
        server: server.clone(),
        session,
        reader,
        items,
        response,
        is_stored: request.store.unwrap_or(true),
    })
}

/// Reads the input: a text, or items of any age. Of a repeated history, what is new counts.
fn read_input(input: &Value) -> Result<Given, Refusal> {
    let mut given = Given::default();
    let items = match input {
        Value::String(text) => {
            given.messages.push(json!({"role": "user", "content": text}));
            return Ok(given);
        }
        Value::Array(items) => items,
        _ => return Err(Refusal::bad_request("invalid_input", "`input` must be a text or a list of items.")),
    };
    for item in items {
        match item["type"].as_str().unwrap_or("message") {
            "message" => given.messages.push(message(item)?),
            "function_call_output" => {
                let call = item["call_id"].as_str().unwrap_or_default().to_owned();
                given.results.push((call, item["output"].clone()));
                given.answered = given.messages.len();
            }
            "mcp_approval_response" | "qwen:approval_response" => {
                let id = item["approval_request_id"].as_str().unwrap_or_default().to_owned();
                let reason = item["reason"].as_str().map(str::to_owned);
                given.decisions.push((id, item["approve"] == true, reason));
                given.answered = given.messages.len();
            }
            // Our own items come back in repeated histories; the session has them.
            _ => {}
        }
    }
    if given.messages.is_empty() && given.results.is_empty() && given.decisions.is_empty() {
        return Err(Refusal::bad_request("invalid_input", "`input` has nothing new."));
    }
    Ok(given)
}

/// A message item as a chat message.
fn message(item: &Value) -> Result<Value, Refusal> {
    let role = match item["role"].as_str() {
        Some("developer") => "system",
        Some(role @ ("user" | "assistant" | "system")) => role,
        _ => return Err(Refusal::bad_request("invalid_input", "A message must have a `role`.")),
    };
    let content = match &item["content"] {
        Value::Array(parts) => {
            parts.iter().map(content_part).collect::<Result<Vec<Value>, Refusal>>()?.into()
        }
        content => content.clone(),
    };
    Ok(json!({"role": role, "content": content}))
}

fn content_part(part: &Value) -> Result<Value, Refusal> {
    match part["type"].as_str() {
        Some("input_text" | "output_text" | "text") => Ok(json!({"type": "text", "text": part["text"]})),
        Some("input_image") => Ok(json!({"type": "image_url", "image_url": {"url": part["image_url"]}})),
        other => {
            let message = format!("Content of type '{}' is not supported.", other.unwrap_or_default());
            Err(Refusal::bad_request("invalid_input", message))
        }
    }
}

/// The response that a request continues: named, or found by what the request answers.
fn previous(
    server: &Server,
    request: &ResponseRequest,
    given: &Given,
) -> Result<Option<(String, StoredResponse)>, Refusal> {
    if let Some(id) = &request.previous_response_id {
        let found = server.responses.get(id).ok_or_else(|| {
            let message = format!("Previous response with id '{id}' not found.");
            Refusal::new(StatusCode::NOT_FOUND, "previous_response_not_found", message)
        })?;
        return Ok(Some((id.clone(), found)));
    }
    // A repeated history also has the answers of former turns.
    let by_approval = || {
        let approvals = server.sessions.approvals.borrow();
        given.decisions.iter().rev().find_map(|(id, ..)| {
            let call = approvals.get(id)?.request["metadata"]["tool_call_id"].as_str()?;
            server.responses.with_open_call(call)
        })
    };
    let by_call = || given.results.iter().rev().find_map(|(call, _)| server.responses.with_open_call(call));
    Ok(by_call().or_else(by_approval))
}

type Started = (Rc<Session>, TurnReader, BTreeMap<String, (String, String)>);

/// Starts a turn in a new session.
async fn begin(
    server: &Rc<Server>,
    request: &ResponseRequest,
    given: Given,
    agent: &str,
    host_tools: &HashSet<String>,
) -> Result<Started, Refusal> {
    if given.messages.is_empty() {
        let message = "No turn waits for these results or approvals.";
        return Err(Refusal::bad_request("nothing_to_continue", message));
    }
    let new = NewSession {
        agent: Some(agent.to_owned()),
        instructions: request.instructions.clone(),
        ..NewSession::default()
    };
    let session = server.sessions.create(new).await?;
    let reader = submit(server, &session, request, given.messages, None, host_tools).await?;
    Ok((session, reader, BTreeMap::new()))
}

/// Continues the turn of a response, or its session with a further turn.
async fn go_on(
    server: &Rc<Server>,
    request: &ResponseRequest,
    given: &Given,
    id: &str,
    mut previous: StoredResponse,
    host_tools: &HashSet<String>,
) -> Result<Started, Refusal> {
    let sessions = &server.sessions;
    let mut session = sessions.get(&previous.session)?;
    for (approval, approves, reason) in &given.decisions {
        let decision = if *approves { "allow" } else { "deny" };
        let message = reason.clone().map(|reason| ("message".to_owned(), Value::String(reason)));
        match sessions.decide(approval, decision, Map::from_iter(message)) {
            // A repeated decision changes nothing.
            Err(refusal) if refusal.fields.contains(&("decision", decision.into())) => {}
            decided => decided?,
        }
    }
    let results = results(&previous, given);
    let was_continued = std::mem::replace(&mut previous.is_continued, true);
    // A failure to store this costs at most a fork.
    let _ = server.responses.put(id, &previous);
    if !results.is_empty() {
        let prompt_id = previous.prompt_id.clone();
        let reader = submit(server, &session, request, results, Some(prompt_id), host_tools).await?;
        return Ok((session, reader, previous.open_calls));
    }
    if given.messages.is_empty() {
        let follower = sessions.follow(&session, previous.after);
        let reader = TurnReader::new(follower, previous.prompt_id, host_tools.clone());
        return Ok((session, reader, previous.open_calls));
    }
    if was_continued {
        let record = session.record.borrow().clone();
        let new = NewSession {
            workspace: record.workspace.to_str().map(str::to_owned),
            model: record.model,
            mode: record.mode,
            agent: record.agent,
            instructions: request.instructions.clone().or(record.instructions),
            fork_at: Some((session.id.clone(), previous.prompt_id.clone())),
            ..NewSession::default()
        };
        session = sessions.create(new).await?;
    }
    let reader = submit(server, &session, request, given.messages.clone(), None, host_tools).await?;
    Ok((session, reader, BTreeMap::new()))
}

/// The results of calls that the response left open, as chat messages.
fn results(previous: &StoredResponse, given: &Given) -> Vec<Value> {
    let open = given.results.iter().filter(|(call, _)| previous.open_calls.contains_key(call));
    open.map(|(call, output)| {
        let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        json!({"role": "tool", "tool_call_id": call, "content": text})
    })
    .collect()
}

async fn submit(
    server: &Rc<Server>,
    session: &Rc<Session>,
    request: &ResponseRequest,
    messages: Vec<Value>,
    continues: Option<String>,
    host_tools: &HashSet<String>,
) -> Result<TurnReader, Refusal> {
    let sessions = &server.sessions;
    let users = messages.iter().filter(|message| message["role"] == "user");
    let shown: Vec<String> = users.map(|message| super::history::content_text(&message["content"])).collect();
    let mut further = Map::new();
    further.insert("messages".to_owned(), messages.into());
    let functions = || request.tools.iter().filter(|tool| tool["type"] == "function");
    if functions().next().is_some() {
        let tools: Vec<Value> = functions().map(chat_tool).collect();
        further.insert("options".to_owned(), json!({"tools": tools}));
    }
    let prompt = NewPrompt { further, continues, ..NewPrompt::conversation(shown.join("\n")) };
    let accepted = sessions.submit(session, prompt).await?;
    let follower = sessions.follow(session, accepted.after);
    Ok(TurnReader::new(follower, accepted.prompt_id, host_tools.clone()))
}

/// True for a declaration of the server that the agent's tools are shown as. Clients declare it to receive its
/// approval requests; it adds nothing.
fn is_own_server(tool: &Value) -> bool {
    tool["type"] == "mcp" && tool["server_label"] == SERVER_LABEL
}

/// A function in the form of chat completions.
fn chat_tool(tool: &Value) -> Value {
    json!({"type": "function", "function": {
        "name": tool["name"], "description": tool["description"].as_str().unwrap_or_default(),
        "parameters": if tool["parameters"].is_object() { tool["parameters"].clone() } else { json!({"type": "object"}) },
    }})
}

impl Making {
    /// The next events of the stream; true when the response is complete.
    async fn advance(&mut self, out: &mut Vec<ResponseEvent>) -> bool {
        let step = self.reader.next().await;
        let completion = match step {
            Some(step) => self.items.take(step, out),
            None => Some(ResponseEnd::Ended(TurnOutcome {
                status: "interrupted".to_owned(),
                ..TurnOutcome::default()
            })),
        };
        let Some(completion) = completion else { return false };
        self.response["output"] = self.items.output.clone().into();
        let event = self.complete(completion);
        self.keep();
        out.push((event, json!({"response": self.response})));
        true
    }

    /// Sets the status and returns the name of the last event.
    fn complete(&mut self, completion: ResponseEnd) -> &'static str {
        let ResponseEnd::Ended(end) = completion else {
            self.response["status"] = "completed".into();
            return "response.completed";
        };
        self.response["usage"] = usage(&end.usage);
        let (status, event) = match end.status.as_str() {
            "done" => ("completed", "response.completed"),
            "cancelled" => ("cancelled", "response.incomplete"),
            "error" | "interrupted" => ("failed", "response.failed"),
            limit => {
                self.response["incomplete_details"] = json!({"reason": limit});
                ("incomplete", "response.incomplete")
            }
        };
        if let (Some((message, _)), "failed") = (&end.error, status) {
            self.response["error"] = json!({"code": "server_error", "message": message});
        }
        self.response["status"] = status.into();
        event
    }

    /// Stores the response, so that it can be continued, and retrieved if the client wants that.
    fn keep(&self) {
        let stored = StoredResponse {
            response: self.response.clone(),
            session: self.session.id.to_string(),
            prompt_id: self.reader.prompt_id().to_owned(),
            after: self.reader.last(),
            open_calls: self.items.calls.clone(),
            host_tools: self.reader.host_tools().iter().cloned().collect(),
            is_continued: false,
            is_stored: self.is_stored,
        };
        // A response that cannot be stored cannot be continued, which its client learns then.
        let _ = self.server.responses.put(self.response["id"].as_str().unwrap_or_default(), &stored);
    }
}

fn usage(usage: &Value) -> Value {
    let count = |name: &str| usage[name].as_u64().unwrap_or_default();
    json!({
        "input_tokens": count("prompt_tokens"),
        "input_tokens_details": {"cached_tokens": usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0)},
        "output_tokens": count("completion_tokens"),
        "output_tokens_details": {"reasoning_tokens": usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0)},
        "total_tokens": count("total_tokens"),
    })
}

async fn collect(mut making: Making) -> Value {
    let mut events = Vec::new();
    while !making.advance(&mut events).await {
        events.clear();
    }
    making.response
}

async fn write(mut making: Making, mut writer: SseWriter) {
    // A stored response continues without its reader, who can retrieve it.
    let mut guard = (!making.is_stored).then(|| CancelGuard::new(&making.server.sessions, &making.session));
    let mut number = 0_u64;
    let mut text = String::new();
    // It can be retrieved while it runs.
    making.keep();
    for event in ["response.created", "response.in_progress"] {
        push(&mut text, &mut number, event, json!({"response": making.response}));
    }
    let mut is_read = writer.write(std::mem::take(&mut text).into()).await;
    loop {
        let mut events = Vec::new();
        let is_complete = tokio::select! {
            is_complete = making.advance(&mut events) => is_complete,
            () = tokio::time::sleep(writer.keep_alive), if is_read => {
                is_read = writer.write(": keep-alive\n\n".into()).await;
                continue;
            }
            () = writer.closed(), if is_read => {
                is_read = false;
                if !making.is_stored { return }
                continue;
            }
        };
        for (event, fields) in events {
            push(&mut text, &mut number, event, fields);
        }
        if is_complete {
            text.push_str("data: [DONE]\n\n");
            if let Some(guard) = guard.take() {
                guard.disarm();
            }
        }
        let piece = std::mem::take(&mut text);
        if is_read && !piece.is_empty() {
            is_read = writer.write(piece.into()).await;
        }
        if is_complete {
            return;
        }
    }
}

fn push(text: &mut String, number: &mut u64, event: &str, mut fields: Value) {
    fields["type"] = event.into();
    fields["sequence_number"] = (*number).into();
    *number += 1;
    text.push_str(&format!("event: {event}\ndata: {fields}\n\n"));
}

/// A stored response that its client may retrieve.
fn stored(server: &Server, id: &str) -> Result<StoredResponse, Refusal> {
    let found = server.responses.get(id).filter(|stored| stored.is_stored);
    found.ok_or_else(|| Refusal::not_found("response"))
}

pub fn show(server: &Server, id: &str) -> Result<HttpReply, Refusal> {
    Ok(json_reply(StatusCode::OK, &stored(server, id)?.response))
}

pub fn delete(server: &Server, id: &str) -> Result<HttpReply, Refusal> {
    stored(server, id)?;
    server.responses.remove(id);
    Ok(json_reply(StatusCode::OK, &json!({"id": id, "object": "response.deleted", "deleted": true})))
}

pub fn cancel(server: &Server, id: &str) -> Result<HttpReply, Refusal> {
    let mut found = stored(server, id)?;
    let session = server.sessions.get(&found.session)?;
    if session.running().as_deref() == Some(found.prompt_id.as_str()) {
        server.sessions.cancel(&session);
        found.response["status"] = "cancelled".into();
        let put = server.responses.put(id, &found);
        put.map_err(|error| Refusal::internal(format!("The response cannot be stored: {error}.")))?;
    }
    Ok(json_reply(StatusCode::OK, &found.response))
}
