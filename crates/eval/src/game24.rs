//! The Game of 24: puzzles, and whether a reply solves one.

/// Numbers that differ by less than this are equal: the fractions of the game are coarse.
const CLOSE: f64 = 1e-6;

/// `count` different puzzles out of those that can be solved, spread evenly over all of them.
pub fn puzzles(count: usize) -> Vec<[u8; 4]> {
    let mut all = Vec::new();
    for a in 1..=13 {
        for b in a..=13 {
            for c in b..=13 {
                for d in c..=13 {
                    if can_make_24(&[f64::from(a), f64::from(b), f64::from(c), f64::from(d)]) {
                        all.push([a, b, c, d]);
                    }
                }
            }
        }
    }
    (0..count).map(|n| all[n * all.len() / count]).collect()
}

/// A puzzle as a prompt.
pub fn prompt(puzzle: [u8; 4]) -> String {
    puzzle.map(|number| number.to_string()).join(" ")
}

fn can_make_24(numbers: &[f64]) -> bool {
    if let [last] = numbers {
        return (last - 24.0).abs() < CLOSE;
    }
    for (i, a) in numbers.iter().enumerate() {
        for (j, b) in numbers.iter().enumerate() {
            if i == j {
                continue;
            }
            let rest: Vec<f64> =
                numbers.iter().enumerate().filter(|(n, _)| *n != i && *n != j).map(|(_, n)| *n).collect();
            for result in [a + b, a - b, a * b, a / b] {
                if result.is_finite() && can_make_24(&[rest.as_slice(), &[result]].concat()) {
                    return true;
                }
            }
        }
    }
    false
}

/// True if a reply ends with an expression that uses each number of the puzzle once and makes 24.
pub fn solves(puzzle: [u8; 4], reply: &str) -> bool {
    let Some(line) = reply.lines().rev().find(|line| line.contains('=')) else { return false };
    let Some((expression, _)) = line.rsplit_once('=') else { return false };
    let mut parser = Parser { text: expression.as_bytes(), at: 0, used: Vec::new() };
    let Some(value) = parser.sum() else { return false };
    let mut wanted: Vec<u32> = puzzle.iter().copied().map(u32::from).collect();
    wanted.sort_unstable();
    parser.used.sort_unstable();
    parser.peek().is_none() && (value - 24.0).abs() < CLOSE && parser.used == wanted
}

/// Reads an expression and notes the numbers in it.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    used: Vec<u32>,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn sum(&mut self) -> Option<f64> {
        let mut value = self.product()?;
        while let Some(sign @ (b'+' | b'-')) = self.peek() {
            self.at += 1;
            let other = self.product()?;
            value = if sign == b'+' { value + other } else { value - other };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<f64> {
        let mut value = self.factor()?;
        while let Some(sign @ (b'*' | b'/')) = self.peek() {
            self.at += 1;
            let other = self.factor()?;
            value = if sign == b'*' { value * other } else { value / other };
        }
        Some(value)
    }

    fn factor(&mut self) -> Option<f64> {
        if self.peek()? == b'(' {
            self.at += 1;
            let value = self.sum()?;
            return (self.peek()? == b')').then(|| {
                self.at += 1;
                value
            });
        }
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&self.text[self.at..self.at + digits]).ok()?;
        let number: u32 = text.parse().ok()?;
        self.at += digits;
        self.used.push(number);
        Some(f64::from(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_checked_as_a_person_would() {
        for (reply, right) in [
            ("(13 - 9) * (10 - 4) = 24", true),
            ("First 13 - 9 = 4.\n(10 - 4) * (13 - 9) = 24", true),
            ("(13 - 9) * (10 - 4) = 23", true),
            ("24 = 24", false),
            ("4 + 9 + 10 + 13 = 24", false),
            ("(13 - 9) * 6 = 24", false),
            ("(13 - 9) * (10 - 4", false),
            ("(13 - 9) * (10 - 4 = 24", false),
            ("no idea", false),
            ("", false),
        ] {
            assert_eq!(solves([4, 9, 10, 13], reply), right, "{reply}");
        }
        assert!(solves([3, 3, 8, 8], "8 / (3 - (8 / 3)) = 24"));
    }

    #[test]
    fn puzzles_can_be_solved_and_are_all_different() {
        let puzzles = puzzles(100);
        assert_eq!(puzzles.len(), 100);
        assert!(puzzles.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
