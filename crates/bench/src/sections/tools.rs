//! What a tool call costs, with the model call that sees its result: a turn of many calls against a turn of
//! none.

use std::process::Command;

use serde_json::{Value, json};

use super::repeat;
use crate::Bench;
use crate::child::{self, Cost};
use crate::mock::Mock;
use crate::output::{Lines, Mode, contains};
use crate::programs::{PLAIN, SCRIPT};
use crate::stats::median;
use crate::subject::{IsolatedHome, program};
use crate::table::Row;

const READ_MS: f64 = 0.5;
const SHELL_MS: f64 = 1.5;
const SHELL_RATIO: f64 = 2.0;
/// A call that runs without approval because it only reads, in the sandbox that cannot write.
const READ_ONLY_LINE: &str = "cat notes.txt";
const READ_ONLY_RATIO: f64 = 1.1;
const CALLS: usize = 50;
/// Calls of one message that only read overlap: these sleep 50 ms each.
const SLOW_READ_LINE: &str = "sleep 0.05";
const SLOW_READS: usize = 8;
const SLOW_READS_MS: f64 = 120.0;

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let home = IsolatedHome::fresh()?;
    let text: String = (1..=100).map(|n| format!("This is line {n} of a file of some length.\n")).collect();
    std::fs::write(home.work().join("notes.txt"), text)
        .map_err(|error| format!("cannot write a file: {error}"))?;
    let calls = bench.options.count(CALLS, 3);
    let runs = bench.options.runs.div_ceil(2);
    let read = json!({ "tool_call": { "name": "read_file", "arguments": { "file_path": "notes.txt" } } });

    let cold = costs(bench, &home, runs, "yolo", (&[], 0))?;
    let in_mode =
        |mode: &str, call: &Value| costs(bench, &home, runs, mode, (&vec![json!([call]); calls], calls));
    let one_by_one = |call: &Value| in_mode("yolo", call);
    let reads = one_by_one(&read)?;
    let together = costs(bench, &home, runs, "yolo", (&[vec![read; calls].into()], calls))?;

    #[expect(clippy::cast_precision_loss, reason = "a count of calls is small")]
    let each = |many: &[Cost], none: &[Cost], cost: fn(&Cost) -> f64| {
        (median(many.iter().map(cost)) - median(none.iter().map(cost))) / calls as f64
    };
    let all = |cost: &Cost| cost.cpu_ms;
    let mut rows = vec![
        Row::at_most(
            "read_file call, one a message: processor time",
            each(&reads, &cold, all),
            "ms",
            READ_MS,
        ),
        Row::without_target(
            format!("read_file call, {calls} in one message: processor time"),
            each(&together, &cold, all),
            "ms",
        ),
    ];
    for shell in [(PLAIN, "forks"), (SCRIPT, "bashes")] {
        rows.extend(compare_with_fork(shell, calls, runs, &cold, one_by_one, each)?);
    }
    let call =
        json!({ "tool_call": { "name": "run_shell_command", "arguments": { "command": READ_ONLY_LINE } } });
    let (read_only, ordinary) = (in_mode("default", &call)?, one_by_one(&call)?);
    let (read_only, ordinary) = (each(&read_only, &cold, all), each(&ordinary, &cold, all));
    rows.extend([
        Row::without_target(
            format!(
                "shell call (`{READ_ONLY_LINE}`) without approval, in the read-only sandbox: processor time"
            ),
            read_only,
            "ms",
        ),
        Row::without_target(
            format!("shell call (`{READ_ONLY_LINE}`), approved: processor time"),
            ordinary,
            "ms",
        ),
        Row::at_most(
            "shell call in the read-only sandbox beside an approved one",
            read_only / ordinary,
            "×",
            READ_ONLY_RATIO,
        ),
    ]);
    rows.push(overlapping_reads(bench, &home, runs, &cold)?);
    Ok(rows)
}

