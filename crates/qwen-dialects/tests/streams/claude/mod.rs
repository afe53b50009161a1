//! The `claude` dialect, as the SDKs read it.

mod channel;
mod ending;
mod limits;
mod turn;

use qwen_dialects::{Dialect, StreamInfo};
use serde_json::Value;

use crate::script::info;

pub fn claude() -> StreamInfo {
    info(Dialect::Claude)
}

pub fn partial() -> StreamInfo {
    StreamInfo { partial_messages: true, ..claude() }
}

pub fn qwen_sdk() -> StreamInfo {
    StreamInfo { qwen_sdk: true, ..claude() }
}

/// A line in a few letters: `system/init`, `assistant:text`, `stream:content_block_start#0`.
pub fn kind(line: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match line["type"].as_str().unwrap() {
        "system" | "result" => format!("{}/{}", word(&line["type"]), word(&line["subtype"])),
        role @ ("assistant" | "user") => format!("{role}:{}", word(&line["message"]["content"][0]["type"])),
        "stream_event" => {
            let index = line["event"]["index"].as_u64().map(|index| format!("#{index}")).unwrap_or_default();
            format!("stream:{}{index}", word(&line["event"]["type"]))
        }
        other => other.to_owned(),
    }
}

pub fn kinds(lines: &[Value]) -> Vec<String> {
    lines.iter().map(kind).collect()
}
