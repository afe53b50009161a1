//! Replays of stored lines to a client that attached: page by page, as far as the client reads.
//!
//! A history may be as large as the store keeps. Of each replay at most one page is in memory, and the next one is
//! read once there is room in the output. Lines that arrive meanwhile are stored and not sent, so that a later page
//! brings them in their order; the replay ends with the page that reaches the last stored line.

use qwen_events::{ErrorInfo, ErrorKind, Json, SessionId};

use super::super::Router;
use super::super::output::with_error_fields;
use crate::action::{ClientRequest, RouterAction};
use crate::front::OpenParts;
use crate::store::{Read, count_lines};

/// The size of a page.
pub(crate) const PAGE_BYTES: usize = 64 * 1024;

/// With more pending bytes for the client, no further page is read.
const ROOM_BYTES: usize = 128 * 1024;

/// A request for the stored lines of a session.
#[derive(Debug)]
pub(in crate::router) struct Replay {
    request: ClientRequest,
    /// The last line that the client had when it attached.
    attached_after: u64,
    /// The last line that it has now.
    after: u64,
    /// True once the request was answered: lines follow.
    is_answered: bool,
}

impl Router {
    /// Sends a client the lines after `after`, once the replays before are complete.
    pub(in crate::router) fn start_replay(&mut self, id: &SessionId, request: ClientRequest, after: u64) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let replay = Replay { request, attached_after: after, after, is_answered: false };
        if std::mem::take(&mut session.numbering.is_polling) {
            // The client has all lines up to now, and asks for others.
            session.numbering.replays.pop_front();
        }
        session.numbering.replays.push_back(replay);
        if session.numbering.replays.len() == 1 {
            self.read_page(id);
        }
    }

    pub(in crate::router) fn read_page(&mut self, id: &SessionId) {
        let replay = self.sessions.get(id).and_then(|session| session.numbering.replays.front());
        if let Some(Replay { after, .. }) = replay {
            let after = *after;
            self.actions.push(RouterAction::ReadEvents { session: id.clone(), after, limit: PAGE_BYTES });
        }
    }

    /// Reads the next page of a replay if there is room for it.
    pub(in crate::router) fn continue_replays(&mut self) {
        if self.out.len() < ROOM_BYTES
            && let Some(id) = self.stores.replays.pop_front()
        {
            self.read_page(&id);
        }
    }

    /// Sends a page of stored lines to a client that attached, or the reason why there is none.
    pub fn send_events(&mut self, id: &SessionId, read: Read) {
        self.clock.has_changed = true;
        let session = self.sessions.get_mut(id);
        let Some(replay) = session.and_then(|session| session.numbering.replays.front_mut()) else { return };
        let (request, after) = (replay.request.clone(), replay.after);
        let was_answered = std::mem::replace(&mut replay.is_answered, true);
        match read {
            Read::Lines { first, lines, last } => {
                replay.after += count_lines(&lines);
                let is_complete = lines.is_empty() || replay.after >= last;
                if !was_answered {
                    let result = format!("{{\"session_id\":\"{id}\",\"after\":{after},\"last\":{last}}}");
                    let result = Ok(Json::trusted(result));
                    let reply = self.writer.control_reply(id, &request.request_id, request.nested, result);
                    self.send_lines(id, &reply);
                }
                self.push_stored(id, first, &lines);
                if is_complete && self.is_following(id) {
                    return self.poll_later(id);
                }
                if is_complete {
                    return self.finish_replay(id);
                }
                self.stores.replays.push_back(id.clone());
                return self.continue_replays();
            }
            Read::TooOld { oldest } => {
                let message = format!(
                    "The lines after {after} are not all kept; the oldest that is kept is {oldest}. Attach after {}.",
                    oldest.saturating_sub(1)
                );
                let fields = [("oldest".to_owned(), oldest.into())].into_iter().collect();
                self.refuse_replay(id, was_answered, "after_too_old", message, &fields);
            }
            Read::Future { last } => {
                let message = format!("`after` is {after}, but the last line of the session is {last}");
                self.refuse_replay(id, was_answered, "after_in_future", message, &serde_json::Map::new());
            }
            Read::Failed(why) => {
                let message = format!("the stored lines cannot be read: {why}");
                self.refuse_replay(id, was_answered, "store_failed", message, &serde_json::Map::new());
            }
        }
        self.finish_replay(id);
    }

    /// Answers the request of a replay with an error, or reports the error if lines were sent already.
    fn refuse_replay(
        &mut self,
        id: &SessionId,
        was_answered: bool,
        code: &'static str,
        message: String,
        fields: &serde_json::Map<String, serde_json::Value>,
    ) {
        let error = ErrorInfo::new(ErrorKind::Input, code, message).with_param("after");
        let request = self.sessions.get(id).and_then(|session| session.numbering.replays.front());
        let lines = match request.map(|replay| &replay.request).filter(|_| !was_answered) {
            Some(request) => self.writer.control_reply(id, &request.request_id, request.nested, Err(error)),
            None => self.writer.error(id, error),
        };
        self.send_lines(id, &with_error_fields(&lines, code, fields));
    }

    /// Answers all requests for stored lines with an error.
    pub(in crate::router) fn refuse_replays(&mut self, id: &SessionId, error: &ErrorInfo) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let mut replies = Vec::new();
        for replay in session.numbering.replays.drain(..).filter(|replay| !replay.is_answered) {
            let request = &replay.request;
            replies.extend(self.writer.control_reply(
                id,
                &request.request_id,
                request.nested,
                Err(error.clone()),
            ));
        }
        self.send_lines(id, &replies);
    }

    /// Ends the first replay of a session: the questions that the client had before follow, then new lines.
    pub(in crate::router) fn finish_replay(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(replay) = session.numbering.replays.pop_front() else { return };
        let open =
            session.requests.questions.values().filter(|question| question.seq <= replay.attached_after);
        let mut questions = Vec::new();
        for question in open {
            crate::front::push_numbered(&mut questions, question.seq, &question.line);
        }
        self.send_lines(id, &questions);
        self.read_page(id);
        if self.ending.is_input_over || self.ending.drain_until.is_some() {
            self.finish_if_over();
        }
    }

    /// Notes what stored lines of a session open and close.
    pub(crate) fn note_stored_parts(&self, lines: &[u8], open: &mut OpenParts) {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.front.note_parts(line, open);
        }
    }
}