/// The rows of a shell call and of a bare fork and exec of the same program.
fn compare_with_fork(
    (line, bare): (&str, &str),
    calls: usize,
    runs: usize,
    cold: &[Cost],
    one_by_one: impl Fn(&Value) -> Result<Vec<Cost>, String>,
    each: impl Fn(&[Cost], &[Cost], fn(&Cost) -> f64) -> f64,
) -> Result<Vec<Row>, String> {
    let all = |cost: &Cost| cost.cpu_ms;
    let call = json!({ "tool_call": { "name": "run_shell_command", "arguments": { "command": line } } });
    let shells = one_by_one(&call)?;
    let none = repeat(runs, || child::run(&mut program(bare, "0")?, |_, _| {}))?;
    let bares = repeat(runs, || child::run(&mut program(bare, &calls.to_string())?, |_, _| {}))?;
    let (shell_ms, bare_ms) = (each(&shells, cold, all), each(&bares, &none, all));
    if shell_ms < bare_ms {
        // Only what was reaped is counted, from the bottom of the tree to us.
        return Err(format!(
            "a shell call of {shell_ms:.2} ms compared with a bare fork of {bare_ms:.2} ms: not all processes were counted"
        ));
    }
    Ok(vec![
        Row::at_most(
            format!("shell call (`{line}`), its processes included: processor time"),
            shell_ms,
            "ms",
            SHELL_MS,
        ),
        Row::without_target(
            format!("shell call (`{line}`): processor time of our own process"),
            each(&shells, cold, |cost| cost.own_cpu_ms),
            "ms",
        ),
        Row::without_target("— a bare fork and exec of the same: processor time", bare_ms, "ms"),
        Row::at_most(
            format!("shell call (`{line}`) beside a bare fork and exec"),
            shell_ms / bare_ms,
            "×",
            SHELL_RATIO,
        ),
    ])
}

/// How long a message of slow calls that only read takes beyond a turn without calls.
fn overlapping_reads(bench: &Bench, home: &IsolatedHome, runs: usize, cold: &[Cost]) -> Result<Row, String> {
    let call =
        json!({ "tool_call": { "name": "run_shell_command", "arguments": { "command": SLOW_READ_LINE } } });
    let message = vec![call; SLOW_READS].into();
    let together = costs(bench, home, runs, "default", (&[message], SLOW_READS))?;
    let wall = |costs: &[Cost]| median(costs.iter().map(|cost| cost.wall_ms));
    Ok(Row::at_most(
        format!("{SLOW_READS} calls of one message that read for 50 ms each (`{SLOW_READ_LINE}`): wall time"),
        wall(&together) - wall(cold),
        "ms",
        SLOW_READS_MS,
    ))
}

/// Turns with these replies before the last one, in which `calls` tools succeed in an approval mode.
fn costs(
    bench: &Bench,
    home: &IsolatedHome,
    runs: usize,
    mode: &str,
    (replies, calls): (&[Value], usize),
) -> Result<Vec<Cost>, String> {
    let replies: Vec<Value> = replies.iter().cloned().chain([json!([{ "text": "done" }])]).collect();
    let mock = Mock::scripted(&replies)?;
    repeat(runs, || {
        let mut command = bench.subject.turn(Mode::Claude, &mock, home);
        tool_turn(command.args(["--approval-mode", mode]), calls, |_, _| {})
    })
}

/// Runs a turn in which exactly `calls` tools succeed. `seen` gets each line, with the time at which it came.
pub(super) fn tool_turn(
    command: &mut Command,
    calls: usize,
    mut seen: impl FnMut(&[u8], u64),
) -> Result<Cost, String> {
    let mut lines = Lines::default();
    let (mut good, mut bad, mut ended) = (0, None, false);
    let cost = child::run(command, |bytes, now| {
        lines.feed(bytes, |line| {
            seen(line, now);
            ended = contains(line, br#""type":"result""#) && contains(line, br#""is_error":false"#);
            if contains(line, br#""tool_result""#) {
                if contains(line, br#""is_error":true"#) {
                    bad = Some(String::from_utf8_lossy(line).into_owned());
                } else {
                    good += 1;
                }
            }
        });
    })?;
    match bad {
        Some(line) => Err(format!("a tool failed: {line}")),
        None if !ended => Err("the last line is not the terminal record of a good turn".to_owned()),
        None if good != calls => Err(format!("{good} of {calls} tools succeeded")),
        None => Ok(cost),
    }
}
