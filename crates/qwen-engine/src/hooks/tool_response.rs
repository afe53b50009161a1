//! The result of a call as hooks see it: `tool_response`.

use qwen_events::{Display, FileDiff, ToolCall};
use qwen_tools::{Outcome, ToolVocabulary};
use serde_json::{Map, Value, json};

/// Text, success and exit code; in Claude's vocabulary also the fields of the tool's result that Claude's CLI
/// gives hooks.
pub(crate) fn of(call: &ToolCall, outcome: &Outcome, vocabulary: ToolVocabulary) -> Value {
    let mut response = json!({"output": outcome.text, "is_error": outcome.error_code.is_some(), "exit_code": outcome.exit_code});
    if vocabulary == ToolVocabulary::Claude
        && outcome.error_code.is_none()
        && let Some(fields) = claude_fields(call, outcome)
        && let (Value::Object(response), Value::Object(fields)) = (&mut response, fields)
    {
        response.extend(fields);
    }
    response
}

fn claude_fields(call: &ToolCall, outcome: &Outcome) -> Option<Value> {
    let arguments: Map<String, Value> = serde_json::from_str(call.arguments.as_str()).ok()?;
    let given = |name: &str| arguments.get(name).cloned().unwrap_or_default();
    Some(match (&*call.name, &outcome.display) {
        ("Write", Some(Display::FileDiff(diff))) => json!({
            "type": if diff.original.is_some() { "update" } else { "create" },
            "filePath": &*diff.file_path,
            "content": &*diff.modified,
            "structuredPatch": hunks_of_change(diff),
            "originalFile": diff.original.as_deref(),
            "userModified": false,
        }),
        ("Edit", Some(Display::FileDiff(diff))) => json!({
            "filePath": &*diff.file_path,
            "oldString": given("old_string"),
            "newString": given("new_string"),
            "originalFile": diff.original.as_deref(),
            "structuredPatch": hunks_of_change(diff),
            "userModified": false,
            "replaceAll": given("replace_all").as_bool().unwrap_or(false),
        }),
        ("MultiEdit" | "NotebookEdit", Some(Display::FileDiff(diff))) => json!({
            "filePath": &*diff.file_path,
            "originalFile": diff.original.as_deref(),
            "structuredPatch": hunks_of_change(diff),
            "userModified": false,
        }),
        ("Read", _) if outcome.media.is_empty() => {
            let first = given("offset").as_u64().unwrap_or(1).max(1);
            let lines = outcome.text.lines().count() as u64;
            json!({"type": "text", "file": {
                "filePath": given("file_path"),
                "content": outcome.text,
                "numLines": lines,
                "startLine": first,
                "totalLines": first - 1 + lines,
            }})
        }
        ("Bash", _) => json!({
            "stdout": outcome.text,
            "stderr": "",
            "interrupted": false,
            "isImage": false,
            "noOutputExpected": false,
        }),
        ("Task" | "Agent", Some(Display::Task(task))) => json!({
            "status": task.status,
            "prompt": given("prompt"),
            "agentType": &*task.agent,
            "content": [{"type": "text", "text": outcome.text}],
            "totalTokens": task.tokens,
            "totalToolUseCount": task.tool_calls,
        }),
        ("TodoWrite", _) => json!({"newTodos": given("todos")}),
        _ => return None,
    })
}

/// The hunks of a changed file; a new file has none.
fn hunks_of_change(diff: &FileDiff) -> Value {
    if diff.original.is_none() { json!([]) } else { hunks(&diff.diff) }
}

/// The hunks of a unified diff.
fn hunks(diff: &str) -> Value {
    let mut hunks: Vec<Value> = Vec::new();
    for line in diff.lines() {
        if let Some(header) = line.strip_prefix("@@ -")
            && let Some((old, rest)) = header.split_once(" +")
        {
            let (old, new) = (range(old), range(rest.split(" @@").next().unwrap_or(rest)));
            hunks.push(json!({
                "oldStart": old.0, "oldLines": old.1, "newStart": new.0, "newLines": new.1, "lines": [],
            }));
        } else if let Some(lines) = hunks.last_mut().and_then(|hunk| hunk["lines"].as_array_mut()) {
            lines.push(line.into());
        }
    }
    Value::Array(hunks)
}

/// First line and number of lines of `3,2`; `3` alone is one line.
fn range(text: &str) -> (u64, u64) {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    (start.parse().unwrap_or(0), count.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unified_diff_becomes_hunks() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-1\n--- two\n+new\n@@ -9 +8,2 @@ fn f\n same\n+more\n";
        assert_eq!(
            hunks(diff),
            json!([
                {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 1, "lines": ["-1", "--- two", "+new"]},
                {"oldStart": 9, "oldLines": 1, "newStart": 8, "newLines": 2, "lines": [" same", "+more"]},
            ])
        );
        assert_eq!(hunks(""), json!([]));
    }
}
