//! Tasks: runs that outlive their request (`io.modelcontextprotocol/tasks` of revision 2026-07-28).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use qwen_dialects::loom::rfc3339;
use qwen_events::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::message::{INVALID_PARAMS, ProtocolError};
use super::run::{AgentRun, RunUpdate};
use crate::sessions::now;
use crate::token::random_id;

/// How many tasks are remembered; the oldest that has ended goes first.
const REMEMBERED: usize = 1000;

/// How long a task can be read, in milliseconds.
const TIME_TO_LIVE: u64 = 24 * 3600 * 1000;

/// How often a client should ask, in milliseconds.
const POLL_INTERVAL: u64 = 1000;

/// The extension's name in capabilities.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A run that its client asks about.
struct Task {
    id: String,
    created: u64,
    updated: Cell<u64>,
    message: RefCell<String>,
    is_cancelled: Cell<bool>,
    result: RefCell<Option<Value>>,
    /// The open questions; answers arrive in `answers`.
    questions: RefCell<Value>,
    answers: RefCell<Vec<Value>>,
    /// Wakes the task for answers and cancellation.
    wake: Notify,
}

impl Task {
    /// The fields that every result about a task has.
    fn json(&self) -> Value {
        let time = |millis: u64| rfc3339(Timestamp(millis));
        let result = self.result.borrow();
        let questions = self.questions.borrow();
        let has_questions = questions.as_object().is_some_and(|questions| !questions.is_empty());
        let is_cancelled = result.as_ref().is_some_and(|result| {
            self.is_cancelled.get() && result["structuredContent"]["status"] == "cancelled"
        });
        let status = match (&*result, has_questions) {
            (Some(_), _) if is_cancelled => "cancelled",
            (Some(_), _) => "completed",
            (None, true) => "input_required",
            (None, false) => "working",
        };
        let mut json = json!({
            "resultType": "complete",
            "taskId": self.id, "status": status, "statusMessage": &*self.message.borrow(),
            "createdAt": time(self.created), "lastUpdatedAt": time(self.updated.get()),
            "ttlMs": TIME_TO_LIVE, "pollIntervalMs": POLL_INTERVAL,
        });
        match status {
            "completed" => json["result"] = result.clone().unwrap_or_default(),
            "input_required" => json["inputRequests"] = questions.clone(),
            _ => {}
        }
        json
    }

    fn touch(&self, message: &str) {
        self.updated.set(now());
        message.clone_into(&mut self.message.borrow_mut());
    }

    async fn drive(self: Rc<Self>, mut run: AgentRun) {
        loop {
            let open = run.open_questions().iter();
            let asked = open
                .map(|(id, params)| (id.clone(), json!({"method": "elicitation/create", "params": params})));
            *self.questions.borrow_mut() = Value::Object(asked.collect());
            tokio::select! {
                update = run.next() => match update {
                    RunUpdate::Progress(message) => self.touch(&message),
                    RunUpdate::Question(_) => self.touch("Waiting for permission"),
                    RunUpdate::End(result) => {
                        self.touch("Ended");
                        *self.result.borrow_mut() = Some(result);
                        return;
                    }
                },
                () = self.wake.notified() => {
                    if self.is_cancelled.get() {
                        run.stop();
                    }
                    for answers in self.answers.take() {
                        run.answer(&answers);
                    }
                }
            }
        }
    }
}

/// The tasks of a server.
#[derive(Default)]
pub struct Tasks {
    known: RefCell<VecDeque<Rc<Task>>>,
}

impl Tasks {
    /// Makes a task of a run and returns its description.
    pub fn create(&self, run: AgentRun) -> Result<Value, ProtocolError> {
        let random = random_id().map_err(|error| ProtocolError::new(-32603, error.to_string()))?;
        let task = Rc::new(Task {
            id: format!("task-{random:032x}"),
            created: now(),
            updated: Cell::new(now()),
            message: RefCell::new(format!("Session {}", run.session.id)),
            is_cancelled: Cell::new(false),
            result: RefCell::new(None),
            questions: RefCell::new(json!({})),
            answers: RefCell::default(),
            wake: Notify::new(),
        });
        let mut known = self.known.borrow_mut();
        known.push_back(task.clone());
        if known.len() > REMEMBERED
            && let Some(ended) = known.iter().position(|task| task.result.borrow().is_some())
        {
            known.remove(ended);
        }
        let mut created = task.json();
        created["resultType"] = "task".into();
        tokio::task::spawn_local(task.drive(run));
        Ok(created)
    }

    /// Serves `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub fn serve(&self, method: &str, params: &Value) -> Result<Value, ProtocolError> {
        let id = params["taskId"].as_str().unwrap_or_default();
        let known = self.known.borrow();
        let is_live =
            |task: &&Rc<Task>| task.result.borrow().is_none() || now() < task.created + TIME_TO_LIVE;
        let Some(task) = known.iter().find(|task| task.id == id).filter(is_live) else {
            return Err(ProtocolError::new(INVALID_PARAMS, format!("There is no task '{id}'.")));
        };
        match method {
            "tasks/get" => return Ok(task.json()),
            "tasks/cancel" => task.is_cancelled.set(true),
            _ => {
                let answers = &params["inputResponses"];
                if !answers.is_object() {
                    return Err(ProtocolError::new(INVALID_PARAMS, "`inputResponses` must be an object."));
                }
                task.answers.borrow_mut().push(answers.clone());
            }
        }
        task.wake.notify_one();
        Ok(json!({"resultType": "complete"}))
    }
}
