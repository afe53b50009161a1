//! Fractions, because 24 must come out exactly.

use std::fmt;

/// A fraction in lowest terms with a positive denominator. The game's numbers stay small; what does not fit
/// is not a number of the game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Rational {
    numerator: i64,
    denominator: i64,
}

impl Rational {
    pub fn from_integer(number: i64) -> Self {
        Self { numerator: number, denominator: 1 }
    }

    fn new(numerator: i64, denominator: i64) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        let divisor = gcd(numerator.unsigned_abs(), denominator.unsigned_abs());
        let divisor = i64::try_from(divisor).ok()?.checked_mul(denominator.signum())?;
        Some(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// Reads `7`, `-7` or `8/3`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once('/') {
            None => Some(Self::from_integer(text.parse().ok()?)),
            Some((numerator, denominator)) => Self::new(numerator.parse().ok()?, denominator.parse().ok()?),
        }
    }

    /// What `self sign other` comes to.
    pub fn compute(self, sign: char, other: Self) -> Option<Self> {
        let (a, b, c, d) = (self.numerator, self.denominator, other.numerator, other.denominator);
        match sign {
            '+' => Self::new(a.checked_mul(d)?.checked_add(c.checked_mul(b)?)?, b.checked_mul(d)?),
            '-' => Self::new(a.checked_mul(d)?.checked_sub(c.checked_mul(b)?)?, b.checked_mul(d)?),
            '*' => Self::new(a.checked_mul(c)?, b.checked_mul(d)?),
            '/' => Self::new(a.checked_mul(d)?, b.checked_mul(c)?),
            _ => None,
        }
    }
}

impl fmt::Display for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.denominator == 1 {
            write!(f, "{}", self.numerator)
        } else {
            write!(f, "{}/{}", self.numerator, self.denominator)
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact_and_in_lowest_terms() {
        let r = |text| Rational::parse(text).unwrap();
        let computed =
            ["8 / 3 = 8/3", "3 - 8/3 = 1/3", "8 / 1/3 = 24", "1 / -2 = -1/2", "0 * 5/7 = 0", "1/2 + 1/2 = 1"];
        for case in computed {
            let [a, sign, b, _, expected] = case.split(' ').collect::<Vec<_>>()[..] else { panic!("{case}") };
            let result = r(a).compute(sign.parse().unwrap(), r(b)).unwrap();
            assert_eq!(result.to_string(), expected, "{case}");
        }
        assert_eq!(r("1").compute('/', r("0")), None);
        assert_eq!(r("9223372036854775807").compute('*', r("2")), None);
        assert_eq!(Rational::parse("1/0"), None);
        assert_eq!(Rational::parse("x"), None);
    }
}
