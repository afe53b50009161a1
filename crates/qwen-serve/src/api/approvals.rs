//! Permission requests of all sessions.

use std::rc::Rc;

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::respond::{HttpReply, Refusal, json_reply};
use crate::server::{Call, Server};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Decide {
    decision: String,
    updated_input: Option<Map<String, Value>>,
    message: Option<String>,
}

pub fn list(server: &Server) -> HttpReply {
    json_reply(StatusCode::OK, &json!({"approvals": server.sessions.approvals_json(None)}))
}

pub async fn decide(server: &Rc<Server>, mut call: Call, id: &str) -> Result<HttpReply, Refusal> {
    let Decide { decision, updated_input, message } = call.json(server).await?;
    let decision = match decision.as_str() {
        "allow" => "allow",
        "deny" => "deny",
        _ => return Err(Refusal::bad_request("invalid_decision", "`decision` must be allow or deny.")),
    };
    if decision == "deny" && updated_input.is_some() {
        let message = "`updated_input` is only possible with the decision allow.";
        return Err(Refusal::bad_request("invalid_decision", message));
    }
    let mut response = Map::new();
    response.extend(updated_input.map(|input| ("updatedInput".to_owned(), input.into())));
    response.extend(message.map(|message| ("message".to_owned(), message.into())));
    server.sessions.decide(id, decision, response)?;
    Ok(json_reply(StatusCode::OK, &json!({"id": id, "decision": decision})))
}
