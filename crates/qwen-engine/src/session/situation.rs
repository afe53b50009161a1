//! What the model knows about its situation: mode, who answers, what runs without approval, and the
//! surroundings. The first user message of a conversation carries it as one block; changes follow in the next
//! request.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qwen_events::{ToolDeclaration, ToolKind};
use qwen_tools::Registry;

use crate::context::SessionContext;
use crate::{Audience, TOOLS};

/// The maximum number of rules of one kind that are listed.
const MAX_RULES: usize = 8;
/// The maximum length of a listed rule, in characters.
const MAX_RULE: usize = 60;

/// The surroundings of a session, which only the binary knows.
pub trait Surroundings: Send + Sync {
    /// The limits that hold now and may change while the process runs: sandbox, network and trust. Called before
    /// each request, so it must be cheap.
    fn limits(&self) -> Vec<SituationFact>;

    /// The environment of work in `cwd` as of now. Called once per session and process, and per sub-agent.
    fn survey(&self, cwd: &Path) -> Vec<SituationFact>;
}

/// A session without known surroundings.
pub struct NoSurroundings;

impl Surroundings for NoSurroundings {
    fn limits(&self) -> Vec<SituationFact> {
        Vec::new()
    }

    fn survey(&self, _cwd: &Path) -> Vec<SituationFact> {
        Vec::new()
    }
}

/// One line of the description: a topic, such as `mode`, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SituationFact {
    pub topic: Arc<str>,
    pub text: Arc<str>,
    /// False for a fact that tools change all the time: a difference is not reported.
    pub is_reported: bool,
}

impl SituationFact {
    /// A fact whose changes are reported. Line breaks become spaces.
    pub fn new(topic: &str, text: &str) -> Self {
        // The controls beyond ASCII begin with this byte in UTF-8.
        let is_plain = text.bytes().all(|byte| !byte.is_ascii_control() && byte != 0xc2);
        let text = if is_plain {
            text.into()
        } else {
            let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            text.into()
        };
        Self { topic: topic.into(), text, is_reported: true }
    }

    /// The same fact, whose changes are not reported.
    #[must_use]
    pub fn unreported(self) -> Self {
        Self { is_reported: false, ..self }
    }
}

/// What the model of one agent was told.
#[derive(Default)]
pub(crate) struct Situation {
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// The block of the first user message; `None` before the first turn.
    block: Option<Arc<str>>,
    facts: Vec<SituationFact>,
    /// The facts of this process at the last request, before redaction: most requests change none of them.
    last_seen: Vec<SituationFact>,
    /// The facts come from the log of an earlier process.
    is_restored: bool,
}

impl Situation {
    /// The description that an earlier process logged: the first one, and the last one if it changed.
    pub(crate) fn restored(first: &str, last: &str) -> Self {
        let told =
            Told { block: Some(block(first)), facts: parse(last), is_restored: true, ..Told::default() };
        Self { told: Mutex::new(told) }
    }

    /// The description for a sub-agent with these tools, as of its start. It stays as it is.
    pub(crate) fn for_subagent(&self, context: &SessionContext, subagent: &SubagentView<'_>) -> Self {
        if self.lock().block.is_none() {
            return Self::default();
        }
        let tools = subagent.tools;
        let mut facts = subagent_decisions(context, subagent);
        if tools.kinds().any(|kind| kind == ToolKind::Execute) {
            facts.extend(context.surroundings.limits());
        }
        facts.extend(subagent.worktree.map(|text| SituationFact::new("isolation", text)));
        facts.extend(context.surroundings.survey(subagent.cwd));
        let facts = redacted(context, facts);
        let told = Told { block: Some(block(&render(&facts))), facts, ..Told::default() };
        Self { told: Mutex::new(told) }
    }

    /// The block for requests; empty if there is none.
    pub(crate) fn block(&self) -> Arc<str> {
        self.lock().block.clone().unwrap_or_default()
    }

