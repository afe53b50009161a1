//! `qwen bus`: creates, shows and checks the streams that several machines share.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_fleet::{Bus, StreamOptions, StreamReport};
use qwen_http::{Client, ClientConfig, HttpRequest};
use qwen_kernel::config::BusConfig;
use serde_json::{Value, json};

use crate::cli::{BusAction, BusArgs, BusCheckArgs, BusExportArgs, BusInitArgs};
use crate::roles::bus;
use crate::settings::Invocation;

/// What a subcommand prints.
pub struct BusReport {
    pub text: String,
    pub is_healthy: bool,
}

/// How many streams share the sessions by default.
const SHARDS: u32 = 3;
/// How long numbered lines can be read by default.
const EVENTS_RETENTION: Duration = Duration::from_secs(3600);
/// How many round trips are measured.
const ROUND_TRIPS: u32 = 20;

/// Carries out an action of `qwen bus`.
pub async fn run(action: &BusAction, invocation: &Invocation) -> Result<BusReport, ErrorInfo> {
    match action {
        BusAction::Init(args) => init(args, invocation).await,
        BusAction::Status(args) => status(args, invocation).await,
        BusAction::Check(args) => check(args, invocation).await,
        BusAction::Export(args) => export(args, invocation).await,
    }
}

async fn connect(args: &BusArgs, invocation: &Invocation) -> Result<(Bus, BusConfig), ErrorInfo> {
    let config = bus::configured(args.config.as_deref())?;
    let options = bus::options(&args.bus, &config, invocation)?.ok_or_else(|| {
        let message = "no bus is named; use --bus URL or the variable QWEN_BUS";
        ErrorInfo::new(ErrorKind::Usage, "no_bus", message)
    })?;
    let connected = Bus::connect(&options, bus::identity("qwen-bus")).await;
    Ok((connected.map_err(|error| bus::to_error(&error))?, config))
}

async fn init(args: &BusInitArgs, invocation: &Invocation) -> Result<BusReport, ErrorInfo> {
    let (connection, config) = connect(&args.common, invocation).await?;
    let replicas = bus::choose_number(invocation, args.replicas, "QWEN_BUS_REPLICAS", config.replicas)?;
    let shards = bus::choose_number(invocation, args.shards, "QWEN_BUS_SHARDS", config.shards)?;
    let retention = bus::choose_duration(
        invocation,
        args.events_retention,
        "QWEN_BUS_EVENTS_RETENTION",
        config.events_retention,
    )?;
    let replicas = match replicas {
        Some(replicas) => replicas,
        None => u32::try_from(connection.servers()).unwrap_or(3).min(3),
    };
    let options = StreamOptions {
        shards: shards.unwrap_or(SHARDS),
        replicas,
        events_retention: retention.unwrap_or(EVENTS_RETENTION),
    };
    let streams = qwen_fleet::init(&connection, &options).await.map_err(|error| bus::to_error(&error))?;
    let created = streams.iter().filter(|stream| stream.is_new).count();
    let text = if args.common.json {
        format!(
            "{}\n",
            json!({"created": created, "streams": streams.iter().map(to_json).collect::<Vec<_>>()})
        )
    } else {
        format!("{} streams: {created} created, {} verified\n", streams.len(), streams.len() - created)
    };
    Ok(BusReport { text, is_healthy: true })
}

fn to_json(stream: &StreamReport) -> Value {
    json!({
        "name": stream.name, "is_new": stream.is_new, "messages": stream.messages, "bytes": stream.bytes,
        "replicas": stream.replicas, "leader": stream.leader, "lagging": stream.lagging,
    })
}

async fn status(args: &BusArgs, invocation: &Invocation) -> Result<BusReport, ErrorInfo> {
    let (connection, _) = connect(args, invocation).await?;
    let streams = qwen_fleet::report(&connection).await.map_err(|error| bus::to_error(&error))?;
    let is_healthy = streams.iter().all(|stream| stream.lagging.is_empty());
    if args.json {
        let report = json!({
            "server": connection.server_version(), "streams": streams.iter().map(to_json).collect::<Vec<_>>(),
        });
        return Ok(BusReport { text: format!("{report}\n"), is_healthy });
    }
    let mut text = format!("nats-server {}\n", connection.server_version());
    for stream in &streams {
        let leader = stream.leader.as_deref().unwrap_or("-");
        let lagging = if stream.lagging.is_empty() {
            String::new()
        } else {
            format!(", behind or away: {}", stream.lagging.join(", "))
        };
        let _ = writeln!(
            text,
            "{:8} {:>9} messages {:>12} bytes, {} replicas, leader {leader}{lagging}",
            stream.name, stream.messages, stream.bytes, stream.replicas
        );
    }
    Ok(BusReport { text, is_healthy })
}

