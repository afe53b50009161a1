//! The prompts of the graph of thoughts.

use super::GotState;
use super::plan::MOST_TRIES;
use super::state::Thought;
use crate::thinking::Prompt;

const FORM: &str = "Answer with one JSON object and nothing else: {\"nodes\": [{\"id\": \"…\", \"op\": \"…\", \"instruction\": \"…\", \
                    \"k\": 1, \"inputs\": [\"…\"]}, …]}. Each node is a thought with a short name. The operations are:\n\
                    - generate: k independent tries at what the instruction says;\n\
                    - score: judges what its input made, so that the best can be told;\n\
                    - keep_best: keeps the n best of its input (\"n\" in place of \"k\");\n\
                    - aggregate: makes one out of all its inputs, k times;\n\
                    - improve: n tries to better its input.\n\
                    `inputs` names the thoughts that must be done before. A thought sees the problem, its own instruction and \
                    its inputs, and nothing else. Thoughts that do not need each other are thought at the same time; \
                    what no thought needs is the result.";

/// Asks for a plan. `wrong` describes the error in the last one.
pub(super) fn plan(state: &GotState, wrong: Option<&str>) -> String {
    let words = format!(
        "Below is a problem. Do not solve it: plan how to solve it as a graph of thoughts. Split what is too much at once, \
         try what may fail several times and keep the best, and bring the parts together. {FORM}"
    );
    Prompt::new("Plan a graph of thoughts.", &words)
        .section("Problem", &state.problem)
        .section(
            "How many",
            format_args!("1 to {} tries a thought; thoughts: up to {}", MOST_TRIES, state.options.max_nodes),
        )
        .section("What was wrong with your last plan", wrong.unwrap_or_default())
        .text()
}

/// Asks for a nested plan of one thought.
pub(super) fn expand(state: &GotState, thought: &Thought, inputs: &[(String, String)]) -> String {
    let words = format!(
        "Below are a problem and one thought towards its solution that is too much at once. Do not think it: plan it as a \
         graph of smaller thoughts. Their results are combined afterwards. {FORM}"
    );
    let GotSize { layers, wide } = GotSize::measure(state);
    Prompt::new("Expand a thought into a graph of thoughts.", &words)
        .section("Problem", &state.problem)
        .section("Thought", instruction(state, thought))
        .entries("Inputs", pairs(inputs))
        .section("How many", format_args!("layers: up to {layers}; thoughts in a layer: up to {wide}"))
        .text()
}

struct GotSize {
    layers: usize,
    wide: usize,
}

impl GotSize {
    fn measure(state: &GotState) -> Self {
        Self { layers: state.options.max_layers, wide: state.options.max_per_layer }
    }
}

/// Asks whether a thought is too complex for one step.
pub(super) fn complex(state: &GotState, thought: &Thought, inputs: &[(String, String)]) -> String {
    let words = "Below are a problem and one thought towards its solution. Could it be thought in one go and come out right, or \
                 is it better split into smaller thoughts? Answer with one word: `simple` or `complex`.";
    Prompt::new("Is this thought complex?", words)
        .section("Problem", &state.problem)
        .section("Thought", instruction(state, thought))
        .entries("Inputs", pairs(inputs))
        .text()
}

/// Asks for one attempt at a thought.
pub(super) fn make(
    state: &GotState,
    thought: &Thought,
    inputs: &[(String, String)],
    attempt: usize,
) -> String {
    use super::plan::Op;
    let (title, words) = match thought.op {
        Op::Aggregate => (
            "Aggregate thoughts.",
            "Below are a problem and several results on the way to its solution. Make one result out of them, as the \
             instruction says. Answer with the result and nothing else.",
        ),
        Op::Improve => (
            "Improve a thought.",
            "Below are a problem and a result on the way to its solution. Find what is wrong or weak in it and better it, as \
             the instruction says. Answer with the bettered result, whole, and nothing else.",
        ),
        _ => (
            "Generate a thought.",
            "Below is a problem. Do the part of its solution that the instruction names, and only that. Answer with the \
             result and nothing else.",
        ),
    };
    let tries =
        if thought.count > 1 { format!("{} of {}", attempt + 1, thought.count) } else { String::new() };
    Prompt::new(title, words)
        .section("Problem", &state.problem)
        .section("Instruction", instruction(state, thought))
        .entries("Inputs", pairs(inputs))
        .section("Try", tries)
        .text()
}

/// Asks for scores of the results that the thought `made` produced from `inputs`.
pub(super) fn score(
    state: &GotState,
    made: &Thought,
    inputs: &[(String, String)],
    candidates: &[&str],
) -> String {
    let words = "Below are a problem, an instruction for a part of its solution, what there was to work with, and candidates for \
                 the result. Judge how right and complete each candidate is. Write one line for each candidate, \
                 `number: score`, with a score from 0 (useless) to 10 (without a flaw), and nothing else.";
    Prompt::new("Score the thoughts.", words)
        .section("Problem", &state.problem)
        .section("Instruction", instruction(state, made))
        .entries("Inputs", pairs(inputs))
        .entries("Candidates", candidates.iter().enumerate().map(|(n, text)| (n + 1, text)))
        .text()
}

/// Asks for the combined result of a nested graph.
pub(super) fn combine(state: &GotState, thought: &Thought, parts: &[(String, String)]) -> String {
    let words = "Below are a problem, one thought towards its solution, and the results of the smaller thoughts that it was \
                 split into. Combine them into the result of the thought. Answer with the result and nothing else.";
    Prompt::new("Combine the results.", words)
        .section("Problem", &state.problem)
        .section("Thought", instruction(state, thought))
        .entries("Inputs", pairs(parts))
        .text()
}

/// Asks for the reply.
pub(super) fn answer(state: &GotState) -> String {
    let words = "Below are a problem and the results of thinking about it. Answer whoever posed the problem: give the solution in \
                 the form that the problem asks for. Where a part is missing or not certain, say so.";
    let found = state.findings();
    let results =
        found.iter().filter_map(|thought| Some((thought.id.as_str(), thought.best()?.text.as_ref())));
    Prompt::new("Write the answer.", words)
        .section("Problem", &state.problem)
        .entries("Results", results)
        .section("How certain", state.ending.shortfall.as_deref().unwrap_or_default())
        .text()
}

/// The instruction of a thought; defaults to the problem.
fn instruction<'a>(state: &'a GotState, thought: &'a Thought) -> &'a str {
    if thought.instruction.is_empty() { &state.problem } else { &thought.instruction }
}

fn pairs(list: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    list.iter().map(|(name, text)| (name.as_str(), text.as_str()))
}
