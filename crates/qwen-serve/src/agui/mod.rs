//! `POST /ag-ui`: a thread is a session, a run is a turn or the part of it up to where the page must act.
//!
//! The session's history is authoritative: of the messages that the page repeats, only those with new ids
//! count, and a message that changed is refused.

mod encode;
mod thoughts;
mod thread_messages;

use std::collections::HashSet;
use std::rc::Rc;

use qwen_dialects::acp::{ASK_QUESTION_TOOLS, AskedQuestion};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::encode::{PageRun, RunEncoder};
use crate::api::SseWriter;
use crate::openai::{CancelGuard, content_text, digest, tool_names};
use crate::respond::{HttpReply, Refusal, event_stream};
use crate::server::{Call, Server};
use crate::sessions::{NewPrompt, NewSession, Session};
use crate::turn::TurnReader;

/// The keys in a session's record.
const THREAD: &str = "ag_ui_thread";
const MESSAGES: &str = "ag_ui_messages";
const AFTER: &str = "ag_ui_after";
/// The interrupts that the page was told of.
const INTERRUPTS: &str = "ag_ui_interrupts";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RunInput {
    thread_id: String,
    run_id: String,
    messages: Vec<Value>,
    tools: Vec<Value>,
    context: Vec<Value>,
    state: Value,
    forwarded_props: Value,
    resume: Vec<Value>,
}

pub async fn run(server: &Rc<Server>, mut call: Call) -> Result<HttpReply, Refusal> {
    let input: RunInput = call.json(server).await?;
    if input.thread_id.is_empty() || input.run_id.is_empty() {
        return Err(Refusal::bad_request("invalid_input", "`threadId` and `runId` are required."));
    }
    let (writer, pieces) = SseWriter::new(&server.sessions);
    tokio::task::spawn_local(write(server.clone(), input, writer));
    Ok(event_stream(pieces))
}

async fn write(server: Rc<Server>, input: RunInput, mut writer: SseWriter) {
    let mut encoder = RunEncoder::new(PageRun {
        thread: input.thread_id.clone(),
        run: input.run_id.clone(),
        state: input.state.clone(),
        messages: input.messages.clone(),
        approval_time: server.sessions.limits.approval,
    });
    if !writer.write(text(&[encoder.started()]).into()).await {
        return;
    }
    let (session, mut reader) = match start(&server, &input).await {
        Ok(started) => started,
        Err(refusal) => {
            let mut events = Vec::new();
            encoder.failed(&refusal.message, refusal.code, &mut events);
            writer.write(text(&events).into()).await;
            return;
        }
    };
    let guard = CancelGuard::new(&server.sessions, &session);
    let host = reader.host_tools().clone();
    loop {
        let step = tokio::select! {
            step = reader.next() => step,
            () = tokio::time::sleep(writer.keep_alive) => {
                if writer.write(": keep-alive\n\n".into()).await { continue }
                return;
            }
            () = writer.closed() => return,
        };
        let mut events = Vec::new();
        let is_over = match step {
            Some(step) => encoder.take(step, |name| host.contains(name), &mut events),
            None => {
                encoder.failed("The turn's events cannot be read any more.", "events_lost", &mut events);
                true
            }
        };
        if is_over {
            server.sessions.keep(&session, AFTER, reader.last().into());
            let told: Vec<&str> = encoder.interrupt.as_deref().into_iter().collect();
            server.sessions.keep(&session, INTERRUPTS, json!(told));
            guard.disarm();
            writer.write(text(&events).into()).await;
            return;
        }
        if !events.is_empty() && !writer.write(text(&events).into()).await {
            return;
        }
    }
}

