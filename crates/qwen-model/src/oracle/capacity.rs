//! Tasks that have nothing but a size, and a solver that can hold only so much at once.

use super::Problem;
use super::numbers;
use super::prompt::{Prompt, Task};
use super::random::SeededRandom;

/// A solver that succeeds if a task is at most `cap` in size, and otherwise reports that it failed.
pub(super) struct Capacity {
    /// The largest task that it solves in one go.
    pub cap: u64,
}

impl Problem for Capacity {
    fn answer(&self, prompt: &Prompt<'_>, _: &mut SeededRandom) -> String {
        let thought = prompt.section("Thought");
        let instruction = prompt.section("Instruction");
        let about = [instruction, thought, prompt.problem()].into_iter().find(|text| size(text).is_some());
        let Some(size) = about.and_then(size) else {
            return "I need a size, such as: Solve a task of size 24.".to_owned();
        };
        match prompt.task {
            Task::Complex => if size > self.cap { "complex" } else { "simple" }.to_owned(),
            Task::Plan if size <= self.cap => plan(&[size], false),
            Task::Plan => plan(&thirds(size), true),
            Task::Expand => plan(&thirds(size), false),
            Task::Aggregate | Task::Combine => combined(size, &prompt.entries("Inputs")),
            Task::Answer => combined(size, &prompt.entries("Results")),
            Task::Score | Task::Value => {
                let right = format!("solved {size}");
                let entries = prompt.entries("Candidates");
                let lines =
                    entries.iter().map(|(n, text)| format!("{n}: {}", if *text == right { 10 } else { 0 }));
                lines.collect::<Vec<_>>().join("\n")
            }
            Task::Propose | Task::Generate | Task::Improve | Task::Plain => self.solve(size),
        }
    }
}

impl Capacity {
    fn solve(&self, size: u64) -> String {
        if size <= self.cap {
            format!("solved {size}")
        } else {
            format!("unsolved: {size} is too much at once")
        }
    }
}

/// The size in "Solve a task of size 24".
fn size(text: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once("size ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Three tasks as even as can be, none empty.
fn thirds(size: u64) -> Vec<u64> {
    let third = |n: u64| (size + 2 - n) / 3;
    (0..3).map(third).filter(|part| *part > 0).collect()
}

/// Solved, if the parts are solved and add up.
fn combined(size: u64, parts: &[(&str, &str)]) -> String {
    let solved = parts.iter().map(|(_, text)| text.strip_prefix("solved ").map(numbers::read));
    let sum: Option<i64> = solved.map(|list| list.and_then(|list| list.first().copied())).sum();
    match sum {
        Some(sum) if u64::try_from(sum) == Ok(size) => format!("solved {size}"),
        _ => format!("unsolved: the parts do not make up {size}"),
    }
}

fn plan(sizes: &[u64], joined: bool) -> String {
    let mut nodes: Vec<String> = sizes
        .iter()
        .enumerate()
        .map(|(n, size)| {
            let id = n + 1;
            format!(
                r#"{{"id":"part{id}","op":"generate","instruction":"Solve a task of size {size}","k":1}}"#
            )
        })
        .collect();
    if joined {
        let inputs: Vec<String> = (1..=sizes.len()).map(|n| format!("\"part{n}\"")).collect();
        let whole: u64 = sizes.iter().sum();
        nodes.push(format!(
            r#"{{"id":"join","op":"aggregate","instruction":"Join the parts of the task of size {whole}","k":1,"inputs":[{}]}}"#,
            inputs.join(",")
        ));
    }
    format!("{{\"nodes\":[{}]}}", nodes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> String {
        Capacity { cap: 8 }.answer(&Prompt::read(text), &mut SeededRandom::new(0, text))
    }

    #[test]
    fn a_task_is_solved_in_one_go_up_to_the_capacity() {
        assert_eq!(ask("Solve a task of size 8"), "solved 8");
        assert!(ask("Solve a task of size 9").starts_with("unsolved"));
        assert!(ask("Hello").contains("I need a size"));
    }

    #[test]
    fn a_task_falls_into_three_even_parts() {
        for (size, parts) in [(24, vec![8, 8, 8]), (25, vec![9, 8, 8]), (26, vec![9, 9, 8]), (2, vec![1, 1])]
        {
            assert_eq!(thirds(size), parts);
        }
    }

    #[test]
    fn parts_make_a_whole_only_when_all_are_solved() {
        let combine = |a: &str, b: &str| {
            ask(&format!(
                "Combine the results.\n\n## Problem\nSolve a task of size 9\n\n## Thought\nSolve a task of size 5\n\n## Inputs\n### a\n{a}\n\n### b\n{b}\n"
            ))
        };
        assert_eq!(combine("solved 3", "solved 2"), "solved 5");
        assert!(combine("solved 3", "unsolved: 2 is too much at once").starts_with("unsolved"));
        assert!(combine("solved 3", "solved 3").starts_with("unsolved"));
    }
}
