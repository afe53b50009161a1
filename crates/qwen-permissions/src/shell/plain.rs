//! Command lines with which bash would do nothing but start a program: its name and words that mean
//! themselves.

use super::builtins::{COMMANDS_OF_BASH, is_keyword};

/// The words of a line that is only a call of a program. None when bash has anything else to do with it, or
/// may have: an expansion, an operator, an assignment, a separate command.
pub fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim_matches([' ', '\t']);
    while !rest.is_empty() {
        let (word, behind) = first_word(rest)?;
        if words.is_empty() && !is_program(&rest[..rest.len() - behind.len()]) {
            return None;
        }
        words.push(word);
        rest = behind.trim_start_matches([' ', '\t']);
    }
    let (name, arguments) = words.split_first()?;
    same_without_bash(name, arguments).then_some(words)
}

/// Returns the first word without its quotes, and the remaining text.
fn first_word(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text;
    loop {
        match rest.chars().next() {
            None | Some(' ' | '\t') => return Some((word, rest)),
            Some(quote @ ('\'' | '"')) => {
                let (quoted, behind) = rest[1..].split_once(quote)?;
                if quote == '"' && quoted.contains(['$', '`', '\\', '!']) {
                    return None;
                }
                word.push_str(quoted);
                rest = behind;
            }
            Some(letter) if letter.is_ascii_alphanumeric() || "_@%+=:,./-".contains(letter) => {
                word.push(letter);
                rest = &rest[1..];
            }
            Some(_) => return None,
        }
    }
}

/// True if a first word, as written, can be nothing but the name of a program.
fn is_program(raw: &str) -> bool {
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"_+./-".contains(&byte);
    raw.bytes().all(named) && !is_keyword(raw) && !matches!(raw, "in" | "time")
}

/// True if the program of this name does what bash does at this name.
fn same_without_bash(name: &str, arguments: &[String]) -> bool {
    match name {
        "true" | "false" => arguments.is_empty(),
        "echo" => {
            !arguments.first().is_some_and(|first| first.starts_with('-'))
                && !arguments.iter().any(|argument| argument.contains('\\'))
        }
        _ => !COMMANDS_OF_BASH.split(' ').any(|command| command == name),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn words_that_mean_themselves_are_told_apart() {
        for (line, words) in [
            ("true", vec!["true"]),
            ("  git\tlog --oneline -5  ", vec!["git", "log", "--oneline", "-5"]),
            ("./run.sh a=b 50% x:y,z", vec!["./run.sh", "a=b", "50%", "x:y,z"]),
            ("git commit -m 'it''s'\" so\" \"\"", vec!["git", "commit", "-m", "its so", ""]),
            ("rg '$( `\\ *\n' src", vec!["rg", "$( `\\ *\n", "src"]),
            ("echo Grüße", vec![]),
            ("echo 'Grüße'", vec!["echo", "Grüße"]),
        ] {
            let expected: Vec<_> = words.into_iter().map(str::to_owned).collect();
            assert_eq!(plain_words(line).unwrap_or_default(), expected, "{line}");
        }
    }

    #[test]
    fn a_line_that_needs_bash_is_left_to_bash() {
        for line in [
            "",
            " ",
            "a|b",
            "a;b",
            "a&",
            "a\nb",
            "a>b",
            "a<b",
            "a $b",
            "a `b`",
            "a \"$b\"",
            "a \"`b`\"",
            "a *",
            "a b?",
            "a [b]",
            "a {b,c}",
            "a ~",
            "a ~/b",
            "a=b c",
            "'a' b",
            "\"a\"",
            "a\\ b",
            "a #b",
            "a 'b",
            "a \"b",
            "!a",
            "a \"!b\"",
            "(a)",
            "[ a ]",
            "time a",
            "if a",
            "cd a",
            "exec a",
            "printf a",
            "echo -n a",
            "echo 'a\\n'",
            "true --help",
            ". a",
            "%1",
            ":",
            "a\r",
            "a\u{a0}b",
            "$'a'",
            "a^b",
        ] {
            assert_eq!(plain_words(line), None, "{line:?}");
        }
    }

    /// Asks the real bash what it does itself, so that a newer one is noticed.
    #[test]
    fn no_command_of_bash_is_missing() {
        let listed = Command::new("bash").args(["-c", "compgen -bk"]).output().unwrap();
        for name in String::from_utf8(listed.stdout).unwrap().lines() {
            assert!(
                plain_words(&format!("{name} -x")).is_none(),
                "{name} is bash's own, and was taken for a program"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn bash_reads_the_same_words(line in "x (a|b c|'|\"|[ab=%:,@+~*$`\\\\!#{}\\[\\]();&|<> \t\n'\"-]){0,12}") {
            // Bash takes no other name for a function's.
            let named = |words: &Vec<String>| words[0].bytes().all(|byte| byte.is_ascii_lowercase());
            if let Some(words) = plain_words(&line).filter(named) {
                // A function with the program's name prints the words as bash parsed them.
                let script = format!("{}() {{ printf '%s\\0' \"$@\"; }}\n{line}", words[0]);
                let told = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
                let expected: String = if words.len() == 1 {
                    "\0".to_owned()
                } else {
                    words[1..].iter().map(|word| format!("{word}\0")).collect()
                };
                proptest::prop_assert_eq!(String::from_utf8(told.stdout).unwrap(), expected, "{}", line);
            }
        }
    }
}
