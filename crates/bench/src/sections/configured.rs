//! A cold turn with settings, hooks and MCP servers.

use serde_json::json;

use super::{repeat, turn};
use crate::Bench;
use crate::child::Cost;
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, Mode};
use crate::stats::median;
use crate::subject::{IsolatedHome, program};
use crate::table::Row;

const CPU_MS: f64 = 5.0;
const PEAK_MB: f64 = 10.0;
const SERVERS: [&str; 2] = ["one", "two"];

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let runs = bench.options.runs;
    // None of these fires in a turn without tools, so no process is started.
    let hook = json!([{ "matcher": "write_file|edit", "hooks": [{ "type": "command", "command": "true" }] }]);
    let mut settings = json!({
        "permissions": { "allow": ["Bash(git log *)", "Edit(/src/**)"], "deny": ["Bash(rm *)"] },
        "hooks": { "PreToolUse": hook, "PostToolUse": hook, "SubagentStop": hook, "PreCompact": hook },
    });
    let home = IsolatedHome::fresh()?;
    let plain = IsolatedHome::fresh()?;
    let once =
        |home: &IsolatedHome| turn(&mut bench.subject.turn(Mode::Claude, &mock, home), Mode::Claude, 1);
    home.configure(&settings)?;
    let (mut bare, mut configured) = (Vec::new(), Vec::new());
    // In turns, so that both see the same machine.
    repeat(runs, || {
        bare.push(once(&plain)?);
        configured.push(once(&home)?);
        Ok(())
    })?;
    let me = program("mcp", "")?;
    let server = json!({ "command": me.get_program().to_string_lossy(), "args": ["mcp"] });
    settings["mcpServers"] = SERVERS.iter().map(|name| ((*name).to_owned(), server.clone())).collect();
    home.configure(&settings)?;
    let served = repeat(runs, || once(&home))?;

    let cpu = |costs: &[Cost]| median(costs.iter().map(|cost| cost.own_cpu_ms));
    let peak = |costs: &[Cost]| costs.iter().map(|cost| cost.peak_mb).fold(0.0, f64::max);
    let title = "cold turn with settings, rules and hooks";
    let with_servers = format!("{title} and {} MCP servers", SERVERS.len());
    Ok(vec![
        Row::at_most(format!("{title}: processor time"), cpu(&configured), "ms", CPU_MS),
        Row::without_target("— without them: processor time", cpu(&bare), "ms"),
        Row::at_most(format!("{title}: peak memory"), peak(&configured), "MB", PEAK_MB),
        Row::at_most(format!("{with_servers}: processor time without theirs"), cpu(&served), "ms", CPU_MS),
        Row::at_most(format!("{with_servers}: peak memory"), peak(&served), "MB", PEAK_MB),
    ])
}
