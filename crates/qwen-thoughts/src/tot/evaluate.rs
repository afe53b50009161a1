//! *evaluate*: votes score the candidates, and the best ones decide where the search continues.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{Body, ErrorInfo, ErrorKind, Thinking};

use super::state::{ACCEPTED, CERTAIN, Delta, TotState};
use super::{Search, prompts};
use crate::thinking::{NEUTRAL, ThoughtFailure, ThoughtRequest, ThoughtRunner, mean, read_values, summary};
use qwen_engine::Stop;
use qwen_engine::graph::{Next, Node, RunContext, Step, fan_out};

pub(super) struct Evaluate(pub Arc<ThoughtRunner>);

/// Candidates with the same parent thought.
struct Group {
    parent: Option<usize>,
    candidates: Vec<usize>,
}

impl Node<TotState> for Evaluate {
    fn run<'a>(&'a self, state: &'a TotState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            let groups = groups(state);
            let votes =
                groups.iter().flat_map(|group| (0..state.options.samples).map(move |vote| (group, vote)));
            let asked = fan_out(votes.map(|(group, vote)| self.vote(state, group, vote, cx))).await;
            let mut asked = asked.into_iter();
            let mut scores = Vec::with_capacity(state.pool.len());
            let (mut readable, mut unread, mut error) = (false, None, None);
            for group in &groups {
                let mut ballots = Vec::new();
                for answer in asked.by_ref().take(state.options.samples) {
                    match answer {
                        Ok(answer) => {
                            let values = read_values(&answer, group.candidates.len());
                            if values.iter().all(Option::is_none) {
                                unread = Some(answer);
                            }
                            ballots.push(values);
                        }
                        Err(ThoughtFailure::Run(stop)) if stop.status.is_limit() => {
                            let shortfall = "A limit ended the search.".to_owned();
                            let delta = Delta::Halted { shortfall, limit: Some(stop) };
                            return Step { delta, next: Next::Goto("answer") };
                        }
                        Err(ThoughtFailure::Run(stop)) => return end(stop),
                        Err(ThoughtFailure::Thought(failure)) => error = Some(failure),
                    }
                }
                for place in 0..group.candidates.len() {
                    let score = mean(ballots.iter().map(|ballot| ballot[place]));
                    readable |= score.is_some();
                    scores.push(score.unwrap_or(NEUTRAL));
                }
            }
            match (error, unread) {
                (Some(error), None) if !readable => return end(Stop::failed(error)),
                (Some(error), _) => cx.emit.emit(Body::Error(Box::new(error))).await,
                (None, Some(answer)) => cx.emit.emit(Body::Error(Box::new(unreadable(&answer)))).await,
                (None, None) => {}
            }
            let chosen = best(&scores).unwrap_or_default() as u64;
            let step = Thinking::TotEvaluate { chosen, scores: scores.clone() };
            cx.emit.emit(Body::Thinking(Box::new(step))).await;
            match state.options.search {
                Search::Bfs => level_by_level(state, scores),
                Search::Dfs => best_first(state, scores),
            }
        })
    }
}

impl Evaluate {
    async fn vote(
        &self,
        state: &TotState,
        group: &Group,
        vote: usize,
        cx: &RunContext,
    ) -> Result<String, ThoughtFailure> {
        let name = group.parent.map_or_else(|| "root".to_owned(), |at| format!("t{at}"));
        let prompt = prompts::value(state, group.parent, &group.candidates, vote);
        let key = format!("value/{name}/{vote}");
        self.0.ask(ThoughtRequest { key: &key, thought: &name, prompt, tools: false }, cx).await
    }
}

/// The candidates, grouped by parent. Candidates of one parent are adjacent.
fn groups(state: &TotState) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for &at in &state.pool {
        let parent = state.thoughts.get(at).and_then(|thought| thought.parent);
        match groups.last_mut().filter(|group| group.parent == parent) {
            Some(group) => group.candidates.push(at),
            None => groups.push(Group { parent, candidates: vec![at] }),
        }
    }
    groups
}

/// The index of the best score; the first one on a tie.
fn best(scores: &[f64]) -> Option<usize> {
    (0..scores.len()).reduce(|a, b| if scores[b] > scores[a] { b } else { a })
}

/// Keeps the best of this level and of the solutions that were completed before it.
fn level_by_level(state: &TotState, scores: Vec<f64>) -> Step<Delta> {
    let complete =
        state.frontier.iter().copied().filter(|at| state.is_leaf(*at)).map(|at| (at, state.score(at)));
    let mut ranked: Vec<(usize, f64)> =
        complete.chain(state.pool.iter().copied().zip(scores.iter().copied())).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(state.options.breadth.max(1));
    let certain = ranked.first().filter(|(at, score)| state.is_leaf(*at) && *score >= CERTAIN);
    let ended = certain.is_some() || ranked.iter().all(|(at, _)| state.is_leaf(*at));
    let found = ranked.iter().find(|(at, _)| state.is_leaf(*at)).filter(|_| ended);
    let shortfall =
        found.filter(|(_, score)| *score <= ACCEPTED).map(|_| "It did not pass the check.".to_owned());
    let delta = Delta::Valued {
        scores,
        open: Vec::new(),
        frontier: ranked.iter().map(|(at, _)| *at).collect(),
        found: found.map(|(at, _)| *at),
        shortfall,
    };
    Step { delta, next: Next::Goto(if ended { "answer" } else { "expand" }) }
}

/// Continues with the best child above the threshold; other children above it are left for backtracking.
fn best_first(state: &TotState, scores: Vec<f64>) -> Step<Delta> {
    let valued = || state.pool.iter().copied().zip(scores.iter().copied());
    let better = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
    let solution = valued().filter(|(at, score)| state.is_leaf(*at) && *score > ACCEPTED).reduce(better);
    let open: Vec<(usize, f64)> =
        valued().filter(|(at, score)| !state.is_leaf(*at) && *score >= state.options.threshold).collect();
    let next = open.iter().copied().reduce(better);
    let (frontier, way) = match (solution, next) {
        (Some((at, _)), _) => (vec![at], "answer"),
        (None, Some((at, _))) => (vec![at], "expand"),
        (None, None) => (state.frontier.clone(), "backtrack"),
    };
    let open = open.into_iter().map(|(at, _)| at).collect();
    let found = solution.map(|(at, _)| at);
    Step { delta: Delta::Valued { scores, open, frontier, found, shortfall: None }, next: Next::Goto(way) }
}

fn unreadable(answer: &str) -> ErrorInfo {
    let message = format!(
        "the model was asked for values and answered: {}; candidates without a value count as neither good nor bad",
        summary(answer)
    );
    ErrorInfo::new(ErrorKind::Model, "unreadable_values", message)
}

fn end(stop: Stop) -> Step<Delta> {
    let shortfall = "The search was ended.".to_owned();
    Step { delta: Delta::Halted { shortfall, limit: None }, next: Next::Stop(stop) }
}
