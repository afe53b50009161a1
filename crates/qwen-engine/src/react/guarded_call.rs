//! A call as rules, hooks and permission questions see it.

use std::path::{Component, Path};
use std::sync::Arc;

use qwen_events::{ArgumentRole, Json, ToolCall, ToolDeclaration, ToolKind};
use qwen_permissions::normal;
use qwen_tools::{SessionResources, Tool, ToolVocabulary};
use serde_json::{Map, Value};

use super::call::NotRun;
use crate::context::TurnContext;

/// The call under the name that the session uses for its tool: the model may know another one, and guards are
/// written for this one. In Claude's vocabulary a file has its absolute path without `.` and `..`, as in
/// Claude's CLI: guards compare paths.
pub(super) fn guard(call: &Arc<ToolCall>, tool: &dyn Tool, context: &TurnContext) -> Arc<ToolCall> {
    let arguments = match (context.tools.vocabulary(), tool.declaration()) {
        (ToolVocabulary::Claude, Some(declaration)) => {
            with_plain_files(&call.arguments, declaration, context.directory())
        }
        _ => None,
    };
    let name = &tool.spec().name;
    if arguments.is_none() && *name == call.name {
        return call.clone();
    }
    let arguments = arguments.unwrap_or_else(|| call.arguments.clone());
    Arc::new(ToolCall { name: name.clone(), arguments, ..(**call).clone() })
}

/// Sets the directories that a call starts from: the one to which an earlier `cd` carried over, if the call
/// `carries_directory`, or those of a sub-agent's worktree.
pub(super) fn set_directories(
    judged: &mut Arc<ToolCall>,
    tool: &dyn Tool,
    context: &TurnContext,
    carries_directory: bool,
) -> Result<(), NotRun> {
    let resources = &context.session.resources;
    if carries_directory && let Some(carried) = in_shell_directory(judged, tool.declaration(), resources) {
        *judged = Arc::new(carried);
    }
    if let Some(worktree) = &context.worktree {
        *judged = in_worktree(judged, tool.declaration(), worktree, resources)?;
    }
    Ok(())
}

/// The call of a command with the directory that an earlier `cd` carried over to it; none if it names one, or runs in
/// the session's working directory. Guards see the directory in which the command runs.
fn in_shell_directory(
    call: &ToolCall,
    declaration: Option<&ToolDeclaration>,
    resources: &SessionResources,
) -> Option<ToolCall> {
    let declaration = declaration.filter(|declaration| declaration.kind == ToolKind::Execute)?;
    let argument = declaration.with_role(ArgumentRole::WorkingDirectory).next()?;
    let directory = resources.shell_directory.get()?;
    let mut fields: Map<String, Value> = serde_json::from_str(call.arguments.as_str()).ok()?;
    if fields.get(argument.name).is_some_and(|given| !given.is_null()) {
        return None;
    }
    let shown = directory.strip_prefix(&resources.cwd).unwrap_or(&directory);
    fields.insert(argument.name.to_owned(), shown.to_string_lossy().into());
    let arguments = Json::trusted(Value::Object(fields).to_string());
    Some(ToolCall { arguments, ..call.clone() })
}

/// The call of a sub-agent that works in a worktree: paths that are relative or left out start there. Fails if it would
/// change a file of the workspace itself.
fn in_worktree(
    call: &Arc<ToolCall>,
    declaration: Option<&ToolDeclaration>,
    worktree: &Path,
    resources: &SessionResources,
) -> Result<Arc<ToolCall>, NotRun> {
    let Some(declaration) = declaration else { return Ok(call.clone()) };
    let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(call.arguments.as_str()) else {
        return Ok(call.clone());
    };
    let roles = [ArgumentRole::Path, ArgumentRole::WorkingDirectory];
    for argument in roles.into_iter().flat_map(|role| declaration.with_role(role)) {
        let given = fields.get(argument.name).and_then(Value::as_str).filter(|path| !path.trim().is_empty());
        let path = match given {
            Some(path) if path.starts_with('~') || path.contains('\0') => continue,
            Some(path) => normal(&worktree.join(path)),
            None if argument.required => continue,
            None => worktree.to_owned(),
        };
        let is_of_workspace = path.starts_with(&resources.cwd) && !path.starts_with(worktree);
        if declaration.kind == ToolKind::Edit && is_of_workspace {
            let text = format!(
                "{} was not changed: this sub-agent works in the git worktree {}. Use relative paths, or paths in it.",
                path.display(),
                worktree.display()
            );
            return Err(NotRun::Failed("outside_worktree", text));
        }
        fields.insert(argument.name.to_owned(), path.to_string_lossy().into());
    }
    let arguments = Json::trusted(Value::Object(fields).to_string());
    Ok(Arc::new(ToolCall { arguments, ..(**call).clone() }))
}

/// True if later calls may have to run in another directory than this one.
pub(super) fn may_change_directory(call: &ToolCall, declaration: Option<&ToolDeclaration>) -> bool {
    declaration.is_some_and(|declaration| declaration.kind == ToolKind::Execute)
        && qwen_tools::may_change_directory(call.arguments.as_str())
}

/// The arguments with absolute, plain paths; none if they have them already.
fn with_plain_files(arguments: &Json, declaration: &ToolDeclaration, cwd: &Path) -> Option<Json> {
    if !matches!(declaration.kind, ToolKind::Read | ToolKind::Edit) {
        return None;
    }
    let mut fields: Map<String, Value> = serde_json::from_str(arguments.as_str()).ok()?;
    let mut has_changed = false;
    for argument in declaration.with_role(ArgumentRole::Path).filter(|argument| argument.required) {
        let Some(Value::String(path)) = fields.get_mut(argument.name) else { continue };
        // A name that starts with `~` is left to the tool.
        if path.trim().is_empty() || path.starts_with('~') || path.contains('\0') {
            continue;
        }
        let named = Path::new(&*path);
        let has_dots =
            named.components().any(|part| matches!(part, Component::CurDir | Component::ParentDir));
        if has_dots || named.is_relative() {
            *path = normal(&cwd.join(&*path)).to_string_lossy().into_owned();
            has_changed = true;
        }
    }
    has_changed.then(|| Json::trusted(Value::Object(fields).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_get_absolute_paths_without_dots() {
        let plain = |tool: &str, arguments: &str| {
            let declaration = crate::TOOLS.find(tool).expect("a tool");
            with_plain_files(&Json::trusted(arguments), declaration, Path::new("/w/sub"))
                .map(|json| json.as_str().to_owned())
        };
        let written = plain("Write", r#"{"file_path":"./a/../../b","content":"./c"}"#);
        assert_eq!(written.as_deref(), Some(r#"{"content":"./c","file_path":"/w/b"}"#));
        assert_eq!(plain("Read", r#"{"file_path":"/etc/x"}"#), None);
        assert_eq!(plain("Read", r#"{"file_path":"a/b"}"#).as_deref(), Some(r#"{"file_path":"/w/sub/a/b"}"#));
        assert_eq!(
            plain("Read", r#"{"file_path":"/a/../etc/x"}"#).as_deref(),
            Some(r#"{"file_path":"/etc/x"}"#)
        );
        assert_eq!(plain("Read", r#"{"file_path":"~/x"}"#), None);
        assert_eq!(plain("Bash", r#"{"command":"cat a"}"#), None);
        assert_eq!(plain("Grep", r#"{"pattern":"a","path":"b"}"#), None);
    }
}
