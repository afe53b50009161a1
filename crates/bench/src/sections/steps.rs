//! What the graph engine itself costs for each step of a run, without a log.

use super::repeat;
use crate::Bench;
use crate::child;
use crate::stats::median;
use crate::subject::program;
use crate::table::{Row, grouped};

const STEP_US: f64 = 20.0;
const STEPS: usize = 100_000;

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let steps = bench.options.count(STEPS, 1000);
    // In a separate process, like everything that is measured.
    let spent = repeat(bench.options.runs.div_ceil(4), || {
        let mut output = Vec::new();
        child::run(&mut program("graph", &steps.to_string())?, |bytes, _| output.extend_from_slice(bytes))?;
        let output = String::from_utf8_lossy(&output).into_owned();
        output.trim().parse::<f64>().map_err(|_| format!("`graph` answered {output:?}"))
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a count of steps is small")]
    let each = median(spent) / 1e3 / steps as f64;
    let what = format!("graph engine over {} steps: processor time a step", grouped(steps as u64));
    Ok(vec![Row::at_most(what, each, "µs", STEP_US)])
}
