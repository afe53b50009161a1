//! Instructions counted by callgrind: they do not wobble with the machine, so a drift is the code's.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use super::turn;
use crate::Bench;
use crate::baseline;
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, Mode};
use crate::subject::{Place, Subject};
use crate::table::{Row, grouped};

/// Growth beyond this is worth a look.
const ALLOWED_PERCENT: f64 = 3.0;
const FEW: usize = 1000;
const MANY: usize = 2000;

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(vec![Row::note("instructions", "not counted: valgrind is not installed")]);
    }
    let mut counts = BTreeMap::new();
    counts.insert("cold turn".to_owned(), count(bench, Mode::Claude, 1)?);
    for mode in [Mode::ClaudePartial, Mode::QwenChunks] {
        let (few, many) = (count(bench, mode, FEW)?, count(bench, mode, MANY)?);
        counts.insert(format!("chunk ({})", mode.name()), many.saturating_sub(few) / (MANY - FEW) as u64);
    }
    if bench.options.bless {
        baseline::save(&counts)?;
    }
    let before = baseline::load()?;
    let rows = counts.iter().map(|(name, count)| {
        let what = format!("instructions: {name}");
        match before.get(name) {
            Some(before) => Row::drift(what, *count, *before, ALLOWED_PERCENT),
            None => {
                Row::note(what, format!("{} (nothing to compare with; --bless keeps it)", grouped(*count)))
            }
        }
    });
    Ok(rows.collect())
}

/// Instructions of one turn.
fn count(bench: &Bench, mode: Mode, chunks: usize) -> Result<u64, String> {
    let mock =
        Mock::start(&["--chunks", &chunks.to_string(), "--chunk-text", CHUNK_TEXT, "--write-size", "many"])?;
    let place = Place::fresh()?;
    let log =
        tempfile::NamedTempFile::new().map_err(|error| format!("cannot make a temporary file: {error}"))?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(format!("--log-file={}", log.path().display()));
    command.arg(bench.subject.path()).args(Subject::turn_args(mode));
    place.settle(&mut command, &mock);
    turn(&mut command, mode, chunks)?;
    let report = std::fs::read_to_string(log.path()).unwrap_or_default();
    let total = report.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    total.ok_or_else(|| format!("callgrind did not say what it counted: {report}"))
}
