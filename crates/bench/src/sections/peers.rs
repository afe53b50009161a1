//! Other agents that embed a CLI, with the same scripted model: what one turn costs, and a hundred sessions with
//! one turn each, through one hub and through a process of a peer for each. docs/comparison.md has the figures.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mock_model::monotonic_ns;
use serde_json::json;

use super::{repeat, turn};
use crate::Bench;
use crate::child::{self, Cost};
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, Mode};
use crate::stats::median;
use crate::subject::IsolatedHome;
use crate::table::Row;
use crate::worker::Worker;

const SESSIONS: usize = 100;
/// How many single turns are measured.
const TURNS: usize = 5;
/// How many processes of a peer run at once. More would not end sooner on few cores, and a hundred need more
/// memory than a small machine has.
const AT_ONCE: usize = 4;
/// A peer that needs longer for one turn does not work here.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A CLI from npm.
struct Peer {
    /// The package and its version.
    package: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    /// Writes the files that it needs to reach the scripted model into its working directory.
    configure: fn(&Path, &Mock) -> std::io::Result<()>,
}

const PEERS: [Peer; 3] = [
    Peer {
        package: "@anthropic-ai/claude-code@2.1.327",
        program: "claude",
        args: &["-p", "hi", "--output-format", "json"],
        configure: |_, _| Ok(()),
    },
    Peer {
        package: "@qwen-code/qwen-code@0.24.4",
        program: "qwen",
        args: &["-p", "hi", "--output-format", "json", "--auth-type", "openai", "--model", "m"],
        configure: |_, _| Ok(()),
    },
    Peer {
        package: "opencode-ai@1.18.33",
        program: "opencode",
        args: &["run", "hi", "--model", "mock/m"],
        configure: |directory, mock| {
            let options = json!({"baseURL": mock.base_url(), "apiKey": "x"});
            let provider = json!({"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {"name": "m"}}});
            let settings = json!({"provider": {"mock": provider}, "autoupdate": false, "share": "disabled"});
            std::fs::write(directory.join("opencode.json"), settings.to_string())
        },
    },
];

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let count = bench.options.count(SESSIONS, 2);
    let title = format!("{count} sessions with one turn each");
    let home = IsolatedHome::fresh()?;
    let runs = bench.options.count(TURNS, 3);
    let turns = repeat(runs, || turn(&mut bench.subject.turn(Mode::Claude, &mock, &home), Mode::Claude, 1))?;
    let mut rows = Vec::from(cost_rows("one turn", &turns));
    rows.push(Row::without_target(
        format!("{title}: through one hub"),
        through_hub(bench, &mock, count)?,
        "s",
    ));
    for peer in &PEERS {
        rows.extend(rows_of_peer(peer, &mock, runs, count).unwrap_or_else(|reason| {
            vec![Row::note(format!("— {}", peer.package), format!("skipped: {reason}"))]
        }));
    }
    Ok(rows)
}

/// Measures single turns of a peer, then a process for each of many sessions.
fn rows_of_peer(peer: &Peer, mock: &Mock, runs: usize, count: usize) -> Result<Vec<Row>, String> {
    let program = install(peer.package, peer.program)?;
    let home = IsolatedHome::fresh()?;
    let run = || child::run(&mut peer.command(&program, &home, mock)?, |_, _| {});
    // Fills caches and creates the peer's own files.
    run()?;
    let turns = repeat(runs, run)?;
    let mut rows = Vec::from(cost_rows(&format!("— one turn of {}", peer.package), &turns));
    let name = format!("— {count} sessions through a process of {} each", peer.package);
    rows.push(Row::without_target(name, through_processes(&program, peer, mock, count)?, "s"));
    Ok(rows)
}

/// The costs of turns that were measured.
fn cost_rows(title: &str, turns: &[Cost]) -> [Row; 3] {
    let peak = turns.iter().map(|cost| cost.peak_mb).fold(0.0, f64::max);
    let cpu = median(turns.iter().map(|cost| cost.cpu_ms));
    let wall = median(turns.iter().map(|cost| cost.wall_ms));
    [
        Row::without_target(format!("{title}: processor time"), cpu, "ms"),
        Row::without_target(format!("{title}: start to end"), wall, "ms"),
        Row::without_target(format!("{title}: peak memory"), peak, "MB"),
    ]
}

impl Peer {
    /// The command that runs one turn.
    fn command(&self, program: &Path, home: &IsolatedHome, mock: &Mock) -> Result<Command, String> {
        let mut command = Command::new(program);
        command.args(self.args);
        home.isolate(&mut command, mock);
        let configured = (self.configure)(&home.work(), mock);
        configured.map_err(|error| format!("cannot configure {}: {error}", self.package))?;
        let root = mock.base_url().trim_end_matches("/v1").to_owned();
        command.env("ANTHROPIC_API_KEY", "x").env("ANTHROPIC_BASE_URL", root).env("OPENAI_MODEL", "m");
        // Without these, peers contact their vendors first.
        command
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        command.env("OPENCODE_DISABLE_AUTOUPDATE", "1").env("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1");
        Ok(command)
    }
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

/// Installs a package below the target directory, once. Returns the path of its program.
pub(super) fn install(package: &str, name: &str) -> Result<PathBuf, String> {
    let me = std::env::current_exe().map_err(|error| format!("cannot find my own program: {error}"))?;
    let target = me.parent().and_then(Path::parent).ok_or("this program is not in a target directory")?;
    let home = target.join("peers").join(name);
    let program = home.join("node_modules/.bin").join(name);
    if program.exists() {
        return Ok(program);
    }
    std::fs::create_dir_all(&home).map_err(|error| format!("cannot make a directory: {error}"))?;
    let installed = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "--prefix"])
        .arg(&home)
        .arg(package)
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
        let mut command = peer.command(program, &home, mock)?;
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
