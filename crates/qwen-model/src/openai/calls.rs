//! Tool calls put together from pieces, whichever way a server cuts and labels them.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::chunk::CallDelta;
use crate::call_id;
use crate::request::Piece;

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug)]
struct Call {
    /// The server's own index, where it sends one.
    index: Option<u64>,
    /// The server's own id, where it sends one.
    wire_id: Option<Arc<str>>,
    /// The id that goes out.
    id: Arc<str>,
    /// None while the server has not said it; pieces wait for it.
    name: Option<Arc<str>>,
    /// Arguments that wait for the name or that tell, for want of an id, when the call is whole.
    arguments: String,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in what is new about a call; gives the number of bytes.
    pub fn take_in(&mut self, delta: &CallDelta<'_>, out: &mut VecDeque<Piece>) -> usize {
        let index = delta.index.map(|index| index.0);
        let id = (!delta.id.0.is_empty()).then_some(&*delta.id.0);
        let function = delta.function.as_ref();
        let name = function.map(|function| &*function.name.0).filter(|name| !name.is_empty());
        let arguments = function.map(super::chunk::Function::arguments).unwrap_or_default();
        let at = match self.find(index, id, name, &arguments) {
            Some(at) => at,
            None => self.begin(index, id),
        };
        let call = &mut self.0[at];
        let waited = call.name.is_none();
        if waited {
            call.name = name.map(Arc::from);
        }
        if call.name.is_none() || call.wire_id.is_none() {
            call.arguments.push_str(&arguments);
        }
        let bytes = arguments.len() + name.filter(|_| waited).map_or(0, str::len);
        if call.name.is_some() {
            let text = if waited && call.wire_id.is_some() {
                let before = std::mem::take(&mut call.arguments);
                if before.is_empty() { arguments.into_owned() } else { before + &arguments }
            } else if waited {
                call.arguments.clone()
            } else {
                arguments.into_owned()
            };
            if waited || !text.is_empty() {
                out.push_back(call.piece(at, text));
            }
        }
        bytes
    }

    /// Gives calls whose name never came: without one they can only fail, but they must not vanish.
    pub fn close(&mut self, out: &mut VecDeque<Piece>) {
        for (at, call) in self.0.iter_mut().enumerate().filter(|(_, call)| call.name.is_none()) {
            call.name = Some(Arc::from(""));
            let arguments = std::mem::take(&mut call.arguments);
            out.push_back(call.piece(at, arguments));
        }
    }

    /// The call that a piece belongs to; none when it begins a new one.
    fn find(
        &self,
        index: Option<u64>,
        id: Option<&str>,
        name: Option<&str>,
        arguments: &str,
    ) -> Option<usize> {
        let by_id = id.and_then(|id| self.0.iter().rposition(|call| call.wire_id.as_deref() == Some(id)));
        let Some(index) = index else {
            return match id {
                Some(_) => by_id,
                None => self.0.len().checked_sub(1).filter(|last| self.0[*last].goes_on(name, arguments)),
            };
        };
        match self.0.iter().rposition(|call| call.index == Some(index)) {
            Some(at) => {
                let call = &self.0[at];
                let same = match (id, call.wire_id.as_deref()) {
                    (Some(id), Some(known)) => id == known,
                    // An id that comes late belongs to the call, unless another call is named with it.
                    (Some(_), None) => name.is_none() || call.name.is_none(),
                    (None, Some(_)) => true,
                    (None, None) => call.goes_on(name, arguments),
                };
                same.then_some(at)
            }
            // The same id at a new place is the same call, unless a call is named anew: then ids are not unique.
            None => by_id.filter(|_| name.is_none()),
        }
    }

    fn begin(&mut self, index: Option<u64>, id: Option<&str>) -> usize {
        let taken = |id: &str| self.0.iter().any(|call| &*call.id == id);
        let wire_id: Option<Arc<str>> = id.map(Arc::from);
        let id = wire_id.clone().filter(|id| !taken(id)).unwrap_or_else(call_id::mint);
        self.0.push(Call { index, wire_id, id, name: None, arguments: String::new() });
        self.0.len() - 1
    }
}

impl Call {
    /// Whether a piece without an id goes on with this call: it does unless it names a call and this one is whole.
    fn goes_on(&self, name: Option<&str>, arguments: &str) -> bool {
        let Some(name) = name else { return true };
        let Some(known) = self.name.as_deref() else { return true };
        if self.wire_id.is_some() {
            return name == known && arguments.is_empty();
        }
        if self.arguments.is_empty() {
            return name == known;
        }
        serde_json::from_str::<IgnoredAny>(&self.arguments).is_err() && name == known
    }

    fn piece(&self, at: usize, arguments: String) -> Piece {
        Piece::Call {
            index: u32::try_from(at).unwrap_or(u32::MAX),
            id: Arc::clone(&self.id),
            name: self.name.clone().unwrap_or_default(),
            arguments: arguments.into(),
        }
    }
}
