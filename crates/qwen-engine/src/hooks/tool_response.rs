//! The result of a call as hooks see it: `tool_response`.

use qwen_events::{DiffHunk, Display, FileDiff, ToolCall};
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
            "structuredPatch": hunks(diff),
            "originalFile": diff.original.as_deref(),
            "userModified": false,
        }),
        ("Edit", Some(Display::FileDiff(diff))) => json!({
            "filePath": &*diff.file_path,
            "oldString": given("old_string"),
            "newString": given("new_string"),
            "originalFile": diff.original.as_deref(),
            "structuredPatch": hunks(diff),
            "userModified": false,
            "replaceAll": given("replace_all").as_bool().unwrap_or(false),
        }),
        ("MultiEdit" | "NotebookEdit", Some(Display::FileDiff(diff))) => json!({
            "filePath": &*diff.file_path,
            "originalFile": diff.original.as_deref(),
            "structuredPatch": hunks(diff),
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

/// The hunks of a changed file.
fn hunks(diff: &FileDiff) -> Value {
    let hunk = |hunk: DiffHunk<'_>| {
        let ((old_start, old_lines), (new_start, new_lines)) = (hunk.old, hunk.new);
        json!({
            "oldStart": old_start, "oldLines": old_lines, "newStart": new_start, "newLines": new_lines,
            "lines": hunk.lines,
        })
    };
    diff.hunks().into_iter().map(hunk).collect()
}
