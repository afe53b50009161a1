//! The messages of all streams as JSON, for audits.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use qwen_kernel::ipc::CommitReason;
use serde_json::{Value, json};

use crate::bus::{Bus, BusError};
use crate::headers::{EventHeaders, LogHeaders};
use crate::stream::{Stored, StreamSubject};
use crate::streams::shards;
use crate::subjects::session_of_token;

/// Passes every message of the sessions' streams to `each`, in the order of each stream.
pub async fn export_streams(bus: &Bus, mut each: impl FnMut(&Value)) -> Result<(), BusError> {
    for shard in 0..shards(bus).await?.count() {
        for (stream, is_log) in [(bus.names.log_stream(shard), true), (bus.names.event_stream(shard), false)]
        {
            let place = StreamSubject { stream, subject: ">".to_owned() };
            let mut next = 1;
            loop {
                let batch = bus.read_batch(&place, next).await?;
                let Some(last) = batch.last() else { break };
                next = last.sequence + 1;
                for message in &batch {
                    each(&describe(&place.stream, is_log, message));
                }
            }
        }
    }
    Ok(())
}

/// Describes a message. One of another program has no epoch.
fn describe(stream: &str, is_log: bool, message: &Stored) -> Value {
    let text = |name: &str| message.headers.get(name).map(async_nats::HeaderValue::as_str);
    let subject = text("Nats-Subject").unwrap_or_default();
    let session = subject.rsplit('.').next().and_then(session_of_token);
    let mut entry = json!({
        "stream": stream, "sequence": message.sequence, "kind": if is_log { "log" } else { "lines" },
        "session_id": session.as_ref().map(qwen_events::SessionId::as_str), "time": text("Nats-Time-Stamp"),
    });
    match std::str::from_utf8(&message.payload) {
        Ok(data) => entry["data"] = data.into(),
        // A part of a long line may end in the middle of a character.
        Err(_) => entry["data_base64"] = STANDARD.encode(&message.payload).into(),
    }
    if is_log {
        if let Some(headers) = LogHeaders::parse(&message.headers) {
            describe_log(&mut entry, &headers);
        }
    } else if let Some(headers) = EventHeaders::parse(&message.headers) {
        entry["epoch"] = headers.epoch.into();
        entry["owner"] = headers.owner.into();
        entry["first"] = headers.first.into();
        entry["count"] = headers.count.into();
        entry["part"] = headers.part.map(|(part, parts)| format!("{part}/{parts}")).into();
        entry["open"] = headers.open.into();
    }
    entry
}

fn describe_log(entry: &mut Value, headers: &LogHeaders) {
    entry["epoch"] = headers.epoch.into();
    entry["owner"] = headers.owner.as_str().into();
    entry["offset"] = headers.offset.into();
    entry["is_released"] = headers.is_released.into();
    entry["is_incomplete"] = headers.base.is_some().into();
    match &headers.last {
        Some(CommitReason::Start { prompt_id }) => {
            entry["reason"] = "start".into();
            entry["prompt_id"] = prompt_id.as_str().into();
        }
        Some(CommitReason::Effect { tool, call }) => {
            entry["reason"] = "effect".into();
            entry["tool"] = tool.as_str().into();
            entry["call"] = call.as_str().into();
        }
        Some(CommitReason::End { prompt_id }) => {
            entry["reason"] = "end".into();
            entry["prompt_id"] = prompt_id.as_str().into();
        }
        None => {}
    }
}
