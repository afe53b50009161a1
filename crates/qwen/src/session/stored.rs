//! Opens stored sessions: resumed, forked or new.

use std::sync::Arc;

use qwen_dialects::loom::rfc3339;
use qwen_engine::log::{Folded, LogError, LogHeader, Parent, Recorder, Store, Unfinished};
use qwen_engine::{Session, compaction};
use qwen_events::{ErrorInfo, ErrorKind, Message, SessionId, Timestamp};
use qwen_thoughts::ThoughtAgents;

use crate::claude_host::session_mirror;
use crate::claude_host::transcript;
use crate::runtime::{clock, exit};
use crate::session::{ProcessContext, setup};
use crate::settings::{Config, SessionStart};

/// The stored state of a session before it starts. While this value lives, no other process can open the
/// session.
pub struct StoredSession {
    recorder: Option<Recorder>,
    folded: Option<Folded>,
    /// The conversation to continue with instead of the one in the log.
    back: Option<Folded>,
    /// The same, if the conversation was continued elsewhere in the meantime.
    elsewhere: Option<Vec<Message>>,
}

/// Claims the session that the command line names. None if it names none, and a new session starts.
pub fn claim(config: &Config) -> Result<Option<StoredSession>, ErrorInfo> {
    match config.session.start {
        SessionStart::New | SessionStart::Named => Ok(None),
        SessionStart::Resumed { .. } | SessionStart::Forked { .. } => {
            load_stored(config, &config.session.id).map(Some)
        }
    }
}

/// Opens the session `id`: from `claimed`, else from the store, else empty.
pub fn open(
    process: &ProcessContext,
    id: &SessionId,
    claimed: Option<StoredSession>,
) -> Result<Session, ErrorInfo> {
    let config = &*process.config;
    let setup = setup::session(process, id.clone())?;
    let StoredSession { recorder, folded, back, elsewhere } =
        claimed.map_or_else(|| load_stored(config, id), Ok)?;
    let mut session = match folded {
        Some(folded) => {
            report_damage(id, folded.damaged);
            Session::resume(setup, folded)
        }
        None => Session::new(setup),
    };
    if let Some(recorder) = recorder {
        session = session.with_log(recorder);
    }
    if let Some(back) = back {
        session.return_to(back);
    }
    if let Some(messages) = elsewhere {
        session.replace_history(messages);
    }
    Ok(session)
}

/// Warns that part of the stored session is lost.
fn report_damage(id: &SessionId, lines: u64) {
    if lines > 0 {
        let lines = if lines == 1 { "a line".to_owned() } else { format!("{lines} lines") };
        exit::report(&format!(
            "qwen: {lines} of the log of the session '{id}' cannot be read, and the session continues without"
        ));
    }
}

/// Copies the session `from` under the name `id`, as far as `from` is stored.
pub fn copy(config: &Config, from: &SessionId, id: &SessionId) -> Result<(), ErrorInfo> {
    let store = config.session.store.as_ref().filter(|_| config.session.record).ok_or(LogError::NotOnDisk)?;
    let parent = Parent { session_id: from.clone(), point: None };
    Ok(store.fork_edited(from, None, header(config, id, Some(parent)), &[], &ThoughtAgents::default())?)
}

/// True if the store has a log of the session `id`.
pub fn is_stored(config: &Config, id: &SessionId) -> bool {
    config.session.store.as_ref().is_some_and(|store| store.holds(id))
}

fn load_stored(config: &Config, id: &SessionId) -> Result<StoredSession, ErrorInfo> {
    let own = *id == config.session.id;
    if own {
        check_dropped_turn(config)?;
    }
    let Some(store) = &config.session.store else { return Ok(StoredSession::new_session(config, id)) };
    let imported = own && import_claude_session(config, store, id)?;
    Ok(match &config.session.start {
        SessionStart::Forked { from, at } if own && !imported => {
            let parent = Parent { session_id: from.clone(), point: at.as_deref().map(Arc::from) };
            let at = at.as_ref().map(|at| session_mirror::point(config, from, at));
            let (recorder, folded) = store.fork(from, at.as_deref(), header(config, id, Some(parent)))?;
            StoredSession {
                recorder: config.session.record.then_some(recorder),
                folded: Some(folded),
                back: None,
                elsewhere: None,
            }
        }
        start if store.holds(id) => {
            let back = match start {
                SessionStart::Resumed { at: Some(at) } if own && !imported => {
                    Some(store.fold_until(id, &session_mirror::point(config, id, at))?)
                }
                _ => None,
            };
            let (recorder, folded) = if config.session.record {
                let (recorder, folded) = store.resume(id)?;
                (Some(recorder), folded)
            } else {
                (None, store.fold(id)?)
            };
            let elsewhere = match start {
                SessionStart::Resumed { at: None } if own && !imported => {
                    newer_transcript(config, id, folded.last_activity)
                }
                _ => None,
            };
            StoredSession { recorder, folded: Some(folded), back, elsewhere }
        }
        _ => StoredSession::new_session(config, id),
    })
}

