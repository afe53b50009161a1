//! How turns ended that a previous hub left open, according to the logs of their sessions.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use qwen_dialects::Dialect;
use qwen_kernel::TurnEnds;
use qwen_kernel::config::qwen_home_of;
use qwen_kernel::front::Front;

/// The end of a turn that a previous hub left open, according to the session's log.
pub fn turn_ends(state: PathBuf, front: Arc<dyn Front>) -> TurnEnds {
    Box::new(move |tenant, session, turn| {
        let last_end = |dialect: Dialect| {
            let mut command = Command::new(env::current_exe().ok()?);
            command.args(["sessions", "replay", session.as_str(), "--end", "--dialect", dialect.name()]);
            command.args(["--output-format", front.format().name()]).stdin(Stdio::null());
            if !tenant.is_empty() {
                command.env("QWEN_HOME", qwen_home_of(&state, tenant));
            }
            String::from_utf8(command.output().ok()?.stdout).ok()
        };
        // Not every wire names the turn of its terminal record.
        let named = last_end(Dialect::Qwen)?;
        let name = serde_json::to_string(turn).ok()?;
        let is_meant = turn.is_empty() || named.contains(&format!("\"prompt_id\":{name}"));
        let text = if front.dialect() == Dialect::Qwen { named } else { last_end(front.dialect())? };
        (is_meant && !text.is_empty()).then(|| text.into_bytes())
    })
}
