//! Assembles tool calls from pieces, however a server splits and labels them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::Json;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::chunk::CallDelta;
use crate::call_id;
use crate::request::Piece;

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    all: Vec<Call>,
    /// The number of emitted calls.
    given: u32,
    /// The call that has a name and no arguments yet. Its name may continue in the next piece, so it is not
    /// emitted before its arguments or another call begin.
    held: Option<usize>,
}

#[derive(Debug)]
struct Call {
    /// The server's index, if it sends one.
    index: Option<u64>,
    /// The server's id, if it sends one.
    wire_id: Option<Arc<str>>,
    /// The emitted id.
    id: Arc<str>,
    /// None until the server has sent it; pieces wait for it.
    name: Option<Arc<str>>,
    /// True once a piece of it was emitted.
    given: bool,
    /// The emitted index, fixed from the first piece on.
    place: u32,
    /// Arguments that wait for the name or that show, without an id, when the call is complete.
    arguments: String,
    /// Fields that the provider expects back with the call.
    fields: Map<String, Value>,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Processes a delta of a call; returns the number of new bytes.
    pub fn push(&mut self, delta: &CallDelta<'_>, out: &mut VecDeque<Piece>) -> usize {
        let index = delta.index.map(|index| index.0);
        let id = (!delta.id.0.is_empty()).then_some(&*delta.id.0);
        let function = delta.function.as_ref();
        let name = function.map(|function| &*function.name.0).filter(|name| !name.is_empty());
        let arguments = function.map(super::chunk::Function::arguments).unwrap_or_default();
        let at = match self.find(index, id, name, &arguments) {
            Some(at) => at,
            None => self.begin(index, id),
        };
        if let Some(held) = self.held.take_if(|held| *held != at) {
            self.emit_call(held, out);
        }
        let call = &mut self.all[at];
        let mut bytes = arguments.len();
        if let Some(name) = name {
            bytes += call.append_name(name);
        }
        let has_fields = call.store_extra_fields(&delta.fields);
        if !call.given || call.wire_id.is_none() {
            call.arguments.push_str(&arguments);
        }
        if call.given {
            if !arguments.is_empty() {
                out.push_back(call.piece(arguments.into_owned()));
            }
            if has_fields {
                out.extend(call.fields_piece());
            }
        } else if call.name.is_some() {
            if call.arguments.is_empty() {
                self.held = Some(at);
            } else {
                self.held = None;
                self.emit_call(at, out);
            }
        }
        bytes
    }

    /// Emits calls that wait for the rest of their name, and those whose name never arrived: without one
    /// they can only fail, but they must not vanish.
    pub fn close(&mut self, out: &mut VecDeque<Piece>) {
        self.held = None;
        for at in 0..self.all.len() {
            if !self.all[at].given {
                self.emit_call(at, out);
            }
        }
    }

    /// Emits a call for the first time. Its name is final from now on.
    fn emit_call(&mut self, at: usize, out: &mut VecDeque<Piece>) {
        let call = &mut self.all[at];
        call.given = true;
        call.place = self.given;
        self.given += 1;
        let arguments =
            if call.wire_id.is_some() { std::mem::take(&mut call.arguments) } else { call.arguments.clone() };
        out.push_back(call.piece(arguments));
        out.extend(call.fields_piece());
    }

    /// The call that a piece belongs to; none when it begins a new one.
    fn find(
        &self,
        index: Option<u64>,
        id: Option<&str>,
        name: Option<&str>,
        arguments: &str,
    ) -> Option<usize> {
        let by_id = id.and_then(|id| self.all.iter().rposition(|call| call.wire_id.as_deref() == Some(id)));
        let Some(index) = index else {
            return match id {
                Some(_) => by_id,
                None => self
                    .all
                    .len()
                    .checked_sub(1)
                    .filter(|last| self.all[*last].is_continued_by(name, arguments)),
            };
        };
        match self.all.iter().rposition(|call| call.index == Some(index)) {
            Some(at) => {
                let call = &self.all[at];
                let same = match (id, call.wire_id.as_deref()) {
                    // Some servers make up a new id for every piece; a piece that begins a call has a name.
                    (Some(id), Some(known)) => {
                        id == known || (name.is_none() && call.name.is_some() && !arguments.is_empty())
                    }
                    // A late id belongs to the call, unless the piece names another call.
                    (Some(_), None) => name.is_none() || call.name.is_none(),
                    (None, Some(_)) => true,
                    // A name that continues under the call's own index is the rest of its name.
                    (None, None) => call.awaits_arguments() || call.is_continued_by(name, arguments),
                };
                same.then_some(at)
            }
            // The same id at a new index is the same call, unless the piece has a name: then ids are not
            // unique.
            None => by_id.filter(|_| name.is_none()),
        }
    }

