//! Chooses the session of a run and the location of the session store.

use std::path::{Path, PathBuf};

use qwen_dialects::Dialect;
use qwen_engine::log::{LogError, Store};
use qwen_events::{ErrorInfo, ErrorKind, SessionId};

use super::{Invocation, bad_flag};
use crate::claude_host::transcript;
use crate::cli::Run;

/// How a session starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStart {
    /// Empty, with a generated id. A worker adopts the id of its first request instead.
    New,
    /// Under a given id: with its stored history if there is one, else empty.
    Named,
    /// With its stored history, which must exist.
    Resumed {
        /// The message, prompt or checkpoint to continue from; none means the end.
        at: Option<String>,
    },
    /// With a copy of another session's history.
    Forked {
        from: SessionId,
        /// The message, prompt or checkpoint to continue from; none means the end.
        at: Option<String>,
    },
}

/// The session store: below `QWEN_HOME`, else `~/.qwen`.
pub fn store(invocation: &Invocation) -> Option<Store> {
    let home = invocation.var("QWEN_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(invocation.var("HOME")?).join(".qwen")))?;
    // A relative path must not change its meaning with a later working directory.
    Some(Store::new(&invocation.cwd.join(home)))
}

/// True if the session is recorded.
pub(super) fn record(run: &Run, setting: Option<bool>) -> bool {
    !run.no_session_persistence && run.chat_recording.or(setting).unwrap_or(true)
}

/// The maximum length of a folder name in Claude's SDKs. A longer name is cut and gets a distinguishing
/// suffix.
const FOLDER_NAME: usize = 200;

/// The directory of the session copies that Claude's SDKs read; none for other hosts.
pub(super) fn mirror(run: &Run, invocation: &Invocation, recording: Option<bool>) -> Option<PathBuf> {
    transcripts(invocation).filter(|_| record(run, recording))
}

/// The directory in which Claude's SDKs store the sessions of this working directory, if one of them started
/// us or the caller ran us under the name `claude`.
pub(super) fn transcripts(invocation: &Invocation) -> Option<PathBuf> {
    let by_sdk = invocation.var("CLAUDE_CODE_ENTRYPOINT").is_some_and(|caller| caller.starts_with("sdk-"));
    if !by_sdk && invocation.program != "claude" {
        return None;
    }
    let home = invocation.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(invocation.var("HOME")?).join(".claude")))?;
    Some(invocation.cwd.join(home).join("projects").join(folder(&invocation.cwd.to_string_lossy())))
}

/// The folder name for a directory: its path with a dash for each character that is neither a letter nor a
/// digit.
fn folder(path: &str) -> String {
    let mut name: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if name.len() > FOLDER_NAME {
        let hash = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        name.truncate(FOLDER_NAME);
        return format!("{name}-{hash:x}");
    }
    name
}

/// The session's id and how it starts.
pub(super) fn resolve(
    run: &Run,
    invocation: &Invocation,
    dialect: Dialect,
    store: Option<&Store>,
) -> Result<(SessionId, SessionStart), ErrorInfo> {
    let named = run.session_id.as_deref().map(|text| parse("--session-id", text)).transpose()?;
    let Some(from) = resumed_session(run, invocation, dialect, store)? else {
        for (given, flag) in [
            (run.fork_session, "--fork-session"),
            (run.resume_session_at.is_some(), "--at (--resume-session-at)"),
        ] {
            if given {
                return Err(bad_flag(format!(
                    "{flag} needs --resume ID or --continue: the session to continue"
                )));
            }
        }
        if let Some(id) = &named {
            refuse_used(id, invocation, store)?;
        }
        let bound = run.bind_session.as_deref().map(|text| parse("--bind-session", text)).transpose()?;
        return Ok(match named.or(bound) {
            Some(id) => (id, SessionStart::Named),
            None => (new_session_id(), SessionStart::New),
        });
    };
    let at = run.resume_session_at.clone();
    match named {
        Some(_) if !run.fork_session => Err(bad_flag(
            "--session-id names a new session, and --resume or --continue continue an old one; add --fork-session to \
             continue it under the new name"
                .to_owned(),
        )),
        None if !run.fork_session => Ok((from, SessionStart::Resumed { at })),
        named => {
            if let Some(id) = &named {
                refuse_used(id, invocation, store)?;
            }
            Ok((named.unwrap_or_else(new_session_id), SessionStart::Forked { from, at }))
        }
    }
}

/// Refuses to start a new session under the id of a stored one.
fn refuse_used(id: &SessionId, invocation: &Invocation, store: Option<&Store>) -> Result<(), ErrorInfo> {
    let is_mirrored =
        || transcripts(invocation).is_some_and(|folder| folder.join(format!("{id}.jsonl")).is_file());
    if store.is_some_and(|store| store.holds(id)) || is_mirrored() {
        let message = format!(
            "Session ID {id} is already in use. Continue that session with --resume {id}, or choose another id."
        );
        return Err(ErrorInfo::new(ErrorKind::Input, "session_in_use", message).with_param("session_id"));
    }
    Ok(())
}

