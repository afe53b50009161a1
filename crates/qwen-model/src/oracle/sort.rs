//! Sorting, as a model does it that loses and repeats numbers in long lists.

use super::Problem;
use super::error_rate::{ErrorRate, repair};
use super::numbers::{self, errors, score};
use super::prompt::{Prompt, Task, numbered};
use super::random::SeededRandom;

/// A sorter of known quality.
pub(super) struct Sort;

const RATE: ErrorRate = ErrorRate { most: 0.143, half_at: 26.55 };

/// Merging goes wrong this often, compared with sorting.
const MERGING: f64 = 0.1;

/// A list of this length is sorted nearly always without an error.
const PART: usize = 16;

impl Problem for Sort {
    fn answer(&self, prompt: &Prompt<'_>, random: &mut SeededRandom) -> String {
        let problem = numbers::read(prompt.problem());
        match prompt.task {
            Task::Plain => numbers::write(&sorted(&problem, random)),
            Task::Propose => {
                let steps = prompt.steps("Steps so far");
                let count = prompt.number("How many").unwrap_or(1);
                let lines = (0..count).map(|_| match steps.last() {
                    None => numbers::write(&sorted(&problem, random)),
                    Some(last) => numbers::write(&repair(&problem, &numbers::read(last), random)),
                });
                lines.collect::<Vec<_>>().join("\n")
            }
            Task::Value => {
                let right = in_order(&problem);
                let candidates = prompt.section("Candidates").lines().filter_map(numbered);
                let lines = candidates
                    .map(|(n, list)| format!("{n}: {}", score(errors(&right, &numbers::read(list)))));
                lines.collect::<Vec<_>>().join("\n")
            }
            Task::Plan | Task::Expand => plan(problem.len()),
            Task::Complex => {
                if prompt.section("Thought").starts_with("Sort part") { "simple" } else { "complex" }
                    .to_owned()
            }
            Task::Generate => generate(prompt, &problem, random),
            Task::Aggregate | Task::Combine => {
                let together: Vec<i64> =
                    prompt.entries("Inputs").iter().flat_map(|(_, text)| numbers::read(text)).collect();
                numbers::write(&RATE.inject_errors(&in_order(&together), MERGING, random))
            }
            Task::Improve => {
                let given = prompt.entries("Inputs").first().map(|(_, text)| numbers::read(text));
                numbers::write(&repair(&problem, &given.unwrap_or_default(), random))
            }
            Task::Score => {
                let right = in_order(&expected_numbers(prompt, &problem));
                let lines = prompt
                    .entries("Candidates")
                    .iter()
                    .map(|(n, list)| format!("{n}: {}", score(errors(&right, &numbers::read(list)))))
                    .collect::<Vec<_>>();
                lines.join("\n")
            }
            Task::Answer => final_result(prompt),
        }
    }
}

/// The result that the answer is made of: the last step of a tree, or the one result of a graph.
fn final_result(prompt: &Prompt<'_>) -> String {
    let steps = prompt.steps("Solution found");
    let results = prompt.entries("Results");
    let best = steps.last().copied().or_else(|| results.first().map(|(_, text)| *text));
    best.unwrap_or("I found no order.").to_owned()
}

fn generate(prompt: &Prompt<'_>, problem: &[i64], random: &mut SeededRandom) -> String {
    let instruction = prompt.section("Instruction");
    if instruction.starts_with("Split") {
        let parts = problem.len().div_ceil(PART);
        let lines =
            (0..parts).map(|part| format!("part {}: {}", part + 1, numbers::write(slice(problem, part))));
        return lines.collect::<Vec<_>>().join("\n");
    }
    numbers::write(&sorted(&expected_numbers(prompt, problem), random))
}

/// The numbers that a thought is about: a part of the list, the lists that it merges, or all.
fn expected_numbers(prompt: &Prompt<'_>, problem: &[i64]) -> Vec<i64> {
    let instruction = prompt.section("Instruction");
    let inputs = prompt.entries("Inputs");
    if let Some(part) = instruction.strip_prefix("Sort part ") {
        let part = part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let marker = format!("part {part}:");
        let mut lines = inputs.iter().flat_map(|(_, text)| text.lines());
        let line = lines.find_map(|line| line.strip_prefix(&marker));
        return line.map(numbers::read).unwrap_or_default();
    }
    if instruction.starts_with("Merge") {
        return inputs.iter().flat_map(|(_, text)| numbers::read(text)).collect();
    }
    problem.to_vec()
}

fn slice(problem: &[i64], part: usize) -> &[i64] {
    let from = (part * PART).min(problem.len());
    &problem[from..(from + PART).min(problem.len())]
}

