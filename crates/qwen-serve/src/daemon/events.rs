//! `GET /session/ID/events`: the events of a session in the daemon's frames.

use std::rc::Rc;

use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::log::EventLog;
use super::refuse;
use crate::api::SseWriter;
use crate::respond::{HttpReply, Refusal, event_stream};
use crate::server::{Call, Server};
use crate::token::random_id;

/// About how many bytes are written at once.
const PIECE: usize = 64 * 1024;

/// Serves the stream. `epoch` and position come from the headers of a reader that returns.
pub fn stream(server: &Rc<Server>, call: &Call, log: &Rc<EventLog>) -> Result<HttpReply, Refusal> {
    if let Some(queued) = call.query("maxQueued") {
        let is_valid = queued.parse::<u64>().is_ok_and(|queued| (16..=2048).contains(&queued));
        if !is_valid {
            return Err(refuse(400, "invalid_max_queued", "`maxQueued` must be a number from 16 to 2048."));
        }
    }
    let position = call.header("last-event-id").and_then(|id| id.parse::<u64>().ok());
    let is_other_epoch = call.header("x-qwen-event-epoch").is_some_and(|epoch| epoch != log.epoch);
    let start = match position {
        None => Start::Live,
        Some(last) if is_other_epoch || last > log.last() => Start::Lost { last, reason: "epoch_reset" },
        Some(last) if last + 1 < log.earliest() => Start::Lost { last, reason: "ring_evicted" },
        Some(last) => Start::Replay { last },
    };
    let random = random_id().map_err(|error| Refusal::internal(error.to_string()))?;
    let (writer, pieces) = SseWriter::new(&server.sessions);
    let closing = server.sessions.closing();
    let live = log.last();
    tokio::task::spawn_local(write(log.clone(), writer, closing, start, live));
    let mut reply = event_stream(pieces);
    for (name, value) in [("x-qwen-event-epoch", log.epoch.clone()), ("x-qwen-sse-stream-id", uuid(random))] {
        if let Ok(value) = HeaderValue::try_from(value) {
            reply.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    Ok(reply)
}

/// Where a reader begins.
enum Start {
    /// With the next event.
    Live,
    /// After an event that it has.
    Replay { last: u64 },
    /// Its position means nothing any more.
    Lost { last: u64, reason: &'static str },
}

async fn write(
    log: Rc<EventLog>,
    mut writer: SseWriter,
    mut closing: tokio::sync::watch::Receiver<bool>,
    start: Start,
    live: u64,
) {
    let mut text = b"retry: 3000\n\n".to_vec();
    let (mut after, mut replayed) = match start {
        Start::Live => (live, None),
        Start::Replay { last } => (last, Some(0_u64)),
        Start::Lost { last, reason } => {
            let data =
                json!({"reason": reason, "lastDeliveredId": last, "earliestAvailableId": log.earliest()});
            push_note("state_resync_required", &data, &mut text);
            (log.earliest() - 1, Some(0))
        }
    };
    let mut changes = log.changes();
    loop {
        changes.mark_unchanged();
        let Some(events) = log.read(after, PIECE) else {
            let data = json!({"reason": "queue_bytes_overflow", "droppedAfter": after});
            push_note("client_evicted", &data, &mut text);
            writer.write(text.into()).await;
            return;
        };
        for event in &events {
            event.frame(&mut text);
        }
        after = events.last().map_or(after, |event| event.id);
        if let Some(count) = &mut replayed {
            *count += events.len() as u64;
            if after >= live {
                let mut data = json!({"replayedCount": *count});
                if *count > 0 {
                    data["lastReplayedEventId"] = after.into();
                }
                push_note("replay_complete", &data, &mut text);
                replayed = None;
            }
        }
        if !text.is_empty() && !writer.write(std::mem::take(&mut text).into()).await {
            return;
        }
        if !events.is_empty() {
            continue;
        }
        if log.is_closed.get() || *closing.borrow() {
            return;
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            _ = closing.changed() => {}
            () = tokio::time::sleep(writer.keep_alive) => text.extend_from_slice(b": heartbeat\n\n"),
            () = writer.closed() => return,
        }
    }
}

/// Appends an event that has no id.
fn push_note(kind: &str, data: &Value, out: &mut Vec<u8>) {
    let envelope = json!({"v": 1, "type": kind, "data": data});
    out.extend_from_slice(format!("event: {kind}\ndata: {envelope}\n\n").as_bytes());
}

/// A random number in the form of a UUID of version 4.
pub fn uuid(random: u128) -> String {
    let random = random & !(0xf << 76) | (4 << 76);
    let random = random & !(0x3 << 62) | (2 << 62);
    let digits = format!("{random:032x}");
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}
