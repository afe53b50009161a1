//! `qwen --acp` through the client role of the official Rust crate, with a client that advertises nothing and one that
//! advertises everything.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthenticateRequest, ClientCapabilities, CloseSessionRequest, ContentBlock, DeleteSessionRequest,
    InitializeRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest, PromptRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, SetSessionModeRequest, StopReason,
    TextContent,
};
use agent_client_protocol::{AcpAgent, Agent, Client};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What a connection received.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Value>>>);

impl Seen {
    fn push(&self, update: &SessionUpdate) {
        if let (Ok(mut updates), Ok(update)) = (self.0.lock(), serde_json::to_value(update)) {
            updates.push(update);
        }
    }

    fn take(&self) -> Vec<Value> {
        self.0.lock().map(|mut updates| std::mem::take(&mut *updates)).unwrap_or_default()
    }
}

fn text(updates: &[Value]) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

fn has(updates: &[Value], kind: &str) -> bool {
    updates.iter().any(|update| update["sessionUpdate"] == kind)
}

/// A directory with a script for the model, and the command of an agent that answers from it.
struct Place {
    directory: tempfile::TempDir,
    command: String,
}

impl Place {
    fn new(script: &Value) -> std::io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let home = directory.path().canonicalize()?;
        fs::create_dir(home.join("work"))?;
        let path = home.join("script.json");
        fs::write(&path, script.to_string())?;
        let qwen = std::env::var("QWEN_BIN").unwrap_or_else(|_| "qwen".to_owned());
        let (home, path) = (home.display(), path.display());
        let command = format!("env HOME={home} QWEN_HOME={home}/.qwen {qwen} --acp --model script:{path}");
        Ok(Self { directory, command })
    }

    fn work(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap_or_default().join("work")
    }
}

fn prompt(session: &SessionId, words: &str) -> PromptRequest {
    PromptRequest::new(session.clone(), vec![ContentBlock::Text(TextContent::new(words))])
}

/// Drives one connection through the life of a session, and answers permission requests with one option.
async fn drive(place: &Place, option: &'static str, capabilities: ClientCapabilities) -> Outcome {
    let seen = Seen::default();
    let (notified, work) = (seen.clone(), place.work());
    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                notified.push(&notification.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                let offered = request.options.iter().find(|offer| &*offer.option_id.0 == option);
                let outcome = match offered {
                    Some(offer) => {
                        let selected = SelectedPermissionOutcome::new(offer.option_id.clone());
                        RequestPermissionOutcome::Selected(selected)
                    }
                    None => RequestPermissionOutcome::Cancelled,
                };
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(AcpAgent::from_str(&place.command)?, |connection: ConnectionTo<Agent>| async move {
            live(&connection, &seen, &work, option, capabilities).await
        })
        .await?;
    Ok(())
}

async fn live(
    connection: &ConnectionTo<Agent>,
    seen: &Seen,
    work: &Path,
    option: &str,
    capabilities: ClientCapabilities,
) -> agent_client_protocol::Result<()> {
    let initialize = InitializeRequest::new(ProtocolVersion::V1).client_capabilities(capabilities);
    let initialized = connection.send_request(initialize).block_task().await?;
    assert_eq!(initialized.protocol_version, ProtocolVersion::V1);
    assert!(initialized.agent_capabilities.load_session && !initialized.auth_methods.is_empty());
    connection.send_request(AuthenticateRequest::new("model-key")).block_task().await?;
    let opened = connection.send_request(NewSessionRequest::new(work)).block_task().await?;
    let session = opened.session_id;
    assert_eq!(opened.config_options.map(|options| options.len()), Some(3));

    let ended = connection.send_request(prompt(&session, "Go")).block_task().await?;
    let is_cancelled = option == "cancelled";
    assert_eq!(ended.stop_reason, if is_cancelled { StopReason::Cancelled } else { StopReason::EndTurn });
    assert_eq!(work.join("made").exists(), option.starts_with("allow"), "{option}");
    let live = seen.take();
    let words = text(&live);
    assert_eq!(words, if is_cancelled { "I look. " } else { "I look. Done." });
    for kind in ["agent_thought_chunk", "tool_call", "tool_call_update", "usage_update", "session_info_update"] {
        assert!(has(&live, kind), "{kind}: {live:?}");
    }

    connection.send_request(SetSessionModeRequest::new(session.clone(), "plan")).block_task().await?;
    let listed = connection.send_request(ListSessionsRequest::new()).block_task().await?;
    assert_eq!(listed.sessions.len(), 1);
    connection.send_request(CloseSessionRequest::new(session.clone())).block_task().await?;
    seen.take();
    connection.send_request(LoadSessionRequest::new(session.clone(), work)).block_task().await?;
    let replayed = seen.take();
    assert_eq!(text(&replayed), words);
    assert!(has(&replayed, "user_message_chunk"));
    connection.send_request(CloseSessionRequest::new(session.clone())).block_task().await?;
    connection.send_request(ResumeSessionRequest::new(session.clone(), work)).block_task().await?;
    assert_eq!(text(&seen.take()), "");
    connection.send_request(DeleteSessionRequest::new(session.clone())).block_task().await?;
    let missing = connection.send_request(LoadSessionRequest::new(session, work)).block_task().await;
    assert_eq!(missing.err().map(|error| i32::from(error.code)), Some(-32002));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let touch = json!({"name": "run_shell_command", "arguments": {"command": "touch made"}});
    let script = json!([[{"thought": "hm"}, {"text": "I look. "}, {"tool_call": touch}], [{"text": "Done."}]]);
    let everything = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true,
        "session": {"notices": {}, "compaction": {}}, "elicitation": {"form": {}}, "auth": {"terminal": true}});
    let mut runs = 0;
    for capabilities in [json!({}), everything] {
        for option in
            ["allow_once", "allow_session", "allow_always", "reject_once", "reject_session", "cancelled"]
        {
            let place = Place::new(&script)?;
            let capabilities = serde_json::from_value(capabilities.clone())?;
            tokio::time::timeout(Duration::from_secs(60), drive(&place, option, capabilities)).await??;
            runs += 1;
        }
    }
    println!("agent-client-protocol (Rust) 5.0.0 ok: {runs} runs");
    Ok(())
}
