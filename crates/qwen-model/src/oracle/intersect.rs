//! The intersection of two sets, as a model finds it that overlooks and makes up members of long ones.

use super::Problem;
use super::error_rate::{ErrorRate, repair};
use super::numbers::{self, errors, score};
use super::prompt::{Prompt, Task, numbered};
use super::random::SeededRandom;
use super::sort::Group;

/// A finder of known quality.
pub(super) struct Intersect;

const RATE: ErrorRate = ErrorRate { most: 0.35, half_at: 16.0 };

/// Joining results goes wrong this often, compared with finding them.
const JOINING: f64 = 0.01;

/// A set of this size is compared nearly always without an error.
const PART: usize = 8;

impl Problem for Intersect {
    fn answer(&self, prompt: &Prompt<'_>, random: &mut SeededRandom) -> String {
        let Some((a, b)) = sets(prompt.problem()) else {
            return "I need two sets, such as Intersect: 1 2 3 | 2 3 4.".to_owned();
        };
        match prompt.task {
            Task::Plain => numbers::write(&find(&a, &b, random)),
            Task::Propose => {
                let steps = prompt.steps("Steps so far");
                let count = prompt.number("How many").unwrap_or(1);
                let lines = (0..count).map(|_| match steps.last() {
                    None => numbers::write(&find(&a, &b, random)),
                    Some(last) => numbers::write(&repair(&common(&a, &b), &numbers::read(last), random)),
                });
                lines.collect::<Vec<_>>().join("\n")
            }
            Task::Value => {
                let right = common(&a, &b);
                let candidates = prompt.section("Candidates").lines().filter_map(numbered);
                let lines = candidates
                    .map(|(n, list)| format!("{n}: {}", score(errors(&right, &numbers::read(list)))));
                lines.collect::<Vec<_>>().join("\n")
            }
            Task::Plan | Task::Expand => plan(b.len()),
            Task::Complex => "simple".to_owned(),
            Task::Generate => generate(prompt, &a, &b, random),
            Task::Aggregate | Task::Combine => {
                numbers::write(&RATE.inject_errors(&joined(prompt), JOINING, random))
            }
            Task::Improve => {
                let given = prompt.entries("Inputs").first().map(|(_, text)| numbers::read(text));
                numbers::write(&repair(&common(&a, &b), &given.unwrap_or_default(), random))
            }
            Task::Score => {
                let right = expected_result(prompt, &a, &b);
                let entries = prompt.entries("Candidates");
                let lines = entries
                    .iter()
                    .map(|(n, list)| format!("{n}: {}", score(errors(&right, &numbers::read(list)))));
                lines.collect::<Vec<_>>().join("\n")
            }
            Task::Answer => {
                let steps = prompt.steps("Solution found");
                let results = prompt.entries("Results");
                let best = steps.last().copied().or_else(|| results.first().map(|(_, text)| *text));
                best.unwrap_or("I found no common members.").to_owned()
            }
        }
    }
}

/// The two sets of a problem.
fn sets(problem: &str) -> Option<(Vec<i64>, Vec<i64>)> {
    let (a, b) = problem.split_once('|')?;
    Some((numbers::read(a), numbers::read(b)))
}

/// The members of both, in ascending order.
fn common(a: &[i64], b: &[i64]) -> Vec<i64> {
    let mut both: Vec<i64> = b.iter().filter(|number| a.contains(number)).copied().collect();
    both.sort_unstable();
    both.dedup();
    both
}

/// The members of both as the model finds them: the errors grow with what is compared, not with what is
/// found.
fn find(a: &[i64], b: &[i64], random: &mut SeededRandom) -> Vec<i64> {
    let all = RATE.inject_errors(b, 1.0, random);
    let mut found = common(a, &all);
    // A number that was read twice is taken for a member.
    let twice = all.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    found.extend(twice.filter(|number| !a.contains(number)));
    found.sort_unstable();
    found.dedup();
    found
}

fn generate(prompt: &Prompt<'_>, a: &[i64], b: &[i64], random: &mut SeededRandom) -> String {
    if prompt.section("Instruction").starts_with("Split") {
        let parts = b.chunks(PART).enumerate();
        let lines = parts.map(|(n, part)| format!("part {}: {}", n + 1, numbers::write(part)));
        return lines.collect::<Vec<_>>().join("\n");
    }
    numbers::write(&find(a, &part(prompt).unwrap_or_else(|| b.to_vec()), random))
}

/// The part of the second set that a thought is about.
fn part(prompt: &Prompt<'_>) -> Option<Vec<i64>> {
    let rest = prompt.section("Instruction").strip_prefix("Intersect the first set with part ")?;
    let marker = format!("part {}:", rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
    let inputs = prompt.entries("Inputs");
    let line =
        inputs.iter().flat_map(|(_, text)| text.lines()).find_map(|line| line.strip_prefix(&marker))?;
    Some(numbers::read(line))
}

fn joined(prompt: &Prompt<'_>) -> Vec<i64> {
    let mut all: Vec<i64> =
        prompt.entries("Inputs").iter().flat_map(|(_, text)| numbers::read(text)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What a thought should come to.
fn expected_result(prompt: &Prompt<'_>, a: &[i64], b: &[i64]) -> Vec<i64> {
    if prompt.section("Instruction").starts_with("Join") {
        return joined(prompt);
    }
    common(a, &part(prompt).unwrap_or_else(|| b.to_vec()))
}

/// Split, several comparisons of each part, best, several joins, best.
fn plan(size: usize) -> String {
    let mut nodes = Vec::new();
    let parts = size.div_ceil(PART).max(1);
    if parts == 1 {
        let finds = Group { instruction: "Intersect the sets.", op: "generate", count: 5, inputs: &[] };
        finds.push("find", &mut nodes);
        return format!("{{\"nodes\":[\n{}\n]}}", nodes.join(",\n"));
    }
    nodes.push(format!(
        r#"{{"id":"split","op":"generate","instruction":"Split the second set into {parts} parts.","k":1}}"#
    ));
    let mut found = Vec::new();
    for part in 1..=parts {
        let instruction = format!("Intersect the first set with part {part}.");
        let inputs = ["split".to_owned()];
        let finds = Group { instruction: &instruction, op: "generate", count: 5, inputs: &inputs };
        found.push(finds.push(&format!("find{part}"), &mut nodes));
    }
    let joins = Group { instruction: "Join the results.", op: "aggregate", count: 3, inputs: &found };
    joins.push("join", &mut nodes);
    format!("{{\"nodes\":[\n{}\n]}}", nodes.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sets_are_compared_rightly() {
        let text = "Intersect: 1 2 3 | 2 3 4";
        assert_eq!(Intersect.answer(&Prompt::read(text), &mut SeededRandom::new(1, text)), "2 3");
    }

    #[test]
    fn a_prompt_without_two_sets_is_answered_in_text() {
        let answer = Intersect.answer(&Prompt::read("1 2 3"), &mut SeededRandom::new(1, ""));
        assert!(answer.contains("two sets"), "{answer}");
    }
}
