//! One client: what it declared, what it is asked, and which of its requests run.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::message::notification;

/// Sends the messages that belong to one request.
pub type Outbox = mpsc::Sender<Value>;

/// A connection of a client: standard input and output, or a session of the older HTTP transport.
#[derive(Debug, Default)]
pub struct Peer {
    /// What the client declared in its handshake; none before it.
    capabilities: RefCell<Option<Value>>,
    questions: RefCell<HashMap<String, oneshot::Sender<Option<Value>>>>,
    asked: Cell<u64>,
    running: RefCell<HashMap<String, watch::Sender<bool>>>,
}

/// Removes a request from those that run when it is dropped.
pub struct RunningRequest {
    peer: Rc<Peer>,
    id: String,
    /// Becomes true when the client cancels the request.
    pub cancelled: watch::Receiver<bool>,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.peer.running.borrow_mut().remove(&self.id);
    }
}

impl Peer {
    /// Records what the client declares in its handshake.
    pub fn initialize(&self, capabilities: Value) {
        *self.capabilities.borrow_mut() = Some(capabilities);
    }

    /// What the client declared in its handshake; none before it.
    pub fn capabilities(&self) -> Option<Value> {
        self.capabilities.borrow().clone()
    }

    /// Registers a request that the client can cancel. None if one with this id runs already.
    pub fn begin(self: &Rc<Self>, id: &Value) -> Option<RunningRequest> {
        let id = id.to_string();
        let mut running = self.running.borrow_mut();
        if running.contains_key(&id) {
            return None;
        }
        let (cancel, cancelled) = watch::channel(false);
        running.insert(id.clone(), cancel);
        Some(RunningRequest { peer: self.clone(), id, cancelled })
    }

    /// Cancels a request of the client, if it runs.
    pub fn cancel(&self, id: &Value) {
        if let Some(cancel) = self.running.borrow().get(&id.to_string()) {
            cancel.send_replace(true);
        }
    }

    /// Cancels all requests, because the client is gone.
    pub fn cancel_all(&self) {
        for cancel in self.running.borrow().values() {
            cancel.send_replace(true);
        }
    }

    /// Sends a request to the client. Returns its id and its answer: none if the client cannot answer.
    pub async fn ask(
        &self,
        out: &Outbox,
        method: &str,
        params: Value,
    ) -> (String, oneshot::Receiver<Option<Value>>) {
        let number = self.asked.get() + 1;
        self.asked.set(number);
        let id = format!("qwen-{number}");
        let (sender, answer) = oneshot::channel();
        self.questions.borrow_mut().insert(id.clone(), sender);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if out.send(request).await.is_err() {
            self.questions.borrow_mut().remove(&id);
        }
        (id, answer)
    }

    /// Hands on the client's answer to a request of the server. An unknown one is ignored.
    pub fn answer(&self, id: &Value, result: Option<Value>) {
        let question = id.as_str().and_then(|id| self.questions.borrow_mut().remove(id));
        if let Some(question) = question {
            // The turn may have ended.
            let _ = question.send(result);
        }
    }

    /// Takes back a request that needs no answer any more.
    pub async fn withdraw(&self, out: &Outbox, id: &str) {
        if self.questions.borrow_mut().remove(id).is_some() {
            let params = json!({"requestId": id, "reason": "The permission request was decided elsewhere."});
            // A client that is gone needs no notice.
            let _ = out.send(notification("notifications/cancelled", &params)).await;
        }
    }
}
