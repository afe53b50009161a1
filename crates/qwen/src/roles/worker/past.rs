//! What the host asks about what came before: going on with a turn, and putting files back.

use std::path::PathBuf;

use qwen_events::{ErrorInfo, ErrorKind};
use serde_json::{Value, json};

use super::serve::Worker;

impl Worker {
    pub(super) fn continue_last_turn(&mut self) -> Value {
        let interruption = match self.unfinished() {
            None => "none",
            Some(unfinished) if unfinished.model_calls == 0 => "interrupted_prompt",
            Some(_) => "interrupted_turn",
        };
        let accepted = interruption != "none";
        if accepted {
            self.queue_unfinished();
        }
        json!({"subtype": "continue_last_turn", "accepted": accepted, "interruption": interruption})
    }

    pub(super) fn rewind_files(&self, message_id: &str, dry_run: bool) -> Result<Value, ErrorInfo> {
        let session = self.idle_session().ok_or_else(|| {
            let message = "there is no session, or a turn runs in it; files are put back between turns";
            ErrorInfo::new(ErrorKind::Input, "no_idle_session", message)
        })?;
        let rewound = session.rewind(message_id, dry_run)?;
        let texts = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        };
        let changed = [texts(&rewound.restored), texts(&rewound.removed)].concat();
        Ok(json!({
            "subtype": "rewind_files",
            "canRewind": true,
            "filesChanged": changed,
            "skippedLinks": texts(&rewound.skipped),
        }))
    }
}
