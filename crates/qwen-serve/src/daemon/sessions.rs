//! The routes of a session: create, restore, prompt, answer, configure, close.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use hyper::{Method, StatusCode};
use qwen_dialects::loom::rfc3339;
use qwen_events::{SessionId, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::events::uuid;
use super::log::EventLog;
use super::project::{ALLOW, DENY, replay};
use super::refuse;
use crate::respond::{HttpReply, Refusal, empty, json_reply};
use crate::server::{Call, Server};
use crate::sessions::{NewPrompt, NewSession, Session, now};
use crate::token::random_id;

/// The key in a session's record that marks the one that clients of a workspace share.
const SHARED: &str = "daemon_shared";

/// The longest deadline of a prompt: a day.
const MAX_DEADLINE: u64 = 24 * 3600 * 1000;

/// The maximum length of a session's name, in characters.
const MAX_NAME: usize = 256;

/// How many clients of a session are known; the one that was seen least recently goes first.
const MAX_CLIENTS: usize = 1024;

/// The modes that sessions have.
const MODES: [&str; 4] = ["plan", "default", "auto-edit", "yolo"];

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Create {
    cwd: Option<String>,
    session_id: Option<String>,
    session_scope: Option<String>,
    model_service_id: Option<String>,
    approval_mode: Option<String>,
}

/// Creates a session, or attaches to the one of the workspace.
pub async fn create(server: &Rc<Server>, mut call: Call) -> Result<HttpReply, Refusal> {
    let known = client_header(&call)?;
    let body: Create = call.json(server).await?;
    let is_shared = match body.session_scope.as_deref() {
        None | Some("single") => true,
        Some("thread") => false,
        Some(_) => {
            return Err(refuse(400, "invalid_session_scope", "`sessionScope` must be single or thread."));
        }
    };
    check_mode(body.approval_mode.as_deref())?;
    let id = body.session_id.as_deref().map(parse_id).transpose()?;
    let cwd = body.cwd.or_else(|| Some(server.sessions.workspaces().first()?.to_string_lossy().into_owned()));
    let cwd = cwd.unwrap_or_default();
    let _creating = server.daemon.creating.lock().await;
    let real = Path::new(&cwd).canonicalize().unwrap_or_default();
    let shared = server.sessions.find(SHARED, &real.to_string_lossy()).filter(|_| is_shared && id.is_none());
    let is_attached = shared.is_some();
    let session = match shared {
        Some(session) => session,
        None => {
            let mut front = Map::new();
            if is_shared {
                front.insert(SHARED.to_owned(), real.to_string_lossy().into());
            }
            let new = NewSession {
                id,
                workspace: Some(cwd.clone()),
                model: body.model_service_id,
                mode: body.approval_mode,
                front,
                ..NewSession::default()
            };
            server.sessions.create(new).await.map_err(|refusal| translate(server, refusal, &cwd))?
        }
    };
    let log = server.daemon.open(server, &session)?;
    let client = register(&log, known)?;
    Ok(json_reply(StatusCode::OK, &attached(&session, &log, &client, is_attached)))
}

/// A refusal with this protocol's name.
fn translate(server: &Server, refusal: Refusal, cwd: &str) -> Refusal {
    match refusal.code {
        "workspace_not_allowed" => {
            let bound = server.sessions.workspaces().first().map(|path| path.to_string_lossy().into_owned());
            refuse(400, "workspace_mismatch", &refusal.message)
                .with("boundWorkspace", bound)
                .with("requestedWorkspace", cwd)
        }
        "too_many_sessions" => {
            let limit = server.sessions.limits.sessions;
            Refusal { code: "session_limit_exceeded", ..refusal }.with("limit", limit).with("scope", "total")
        }
        _ => refusal,
    }
}

fn attached(session: &Session, log: &EventLog, client: &str, is_attached: bool) -> Value {
    let record = session.record.borrow();
    json!({
        "sessionId": session.id.as_str(),
        "workspaceCwd": record.workspace.to_string_lossy(),
        "attached": is_attached,
        "clientId": client,
        "createdAt": rfc3339(Timestamp(record.created_at)),
        "hasActivePrompt": session.is_busy(),
        "eventEpoch": log.epoch,
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Restore {
    cwd: Option<String>,
    approval_mode: Option<String>,
}

/// Opens a stored session; `replays` adds what happened so far.
pub async fn restore(
    server: &Rc<Server>,
    mut call: Call,
    id: &str,
    replays: bool,
) -> Result<HttpReply, Refusal> {
    let known = client_header(&call)?;
    let Restore { cwd, approval_mode } = call.json(server).await?;
    check_mode(approval_mode.as_deref())?;
    let missing = || refuse(404, "session_not_found", "There is no such session.").with("sessionId", id);
    let session = server.sessions.get(id).map_err(|_| missing())?;
    let workspace = session.record.borrow().workspace.clone();
    if let Some(cwd) = cwd.filter(|cwd| Path::new(cwd).canonicalize().is_ok_and(|real| real != workspace)) {
        let refusal = refuse(400, "workspace_mismatch", "The session belongs to another workspace.");
        return Err(refusal
            .with("boundWorkspace", workspace.to_string_lossy())
            .with("requestedWorkspace", cwd));
    }
    if let Some(mode) = approval_mode {
        server.sessions.configure(&session, "mode", &mode).await?;
    }
    let was_open = server.daemon.get(&session.id).is_some();
    let log = server.daemon.open(server, &session)?;
    let client = register(&log, known)?;
    let mut body = attached(&session, &log, &client, was_open);
    let record = session.record.borrow().clone();
    let modes: Vec<Value> = MODES.iter().map(|mode| json!({"id": mode, "name": mode})).collect();
    body["state"] = json!({
        "models": {"availableModels": [], "currentModelId": record.model},
        "modes": {"availableModes": modes, "currentModeId": record.mode.as_deref().unwrap_or("default")},
    });
    body["lastEventId"] = log.last().into();
    if replays {
        let snapshot = server.sessions.snapshot(&session);
        body["compactedReplay"] = replay(session.id.as_str(), &snapshot["messages"]).into();
        body["liveJournal"] = journal(&session, &log).into();
    }
    Ok(json_reply(StatusCode::OK, &body))
}

/// The events of the running turn; its prompt is in the stored conversation.
fn journal(session: &Session, log: &EventLog) -> Vec<Value> {
    let Some(running) = session.running() else { return Vec::new() };
    let events = log.read(log.earliest() - 1, usize::MAX).unwrap_or_default();
    let of_turn = events.iter().filter(|event| event.prompt_id.as_deref() == Some(&running));
    let values = of_turn.filter_map(|event| serde_json::from_slice::<Value>(&event.envelope).ok());
    values.filter(|event| event["data"]["update"]["sessionUpdate"] != "user_message_chunk").collect()
}

/// Serves the other routes of an open session.
pub async fn serve(
    server: &Rc<Server>,
    mut call: Call,
    session: &Rc<Session>,
    log: &Rc<EventLog>,
    rest: &[&str],
) -> Result<HttpReply, Refusal> {
    let client = client_header(&call)?;
    check_client(log, client.as_deref())?;
    let method = call.head.method.clone();
    let body: Value = if method == Method::GET { json!({}) } else { Value::Object(call.json(server).await?) };
    let client = client.as_deref();
    match (&method, rest) {
        (&Method::POST, ["prompt"]) => prompt(server, session, log, client, &body).await,
        (&Method::POST, ["cancel"]) => {
            if let Some(prompt_id) = session.running() {
                server.sessions.cancel(session);
                let data = json!({"sessionId": session.id.as_str(), "promptId": prompt_id});
                log.push("prompt_cancelled", &data, Some(&prompt_id), client);
            }
            Ok(empty(StatusCode::NO_CONTENT))
        }
        (&Method::POST, ["detach"]) => {
            if let Some(client) = client {
                log.clients.borrow_mut().remove(client);
            }
            Ok(empty(StatusCode::NO_CONTENT))
        }
        (&Method::POST, ["heartbeat"]) => {
            let mut answer = json!({"sessionId": session.id.as_str(), "lastSeenAt": now()});
            if let Some(client) = client {
                answer["clientId"] = client.into();
            }
            Ok(json_reply(StatusCode::OK, &answer))
        }
        (&Method::DELETE, []) => close(server, session, log, client).await,
        (&Method::PATCH, ["metadata"]) => rename(server, session, log, client, &body),
        (&Method::POST, ["model"]) => set_model(server, session, log, client, &body).await,
        (&Method::POST, ["approval-mode"]) => set_mode(server, session, log, client, &body).await,
        (&Method::POST, ["mid-turn-message"]) => steer(server, session, &body).await,
        (&Method::GET, ["status"]) => Ok(json_reply(StatusCode::OK, &summary(server, session))),
        _ => Err(Refusal::not_found("route")),
    }
}

async fn prompt(
    server: &Rc<Server>,
    session: &Rc<Session>,
    log: &Rc<EventLog>,
    client: Option<&str>,
    body: &Value,
) -> Result<HttpReply, Refusal> {
    let blocks = body["prompt"].as_array().filter(|blocks| !blocks.is_empty());
    let parts: Option<Vec<Value>> = blocks.and_then(|blocks| blocks.iter().map(part).collect());
    let Some(parts) = parts else {
        let message = "`prompt` must be a list of content blocks: text, image, resource or resource_link.";
        return Err(refuse(400, "invalid_prompt", message));
    };
    let deadline = match &body["deadlineMs"] {
        Value::Null => None,
        value => {
            Some(value.as_u64().filter(|millis| (1..=MAX_DEADLINE).contains(millis)).ok_or_else(|| {
                refuse(
                    400,
                    "invalid_deadline_ms",
                    "`deadlineMs` must be a number of milliseconds, at most a day.",
                )
            })?)
        }
    };
    // Taken first: everything of the prompt has a larger number.
    let last = log.last();
    let waiting = session.prompts.borrow().len();
    let accepted =
        server.sessions.submit(session, NewPrompt::parts(parts.into())).await.map_err(|refusal| {
            if refusal.code != "queue_full" {
                return refusal;
            }
            let full =
                refuse(503, "prompt_queue_full", &refusal.message).with("sessionId", session.id.as_str());
            let full =
                full.with("limit", server.sessions.limits.queued_prompts).with("pendingCount", waiting);
            Refusal { retry_after: Some(5), ..full }
        })?;
    if let Some(client) = client {
        log.clients.borrow_mut().insert(client.to_owned(), now());
    }
    if let Some(millis) = deadline {
        let (server, session, log) = (server.clone(), session.clone(), log.clone());
        let prompt_id = accepted.prompt_id.clone();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            if !session.prompts.borrow().contains(&prompt_id) {
                return;
            }
            log.overdue.borrow_mut().insert(prompt_id.clone());
            if session.running().as_deref() == Some(&prompt_id) {
                server.sessions.cancel(&session);
            } else {
                // A prompt that has ended needs no withdrawal.
                let _ = server.sessions.withdraw(&session, &prompt_id);
            }
        });
    }
    let answer = json!({"promptId": accepted.prompt_id, "lastEventId": last, "eventEpoch": log.epoch});
    Ok(json_reply(StatusCode::ACCEPTED, &answer))
}

/// A content block of ACP as a part of a prompt.
fn part(block: &Value) -> Option<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    match block["type"].as_str()? {
        "text" => Some(text(block["text"].as_str()?)),
        "image" => {
            let (kind, data) = (block["mimeType"].as_str()?, block["data"].as_str()?);
            Some(json!({"type": "image_url", "image_url": {"url": format!("data:{kind};base64,{data}")}}))
        }
        "resource" => Some(text(block["resource"]["text"].as_str()?)),
        "resource_link" => Some(text(block["uri"].as_str()?)),
        _ => None,
    }
}

async fn close(
    server: &Rc<Server>,
    session: &Rc<Session>,
    log: &Rc<EventLog>,
    client: Option<&str>,
) -> Result<HttpReply, Refusal> {
    server.daemon.close(&session.id);
    server.sessions.close(session).await?;
    server.sessions.approvals.borrow_mut().withdraw(&session.id, None);
    let data = json!({"sessionId": session.id.as_str(), "reason": "client_close", "closedBy": client});
    log.push("session_closed", &data, None, client);
    log.close();
    Ok(empty(StatusCode::NO_CONTENT))
}

fn rename(
    server: &Server,
    session: &Session,
    log: &EventLog,
    client: Option<&str>,
    body: &Value,
) -> Result<HttpReply, Refusal> {
    let name = body["displayName"].as_str().filter(|name| name.chars().count() <= MAX_NAME);
    let name = name.ok_or_else(|| {
        refuse(400, "invalid_display_name", "`displayName` must be a text of at most 256 characters.")
    })?;
    server.sessions.rename(session, name);
    let data = json!({"sessionId": session.id.as_str(), "displayName": session.record.borrow().title});
    log.push("session_metadata_updated", &data, None, client);
    Ok(json_reply(StatusCode::OK, &data))
}

async fn set_model(
    server: &Rc<Server>,
    session: &Rc<Session>,
    log: &EventLog,
    client: Option<&str>,
    body: &Value,
) -> Result<HttpReply, Refusal> {
    let model = body["modelId"].as_str().filter(|model| !model.is_empty() && !model.contains(['\0', '\n']));
    let model =
        model.ok_or_else(|| refuse(400, "invalid_model_id", "`modelId` must be the name of a model."))?;
    let id = session.id.as_str();
    if let Err(refusal) = server.sessions.configure(session, "model", model).await {
        let data = json!({"sessionId": id, "requestedModelId": model, "error": refusal.message});
        log.push("model_switch_failed", &data, None, client);
        return Err(refusal);
    }
    log.push("model_switched", &json!({"sessionId": id, "modelId": model}), None, client);
    Ok(json_reply(StatusCode::OK, &json!({"modelId": model})))
}

async fn set_mode(
    server: &Rc<Server>,
    session: &Rc<Session>,
    log: &EventLog,
    client: Option<&str>,
    body: &Value,
) -> Result<HttpReply, Refusal> {
    let mode = body["mode"].as_str().unwrap_or_default();
    check_mode(Some(mode))?;
    let previous = session.record.borrow().mode.clone().unwrap_or_else(|| "default".to_owned());
    server.sessions.configure(session, "mode", mode).await?;
    let id = session.id.as_str();
    let data = json!({"sessionId": id, "previous": previous, "next": mode, "persisted": false});
    log.push("approval_mode_changed", &data, None, client);
    let answer = json!({"sessionId": id, "mode": mode, "previous": previous, "persisted": false});
    Ok(json_reply(StatusCode::OK, &answer))
}

async fn steer(server: &Rc<Server>, session: &Rc<Session>, body: &Value) -> Result<HttpReply, Refusal> {
    let message = body["message"].as_str().filter(|message| !message.trim().is_empty());
    let message = message.ok_or_else(|| refuse(400, "invalid_message", "`message` must be a text."))?;
    if !session.is_busy() {
        let answer = json!({"accepted": false, "reason": "session_idle"});
        return Ok(json_reply(StatusCode::OK, &answer));
    }
    let prompt = NewPrompt { steers: true, ..NewPrompt::parts(Value::from(message)) };
    let accepted = server.sessions.submit(session, prompt).await?;
    let id = body["messageId"].as_str().map_or(accepted.prompt_id, str::to_owned);
    Ok(json_reply(StatusCode::OK, &json!({"accepted": true, "messageId": id})))
}

/// Answers a permission request. One that is no longer open is not found.
pub async fn vote(
    server: &Rc<Server>,
    mut call: Call,
    session: Option<&SessionId>,
    id: &str,
) -> Result<HttpReply, Refusal> {
    let client = client_header(&call)?;
    let body: Map<String, Value> = call.json(server).await?;
    let outcome = body.get("outcome").unwrap_or(&Value::Null);
    let decision = match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
        (Some("selected"), Some(ALLOW)) => "allow",
        (Some("selected"), Some(DENY)) | (Some("cancelled"), _) => "deny",
        _ => {
            return Err(refuse(
                400,
                "invalid_permission_outcome",
                "`outcome` must select one of the options.",
            ));
        }
    };
    let asked = server.sessions.approvals.borrow().get(id).map(|approval| approval.session.clone());
    let asked = asked.filter(|asked| session.is_none_or(|session| session == asked));
    let missing = || {
        let refusal = refuse(404, "permission_already_resolved", "There is no such open permission request.");
        refusal.with("requestId", id).with("sessionId", session.map(SessionId::as_str))
    };
    let asked = asked.ok_or_else(missing)?;
    if let Some((log, client)) = server.daemon.get(&asked).zip(client) {
        check_client(&log, Some(&client))?;
        log.voters.borrow_mut().insert(id.to_owned(), client);
    }
    server.sessions.decide(id, decision, Map::new()).map_err(|_| missing())?;
    Ok(json_reply(StatusCode::OK, &json!({})))
}

