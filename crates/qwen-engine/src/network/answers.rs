//! Questions about hosts that no rule opens, and their answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use qwen_events::{Behavior, CallId, Confirmation, Json, ToolCall, Verdict};
use qwen_permissions::NetworkRequest;
use qwen_proxy::Destination;
use serde_json::json;

use super::{NetworkGate, lock};
use crate::{Cancel, Question, QuestionOrigin, Stop};

/// Most questions while programs run. A program that tries further hosts is refused.
const MAX_QUESTIONS: usize = 16;

/// A destination, and the method if it was asked about.
type Asked = (Destination, Option<String>);

/// The calls on whose behalf questions are asked, and the answers that hold while programs run.
#[derive(Default)]
pub(super) struct Answers {
    next: AtomicU64,
    calls: std::sync::Mutex<Vec<(u64, QuestionOrigin, Cancel)>>,
    given: std::sync::Mutex<HashMap<Asked, Result<(), String>>>,
    /// One question at a time. Connections to the same host wait for the same answer.
    turn: tokio::sync::Mutex<()>,
}

impl Answers {
    pub fn begin_call(&self, origin: &QuestionOrigin, cancel: &Cancel) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.calls).push((number, origin.clone(), cancel.clone()));
        number
    }

    pub fn end_call(&self, number: u64) {
        lock(&self.calls).retain(|(known, ..)| *known != number);
    }

    /// Answers that were given for a call end with it.
    pub fn forget(&self) {
        lock(&self.given).clear();
    }
}

impl NetworkGate {
    /// Asks whether a host may be reached. Fails with the reason if it may not.
    pub(super) async fn ask(
        &self,
        to: &Destination,
        method: Option<&str>,
        what: &str,
        reason: &Arc<str>,
    ) -> Result<(), String> {
        let key: Asked = (to.clone(), method.map(str::to_owned));
        if let Some(given) = lock(&self.answers.given).get(&key) {
            return given.clone();
        }
        let _turn = self.answers.turn.lock().await;
        // The question before may have been about the same host, or its answer a rule for it.
        if let Some(given) = lock(&self.answers.given).get(&key) {
            return given.clone();
        }
        let request = NetworkRequest { host: &to.host, port: to.port, method };
        match self.permissions.judge_network(&request).decision {
            decision if decision.verdict == Verdict::Allow => return Ok(()),
            decision if decision.verdict == Verdict::Deny => {
                return Err(format!("{what} was refused: {}", decision.reason));
            }
            _ => {}
        }
        let call = lock(&self.answers.calls).last().cloned();
        let remedy = || self.audience.describe_rules(&[format!("Network({})", to.host)]);
        let unanswerable =
            |why: &str| format!("{what} was refused: {reason} {why} Allow the host {}.", remedy());
        if self.permissions.denies_instead_of_asking() || !self.host.listens() {
            return Err(unanswerable("No one can answer."));
        }
        let Some((_, origin, cancel)) = call else {
            return Err(unanswerable("Questions are asked only while a call runs."));
        };
        let asked = lock(&self.answers.given).len();
        if asked >= MAX_QUESTIONS {
            return Err(unanswerable("Too many questions were asked for this call."));
        }
        let answer = self.put_question(origin, to, method, what, reason, &cancel).await;
        // A turn that ended has withdrawn the question.
        if !cancel.is_stopped() {
            lock(&self.answers.given).insert(key, answer.clone());
        }
        answer
    }

    async fn put_question(
        &self,
        origin: QuestionOrigin,
        to: &Destination,
        method: Option<&str>,
        what: &str,
        reason: &Arc<str>,
        cancel: &Cancel,
    ) -> Result<(), String> {
        let mut arguments = json!({"host": to.host, "port": to.port});
        if let (Some(method), Some(fields)) = (method, arguments.as_object_mut()) {
            fields.insert("method".to_owned(), method.into());
        }
        let number = self.answers.next.fetch_add(1, Ordering::Relaxed);
        let call = ToolCall::new(
            CallId::new(format!("network-{number}")),
            self.tool.into(),
            Json::trusted(arguments.to_string()),
        );
        let question = Question {
            origin,
            call: Arc::new(call),
            confirmation: Confirmation::Info {
                prompt: format!("A command requests a connection: {what}").into(),
                urls: vec![format!("tcp://{to}").into()],
            },
            reason: reason.clone(),
            blocked_path: None,
        };
        let answer = self.host.ask(question, cancel.token()).await;
        if answer.interrupt {
            cancel.stop(Stop::cancelled());
        }
        if answer.behavior != Behavior::Allow {
            let why = answer.message.map(|message| format!(": {message}")).unwrap_or_default();
            return Err(format!("{what} was refused by the user or host{why}."));
        }
        self.permissions
            .update_all(&answer.updated_permissions)
            .map_err(|error| format!("{what} was refused: the answer cannot be used: {}", error.message))
    }
}
