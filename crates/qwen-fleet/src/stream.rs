//! Appends and reads on one subject of a stream. Every append names the message that it must follow; an outcome
//! that is unknown is looked up, never guessed.

use std::time::Duration;

use async_nats::{HeaderMap, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::bus::{Bus, BusError};
use crate::headers::{parse_block, set_expected};

/// The last message has another sequence number than the append expects.
const WRONG_LAST_SEQUENCE: u64 = 10071;
/// The server has not finished the message before; the same message is sent again.
const PREVIOUS_IN_FLIGHT: u64 = 10164;
/// The store is full.
const FULL: [u64; 3] = [10023, 10047, 10077];
/// There is no such message.
const NO_MESSAGE: u64 = 10037;

/// How many messages one read asks for.
const BATCH: u32 = 256;
/// The largest size of one read, in bytes.
const BATCH_BYTES: u32 = 8 << 20;
/// How long to wait for the next message of a read.
const READ_LIMIT: Duration = Duration::from_secs(2);
/// How long the lookups of an unknown outcome are apart.
const FIRST_LOOKUP: Duration = Duration::from_millis(50);
const LAST_LOOKUP: Duration = Duration::from_secs(1);

/// A message that is stored.
#[derive(Debug, Clone)]
pub struct Stored {
    pub sequence: u64,
    pub headers: HeaderMap,
    pub payload: Bytes,
    /// When it was stored, in seconds since 1970 by the server's clock; 0 if unknown.
    pub stored_at: i64,
}

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is stored under this sequence number.
    At(u64),
    /// Another message came first; nothing was stored.
    Refused,
    /// The bus did not answer for as long as an append may wait. It may still be stored.
    Unknown,
}

/// A subject in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSubject {
    pub stream: String,
    pub subject: String,
}

fn error_code(reply: &Value) -> Option<u64> {
    reply["error"].as_object().map(|error| error.get("err_code").and_then(Value::as_u64).unwrap_or(0))
}

impl Bus {
    /// Reads the last message of a subject from the leader of its stream.
    pub(crate) async fn read_last(&self, place: &StreamSubject) -> Result<Option<Stored>, BusError> {
        let verb = format!("STREAM.MSG.GET.{}", place.stream);
        let reply = self.ask(&verb, &json!({"last_by_subj": place.subject})).await?;
        match error_code(&reply) {
            Some(NO_MESSAGE) => return Ok(None),
            Some(_) => return Err(refusal(&place.stream, &reply)),
            None => {}
        }
        let message = &reply["message"];
        let decode =
            |key: &str| STANDARD.decode(message[key].as_str().unwrap_or_default()).unwrap_or_default();
        let Some(sequence) = message["seq"].as_u64() else { return Err(refusal(&place.stream, &reply)) };
        let (headers, payload) = (parse_block(&decode("hdrs")), decode("data").into());
        let stored_at = message["time"].as_str().and_then(parse_time).unwrap_or(0);
        Ok(Some(Stored { sequence, headers, payload, stored_at }))
    }

