//! The Game of 24: four numbers, each used once, must make 24.

use super::Problem;
use super::moves::{self, Move};
use super::prompt::{Prompt, Task, numbered};
use super::random::SeededRandom;
use super::rational::Rational;

/// A player of known quality.
pub(super) struct Game24 {
    /// How likely it means to propose a right move; else it proposes any.
    pub proposer: f64,
    /// How likely it judges a position rightly. The last number it always judges rightly.
    pub evaluator: f64,
}

impl Problem for Game24 {
    fn answer(&self, prompt: &Prompt<'_>, random: &mut SeededRandom) -> String {
        let Some(numbers) = numbers(prompt.problem()) else {
            return "I need four whole numbers, such as 4 9 10 13.".to_owned();
        };
        match prompt.task {
            Task::Propose => {
                let steps = prompt.steps("Steps so far");
                let left = steps.last().and_then(|step| Move::parse(step)).map_or(numbers, |last| last.left);
                let count = prompt.number("How many").unwrap_or(1);
                let moves = moves::all(&left);
                let right: Vec<&Move> = moves.iter().filter(|m| moves::can_reach_24(&m.left)).collect();
                let lines =
                    (0..count).filter_map(|_| Some(write_move(self.propose(&moves, &right, random)?)));
                lines.collect::<Vec<_>>().join("\n")
            }
            Task::Value => {
                let candidates = prompt.section("Candidates").lines().filter_map(numbered);
                let values = candidates.map(|(n, step)| format!("{n}: {}", self.value(step, random)));
                values.collect::<Vec<_>>().join("\n")
            }
            Task::Answer => solution_text(&numbers, &prompt.steps("Solution found")),
            Task::Complex => "simple".to_owned(),
            _ => {
                let mut left = numbers.clone();
                let mut steps = Vec::new();
                while left.len() > 1 {
                    let moves = moves::all(&left);
                    let right: Vec<&Move> = moves.iter().filter(|m| moves::can_reach_24(&m.left)).collect();
                    let Some(next) = self.propose(&moves, &right, random) else { break };
                    steps.push(next.to_string());
                    left.clone_from(&next.left);
                }
                let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
                solution_text(&numbers, &steps)
            }
        }
    }
}

impl Game24 {
    fn propose<'a>(
        &self,
        moves: &'a [Move],
        right: &[&'a Move],
        random: &mut SeededRandom,
    ) -> Option<&'a Move> {
        if random.happens(self.proposer)
            && let Some(next) = random.pick(right)
        {
            return Some(next);
        }
        random.pick(moves)
    }

    /// From 0 to 10, as the prompt asks.
    fn value(&self, step: &str, random: &mut SeededRandom) -> u8 {
        let Some(next) = Move::parse(step) else { return 0 };
        let truth = moves::can_reach_24(&next.left);
        let right = next.left.len() == 1 || random.happens(self.evaluator);
        if truth == right { 10 } else { 0 }
    }
}

/// The four numbers of a puzzle, in any surrounding text.
fn numbers(text: &str) -> Option<Vec<Rational>> {
    let words = text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let numbers: Vec<Rational> = words.take(4).filter_map(Rational::parse).collect();
    (numbers.len() == 4).then_some(numbers)
}

/// A move as a proposal; the last one completes the solution.
fn write_move(next: &Move) -> String {
    if next.left.len() == 1 { format!("answer: {next}") } else { next.to_string() }
}

fn solution_text(numbers: &[Rational], steps: &[&str]) -> String {
    let moves: Vec<Move> = steps.iter().filter_map(|step| Move::parse(step)).collect();
    match moves::expression(numbers, &moves) {
        Some((text, value)) => format!("{text} = {value}"),
        None => "I found no way to 24.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(oracle: &Game24, text: &str) -> String {
        oracle.answer(&Prompt::read(text), &mut SeededRandom::new(1, text))
    }

    #[test]
    fn a_perfect_player_solves_the_puzzle_in_one_go() {
        let perfect = Game24 { proposer: 1.0, evaluator: 1.0 };
        for puzzle in ["4 9 10 13", "3 3 8 8", "1 5 5 5"] {
            assert!(ask(&perfect, puzzle).ends_with("= 24"), "{puzzle}");
        }
    }

    #[test]
    fn proposals_start_from_the_numbers_that_are_left() {
        let perfect = Game24 { proposer: 1.0, evaluator: 1.0 };
        let text = "Propose next steps.\n\n## Problem\n4 9 10 13\n\n## Steps so far\n1. 13 - 9 = 4 (left: 4 4 10)\n\n\
                    ## How many\nup to 3";
        let answer = ask(&perfect, text);
        let steps: Vec<Move> = answer.lines().map(|line| Move::parse(line).unwrap()).collect();
        assert_eq!(steps.len(), 3);
        assert!(steps.iter().all(|step| step.left.len() == 2 && moves::can_reach_24(&step.left)), "{answer}");
    }

    #[test]
    fn the_last_number_is_judged_exactly_and_prose_is_worth_nothing() {
        let blind = Game24 { proposer: 0.0, evaluator: 0.0 };
        let text = "Value the candidates.\n\n## Problem\n4 9 10 13\n\n## Candidates\n1. answer: 4 * 6 = 24 (left: 24)\n\
                    2. answer: 4 + 6 = 10 (left: 10)\n3. try harder\n";
        assert_eq!(ask(&blind, text), "1: 10\n2: 0\n3: 0");
    }

    #[test]
    fn a_prompt_without_a_puzzle_is_answered_in_text() {
        assert!(ask(&Game24 { proposer: 0.3, evaluator: 0.7 }, "hello").contains("four whole numbers"));
    }
}
