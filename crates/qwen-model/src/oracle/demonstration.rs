//! The built-in model's answers to the agents that think in trees and graphs: it solves the puzzle in the
//! prompt, or a fixed one where there is none.

use super::Problem;
use super::capacity::Capacity;
use super::game24::Game24;
use super::intersect::Intersect;
use super::numbers;
use super::prompt::{Prompt, Task};
use super::random::SeededRandom;
use super::sort::Sort;

/// The puzzle that a tree of thoughts solves where the prompt has none.
const TREE_PUZZLE: &str = "4 9 10 13";

/// The puzzle that a graph of thoughts solves where the prompt has none: long enough to be split.
const GRAPH_PUZZLE: &str = "Sort ascending: 23 4 17 8 42 15 16 1 30 12 9 27 5 38 2 21 14 33 6 19 11 29 3 25";

/// The answer to a prompt of such an agent; `None` for other prompts.
pub(crate) fn answer(asked: &str) -> Option<String> {
    let prompt = Prompt::read(asked);
    if prompt.task == Task::Plain {
        return None;
    }
    let in_tree = match prompt.task {
        Task::Propose | Task::Value => true,
        Task::Answer => asked.contains("\n## Solution found\n"),
        _ => false,
    };
    if let Some(puzzle) = puzzle(prompt.problem(), in_tree) {
        return Some(puzzle.answer(&prompt, &mut SeededRandom::new(0, asked)));
    }
    let (text, what) = if in_tree {
        (TREE_PUZZLE, format!("looked for a way to make 24 of {TREE_PUZZLE}"))
    } else {
        (GRAPH_PUZZLE, "sorted a list of numbers".to_owned())
    };
    let asked = with_problem(asked, text);
    let prompt = Prompt::read(&asked);
    let found = puzzle(text, in_tree)?.answer(&prompt, &mut SeededRandom::new(0, &asked));
    if prompt.task != Task::Answer {
        return Some(found);
    }
    Some(format!(
        "{found}\n\nI am the built-in demo model. I can think about puzzles only, so I {what}. Other tasks for me: \"1 5 5 5\" (--agent \
         tot), \"Sort ascending: 5 3 1\" or \"Intersect: 1 2 3 | 2 3 4\" (--agent got)."
    ))
}

/// The puzzle in `problem`, if there is one that fits a tree or a graph of thoughts.
fn puzzle(problem: &str, in_tree: bool) -> Option<Box<dyn Problem>> {
    let count = numbers::read(problem).len();
    let lower = problem.to_lowercase();
    if problem
        .split_once('|')
        .is_some_and(|(a, b)| !numbers::read(a).is_empty() && !numbers::read(b).is_empty())
    {
        Some(Box::new(Intersect))
    } else if lower.contains("sort") && count > 1 {
        Some(Box::new(Sort))
    } else if lower.contains("size ") && count == 1 && !in_tree {
        Some(Box::new(Capacity { cap: 8 }))
    } else if in_tree && count == 4 {
        Some(Box::new(Game24 { proposer: 0.6, evaluator: 0.9 }))
    } else if !in_tree && count > 1 {
        Some(Box::new(Sort))
    } else {
        None
    }
}

/// The prompt with another problem.
fn with_problem(asked: &str, problem: &str) -> String {
    const HEADING: &str = "\n## Problem\n";
    let Some((before, rest)) = asked.split_once(HEADING) else { return asked.to_owned() };
    let after = rest.find("\n## ").map_or("", |at| &rest[at..]);
    format!("{before}{HEADING}{problem}\n{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prompts_of_thinking_agents_are_answered() {
        assert_eq!(answer("Look around"), None);
        assert_eq!(answer("4 9 10 13"), None);
    }

    #[test]
    fn a_prompt_without_a_puzzle_gets_one() {
        let propose = "Propose next steps.\n\nWords.\n\n## Problem\nLook around\n\n## How many\nup to 3\n";
        let steps = answer(propose).expect("steps");
        assert!(steps.lines().count() == 3 && steps.contains("(left: "), "{steps}");
        let plan = answer("Plan a graph of thoughts.\n\n## Problem\nLook around\n").expect("a plan");
        assert!(plan.contains("Split the list into 2 parts."), "{plan}");
    }

    #[test]
    fn a_puzzle_in_the_prompt_is_solved() {
        let plan =
            answer("Plan a graph of thoughts.\n\n## Problem\nSort ascending: 3 2 1\n").expect("a plan");
        assert!(plan.contains("Sort the list."), "{plan}");
        let text = "Write the answer.\n\n## Problem\n4 9 10 13\n\n## Solution found\n1. 13 - 9 = 4 (left: 4 4 10)\n\
                    2. 10 - 4 = 6 (left: 4 6)\n3. 4 * 6 = 24 (left: 24)\n";
        assert!(answer(text).expect("an answer").ends_with("= 24"));
    }
}
