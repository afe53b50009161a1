//! The streams of the bus: their settings, their creation and their verification.

use std::time::Duration;

use qwen_events::SessionId;
use serde_json::{Value, json};

use crate::bus::{Bus, BusError};
use crate::stream::refusal;
use crate::subjects::{Names, shard_of};

/// The key of the number of shards in the metadata of a stream.
const SHARDS_KEY: &str = "qwen-shards";
/// The key of the version of subjects and headers.
const WIRE_KEY: &str = "qwen-wire";
const WIRE: &str = "1";
const MAX_SHARDS: u32 = 64;

/// The number of shards of a bus, which is fixed when its streams are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shards(u32);

impl Shards {
    /// Returns the number of shards.
    pub fn count(self) -> u32 {
        self.0
    }

    /// Returns the shard of a session.
    pub fn shard_of(self, session: &SessionId) -> u32 {
        shard_of(session, self.0)
    }
}

/// What `qwen bus init` decides.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    pub shards: u32,
    pub replicas: u32,
    /// How long numbered lines can be read.
    pub events_retention: Duration,
}

/// One stream as the bus has it.
#[derive(Debug, Clone)]
pub struct StreamReport {
    pub name: String,
    /// True if it was created just now.
    pub is_new: bool,
    pub messages: u64,
    pub bytes: u64,
    pub replicas: u64,
    /// The server that orders its messages; none while the servers elect one.
    pub leader: Option<String>,
    /// The replicas that are behind or away.
    pub lagging: Vec<String>,
}

fn stream(name: &str, subject: &str, options: &StreamOptions) -> Value {
    json!({
        "name": name,
        "subjects": [subject],
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "num_replicas": options.replicas,
        "allow_direct": true,
        "metadata": {SHARDS_KEY: options.shards.to_string(), WIRE_KEY: WIRE},
    })
}

/// Returns the streams of a bus.
fn stream_configs(names: &Names, options: &StreamOptions) -> Vec<Value> {
    let mut streams = Vec::new();
    for shard in 0..options.shards {
        streams.push(stream(&names.log_stream(shard), &names.log_subject(shard, "*"), options));
        let source = names.event_subject(shard, "*");
        let mut lines = stream(&names.event_stream(shard), &source, options);
        let age = u64::try_from(options.events_retention.as_nanos()).unwrap_or(u64::MAX);
        lines["max_age"] = age.into();
        lines["republish"] = json!({"src": source, "dest": names.live_subject(shard, "{{wildcard(1)}}")});
        streams.push(lines);
    }
    let mut turns = stream(&names.turn_stream(), &names.turn_subject("*"), options);
    turns["max_msgs_per_subject"] = 1.into();
    // The entry of a session replaces the one before.
    turns["discard"] = "old".into();
    streams.push(turns);
    streams
}

/// Creates the streams that do not exist. Streams with other settings are an error and stay as they are.
pub async fn init(bus: &Bus, options: &StreamOptions) -> Result<Vec<StreamReport>, BusError> {
    if !(1..=MAX_SHARDS).contains(&options.shards) || !(1..=5).contains(&options.replicas) {
        let message = format!("A bus has 1 to {MAX_SHARDS} shards and 1 to 5 replicas.");
        return Err(BusError::new("invalid_bus_options", message));
    }
    let mut missing = Vec::new();
    let mut reports = Vec::new();
    for config in stream_configs(&bus.names, options) {
        let name = config["name"].as_str().unwrap_or_default().to_owned();
        let reply = bus.ask(&format!("STREAM.INFO.{name}"), &json!({})).await?;
        if reply["error"]["err_code"] == 10059 {
            missing.push((name, config));
        } else if reply["error"].is_object() {
            return Err(refusal(&name, &reply));
        } else {
            compare(&name, &config, &reply["config"])?;
            reports.push(report_of(&name, &reply, false));
        }
    }
    for (name, config) in missing {
        let reply = bus.ask(&format!("STREAM.CREATE.{name}"), &config).await?;
        if reply["error"].is_object() {
            return Err(refusal(&name, &reply));
        }
        reports.push(report_of(&name, &reply, true));
    }
    reports.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(reports)
}