fn summary(server: &Server, session: &Session) -> Value {
    let record = session.record.borrow();
    let clients = server.daemon.get(&session.id).map_or(0, |log| log.clients.borrow().len());
    let open = server.sessions.approvals.borrow().list(Some(&session.id)).len();
    json!({
        "sessionId": session.id.as_str(),
        "workspaceCwd": record.workspace.to_string_lossy(),
        "createdAt": rfc3339(Timestamp(record.created_at)),
        "updatedAt": rfc3339(Timestamp(record.updated_at)),
        "displayName": record.title,
        "clientCount": clients,
        "hasActivePrompt": session.is_busy(),
        "isWaitingForPermission": open > 0,
        "pendingInteractionCount": open,
    })
}

/// Lists the sessions of a workspace, by pages. The cursor is the number of sessions before the page.
pub fn list(server: &Server, call: &Call, workspace: &str) -> Result<HttpReply, Refusal> {
    let workspace = decode(workspace);
    let size = call.query("size").and_then(|size| size.parse::<usize>().ok()).unwrap_or(20).clamp(1, 1000);
    let start = call.query("cursor").and_then(|cursor| cursor.parse::<usize>().ok()).unwrap_or(0);
    let of_workspace: Vec<Rc<Session>> = server
        .sessions
        .all()
        .into_iter()
        .filter(|session| session.record.borrow().workspace.to_str() == Some(&workspace))
        .collect();
    let is_known = server.sessions.workspaces().iter().any(|known| Path::new(&workspace).starts_with(known));
    if !is_known {
        let refusal = refuse(400, "workspace_mismatch", "The workspace is not one of this server's.");
        return Err(refusal.with("requestedWorkspace", workspace));
    }
    let page: Vec<Value> =
        of_workspace.iter().skip(start).take(size).map(|session| summary(server, session)).collect();
    let mut body = json!({"sessions": page});
    if start + size < of_workspace.len() {
        body["nextCursor"] = (start + size).to_string().into();
    }
    Ok(json_reply(StatusCode::OK, &body))
}

