//! Intents, recognised by keywords.

use crate::json::JsonWriter;

/// The user's intent, as far as a few keywords reveal it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    LookAround,
    Read { file: String },
    Search { word: String },
    Run { command: String },
    Edit { file: String, old: String, new: String },
}

/// Keywords that introduce an intent.
const VERBS: [(&str, Verb); 16] = [
    ("look around", Verb::Look),
    ("list files", Verb::Look),
    ("list the files", Verb::Look),
    ("ls", Verb::Look),
    ("read", Verb::Read),
    ("show", Verb::Show),
    ("open", Verb::Show),
    ("cat", Verb::Read),
    ("search", Verb::Search),
    ("grep", Verb::Search),
    ("find", Verb::Search),
    ("run", Verb::Run),
    ("execute", Verb::Run),
    ("edit", Verb::Edit),
    ("change", Verb::Edit),
    ("replace", Verb::Edit),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Look,
    Read,
    Show,
    Search,
    Run,
    Edit,
}

impl Intent {
    /// The first complete intent in `text`.
    pub fn read(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let mut found: Vec<(usize, usize, Verb)> = VERBS
            .iter()
            .flat_map(|(word, verb)| lower.match_indices(word).map(move |(at, _)| (at, word.len(), *verb)))
            .filter(|(at, len, _)| is_word(&lower, *at, *len))
            .collect();
        found.sort_unstable_by_key(|(at, len, _)| (*at, std::cmp::Reverse(*len)));
        found.into_iter().find_map(|(at, len, verb)| Self::with(verb, &text[at..], text[at + len..].trim()))
    }

    fn with(verb: Verb, from_verb: &str, rest: &str) -> Option<Self> {
        match verb {
            Verb::Look => Some(Self::LookAround),
            Verb::Read => {
                let file = first_argument(without_leading(rest, &["the", "file", "me"]))?;
                Some(Self::Read { file })
            }
            // These verbs have other meanings too, so a file name must follow.
            Verb::Show => Self::with(Verb::Read, from_verb, rest)
                .filter(|intent| matches!(intent, Self::Read { file } if file.contains(['.', '/']))),
            Verb::Search => {
                let word = first_argument(without_leading(rest, &["for", "the", "word"]))?;
                Some(Self::Search { word })
            }
            Verb::Run => {
                let command = rest.lines().next()?.trim_matches(['`', ' ']).to_owned();
                (!command.is_empty()).then_some(Self::Run { command })
            }
            Verb::Edit => edit(from_verb),
        }
    }

    /// The call that fulfils the intent with an available tool: its name and arguments.
    pub fn call(&self, offers: &dyn Fn(&str) -> bool) -> Option<(&'static str, String)> {
        let shell = |command: &str| {
            ("run_shell_command", arguments(&[("command", command), ("description", &self.describe())]))
        };
        let call = match self {
            Self::LookAround if offers("list_directory") => ("list_directory", arguments(&[("path", ".")])),
            Self::LookAround => shell("ls"),
            Self::Read { file } => ("read_file", arguments(&[("file_path", file)])),
            Self::Search { word } if offers("grep_search") => {
                ("grep_search", arguments(&[("pattern", word)]))
            }
            Self::Search { word } => shell(&format!("grep -rn -- {} .", quoted(word))),
            Self::Run { command } => shell(command),
            Self::Edit { file, old, new } => {
                ("edit", arguments(&[("file_path", file), ("old_string", old), ("new_string", new)]))
            }
        };
        offers(call.0).then_some(call)
    }

    /// A short description of the intent.
    pub fn describe(&self) -> String {
        match self {
            Self::LookAround => "Look around in the working directory".to_owned(),
            Self::Read { file } => format!("Read {file}"),
            Self::Search { word } => format!("Search for {word}"),
            Self::Run { command } => format!("Run {command}"),
            Self::Edit { file, .. } => format!("Edit {file}"),
        }
    }
}

fn is_word(text: &str, at: usize, len: usize) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    !text[..at].ends_with(part_of_word)
        && !text[at + len..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn without_leading<'a>(mut text: &'a str, words: &[&str]) -> &'a str {
    while let Some((first, rest)) = text.split_once(char::is_whitespace) {
        if !words.iter().any(|word| first.eq_ignore_ascii_case(word)) {
            break;
        }
        text = rest.trim_start();
    }
    text
}

