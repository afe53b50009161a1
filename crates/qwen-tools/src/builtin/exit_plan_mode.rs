//! `exit_plan_mode`: shows a plan and, once somebody agreed to it, ends the planning.

use qwen_events::{Confirmation, Display, ToolCall, ToolSpec};

use super::spec;
use crate::refusal::Refusal;
use crate::{Arguments, Outcome, Tool, ToolCx, ToolFuture};

const DESCRIPTION: &str = "Shows your plan to the user and asks to begin. Only in plan mode, once you have looked at \
all you need and the plan is complete.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"plan":{"type":"string","description":"The plan, in Markdown, short and concrete."}},
"required":["plan"]}"#;

/// The tool.
pub(super) struct ExitPlanMode {
    spec: ToolSpec,
}

impl ExitPlanMode {
    pub(super) fn new() -> Self {
        Self { spec: spec("exit_plan_mode", DESCRIPTION, SCHEMA) }
    }
}

impl Tool for ExitPlanMode {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn confirmation(&self, call: &ToolCall, _: &ToolCx) -> Option<Confirmation> {
        let arguments = Arguments::of(call).ok()?;
        Some(Confirmation::Plan { plan: arguments.text("plan").ok()?.into() })
    }

    fn run<'a>(&'a self, call: &'a ToolCall, _: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call).unwrap_or_else(Outcome::from)))
    }
}

fn run(call: &ToolCall) -> Result<Outcome, Refusal> {
    let arguments = Arguments::of(call)?;
    let plan = arguments.text("plan")?;
    let display = Display::Plan { message: "The plan was agreed to.".into(), plan: plan.into() };
    Ok(Outcome {
        display: Some(display),
        ..Outcome::success("The user agreed to the plan. Begin with it now.")
    })
}