    fn begin(&mut self, index: Option<u64>, id: Option<&str>) -> usize {
        let taken = |id: &str| self.all.iter().any(|call| &*call.id == id);
        let wire_id: Option<Arc<str>> = id.map(Arc::from);
        let id = wire_id.clone().filter(|id| !taken(id)).unwrap_or_else(call_id::new_id);
        self.all.push(Call {
            index,
            wire_id,
            id,
            name: None,
            given: false,
            place: 0,
            arguments: String::new(),
            fields: Map::new(),
        });
        self.all.len() - 1
    }
}

impl Call {
    /// True if a piece without an id continues this call: it does unless it names a call and this one is
    /// complete.
    fn is_continued_by(&self, name: Option<&str>, arguments: &str) -> bool {
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

    /// True if only a name, or a part of one, has arrived.
    fn awaits_arguments(&self) -> bool {
        !self.given && self.arguments.is_empty()
    }

    /// Processes a name or a piece of one; returns the number of new bytes. Most servers send it once and
    /// some split it. Some repeat it with every piece, completely or as far as it is written; once the
    /// arguments have begun it is ignored.
    fn append_name(&mut self, piece: &str) -> usize {
        let before = match &self.name {
            None => 0,
            Some(known) if !self.awaits_arguments() || **known == *piece => return 0,
            Some(known) => known.len(),
        };
        let name: Arc<str> = match self.name.as_deref() {
            Some(known) if !piece.starts_with(known) => format!("{known}{piece}").into(),
            _ => Arc::from(piece),
        };
        let new = name.len() - before;
        self.name = Some(name);
        new
    }

    /// Stores fields that the wire does not define. Empty ones are ignored; numbers and booleans describe
    /// the stream and not the call. True if a field was stored.
    fn store_extra_fields(&mut self, fields: &[(Cow<'_, str>, &RawValue)]) -> bool {
        let mut changed = false;
        for (name, value) in fields {
            let Ok(value @ (Value::Object(_) | Value::Array(_) | Value::String(_))) =
                serde_json::from_str(value.get())
            else {
                continue;
            };
            self.fields.insert(name.to_string(), value);
            changed = true;
        }
        changed
    }

    fn fields_piece(&self) -> Option<Piece> {
        let fields = (!self.fields.is_empty()).then(|| Value::from(self.fields.clone()).to_string())?;
        Some(Piece::CallFields { index: self.place, fields: Json::trusted(fields) })
    }

    fn piece(&self, arguments: String) -> Piece {
        Piece::Call {
            index: self.place,
            id: Arc::clone(&self.id),
            name: self.name.clone().unwrap_or_default(),
            arguments: arguments.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Arbitrary call deltas, valid or not.
    fn deltas() -> impl Strategy<Value = String> {
        let index = prop_oneof![
            Just(String::new()),
            (0..3_u8).prop_map(|n| format!(r#""index":{n},"#)),
            Just(r#""index":null,"#.into())
        ];
        let id = prop_oneof![
            Just(String::new()),
            "[xyz]?".prop_map(|id| format!(r#""id":"{id}","#)),
            Just(r#""id":null,"#.into())
        ];
        let name = prop_oneof![Just(String::new()), "[fg]?".prop_map(|name| format!(r#""name":"{name}","#))];
        let arguments = prop_oneof![
            Just(r#""{\"a\":1}""#.to_owned()),
            Just(r#""{\"a\"""#.to_owned()),
            Just(r#"":1}""#.to_owned()),
            Just(r#""""#.to_owned()),
            Just("null".to_owned()),
            Just(r#"{"b":2}"#.to_owned()),
        ];
        (index, id, name, arguments, any::<bool>()).prop_map(|(index, id, name, arguments, bare)| {
            if bare {
                format!(r#"{{{index}{id}"type":"function"}}"#)
            } else {
                format!(r#"{{{index}{id}"function":{{{name}"arguments":{arguments}}}}}"#)
            }
        })
    }

    proptest! {
        #[test]
        fn every_piece_keeps_its_promises_and_no_argument_is_lost(
            deltas in proptest::collection::vec(deltas(), 0..12),
        ) {
            let mut calls = Calls::default();
            let mut out = VecDeque::new();
            let mut sent = 0;
            for delta in &deltas {
                let delta: CallDelta<'_> = serde_json::from_str(delta).unwrap();
                sent += delta.function.as_ref().map_or(0, |function| function.arguments().len());
                calls.push(&delta, &mut out);
            }
            calls.close(&mut out);
            let mut known: HashMap<u32, (Arc<str>, Arc<str>)> = HashMap::new();
            let mut received = 0;
            for piece in out {
                if let Piece::CallFields { .. } = piece {
                    continue;
                }
                let Piece::Call { index, id, name, arguments } = piece else { panic!("{piece:?}") };
                received += arguments.len();
                if let Some(before) = known.get(&index) {
                    prop_assert_eq!(before, &(id, name));
                } else {
                    prop_assert_eq!(index as usize, known.len(), "indexes count up");
                    prop_assert!(known.values().all(|(other, _)| *other != id), "ids are unique");
                    known.insert(index, (id, name));
                }
            }
            prop_assert_eq!(known.len(), calls.all.len());
            prop_assert_eq!(received, sent);
        }
    }
}
