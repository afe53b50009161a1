//! How turns ended whose worker or hub is gone, according to the logs of their sessions.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use qwen_dialects::{Dialect, Format};
use qwen_events::SessionId;
use qwen_kernel::TurnEnds;
use qwen_kernel::front::Front;
use qwen_kernel::process_manager::{self, SpawnSpec};

/// The log of a session.
struct Log<'a> {
    directory: &'a Path,
    /// The worker that wrote it.
    worker: &'a SpawnSpec,
    session: &'a SessionId,
}

/// Looks up the end of a turn in the session's log.
pub fn turn_ends(front: Arc<dyn Front>) -> TurnEnds {
    Box::new(move |logs, worker, session, turn| {
        let log = Log { directory: logs, worker, session };
        // Not every wire names the turn of its terminal record.
        let named = last_end(&*front, Dialect::Qwen, &log)?;
        let name = serde_json::to_string(turn).ok()?;
        let is_meant = turn.is_empty() || named.contains(&format!("\"prompt_id\":{name}"));
        let text = match front.dialect() {
            Dialect::Qwen if front.format() == Format::StreamChunkJson => with_role(&named)?,
            Dialect::Qwen => named,
            dialect => last_end(&*front, dialect, &log)?,
        };
        (is_meant && !text.is_empty()).then(|| text.into_bytes())
    })
}

/// Puts the chunk that begins a message before the last chunk of a turn. The router leaves it out if a message is
/// already open.
fn with_role(end: &str) -> Option<String> {
    let at = end.find("\"choices\":[")?;
    let choice = r#""choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}"#;
    Some(format!("{}{choice}\n{end}", &end[..at]))
}

/// The last terminal record of a session, in a dialect.
fn last_end(front: &dyn Front, dialect: Dialect, log: &Log<'_>) -> Option<String> {
    let mut command = Command::new(env::current_exe().ok()?);
    command.args(["sessions", "replay", log.session.as_str(), "--end", "--dialect", dialect.name()]);
    command.args(["--output-format", front.format().name()]).stdin(Stdio::null());
    command.env("QWEN_HOME", log.directory.parent()?);
    // A tenant can put links to files of others in place of its logs.
    let cwd = Some(PathBuf::from("/"));
    process_manager::confine(&mut command, &SpawnSpec { cwd, ..log.worker.clone() }).ok()?;
    String::from_utf8(command.output().ok()?.stdout).ok()
}