/// The first word, or the quoted text at the start.
fn first_argument(text: &str) -> Option<String> {
    without_punctuation(argument_and_rest(text)?.0)
}

/// An argument without the surrounding punctuation.
fn without_punctuation(argument: &str) -> Option<String> {
    let argument = argument.trim_end_matches([',', ';', ':', '?', '!']);
    let argument = argument.strip_suffix('.').unwrap_or(argument);
    (!argument.is_empty()).then(|| argument.to_owned())
}

fn argument_and_rest(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let quote = text.chars().next()?;
    if matches!(quote, '"' | '\'' | '`')
        && let Some((inside, rest)) = text[1..].split_once(quote)
    {
        return Some((inside, rest));
    }
    Some(text.split_once(char::is_whitespace).unwrap_or((text, "")))
}

/// `edit FILE replacing A with B`, or `replace A with B in FILE`.
fn edit(text: &str) -> Option<Intent> {
    let (_, rest) = text.split_once(char::is_whitespace)?;
    if text.to_ascii_lowercase().starts_with("replace") {
        let (old, rest) = argument_and_rest(rest)?;
        let (new, rest) = argument_and_rest(after_word(rest, "with")?)?;
        let file = first_argument(after_word(rest, "in")?)?;
        return Some(Intent::Edit { file, old: old.to_owned(), new: new.to_owned() });
    }
    let (file, rest) = argument_and_rest(without_leading(rest, &["the", "file"]))?;
    let rest = after_word(rest, "replacing").or_else(|| after_word(rest, "by replacing"))?;
    let (old, rest) = argument_and_rest(rest)?;
    let (new, _) = argument_and_rest(after_word(rest, "with")?)?;
    Some(Intent::Edit { file: without_punctuation(file)?, old: old.to_owned(), new: new.to_owned() })
}

fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim_start().trim_start_matches(',').trim_start();
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

/// A word, quoted for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn arguments(fields: &[(&'static str, &str)]) -> String {
    let mut w = JsonWriter::default();
    w.object(|w| fields.iter().for_each(|(name, value)| w.key(name).string(value)));
    String::from_utf8(w.into_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intents_are_recognised_by_their_words() {
        let read = |file: &str| Some(Intent::Read { file: file.into() });
        let search = |word: &str| Some(Intent::Search { word: word.into() });
        let run = |command: &str| Some(Intent::Run { command: command.into() });
        let edit = |file: &str, old: &str, new: &str| {
            Some(Intent::Edit { file: file.into(), old: old.into(), new: new.into() })
        };
        for (text, intent) in [
            ("Please look around.", Some(Intent::LookAround)),
            ("list the files", Some(Intent::LookAround)),
            ("read README.md", read("README.md")),
            ("Read the file `src/my file.rs`, please", read("src/my file.rs")),
            ("could you read src/lib.rs?", read("src/lib.rs")),
            ("show me src/lib.rs", read("src/lib.rs")),
            ("show me the time", None),
            ("search for TODO", search("TODO")),
            ("grep \"two words\"", search("two words")),
            ("run echo hi && ls", run("echo hi && ls")),
            ("Run `cargo test`", run("cargo test")),
            ("edit a.txt replacing foo with bar", edit("a.txt", "foo", "bar")),
            ("Edit a.txt, replacing \"old text\" with 'new text'.", edit("a.txt", "old text", "new text")),
            ("replace one with two in notes.md", edit("notes.md", "one", "two")),
            ("edit a.txt", None),
            ("hello there", None),
            ("what is a breadth-first runner?", None),
            ("reading is fun", None),
            ("", None),
        ] {
            assert_eq!(Intent::read(text), intent, "{text}");
        }
    }

    #[test]
    fn only_tools_on_offer_are_called() {
        let with = |tools: &'static [&'static str]| move |name: &str| tools.contains(&name);
        let search = Intent::Search { word: "it's".into() };
        assert_eq!(
            search.call(&with(&["grep_search"])),
            Some(("grep_search", r#"{"pattern":"it's"}"#.into()))
        );
        assert_eq!(
            search.call(&with(&["run_shell_command"])),
            Some((
                "run_shell_command",
                r#"{"command":"grep -rn -- 'it'\\''s' .","description":"Search for it's"}"#.into()
            ))
        );
        assert_eq!(search.call(&with(&["read_file"])), None);
        assert_eq!(
            Intent::LookAround.call(&with(&["list_directory"])),
            Some(("list_directory", r#"{"path":"."}"#.into()))
        );
    }
}
