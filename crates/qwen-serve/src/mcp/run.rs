//! One run of the agent for a client: its turn as progress, questions and a result.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::tool::{self, RunArguments, RunTranscript};
use crate::respond::Refusal;
use crate::sessions::{NewPrompt, NewSession, Session, Sessions};
use crate::turn::{TurnReader, TurnStep};

/// What happened in a run.
#[derive(Debug)]
pub enum RunUpdate {
    /// A message about progress.
    Progress(String),
    /// The permission request with this id waits for the client.
    Question(String),
    /// The result of the call.
    End(Value),
}

/// A run of the agent.
pub struct AgentRun {
    sessions: Rc<Sessions>,
    pub session: Rc<Session>,
    reader: TurnReader,
    transcript: RunTranscript,
    /// The open permission requests, and the question about each.
    open: BTreeMap<String, Value>,
    can_elicit: bool,
    is_stateless: bool,
}

impl AgentRun {
    /// Submits the prompt, to a new session or to the one that the arguments name.
    pub async fn start(
        sessions: &Rc<Sessions>,
        arguments: RunArguments,
        can_elicit: bool,
        is_stateless: bool,
    ) -> Result<Self, Refusal> {
        let session = match &arguments.session {
            Some(id) => sessions.get(id)?,
            None => {
                let workspace = arguments.workspace.clone();
                sessions.create(NewSession { workspace, ..NewSession::default() }).await?
            }
        };
        let is_elsewhere = |workspace: &String| {
            arguments.session.is_some() && session.record.borrow().workspace.to_str() != Some(workspace)
        };
        if arguments.workspace.as_ref().is_some_and(is_elsewhere) {
            let message = "The session runs in another workspace. Leave `workspace` out to continue it.";
            return Err(Refusal::bad_request("workspace_mismatch", message));
        }
        let accepted = sessions.submit(&session, NewPrompt::parts(Value::String(arguments.prompt))).await?;
        let follower = sessions.follow(&session, accepted.after);
        let reader = TurnReader::new(follower, accepted.prompt_id, HashSet::new());
        Ok(Self {
            sessions: sessions.clone(),
            session,
            reader,
            transcript: RunTranscript::default(),
            open: BTreeMap::new(),
            can_elicit,
            is_stateless,
        })
    }

    /// The next update. Waits for it; dropping the future loses nothing.
    pub async fn next(&mut self) -> RunUpdate {
        loop {
            let Some(step) = self.reader.next().await else {
                return RunUpdate::End(tool::failed("The turn's events cannot be read any more."));
            };
            let told = self.transcript.take(&step);
            match step {
                TurnStep::End(end) => {
                    self.open.clear();
                    return RunUpdate::End(self.transcript.result(self.session.id.as_str(), &end));
                }
                TurnStep::Approval { id, name, arguments, reason, .. } => {
                    let question = tool::question(&name, &arguments, &reason, self.is_stateless);
                    if self.can_elicit {
                        self.open.insert(id.clone(), question);
                        return RunUpdate::Question(id);
                    }
                    self.deny(&id, &name, &arguments);
                }
                _ => {}
            }
            if let Some(told) = told {
                return RunUpdate::Progress(told);
            }
        }
    }

    /// Denies at once what the client cannot ask about: a client that waits for nothing would hang.
    fn deny(&mut self, id: &str, name: &str, arguments: &Value) {
        let message = "The MCP client cannot ask its user for permission: it did not declare elicitation.";
        let response = Map::from_iter([("message".to_owned(), Value::from(message))]);
        if self.sessions.decide(id, "deny", response).is_ok() {
            let what = arguments["command"].as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            self.transcript.denied.push(format!("{name} {what}"));
        }
    }

    /// The questions that still need an answer.
    pub fn open_questions(&mut self) -> &BTreeMap<String, Value> {
        let approvals = self.sessions.approvals.borrow();
        self.open.retain(|id, _| approvals.get(id).is_some());
        &self.open
    }

    /// Applies answers to open questions. Others are ignored: they were decided elsewhere, or never asked.
    pub fn answer(&mut self, answers: &Value) {
        let open: Vec<String> = self.open.keys().cloned().collect();
        for id in open {
            if let Some(answer) = answers.get(&id) {
                let (decision, response) = tool::decision(Some(answer));
                // Another client may have been faster.
                let _ = self.sessions.decide(&id, decision, response);
                self.open.remove(&id);
            }
        }
    }

    /// Ends the turn, or withdraws the prompt if its turn has not begun.
    pub fn stop(&self) {
        let prompt_id = self.reader.prompt_id();
        if self.session.running().as_deref() == Some(prompt_id) {
            self.sessions.cancel(&self.session);
        } else {
            // A prompt that has ended needs no withdrawal.
            let _ = self.sessions.withdraw(&self.session, prompt_id);
        }
    }
}
