//! `notebook_edit`: changes one cell of a Jupyter notebook. Only Claude's vocabulary offers it.

use std::path::Path;

use qwen_events::{
    Argument, ArgumentRole, ArgumentValue, ClaudeTool, Confirmation, ToolCall, ToolDeclaration, ToolKind,
};
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};

use super::change::{self, ChangedFile, PlannedChange, Precondition};
use crate::declared::{DeclaredTool, tool_input};
use crate::refusal::Refusal;
use crate::{CallContext, Outcome, ToolFuture};

const DESCRIPTION: &str = "Changes one cell of a Jupyter notebook (.ipynb): replaces its source, inserts a new cell, or deletes \
it. Cells are named by their id, or by their position as cell-0, cell-1 and so on. A new source of a code cell removes its old \
outputs.";

pub(super) struct NotebookEdit;

tool_input! {
    struct Input {
        notebook_path: String = Argument::new(ArgumentValue::NonBlankText, "The notebook, absolute or relative to the workspace.").role(ArgumentRole::Path),
        new_source: String = Argument::new(ArgumentValue::Text, "The new source of the cell."),
        cell_id: Option<String> = Argument::new(ArgumentValue::NonBlankText, "The cell. A new cell is inserted after it, or at the beginning if it is left out."),
        cell_type: Option<String> = Argument::new(ArgumentValue::Choice(&["code", "markdown"]), "The kind of cell; required for insert. Default: unchanged."),
        edit_mode: Option<String> = Argument::new(ArgumentValue::Choice(&["replace", "insert", "delete"]), "The change. Default replace."),
    }
}

impl DeclaredTool for NotebookEdit {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("notebook_edit", ToolKind::Edit, DESCRIPTION, Input::ARGUMENTS)
            .claude(&[ClaudeTool::with_name("NotebookEdit")]);

    fn confirmation(call: &ToolCall, cx: &CallContext) -> Option<Confirmation> {
        change::confirmation(plan, call, cx)
    }

    fn check(call: &ToolCall, cx: &CallContext) -> Option<Outcome> {
        change::check(plan, Self::DECLARATION, call, cx)
    }

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        change::apply(plan, call, cx)
    }
}

/// Computes the new content and the message for the model.
fn plan(call: &ToolCall, cx: &CallContext) -> Result<PlannedChange, Refusal> {
    let (input, _) = Input::parse(call)?;
    let file = ChangedFile::open(&input.notebook_path, Precondition::Unchanged, cx)?;
    let shown = file.shown.display().to_string();
    let Some(before) = &file.before else {
        return Err(Refusal::new("file_not_found", format!("{shown} does not exist.")));
    };
    if Path::new(&input.notebook_path).extension().is_none_or(|extension| extension != "ipynb") {
        return Err(invalid(format!(
            "{shown} is not a notebook: its name does not end in .ipynb. Edit it as text."
        )));
    }
    let mut notebook: Value = serde_json::from_str(&before.body)
        .map_err(|error| invalid(format!("{shown} is not a notebook: {error}")))?;
    let done = edit_cells(&mut notebook, &input).map_err(|problem| invalid(format!("{shown}: {problem}")))?;
    let after = serialize(&notebook).ok_or_else(|| invalid(format!("{shown} cannot be written as JSON.")))?;
    Ok(PlannedChange { file, after, summary: format!("{done} of {shown}") })
}

fn invalid(text: String) -> Refusal {
    Refusal::new("invalid_arguments", text)
}

/// Applies the change and describes it.
fn edit_cells(notebook: &mut Value, input: &Input) -> Result<String, String> {
    // Cells have ids since version 4.5.
    let version = |name: &str| notebook.get(name).and_then(Value::as_u64).unwrap_or(0);
    let has_ids = (version("nbformat"), version("nbformat_minor")) >= (4, 5);
    let Some(cells) = notebook.get_mut("cells").and_then(Value::as_array_mut) else {
        return Err("it has no list of cells".to_owned());
    };
    let named = input.cell_id.as_deref().map(|id| position(cells, id)).transpose()?;
    match input.edit_mode.as_deref().unwrap_or("replace") {
        "insert" => {
            let kind = input.cell_type.as_deref().ok_or("insert needs a cell_type: code or markdown")?;
            let at = named.map_or(0, |at| at + 1);
            let in_lines = cells.iter().any(|cell| cell["source"].is_array());
            let mut cell = Map::new();
            cell.insert("cell_type".to_owned(), kind.into());
            cell.insert("metadata".to_owned(), json!({}));
            cell.insert("source".to_owned(), source(&input.new_source, in_lines));
            set_kind(&mut cell, kind);
            let id = new_id(cells);
            if has_ids {
                cell.insert("id".to_owned(), id.as_str().into());
            }
            cells.insert(at, cell.into());
            let name = if has_ids { id } else { format!("cell-{at}") };
            Ok(format!("Inserted the cell {name}"))
        }
        mode => {
            let id = input.cell_id.as_deref().ok_or("name the cell with cell_id")?;
            let at = named.ok_or("name the cell with cell_id")?;
            if mode == "delete" {
                cells.remove(at);
                return Ok(format!("Deleted the cell {id}"));
            }
            let cell = cells[at].as_object_mut().ok_or("the cell is not an object")?;
            let in_lines = cell.get("source").is_some_and(Value::is_array);
            cell.insert("source".to_owned(), source(&input.new_source, in_lines));
            let kind = input.cell_type.clone();
            let kind = kind.or_else(|| cell.get("cell_type").and_then(Value::as_str).map(str::to_owned));
            set_kind(cell, kind.as_deref().unwrap_or("code"));
            Ok(format!("Replaced the cell {id}"))
        }
    }
}

