//! The top-level keys of a client's line that the router needs. Their values are not parsed.

use std::borrow::Cow;

use qwen_events::{ErrorInfo, ErrorKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::tenant::is_tenant_name;

/// The kind of a client's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputKind {
    /// A prompt that starts a turn, or a command that may start one.
    Prompt,
    /// Context or a tool's answer: it belongs to the session and starts no turn.
    Addition,
    /// A prompt that joins the running turn.
    Steer,
    /// A request on the control channel.
    Control,
    /// An answer on the control channel.
    Answer,
    /// A `heartbeat_request`, which the hub answers itself.
    Heartbeat,
    /// A `control/cancel` of a turn or of a prompt that waits.
    Cancel,
    /// Any other line; the worker checks it.
    Other,
}

/// The parts of a client's line that the router reads.
#[derive(Debug, Clone)]
pub struct ClientInput<'a> {
    pub kind: InputKind,
    pub session_id: Option<Cow<'a, str>>,
    pub prompt_id: Option<Cow<'a, str>>,
    /// The id of a request or of the request that is answered.
    pub request_id: Option<Cow<'a, str>>,
    /// The control request's subtype.
    pub subtype: Option<Cow<'a, str>>,
    /// True for the nested form of the control channel.
    pub nested: bool,
    /// The tenant, if the line names one and its name is valid.
    pub tenant: Option<Cow<'a, str>>,
    /// The value of `tenant` that is not a tenant's name.
    pub invalid_tenant: Option<&'a str>,
    /// True for `retry: "safe"`: the prompt runs again if no tool had started.
    pub retry_safe: bool,
    /// True for `resend: true`: a known prompt joins its turn.
    pub resend: bool,
    /// `sequence: true`, of `initialize`
    pub sequence: Option<bool>,
    /// The number of `attach` after which lines are delivered.
    pub after: Option<&'a str>,
    /// The protocol version that the client requires.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The capabilities that the client requires.
    pub requires: Vec<String>,
    /// The complete body of a control request, for requests that the hub answers itself.
    pub body: &'a str,
}

#[derive(Deserialize)]
struct Keys<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_id: Option<&'a RawValue>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    subtype: Option<&'a RawValue>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tenant: Option<&'a RawValue>,
    #[serde(borrow)]
    retry: Option<&'a RawValue>,
    #[serde(borrow)]
    resend: Option<&'a RawValue>,
    #[serde(borrow)]
    delivery: Option<&'a RawValue>,
    #[serde(borrow)]
    sequence: Option<&'a RawValue>,
    #[serde(borrow)]
    after: Option<&'a RawValue>,
    #[serde(borrow)]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow)]
    requires: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
}

/// Reads a value that is there, `null` included.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(input: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(input).map(Some)
}

fn refuse(code: &'static str, message: impl Into<std::sync::Arc<str>>) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, code, message)
}

/// A text, or the error for another type. `null` counts as absent.
pub(super) fn text<'a>(name: &str, raw: Option<&'a RawValue>) -> Result<Option<Cow<'a, str>>, ErrorInfo> {
    let Some(raw) = raw.map(RawValue::get).filter(|raw| *raw != "null") else { return Ok(None) };
    // Borrowed if the text contains no escapes.
    if let Ok(plain) = serde_json::from_str::<&str>(raw) {
        return Ok(Some(Cow::Borrowed(plain)));
    }
    serde_json::from_str::<String>(raw)
        .map(|text| Some(Cow::Owned(text)))
        .map_err(|_| refuse("wrong_type", format!("`{name}` must be a text")).with_param(name))
}

fn flag(name: &str, raw: Option<&RawValue>) -> Result<Option<bool>, ErrorInfo> {
    match raw.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(refuse("wrong_type", format!("`{name}` must be true or false")).with_param(name)),
    }
}

/// The raw value of a top-level key.
pub(super) fn top_level<'a>(line: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(line).ok()?;
    let object: std::collections::HashMap<Cow<'_, str>, &'a RawValue> = serde_json::from_str(text).ok()?;
    object.get(name).map(|raw| raw.get())
}

