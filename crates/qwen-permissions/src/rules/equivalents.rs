//! Other commands that do the same, so that a deny or ask rule matches the action and not the program's name.

use crate::shell::options::is_listed;
use crate::shell::{Word, basename};

/// Subcommands of git that send commits elsewhere.
const SENDERS: &str = "http-push remote-ftp remote-ftps remote-http remote-https send-pack";

/// The commands that a rule about them must match too: `unlink x` removes a file as `rm x` does.
pub(crate) fn equivalents(words: &[Word]) -> Vec<Vec<Word>> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let first = arguments.first().and_then(Word::literal).unwrap_or("");
    let command = |start: &[&str], rest: &[Word]| {
        let start = start.iter().map(|word| Word::Literal((*word).to_owned()));
        start.chain(rest.iter().cloned()).collect::<Vec<Word>>()
    };
    let same = match program.literal().map(basename) {
        Some("unlink") => command(&["rm"], arguments),
        Some("shred") if arguments.iter().any(removes) => command(&["rm", "-f"], arguments),
        Some("find") if arguments.iter().any(|word| word.literal() == Some("-delete")) => {
            let is_place = |word: &Word| !word.known_prefix().starts_with(['-', '(', '!', ')']);
            let end = arguments.iter().position(|word| !is_place(word)).unwrap_or(arguments.len());
            let (places, expression) = arguments.split_at(end);
            // Without a test it removes whole trees; with one, the files that pass it.
            let is_test =
                |word: &Word| !matches!(word.literal(), Some("-delete" | "-depth" | "-xdev" | "-mount"));
            let options: &[&str] = if expression.iter().any(is_test) { &["rm"] } else { &["rm", "-r", "-f"] };
            command(options, places)
        }
        Some("killall" | "pkill" | "skill") => command(&["kill"], arguments),
        Some("sudoedit") => command(&["sudo", "-e"], arguments),
        Some("git") if is_listed(SENDERS, first) => command(&["git", "push"], &arguments[1..]),
        Some("git") if is_listed("lfs subtree", first) && is_push(arguments.get(1)) => {
            command(&["git", "push"], &arguments[2..])
        }
        Some("git") if first == "for-each-repo" => {
            let is_option = |word: &&Word| word.known_prefix().starts_with('-');
            let options = arguments[1..].iter().take_while(is_option).count();
            command(&["git"], &arguments[1 + options..])
        }
        _ => return Vec::new(),
    };
    vec![same]
}

fn is_push(word: Option<&Word>) -> bool {
    word.is_some_and(|word| word.literal() == Some("push"))
}

/// True for the options by which `shred` removes files.
fn removes(word: &Word) -> bool {
    let text = word.known_prefix();
    match text.strip_prefix("--") {
        Some(long) => long.starts_with("rem"),
        None => text.starts_with('-') && text.contains('u'),
    }
}
