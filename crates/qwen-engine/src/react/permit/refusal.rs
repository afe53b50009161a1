//! The text of a refusal: who refused, the reason in the refuser's words, and what can be done.

use std::path::Path;
use std::sync::Arc;

use qwen_events::{Decision, ToolCall, ToolKind, Verdict};
use qwen_tools::Tool;

use crate::context::TurnContext;
use crate::permissions::RefusedCall;
use crate::react::call::Refusal;
use crate::{Audience, TOOLS};

/// What the model should do after a user or host has refused.
const CHOOSE_ANOTHER_WAY: &str = "Do not repeat the call: choose another way, or report what you would need.";

/// Who refused a call that the rules or the mode forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refuser {
    Rule,
    Mode,
    Hook,
}

impl Refuser {
    /// The refuser of a call with this decision.
    pub(super) fn from_decision(decision: &Decision, by_hook: bool) -> Self {
        match (&decision.rule, by_hook) {
            (_, true) => Self::Hook,
            (Some(_), false) => Self::Rule,
            (None, false) => Self::Mode,
        }
    }
}

/// The refusal of a call that a rule, the mode or a hook forbids.
pub(super) fn forbidden(
    turn: &TurnContext,
    call: &ToolCall,
    tool: &dyn Tool,
    decision: &Decision,
    by_hook: bool,
) -> Refusal {
    let refuser = Refuser::from_decision(decision, by_hook);
    let who = match refuser {
        Refuser::Rule => "a permission rule",
        Refuser::Mode => "the approval mode",
        Refuser::Hook => "a hook",
    };
    let permissions = &turn.session.process.permissions;
    let refused = RefusedCall { call, declaration: tool.declaration(), blocked_path: None };
    let subject = permissions.subject(&refused).filter(|subject| !decision.reason.contains(subject.as_str()));
    let subject = subject.map(|subject| format!(" (`{subject}`)")).unwrap_or_default();
    let mut text =
        format!("Permission for {}{subject} was declined by {who}: {}", call.name, decision.reason);
    if refuser == Refuser::Mode && permissions.mode() == "plan" {
        add_sentence(&mut text, &plan_advice(turn));
    } else {
        let audience = turn.session.process.audience;
        if let Some(remedy) = permissions.rule_remedy(decision.verdict, decision.rule.as_deref(), audience) {
            add_sentence(&mut text, &format!("The user can {remedy}."));
        }
        add_sentence(&mut text, CHOOSE_ANOTHER_WAY);
    }
    Refusal { text, reason: decision.reason.clone() }
}

/// What the model can do in plan mode.
fn plan_advice(turn: &TurnContext) -> String {
    let exit = TOOLS.find("exit_plan_mode").map_or("exit_plan_mode", |tool| turn.tools.name_of(tool));
    if turn.session.process.can_answer() {
        format!("Present your plan with {exit}: changes are possible once it is approved.")
    } else {
        let remedy = turn
            .session
            .process
            .permissions
            .rule_remedy(Verdict::Deny, None, turn.session.process.audience)
            .unwrap_or_default();
        format!("No one can approve {exit} in this run: answer with the plan. The user can {remedy}.")
    }
}

/// The refusal of a call that requires approval which no one can give.
pub(super) fn unanswerable(
    turn: &TurnContext,
    call: &ToolCall,
    tool: &dyn Tool,
    decision: &Decision,
    blocked: Option<&Path>,
) -> Refusal {
    match tool.declaration().map(|declaration| declaration.kind) {
        Some(ToolKind::Ask) => return unanswerable_question(call, decision),
        Some(ToolKind::ExitPlan) => {
            return Refusal { text: plan_advice(turn), reason: decision.reason.clone() };
        }
        _ => {}
    }
    let refused = RefusedCall { call, declaration: tool.declaration(), blocked_path: blocked };
    let subject =
        turn.session.process.permissions.subject(&refused).map(|subject| format!(" for `{subject}`"));
    let why = if turn.session.process.permissions.denies_instead_of_asking() {
        "the mode dontAsk denies what would be asked"
    } else {
        "no one can give it in this run"
    };
    let reason = &decision.reason;
    let process = &turn.session.process;
    let mut text = format!("{} requires permission{}, and {why}.", call.name, subject.unwrap_or_default());
    // The question's own wording would repeat that an answer is missing.
    let cause =
        reason.strip_prefix("It requires approval").unwrap_or(reason).trim_start_matches([':', '.', ' ']);
    if !cause.is_empty() {
        add_sentence(&mut text, &format!("Reason: {cause}"));
    }
    let remedy = process.permissions.remedy(&refused, process.audience).unwrap_or_else(|| {
        let change =
            process.permissions.rule_remedy(decision.verdict, decision.rule.as_deref(), process.audience);
        let change = change.map(|change| format!(", or {change}")).unwrap_or_default();
        let answer = match process.audience {
            Audience::Shell => "answer the question at a terminal or with --ask-later",
            Audience::Program => "answer permission requests (the option can_use_tool)",
            Audience::Terminal => "answer the question in another approval mode",
        };
        format!("{answer}{change}")
    });
    let who = if process.audience == Audience::Program { "host" } else { "user" };
    add_sentence(&mut text, &format!("The {who} can {remedy}."));
    add_sentence(&mut text, "Continue without it, and report what was not done.");
    Refusal { text, reason: reason.clone() }
}

/// The refusal of a question to the user.
fn unanswerable_question(call: &ToolCall, decision: &Decision) -> Refusal {
    let text = format!(
        "{} is not possible: no one can answer questions in this run. Decide yourself, and report your decision.",
        call.name
    );
    Refusal { text, reason: decision.reason.clone() }
}

/// The refusal of a call that the user or the host was asked about.
pub(super) fn declined(
    turn: &TurnContext,
    call: &ToolCall,
    message: Option<Arc<str>>,
    asked_because: &Arc<str>,
) -> Refusal {
    let who = match turn.session.process.audience {
        Audience::Program => "the host",
        Audience::Shell | Audience::Terminal => "the user",
    };
    let mut text = format!("Permission for {} was declined by {who}", call.name);
    let message = message.filter(|message| !message.trim().is_empty());
    match &message {
        Some(message) => text.push_str(&format!(": {}", message.trim())),
        None => text.push_str(", without a reason"),
    }
    add_sentence(&mut text, CHOOSE_ANOTHER_WAY);
    Refusal { text, reason: message.unwrap_or_else(|| asked_because.clone()) }
}

/// Appends a sentence. A refuser's reason need not end like one.
fn add_sentence(text: &mut String, sentence: &str) {
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text.push(' ');
    text.push_str(sentence);
}