    /// Describes the situation at the start of a turn. Returns what changed since the model was last told, and
    /// the description to log if it is new.
    pub(crate) fn begin_turn(
        &self,
        context: &SessionContext,
        tools: &Registry,
        model: Option<&Arc<str>>,
        after_interrupt: bool,
    ) -> SituationUpdate {
        let mut told = self.lock();
        if told.block.is_none() {
            let mut facts = current_facts(context, tools, model);
            let last_seen = facts.clone();
            facts.extend(context.surroundings.survey(&context.resources.cwd));
            let facts = redacted(context, facts);
            let text = render(&facts);
            *told = Told { block: Some(block(&text)), facts, last_seen, is_restored: false };
            return SituationUpdate { news: None, log: Some(text.into()) };
        }
        let mut current = current_facts(context, tools, model);
        if !after_interrupt && !told.is_restored && current == told.last_seen {
            return SituationUpdate::default();
        }
        told.last_seen.clone_from(&current);
        let mut preface = String::new();
        if after_interrupt {
            preface.push_str(INTERRUPTED);
        }
        if std::mem::take(&mut told.is_restored) {
            current.extend(context.surroundings.survey(&context.resources.cwd));
            preface.push_str(RESUMED);
            if let Some(tasks) = told.facts.iter().find(|fact| &*fact.topic == TASKS) {
                preface
                    .push_str(&format!("Background tasks that ended with the earlier one: {}\n", tasks.text));
            }
        }
        told.update(redacted(context, current), &preface)
    }

    /// Returns what changed during a turn.
    pub(crate) fn refresh(
        &self,
        context: &SessionContext,
        tools: &Registry,
        model: Option<&Arc<str>>,
    ) -> SituationUpdate {
        let mut told = self.lock();
        if told.block.is_none() {
            return SituationUpdate::default();
        }
        let current = current_facts(context, tools, model);
        if current == told.last_seen {
            return SituationUpdate::default();
        }
        told.last_seen.clone_from(&current);
        told.update(redacted(context, current), "")
    }

    /// Puts all that the model was told into the block, because a summary replaced the conversation.
    pub(crate) fn fold_changes(&self) {
        let mut told = self.lock();
        if told.block.is_some() {
            told.block = Some(block(&render(&told.facts)));
        }
    }

