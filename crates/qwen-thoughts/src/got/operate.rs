//! Runs a single thought. A thought sees only its inputs.

use std::sync::Arc;

use qwen_events::{Body, ErrorInfo, ErrorKind};

use super::plan::{self, Bounds, Op, Planned};
use super::prompts;
use super::state::{GotState, Thought, ThoughtResult};
use crate::thinking::{NEUTRAL, ThoughtFailure, ThoughtRequest, ThoughtRunner, read_values, summary};
use qwen_engine::graph::{RunContext, fan_out};

/// A thought that is about to run, with everything that it may see.
pub(super) struct Task {
    pub at: usize,
    pub thought: Thought,
    /// The thoughts that it depends on.
    pub inputs: Vec<Thought>,
    /// For a score: the inputs that the scored results were made from, with their names.
    pub made_from: Vec<(String, String)>,
    /// The thought that made what is scored.
    pub maker: Option<Thought>,
    /// The results of its nested graph, if only combining them is left.
    pub parts: Option<Vec<(String, String)>>,
    /// It was started before, but its nested graph did not fit.
    pub restarted: bool,
    /// It may be expanded into a nested graph with at most this many thoughts.
    pub may_expand: Option<usize>,
}

/// The outcome of a task.
pub(super) enum Outcome {
    Made(Vec<ThoughtResult>),
    Expanded(Vec<Planned>),
    Failed(ThoughtFailure),
}

pub(super) async fn operate(
    runner: &ThoughtRunner,
    state: &GotState,
    task: &Task,
    cx: &RunContext,
) -> Outcome {
    let made = match (&task.parts, task.thought.op) {
        (Some(parts), _) => combine(runner, state, task, parts, cx).await,
        (None, Op::KeepBest) => Ok(keep_best(task)),
        (None, Op::Score) => score(runner, state, task, cx).await,
        (None, Op::Improve) => improve(runner, state, task, cx).await,
        (None, Op::Generate | Op::Aggregate) => {
            match expansion(runner, state, task, cx).await {
                Ok(Some(planned)) => return Outcome::Expanded(planned),
                Ok(None) => {}
                Err(failed) => return Outcome::Failed(failed),
            }
            let inputs = inputs(&task.inputs);
            make(runner, state, task, &inputs, cx).await
        }
    };
    made.map_or_else(Outcome::Failed, Outcome::Made)
}

/// The results of other thoughts, with their names.
fn inputs(thoughts: &[Thought]) -> Vec<(String, String)> {
    thoughts.iter().flat_map(select_results).collect()
}

/// The results of a thought: all of them if it was asked to keep several, otherwise the best.
pub(super) fn select_results(thought: &Thought) -> Vec<(String, String)> {
    if thought.op == Op::KeepBest && thought.results.len() > 1 {
        let results = thought.results.iter().enumerate();
        return results
            .map(|(n, made)| (format!("{} {}", thought.id, n + 1), made.text.to_string()))
            .collect();
    }
    thought.best().map(|made| (thought.id.clone(), made.text.to_string())).into_iter().collect()
}

/// The nested plan of a thought, if it is complex and there is room for one.
async fn expansion(
    runner: &ThoughtRunner,
    state: &GotState,
    task: &Task,
    cx: &RunContext,
) -> Result<Option<Vec<Planned>>, ThoughtFailure> {
    let Some(room) = task.may_expand else { return Ok(None) };
    let (id, inputs) = (&task.thought.id, inputs(&task.inputs));
    let prompt = prompts::complex(state, &task.thought, &inputs);
    let key = format!("{id}/complex");
    let answer = runner.ask(ThoughtRequest { key: &key, thought: id, prompt, tools: false }, cx).await?;
    if !says_complex(&answer) {
        return Ok(None);
    }
    let prompt = prompts::expand(state, &task.thought, &inputs);
    let key = format!("{id}/expand");
    let answer = runner.ask(ThoughtRequest { key: &key, thought: id, prompt, tools: true }, cx).await?;
    let options = &state.options;
    let bounds = Bounds { nodes: room, layers: Some((options.max_layers, options.max_per_layer)) };
    match plan::read(&answer, bounds) {
        Ok(planned) => Ok(Some(planned)),
        Err(why) => {
            let message =
                format!("the nested plan of '{id}' cannot be used: {why}; it is thought in one go instead");
            cx.emit.emit(Body::Error(Box::new(ErrorInfo::new(ErrorKind::Model, "bad_plan", message)))).await;
            Ok(None)
        }
    }
}

/// True if an answer states `complex`; an unclear answer counts as simple.
fn says_complex(answer: &str) -> bool {
    let mut words = answer.split(|c: char| !c.is_alphabetic()).map(str::to_ascii_lowercase);
    words.rfind(|word| word == "complex" || word == "simple").is_some_and(|word| word == "complex")
}

