//! Further turns in a live worker: what each costs, and whether that stays so while the conversation grows.

use crate::Bench;
use crate::mock::Mock;
use crate::process::Measured;
use crate::subject::IsolatedHome;
use crate::table::Row;
use crate::worker::Worker;

const CPU_MS: f64 = 0.5;
/// The conversation goes to the model whole with each turn, so some growth is the wire's.
const FLAT: f64 = 1.5;
const TURNS: usize = 500;
const WINDOW: usize = 50;
const GROWTH_MB: f64 = 1.0;

/// A prompt and an answer of a usual length.
const PROMPT: &str = "What does this function do, and where is it called from?";
const ANSWER: &str = "It reads the settings, and main calls it once at the start of the program. ";

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "2", "--chunk-text", ANSWER])?;
    let (turns, window) = (bench.options.count(TURNS, 20), bench.options.count(WINDOW, 5));
    let mut rows = growing(bench, &mock, turns, window)?;
    rows.extend(memory(bench, &mock, window)?);
    Ok(rows)
}

fn growing(bench: &Bench, mock: &Mock, turns: usize, window: usize) -> Result<Vec<Row>, String> {
    let home = IsolatedHome::fresh()?;
    let mut worker = Worker::start(bench.subject.worker(mock, &home))?;
    // The first turn opens the session, its log and the connection.
    worker.turn(PROMPT)?;
    let mut clock = vec![worker.cpu_ns()?];
    for _ in 1..turns {
        worker.turn(PROMPT)?;
        clock.push(worker.cpu_ns()?);
    }
    let mean = |from: usize, to: usize| {
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few digits")]
        let ms = (clock[to] - clock[from]) as f64 / 1e6 / (to - from) as f64;
        ms
    };
    let (first, last) = (mean(0, window - 1), mean(turns - 1 - window, turns - 1));
    let title = "further turn in a live worker: processor time";
    Ok(vec![
        Row::at_most(format!("{title}, mean of turns 2 to {window}"), first, "ms", CPU_MS),
        Row::at_most(format!("{title}, mean of turns {} to {turns}", turns - window + 1), last, "ms", CPU_MS),
        Row::at_most("further turn: the last beside the first", last / first, "×", FLAT),
    ])
}

/// How much the heap grows in so many turns, without the text of the turns.
fn memory(bench: &Bench, mock: &Mock, turns: usize) -> Result<Vec<Row>, String> {
    let home = IsolatedHome::fresh()?;
    let mut worker = Worker::start(bench.subject.worker(mock, &home))?;
    worker.turn(PROMPT)?;
    let before = worker.memory()?.anonymous_mb;
    for _ in 0..turns {
        worker.turn(PROMPT)?;
    }
    let growth = worker.memory()?.anonymous_mb - before;
    #[expect(clippy::cast_precision_loss, reason = "a few kilobytes")]
    let text_mb = (turns * (PROMPT.len() + 2 * ANSWER.len())) as f64 / 1e6;
    let what = format!("memory gained over {turns} further turns, beyond the {text_mb:.3} MB of history");
    Ok(vec![Row::at_most(what, growth - text_mb, "MB", GROWTH_MB)])
}
