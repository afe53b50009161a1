//! `POST /v1/chat/completions`.

use std::collections::HashSet;
use std::rc::Rc;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::history::{self, Conversation};
use super::{agent, failure, seconds};
use crate::api::SseWriter;
use crate::respond::{HttpReply, Refusal, event_stream, json_reply};
use crate::server::{Call, Server};
use crate::sessions::{NewPrompt, NewSession, Session, Sessions};
use crate::turn::{TurnOutcome, TurnReader, TurnStep};

/// The header that selects a session, and names the one that was used.
const SESSION_HEADER: &str = "x-qwen-session-id";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChatRequest {
    model: String,
    messages: Vec<Value>,
    tools: Vec<Value>,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: bool,
}

/// The turn that a request started or continued.
struct ChatTurn {
    session: Rc<Session>,
    reader: TurnReader,
    model: String,
    id: String,
    created: u64,
    /// The conversation as the client knows it, for the next request.
    messages: Vec<Value>,
    /// True if the conversation is remembered: the client did not name a session.
    is_remembered: bool,
}

pub async fn complete(server: &Rc<Server>, mut call: Call) -> Result<HttpReply, Refusal> {
    let named = call.header(SESSION_HEADER).map(str::to_owned);
    let request: ChatRequest = call.json(server).await?;
    let (stream, usage) = (request.stream, request.stream_options.include_usage);
    let turn = start(server, request, named).await?;
    let session = HeaderValue::from_str(turn.session.id.as_str());
    let mut reply = if stream {
        let (writer, pieces) = SseWriter::new(&server.sessions);
        tokio::task::spawn_local(write(server.sessions.clone(), turn, usage, writer));
        event_stream(pieces)
    } else {
        let guard = CancelGuard::new(&server.sessions, &turn.session);
        let answer = collect(server, turn).await;
        guard.disarm();
        json_reply(StatusCode::OK, &answer?)
    };
    if let Ok(session) = session {
        reply.headers_mut().insert(SESSION_HEADER, session);
    }
    Ok(reply)
}

/// Cancels a turn whose client went away: it has no other way to say so.
pub struct CancelGuard {
    sessions: Rc<Sessions>,
    session: Rc<Session>,
    is_armed: bool,
}

impl CancelGuard {
    pub fn new(sessions: &Rc<Sessions>, session: &Rc<Session>) -> Self {
        Self { sessions: sessions.clone(), session: session.clone(), is_armed: true }
    }

    /// The turn has ended, or waits for the client.
    pub fn disarm(mut self) {
        self.is_armed = false;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if self.is_armed {
            self.sessions.cancel(&self.session);
        }
    }
}

async fn start(
    server: &Rc<Server>,
    request: ChatRequest,
    named: Option<String>,
) -> Result<ChatTurn, Refusal> {
    let agent = agent(&request.model)?;
    if request.messages.is_empty() || !request.messages.iter().all(|message| message["role"].is_string()) {
        let message = "`messages` must be a list of messages, each with a `role`.";
        return Err(Refusal::bad_request("invalid_messages", message));
    }
    let sessions = &server.sessions;
    let divided = Conversation::divide(&request.messages);
    let is_remembered = named.is_none();
    let known = match &named {
        Some(id) => Some(sessions.get(id)?),
        None => history::find(sessions, divided.before),
    };
    // A session that has the conversation needs only what is new; another one gets all of it.
    let sent = if known.is_some() { divided.new } else { &request.messages };
    let continues = divided.new.iter().find(|message| message["role"] == "tool").and_then(|_| {
        let session = known.as_ref()?;
        session.running()
    });
    let session = match known {
        Some(session) => session,
        None => {
            history::prune(sessions).await;
            let front = Map::from_iter([(history::KEY.to_owned(), Value::Null)]);
            let new = NewSession { agent: Some(agent.to_owned()), front, ..NewSession::default() };
            sessions.create(new).await?
        }
    };
    let mut further = Map::new();
    further.insert("messages".to_owned(), sent.into());
    if !request.tools.is_empty() {
        further.insert("options".to_owned(), json!({"tools": request.tools}));
    }
    let shown = divided.new.iter().filter(|message| message["role"] == "user");
    let shown: String = shown.map(|message| history::content_text(&message["content"])).collect();
    let prompt = NewPrompt { further, continues, ..NewPrompt::conversation(shown) };
    let accepted = sessions.submit(&session, prompt).await?;
    let names: HashSet<String> = tool_names(&request.tools);
    let reader = TurnReader::new(sessions.follow(&session, accepted.after), accepted.prompt_id, names);
    let id = format!("chatcmpl-{}", reader.prompt_id());
    let created = seconds();
    Ok(ChatTurn {
        session,
        reader,
        model: request.model,
        id,
        created,
        messages: request.messages,
        is_remembered,
    })
}

