//! Regular expressions of the kind that JSON Schema means (ECMA-262), compiled with an engine whose time is
//! linear.

use regex::{Regex, RegexBuilder};

/// The most memory that one compiled expression may take.
const MAX_SIZE: usize = 1 << 20;

/// Compiles `pattern`. Look-around and back-references, which need backtracking, are refused.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(pattern)).size_limit(MAX_SIZE).build().map_err(|error| match error {
        regex::Error::Syntax(_) if has_lookaround(pattern) => {
            format!("the pattern {pattern:?} uses look-around, which is not supported")
        }
        regex::Error::CompiledTooBig(_) => format!("the pattern {pattern:?} is too large"),
        _ => format!("the pattern {pattern:?} cannot be compiled"),
    })
}

fn has_lookaround(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern.contains(group))
}

/// In ECMA-262 `\d` and `\w` are ASCII, and `\s` includes the byte order mark; control characters are written
/// `\cA`.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
                Some('w') => out.push_str(if in_class { "A-Za-z0-9_" } else { "[A-Za-z0-9_]" }),
                Some('D') => out.push_str("[^0-9]"),
                Some('W') => out.push_str("[^A-Za-z0-9_]"),
                Some('s') => out.push_str(if in_class { r"\s\x{feff}" } else { r"[\s\x{feff}]" }),
                Some('S') => out.push_str(r"[^\s\x{feff}]"),
                Some('c') => {
                    let letter = chars.next().unwrap_or('@');
                    out.push_str(&format!(r"\x{:02x}", u32::from(letter.to_ascii_uppercase()) & 0x1f));
                }
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            // A bracket inside a class is an ordinary character in ECMA-262.
            '[' if in_class => out.push_str(r"\["),
            '&' | '~' if in_class => out.extend(['\\', c]),
            '[' => {
                in_class = true;
                out.push(c);
            }
            ']' => {
                in_class = false;
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_ecma_262_says() {
        for (pattern, text, fits) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "১২", false),
            (r"^\w+$", "é", false),
            (r"^[\d.]+$", "1.2", true),
            (r"^\W$", "é", true),
            (r"^\s$", "\u{feff}", true),
            (r"^\cC$", "\u{3}", true),
            (r"^[[]$", "[", true),
            (r"^a$", "a\n", false),
            (r"\/", "a/b", true),
            (r"^\p{L}+$", "né", true),
        ] {
            assert_eq!(compile(pattern).map(|regex| regex.is_match(text)), Ok(fits), "{pattern} {text:?}");
        }
    }

    #[test]
    fn look_around_is_named_as_the_reason() {
        assert!(compile("^(?!x)").unwrap_err().contains("look-around"));
    }
}
