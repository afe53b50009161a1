//! The history of a stored session, as the client has seen it live.

use qwen_dialects::acp::AcpClient;
use qwen_dialects::{Dialect, Format, StreamInfo, encoder};
use qwen_engine::log::{LogError, Replay, Store};
use qwen_events::{Body, SessionId};

/// The beginning of a line that a replay has; responses to prompts are left out.
const UPDATE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\"";

/// Appends the updates of a session to `out`, without the turn of the prompt `running`. Returns the cost of the
/// session in US dollars.
pub fn replay(
    store: &Store,
    id: &SessionId,
    client: AcpClient,
    running: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<f64, LogError> {
    // In a line with the session's plan, of which only the last one counts. Inside a string every quote is escaped.
    let plan_of_session = format!("\"{id}\",\"update\":{{\"sessionUpdate\":\"plan\"");
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
        if let Body::TurnStart(start) = &event.body
            && event.scope.parent.is_none()
            && running == Some(start.prompt_id.as_str())
        {
            break;
        }
        if let Body::TurnEnd(end) = &event.body
            && event.scope.parent.is_none()
        {
            cost += end.cost_usd;
        }
        lines.clear();
        encoder.encode(&event, &mut lines);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if memchr::memmem::find(line, plan_of_session.as_bytes()).is_some() {
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
