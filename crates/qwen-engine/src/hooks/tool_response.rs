//! The result of a call as hooks see it: `tool_response`.

use qwen_events::{DiffHunk, Display, FileDiff, FileLines, FoundFiles, FoundLines, ToolCall, command_output};
use qwen_tools::{Outcome, ToolVocabulary};
use serde_json::{Map, Value, json};

/// Text, success and exit code; in Claude's vocabulary also the fields of the tool's result that Claude's CLI
/// gives hooks.
pub(crate) fn build(
    call: &ToolCall,
    outcome: &Outcome,
    elapsed_ms: u64,
    vocabulary: ToolVocabulary,
) -> Value {
    let mut response = json!({"output": outcome.text, "is_error": outcome.error_code.is_some(), "exit_code": outcome.exit_code});
    if vocabulary == ToolVocabulary::Claude
        && outcome.error_code.is_none()
        && let Some(fields) = claude_fields(call, outcome, elapsed_ms)
        && let (Value::Object(response), Value::Object(fields)) = (&mut response, fields)
    {
        response.extend(fields);
    }
    response
}

fn claude_fields(call: &ToolCall, outcome: &Outcome, elapsed_ms: u64) -> Option<Value> {
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
            let count = outcome.text.lines().count() as u64;
            let lines = FileLines::parse(&outcome.text).unwrap_or_else(|| FileLines {
                first: 1,
                count,
                total: count,
                content: outcome.text.clone(),
            });
            json!({"type": "text", "file": {
                "filePath": given("file_path"),
                "content": lines.content,
                "numLines": lines.count,
                "startLine": lines.first,
                "totalLines": lines.total,
            }})
        }
        ("Bash", _) => json!({
            "stdout": command_output(&outcome.text),
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
        ("Glob", _) => {
            let found = FoundFiles::parse(&outcome.text);
            json!({
                "numFiles": found.filenames.len(), "filenames": found.filenames,
                "truncated": found.is_truncated, "durationMs": elapsed_ms,
            })
        }
        ("Grep", _) => search_fields(&outcome.text, given("output_mode").as_str().unwrap_or(DEFAULT_MODE)),
        ("ExitPlanMode", Some(Display::Plan { plan, .. })) => {
            json!({"plan": &**plan, "isAgent": false, "filePath": Value::Null})
        }
        _ => return None,
    })
}

/// The mode of a search that names none.
const DEFAULT_MODE: &str = "files_with_matches";

/// The fields of a search for lines; those that its mode does not have are absent.
fn search_fields(text: &str, mode: &str) -> Value {
    let found = FoundLines::parse(text, mode);
    let mut fields = json!({"mode": mode, "numFiles": found.num_files, "filenames": found.filenames});
    let optional = [
        ("content", found.content.map(Value::from)),
        ("numLines", found.num_lines.map(Value::from)),
        ("numMatches", found.num_matches.map(Value::from)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            fields[name] = value;
        }
    }
    fields
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

#[cfg(test)]
mod tests {
    use qwen_events::{CallId, Json};

    use super::*;

    fn response(tool: &str, arguments: &Value, text: &str) -> Value {
        let call = ToolCall::new(CallId::new("c"), tool.into(), Json::trusted(arguments.to_string()));
        build(&call, &Outcome::success(text), 0, ToolVocabulary::Claude)
    }

    #[test]
    fn searches_have_the_vendors_fields() {
        let glob = response("Glob", &json!({}), "2 files, newest first:\na.rs\nb.rs\n");
        assert_eq!(
            (&glob["numFiles"], &glob["filenames"], &glob["truncated"]),
            (&json!(2), &json!(["a.rs", "b.rs"]), &json!(false))
        );
        assert_eq!(response("Glob", &json!({}), "No file matches x.")["numFiles"], 0);
        let files = response("Grep", &json!({}), "Found 1 file:\na.rs\n");
        assert_eq!((&files["mode"], &files["filenames"]), (&json!("files_with_matches"), &json!(["a.rs"])));
        let counts =
            response("Grep", &json!({"output_mode": "count"}), "Matching lines in 2 files:\na:2\nb:3\n");
        assert_eq!((&counts["numMatches"], &counts["numFiles"]), (&json!(5), &json!(2)));
        let lines =
            response("Grep", &json!({"output_mode": "content"}), "2 matches in 1 file:\na.rs\n1: x\n3: x\n");
        assert_eq!((&lines["numLines"], &lines["filenames"]), (&json!(2), &json!(["a.rs"])));
        assert_eq!(response("Grep", &json!({}), "No files found: no line matches x.")["numFiles"], 0);
    }
}
