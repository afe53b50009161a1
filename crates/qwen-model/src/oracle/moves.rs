//! The moves of the Game of 24: two of the numbers become one.

use std::fmt;

use super::rational::Rational;

const SIGNS: [char; 4] = ['+', '-', '*', '/'];

/// A move, and the numbers that are left after it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Move {
    pub a: Rational,
    pub sign: char,
    pub b: Rational,
    pub result: Rational,
    pub left: Vec<Rational>,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} = {} (left:", self.a, self.sign, self.b, self.result)?;
        for number in &self.left {
            write!(f, " {number}")?;
        }
        f.write_str(")")
    }
}

impl Move {
    /// Reads a move as it is written.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches("answer:").trim_start();
        let (sum, rest) = text.split_once(" = ")?;
        let (result, rest) = rest.split_once(" (left:")?;
        let mut words = sum.split(' ');
        let (a, sign, b) = (words.next()?, words.next()?, words.next()?);
        let left = rest.trim_end().strip_suffix(')')?.split_whitespace().map(Rational::parse);
        Some(Self {
            a: Rational::parse(a)?,
            sign: sign.parse().ok()?,
            b: Rational::parse(b)?,
            result: Rational::parse(result)?,
            left: left.collect::<Option<_>>()?,
        })
    }
}

/// All moves, each once.
pub(super) fn all(numbers: &[Rational]) -> Vec<Move> {
    let mut moves: Vec<Move> = Vec::new();
    for (i, &a) in numbers.iter().enumerate() {
        for (j, &b) in numbers.iter().enumerate() {
            for sign in SIGNS {
                let twin = matches!(sign, '+' | '*') && j < i;
                if i == j || twin {
                    continue;
                }
                let Some(result) = a.compute(sign, b) else { continue };
                let known = |other: &Move| other.sign == sign && (other.a, other.b) == (a, b);
                if moves.iter().any(known) {
                    continue;
                }
                let others = numbers.iter().enumerate().filter(|(n, _)| *n != i && *n != j);
                let mut left: Vec<Rational> = others.map(|(_, number)| *number).collect();
                left.push(result);
                left.sort_unstable();
                moves.push(Move { a, sign, b, result, left });
            }
        }
    }
    moves
}

/// True if the numbers can still become 24. Asked for every move of every proposal, so it makes no lists.
pub(super) fn can_reach_24(numbers: &[Rational]) -> bool {
    match numbers {
        [] => false,
        [last] => *last == Rational::from_integer(24),
        [first, rest @ ..] if rest.len() < MOST_NUMBERS => {
            let mut all = [*first; MOST_NUMBERS];
            all[1..numbers.len()].copy_from_slice(rest);
            reaches(&mut all, numbers.len())
        }
        _ => false,
    }
}

/// A puzzle has four.
const MOST_NUMBERS: usize = 4;

/// The same for the first `count` of `all`, which are unchanged if the result is false.
fn reaches(all: &mut [Rational; MOST_NUMBERS], count: usize) -> bool {
    if count == 1 {
        return all[0] == Rational::from_integer(24);
    }
    for i in 0..count {
        for j in i + 1..count {
            let (a, b, last) = (all[i], all[j], all[count - 1]);
            let results = [('+', a, b), ('*', a, b), ('-', a, b), ('-', b, a), ('/', a, b), ('/', b, a)];
            for (sign, a, b) in results {
                let Some(result) = a.compute(sign, b) else { continue };
                all[i] = result;
                all[j] = last;
                if reaches(all, count - 1) {
                    return true;
                }
            }
            (all[i], all[j]) = (a, b);
        }
    }
    false
}

/// What the moves make of the numbers: an expression and its value. None where a move does not fit or
/// something is left.
pub(super) fn expression(numbers: &[Rational], moves: &[Move]) -> Option<(String, Rational)> {
    let mut items: Vec<(Rational, String)> = numbers.iter().map(|n| (*n, n.to_string())).collect();
    for next in moves {
        let mut take = |value: Rational| {
            let at = items.iter().position(|(known, _)| *known == value)?;
            Some(items.remove(at).1)
        };
        let (left, right) = (take(next.a)?, take(next.b)?);
        items.push((next.result, format!("({left} {} {right})", next.sign)));
    }
    let [(value, text)] = items.as_slice() else { return None };
    let bare = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    Some((bare.to_owned(), *value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<Rational> {
        text.split(' ').map(|word| Rational::parse(word).unwrap()).collect()
    }

    #[test]
    fn solvable_puzzles_are_recognised() {
        for (text, can) in
            [("4 9 10 13", true), ("3 3 8 8", true), ("1 1 1 1", false), ("24", true), ("23", false)]
        {
            assert_eq!(can_reach_24(&numbers(text)), can, "{text}");
        }
    }

    #[test]
    fn a_move_is_read_as_it_is_written() {
        for next in all(&numbers("3 8/3 8")) {
            assert_eq!(Move::parse(&next.to_string()), Some(next.clone()));
            assert_eq!(Move::parse(&format!("answer: {next}")), Some(next));
        }
        assert_eq!(Move::parse("four plus nine"), None);
    }

    #[test]
    fn moves_add_up_to_an_expression() {
        let steps = ["13 - 9 = 4 (left: 4 4 10)", "10 - 4 = 6 (left: 4 6)", "4 * 6 = 24 (left: 24)"];
        let steps: Vec<Move> = steps.iter().map(|step| Move::parse(step).unwrap()).collect();
        let (text, value) = expression(&numbers("4 9 10 13"), &steps).unwrap();
        assert_eq!((text.as_str(), value), ("(13 - 9) * (10 - 4)", Rational::from_integer(24)));
        assert_eq!(expression(&numbers("4 9 10 13"), &steps[..2]), None);
        assert_eq!(expression(&numbers("1 1 1 1"), &steps), None);
    }
}
