//! `qwen sessions fork`: creates a new session from an existing one, optionally with an edited state.

use std::io::Write;
use std::sync::Arc;

use qwen_engine::Edit;
use qwen_engine::log::{LogHeader, Parent, Store};
use qwen_events::{ErrorInfo, ErrorKind, Json, SessionId};
use qwen_thoughts::ThoughtAgents;

use super::{SubcommandError, find, parse};
use crate::cli::ForkArgs;
use crate::runtime::clock::now;
use crate::settings::Invocation;

/// Creates the fork and prints its id.
pub fn run(
    store: &Store,
    args: &ForkArgs,
    invocation: &Invocation,
    out: &mut impl Write,
) -> Result<(), SubcommandError> {
    let from = find(store, &args.id)?;
    let edits = args.set.iter().map(|text| edit(text)).collect::<Result<Vec<Edit>, ErrorInfo>>()?;
    let fresh = || SessionId::from_random(fastrand::u128(..));
    let id = args.session_id.as_deref().map(parse).transpose()?.unwrap_or_else(fresh);
    let header = LogHeader {
        session_id: id.clone(),
        cwd: invocation.cwd.to_string_lossy().into(),
        created: now(),
        version: env!("CARGO_PKG_VERSION").into(),
        parent: Some(Parent { session_id: from.clone(), point: args.at.as_deref().map(Arc::from) }),
        title: Arc::default(),
    };
    store.fork_edited(&from, args.at.as_deref(), header, &edits, &ThoughtAgents::default())?;
    writeln!(out, "{id}")?;
    Ok(())
}

/// Parses an edit in the command-line syntax `key=json`.
fn edit(text: &str) -> Result<Edit, ErrorInfo> {
    let wrong = |why: String| ErrorInfo::new(ErrorKind::Usage, "bad_flag", format!("--set '{text}': {why}"));
    let (path, value) = text.split_once('=').ok_or_else(|| wrong("give KEY=JSON".to_owned()))?;
    let json: serde_json::Value = serde_json::from_str(value).map_err(|error| {
        wrong(format!("the value is not JSON ({error}); a text needs quotes: --set '{path}=\"…\"'"))
    })?;
    Ok(Edit { path: path.trim().to_owned(), value: Json::trusted(json.to_string()) })
}
