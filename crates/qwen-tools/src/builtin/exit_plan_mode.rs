//! `exit_plan_mode`: presents a plan and, once the user approved it, leaves plan mode.

use qwen_events::{
    Argument, ArgumentValue, ClaudeTool, Confirmation, Display, ToolCall, ToolDeclaration, ToolKind,
};

use crate::declared::{DeclaredTool, tool_input};
use crate::refusal::Refusal;
use crate::{CallContext, Outcome, ToolFuture};

const DESCRIPTION: &str = "Presents your plan to the user for approval. Use it only in plan mode, once you have \
looked at everything you need and the plan is complete.";

pub(super) struct ExitPlanMode;

tool_input! {
    struct Input {
        plan: String = Argument::new(ArgumentValue::Text, "The plan, in Markdown, short and concrete."),
    }
}

impl DeclaredTool for ExitPlanMode {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("exit_plan_mode", ToolKind::ExitPlan, DESCRIPTION, Input::ARGUMENTS)
            .claude(&[ClaudeTool { defaults: &[("plan", "\"\"")], ..ClaudeTool::with_name("ExitPlanMode") }]);

    fn confirmation(call: &ToolCall, _: &CallContext) -> Option<Confirmation> {
        let (input, _) = Input::parse(call).ok()?;
        Some(Confirmation::Plan { plan: input.plan.into() })
    }

    fn run<'a>(call: &'a ToolCall, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call).unwrap_or_else(Outcome::from)))
    }
}

fn run(call: &ToolCall) -> Result<Outcome, Refusal> {
    let (Input { plan }, _) = Input::parse(call)?;
    let display = Display::Plan { message: "The plan was approved.".into(), plan: plan.into() };
    Ok(Outcome {
        display: Some(display),
        ..Outcome::success("The user approved the plan. Start with it now.")
    })
}