/// The names of the tools that the caller runs, in either of OpenAI's forms.
pub fn tool_names(tools: &[Value]) -> HashSet<String> {
    let names = tools.iter().filter_map(|tool| tool["function"]["name"].as_str().or(tool["name"].as_str()));
    names.map(str::to_owned).collect()
}

/// What a chat completion shows of a turn.
#[derive(Default)]
struct Answer {
    text: String,
    /// The calls that the client runs: id, name, arguments.
    calls: Vec<(String, String, String)>,
    end: Option<TurnOutcome>,
    /// True if the next text is of another message.
    needs_break: bool,
}

/// A piece of the answer.
enum Piece {
    Text(String),
    Call { index: usize, id: String, name: String },
    Arguments { index: usize, delta: String },
}

impl Answer {
    /// Takes the next step; true when the answer is complete.
    fn take(
        &mut self,
        sessions: &Rc<Sessions>,
        host: &HashSet<String>,
        step: TurnStep,
        out: &mut Vec<Piece>,
    ) -> bool {
        match step {
            TurnStep::MessageStart => {
                self.needs_break = !self.text.is_empty() && !self.text.ends_with("\n\n");
            }
            TurnStep::Text(text) => {
                let lead = if std::mem::take(&mut self.needs_break) { "\n\n" } else { "" };
                self.push(format!("{lead}{text}"), out);
            }
            TurnStep::CallStart { id, name } if host.contains(&name) => {
                out.push(Piece::Call { index: self.calls.len(), id: id.clone(), name: name.clone() });
                self.calls.push((id, name, String::new()));
            }
            TurnStep::CallArguments { id, delta } => {
                if let Some(index) = self.calls.iter().position(|call| call.0 == id) {
                    self.calls[index].2.push_str(&delta);
                    out.push(Piece::Arguments { index, delta });
                }
            }
            TurnStep::Approval { id, name, .. } => {
                let limit = sessions.limits.hidden_approval;
                deny_later(sessions, id);
                let note = format!(
                    "[{name} needs permission; without an answer within {} s it is denied.]\n\n",
                    limit.as_secs()
                );
                self.push(note, out);
            }
            TurnStep::Paused { .. } => return true,
            TurnStep::End(end) => {
                self.end = Some(end);
                return true;
            }
            _ => {}
        }
        false
    }

    fn push(&mut self, text: String, out: &mut Vec<Piece>) {
        self.text.push_str(&text);
        out.push(Piece::Text(text));
    }

    fn finish_reason(&self) -> &str {
        match &self.end {
            None => "tool_calls",
            Some(end) if matches!(end.finish_reason.as_str(), "length" | "content_filter") => {
                &end.finish_reason
            }
            Some(_) => "stop",
        }
    }

    /// The message as the client knows it.
    fn message(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
        if self.end.is_none() {
            let calls: Vec<Value> = self
                .calls
                .iter()
                .map(|(id, name, arguments)| {
                    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
                })
                .collect();
            message["tool_calls"] = calls.into();
        }
        message
    }

    fn usage(&self) -> Value {
        self.end.as_ref().map_or_else(|| usage_of(&Value::Null), |end| usage_of(&end.usage))
    }
}

/// The usage in OpenAI's form.
fn usage_of(usage: &Value) -> Value {
    let count = |name: &str| usage[name].as_u64().unwrap_or_default();
    json!({
        "prompt_tokens": count("prompt_tokens"),
        "completion_tokens": count("completion_tokens"),
        "total_tokens": count("total_tokens"),
        "prompt_tokens_details": {"cached_tokens": usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0)},
        "completion_tokens_details": {"reasoning_tokens": usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0)},
    })
}

