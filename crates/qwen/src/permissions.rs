//! Judges calls by the approval mode.

use std::sync::{Arc, Mutex, PoisonError};

use qwen_engine::Permissions;
use qwen_events::{Confirmation, Decision, PermissionUpdate, ToolCall, Verdict};

/// Judges calls by the approval mode alone.
pub struct ByMode {
    mode: Mutex<Arc<str>>,
}

impl ByMode {
    /// Judges by `mode`.
    pub fn new(mode: Arc<str>) -> Self {
        Self { mode: Mutex::new(mode) }
    }
}

impl Permissions for ByMode {
    fn judge(&self, call: &ToolCall) -> Decision {
        let reads = &*call.name == "read_file";
        let (verdict, reason) = match &*self.mode() {
            "yolo" => (Verdict::Allow, "the approval mode is yolo"),
            _ if reads => (Verdict::Allow, "it only reads"),
            "plan" => (Verdict::Deny, "plan mode only reads"),
            _ => (Verdict::Ask, "it may change something"),
        };
        Decision { verdict, reason: reason.into(), rule: None }
    }

    fn confirmation(&self, call: &ToolCall) -> Confirmation {
        Confirmation::Info {
            prompt: format!("{} {}", call.name, call.arguments.as_str()).into(),
            urls: Vec::new(),
        }
    }

    fn mode(&self) -> Arc<str> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn update(&self, update: &PermissionUpdate) {
        if let PermissionUpdate::SetMode(mode) = update {
            *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode.clone();
        }
    }
}
