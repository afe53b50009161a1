//! *plan*: the model plans the graph.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{Body, ErrorInfo, ErrorKind, Thinking};

use super::plan::{self, Bounds, Planned};
use super::prompts;
use super::state::{Delta, GotState, Thought};
use crate::thinking::{ThoughtFailure, ThoughtRequest, ThoughtRunner};
use qwen_engine::Stop;
use qwen_engine::graph::{Next, Node, RunContext, Step};

pub(super) struct Planning(pub Arc<ThoughtRunner>);

/// How many attempts the model has to write a usable plan.
const TRIES: usize = 2;

impl Node<GotState> for Planning {
    fn run<'a>(&'a self, state: &'a GotState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            // In adaptive mode the problem starts as one thought, which is expanded as needed.
            let planned = if state.options.adaptive {
                Ok(plan::single("root", &state.problem))
            } else {
                self.plan(state, cx).await
            };
            let planned = match planned {
                Ok(planned) => planned,
                Err(ThoughtFailure::Run(stop)) if stop.status.is_limit() => {
                    return ended(Some(stop), Next::Goto("answer"));
                }
                Err(ThoughtFailure::Run(stop)) => return ended(None, Next::Stop(stop)),
                Err(ThoughtFailure::Thought(error)) => return ended(None, Next::Stop(Stop::failed(error))),
            };
            let step = Thinking::GotPlan {
                node_ids: planned.iter().map(|node| node.id.as_str().into()).collect(),
                edge_count: planned.iter().map(|node| node.inputs.len() as u64).sum(),
            };
            cx.emit.emit(Body::Thinking(Box::new(step))).await;
            let thoughts = planned.into_iter().map(|node| Thought::from_plan(node, 0, None)).collect();
            Step { delta: Delta::Planned { thoughts }, next: Next::Goto("execute") }
        })
    }
}

impl Planning {
    /// The model's plan. An unusable plan is returned to the model once; after that the plan is a single
    /// thought.
    async fn plan(&self, state: &GotState, cx: &RunContext) -> Result<Vec<Planned>, ThoughtFailure> {
        let bounds = Bounds { nodes: state.options.max_nodes, layers: None };
        let mut wrong: Option<String> = None;
        for attempt in 0..TRIES {
            let prompt = prompts::plan(state, wrong.as_deref());
            let key = format!("plan/{attempt}");
            let answer =
                self.0.ask(ThoughtRequest { key: &key, thought: "plan", prompt, tools: true }, cx).await?;
            match plan::read(&answer, bounds) {
                Ok(planned) => return Ok(planned),
                Err(why) => wrong = Some(why),
            }
        }
        let why = wrong.unwrap_or_default();
        let message =
            format!("the model's plan cannot be used: {why}; the problem is thought about in one go instead");
        cx.emit.emit(Body::Error(Box::new(ErrorInfo::new(ErrorKind::Model, "bad_plan", message)))).await;
        Ok(plan::single("solve", ""))
    }
}

fn ended(limit: Option<Stop>, next: Next) -> Step<Delta> {
    let shortfall = Some("There was no plan yet.".to_owned());
    Step { delta: Delta::Executed { thoughts: Vec::new(), shortfall, limit }, next }
}