/// Denies a permission request that this protocol cannot show, unless another client answers it first.
fn deny_later(sessions: &Rc<Sessions>, id: String) {
    let sessions = sessions.clone();
    tokio::task::spawn_local(async move {
        let limit = sessions.limits.hidden_approval;
        tokio::time::sleep(limit).await;
        let message = format!("No one answered within {} s.", limit.as_secs());
        let response = Map::from_iter([("message".to_owned(), message.into())]);
        // It may have been answered.
        let _ = sessions.decide(&id, "deny", response);
    });
}

/// Remembers the conversation with its session, so that the next request finds it.
fn remember(sessions: &Sessions, turn: &ChatTurn, answer: &Answer) {
    if turn.is_remembered {
        let messages = [&turn.messages[..], &[answer.message()]].concat();
        sessions.keep(&turn.session, history::KEY, history::digest(&messages).into());
    }
}

async fn collect(server: &Rc<Server>, mut turn: ChatTurn) -> Result<Value, Refusal> {
    let mut answer = Answer::default();
    let mut pieces = Vec::new();
    let host = turn.reader.host_tools().clone();
    while let Some(step) = turn.reader.next().await {
        pieces.clear();
        if answer.take(&server.sessions, &host, step, &mut pieces) {
            break;
        }
    }
    if let Some(refusal) = answer.end.as_ref().and_then(failure) {
        return Err(refusal);
    }
    remember(&server.sessions, &turn, &answer);
    Ok(json!({
        "id": turn.id, "object": "chat.completion", "created": turn.created, "model": turn.model,
        "choices": [{"index": 0, "message": answer.message(), "finish_reason": answer.finish_reason(), "logprobs": null}],
        "usage": answer.usage(),
    }))
}

async fn write(sessions: Rc<Sessions>, mut turn: ChatTurn, include_usage: bool, mut writer: SseWriter) {
    let guard = CancelGuard::new(&sessions, &turn.session);
    let mut answer = Answer::default();
    let host = turn.reader.host_tools().clone();
    let head = (turn.id.clone(), turn.created, turn.model.clone());
    let chunk = |delta: Value, finish: Option<&str>| {
        let mut chunk = json!({
            "id": head.0, "object": "chat.completion.chunk", "created": head.1, "model": head.2,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": null}],
        });
        if include_usage {
            chunk["usage"] = Value::Null;
        }
        format!("data: {chunk}\n\n")
    };
    if !writer.write(chunk(json!({"role": "assistant", "content": ""}), None).into()).await {
        return;
    }
    loop {
        let step = tokio::select! {
            step = turn.reader.next() => step,
            () = tokio::time::sleep(writer.keep_alive) => {
                if !writer.write(": keep-alive\n\n".into()).await { return }
                continue;
            }
            () = writer.closed() => return,
        };
        let Some(step) = step else { return };
        let mut pieces = Vec::new();
        let is_complete = answer.take(&sessions, &host, step, &mut pieces);
        let mut text = String::new();
        for piece in pieces {
            let delta = match piece {
                Piece::Text(text) => json!({"content": text}),
                Piece::Call { index, id, name } => {
                    json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]})
                }
                Piece::Arguments { index, delta } => {
                    json!({"tool_calls": [{"index": index, "function": {"arguments": delta}}]})
                }
            };
            text.push_str(&chunk(delta, None));
        }
        if is_complete {
            match answer.end.as_ref().and_then(failure) {
                Some(refusal) => text.push_str(&format!("data: {}\n\n", refusal.body())),
                None => {
                    text.push_str(&chunk(json!({}), Some(answer.finish_reason())));
                    if include_usage {
                        let usage = json!({
                            "id": head.0, "object": "chat.completion.chunk", "created": head.1, "model": head.2,
                            "choices": [], "usage": answer.usage(),
                        });
                        text.push_str(&format!("data: {usage}\n\n"));
                    }
                }
            }
            text.push_str("data: [DONE]\n\n");
            guard.disarm();
            remember(&sessions, &turn, &answer);
            writer.write(text.into()).await;
            return;
        }
        if !text.is_empty() && !writer.write(text.into()).await {
            return;
        }
    }
}