fn text(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

async fn start(server: &Rc<Server>, input: &RunInput) -> Result<(Rc<Session>, TurnReader), Refusal> {
    let sessions = &server.sessions;
    let known = sessions.find(THREAD, &input.thread_id).or_else(|| sessions.get(&input.thread_id).ok());
    let session = match known {
        Some(session) => session,
        None => create(server, input).await?,
    };
    let new = new_messages(&session, &input.messages)?;
    let host = tool_names(&chat_tools(&input.tools));
    let told = open_interrupts(server, &session);
    if !input.resume.is_empty() || !told.is_empty() {
        let reader = resume(server, &session, input, &told, host)?;
        return Ok((session, reader));
    }
    let results: Vec<Value> = new
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| json!({"role": "tool", "tool_call_id": message["toolCallId"], "content": content_text(&message["content"])}))
        .collect();
    let users: Vec<Value> = new
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| json!({"role": "user", "content": user_content(&message["content"])}))
        .collect();
    let continues = session.running().filter(|_| !results.is_empty());
    let messages = if continues.is_some() { results } else { users };
    if messages.is_empty() {
        return Err(Refusal::bad_request("nothing_new", "The input has no new message."));
    }
    let shown: Vec<String> = messages.iter().map(|message| content_text(&message["content"])).collect();
    let mut further = Map::new();
    let system = context(&input.context);
    let messages: Vec<Value> =
        if continues.is_some() { messages } else { system.into_iter().chain(messages).collect() };
    further.insert("messages".to_owned(), messages.into());
    if !input.tools.is_empty() {
        further.insert("options".to_owned(), json!({"tools": chat_tools(&input.tools)}));
    }
    let prompt = NewPrompt { further, continues, ..NewPrompt::conversation(shown.join("\n")) };
    let accepted = sessions.submit(&session, prompt).await?;
    remember(server, &session, &new);
    let reader = TurnReader::new(sessions.follow(&session, accepted.after), accepted.prompt_id, host);
    Ok((session, reader))
}

async fn create(server: &Rc<Server>, input: &RunInput) -> Result<Rc<Session>, Refusal> {
    let agent = input.forwarded_props["agent"].as_str().map(str::to_owned);
    let workspace = input.forwarded_props["workspace"].as_str().map(str::to_owned);
    let front = Map::from_iter([(THREAD.to_owned(), Value::String(input.thread_id.clone()))]);
    let session =
        server.sessions.create(NewSession { workspace, agent, front, ..NewSession::default() }).await?;
    Ok(session)
}

/// The messages whose ids the session does not know. A known message that changed is refused.
fn new_messages(session: &Session, messages: &[Value]) -> Result<Vec<Value>, Refusal> {
    let record = session.record.borrow();
    let known = record.front.get(MESSAGES);
    let mut new = Vec::new();
    for message in messages {
        let id = message["id"].as_str().unwrap_or_default();
        match known.and_then(|known| known[id].as_str()) {
            None => new.push(message.clone()),
            Some(seen) if seen == digest(std::slice::from_ref(message)) => {}
            Some(_) => {
                let message = format!(
                    "The message '{id}' differs from what was sent before. History cannot be edited."
                );
                return Err(Refusal::bad_request("history_edited", message));
            }
        }
    }
    Ok(new)
}

/// Remembers the page's own messages.
fn remember(server: &Server, session: &Session, new: &[Value]) {
    let mut known = session.record.borrow().front.get(MESSAGES).cloned().unwrap_or_else(|| json!({}));
    for message in new.iter().filter(|message| message["role"] == "user" || message["role"] == "tool") {
        if let Some(id) = message["id"].as_str() {
            known[id] = digest(std::slice::from_ref(message)).into();
        }
    }
    server.sessions.keep(session, MESSAGES, known);
}

/// The interrupts that the page was told of and that are still open. A question that another client's prompt
/// asked is none of the page's.
fn open_interrupts(server: &Server, session: &Session) -> HashSet<String> {
    let record = session.record.borrow();
    let told = record.front.get(INTERRUPTS).and_then(Value::as_array);
    let approvals = server.sessions.approvals.borrow();
    let open = told.into_iter().flatten().filter_map(Value::as_str);
    open.filter(|id| approvals.get(id).is_some()).map(str::to_owned).collect()
}