/// Decodes the percent signs of a path's segment; an invalid one means no workspace.
fn decode(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

fn check_mode(mode: Option<&str>) -> Result<(), Refusal> {
    if mode.is_some_and(|mode| !MODES.contains(&mode)) {
        return Err(refuse(
            400,
            "invalid_approval_mode",
            "The mode must be plan, default, auto-edit or yolo.",
        ));
    }
    Ok(())
}

/// The client that a request names.
fn client_header(call: &Call) -> Result<Option<String>, Refusal> {
    let Some(client) = call.head.headers.get("x-qwen-client-id") else { return Ok(None) };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:-".contains(byte);
    let text = client
        .to_str()
        .ok()
        .filter(|text| (1..=128).contains(&text.len()) && text.bytes().all(|byte| is_name(&byte)));
    let text = text.ok_or_else(|| refuse(400, "invalid_client_id", "`X-Qwen-Client-Id` is not valid."))?;
    Ok(Some(text.to_owned()))
}

/// Refuses clients that this session does not know, and notes that a known one was seen.
fn check_client(log: &EventLog, client: Option<&str>) -> Result<(), Refusal> {
    let Some(client) = client else { return Ok(()) };
    match log.clients.borrow_mut().get_mut(client) {
        Some(seen) => {
            *seen = now();
            Ok(())
        }
        None => Err(refuse(400, "invalid_client_id", "The client id is not one of this session.")),
    }
}

/// The id of the client in this session: the one that it has, or a new one.
fn register(log: &EventLog, known: Option<String>) -> Result<String, Refusal> {
    let known = known.filter(|client| log.clients.borrow().contains_key(client));
    let client = match known {
        Some(client) => client,
        None => {
            let random = random_id().map_err(|error| Refusal::internal(error.to_string()))?;
            format!("client-{}", uuid(random))
        }
    };
    let mut clients = log.clients.borrow_mut();
    clients.insert(client.clone(), now());
    if clients.len() > MAX_CLIENTS
        && let Some(oldest) = clients.iter().min_by_key(|(_, seen)| **seen).map(|(name, _)| name.clone())
    {
        clients.remove(&oldest);
    }
    drop(clients);
    Ok(client)
}

fn parse_id(id: &str) -> Result<SessionId, Refusal> {
    let lower = id.to_ascii_lowercase();
    let is_uuid = lower.len() == 36
        && lower.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    let id = SessionId::parse(&lower).ok().filter(|_| is_uuid);
    id.ok_or_else(|| refuse(400, "invalid_session_id", "`sessionId` must be a UUID."))
}