    /// Forgets the description: the conversation starts over.
    pub(crate) fn clear(&self) {
        *self.lock() = Told::default();
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The difference between what the model was told and what holds now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SituationUpdate {
    /// The text for the next request.
    pub news: Option<String>,
    /// The whole description, for the log.
    pub log: Option<Arc<str>>,
}

/// What a new process changes in every session that it resumes.
const RESUMED: &str = "A new process continues this session: $TMPDIR is empty, the files with long results of earlier \
                       calls are gone, and a file must be read again before it can be overwritten.\n";

/// The topic of the background tasks that are running. Tool results and reminders tell the model about them; the
/// fact survives a summary of the conversation and names the tasks that a new process misses.
const TASKS: &str = "background tasks";

/// The mark of a turn that was cancelled.
const INTERRUPTED: &str =
    "The turn before this message was interrupted: what it had begun may be incomplete.\n";

impl Told {
    fn update(&mut self, current: Vec<SituationFact>, preface: &str) -> SituationUpdate {
        let is_news = |fact: &&SituationFact| {
            let known = self.facts.iter().find(|known| known.topic == fact.topic);
            known.map_or("", |known| &*known.text) != &*fact.text
        };
        let changed: Vec<SituationFact> = current.iter().filter(is_news).cloned().collect();
        let reported: Vec<SituationFact> = changed.iter().filter(|fact| fact.is_reported).cloned().collect();
        if changed.is_empty() && preface.is_empty() {
            return SituationUpdate::default();
        }
        replace(&mut self.facts, current);
        if reported.is_empty() && preface.is_empty() {
            return SituationUpdate { news: None, log: Some(render(&self.facts).into()) };
        }
        let mut news = format!("<situation>\n{preface}");
        if !reported.is_empty() {
            news.push_str("Changed since you were told:\n");
            news.push_str(&render(&reported));
        }
        news.push_str("</situation>");
        let log = (!changed.is_empty()).then(|| render(&self.facts).into());
        SituationUpdate { news: Some(news), log }
    }
}

/// Replaces facts by those of the same topic, and adds new ones. An empty text removes the fact.
fn replace(facts: &mut Vec<SituationFact>, current: Vec<SituationFact>) {
    for fact in current {
        match facts.iter_mut().find(|known| known.topic == fact.topic) {
            Some(known) => *known = fact,
            None => facts.push(fact),
        }
    }
    facts.retain(|fact| !fact.text.is_empty());
}

fn block(facts: &str) -> Arc<str> {
    format!("<situation>\n{facts}</situation>").into()
}

/// One line per fact that holds.
fn render(facts: &[SituationFact]) -> String {
    let held = facts.iter().filter(|fact| !fact.text.is_empty());
    held.map(|fact| format!("{}: {}\n", fact.topic, fact.text)).collect()
}

fn parse(text: &str) -> Vec<SituationFact> {
    let facts = text.lines().filter_map(|line| line.split_once(": "));
    facts.map(|(topic, text)| SituationFact::new(topic, text)).collect()
}

/// The facts without secrets: they go to the model's server, a third party.
fn redacted(context: &SessionContext, facts: Vec<SituationFact>) -> Vec<SituationFact> {
    let redact = |fact: SituationFact| {
        let text = context.resources.redactor.redact(&fact.text).as_ref().into();
        SituationFact { text, ..fact }
    };
    facts.into_iter().map(redact).collect()
}

/// What a sub-agent's description depends on.
pub(crate) struct SubagentView<'a> {
    pub tools: &'a Registry,
    pub model: &'a str,
    /// The directory in which its commands start.
    pub cwd: &'a Path,
    /// Its git worktree, described.
    pub worktree: Option<&'a str>,
}

/// The facts that may change between two requests. `model` is that of the prompt, if it names one.
fn current_facts(context: &SessionContext, tools: &Registry, model: Option<&Arc<str>>) -> Vec<SituationFact> {
    let mut facts = decisions(context, tools, model);
    facts.extend(context.surroundings.limits());
    facts
}

/// The facts that the session itself decides.
fn decisions(context: &SessionContext, tools: &Registry, model: Option<&Arc<str>>) -> Vec<SituationFact> {
    let mode = context.process.permissions.mode();
    let can_answer = context.process.can_answer();
    let overrides = &context.process.overrides;
    let model = model.cloned().or_else(|| overrides.model());
    let model = model.unwrap_or_else(|| context.model.name().into());
    vec![
        SituationFact::new("mode", &describe_mode(mode, can_answer, tools)),
        SituationFact::new("answers", describe_answers(context, can_answer)),
        SituationFact::new("without approval", &describe_approvals(context, mode)),
        SituationFact::new("model", &model),
        SituationFact::new("policy of the host", &overrides.policy_description().unwrap_or_default()),
        SituationFact::new(TASKS, &describe_tasks(context)).unreported(),
    ]
}

/// The same for a sub-agent: it asks no questions, cannot leave plan mode and has no background tasks of the
/// session.
fn subagent_decisions(context: &SessionContext, subagent: &SubagentView<'_>) -> Vec<SituationFact> {
    let mode = context.process.permissions.mode();
    let described = match mode {
        "plan" => "plan. Read only: every change is refused".to_owned(),
        _ => describe_mode(mode, false, subagent.tools),
    };
    let only_reads = |kind: ToolKind| {
        matches!(kind, ToolKind::Read | ToolKind::Session | ToolKind::Ask | ToolKind::ExitPlan)
    };
    let without_approval = if subagent.tools.kinds().all(only_reads) {
        "reading in the workspace".to_owned()
    } else {
        describe_approvals(context, mode)
    };
    let policy = context.process.overrides.policy_description();
    vec![
        SituationFact::new("mode", &described),
        SituationFact::new("answers", describe_subagent_answers(context)),
        SituationFact::new("without approval", &without_approval),
        SituationFact::new("model", subagent.model),
        SituationFact::new("policy of the host", &policy.unwrap_or_default()),
    ]
}

fn describe_tasks(context: &SessionContext) -> String {
    let running = context.resources.tasks.running();
    let named = running.iter().map(|task| {
        let description: String = task.description.chars().take(MAX_RULE).collect();
        format!("{} ({description})", task.id)
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Who decides about the calls of a sub-agent. It never asks questions itself.
fn describe_subagent_answers(context: &SessionContext) -> &'static str {
    match (context.process.can_answer(), context.process.audience) {
        (true, Audience::Terminal) => "no one answers questions; a user at the terminal approves calls",
        (true, Audience::Program | Audience::Shell) => "no one answers questions; the host approves calls",
        (false, _) => describe_answers(context, false),
    }
}

fn describe_mode(mode: &str, can_answer: bool, tools: &Registry) -> String {
    let name = |declared: Option<&'static ToolDeclaration>| declared.map_or("", |tool| tools.name_of(tool));
    match mode {
        "plan" if can_answer => format!(
            "plan. Read and plan only: every change is refused. When the plan is complete, present it with {}; the user's \
             approval ends plan mode",
            name(TOOLS.find("exit_plan_mode"))
        ),
        "plan" => "plan. Read and plan only: every change is refused. No one can approve leaving plan mode, so answer \
                   with the plan"
            .to_owned(),
        "dontAsk" => "dontAsk. What would need approval is refused without a question".to_owned(),
        other => other.to_owned(),
    }
}

fn describe_answers(context: &SessionContext, can_answer: bool) -> &'static str {
    match (can_answer, context.process.audience) {
        (true, Audience::Terminal) => "a user at the terminal answers questions and approves calls",
        (true, Audience::Program) => "the host program answers questions and approves calls",
        (true, Audience::Shell) => {
            "questions and permission requests are answered, possibly in a later run of this session"
        }
        (false, _) => {
            "no one can answer: calls that need approval are refused. Decide yourself, and report what you could not do"
        }
    }
}

/// The mode's defaults and the rules, summarised.
fn describe_approvals(context: &SessionContext, mode: &str) -> String {
    let mut text = match mode {
        "plan" => "reading in the workspace and commands that only read, nothing else",
        "yolo" => "everything, except what a rule denies or asks about",
        "auto-edit" => {
            "reading and editing in the workspace, and commands that only read; the rest needs approval"
        }
        _ => "reading in the workspace, and commands that only read; the rest needs approval",
    }
    .to_owned();
    let rules = context.process.permissions.listed_rules();
    for (behavior, title) in [("allow", "allowed by rule"), ("ask", "always asked"), ("deny", "denied")] {
        let named: Vec<String> = rules
            .iter()
            .filter(|rule| rule.behavior == behavior)
            .map(|rule| rule.text.chars().take(MAX_RULE).collect())
            .collect();
        if named.is_empty() || (mode == "plan" && behavior == "allow") {
            continue;
        }
        let listed = named.iter().take(MAX_RULES).map(String::as_str).collect::<Vec<_>>().join(", ");
        // Writing to a `String` cannot fail.
        let _ = write!(text, "; {title}: {listed}");
        if named.len() > MAX_RULES {
            let _ = write!(text, " and {} more", named.len() - MAX_RULES);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(facts: &[(&str, &str)]) -> Told {
        let facts = facts.iter().map(|(topic, text)| SituationFact::new(topic, text)).collect();
        Told { block: Some("".into()), facts, ..Told::default() }
    }

    #[test]
    fn a_fact_that_is_not_reported_is_logged_and_can_be_removed() {
        let mut told = told(&[("mode", "default")]);
        let now = |tasks| {
            vec![SituationFact::new("mode", "default"), SituationFact::new(TASKS, tasks).unreported()]
        };
        assert_eq!(told.update(now(""), ""), SituationUpdate::default());
        let started = told.update(now("shell-1 (serve)"), "");
        assert_eq!(started.news, None);
        assert_eq!(started.log.as_deref(), Some("mode: default\nbackground tasks: shell-1 (serve)\n"));
        assert_eq!(told.update(now(""), "").log.as_deref(), Some("mode: default\n"));
        assert_eq!(told.update(now(""), ""), SituationUpdate::default());
    }

    #[test]
    fn only_what_changed_is_reported_and_only_once() {
        let mut told = told(&[("mode", "default"), ("answers", "no one"), ("files", "a")]);
        let now = || {
            vec![
                SituationFact::new("mode", "plan"),
                SituationFact::new("answers", "no one"),
                SituationFact::new("files", "b").unreported(),
            ]
        };
        let update = told.update(now(), "");
        let news = "<situation>\nChanged since you were told:\nmode: plan\n</situation>";
        assert_eq!(update.news.as_deref(), Some(news));
        assert_eq!(update.log.as_deref(), Some("mode: plan\nanswers: no one\nfiles: b\n"));
        assert_eq!(told.update(now(), ""), SituationUpdate::default());
    }

    #[test]
    fn a_description_survives_the_log_and_stays_on_its_lines() {
        let facts = vec![SituationFact::new("mode", "default"), SituationFact::new("files", "a\nmode: yolo")];
        let text = render(&facts);
        assert_eq!(text.lines().count(), 2);
        assert_eq!(render(&parse(&text)), text);
    }
}
