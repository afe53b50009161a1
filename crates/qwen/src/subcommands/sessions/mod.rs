//! `qwen sessions`: the sessions stored on this machine.

mod fork;
mod html;
mod listing;
mod recording;
#[cfg(feature = "fleet")]
pub mod shared;
mod transcript;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::atif::Trajectory;
use qwen_dialects::{Dialect, Encoder, Format, StreamInfo, encoder};
use qwen_engine::log::{LogError, Replay, Store};
use qwen_events::{Body, ErrorInfo, ErrorKind, SessionId, Timestamp};

use self::recording::Recording;
use qwen_thoughts::ThoughtAgents;

use crate::cli::{DeleteArgs, ListArgs, SessionsAction};
use crate::runtime::clock::now;
use crate::runtime::exit;
use crate::session::retention::Retention;
use crate::settings::{self, Invocation};

/// The longest pause between two events of a replay.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Why a command ended early.
pub enum SubcommandError {
    /// The command failed for this reason.
    Error(ErrorInfo),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl From<LogError> for SubcommandError {
    fn from(error: LogError) -> Self {
        Self::Error(error.into())
    }
}

impl From<ErrorInfo> for SubcommandError {
    fn from(error: ErrorInfo) -> Self {
        Self::Error(error)
    }
}

impl From<io::Error> for SubcommandError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Runs the command and writes its output to `out`.
pub fn run(
    action: &SessionsAction,
    invocation: &Invocation,
    out: &mut impl Write,
) -> Result<(), SubcommandError> {
    let store = settings::store(invocation).ok_or(LogError::NotOnDisk)?;
    run_on(&store, action, invocation, out)
}

/// Runs the command on the sessions of a store.
fn run_on(
    store: &Store,
    action: &SessionsAction,
    invocation: &Invocation,
    out: &mut impl Write,
) -> Result<(), SubcommandError> {
    match action {
        SessionsAction::List(args) => list(store, args, invocation, out)?,
        SessionsAction::Show { id } => show(store, &find(store, id)?, out)?,
        SessionsAction::Export { id, html: Some(file), .. } => {
            html::export(store, &find(store, id)?, file, out)?;
        }
        SessionsAction::Export { id, dialect, .. } if dialect == "atif" => {
            trajectory(store, &find(store, id)?, out)?;
        }
        SessionsAction::Export { id, dialect, .. } => {
            stream(store, &find(store, id)?, Wire::parse(dialect, Format::StreamJson.name())?, None, out)?;
        }
        SessionsAction::Replay { id, record_dir: Some(directory), end, speed, both, .. } => {
            let recording = Recording::find(directory, parse(id)?)?;
            if *end { recording.end(out)? } else { recording.play(*speed, *both, out)? }
        }
        SessionsAction::Replay { id, dialect, end, speed, output_format, .. } => {
            let (id, wire) = (find(store, id)?, Wire::parse(dialect, output_format)?);
            if *end {
                last_end(store, &id, wire, out)?;
            } else {
                stream(store, &id, wire, Some(*speed), out)?;
            }
        }
        SessionsAction::Delete(args) => delete(store, args, out)?,
        SessionsAction::Checkpoints { id, json } => {
            let folded = store.fold(&find(store, id)?)?;
            if *json { listing::checkpoints_json(&folded, out)? } else { listing::checkpoints(&folded, out)? }
        }
        SessionsAction::Fork(args) => fork::run(store, args, invocation, out)?,
        SessionsAction::Prune { id, keep, dry_run } => prune(store, id.as_deref(), *keep, *dry_run, out)?,
    }
    out.flush()?;
    Ok(())
}

/// Lists the sessions of this directory, or of all directories.
fn list(
    store: &Store,
    args: &ListArgs,
    invocation: &Invocation,
    out: &mut impl Write,
) -> Result<(), SubcommandError> {
    let cwd = (!args.all).then_some(invocation.cwd.as_path());
    let mut sessions = store.list(cwd).map_err(|error| unlistable(&error))?;
    if let Some(word) = &args.search {
        let word = word.to_lowercase();
        sessions.retain(|session| {
            let header = &session.header;
            header.title.to_lowercase().contains(&word)
                || header.session_id.as_str().to_lowercase().contains(&word)
        });
    }
    let found = sessions.len();
    sessions.truncate(args.limit);
    if args.json {
        return Ok(listing::json(&sessions, out)?);
    }
    listing::table(&sessions, now(), out)?;
    if found > sessions.len() {
        exit::report(&format!("qwen: {} more sessions; --limit N shows more", found - sessions.len()));
    }
    if let Some(word) = args.search.as_ref().filter(|_| found == 0) {
        let place = if args.all { "" } else { " of this directory" };
        let more = if args.all { "" } else { "; --all searches those of other directories" };
        exit::report(&format!("qwen: no session{place} matches '{word}'{more}"));
        return Ok(());
    }
    if found == 0 && !args.all && store.list(None).is_ok_and(|all| !all.is_empty()) {
        exit::report("qwen: no session of this directory; --all lists those of other directories");
    }
    Ok(())
}

/// Deletes sessions by id, or those that exceed the limits on age, number and size.
fn delete(store: &Store, args: &DeleteArgs, out: &mut impl Write) -> Result<(), SubcommandError> {
    if args.ids.is_empty() && args.older_than.is_none() && args.keep.is_none() && args.max_size.is_none() {
        let message = "name the sessions, or select them with --older-than DAYS, --keep N or --max-size MIB";
        return Err(ErrorInfo::new(ErrorKind::Usage, "bad_flag", message).into());
    }
    let mut doomed: Vec<SessionId> = Vec::new();
    for id in &args.ids {
        doomed.push(find(store, id)?);
    }
    if args.ids.is_empty() {
        let retention = Retention { days: args.older_than, count: args.keep, mib: args.max_size };
        doomed = retention.expired(store.list(None).map_err(|error| unlistable(&error))?, now());
    }
    let many = args.ids.is_empty();
    for id in doomed {
        match if args.dry_run { Ok(()) } else { store.delete(&id) } {
            Ok(()) if args.dry_run => writeln!(out, "{id}  would be deleted")?,
            Ok(()) if many => writeln!(out, "{id}  deleted")?,
            Ok(()) => {}
            // A session in use by a process is skipped; the others are deleted.
            Err(error) if many => writeln!(out, "{id}  not changed: {error}")?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The session with that id, or the only one whose id starts with it.
fn find(store: &Store, text: &str) -> Result<SessionId, ErrorInfo> {
    let id = parse(text)?;
    // The store reports the error for an unknown id.
    Ok(settings::session_by_prefix(store, &id)?.unwrap_or(id))
}

fn show(store: &Store, id: &SessionId, out: &mut impl Write) -> Result<(), SubcommandError> {
    let reader = store.read(id)?;
    transcript::head(reader.header(), out)?;
    let mut replay = Replay::new(reader);
    while let Some(event) = replay.next_event()? {
        transcript::write_event(&event, out)?;
    }
    Ok(())
}

/// Prunes one session, or all that are not in use by a process.
fn prune(
    store: &Store,
    id: Option<&str>,
    keep: u32,
    dry_run: bool,
    out: &mut impl Write,
) -> Result<(), SubcommandError> {
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    if let Some(id) = id {
        let id = find(store, id)?;
        let pruned = store.prune(&id, keep, dry_run)?;
        return Ok(listing::pruned(&id, &pruned, dry_run, out)?);
    }
    for session in store.list(None).map_err(|error| unlistable(&error))? {
        let id = session.header.session_id;
        match store.prune(&id, keep, dry_run) {
            Ok(pruned) => listing::pruned(&id, &pruned, dry_run, out)?,
            // The other sessions are still pruned.
            Err(error) => writeln!(out, "{id}  not changed: {error}")?,
        }
    }
    Ok(())
}

/// The events of a session, and the encoder for them.
fn replayed(
    store: &Store,
    id: &SessionId,
    wire: Wire,
) -> Result<(Box<dyn Encoder>, Replay), SubcommandError> {
    let reader = store.read(id)?;
    let encoder = encoder(&stream_info(wire, id, reader.header().created));
    let mut replay = Replay::new(reader);
    if matches!(wire.dialect, Dialect::Loom | Dialect::LoomExport) {
        replay = replay.with_state(Arc::new(ThoughtAgents::default()));
    }
    Ok((encoder, replay))
}

/// Writes a session as a stream; with a `speed`, with the original pauses scaled by it.
fn stream(
    store: &Store,
    id: &SessionId,
    wire: Wire,
    speed: Option<f64>,
    out: &mut impl Write,
) -> Result<(), SubcommandError> {
    let (mut encoder, mut replay) = replayed(store, id, wire)?;
    let mut lines = Vec::new();
    let mut last: Option<Timestamp> = None;
    while let Some(event) = replay.next_event()? {
        if let Some(speed) = speed {
            let pause = event.at.0.saturating_sub(last.unwrap_or(event.at).0);
            last = Some(event.at);
            wait(pause, speed);
        }
        encoder.encode(&event, &mut lines);
        out.write_all(&lines)?;
        lines.clear();
        if speed.is_some() {
            out.flush()?;
        }
    }
    Ok(())
}

/// Writes a session as one document of the Agent Trajectory Interchange Format.
fn trajectory(store: &Store, id: &SessionId, out: &mut impl Write) -> Result<(), SubcommandError> {
    let mut replay = Replay::new(store.read(id)?);
    let mut trajectory = Trajectory::new(id.as_str(), env!("CARGO_PKG_VERSION"));
    while let Some(event) = replay.next_event()? {
        trajectory.add(&event);
    }
    let Some(document) = trajectory.finish() else {
        let message = format!("the session '{id}' has no turn to export");
        return Err(ErrorInfo::new(ErrorKind::Input, "empty_session", message).into());
    };
    writeln!(out, "{document}")?;
    Ok(())
}

/// Writes the terminal record of the session's last turn; nothing while that turn has not ended.
fn last_end(store: &Store, id: &SessionId, wire: Wire, out: &mut impl Write) -> Result<(), SubcommandError> {
    let (mut encoder, mut replay) = replayed(store, id, wire)?;
    let (mut lines, mut end) = (Vec::new(), Vec::new());
    while let Some(event) = replay.next_event()? {
        lines.clear();
        encoder.encode(&event, &mut lines);
        if event.scope.parent.is_none() {
            if let Body::TurnStart(_) = &event.body {
                end.clear();
            } else if let Body::TurnEnd(_) = &event.body {
                // Notices may precede the terminal record in the same piece.
                let record = lines.strip_suffix(b"\n").unwrap_or(&lines).rsplit(|byte| *byte == b'\n').next();
                end = record.map(|record| [record, b"\n"].concat()).unwrap_or_default();
            }
        }
    }
    out.write_all(&end)?;
    Ok(())
}

/// What a stream is written in.
#[derive(Clone, Copy)]
struct Wire {
    dialect: Dialect,
    format: Format,
}

impl Wire {
    fn parse(dialect: &str, format: &str) -> Result<Self, ErrorInfo> {
        let refuse = |message: String| ErrorInfo::new(ErrorKind::Usage, "bad_flag", message);
        let format = match format {
            "stream-chunk-json" => Format::StreamChunkJson,
            _ => Format::StreamJson,
        };
        let dialect = Dialect::parse(dialect).ok_or_else(|| {
            let names = Dialect::ALL.map(Dialect::name).join(", ");
            refuse(format!("--dialect '{dialect}': the dialects are {names}"))
        })?;
        Ok(Self { dialect, format })
    }
}

fn stream_info(wire: Wire, id: &SessionId, created: Timestamp) -> StreamInfo {
    StreamInfo {
        input_format: "text",
        model: "none".into(),
        version: env!("CARGO_PKG_VERSION"),
        replay_user_messages: true,
        // The same session always produces the same stream.
        seed: created.0,
        ..StreamInfo::new(wire.dialect, wire.format, id.clone())
    }
}

fn wait(milliseconds: u64, speed: f64) {
    #[expect(clippy::cast_precision_loss, reason = "pauses are short")]
    let seconds = milliseconds as f64 / 1000.0 / speed;
    let pause = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(LONGEST_PAUSE);
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
}

fn parse(text: &str) -> Result<SessionId, ErrorInfo> {
    SessionId::parse(text).map_err(|error| {
        ErrorInfo::new(ErrorKind::Input, "invalid_session_id", format!("'{text}': {error}"))
            .with_param("session_id")
    })
}

fn unlistable(error: &io::Error) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "unusable_session", format!("the sessions cannot be listed: {error}"))
}
