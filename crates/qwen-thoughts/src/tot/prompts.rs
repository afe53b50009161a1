//! The prompts of the tree search.

use super::TotState;
use crate::thinking::Prompt;

/// Marks a step that completes the solution.
pub(super) const ANSWER: &str = "answer:";

/// Asks for next steps after the thought `at`.
pub(super) fn propose(state: &TotState, at: Option<usize>) -> String {
    let words = "Below are a problem and the steps taken towards its solution so far. Propose different next steps, the most \
                 promising first. Write one step a line and nothing else. Put `answer:` in front of a step that completes \
                 the solution.";
    Prompt::new("Propose next steps.", words)
        .section("Problem", &state.problem)
        .list("Steps so far", state.path(at))
        .section("How many", format_args!("up to {}", state.options.proposals))
        .text()
}

/// Asks for scores of the candidates for the step after the thought `at`.
pub(super) fn value(state: &TotState, at: Option<usize>, candidates: &[usize], vote: usize) -> String {
    let words = "Below are a problem, the steps taken towards its solution so far, and candidates for the next step. Judge \
                 each candidate: how likely is it that the steps together with it lead to a right solution, or, where it \
                 completes the solution, that the solution is right? Write one line for each candidate, `number: value`, \
                 with a value from 0 (cannot be right) to 10 (certainly right), and nothing else.";
    let texts = candidates.iter().filter_map(|at| state.thoughts.get(*at)).map(|thought| {
        let mark = if thought.complete { "answer: " } else { "" };
        format!("{mark}{}", thought.text)
    });
    Prompt::new("Value the candidates.", words)
        .section("Problem", &state.problem)
        .list("Steps so far", state.path(at))
        .list("Candidates", texts)
        .section("Vote", format_args!("{} of {}", vote + 1, state.options.samples))
        .text()
}

/// Asks for the reply, based on the best path.
pub(super) fn answer(state: &TotState, best: Option<usize>) -> String {
    let words = "Below are a problem and the best solution that a search found. Answer whoever posed the problem: give the \
                 solution in the form that the problem asks for, and as much of the way to it as helps. Where the solution \
                 is not certain, say so.";
    let standing = match (&state.ending.shortfall, state.is_solved()) {
        (_, true) => "It passed the check.",
        (Some(why), false) => why,
        (None, false) => "It did not pass the check.",
    };
    Prompt::new("Write the answer.", words)
        .section("Problem", &state.problem)
        .list("Solution found", state.path(best))
        .section("How certain", standing)
        .text()
}

/// The steps that an answer proposes, without list markers.
pub(super) fn read_steps(answer: &str) -> impl Iterator<Item = (bool, &str)> {
    answer.lines().filter_map(|line| {
        let step = bare(line);
        let (complete, step) = match step.get(..ANSWER.len()) {
            Some(mark) if mark.eq_ignore_ascii_case(ANSWER) => (true, step[ANSWER.len()..].trim()),
            _ => (false, step),
        };
        let words = step.chars().any(char::is_alphanumeric);
        (words && !step.starts_with("```")).then_some((complete, step))
    })
}

/// A line without a leading `- `, `* `, `1. ` or `1) `.
fn bare(line: &str) -> &str {
    let line = line.trim();
    let line =
        ["- ", "* ", "• "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = (1..=3).contains(&digits).then(|| &line[digits..]);
    numbered
        .and_then(|rest| rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")))
        .unwrap_or(line)
        .trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_out_of_lists_of_any_kind() {
        let answer = "1. first\n2) second\n- third\n* 4 + 9 = 13\n\n---\n```\nAnswer: done\n10 - 4 = 6\n1.5 is a number";
        let steps: Vec<(bool, &str)> = read_steps(answer).collect();
        assert_eq!(
            steps,
            [
                (false, "first"),
                (false, "second"),
                (false, "third"),
                (false, "4 + 9 = 13"),
                (true, "done"),
                (false, "10 - 4 = 6"),
                (false, "1.5 is a number"),
            ]
        );
    }
}
