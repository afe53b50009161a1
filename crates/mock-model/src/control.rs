//! Control endpoints for tests in other languages: list requests, open gates, reset.

use serde_json::{Value, json};

use crate::Script;
use crate::http::RawRequest;
use crate::state::Shared;

/// Answers a request below `/control/`: a status and a body.
pub(crate) fn handle(shared: &Shared, raw: &RawRequest) -> (u16, String) {
    let path = raw.path.trim_start_matches("/control/");
    let (verb, argument) = path.split_once('/').unwrap_or((path, ""));
    let result = match (raw.method.as_str(), verb) {
        ("POST", "reset") => {
            shared.reset();
            Ok(json!({ "ok": true }))
        }
        ("GET", "requests") => {
            let state = shared.lock();
            Ok(state.exchanges.iter().map(|exchange| exchange.request.to_json()).collect::<Value>())
        }
        ("POST", "script") => replace_script(shared, &raw.body),
        ("POST", "open") => {
            shared.update(|state| state.open.insert(argument.to_owned()));
            Ok(json!({ "ok": true }))
        }
        ("GET", "reached") => shared.await_gate(argument).map(|()| json!({ "ok": true })),
        ("GET", "request") => {
            number(argument).and_then(|number| shared.await_request(number)).map(|request| request.to_json())
        }
        ("GET", "gone") => number(argument)
            .and_then(|number| shared.await_disconnect(number))
            .map(|()| json!({ "ok": true })),
        _ => Err(format!(
            "mock-model has POST /control/reset, /control/script, /control/open/GATE and GET /control/requests, \
             /control/request/N, /control/reached/GATE, /control/gone/N; not {} {}",
            raw.method, raw.path
        )),
    };
    match result {
        Ok(body) => (200, body.to_string()),
        Err(error) => (400, json!({ "error": error }).to_string()),
    }
}

fn number(argument: &str) -> Result<usize, String> {
    argument
        .parse()
        .map_err(|_| format!("the number of a request, counted from 0, is wanted, not {argument:?}"))
}

fn replace_script(shared: &Shared, body: &[u8]) -> Result<Value, String> {
    let text = str::from_utf8(body).map_err(|error| format!("the script is no text: {error}"))?;
    let script = Script::parse(text)?;
    shared.update(|state| {
        state.queue.clear();
        state.source = Some(Box::new(script));
    });
    shared.reset();
    Ok(json!({ "ok": true }))
}