/// Writes the messages of all streams into a file that only this user can read.
async fn export(args: &BusExportArgs, invocation: &Invocation) -> Result<BusReport, ErrorInfo> {
    let (connection, _) = connect(&args.common, invocation).await?;
    let directory = invocation.cwd.join(&args.directory);
    let path = directory.join("streams.jsonl");
    let unwritable = |error: std::io::Error| {
        let message = format!("{} cannot be written: {error}", path.display());
        ErrorInfo::new(ErrorKind::Input, "unwritable_export", message)
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(unwritable)?;
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let mut out = BufWriter::new(file.map_err(unwritable)?);
    let mut count = 0_u64;
    let mut written = Ok(());
    let exported = qwen_fleet::export_streams(&connection, |message| {
        count += 1;
        if written.is_ok() {
            written = writeln!(out, "{message}");
        }
    });
    exported.await.map_err(|error| bus::to_error(&error))?;
    written.and_then(|()| out.flush()).map_err(unwritable)?;
    let text = if args.common.json {
        format!("{}\n", json!({"messages": count, "file": path}))
    } else {
        format!("{count} messages in {}\n", path.display())
    };
    Ok(BusReport { text, is_healthy: true })
}

/// One checked fact, and advice if it is not as it should be.
struct Finding {
    name: &'static str,
    value: String,
    advice: Option<String>,
}

async fn check(args: &BusCheckArgs, invocation: &Invocation) -> Result<BusReport, ErrorInfo> {
    let (connection, _) = connect(&args.common, invocation).await?;
    let version = connection.server_version();
    let mut findings =
        vec![Finding { name: "server", value: format!("nats-server {version}"), advice: None }];
    let streams = qwen_fleet::report(&connection).await.map_err(|error| bus::to_error(&error))?;
    let replicas = streams.iter().map(|stream| stream.replicas).min().unwrap_or(0);
    findings.push(Finding {
        name: "replicas",
        value: replicas.to_string(),
        advice: (replicas < 3).then(|| {
            "a server that is lost takes its sessions with it; use three servers and `--replicas 3`"
                .to_owned()
        }),
    });
    let lagging: Vec<&str> =
        streams.iter().flat_map(|stream| stream.lagging.iter().map(String::as_str)).collect();
    findings.push(Finding {
        name: "servers behind or away",
        value: if lagging.is_empty() { "none".to_owned() } else { lagging.join(", ") },
        advice: (!lagging.is_empty())
            .then(|| "start them; never remove a peer while a server is away".to_owned()),
    });
    findings.push(sync_policy(args.monitor.as_deref()).await);
    let mut times = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let start = Instant::now();
        connection.round_trip().await.map_err(|error| bus::to_error(&error))?;
        times.push(start.elapsed());
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    findings.push(Finding {
        name: "round trip",
        value: format!("{:.2} ms", median.as_secs_f64() * 1000.0),
        advice: (median > Duration::from_millis(20))
            .then(|| "every line of a session waits for it; use servers that are nearer".to_owned()),
    });
    Ok(print(&findings, args.common.json))
}

fn print(findings: &[Finding], is_json: bool) -> BusReport {
    let is_healthy = findings.iter().all(|finding| finding.advice.is_none());
    if is_json {
        let findings: Vec<Value> = findings
            .iter()
            .map(|finding| json!({"name": finding.name, "value": finding.value, "advice": finding.advice}))
            .collect();
        return BusReport {
            text: format!("{}\n", json!({"healthy": is_healthy, "findings": findings})),
            is_healthy,
        };
    }
    let mut text = String::new();
    for finding in findings {
        let mark = if finding.advice.is_some() { "!" } else { "✓" };
        let _ = writeln!(text, "{mark} {}: {}", finding.name, finding.value);
        if let Some(advice) = &finding.advice {
            let _ = writeln!(text, "  {advice}");
        }
    }
    BusReport { text, is_healthy }
}

/// Reads the policy that decides whether acknowledged messages survive a power failure.
async fn sync_policy(monitor: Option<&str>) -> Finding {
    let name = "sync policy";
    let Some(address) = monitor else {
        let value = "unknown; name the monitoring address of a server with --monitor".to_owned();
        return Finding { name, value, advice: None };
    };
    match read_varz(address).await {
        Err(why) => {
            Finding { name, value: "unknown".to_owned(), advice: Some(format!("{address} cannot be read: {why}")) }
        }
        Ok(state) if state["jetstream"]["config"]["sync_always"] == true => {
            Finding { name, value: "always".to_owned(), advice: None }
        }
        Ok(_) => Finding {
            name,
            value: "periodic".to_owned(),
            advice: Some(
                "a power failure can lose acknowledged messages; set `sync_interval: always` in the section `jetstream` of every server"
                    .to_owned(),
            ),
        },
    }
}

async fn read_varz(address: &str) -> Result<Value, String> {
    let client = Client::new(ClientConfig::default());
    let request = HttpRequest::get(format!("{}/varz", address.trim_end_matches('/')));
    let mut response = client.send(request).await.map_err(|error| error.to_string())?;
    let mut body = Vec::new();
    while let Some(data) = response.body.data().await {
        body.extend_from_slice(&data.map_err(|error| error.to_string())?);
        if body.len() > 1 << 20 {
            return Err("the answer is too long".to_owned());
        }
    }
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}
