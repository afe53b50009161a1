//! Declared tools: the schema for the model and the argument parser come from one declaration.

use std::fmt::Write;
use std::marker::PhantomData;

use qwen_events::{Argument, ArgumentValue, Confirmation, Json, ToolCall, ToolDeclaration, ToolSpec};
use serde_json::Value;

use crate::{ArgumentError, Arguments, CallContext, Outcome, Tool, ToolFuture};

/// A built-in tool: a declaration and its implementation.
pub(crate) trait DeclaredTool: Send + Sync + 'static {
    const DECLARATION: &'static ToolDeclaration;

    /// See [`Tool::confirmation`].
    fn confirmation(_call: &ToolCall, _cx: &CallContext) -> Option<Confirmation> {
        None
    }

    /// See [`Tool::check`].
    fn check(_call: &ToolCall, _cx: &CallContext) -> Option<Outcome> {
        None
    }

    /// See [`Tool::run`].
    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a>;
}

/// A declared tool with its specification.
pub(crate) struct Declared<T> {
    spec: ToolSpec,
    tool: PhantomData<T>,
}

impl<T: DeclaredTool> Declared<T> {
    pub(crate) fn new() -> Self {
        Self { spec: spec(T::DECLARATION), tool: PhantomData }
    }
}

impl<T: DeclaredTool> Tool for Declared<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        Some(T::DECLARATION)
    }

    fn confirmation(&self, call: &ToolCall, cx: &CallContext) -> Option<Confirmation> {
        T::confirmation(call, cx)
    }

    fn check(&self, call: &ToolCall, cx: &CallContext) -> Option<Outcome> {
        T::check(call, cx)
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        T::run(call, cx)
    }
}

/// The specification of a declared tool for the model, in the Qwen vocabulary.
pub fn spec(declaration: &ToolDeclaration) -> ToolSpec {
    ToolSpec {
        name: declaration.name.into(),
        description: declaration.description.into(),
        parameters: Json::trusted(schema(declaration.arguments)),
    }
}

/// The beginning of every schema of arguments.
const OPENING: &str = r#"{"type":"object","properties":{"#;

/// The schema of a tool that has arguments, with further optional ones in front of them.
pub fn with_arguments(schema: &str, added: &[Argument]) -> String {
    let Some(own) = schema.strip_prefix(OPENING).filter(|own| !added.is_empty() && !own.starts_with('}'))
    else {
        return schema.to_owned();
    };
    let mut with = String::from(OPENING);
    for argument in added {
        push_text(&mut with, argument.name);
        with.push_str(":{");
        push_property(&mut with, argument);
        with.push_str("},");
    }
    with.push_str(own);
    with
}

