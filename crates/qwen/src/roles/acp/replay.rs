//! The history of a stored session, as the client has seen it live.

use qwen_dialects::acp::AcpClient;
use qwen_dialects::{Dialect, Format, StreamInfo, encoder};
use qwen_engine::log::{LogError, Replay, Store};
use qwen_events::{Body, SessionId};

/// The beginning of a line that a replay has; responses to prompts are left out.
const UPDATE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\"";

/// In a line with a plan, of which only the last one counts. Inside a string every quote is escaped.
const PLAN: &[u8] = b"\"update\":{\"sessionUpdate\":\"plan\"";

/// Appends the updates of a session to `out`. Returns the cost of the session in US dollars.
pub fn replay(store: &Store, id: &SessionId, client: AcpClient, out: &mut Vec<u8>) -> Result<f64, LogError> {
    let reader = store.read(id)?;
    let info = StreamInfo {
        replay_user_messages: true,
        acp: client,
        ..StreamInfo::new(Dialect::Acp, Format::StreamJson, id.clone())
    };
    let mut encoder = encoder(&info);
    let mut events = Replay::new(reader);
    let (mut lines, mut plan, mut cost) = (Vec::new(), Vec::new(), 0.0);
    while let Some(event) = events.next_event()? {
        if let Body::TurnEnd(end) = &event.body
            && event.scope.parent.is_none()
        {
            cost += end.cost_usd;
        }
        lines.clear();
        encoder.encode(&event, &mut lines);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if memchr::memmem::find(line, PLAN).is_some() {
                plan.clear();
                plan.extend_from_slice(line);
            } else if line.starts_with(UPDATE) {
                out.extend_from_slice(line);
            }
        }
    }
    out.extend_from_slice(&plan);
    Ok(cost)
}