/// The session that the run continues, after checking that it exists.
fn resumed_session(
    run: &Run,
    invocation: &Invocation,
    dialect: Dialect,
    store: Option<&Store>,
) -> Result<Option<SessionId>, ErrorInfo> {
    let no_place = || ErrorInfo::from(LogError::NotOnDisk);
    match (run.resume.as_deref(), run.continue_latest) {
        (None, false) => Ok(None),
        (Some(_), true) => {
            Err(bad_flag("--resume and --continue name two sessions; give one of them".to_owned()))
        }
        (Some(""), false) => Err(ErrorInfo::new(
            ErrorKind::Input,
            "no_session_id",
            "--resume needs the id of a session (see qwen sessions list); --continue takes the latest of this directory",
        )),
        (Some(text), false) => {
            let id = parse("--resume", text)?;
            if store.ok_or_else(no_place)?.holds(&id) {
                return Ok(Some(id));
            }
            // It may be a session that only the SDKs know: from another machine, or created by their own
            // functions.
            let brought = transcripts(invocation).and_then(|folder| transcript::find(&folder, &id));
            if brought.is_some() && record(run, None) {
                return Ok(Some(id));
            }
            if dialect != Dialect::Claude
                && let Some(id) = session_by_prefix(store.ok_or_else(no_place)?, &id)?
            {
                return Ok(Some(id));
            }
            // Claude's SDKs show this message to their users.
            let claude = || unknown(format!("No conversation found with session ID: {id}"));
            Err(if dialect == Dialect::Claude { claude() } else { LogError::Unknown(id).into() })
        }
        (None, true) => store.ok_or_else(no_place)?.newest(&invocation.cwd).map(Some).ok_or_else(|| {
            if dialect == Dialect::Claude {
                return unknown("No conversation found to continue".to_owned());
            }
            unknown(format!(
                "there is no session of {} to continue (see qwen sessions list)",
                invocation.cwd.display()
            ))
        }),
    }
}

/// The stored session with this id, or the only one whose id begins with it; none if there is none.
pub fn session_by_prefix(store: &Store, prefix: &SessionId) -> Result<Option<SessionId>, ErrorInfo> {
    if store.holds(prefix) {
        return Ok(Some(prefix.clone()));
    }
    // A store that cannot be listed has no session that could be meant.
    let sessions = store.list(None).unwrap_or_default();
    let ids = sessions.into_iter().map(|session| session.header.session_id);
    let mut matching: Vec<SessionId> = ids.filter(|id| id.as_str().starts_with(prefix.as_str())).collect();
    if matching.len() > 1 {
        let names: Vec<&str> = matching.iter().take(5).map(SessionId::as_str).collect();
        let message = format!("'{prefix}' is the beginning of several sessions: {}", names.join(", "));
        return Err(ErrorInfo::new(ErrorKind::Input, "ambiguous_session", message).with_param("session_id"));
    }
    Ok(matching.pop())
}

fn parse(flag: &str, text: &str) -> Result<SessionId, ErrorInfo> {
    SessionId::parse(text).map_err(|error| {
        ErrorInfo::new(ErrorKind::Input, "invalid_session_id", format!("{flag} '{text}': {error}"))
            .with_param("session_id")
    })
}

fn unknown(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "unknown_session", message).with_param("session_id")
}

fn new_session_id() -> SessionId {
    SessionId::from_random(fastrand::u128(..))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn run(flags: &str) -> Run {
        Cli::parse_from(std::iter::once("qwen").chain(flags.split(' '))).run
    }

    #[test]
    fn the_folder_of_a_directory_is_its_path_with_dashes_and_never_too_long() {
        assert_eq!(folder("/home/me/my_pröject"), "-home-me-my-pr-ject");
        let long = folder(&"/deep".repeat(100));
        assert!(long.len() < 250 && long.starts_with("-deep-deep") && long != folder(&"/deep".repeat(101)));
    }

    #[test]
    fn flags_that_contradict_each_other_are_named() {
        let invocation = Invocation::from_variables(&[("HOME", "/nowhere")]);
        let cases = [
            ("--resume a --continue", "--continue"),
            ("--fork-session", "--fork-session"),
            ("--resume-session-at m", "--resume-session-at"),
            ("--resume", "--resume"),
            ("--resume ../x", "../x"),
            ("--session-id ../x", "../x"),
            ("--resume a", "'a'"),
            ("--continue", "no session"),
        ];
        for (flags, named) in cases {
            let error = resolve(&run(flags), &invocation, Dialect::Qwen, store(&invocation).as_ref())
                .expect_err(flags);
            assert!(error.message.contains(named), "{flags}: {error}");
        }
    }

    #[test]
    fn a_session_is_kept_unless_a_flag_says_otherwise() {
        let cases = [
            ("-p x", true),
            ("-p x --chat-recording", true),
            ("-p x --chat-recording false", false),
            ("-p x --chat-recording=false", false),
            ("-p x --no-chat-recording", false),
            ("-p x --no-session-persistence", false),
        ];
        for (flags, kept) in cases {
            assert_eq!(record(&run(flags), None), kept, "{flags}");
        }
    }

    #[test]
    fn sessions_are_kept_below_qwen_home_or_the_home_directory() {
        let id = SessionId::parse("s").expect("an id");
        let cases = [
            (&[("HOME", "/h")][..], Some("/h/.qwen/sessions/s.jsonl")),
            (&[("HOME", "/h"), ("QWEN_HOME", "/q")], Some("/q/sessions/s.jsonl")),
            (&[("QWEN_HOME", "q")], Some("/q/sessions/s.jsonl")),
            (&[], None),
        ];
        for (vars, expected) in cases {
            let path = store(&Invocation::from_variables(vars)).map(|store| store.path(&id));
            assert_eq!(path.as_deref(), expected.map(Path::new), "{vars:?}");
        }
    }
}
