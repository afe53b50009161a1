//! A hundred sessions with one turn each: through one hub, and through a process of a peer CLI for each.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mock_model::monotonic_ns;
use serde_json::json;

use crate::Bench;
use crate::mock::Mock;
use crate::output::CHUNK_TEXT;
use crate::subject::IsolatedHome;
use crate::table::Row;
use crate::worker::Worker;

const SESSIONS: usize = 100;
/// How many processes of a peer run at once. More would not end sooner on few cores, and a hundred need more
/// memory than a small machine has.
const AT_ONCE: usize = 4;
/// A peer that needs longer for one turn does not work here.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A CLI from npm.
struct Peer {
    package: &'static str,
    program: &'static str,
    args: &'static [&'static str],
}

const PEERS: [Peer; 2] = [
    Peer {
        package: "@anthropic-ai/claude-code",
        program: "claude",
        args: &["-p", "hi", "--output-format", "json"],
    },
    Peer {
        package: "@qwen-code/qwen-code",
        program: "qwen",
        args: &["-p", "hi", "--output-format", "json", "--auth-type", "openai", "--model", "m"],
    },
];

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let count = bench.options.count(SESSIONS, 2);
    let title = format!("{count} sessions with one turn each");
    let mut rows = vec![Row::without_target(
        format!("{title}: through one hub"),
        through_hub(bench, &mock, count)?,
        "s",
    )];
    for peer in &PEERS {
        let name = format!("— through a process of {} each", peer.package);
        rows.push(match install(peer).and_then(|program| through_processes(&program, peer, &mock, count)) {
            Ok(seconds) => Row::without_target(name, seconds, "s"),
            Err(reason) => Row::note(name, format!("skipped: {reason}")),
        });
    }
    Ok(rows)
}

#[expect(clippy::cast_precision_loss, reason = "times are short")]
fn seconds_since(began: u64) -> f64 {
    (monotonic_ns() - began) as f64 / 1e9
}

fn through_hub(bench: &Bench, mock: &Mock, count: usize) -> Result<f64, String> {
    let home = IsolatedHome::fresh()?;
    let began = monotonic_ns();
    let mut hub =
        Worker::start(bench.subject.hub(mock, &home, &["--max-workers", &count.max(1).to_string()]))?;
    for n in 0..count {
        let input = json!({"parts": [{"type": "text", "text": "hi"}]});
        hub.send(&json!({"session_id": format!("s{n}"), "input": input}))?;
    }
    for _ in 0..count {
        hub.turn_end()?;
    }
    Ok(seconds_since(began))
}

/// Installs a peer below the target directory, once; its program.
fn install(peer: &Peer) -> Result<PathBuf, String> {
    let me = std::env::current_exe().map_err(|error| format!("cannot find my own program: {error}"))?;
    let target = me.parent().and_then(Path::parent).ok_or("this program is not in a target directory")?;
    let home = target.join("peers").join(peer.program);
    let program = home.join("node_modules/.bin").join(peer.program);
    if program.exists() {
        return Ok(program);
    }
    std::fs::create_dir_all(&home).map_err(|error| format!("cannot make a directory: {error}"))?;
    let installed = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "--prefix"])
        .arg(&home)
        .arg(peer.package)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm cannot be started: {error}"))?;
    if installed.status.success() && program.exists() {
        return Ok(program);
    }
    let why = String::from_utf8_lossy(&installed.stderr).lines().next().unwrap_or_default().to_owned();
    Err(format!("npm could not install it: {why}"))
}

/// Runs a program to its end, for at most [`TIME_LIMIT`].
fn finish(mut command: Command) -> Result<(), String> {
    let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) if began.elapsed() < TIME_LIMIT => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("a turn took longer than {} s", TIME_LIMIT.as_secs()));
            }
            Err(error) => return Err(format!("it cannot be waited for: {error}")),
        }
    }
}

fn through_processes(program: &Path, peer: &Peer, mock: &Mock, count: usize) -> Result<f64, String> {
    let home = IsolatedHome::fresh()?;
    let run = || -> Result<(), String> {
        let mut command = Command::new(program);
        command.args(peer.args);
        home.isolate(&mut command, mock);
        let root = mock.base_url().trim_end_matches("/v1").to_owned();
        command.env("ANTHROPIC_API_KEY", "x").env("ANTHROPIC_BASE_URL", root).env("OPENAI_MODEL", "m");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        finish(command)
    };
    // One to see that it works at all, and to fill the caches.
    run()?;
    let began = monotonic_ns();
    std::thread::scope(|scope| {
        let share = |part: usize| (part..count).step_by(AT_ONCE);
        let lanes: Vec<_> =
            (0..AT_ONCE).map(|part| scope.spawn(move || share(part).try_for_each(|_| run()))).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().map_err(|_| "a run panicked".to_owned())?)
    })?;
    Ok(seconds_since(began))
}
