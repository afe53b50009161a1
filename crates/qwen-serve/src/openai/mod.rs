//! OpenAI's endpoints, below `/v1`: the agents are the models.

mod chat;
mod history;
mod items;
mod responses;
mod stored;

use std::rc::Rc;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};

pub use self::chat::{CancelGuard, tool_names};
pub use self::history::{content_text, digest};
pub use self::stored::Responses;
use crate::respond::{HttpReply, Refusal, json_reply};
use crate::server::{Call, Server};
use crate::turn::TurnOutcome;

/// The models that are offered, and the agent behind each.
const MODELS: [(&str, &str); 3] = [("qwen", "react"), ("qwen-tot", "tot"), ("qwen-got", "got")];

/// The name of the server that the agent's tools are shown as.
const SERVER_LABEL: &str = "qwen";

/// When the models were made, as clients expect a time.
const CREATED: u64 = 1_760_000_000;

/// Serves a request below `/v1`.
pub async fn route(server: &Rc<Server>, call: Call, path: &[&str]) -> Result<HttpReply, Refusal> {
    let method = call.head.method.clone();
    match (&method, path) {
        (&Method::GET, ["models"]) => {
            let models: Vec<Value> = MODELS.iter().map(|(name, _)| model_json(name)).collect();
            Ok(json_reply(StatusCode::OK, &json!({"object": "list", "data": models})))
        }
        (&Method::GET, ["models", name]) => {
            agent(name)?;
            Ok(json_reply(StatusCode::OK, &model_json(name)))
        }
        (&Method::POST, ["chat", "completions"]) => chat::complete(server, call).await,
        (&Method::POST, ["responses"]) => responses::create(server, call).await,
        (&Method::GET, ["responses", id]) => responses::show(server, id),
        (&Method::DELETE, ["responses", id]) => responses::delete(server, id),
        (&Method::POST, ["responses", id, "cancel"]) => responses::cancel(server, id),
        _ => Err(Refusal::not_found("route")),
    }
}

fn model_json(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": CREATED, "owned_by": "qwen"})
}

/// The agent behind a model's name.
fn agent(model: &str) -> Result<&'static str, Refusal> {
    let found = MODELS.iter().find(|(name, _)| *name == model).map(|(_, agent)| *agent);
    found.ok_or_else(|| {
        let message = format!("There is no model '{model}'. GET /v1/models lists the models.");
        Refusal::new(StatusCode::NOT_FOUND, "model_not_found", message)
    })
}

/// A failure of a turn as a refusal, for answers that are not streamed.
fn failure(end: &TurnOutcome) -> Option<Refusal> {
    let (message, code) = match end.status.as_str() {
        "error" | "interrupted" => end.error.clone().unwrap_or_default(),
        _ => return None,
    };
    let message = if message.is_empty() { "The turn failed.".to_owned() } else { message };
    let refusal = Refusal::new(StatusCode::BAD_GATEWAY, "turn_failed", message);
    Some(if code.is_empty() { refusal } else { refusal.with("cause", code) })
}

/// Seconds since the Unix epoch.
fn seconds() -> u64 {
    crate::sessions::now() / 1000
}