/// Answers the open interrupts and continues the turn. Nothing is decided unless every answer is valid.
fn resume(
    server: &Rc<Server>,
    session: &Rc<Session>,
    input: &RunInput,
    told: &HashSet<String>,
    host: HashSet<String>,
) -> Result<TurnReader, Refusal> {
    let sessions = &server.sessions;
    let mut decisions = Vec::new();
    let mut answered = HashSet::new();
    for entry in &input.resume {
        let id = entry["interruptId"].as_str().unwrap_or_default();
        answered.insert(id.to_owned());
        let approvals = sessions.approvals.borrow();
        let open = approvals.get(id).filter(|approval| approval.session == session.id);
        let ended = approvals.ended(id).filter(|ended| ended.session == session.id);
        match (open, ended) {
            (Some(approval), _) => {
                decisions.push((id.to_owned(), decision(entry, &approval.request["tool"])?));
            }
            (None, Some(ended)) if ended.decision == "withdrawn" => {
                let message = format!("The interrupt '{id}' has expired.");
                return Err(Refusal::bad_request("expired_interrupt", message));
            }
            // Another client was faster.
            (None, Some(_)) => {}
            (None, None) => {
                let message = format!("There is no open interrupt '{id}'.");
                return Err(Refusal::bad_request("unknown_interrupt", message));
            }
        }
    }
    if let Some(id) = told.iter().find(|id| !answered.contains(*id)) {
        let message = format!("The interrupt '{id}' is open and `resume` does not answer it.");
        return Err(Refusal::bad_request("open_interrupt", message));
    }
    let Some(prompt_id) = session.running() else {
        return Err(Refusal::bad_request("already_resumed", "The run was resumed before and has ended."));
    };
    let after = session.record.borrow().front.get(AFTER).and_then(Value::as_u64).unwrap_or_default();
    for (id, (decision, response)) in decisions {
        match sessions.decide(&id, decision, response) {
            // Another client was faster.
            Err(refusal) if refusal.code == "already_decided" => {}
            decided => decided?,
        }
    }
    Ok(TurnReader::new(sessions.follow(session, after), prompt_id, host))
}

/// The decision in an entry of `resume` about a call of `tool`.
fn decision(entry: &Value, tool: &Value) -> Result<(&'static str, Map<String, Value>), Refusal> {
    let invalid = || {
        let message = "An entry of `resume` must have `status` resolved or cancelled, and `payload` {approved, editedArgs?}.";
        Refusal::bad_request("invalid_resume", message)
    };
    let mut response = Map::new();
    match entry["status"].as_str() {
        Some("cancelled") => return Ok(("deny", response)),
        Some("resolved") => {}
        _ => return Err(invalid()),
    }
    if tool["name"].as_str().is_some_and(|name| ASK_QUESTION_TOOLS.contains(&name)) {
        let asked = AskedQuestion::Form { arguments: tool["arguments"].clone() };
        let answer = asked.answer(Some(&json!({"action": "accept", "content": entry["payload"]})));
        let mut reply: Map<String, Value> = serde_json::from_str(answer.reply.as_str()).unwrap_or_default();
        let allows = reply.remove("behavior").is_some_and(|behavior| behavior == "allow");
        return if allows { Ok(("allow", reply)) } else { Err(invalid()) };
    }
    let approved = entry["payload"]["approved"].as_bool().ok_or_else(invalid)?;
    match &entry["payload"]["editedArgs"] {
        Value::Null => {}
        Value::Object(edited) if approved => {
            response.insert("updatedInput".to_owned(), edited.clone().into());
        }
        _ => return Err(invalid()),
    }
    Ok((if approved { "allow" } else { "deny" }, response))
}

/// The page's tools in the form of chat completions.
fn chat_tools(tools: &[Value]) -> Vec<Value> {
    let tool = |tool: &Value| {
        let parameters = tool["parameters"].is_object().then(|| tool["parameters"].clone());
        json!({"type": "function", "function": {
            "name": tool["name"], "description": tool["description"].as_str().unwrap_or_default(),
            "parameters": parameters.unwrap_or_else(|| json!({"type": "object"})),
        }})
    };
    tools.iter().map(tool).collect()
}

/// What the page says about its context, as a system message.
fn context(context: &[Value]) -> Option<Value> {
    let lines: Vec<String> = context
        .iter()
        .map(|entry| {
            format!(
                "{}: {}",
                entry["description"].as_str().unwrap_or_default(),
                entry["value"].as_str().unwrap_or_default()
            )
        })
        .collect();
    (!lines.is_empty()).then(|| json!({"role": "system", "content": lines.join("\n")}))
}

/// A user's content in the form of chat completions.
fn user_content(content: &Value) -> Value {
    let Value::Array(parts) = content else { return content.clone() };
    let part = |part: &Value| match part["type"].as_str() {
        Some("image") => {
            let source = &part["source"];
            let url = match source["type"].as_str() {
                Some("data") => format!(
                    "data:{};base64,{}",
                    source["mimeType"].as_str().unwrap_or_default(),
                    source["value"].as_str().unwrap_or_default()
                ),
                _ => source["value"].as_str().unwrap_or_default().to_owned(),
            };
            json!({"type": "image_url", "image_url": {"url": url}})
        }
        _ => json!({"type": "text", "text": part["text"]}),
    };
    parts.iter().map(part).collect()
}
