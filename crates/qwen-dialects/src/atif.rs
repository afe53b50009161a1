//! Exports a session as one document of the Agent Trajectory Interchange Format (ATIF) 1.8, which benchmark
//! harnesses read.
//!
//! A prompt is a step of the user, a message of the model a step of the agent, and the results of its calls
//! are the observation of that step. A sub-agent is an embedded trajectory whose id is the id of its call.

use qwen_events::{
    Body, CallId, Event, HistoryChange, MessageEnd, Part, ToolEnd, ToolStatus, TurnEnd, Usage, call_progress,
    graph_events, message_pieces, outside_turns, session_notices,
};
use serde::Serialize;

use crate::loom::rfc3339;
use crate::payload::Payload;

const SCHEMA_VERSION: &str = "ATIF-v1.8";

/// A trajectory under construction: receives the events of a session in order, then becomes a document.
#[derive(Debug)]
pub struct Trajectory {
    session_id: String,
    version: &'static str,
    main: Steps,
    sub_agents: Vec<(CallId, Steps)>,
    totals: Totals,
}

/// The steps of one agent.
#[derive(Debug, Default)]
struct Steps {
    model: Option<String>,
    steps: Vec<Step>,
}

#[derive(Debug, Default)]
struct Totals {
    usage: Usage,
    cost_usd: f64,
    turns: Vec<Turn>,
}

#[derive(Debug, Serialize)]
struct Turn {
    prompt_id: String,
    status: &'static str,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    trajectory_id: &'a str,
    agent: Agent<'a>,
    steps: &'a [Step],
    final_metrics: FinalMetrics,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<RunExtra<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subagent_trajectories: Vec<Document<'a>>,
}

#[derive(Debug, Serialize)]
struct Agent<'a> {
    name: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct RunExtra<'a> {
    turns: &'a [Turn],
}

#[derive(Debug, Serialize)]
struct FinalMetrics {
    total_prompt_tokens: u64,
    total_completion_tokens: u64,
    total_cached_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_cost_usd: Option<f64>,
    total_steps: usize,
}

#[derive(Debug, Serialize)]
struct Step {
    step_id: usize,
    timestamp: String,
    source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    llm_call_count: Option<u32>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    System,
    User,
    Agent,
}

#[derive(Debug, Serialize)]
struct Call {
    tool_call_id: String,
    function_name: String,
    arguments: Payload<'static>,
}

#[derive(Debug, Default, Serialize)]
struct Observation {
    results: Vec<CallResult>,
}

#[derive(Debug, Serialize)]
struct CallResult {
    source_call_id: String,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subagent_trajectory_ref: Vec<TrajectoryRef>,
    extra: ResultExtra,
}

#[derive(Debug, Serialize)]
struct TrajectoryRef {
    trajectory_id: String,
}

#[derive(Debug, Serialize)]
struct ResultExtra {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
}

#[derive(Debug, Serialize)]
struct Metrics {
    prompt_tokens: u64,
    completion_tokens: u64,
    cached_tokens: u64,
}

impl Trajectory {
    /// Starts the trajectory of a session; `version` is the version of this program.
    pub fn new(session_id: &str, version: &'static str) -> Self {
        Self {
            session_id: session_id.to_owned(),
            version,
            main: Steps::default(),
            sub_agents: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// Adds an event of the session.
    pub fn add(&mut self, event: &Event) {
        // What a thought of a tree or graph does is not part of the conversation.
        if event.scope.thought.is_some() {
            return;
        }
        let at = rfc3339(event.at);
        let parent = event.scope.parent.as_ref();
        match &event.body {
            Body::TurnStart(start) if parent.is_none() => {
                self.main.model.get_or_insert_with(|| start.model.to_string());
                self.main.push_text(Source::User, at, start.message.to_string());
            }
            Body::TurnEnd(end) if parent.is_none() => self.totals.add(end),
            Body::History(change) if parent.is_none() => self.main.push_history(change, &at),
            Body::MessageEnd(message) => self.steps(parent).push_message(message, at),
            Body::ToolEnd(end) => {
                let is_sub_agent = self.sub_agents.iter().any(|(call, _)| *call == end.call.id);
                self.steps(parent).push_result(end, is_sub_agent);
            }
            Body::Ready
            | Body::TurnStart(_)
            | Body::TurnEnd(_)
            | graph_events!()
            | message_pieces!()
            | call_progress!()
            | Body::ToolStart(_)
            | Body::Thinking(_)
            | session_notices!()
            | Body::Error(_)
            | outside_turns!()
            | Body::Fatal(_) => {}
        }
    }

    /// The document; none if the session has no step, which the format does not allow.
    pub fn finish(&self) -> Option<String> {
        if self.main.steps.is_empty() {
            return None;
        }
        let sub_agents = self.sub_agents.iter().filter(|(_, steps)| !steps.steps.is_empty());
        let document = Document {
            session_id: Some(&self.session_id),
            extra: Some(RunExtra { turns: &self.totals.turns }),
            subagent_trajectories: sub_agents
                .map(|(call, steps)| self.document(call.as_str(), steps, steps.metrics()))
                .collect(),
            ..self.document(&self.session_id, &self.main, self.totals.metrics(self.main.steps.len()))
        };
        serde_json::to_string(&document).ok()
    }

    fn document<'a>(&'a self, id: &'a str, steps: &'a Steps, final_metrics: FinalMetrics) -> Document<'a> {
        Document {
            schema_version: SCHEMA_VERSION,
            session_id: None,
            trajectory_id: id,
            agent: Agent { name: "qwen", version: self.version, model_name: steps.model.as_deref() },
            steps: &steps.steps,
            final_metrics,
            extra: None,
            subagent_trajectories: Vec::new(),
        }
    }

