//! `make eval`: prints the table to standard output. Exits with 1 if a target is missed.

use std::io::Write;
use std::process::ExitCode;

use eval::{Player, capacity, game24, lists, table::Row};
use qwen_events::{AgentName, ErrorInfo, Thinking};
use qwen_thoughts::{GotOptions, Search, ThinkingOptions, TotOptions};

/// The seeds that every way is tried with, so that luck evens out.
const SEEDS: u64 = 5;
const PUZZLES: usize = 100;
const LISTS: usize = 50;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let rows = match runtime.map_err(|error| error.to_string()) {
        Ok(runtime) => runtime.block_on(rows()).map_err(|error| error.to_string()),
        Err(error) => Err(error),
    };
    let (text, code) = match rows {
        Ok(rows) => {
            let lines: Vec<String> = rows.iter().map(Row::to_string).collect();
            let code = if rows.iter().all(Row::holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
            (format!("{}\n{}\n", Row::HEAD, lines.join("\n")), code)
        }
        Err(error) => (format!("eval: {error}\n"), ExitCode::FAILURE),
    };
    // A closed standard output is not an error.
    let _ = std::io::stdout().write_all(text.as_bytes());
    code
}

async fn rows() -> Result<Vec<Row>, ErrorInfo> {
    let mut rows = Vec::new();
    rows.extend(puzzles().await?);
    for length in [64, 128] {
        rows.extend(sorting(length).await?);
    }
    rows.extend(intersecting(32).await?);
    rows.extend(sizes().await?);
    Ok(rows)
}

/// What is added up over many plays.
#[derive(Default)]
struct Sum {
    plays: f64,
    score: f64,
    calls: f64,
    tokens: f64,
    backtracks: f64,
}

impl Sum {
    fn row(&self, problems: &str, way: &str, result: String, wanted: Option<(String, bool)>) -> Row {
        let (calls, tokens) = (self.calls / self.plays, self.tokens / self.plays);
        Row { problems: problems.to_owned(), way: way.to_owned(), result, calls, tokens, wanted }
    }

