//! `awk`: a program that only prints is covered by a rule. If it also uses only its input, it runs without one.

use super::{Arguments, Refusal, Use};
use crate::shell::Word;
use crate::shell::options::Options;

const OPTIONS: Options = Options { letters: "", letters_with_value: "Fv", names: "", names_with_value: "" };

pub(super) fn examine(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    let read = arguments.read(1, &OPTIONS, true)?;
    let Some((first, rest)) = read.operands.split_first() else {
        return Err("awk has no program".to_owned());
    };
    let program = arguments.words.get(*first).and_then(Word::literal);
    if !arguments.is_named(*first) && !program.is_some_and(only_prints) {
        return Err("the program of awk may write or run something".to_owned());
    }
    let only_reads = program.is_some_and(|program| only_prints(program) && uses_only_its_input(program));
    Ok(Use { only_reads, paths: arguments.words_at(rest), ..Use::default() })
}

/// True if a program has no redirection, no pipe and no call that runs or reads something. `>` compares in a
/// pattern and inside of parentheses; behind `print` it would redirect.
fn only_prints(program: &str) -> bool {
    if program.contains(['@', '`']) || program.contains("system") || program.contains("getline") {
        return false;
    }
    let bytes = program.as_bytes();
    let (mut braces, mut parentheses, mut at) = (0_usize, 0_usize, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => match end_of(bytes, at, b'"') {
                Some(end) => at = end,
                None => return false,
            },
            b'#' => at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count(),
            b'/' => match begins_expression(&bytes[..at - 1]) {
                Some(true) => match end_of(bytes, at, b'/') {
                    Some(end) => at = end,
                    None => return false,
                },
                Some(false) => {}
                None => return false,
            },
            b'{' => braces += 1,
            b'}' => braces = braces.saturating_sub(1),
            b'(' => parentheses += 1,
            b')' => parentheses = parentheses.saturating_sub(1),
            b'>' if braces > 0 && parentheses == 0 => return false,
            b'|' if bytes.get(at) == Some(&b'|') => at += 1,
            b'|' => return false,
            _ => {}
        }
    }
    true
}

/// True if a program mentions none of the names by which it gets at the environment or at files that it is not
/// given.
fn uses_only_its_input(program: &str) -> bool {
    !["ARG", "ENVIRON", "FUNCTAB", "PROCINFO", "SYMTAB"].iter().any(|name| program.contains(name))
}

/// The index behind the closing delimiter of a string or a regular expression, which is one line.
fn end_of(bytes: &[u8], start: usize, delimiter: u8) -> Option<usize> {
    let mut at = start;
    loop {
        match *bytes.get(at)? {
            b'\n' => return None,
            b'\\' => at += 2,
            byte if byte == delimiter => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Whether a slash behind this text begins a regular expression, and does not divide; `None` if both are
/// possible.
fn begins_expression(before: &[u8]) -> Option<bool> {
    match before.trim_ascii_end() {
        [.., b'+', b'+'] | [.., b'-', b'-'] => None,
        [.., last] => {
            Some(!(last.is_ascii_alphanumeric() || matches!(last, b'_' | b')' | b']' | b'"' | b'$' | b'/')))
        }
        [] => Some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn a_program_only_prints_if_it_redirects_pipes_and_calls_nothing() {
        for program in [
            "{print $1}",
            "$3 > 10",
            "$3>10 {print $1, $2}",
            "/a|b/ {n++} END {print n}",
            "NR > 1 && ($2 > 5 || $3 < 2)",
            "{if ($1 > 2) print \"a > b | c\"; else print $2 / 3}",
            "BEGIN {FS=\"|\"} {s += $1} END {print s/NR}",
            "!/^#/",
            "$1 ~ /x>y/ {print} # > |",
        ] {
            assert!(only_prints(program), "{program}");
        }
        for program in [
            "{print > \"X\"}",
            "{print $1 >> \"X\"}",
            "{print | \"sh\"}",
            "{printf(\"%s\", $1) > \"X\"}",
            "BEGIN{system(\"x\")}",
            "BEGIN{\"x\" | getline}",
            "{print 1 /x/ > \"X\"}",
            "{x++ / 2 > \"X\" / 1}",
            "{print \"a\\\"\" > \"X\"}",
            "{print /a/ > \"X\"}",
            "{print \"a",
            "@load \"x\"",
            "{ print $1 # \"\n > \"X\" }",
        ] {
            assert!(!only_prints(program), "{program}");
        }
    }
}