    /// Reads the last message of a subject. A stream without a leader does not answer, so it is asked again until the
    /// commit timeout is over.
    pub(crate) async fn await_last(&self, place: &StreamSubject) -> Result<Option<Stored>, BusError> {
        let deadline = Instant::now() + self.commit_timeout;
        let mut wait = FIRST_LOOKUP;
        loop {
            match self.read_last(place).await {
                Err(error) if error.is_passing() && Instant::now() + wait < deadline => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LAST_LOOKUP);
                }
                outcome => return outcome,
            }
        }
    }

    /// Reads the last message of a subject, and asks again until `deadline`.
    async fn look_up(&self, place: &StreamSubject, deadline: Instant) -> Option<Option<Stored>> {
        let mut wait = FIRST_LOOKUP;
        loop {
            if let Ok(last) = self.read_last(place).await {
                return Some(last);
            }
            if Instant::now() + wait >= deadline {
                return None;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_LOOKUP);
        }
    }

    /// Appends a message after the one with the number `expected`; 0 if there is none. `is_ours` recognizes the message
    /// among what is stored, in case that its acknowledgement was lost.
    pub(crate) async fn append(
        &self,
        place: &StreamSubject,
        expected: u64,
        mut headers: HeaderMap,
        payload: Bytes,
        is_ours: impl Fn(&HeaderMap) -> bool,
    ) -> AppendOutcome {
        set_expected(&mut headers, expected);
        let started = Instant::now();
        let outcome = self.append_until(place, expected, &headers, &payload, is_ours).await;
        match outcome {
            AppendOutcome::At(_) => self.metrics.count_append(payload.len(), started.elapsed()),
            AppendOutcome::Refused => self.metrics.refused.increment(),
            AppendOutcome::Unknown => self.metrics.unknown.increment(),
        }
        outcome
    }

    /// Appends until the outcome is known or the commit timeout is over.
    async fn append_until(
        &self,
        place: &StreamSubject,
        expected: u64,
        headers: &HeaderMap,
        payload: &Bytes,
        is_ours: impl Fn(&HeaderMap) -> bool,
    ) -> AppendOutcome {
        let deadline = Instant::now() + self.commit_timeout;
        loop {
            let request = Request::new().headers(headers.clone()).payload(payload.clone());
            let answer = self.client.send_request(place.subject.clone(), request).await;
            let reply: Value = answer
                .ok()
                .and_then(|message| serde_json::from_slice(&message.payload).ok())
                .unwrap_or_default();
            if let Some(sequence) = reply["seq"].as_u64().filter(|_| error_code(&reply).is_none()) {
                return AppendOutcome::At(sequence);
            }
            match error_code(&reply) {
                Some(PREVIOUS_IN_FLIGHT) if Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                }
                Some(code) if FULL.contains(&code) && Instant::now() < deadline => {
                    self.metrics.full.increment();
                    tokio::time::sleep(LAST_LOOKUP / 4).await;
                    continue;
                }
                _ => {}
            }
            self.metrics.lookups.increment();
            let Some(last) = self.look_up(place, deadline).await else { return AppendOutcome::Unknown };
            let sequence = last.as_ref().map_or(0, |last| last.sequence);
            match last {
                Some(last) if sequence > expected && is_ours(&last.headers) => {
                    return AppendOutcome::At(sequence);
                }
                _ if sequence != expected || error_code(&reply) == Some(WRONG_LAST_SEQUENCE) => {
                    return AppendOutcome::Refused;
                }
                // Nothing is stored yet. The same message is sent again, because the first one may still arrive.
                _ if Instant::now() >= deadline => return AppendOutcome::Unknown,
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    /// Reads messages of a subject from sequence number `from` on, from any server that has the stream: the end
    /// may be missing. An empty answer means that there are no more.
    pub(crate) async fn read_batch(&self, place: &StreamSubject, from: u64) -> Result<Vec<Stored>, BusError> {
        let lost =
            || BusError::new("bus_unavailable", format!("The bus did not send what {} has.", place.stream));
        let inbox = self.client.new_inbox();
        let mut replies = self.client.subscribe(inbox.clone()).await.map_err(|_| lost())?;
        let body = json!({"seq": from.max(1), "next_by_subj": place.subject, "batch": BATCH, "max_bytes": BATCH_BYTES});
        let subject = format!("$JS.API.DIRECT.GET.{}", place.stream);
        self.client
            .publish_with_reply(subject, inbox, Bytes::from(body.to_string()))
            .await
            .map_err(|_| lost())?;
        let mut batch = Vec::new();
        loop {
            let next = tokio::time::timeout(READ_LIMIT, replies.next()).await;
            let Ok(Some(message)) = next else { return Err(lost()) };
            if let Some(status) = message.status {
                return match status.as_u16() {
                    204 | 404 => Ok(batch),
                    _ => Err(lost()),
                };
            }
            let headers = message.headers.unwrap_or_default();
            let sequence = headers.get("Nats-Sequence").and_then(|value| value.as_str().parse().ok());
            let Some(sequence) = sequence else { return Err(lost()) };
            batch.push(Stored { sequence, headers, payload: message.payload, stored_at: 0 });
        }
    }

    /// Deletes all messages of a subject.
    pub(crate) async fn purge(&self, place: &StreamSubject) -> Result<(), BusError> {
        let reply =
            self.ask(&format!("STREAM.PURGE.{}", place.stream), &json!({"filter": place.subject})).await?;
        if error_code(&reply).is_some() { Err(refusal(&place.stream, &reply)) } else { Ok(()) }
    }
}

/// Parses the date and time of a server, in UTC, to seconds since 1970.
fn parse_time(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    // Years begin in March, so that a leap day is the last day of one.
    let shifted = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// The error of an answer that is one.
pub fn refusal(stream: &str, reply: &Value) -> BusError {
    let why = reply["error"]["description"].as_str().unwrap_or("it sent no reason");
    match reply["error"]["err_code"].as_u64() {
        Some(10059) => BusError::new(
            "bus_not_initialized",
            format!("The bus has no stream {stream}. Create the streams with `qwen bus init`."),
        ),
        Some(10008) => BusError::new(
            "bus_unavailable",
            format!("The stream {stream} has no leader at the moment: {why}"),
        ),
        Some(10039 | 10076) => BusError::new(
            "bus_without_jetstream",
            "JetStream is not enabled for this account of the bus. Enable it in the configuration of its servers.",
        ),
        _ => BusError::new("bus_answer", format!("The bus refused a request for {stream}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_servers_are_seconds_since_1970() {
        assert_eq!(parse_time("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_time("2000-02-29T12:00:00.5Z"), Some(951_825_600));
        assert_eq!(parse_time("2026-11-19T21:00:00.123456789Z"), Some(1_795_122_000));
        assert_eq!(parse_time("soon"), None);
    }
}
