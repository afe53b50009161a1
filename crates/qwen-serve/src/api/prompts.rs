//! Prompts: submit, steer, withdraw, cancel.

use std::rc::Rc;

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::respond::{HttpReply, Refusal, json_reply};
use crate::server::{Call, Server};
use crate::sessions::{NewPrompt, Session};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Submit {
    prompt: Value,
}

pub async fn submit(
    server: &Rc<Server>,
    mut call: Call,
    session: &Rc<Session>,
    steers: bool,
) -> Result<HttpReply, Refusal> {
    let Submit { prompt } = call.json(server).await?;
    let is_valid = match &prompt {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(parts) => !parts.is_empty() && parts.iter().all(Value::is_object),
        _ => false,
    };
    if !is_valid {
        let message = "`prompt` must be a text that is not empty, or a list of parts.";
        return Err(Refusal::bad_request("invalid_prompt", message));
    }
    let prompt = NewPrompt { steers, ..NewPrompt::parts(prompt) };
    let accepted = server.sessions.submit(session, prompt).await?;
    let body = json!({"prompt_id": accepted.prompt_id, "after": accepted.after});
    Ok(json_reply(StatusCode::ACCEPTED, &body))
}

pub fn withdraw(server: &Server, session: &Session, prompt_id: &str) -> Result<HttpReply, Refusal> {
    server.sessions.withdraw(session, prompt_id)?;
    Ok(json_reply(StatusCode::ACCEPTED, &json!({"prompt_id": prompt_id})))
}

pub fn cancel(server: &Server, session: &Session) -> HttpReply {
    let status = if server.sessions.cancel(session) { "ok" } else { "noop" };
    json_reply(StatusCode::ACCEPTED, &json!({"status": status}))
}