    /// The steps of the main agent, or of the sub-agent that the call `parent` started.
    fn steps(&mut self, parent: Option<&CallId>) -> &mut Steps {
        let Some(parent) = parent else { return &mut self.main };
        let known = self.sub_agents.iter().position(|(call, _)| call == parent);
        let at = known.unwrap_or_else(|| {
            self.sub_agents.push((parent.clone(), Steps::default()));
            self.sub_agents.len() - 1
        });
        &mut self.sub_agents[at].1
    }
}

impl Steps {
    fn push_text(&mut self, source: Source, timestamp: String, message: String) {
        self.steps.push(Step {
            step_id: self.steps.len() + 1,
            timestamp,
            source,
            model_name: None,
            message,
            reasoning_content: None,
            tool_calls: Vec::new(),
            observation: None,
            metrics: None,
            llm_call_count: None,
        });
    }

    fn push_message(&mut self, end: &MessageEnd, timestamp: String) {
        self.model.get_or_insert_with(|| end.model.to_string());
        let calls = end.calls.iter().map(|call| Call {
            tool_call_id: call.id.as_str().to_owned(),
            function_name: call.name.to_string(),
            arguments: Payload::from_value(&Payload::new(&call.arguments)),
        });
        let tool_calls: Vec<Call> = calls.collect();
        self.push_text(Source::Agent, timestamp, end.text.to_string());
        if let Some(step) = self.steps.last_mut() {
            step.model_name = Some(end.model.to_string());
            step.reasoning_content = Some(end.thought.to_string()).filter(|thought| !thought.is_empty());
            step.tool_calls = tool_calls;
            step.metrics = Some(Metrics {
                prompt_tokens: end.usage.prompt_tokens,
                completion_tokens: end.usage.completion_tokens,
                cached_tokens: end.usage.cached_tokens,
            });
            step.llm_call_count = Some(1);
        }
    }

    /// Adds the result of a call to the observation of the step that made it.
    fn push_result(&mut self, end: &ToolEnd, is_sub_agent: bool) {
        let id = end.call.id.as_str();
        let made_it = |step: &&mut Step| step.tool_calls.iter().any(|call| call.tool_call_id == id);
        let Some(step) = self.steps.iter_mut().rev().find(made_it) else { return };
        step.observation.get_or_insert_with(Observation::default).results.push(CallResult {
            source_call_id: id.to_owned(),
            content: end.text.to_string(),
            subagent_trajectory_ref: is_sub_agent
                .then(|| TrajectoryRef { trajectory_id: id.to_owned() })
                .into_iter()
                .collect(),
            extra: ResultExtra { status: status_name(end.status), exit_code: end.exit_code },
        });
    }

    fn push_history(&mut self, change: &HistoryChange, timestamp: &str) {
        let (source, messages) = match change {
            // A replay emits only the prompts that joined a turn.
            HistoryChange::Added(messages) => (Source::User, messages),
            HistoryChange::Replaced(messages) => (Source::System, messages),
            // It describes the environment of the run, which the trajectory does not contain.
            HistoryChange::Situation(_) => return,
        };
        for message in messages {
            let texts: Vec<&str> = message.parts.iter().filter_map(Part::as_text).collect();
            if !texts.is_empty() {
                self.push_text(source, timestamp.to_owned(), texts.join("\n"));
            }
        }
    }

    fn metrics(&self) -> FinalMetrics {
        let steps = || self.steps.iter().filter_map(|step| step.metrics.as_ref());
        FinalMetrics {
            total_prompt_tokens: steps().map(|metrics| metrics.prompt_tokens).sum(),
            total_completion_tokens: steps().map(|metrics| metrics.completion_tokens).sum(),
            total_cached_tokens: steps().map(|metrics| metrics.cached_tokens).sum(),
            total_cost_usd: None,
            total_steps: self.steps.len(),
        }
    }
}

impl Totals {
    fn add(&mut self, end: &TurnEnd) {
        self.usage.add(&end.usage);
        self.cost_usd += end.cost_usd;
        self.turns.push(Turn { prompt_id: end.prompt_id.as_str().to_owned(), status: end.status.name() });
    }

    fn metrics(&self, total_steps: usize) -> FinalMetrics {
        FinalMetrics {
            total_prompt_tokens: self.usage.prompt_tokens,
            total_completion_tokens: self.usage.completion_tokens,
            total_cached_tokens: self.usage.cached_tokens,
            total_cost_usd: Some(self.cost_usd).filter(|cost| *cost > 0.0),
            total_steps,
        }
    }
}

fn status_name(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Success => "success",
        ToolStatus::Error => "error",
        ToolStatus::Denied => "denied",
        ToolStatus::Cancelled => "cancelled",
    }
}
