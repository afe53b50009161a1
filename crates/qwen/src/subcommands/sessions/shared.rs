//! `qwen sessions --bus`: the sessions on a bus. Their logs are copied to a private directory, in which the commands
//! work as on the sessions of this machine.

use std::io::Write;
use std::path::Path;

use qwen_engine::log::Store;
use qwen_events::{ErrorInfo, ErrorKind, SessionId};
use qwen_fleet::BusSessions;
use qwen_kernel::config::BusConfig;
use tokio::task::LocalSet;

use super::{SubcommandError, parse, run_on};
use crate::cli::{BusFlags, DeleteArgs, ListArgs, SessionsAction};
use crate::roles::bus::{self, LogCopies, unreadable};
use crate::roles::run_to_completion;
use crate::settings::Invocation;

/// Runs the command and writes its output to `out`.
pub fn run(
    action: &SessionsAction,
    flags: &BusFlags,
    invocation: &Invocation,
    out: &mut impl Write,
) -> Result<(), SubcommandError> {
    let options = bus::options(flags, &BusConfig::default(), invocation)?
        .ok_or_else(|| ErrorInfo::new(ErrorKind::Usage, "no_bus", "no bus is named; use --bus URL"))?;
    let copies = LogCopies::create()?;
    let work = async {
        let (_, sessions) = bus::open(&options, bus::identity("qwen-sessions")).await?;
        carry_out(action, &sessions, copies.home()).await
    };
    match run_to_completion(LocalSet::new().run_until(work))?? {
        Next::Done => {}
        Next::List(args) => {
            let all = ListArgs { json: args.json, all: true, limit: args.limit, search: args.search.clone() };
            run_on(&Store::new(copies.home()), &SessionsAction::List(all), invocation, out)?;
        }
        Next::Run => run_on(&Store::new(copies.home()), action, invocation, out)?,
    }
    Ok(())
}

/// What remains to do with the copies.
enum Next<'a> {
    Done,
    List(&'a ListArgs),
    Run,
}

async fn carry_out<'a>(
    action: &'a SessionsAction,
    sessions: &BusSessions,
    home: &Path,
) -> Result<Next<'a>, ErrorInfo> {
    let unsupported = |message: &str| Err(ErrorInfo::new(ErrorKind::Usage, "bad_flag", message));
    match action {
        SessionsAction::List(args) => {
            for session in sessions.list().await.map_err(|error| unreadable(&error))? {
                copy(sessions, &session, home).await?;
            }
            Ok(Next::List(args))
        }
        SessionsAction::Replay { record_dir: Some(_), .. } => {
            unsupported("--record-dir reads files of this machine; leave out --bus")
        }
        SessionsAction::Show { id }
        | SessionsAction::Export { id, .. }
        | SessionsAction::Replay { id, .. } => {
            let session = find(sessions, id).await?;
            copy(sessions, &session, home).await?;
            Ok(Next::Run)
        }
        SessionsAction::Delete(args) => {
            delete(sessions, args).await?;
            Ok(Next::Done)
        }
        SessionsAction::Checkpoints { .. } | SessionsAction::Fork(_) | SessionsAction::Prune { .. } => {
            unsupported("on a bus there are `list`, `show`, `export`, `replay` and `delete`")
        }
    }
}

async fn copy(sessions: &BusSessions, session: &SessionId, home: &Path) -> Result<(), ErrorInfo> {
    sessions.save_log(session, &home.join("sessions")).await.map_err(|error| unreadable(&error))
}

/// Finds the session with that id, or the only one whose id starts with it.
async fn find(sessions: &BusSessions, text: &str) -> Result<SessionId, ErrorInfo> {
    let wanted = parse(text)?;
    let all = sessions.list().await.map_err(|error| unreadable(&error))?;
    if all.contains(&wanted) {
        return Ok(wanted);
    }
    let mut matching: Vec<SessionId> =
        all.into_iter().filter(|id| id.as_str().starts_with(wanted.as_str())).collect();
    match (matching.pop(), matching.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => {
            let message = format!(
                "There is no session '{wanted}' on the bus. `qwen sessions list --bus URL` lists them."
            );
            Err(ErrorInfo::new(ErrorKind::Input, "unknown_session", message).with_param("session_id"))
        }
        (Some(_), false) => {
            let message = format!("'{wanted}' is the beginning of several sessions. Write more of the id.");
            Err(ErrorInfo::new(ErrorKind::Input, "ambiguous_session", message).with_param("session_id"))
        }
    }
}

async fn delete(sessions: &BusSessions, args: &DeleteArgs) -> Result<(), ErrorInfo> {
    if args.ids.is_empty() {
        let message =
            "name the sessions; on a bus, those that are idle for long are deleted by `bus.log.retention`";
        return Err(ErrorInfo::new(ErrorKind::Usage, "bad_flag", message));
    }
    let mut doomed = Vec::new();
    for text in &args.ids {
        doomed.push(find(sessions, text).await?);
    }
    for session in doomed.iter().filter(|_| !args.dry_run) {
        match sessions.delete(session).await.map_err(|error| unreadable(&error))? {
            None => {}
            Some(owner) => {
                let message = format!(
                    "The session '{session}' cannot be deleted: {owner} is using it. Close it there, or stop that process, and try again."
                );
                return Err(
                    ErrorInfo::new(ErrorKind::Input, "session_in_use", message).with_param("session_id")
                );
            }
        }
    }
    Ok(())
}
