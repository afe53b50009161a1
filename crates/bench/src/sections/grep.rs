//! `grep_search` over many files, compared with ripgrep over the same files.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::tools::tool_turn;
use crate::Bench;
use crate::child;
use crate::mock::Mock;
use crate::output::{Lines, Mode, contains};
use crate::stats::median;
use crate::subject::IsolatedHome;
use crate::table::{Row, grouped};

const FILES: usize = 10_000;
const IN_DIRECTORY: usize = 100;
/// Every so many files one has the line that is looked for.
const RARE: usize = 100;
const PATTERN: &str = r"needle_[0-9]+\(";
const RATIO: f64 = 1.3;

/// What one search cost.
struct Sample {
    cpu_ms: f64,
    wall_ms: f64,
}

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let files = bench.options.count(FILES, 500);
    let home = IsolatedHome::fresh()?;
    plant(&home.work(), files).map_err(|error| format!("cannot write the files to search: {error}"))?;
    let call = json!({ "tool_call": { "name": "grep_search", "arguments": { "pattern": PATTERN } } });
    let searching = Mock::scripted(&[json!([call]), json!([{ "text": "done" }])])?;
    let resting = Mock::scripted(&[json!([{ "text": "done" }])])?;
    let rg = ripgrep();
    let (mut ours, mut cold, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let runs = bench.options.runs.div_ceil(2);
    // In turns, so that all see the same machine; the first round warms the files.
    for round in 0..=runs {
        let sample = search(bench, &searching, &home, files)?;
        let turn = tool_turn(&mut bench.subject.turn(Mode::Claude, &resting, &home), 0, |_, _| {})?;
        let rival = rg.as_deref().map(|rg| ripgrep_search(rg, &home, files)).transpose()?;
        if round > 0 {
            ours.push(sample);
            cold.push(turn.cpu_ms);
            theirs.extend(rival);
        }
    }
    let cpu = median(ours.iter().map(|sample| sample.cpu_ms)) - median(cold);
    let wall = median(ours.iter().map(|sample| sample.wall_ms));
    let title = format!("grep_search over {} files", grouped(files as u64));
    let mut rows = vec![
        Row::without_target(format!("{title}: processor time"), cpu, "ms"),
        Row::without_target(format!("{title}: from call to result"), wall, "ms"),
    ];
    if theirs.is_empty() {
        let how = "not compared: there is no `rg`; `apt install ripgrep`, or `cargo install ripgrep --root target/rg`";
        rows.push(Row::note(format!("{title} beside rg"), how));
        return Ok(rows);
    }
    let rg_cpu = median(theirs.iter().map(|sample| sample.cpu_ms));
    let rg_wall = median(theirs.iter().map(|sample| sample.wall_ms));
    rows.extend([
        Row::without_target("— rg: processor time", rg_cpu, "ms"),
        Row::without_target("— rg: from start to end", rg_wall, "ms"),
        Row::at_most(format!("{title} beside rg: processor time"), cpu / rg_cpu, "×", RATIO),
        Row::at_most(format!("{title} beside rg: from call to result"), wall / rg_wall, "×", RATIO),
    ]);
    Ok(rows)
}

/// How many lines are to be found in so many files.
fn hidden(files: usize) -> usize {
    files.div_ceil(RARE)
}

/// Makes the files: what looks a little like code, in directories of a hundred.
fn plant(root: &Path, files: usize) -> std::io::Result<()> {
    for n in 0..files {
        let directory = root.join(format!("module_{:03}", n / IN_DIRECTORY));
        if n.is_multiple_of(IN_DIRECTORY) {
            std::fs::create_dir(&directory)?;
        }
        let mut text: String = (0..40)
            .map(|line| {
                format!("    let value_{line} = compute(input_{n}, {line}) + offset; // step {line}\n")
            })
            .collect();
        if n.is_multiple_of(RARE) {
            text.push_str(&format!("fn needle_{n}() {{}}\n"));
        }
        std::fs::write(directory.join(format!("file_{n:05}.rs")), text)?;
    }
    Ok(())
}

/// One turn that searches once.
fn search(bench: &Bench, mock: &Mock, home: &IsolatedHome, files: usize) -> Result<Sample, String> {
    let (mut called, mut answered, mut found) = (0, 0, 0);
    let cost = tool_turn(&mut bench.subject.turn(Mode::Claude, mock, home), 1, |line, now| {
        if contains(line, br#""type":"tool_use""#) {
            called = now;
        } else if contains(line, br#""tool_result""#) {
            answered = now;
            // The result may be in a line twice: as text and as an object.
            found = String::from_utf8_lossy(line).matches("fn needle_").count();
        }
    })?;
    if found < hidden(files) {
        return Err(format!("grep_search found {found} of {} lines", hidden(files)));
    }
    Ok(Sample { cpu_ms: cost.cpu_ms, wall_ms: milliseconds(called, answered) })
}

fn milliseconds(from_ns: u64, to_ns: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few digits")]
    let ms = to_ns.saturating_sub(from_ns) as f64 / 1e6;
    ms
}

fn ripgrep_search(rg: &Path, home: &IsolatedHome, files: usize) -> Result<Sample, String> {
    let (mut found, mut lines) = (0, Lines::default());
    let mut command = Command::new(rg);
    command.args(["--line-number", "--smart-case", PATTERN, "."]).current_dir(home.work());
    let cost = child::run(&mut command, |bytes, _| lines.feed(bytes, |_| found += 1))?;
    if found != hidden(files) {
        return Err(format!("rg found {found} of {} lines", hidden(files)));
    }
    Ok(Sample { cpu_ms: cost.cpu_ms, wall_ms: cost.wall_ms })
}

/// The ripgrep of the system, one that was built into `target/rg`, or the one that `make test` fetched with
/// an SDK.
fn ripgrep() -> Option<PathBuf> {
    let target = std::env::current_exe().ok().and_then(|me| Some(me.parent()?.parent()?.to_owned()));
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let fetched = format!("sdk/node/node_modules/@qwen-code/sdk/dist/cli/vendor/ripgrep/{arch}-linux");
    let near = target.into_iter().flat_map(|target| [target.join("rg/bin"), target.join(&fetched)]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(near).map(|home| home.join("rg")).find(|rg| rg.is_file())
}