/// Reads the keys of a line.
pub(super) fn read(line: &[u8]) -> Result<ClientInput<'_>, ErrorInfo> {
    let whole = std::str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        refuse("invalid_utf8", format!("the line is not UTF-8 from byte {at} on; send JSON in UTF-8"))
    })?;
    let whole = whole.strip_prefix('\u{feff}').unwrap_or(whole);
    let first = whole.bytes().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| byte != b'{') && serde_json::from_str::<&RawValue>(whole).is_ok() {
        let message = "the line is JSON but not an object; send one JSON object a line";
        return Err(refuse("not_an_object", message));
    }
    let keys: Keys<'_> = serde_json::from_str(whole).map_err(|error| {
        let duplicate = error.to_string().contains("duplicate field");
        let code = if duplicate { "duplicate_key" } else { "invalid_json" };
        refuse(code, format!("the line is not JSON: {error}; send one JSON object a line"))
    })?;
    let kind = text("type", keys.kind)?;
    let body = keys.request.or(keys.payload);
    let inner: Option<Keys<'_>> = body.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let inner = inner.as_ref();
    let request_id = match kind.as_deref() {
        // Claude's form has the request id inside the answer.
        Some("control_response") => {
            let response: Option<Keys<'_>> =
                keys.response.and_then(|raw| serde_json::from_str(raw.get()).ok());
            text("request_id", response.and_then(|inner| inner.request_id).or(keys.request_id))?
        }
        _ => text("request_id", keys.request_id)?,
    };
    let steers = text("delivery", keys.delivery)?.as_deref() == Some("steer");
    let kind = match kind.as_deref() {
        Some("user") => prompt_kind(keys.input, steers),
        Some("control_request") => InputKind::Control,
        Some("control_response") => InputKind::Answer,
        Some("heartbeat_request") => InputKind::Heartbeat,
        Some("control/cancel") => InputKind::Cancel,
        Some(_) => InputKind::Other,
        None if keys.input.is_some() || keys.messages.is_some() => prompt_kind(keys.input, steers),
        None => InputKind::Other,
    };
    let sequence = flag("sequence", keys.sequence.or(inner.and_then(|inner| inner.sequence)))?;
    let after = keys.after.or(inner.and_then(|inner| inner.after)).map(RawValue::get);
    let version = keys.protocol_version.or(inner.and_then(|inner| inner.protocol_version));
    let protocol_version = match version.map(RawValue::get) {
        Some(number) if number.starts_with(|c: char| c.is_ascii_digit()) => Some(Cow::Borrowed(number)),
        _ => text("protocol_version", version)?,
    };
    let named_tenant = keys.tenant.or(inner.and_then(|inner| inner.tenant)).map(RawValue::get);
    let tenant = named_tenant
        .and_then(|raw| serde_json::from_str::<Cow<'_, str>>(raw).ok())
        .filter(|name| is_tenant_name(name));
    let requires = keys.requires.or(inner.and_then(|inner| inner.requires));
    Ok(ClientInput {
        kind,
        session_id: text("session_id", keys.session_id.or(inner.and_then(|inner| inner.session_id)))?,
        prompt_id: text("prompt_id", keys.prompt_id)?,
        request_id,
        subtype: text("subtype", inner.and_then(|inner| inner.subtype).or(keys.subtype))?,
        nested: keys.request.is_some(),
        invalid_tenant: named_tenant.filter(|_| tenant.is_none()),
        tenant,
        retry_safe: text("retry", keys.retry)?.as_deref() == Some("safe"),
        resend: flag("resend", keys.resend)?.unwrap_or(false),
        sequence,
        after,
        protocol_version,
        requires: requires.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default(),
        body: body.map_or(whole, RawValue::get),
    })
}

/// A tool's answer and context for the next turn start no turn.
fn prompt_kind(input: Option<&RawValue>, steers: bool) -> InputKind {
    #[derive(Deserialize)]
    struct Origin<'a> {
        #[serde(borrow)]
        origin: Option<Cow<'a, str>>,
    }
    let origin = input.and_then(|raw| serde_json::from_str::<Origin<'_>>(raw.get()).ok());
    match origin.and_then(|input| input.origin).as_deref() {
        Some("tool_response" | "system") => InputKind::Addition,
        _ if steers => InputKind::Steer,
        _ => InputKind::Prompt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_classified_by_its_keys() {
        let cases = [
            (r#"{"session_id":"a","input":{"parts":[]}}"#, InputKind::Prompt),
            (r#"{"messages":[]}"#, InputKind::Prompt),
            (r#"{"input":{"origin":"tool_response"}}"#, InputKind::Addition),
            (r#"{"input":{"origin":"system"}}"#, InputKind::Addition),
            (r#"{"delivery":"steer","input":{}}"#, InputKind::Steer),
            (r#"{"type":"user","message":{}}"#, InputKind::Prompt),
            (r#"{"type":"control_request","subtype":"x","request_id":"r"}"#, InputKind::Control),
            (r#"{"type":"control_response","request_id":"r"}"#, InputKind::Answer),
            (r#"{"type":"control/cancel"}"#, InputKind::Cancel),
            (r#"{"type":"heartbeat_request"}"#, InputKind::Heartbeat),
            (r#"{"type":"anything"}"#, InputKind::Other),
            ("{}", InputKind::Other),
        ];
        for (line, kind) in cases {
            assert_eq!(read(line.as_bytes()).unwrap().kind, kind, "{line}");
        }
    }

    #[test]
    fn both_forms_of_the_control_channel_are_read() {
        let flat = read(
            br#"{"type":"control_request","request_id":"r","subtype":"attach","session_id":"s","after":3}"#,
        );
        let nested = read(br#"{"type":"control_request","request_id":"r","request":{"subtype":"attach","session_id":"s","after":3}}"#);
        for (input, is_nested) in [(flat.unwrap(), false), (nested.unwrap(), true)] {
            assert_eq!(input.subtype.as_deref(), Some("attach"));
            assert_eq!(input.session_id.as_deref(), Some("s"));
            assert_eq!(input.after, Some("3"));
            assert_eq!(input.nested, is_nested);
        }
        let answer =
            read(br#"{"type":"control_response","response":{"request_id":"q","subtype":"success"}}"#);
        assert_eq!(answer.unwrap().request_id.as_deref(), Some("q"));
    }

    #[test]
    fn a_bad_line_is_named() {
        let cases = [
            ("garbage", "invalid_json"),
            ("[1]", "not_an_object"),
            (r#"{"session_id":3,"input":{}}"#, "wrong_type"),
            (r#"{"session_id":"a","session_id":"b"}"#, "duplicate_key"),
            (r#"{"input":{}"#, "invalid_json"),
        ];
        for (line, code) in cases {
            assert_eq!(read(line.as_bytes()).unwrap_err().code, code, "{line}");
        }
        assert_eq!(read(b"\xff").unwrap_err().code, "invalid_utf8");
    }
}
