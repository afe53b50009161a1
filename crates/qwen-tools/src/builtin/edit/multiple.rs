//! `MultiEdit` of Claude's vocabulary: several replacements in one file, all of them or none.

use qwen_events::{Argument, ArgumentValue, ClaudeTool, ToolCall};
use serde_json::Value;

use super::Replacement;
use crate::builtin::change::{ChangedFile, PlannedChange, Precondition};
use crate::declared::tool_input;
use crate::output::content::Text;
use crate::refusal::Refusal;
use crate::{ArgumentError, Arguments, CallContext};

const DESCRIPTION: &str = "Makes several changes in one file, in order: each replaces exact text in the result of the \
previous ones. Either all of them are made or none. The rules for each old_string are those of the tool Edit. To \
create a file, give the first change an empty old_string.";

const ITEMS: &str = concat!(
    r#""minItems":1,"items":{"type":"object","properties":{"#,
    r#""old_string":{"type":"string","description":"The exact text to replace."},"#,
    r#""new_string":{"type":"string","description":"The replacement text."},"#,
    r#""replace_all":{"type":"boolean","description":"Replace every occurrence. Default false."}},"#,
    r#""required":["old_string","new_string"]}"#,
);

tool_input! {
    struct Input {
        file_path: String = super::Input::ARGUMENTS[0],
        edits: Vec<Value> = Argument::new(ArgumentValue::Json { before: r#""type":"array""#, after: ITEMS }, "The changes, in order."),
    }
}

pub(super) const CLAUDE: ClaudeTool = ClaudeTool {
    description: Some(DESCRIPTION),
    absent: &["old_string", "new_string", "replace_all"],
    added: Input::ARGUMENTS.split_at(1).1,
    ..ClaudeTool::with_name("MultiEdit")
};

/// True if a call is one of this tool.
pub(super) fn is_asked_for(call: &ToolCall) -> bool {
    *call.name == *CLAUDE.name
}

/// Computes the content after all changes.
pub(super) fn plan(call: &ToolCall, cx: &CallContext) -> Result<PlannedChange, Refusal> {
    let (input, arguments) = Input::parse(call)?;
    if input.edits.is_empty() {
        return Err(arguments.refuse("edits", "is empty; give at least one change").into());
    }
    let file = ChangedFile::open(&input.file_path, Precondition::None, cx)?;
    let mut edited: Option<Text> = None;
    for (at, item) in input.edits.iter().enumerate() {
        let edit = replacement(&arguments, at, item)?;
        let before = edited.as_ref().or(file.before.as_ref());
        let after = edit
            .apply(before, &file.shown, &arguments)
            .map_err(|refusal| refusal.within(format_args!("edits[{at}]"), "Nothing was changed."))?;
        super::refuse_several_in_changed_file(&file, after.count)?;
        edited = Some(Text { body: after.text, bom: false, lossy: false });
    }
    let verb = if file.before.is_some() { "Edited" } else { "Created" };
    let summary = format!("{verb} {} by {} changes", file.shown.display(), input.edits.len());
    Ok(PlannedChange { after: edited.map(|text| text.body).unwrap_or_default(), summary, file })
}

fn replacement<'a>(
    arguments: &Arguments,
    at: usize,
    item: &'a Value,
) -> Result<Replacement<'a>, ArgumentError> {
    let text = |name: &str| {
        let given = item.get(name).and_then(Value::as_str);
        given.ok_or_else(|| arguments.refuse(&format!("edits[{at}].{name}"), "must be a string"))
    };
    let replace_all = match item.get("replace_all") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(all)) => *all,
        Some(Value::String(word)) if word == "true" || word == "false" => word == "true",
        Some(_) => {
            return Err(arguments.refuse(&format!("edits[{at}].replace_all"), "must be true or false"));
        }
    };
    Ok(Replacement { old: text("old_string")?, new: text("new_string")?, replace_all })
}