/// The JSON Schema of a tool's arguments, on one line.
pub fn schema<'a>(arguments: impl IntoIterator<Item = &'a Argument>) -> String {
    let mut schema = String::with_capacity(1024);
    schema.push_str(OPENING);
    let mut required = String::new();
    for (at, argument) in arguments.into_iter().enumerate() {
        if at > 0 {
            schema.push(',');
        }
        push_text(&mut schema, argument.name);
        schema.push_str(":{");
        push_property(&mut schema, argument);
        schema.push('}');
        if argument.required {
            required.push_str(if required.is_empty() { r#","required":["# } else { "," });
            push_text(&mut required, argument.name);
        }
    }
    schema.push('}');
    if !required.is_empty() {
        schema.push_str(&required);
        schema.push(']');
    }
    schema.push('}');
    schema
}

/// Appends the keywords of one argument.
fn push_property(out: &mut String, argument: &Argument) {
    match argument.value {
        ArgumentValue::Text | ArgumentValue::NonBlankText => out.push_str(r#""type":"string""#),
        ArgumentValue::Flag => out.push_str(r#""type":"boolean""#),
        ArgumentValue::Number { min, max } => {
            // Writing to a string cannot fail.
            let _ = write!(out, r#""type":"integer","minimum":{min}"#);
            if max != u64::MAX {
                let _ = write!(out, r#","maximum":{max}"#);
            }
        }
        ArgumentValue::Choice(words) => {
            out.push_str(r#""type":"string","enum":["#);
            for (at, word) in words.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_text(out, word);
            }
            out.push(']');
        }
        ArgumentValue::Texts => out.push_str(r#""type":"array","items":{"type":"string"}"#),
        ArgumentValue::Json { before, .. } => out.push_str(before),
    }
    out.push_str(r#","description":"#);
    push_text(out, argument.description);
    if let ArgumentValue::Json { after, .. } = argument.value {
        out.push(',');
        out.push_str(after);
    }
}

/// Appends a text as a JSON string.
fn push_text(out: &mut String, text: &str) {
    if text.bytes().any(|byte| matches!(byte, b'"' | b'\\') || byte < 0x20) {
        out.push_str(&Value::from(text).to_string());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

/// A Rust type that an argument is read into.
pub(crate) trait FromArgument: Sized {
    const REQUIRED: bool;

    fn read(arguments: &Arguments, declared: &Argument) -> Result<Self, ArgumentError>;
}

impl FromArgument for String {
    const REQUIRED: bool = true;

    fn read(arguments: &Arguments, declared: &Argument) -> Result<Self, ArgumentError> {
        let text = arguments.text(declared.name)?;
        check(arguments, declared, text)?;
        Ok(text.to_owned())
    }
}

impl FromArgument for Option<String> {
    const REQUIRED: bool = false;

    fn read(arguments: &Arguments, declared: &Argument) -> Result<Self, ArgumentError> {
        let text = arguments.optional_text(declared.name)?;
        text.map_or(Ok(()), |text| check(arguments, declared, text))?;
        Ok(text.map(str::to_owned))
    }
}

impl FromArgument for Option<bool> {
    const REQUIRED: bool = false;

    fn read(arguments: &Arguments, declared: &Argument) -> Result<Self, ArgumentError> {
        arguments.optional_bool(declared.name)
    }
}

impl FromArgument for Option<u64> {
    const REQUIRED: bool = false;

    fn read(arguments: &Arguments, declared: &Argument) -> Result<Self, ArgumentError> {
        let range = match declared.value {
            ArgumentValue::Number { min, max } => min..=max,
            _ => 0..=u64::MAX,
        };
        arguments.optional_number(declared.name, range)
    }
}

/// Optional; an absent list is empty.
impl FromArgument for Vec<String> {
    const REQUIRED: bool = false;

    fn read(arguments: &Arguments, declared: &Argument) -> Result<Self, ArgumentError> {
        Ok(arguments.optional_texts(declared.name)?.into_iter().map(str::to_owned).collect())
    }
}

/// A required list of arbitrary values.
impl FromArgument for Vec<Value> {
    const REQUIRED: bool = true;

    fn read(arguments: &Arguments, declared: &Argument) -> Result<Self, ArgumentError> {
        arguments.list(declared.name).map(<[Value]>::to_vec)
    }
}

fn check(arguments: &Arguments, declared: &Argument, text: &str) -> Result<(), ArgumentError> {
    match declared.value {
        ArgumentValue::NonBlankText => arguments.nonempty_text(declared.name).map(|_| ()),
        ArgumentValue::Choice(words) if !words.contains(&text) => {
            let problem = match words {
                [first @ .., last] => format!("must be {} or {last}", first.join(", ")),
                [] => "has no value that can be used".to_owned(),
            };
            Err(arguments.refuse(declared.name, problem))
        }
        _ => Ok(()),
    }
}

/// Declares the arguments of a tool as a struct. Each field has the name of an argument, its Rust type, which
/// determines whether it is required, and an [`Argument`] with the rest. The struct gets `ARGUMENTS`, for the
/// declaration, and `parse`.
macro_rules! tool_input {
    (struct $Input:ident { $($field:ident: $Type:ty = $argument:expr),* $(,)? }) => {
        struct $Input {
            $($field: $Type),*
        }

        impl $Input {
            const ARGUMENTS: &'static [qwen_events::Argument] = &[$(qwen_events::Argument {
                name: stringify!($field),
                required: <$Type as $crate::declared::FromArgument>::REQUIRED,
                ..$argument
            }),*];

            fn parse(call: &qwen_events::ToolCall) -> Result<(Self, $crate::Arguments), $crate::ArgumentError> {
                let arguments = $crate::Arguments::parse(call)?;
                let mut declared = Self::ARGUMENTS.iter();
                let input = Self {
                    $($field: {
                        let declared = declared.next().ok_or_else(|| arguments.refuse(stringify!($field), "is not declared"))?;
                        <$Type as $crate::declared::FromArgument>::read(&arguments, declared)?
                    }),*
                };
                Ok((input, arguments))
            }
        }
    };
}
pub(crate) use tool_input;
