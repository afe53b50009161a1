//! Collects a one-shot prompt from a flag, the arguments, standard input, or several of them.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind};
use rustix::fs::FileType;

use crate::cli::Run;
use crate::io::input::StdinReader;
use crate::io::stdin_writer;
use crate::runtime::exit;

/// The most bytes that are read from standard input.
const MAX_STDIN: usize = 16 * 1024 * 1024;

/// If standard input has not ended after this time, a notice explains what the process is waiting for.
const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// Joins the prompt of the flags and the remaining arguments.
pub fn join_prompt_arguments(run: &Run) -> String {
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

/// The prompt; none if no source has any text.
pub async fn gather(run: &Run) -> Result<Option<String>, ErrorInfo> {
    let given = join_prompt_arguments(run);
    let piped =
        if run.diagnostics.no_stdin { String::new() } else { piped_text(!given.trim().is_empty()).await? };
    let prompt = match (piped.trim().is_empty(), given.trim().is_empty()) {
        (false, false) => format!("{piped}\n\n{given}"),
        (false, true) => piped,
        (true, _) => given,
    };
    Ok(Some(prompt).filter(|prompt| !prompt.trim().is_empty()))
}

/// The error for a run that needs a prompt and has none.
pub fn missing() -> ErrorInfo {
    ErrorInfo::new(
        ErrorKind::Input,
        "no_prompt",
        "there is no prompt: give one with -p \"…\", as an argument, or on standard input (see qwen --help)",
    )
}

/// Reads standard input if it is a pipe or a file.
async fn piped_text(have_prompt: bool) -> Result<String, ErrorInfo> {
    let kind = rustix::fs::fstat(rustix::stdio::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let readable = matches!(kind, Ok(FileType::Fifo | FileType::Socket | FileType::RegularFile));
    if !readable || io::stdin().is_terminal() {
        return Ok(String::new());
    }
    let unreadable = |error: io::Error| {
        ErrorInfo::new(ErrorKind::Input, "unreadable_stdin", format!("standard input: {error}"))
    };
    let input = StdinReader::stdin().map_err(unreadable)?;
    let notice = tokio::time::sleep(NOTICE_AFTER);
    // A program that starts us with an open pipe and never writes must not block us forever. For any other
    // producer, such as the previous command of a pipeline, we wait.
    if have_prompt && !input.readable_within(NOTICE_AFTER).await && stdin_writer::is_our_parent() {
        exit::report(
            "qwen: warning: standard input is an open pipe of the calling program and nothing came within 1 s; continuing \
             without it (--no-stdin does so at once)",
        );
        return Ok(String::new());
    }
    let reading = input.read_to_end(MAX_STDIN);
    tokio::pin!(reading);
    let bytes = tokio::select! {
        bytes = &mut reading => bytes,
        () = notice => {
            exit::report("qwen: reading standard input until it ends (--no-stdin runs without it)");
            reading.await
        }
    };
    let text = decoded(&bytes.map_err(unreadable)?);
    // Colours of a program's output mean nothing to the model, and other sequences could mislead it.
    Ok(qwen_events::without_escapes(&text).into_owned())
}

/// Decodes text as UTF-8. UTF-16 input is converted and other invalid bytes are replaced, both with a notice.
fn decoded(bytes: &[u8]) -> String {
    let utf16 = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        exit::report("qwen: notice: standard input was converted from UTF-16");
        let units = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => return utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return utf16(rest, u16::from_be_bytes),
        _ => {}
    }
    // Editors on some systems put a byte order mark in front of UTF-8.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    if let Cow::Owned(text) = &text {
        let replaced = text.matches(char::REPLACEMENT_CHARACTER).count();
        exit::report(&format!(
            "qwen: notice: standard input is not UTF-8; {replaced} invalid {} replaced by U+FFFD",
            if replaced == 1 { "sequence was" } else { "sequences were" }
        ));
    }
    text.into_owned()
}
