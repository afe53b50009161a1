//! Structured answers: a schema, the tool with which the model returns a matching answer, and the attempts it
//! has.

mod tool;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qwen_events::{
    ClaudeTool, ErrorInfo, ErrorKind, Finish, Json, Message, Part, Role, ToolDeclaration, ToolKind, ToolSpec,
};
use qwen_schema::Schema;
use qwen_tools::Registry;
use serde_json::{Value, json};

use crate::Stop;
use crate::context::TurnContext;
use crate::graph::{Next, RunContext, Step};
use crate::react::{Delta, emit_message};

pub(crate) const TOOL: &str = "structured_output";

/// The tool. Claude's program has the same one under another name. Its arguments are the answer's schema.
pub(crate) static DECLARATION: ToolDeclaration =
    ToolDeclaration::new(TOOL, ToolKind::Session, DESCRIPTION, &[])
        .claude(&[ClaudeTool::with_name("StructuredOutput")]);

/// How often the model may fail to give a matching answer.
pub(crate) const MOST_ATTEMPTS: u32 = 5;

/// The error code of a turn that ends without the required answer.
const EXHAUSTED: &str = "max_structured_output_retries";

const DESCRIPTION: &str = "Gives your final result. Call it exactly once, when the work is done, with the whole result \
as the arguments. The user sees nothing but this result.";

/// The instruction to answer with the tool `name`.
fn instruction(name: &str) -> String {
    format!(
        "The user wants the final result as data. When the work is done, call the tool {name} with it; its parameters are \
         the form that the result must have. Do not answer in words."
    )
}

/// The schema that answers of a session must match.
#[derive(Debug)]
pub struct AnswerSchema {
    schema: Schema,
    /// The tool's description for the model.
    spec: ToolSpec,
    /// A tool's arguments are always an object: a schema for anything else is wrapped in an object under
    /// `value`.
    wrapped: bool,
}

impl AnswerSchema {
    /// Parses a JSON Schema.
    pub fn parse(text: &str) -> Result<Self, ErrorInfo> {
        let schema = Schema::parse(text).map_err(|why| unusable(&why))?;
        let wrapped = schema.value().get("type").and_then(Value::as_str) != Some("object");
        let parameters = if wrapped {
            let mut inner = schema.value().clone();
            move_references(&mut inner);
            json!({"type": "object", "properties": {"value": inner}, "required": ["value"]}).to_string()
        } else {
            schema.value().to_string()
        };
        let spec = ToolSpec {
            name: TOOL.into(),
            description: DESCRIPTION.into(),
            parameters: Json::trusted(parameters),
        };
        Ok(Self { schema, spec, wrapped })
    }

    /// The answer in the arguments of the tool, or a description of its errors.
    fn of_arguments(&self, arguments: &Json) -> Result<Json, String> {
        let mut given: Value = serde_json::from_str(arguments.as_str()).map_err(|error| error.to_string())?;
        if self.wrapped {
            let inner = given.get_mut("value").map(Value::take);
            given = inner.ok_or_else(|| "the result lacks the property \"value\"".to_owned())?;
        }
        self.fitting(&given)
    }

    /// The answer in a text: JSON alone or in a code block.
    fn of_words(&self, words: &str) -> Result<Json, String> {
        let given: Value =
            serde_json::from_str(bare(words)).map_err(|error| format!("it is not JSON: {error}"))?;
        self.fitting(&given)
    }

    fn fitting(&self, given: &Value) -> Result<Json, String> {
        let problems = self.schema.problems(given, "the result");
        if problems.is_empty() { Ok(Json::trusted(given.to_string())) } else { Err(problems.join("; ")) }
    }

    /// The schema, for a prompt.
    pub fn text(&self) -> String {
        self.schema.value().to_string()
    }
}

fn unusable(why: &qwen_schema::SchemaError) -> ErrorInfo {
    let message = format!("the JSON Schema of the answer cannot be used: {why}");
    ErrorInfo::new(ErrorKind::Usage, "invalid_json_schema", message).with_param("json_schema")
}

/// Rewrites references within a schema for its new position.
fn move_references(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            if let Some(Value::String(reference)) = keywords.get_mut("$ref")
                && let Some(pointer) = reference.strip_prefix('#')
            {
                *reference = format!("#/properties/value{pointer}");
            }
            keywords.values_mut().for_each(move_references);
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}

/// A text without the code block around it.
fn bare(words: &str) -> &str {
    let words = words.trim();
    let inner = words.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(words, |inner| inner.split_once('\n').map_or(inner, |(_, rest)| rest)).trim()
}

/// The structured answer that a turn must produce.
pub struct StructuredAnswer {
    pub form: Arc<AnswerSchema>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    answer: Option<Json>,
    failures: u32,
    /// The error of the last attempt.
    problem: String,
}