/// How many ids of cells an error lists.
const MAX_LISTED: usize = 20;

/// The index of the cell with this id, or of `cell-N`.
fn position(cells: &[Value], id: &str) -> Result<usize, String> {
    let by_id = cells.iter().position(|cell| cell["id"] == id);
    let by_number = || id.strip_prefix("cell-")?.parse().ok().filter(|at| *at < cells.len());
    by_id
        .or_else(by_number)
        .ok_or_else(|| format!("there is no cell '{id}'; the cells are {}.", list_ids(cells)))
}

/// The ids of the cells, as `read_file` shows them.
fn list_ids(cells: &[Value]) -> String {
    let ids = cells.iter().enumerate().take(MAX_LISTED);
    let mut ids: Vec<String> = ids
        .map(|(at, cell)| cell["id"].as_str().map_or_else(|| format!("cell-{at}"), str::to_owned))
        .collect();
    if cells.len() > MAX_LISTED {
        ids.push("…".to_owned());
    }
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

/// Gives a cell the fields of its kind. A code cell loses the outputs of its old source.
fn set_kind(cell: &mut Map<String, Value>, kind: &str) {
    cell.insert("cell_type".to_owned(), kind.into());
    if kind == "code" {
        cell.insert("execution_count".to_owned(), Value::Null);
        cell.insert("outputs".to_owned(), json!([]));
    } else {
        cell.remove("execution_count");
        cell.remove("outputs");
    }
}

/// A source as a list of lines or as one text; notebooks use either.
fn source(text: &str, in_lines: bool) -> Value {
    if in_lines { text.split_inclusive('\n').collect() } else { text.into() }
}

/// An id that no cell has.
fn new_id(cells: &[Value]) -> String {
    let mut number = cells.len();
    loop {
        let id = format!("new-cell-{number}");
        if cells.iter().all(|cell| cell["id"] != id.as_str()) {
            return id;
        }
        number += 1;
    }
}

/// The notebook as Jupyter writes it: sorted keys, one space of indentation, a final newline.
fn serialize(notebook: &Value) -> Option<String> {
    let mut bytes = Vec::new();
    let mut serializer =
        serde_json::Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b" "));
    notebook.serialize(&mut serializer).ok()?;
    bytes.push(b'\n');
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(mode: Option<&str>, id: Option<&str>, kind: Option<&str>) -> Input {
        Input {
            notebook_path: "n.ipynb".to_owned(),
            new_source: "a\nb".to_owned(),
            cell_id: id.map(str::to_owned),
            cell_type: kind.map(str::to_owned),
            edit_mode: mode.map(str::to_owned),
        }
    }

    fn notebook() -> Value {
        json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
            {"id": "one", "cell_type": "code", "metadata": {}, "source": ["1\n", "2"], "outputs": [{"a": 1}], "execution_count": 3},
            {"id": "two", "cell_type": "markdown", "metadata": {}, "source": "text"},
        ]})
    }

    #[test]
    fn a_cell_is_replaced_inserted_and_deleted() {
        let mut changed = notebook();
        edit_cells(&mut changed, &input(None, Some("one"), None)).unwrap();
        assert_eq!(changed["cells"][0]["source"], json!(["a\n", "b"]), "a list stays a list");
        assert_eq!(
            (&changed["cells"][0]["outputs"], &changed["cells"][0]["execution_count"]),
            (&json!([]), &Value::Null)
        );
        edit_cells(&mut changed, &input(None, Some("cell-1"), Some("code"))).unwrap();
        assert_eq!(
            (&changed["cells"][1]["source"], &changed["cells"][1]["cell_type"]),
            (&json!("a\nb"), &json!("code"))
        );
        edit_cells(&mut changed, &input(Some("insert"), Some("one"), Some("markdown"))).unwrap();
        edit_cells(&mut changed, &input(Some("insert"), None, Some("code"))).unwrap();
        let kinds: Vec<&Value> =
            changed["cells"].as_array().unwrap().iter().map(|cell| &cell["cell_type"]).collect();
        assert_eq!(kinds, ["code", "code", "markdown", "code"]);
        assert_ne!(changed["cells"][0]["id"], changed["cells"][2]["id"]);
        edit_cells(&mut changed, &input(Some("delete"), Some("two"), None)).unwrap();
        assert_eq!(changed["cells"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn an_impossible_notebook_edit_says_why() {
        for (asked, reason) in [
            (input(None, None, None), "cell_id"),
            (input(None, Some("nine"), None), "no cell 'nine'; the cells are one, two."),
            (input(Some("delete"), Some("cell-2"), None), "cell-2"),
            (input(Some("insert"), None, None), "cell_type"),
        ] {
            let problem = edit_cells(&mut notebook(), &asked).unwrap_err();
            assert!(problem.contains(reason), "{problem}");
        }
        assert!(edit_cells(&mut json!({}), &input(None, Some("one"), None)).is_err());
    }
}
