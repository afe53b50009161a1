//! `todo_write`: maintains the task list, for the user and the model.

use std::collections::HashSet;

use qwen_events::{
    Argument, ArgumentValue, ClaudeTool, Display, Todo, TodoStatus, ToolCall, ToolDeclaration, ToolKind,
};
use serde_json::Value;

use crate::declared::{DeclaredTool, tool_input};
use crate::refusal::Refusal;
use crate::{ArgumentError, Arguments, CallContext, Outcome, ToolFuture};

const DESCRIPTION: &str = "Replaces the to-do list. Use it for work of several steps: write the steps down first, \
keep exactly one in_progress, and mark each completed as soon as it is done.";

/// The list in Claude's vocabulary, in which entries also have a present form.
const CLAUDE_ITEMS: &str = concat!(
    r#""items":{"type":"object","properties":{"#,
    r#""content":{"type":"string","description":"The step, such as \"Run the tests\"."},"#,
    r#""status":{"type":"string","enum":["pending","in_progress","completed"],"description":"Its progress."},"#,
    r#""activeForm":{"type":"string","description":"The same in the present, such as \"Running the tests\"."}},"#,
    r#""required":["content","status","activeForm"]}"#,
);

const ITEMS: &str = concat!(
    r#""items":{"type":"object","properties":{"#,
    r#""id":{"type":"string","description":"An id that stays the same when the list changes."},"#,
    r#""content":{"type":"string","description":"The step."},"#,
    r#""status":{"type":"string","enum":["pending","in_progress","completed"],"description":"Its progress."}},"#,
    r#""required":["content","status"]}"#,
);

pub(super) struct TodoWrite;

tool_input! {
    struct Input {
        todos: Vec<Value> = Argument::new(ArgumentValue::Json { before: r#""type":"array""#, after: ITEMS }, "The whole list, in order."),
    }
}

impl DeclaredTool for TodoWrite {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("todo_write", ToolKind::Session, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["todo"])
            .claude(&[ClaudeTool {
                absent: &["todos"],
                added: &[Argument {
                    name: "todos",
                    required: true,
                    ..Argument::new(
                        ArgumentValue::Json { before: r#""type":"array""#, after: CLAUDE_ITEMS },
                        "The whole list, in order.",
                    )
                }],
                ..ClaudeTool::with_name("TodoWrite")
            }]);

    fn run<'a>(call: &'a ToolCall, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call).unwrap_or_else(Outcome::from)))
    }
}

fn run(call: &ToolCall) -> Result<Outcome, Refusal> {
    let (input, arguments) = Input::parse(call)?;
    let mut todos = Vec::new();
    let mut ids = HashSet::new();
    for (at, item) in input.todos.iter().enumerate() {
        let todo = todo(&arguments, at, item)?;
        if !ids.insert(todo.id.clone()) {
            return Err(arguments
                .refuse(&format!("todos[{at}].id"), format_args!("is {:?}, which another one has", todo.id))
                .into());
        }
        todos.push(todo);
    }
    let count = |status| todos.iter().filter(|todo| todo.status == status).count();
    let text = format!(
        "The list has {} {}: {} completed, {} in progress, {} pending.",
        todos.len(),
        if todos.len() == 1 { "entry" } else { "entries" },
        count(TodoStatus::Completed),
        count(TodoStatus::InProgress),
        count(TodoStatus::Pending)
    );
    Ok(Outcome { display: Some(Display::TodoList(todos)), ..Outcome::success(text) })
}

fn todo(arguments: &Arguments, at: usize, item: &Value) -> Result<Todo, ArgumentError> {
    let field = |name: &str| format!("todos[{at}].{name}");
    if !item.is_object() {
        return Err(arguments.refuse(&format!("todos[{at}]"), "must be an object with content and status"));
    }
    let content = match item.get("content").and_then(Value::as_str) {
        Some(content) if !content.trim().is_empty() => content,
        _ => return Err(arguments.refuse(&field("content"), "must be a string that describes the task")),
    };
    let status = match item.get("status").and_then(Value::as_str) {
        Some("pending") => TodoStatus::Pending,
        Some("in_progress") => TodoStatus::InProgress,
        Some("completed") => TodoStatus::Completed,
        _ => return Err(arguments.refuse(&field("status"), "must be pending, in_progress or completed")),
    };
    let id = match item.get("id") {
        None | Some(Value::Null) => (at + 1).to_string(),
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        Some(_) => return Err(arguments.refuse(&field("id"), "must be a string")),
    };
    Ok(Todo { id: id.into(), content: content.into(), status })
}