    fn mean(&self) -> f64 {
        self.score / self.plays
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    fn spend(&mut self, played: &eval::Played) {
        self.calls += played.end.model_calls as f64;
        self.tokens += played.end.usage.total() as f64;
        let back = |step: &&Thinking| matches!(step, Thinking::TotBacktrack { .. });
        self.backtracks += played.steps.iter().filter(back).count() as f64;
    }
}

fn tot(change: impl FnOnce(&mut TotOptions)) -> ThinkingOptions {
    let mut options = ThinkingOptions::default();
    change(&mut options.tot);
    options
}

/// The share of puzzles that are solved, in per cent.
async fn solved(agent: AgentName, thinking: &ThinkingOptions, tries: usize) -> Result<Sum, ErrorInfo> {
    let mut sum = Sum::default();
    let puzzles = game24::puzzles(PUZZLES);
    for seed in 1..=SEEDS {
        let player = Player::new(agent, &format!("game24?q=0.3&p=0.7&seed={seed}"), thinking.clone())?;
        for &puzzle in &puzzles {
            let mut solved = false;
            for attempt in 1..=tries {
                let again = if tries > 1 { format!("\n(try {attempt})") } else { String::new() };
                let played = player.play(&format!("{}{again}", game24::prompt(puzzle))).await;
                sum.spend(&played);
                solved |= game24::solves(puzzle, &played.end.reply);
            }
            sum.plays += 1.0;
            sum.score += if solved { 100.0 } else { 0.0 };
        }
    }
    Ok(sum)
}

async fn puzzles() -> Result<Vec<Row>, ErrorInfo> {
    let plain = ThinkingOptions::default();
    let percent = |sum: &Sum| format!("{:.1} %", sum.mean());
    let what = "game of 24";
    let mut rows = Vec::new();
    let sum = solved(AgentName::React, &plain, 1).await?;
    rows.push(sum.row(what, "chain", percent(&sum), Some(("≤ 12 %".into(), sum.mean() <= 12.0))));
    let sum = solved(AgentName::React, &plain, 10).await?;
    rows.push(sum.row(what, "best of 10", percent(&sum), None));
    let sum = solved(AgentName::Tot, &tot(|o| o.breadth = 1), 1).await?;
    let right = (40.0..=62.0).contains(&sum.mean());
    rows.push(sum.row(what, "ToT b=1", percent(&sum), Some(("40–62 %".into(), right))));
    let sum = solved(AgentName::Tot, &plain, 1).await?;
    rows.push(sum.row(what, "ToT b=5", percent(&sum), Some(("≥ 75 %".into(), sum.mean() >= 75.0))));
    let sum = solved(AgentName::Tot, &tot(|o| o.search = Search::Dfs), 1).await?;
    let right = sum.mean() >= 85.0 && sum.backtracks > 0.0;
    let result = format!("{}, {:.1} backtracks", percent(&sum), sum.backtracks / sum.plays);
    rows.push(sum.row(what, "ToT depth-first", result, Some(("≥ 85 %, backtracks".into(), right))));
    Ok(rows)
}

/// The mean errors over tasks with lists; of several tries the best counts.
async fn errors(
    agent: AgentName,
    oracle: &str,
    thinking: &ThinkingOptions,
    tasks: &[lists::Task],
    tries: usize,
) -> Result<Sum, ErrorInfo> {
    let mut sum = Sum::default();
    let player = Player::new(agent, &format!("{oracle}?seed=1"), thinking.clone())?;
    for task in tasks {
        let mut best = usize::MAX;
        for attempt in 1..=tries {
            // The words change and the numbers do not.
            let prompt = task.prompt.replacen(':', &format!(" {}:", "again ".repeat(attempt - 1)), 1);
            let played = player.play(&prompt).await;
            sum.spend(&played);
            best = best.min(task.errors(&played.end.reply));
        }
        sum.plays += 1.0;
        #[expect(clippy::cast_precision_loss, reason = "lists are short")]
        let errors = best as f64;
        sum.score += errors;
    }
    Ok(sum)
}

async fn sorting(length: usize) -> Result<Vec<Row>, ErrorInfo> {
    let tasks = lists::sorting(length, LISTS);
    let what = format!("sort {length}");
    let plain = ThinkingOptions::default();
    let result = |sum: &Sum| format!("{:.2} errors", sum.mean());
    let mut rows = Vec::new();
    for (way, tries) in [("one shot", 1), ("best of 20", 20), ("best of 60", 60)] {
        let sum = errors(AgentName::React, "sort", &plain, &tasks, tries).await?;
        rows.push(sum.row(&what, way, result(&sum), None));
    }
    let short = length == 64;
    let sum = errors(AgentName::Tot, "sort", &plain, &tasks, 1).await?;
    let wanted = short.then(|| ("≥ 1".to_owned(), sum.mean() >= 1.0));
    rows.push(sum.row(&what, "ToT b=5", result(&sum), wanted));
    let sum = errors(AgentName::Got, "sort", &plain, &tasks, 1).await?;
    let right = sum.mean() <= 0.2 && sum.calls / sum.plays <= 60.0;
    let wanted = short.then(|| ("≤ 0.2, ≤ 60 calls".to_owned(), right));
    rows.push(sum.row(&what, "GoT", result(&sum), wanted));
    Ok(rows)
}

async fn intersecting(size: usize) -> Result<Vec<Row>, ErrorInfo> {
    let tasks = lists::intersecting(size, LISTS);
    let what = format!("intersect {size}");
    let plain = ThinkingOptions::default();
    let result = |sum: &Sum| format!("{:.2} errors", sum.mean());
    let mut rows = Vec::new();
    for (way, tries) in [("one shot", 1), ("best of 20", 20)] {
        let sum = errors(AgentName::React, "intersect", &plain, &tasks, tries).await?;
        rows.push(sum.row(&what, way, result(&sum), None));
    }
    let sum = errors(AgentName::Got, "intersect", &plain, &tasks, 1).await?;
    rows.push(sum.row(&what, "GoT", result(&sum), Some(("≤ 0.2".into(), sum.mean() <= 0.2))));
    Ok(rows)
}

async fn sizes() -> Result<Vec<Row>, ErrorInfo> {
    let got = GotOptions { adaptive: true, max_depth: 3, ..GotOptions::default() };
    let player =
        Player::new(AgentName::Got, "capacity?cap=8", ThinkingOptions { got, ..ThinkingOptions::default() })?;
    let mut rows = Vec::new();
    for (size, thoughts) in capacity::SIZES {
        let played = player.play(&capacity::prompt(size)).await;
        let mut sum = Sum { plays: 1.0, ..Sum::default() };
        sum.spend(&played);
        let (count, solved) = (capacity::thoughts(&played.steps), capacity::solves(size, &played.end.reply));
        let result = format!("{} with {count} thoughts", if solved { "solved" } else { "not solved" });
        let wanted = Some((format!("{thoughts} thoughts"), solved && count == thoughts));
        rows.push(sum.row(&format!("size {size}"), "AGoT", result, wanted));
    }
    Ok(rows)
}