/// Makes the requested number of attempts concurrently. One success is enough.
async fn make(
    runner: &ThoughtRunner,
    state: &GotState,
    task: &Task,
    inputs: &[(String, String)],
    cx: &RunContext,
) -> Result<Vec<ThoughtResult>, ThoughtFailure> {
    let id = &task.thought.id;
    let tries = (0..task.thought.count).map(|attempt| async move {
        let prompt = prompts::make(state, &task.thought, inputs, attempt);
        let key = format!("{id}/{attempt}");
        runner.ask(ThoughtRequest { key: &key, thought: id, prompt, tools: true }, cx).await
    });
    let mut made = Vec::new();
    let mut failed = None;
    for answer in fan_out(tries).await {
        match answer {
            Ok(text) if !text.trim().is_empty() => {
                made.push(ThoughtResult { text: text.trim().into(), score: None });
            }
            Ok(_) => {}
            Err(ThoughtFailure::Run(stop)) => return Err(ThoughtFailure::Run(stop)),
            Err(failure) => failed = Some(failure),
        }
    }
    if made.is_empty() { Err(failed.unwrap_or_else(|| ThoughtFailure::Thought(empty()))) } else { Ok(made) }
}

/// Improves its input; the original remains a candidate, so that the result never gets worse.
async fn improve(
    runner: &ThoughtRunner,
    state: &GotState,
    task: &Task,
    cx: &RunContext,
) -> Result<Vec<ThoughtResult>, ThoughtFailure> {
    let inputs = inputs(&task.inputs);
    let original = task
        .inputs
        .iter()
        .find_map(Thought::best)
        .map(|made| ThoughtResult { text: made.text.clone(), score: None });
    let mut made: Vec<ThoughtResult> = original.into_iter().collect();
    match make(runner, state, task, &inputs, cx).await {
        Ok(bettered) => made.extend(bettered),
        Err(ThoughtFailure::Thought(_)) if !made.is_empty() => {}
        Err(failed) => return Err(failed),
    }
    Ok(made)
}

async fn score(
    runner: &ThoughtRunner,
    state: &GotState,
    task: &Task,
    cx: &RunContext,
) -> Result<Vec<ThoughtResult>, ThoughtFailure> {
    let mut made: Vec<ThoughtResult> =
        task.inputs.iter().flat_map(|input| input.results.iter().cloned()).collect();
    let (id, maker) = (&task.thought.id, task.maker.as_ref().unwrap_or(&task.thought));
    let candidates: Vec<&str> = made.iter().map(|made| &*made.text).collect();
    let prompt = prompts::score(state, maker, &task.made_from, &candidates);
    let key = format!("{id}/score");
    let answer = runner.ask(ThoughtRequest { key: &key, thought: id, prompt, tools: false }, cx).await?;
    let scores = read_values(&answer, made.len());
    if scores.iter().all(Option::is_none) {
        let message = format!(
            "the model was asked for scores and answered: {}; what has no score counts as neither good nor bad",
            summary(&answer)
        );
        cx.emit
            .emit(Body::Error(Box::new(ErrorInfo::new(ErrorKind::Model, "unreadable_scores", message))))
            .await;
    }
    for (made, score) in made.iter_mut().zip(scores) {
        made.score = Some(score.unwrap_or(NEUTRAL));
    }
    Ok(made)
}

fn keep_best(task: &Task) -> Vec<ThoughtResult> {
    let mut made: Vec<ThoughtResult> =
        task.inputs.iter().flat_map(|input| input.results.iter().cloned()).collect();
    made.sort_by(|a, b| b.score.unwrap_or(NEUTRAL).total_cmp(&a.score.unwrap_or(NEUTRAL)));
    made.truncate(task.thought.count);
    made
}

async fn combine(
    runner: &ThoughtRunner,
    state: &GotState,
    task: &Task,
    parts: &[(String, String)],
    cx: &RunContext,
) -> Result<Vec<ThoughtResult>, ThoughtFailure> {
    // A single result needs no combining.
    if let [(_, only)] = parts {
        return Ok(vec![ThoughtResult { text: Arc::from(only.as_str()), score: None }]);
    }
    let id = &task.thought.id;
    let prompt = prompts::combine(state, &task.thought, parts);
    let key = format!("{id}/combine");
    let text = runner.ask(ThoughtRequest { key: &key, thought: id, prompt, tools: true }, cx).await?;
    if text.trim().is_empty() {
        return Err(ThoughtFailure::Thought(empty()));
    }
    Ok(vec![ThoughtResult { text: text.trim().into(), score: None }])
}

fn empty() -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Model, "empty_thought", "the model answered nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_makes_a_thought_complex() {
        for (answer, complex) in [
            ("complex", true),
            ("**Complex**.", true),
            ("Not simple: complex", true),
            ("simple", false),
            ("It is complex, but in the end simple", false),
            ("I cannot say", false),
            ("", false),
        ] {
            assert_eq!(says_complex(answer), complex, "{answer}");
        }
    }
}