fn in_order(list: &[i64]) -> Vec<i64> {
    let mut list = list.to_vec();
    list.sort_unstable();
    list
}

fn sorted(list: &[i64], random: &mut SeededRandom) -> Vec<i64> {
    RATE.inject_errors(&in_order(list), 1.0, random)
}

/// Split, several sorts of each part, best, several merges, best, several improvements, best.
fn plan(length: usize) -> String {
    let mut nodes = Vec::new();
    let parts = length.div_ceil(PART).max(1);
    let mut lists = Vec::new();
    if parts == 1 {
        let sorts = Group { instruction: "Sort the list.", op: "generate", count: 5, inputs: &[] };
        lists.push(sorts.push("sort", &mut nodes));
    } else {
        nodes.push(format!(
            r#"{{"id":"split","op":"generate","instruction":"Split the list into {parts} parts.","k":1}}"#
        ));
        for part in 1..=parts {
            let instruction = format!("Sort part {part} of the split.");
            let inputs = ["split".to_owned()];
            let sorts = Group { instruction: &instruction, op: "generate", count: 5, inputs: &inputs };
            lists.push(sorts.push(&format!("sort{part}"), &mut nodes));
        }
    }
    let mut merges = 0;
    while lists.len() > 1 {
        let mut merged = Vec::new();
        for pair in lists.chunks(2) {
            if pair.len() == 1 {
                merged.extend_from_slice(pair);
                continue;
            }
            merges += 1;
            let merge =
                Group { instruction: "Merge the sorted lists.", op: "aggregate", count: 4, inputs: pair };
            merged.push(merge.push(&format!("merge{merges}"), &mut nodes));
        }
        lists = merged;
    }
    let repair = Group { instruction: "Repair the sorted list.", op: "improve", count: 4, inputs: &lists };
    repair.push("repair", &mut nodes);
    format!("{{\"nodes\":[\n{}\n]}}", nodes.join(",\n"))
}

/// Several tries at something, scored, of which the best is kept.
pub(super) struct Group<'a> {
    pub instruction: &'a str,
    pub op: &'a str,
    pub count: usize,
    pub inputs: &'a [String],
}

impl Group<'_> {
    /// Adds the group's nodes and returns the name of the last.
    pub fn push(&self, id: &str, nodes: &mut Vec<String>) -> String {
        let inputs: Vec<String> = self.inputs.iter().map(|input| format!("\"{input}\"")).collect();
        nodes.push(format!(
            r#"{{"id":"{id}","op":"{}","instruction":"{}","k":{},"inputs":[{}]}}"#,
            self.op,
            self.instruction,
            self.count,
            inputs.join(",")
        ));
        nodes.push(format!(r#"{{"id":"{id}-score","op":"score","inputs":["{id}"]}}"#));
        nodes.push(format!(r#"{{"id":"{id}-best","op":"keep_best","n":1,"inputs":["{id}-score"]}}"#));
        format!("{id}-best")
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::missing;
    use super::*;

    fn ask(text: &str) -> String {
        Sort.answer(&Prompt::read(text), &mut SeededRandom::new(1, text))
    }

    #[test]
    fn short_lists_are_sorted_and_long_ones_are_spoilt() {
        assert_eq!(ask("Sort ascending: 5 3 1"), "1 3 5");
        let long: Vec<i64> = (0..128).rev().collect();
        let text = format!("Sort ascending: {}", numbers::write(&long));
        let mut right = long.clone();
        right.sort_unstable();
        let given = numbers::read(&ask(&text));
        assert!((5..40).contains(&errors(&right, &given)), "{}", errors(&right, &given));
    }

    #[test]
    fn a_part_is_scored_against_the_split() {
        let text = "Score the thoughts.\n\n## Problem\nSort ascending: 4 3 2 1\n\n## Instruction\nSort part 2 of the split.\n\n\
                    ## Inputs\n### split\npart 1: 4 3\npart 2: 2 1\n\n## Candidates\n### 1\n1 2\n\n### 2\n2\n";
        assert_eq!(ask(text), "1: 10.0000\n2: 5.0000");
    }

    #[test]
    fn improving_never_finds_more_than_one_error() {
        let right: Vec<i64> = (0..20).collect();
        for seed in 0..50 {
            let mut random = SeededRandom::new(seed, "x");
            let before = missing(&right, &right[3..]).len();
            let after = errors(&right, &repair(&right, &right[3..], &mut random));
            assert!((before - 1..=before + 1).contains(&after));
        }
    }
}