/// Fails if an existing stream differs in a setting that is ours.
fn compare(name: &str, wanted: &Value, there: &Value) -> Result<(), BusError> {
    for key in [
        "subjects",
        "storage",
        "retention",
        "discard",
        "num_replicas",
        "allow_direct",
        "max_age",
        "republish",
    ] {
        let is_same = |value: &Value| value == &there[key] || value.is_null() && is_default(&there[key]);
        if !is_same(&wanted[key]) {
            let message = format!(
                "The stream {name} exists with `{key}` {}, not {}. It was not changed. Repeat the options that it was created with, or change it with the tools of NATS.",
                there[key], wanted[key]
            );
            return Err(BusError::new("foreign_stream", message));
        }
    }
    for key in [SHARDS_KEY, WIRE_KEY] {
        if wanted["metadata"][key] != there["metadata"][key] {
            let message = format!(
                "The stream {name} exists with `{key}` {}, not {}. The number of shards of a bus cannot change.",
                there["metadata"][key], wanted["metadata"][key]
            );
            return Err(BusError::new("foreign_stream", message));
        }
    }
    Ok(())
}

fn is_default(value: &Value) -> bool {
    value.is_null() || value == &json!(0) || value == &json!(false)
}

fn report_of(name: &str, reply: &Value, is_new: bool) -> StreamReport {
    let cluster = &reply["cluster"];
    let replicas = cluster["replicas"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_lagging = |replica: &&Value| replica["offline"] == true || replica["current"] != true;
    let names = replicas.iter().filter(is_lagging).filter_map(|replica| replica["name"].as_str());
    StreamReport {
        name: name.to_owned(),
        is_new,
        messages: reply["state"]["messages"].as_u64().unwrap_or(0),
        bytes: reply["state"]["bytes"].as_u64().unwrap_or(0),
        replicas: reply["config"]["num_replicas"].as_u64().unwrap_or(0),
        leader: cluster["leader"].as_str().map(str::to_owned),
        lagging: names.map(str::to_owned).collect(),
    }
}

/// Reads the number of shards of a bus, and verifies that all its streams exist.
pub async fn shards(bus: &Bus) -> Result<Shards, BusError> {
    let reports = report(bus).await?;
    let count = u32::try_from(reports.len().saturating_sub(1) / 2).unwrap_or(1);
    match bus.shards {
        Some(wanted) if wanted != count => {
            let message = format!(
                "The bus has {count} shards, and the configuration names {wanted}. Correct `bus.shards`; the number of shards of a bus cannot change."
            );
            Err(BusError::new("foreign_stream", message))
        }
        _ => Ok(Shards(count)),
    }
}

/// Reports on every stream.
pub async fn report(bus: &Bus) -> Result<Vec<StreamReport>, BusError> {
    let turns = info(bus, &bus.names.turn_stream()).await?;
    let metadata = &turns["config"]["metadata"];
    if metadata[WIRE_KEY] != WIRE {
        let message = format!(
            "The streams of this bus have the format {}, and this program uses {WIRE}. Use the same version of qwen on all machines.",
            metadata[WIRE_KEY]
        );
        return Err(BusError::new("bus_format", message));
    }
    let count = metadata[SHARDS_KEY].as_str().and_then(|text| text.parse::<u32>().ok());
    let Some(count) = count.filter(|count| (1..=MAX_SHARDS).contains(count)) else {
        return Err(BusError::new(
            "foreign_stream",
            "The stream QTURN does not name the number of shards: it is not one that `qwen bus init` created.",
        ));
    };
    let mut reports = Vec::new();
    for shard in 0..count {
        for name in [bus.names.log_stream(shard), bus.names.event_stream(shard)] {
            let reply = info(bus, &name).await?;
            reports.push(report_of(&name, &reply, false));
        }
    }
    reports.push(report_of(&bus.names.turn_stream(), &turns, false));
    Ok(reports)
}

async fn info(bus: &Bus, name: &str) -> Result<Value, BusError> {
    let reply = bus.ask(&format!("STREAM.INFO.{name}"), &json!({})).await?;
    if reply["error"].is_object() { Err(refusal(name, &reply)) } else { Ok(reply) }
}
