//! Where a one-shot prompt comes from: a flag, the arguments, standard input, or several of them.

use std::io::{self, IsTerminal};
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind};
use rustix::fs::FileType;

use crate::cli::Run;
use crate::io::input::Input;

/// The most that is taken from standard input.
const MAX_STDIN: usize = 16 * 1024 * 1024;

/// How long we wait for the first byte from a pipe when there is a prompt already. A program that starts us with an
/// open pipe and never writes must not make us hang; a slow producer in a pipeline must not be cut off.
const GRACE: Duration = Duration::from_secs(1);

/// What the command line says.
pub fn given(run: &Run) -> String {
    let mut given = run.prompt.clone().or_else(|| run.prompt_interactive.clone()).unwrap_or_default();
    let words = run.words.join(" ");
    if !words.is_empty() {
        if !given.is_empty() {
            given.push(' ');
        }
        given.push_str(&words);
    }
    given
}

/// The prompt, if there is one.
pub async fn gather(run: &Run) -> Result<Option<String>, ErrorInfo> {
    let given = given(run);
    let piped = piped_text(!given.trim().is_empty()).await?;
    let prompt = match (piped.trim().is_empty(), given.trim().is_empty()) {
        (false, false) => format!("{piped}\n\n{given}"),
        (false, true) => piped,
        (true, _) => given,
    };
    Ok(Some(prompt).filter(|prompt| !prompt.trim().is_empty()))
}

/// What is wrong when there must be a prompt and is none.
pub fn missing() -> ErrorInfo {
    ErrorInfo::new(
        ErrorKind::Input,
        "no_prompt",
        "there is no prompt: give one with -p \"…\", as an argument, or on standard input (see qwen --help)",
    )
}

/// What standard input holds, when it is a pipe or a file.
async fn piped_text(have_prompt: bool) -> Result<String, ErrorInfo> {
    let kind = rustix::fs::fstat(rustix::stdio::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let readable = matches!(kind, Ok(FileType::Fifo | FileType::Socket | FileType::RegularFile));
    if !readable || io::stdin().is_terminal() {
        return Ok(String::new());
    }
    let unreadable = |error: io::Error| {
        ErrorInfo::new(ErrorKind::Input, "unreadable_stdin", format!("standard input: {error}"))
    };
    let input = Input::stdin().map_err(unreadable)?;
    if have_prompt && !input.readable_within(GRACE).await {
        return Ok(String::new());
    }
    let bytes = input.read_to_end(MAX_STDIN).await.map_err(unreadable)?;
    // What editors of some systems put in front of a text is no part of it.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(&bytes);
    String::from_utf8(text.to_vec()).map_err(|_| {
        ErrorInfo::new(ErrorKind::Input, "invalid_utf8", "standard input is not UTF-8 text; a prompt must be")
    })
}