impl StructuredAnswer {
    /// A pending answer for this schema. An answer that an earlier process accepted in the same turn is
    /// reused.
    pub fn new(form: Arc<AnswerSchema>, messages: &[Message]) -> Self {
        let answer = accepted(&form, messages);
        Self { form, state: Mutex::new(State { answer, ..State::default() }) }
    }

    /// The context of an agent that can call tools, with the result tool added.
    pub fn offered_in(self: Arc<Self>, context: &TurnContext) -> TurnContext {
        let mut tools = Registry::clone(&context.tools);
        let name = tools.name_of(&DECLARATION);
        tools.add(Arc::new(tool::StructuredOutputTool { answer: self.clone(), name }));
        let system = format!("{}\n\n{}", context.system_prompt, instruction(name));
        TurnContext {
            tools: Arc::new(tools),
            system_prompt: system.trim_start().into(),
            structured: Some(self),
            ..context.clone()
        }
    }

    pub fn answer(&self) -> Option<Json> {
        self.lock().answer.clone()
    }

    /// Discards the answer, because the work continues.
    pub fn discard_answer(&self) {
        self.lock().answer = None;
    }

    /// Accepts an answer in the arguments of the tool.
    pub fn accept_arguments(&self, arguments: &Json) -> Result<(), String> {
        self.record_answer(self.form.of_arguments(arguments))
    }

    /// Accepts an answer in a text, if there is none yet.
    pub fn accept_text(&self, words: &str) -> Result<(), String> {
        if self.answer().is_some() {
            return Ok(());
        }
        self.record_answer(self.form.of_words(words))
    }

    /// Counts an attempt whose arguments could not be parsed.
    pub fn reject(&self, problem: &str) {
        // The caller reports the error to the model.
        let _ = self.record_answer(Err(problem.to_owned()));
    }

    fn record_answer(&self, given: Result<Json, String>) -> Result<(), String> {
        let mut state = self.lock();
        match given {
            Ok(answer) => {
                state.answer = Some(answer);
                Ok(())
            }
            Err(problem) => {
                state.failures += 1;
                state.problem.clone_from(&problem);
                Err(problem)
            }
        }
    }

    /// Why the turn must end, once the attempts are used up.
    pub fn exhausted(&self) -> Option<Stop> {
        let state = self.lock();
        (state.answer.is_none() && state.failures >= MOST_ATTEMPTS).then(|| {
            let message = format!(
                "the model gave no result that fits the JSON Schema in {MOST_ATTEMPTS} attempts; the last problem: {}",
                state.problem
            );
            Stop::failed(ErrorInfo::new(ErrorKind::Model, EXHAUSTED, message))
        })
    }

    /// The step that replaces a model call, if none is needed any more or none may be made.
    pub(crate) async fn conclude(&self, context: &TurnContext, cx: &RunContext) -> Option<Step<Delta>> {
        if let Some(stop) = self.exhausted() {
            return Some(Step { delta: Delta::None, next: Next::Stop(stop) });
        }
        let answer = self.answer()?;
        let message = emit_message(context, answer.as_str().into(), cx).await;
        let reply: Arc<str> = answer.as_str().into();
        let delta =
            Delta::MessageAdded { message: Some(message), calls: Vec::new(), reply, finish: Finish::Stop };
        Some(Step { delta, next: Next::End })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if a name refers to the tool.
pub(crate) fn is_tool(name: &str) -> bool {
    DECLARATION.answers_to(name)
}

/// The message to the model about an answer that does not match.
pub(crate) fn complaint(problem: &str, name: &str) -> String {
    format!("The result does not fit the schema: {problem}. Call {name} again with a result that fits.")
}

/// The message to the model when it stopped without an answer.
pub(crate) fn reminder(problem: &str, name: &str) -> String {
    format!(
        "The result is still missing: what you said is no result of the wanted form ({problem}). Call the tool {name} with \
         the whole result now."
    )
}

/// The answer that was accepted in the last turn of a conversation.
fn accepted(form: &AnswerSchema, messages: &[Message]) -> Option<Json> {
    let turn: Vec<&Message> =
        messages.iter().rev().take_while(|message| message.role != Role::User).collect();
    let parts = || turn.iter().flat_map(|message| &message.parts);
    let call = parts().find_map(|part| match part {
        Part::Call(call) if is_tool(&call.name) => Some(call),
        _ => None,
    })?;
    let answered = parts()
        .any(|part| matches!(part, Part::Result(result) if result.call_id == call.id && !result.is_error));
    form.of_arguments(&call.arguments).ok().filter(|_| answered)
}

#[cfg(test)]
mod tests;