/// Creates the log of a session that only Claude's SDKs have stored, if the run continues that session.
/// Returns true if it created one.
fn import_claude_session(config: &Config, store: &Store, id: &SessionId) -> Result<bool, ErrorInfo> {
    let (from, at) = match &config.session.start {
        SessionStart::New | SessionStart::Named => return Ok(false),
        SessionStart::Resumed { at } => (id, at),
        SessionStart::Forked { from, at } => (from, at),
    };
    if store.holds(from) || store.holds(id) {
        return Ok(false);
    }
    let Some(path) = config.claude.transcripts.as_ref().and_then(|folder| transcript::find(folder, from))
    else {
        return Ok(false);
    };
    let unusable = |why: String| {
        let message = format!("the session {from} cannot be taken over from {}: {why}", path.display());
        ErrorInfo::new(ErrorKind::Input, "unusable_transcript", message).with_param("session_id")
    };
    let text = std::fs::read_to_string(&path).map_err(|error| unusable(error.to_string()))?;
    let messages = transcript::read(&text, at.as_deref()).ok_or_else(|| match at {
        Some(at) => unusable(format!("there is no message '{at}' in it")),
        None => unusable("it contains no messages".to_owned()),
    })?;
    let parent =
        (from != id).then(|| Parent { session_id: from.clone(), point: at.as_deref().map(Arc::from) });
    store.import(header(config, id, parent), messages)?;
    Ok(true)
}

/// The conversation as Claude's SDKs have stored it, if it has entries newer than `last`. They come from
/// another machine, whose store the SDKs copied here.
fn newer_transcript(config: &Config, id: &SessionId, last: Timestamp) -> Option<Vec<Message>> {
    let path = transcript::find(config.claude.transcripts.as_ref()?, id)?;
    let text = std::fs::read_to_string(path).ok()?;
    let since = transcript::last_message_time(&text).is_some_and(|at| at > rfc3339(last));
    since.then(|| transcript::read(&text, None))?
}

/// Refuses to continue from an earlier point if that would drop more than the turn that the caller named.
fn check_dropped_turn(config: &Config) -> Result<(), ErrorInfo> {
    let Some(prompt) = config.claude.resume_drops_turn.as_deref() else { return Ok(()) };
    let checked = match &config.session.start {
        _ if prompt.trim().is_empty() => Err("it names no prompt".to_owned()),
        SessionStart::Resumed { at: Some(at) } => {
            session_mirror::drops_only(config, &config.session.id, at, prompt)
        }
        SessionStart::Forked { from, at: Some(at) } => session_mirror::drops_only(config, from, at, prompt),
        _ => Err("it goes with --resume-session-at".to_owned()),
    };
    checked.map_err(|why| {
        let message = format!("Resume rejected by --resume-drops-turn: {why}");
        ErrorInfo::new(ErrorKind::Input, "resume_rejected", message)
    })
}

impl StoredSession {
    /// The turn that was left unfinished.
    pub fn unfinished(&self) -> Option<&Unfinished> {
        self.folded.as_ref().and_then(|folded| folded.unfinished.as_ref())
    }

    /// The approximate number of tokens in its conversation.
    pub fn tokens(&self) -> u64 {
        self.back.as_ref().or(self.folded.as_ref()).map_or(0, |folded| compaction::estimate(&folded.messages))
    }

    /// The state of a new session.
    fn new_session(config: &Config, id: &SessionId) -> Self {
        let recorder = Recorder::begin(config.session.store.clone(), header(config, id, None));
        Self {
            recorder: config.session.record.then_some(recorder),
            folded: None,
            back: None,
            elsewhere: None,
        }
    }
}

fn header(config: &Config, id: &SessionId, parent: Option<Parent>) -> LogHeader {
    LogHeader {
        session_id: id.clone(),
        cwd: config.workspace.cwd.to_string_lossy().into(),
        created: clock::now(),
        version: env!("CARGO_PKG_VERSION").into(),
        parent,
        title: Arc::default(),
    }
}
