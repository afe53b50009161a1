//! A model that follows a script, for tests and for users' own CI. The format is described in
//! `docs/script-model.md`.

mod format;
mod play;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::{ErrorInfo, ErrorKind, Message, Part, Role};

use crate::estimate;
use crate::failure::{self, Failure};
use crate::request::Request;
use crate::retry::Backend;

use format::{Call, Step};
use play::Playing;

/// A script and its progress. Its calls are counted over the life of the process.
pub(crate) struct Script {
    shared: Arc<Shared>,
}

struct Shared {
    file: String,
    calls: Vec<Call>,
    used: Mutex<Vec<bool>>,
}

impl Script {
    /// Reads the script in `path`.
    pub fn open(path: &Path) -> Result<Self, ErrorInfo> {
        let file = path.display().to_string();
        let wrong = |code, why: String| ErrorInfo::new(ErrorKind::Input, code, why);
        let text = std::fs::read_to_string(path)
            .map_err(|e| wrong("script_unreadable", format!("the script `{file}` cannot be read: {e}")))?;
        let calls = format::parse(&text).map_err(|e| {
            wrong("script_invalid", format!("the script `{file}` is not in the right form: {e}"))
        })?;
        let used = Mutex::new(vec![false; calls.len()]);
        Ok(Self { shared: Arc::new(Shared { file, calls, used }) })
    }
}

/// The parts of a request that a script matches.
#[derive(Clone)]
pub(crate) struct RequestSummary {
    model: Arc<str>,
    /// The last user message.
    user: Arc<str>,
    /// The last user message or tool result.
    last: Arc<str>,
    prompt_tokens: u64,
}

impl Backend for Script {
    type Call = RequestSummary;
    type Attempt = Playing;

    fn prepare(&self, request: &Request, model: &Arc<str>) -> RequestSummary {
        // A note can follow the prompt or the results at any time.
        let newest_first = || request.messages.iter().rev().filter(|message| !message.is_note());
        RequestSummary {
            model: Arc::clone(model),
            user: words(newest_first().find(|message| message.role == Role::User)),
            last: words(newest_first().find(|message| message.role != Role::Assistant)),
            prompt_tokens: estimate::prompt_tokens(request),
        }
    }

    fn attempt(self: &Arc<Self>, request: &RequestSummary) -> Playing {
        Playing::new(self.shared.next_call(&request.user), request.clone())
    }
}

impl Shared {
    /// The call that answers `user`: the first unused one whose `match` occurs there, else the first without
    /// a `match`.
    fn next_call(&self, user: &str) -> Result<(usize, Arc<[Step]>), Failure> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = || self.calls.iter().enumerate().filter(|(at, _)| !used[*at]);
        let matching = unused()
            .find(|(_, call)| call.matching.as_ref().is_some_and(|part| user.contains(part.as_str())));
        let found = matching.or_else(|| unused().find(|(_, call)| call.matching.is_none()));
        let Some((at, call)) = found else {
            let left = unused().count();
            let unfit =
                if left == 0 { String::new() } else { format!(", and the `match` of {left} did not fit") };
            let message = format!(
                "the script `{}` has {} calls and no unused one for this request{unfit}; it was asked: {}",
                self.file,
                self.calls.len(),
                failure::quote(user.as_bytes()),
            );
            return Err(failure::not_an_answer("script_exhausted", message));
        };
        let taken = (at, Arc::clone(&call.steps));
        used[at] = true;
        Ok(taken)
    }
}

/// The texts of a message, tool results included.
fn words(message: Option<&Message>) -> Arc<str> {
    let parts = message.map(|message| message.parts.as_slice()).unwrap_or_default();
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            Part::Result(result) => Some(&*result.text),
            _ => None,
        })
        .collect();
    texts.join("\n").into()
}
