//! The limits and the spending of a turn.

pub mod cache_watch;
pub mod prices;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use qwen_events::{AgentUsage, EndStatus, ErrorInfo, ErrorKind, ModelUsage, Usage};

use crate::{Prices, Stop};

/// The limits of a turn or a session. `None` means unlimited.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Model calls per session.
    pub session_turns: Option<u64>,
    /// Model calls per turn.
    pub turns: Option<u64>,
    /// Tool calls per turn.
    pub tool_calls: Option<u64>,
    /// The duration of a turn.
    pub wall_time: Option<Duration>,
    /// The limit on tokens per turn.
    pub tokens: Option<u64>,
    /// US dollars per session, counted only for the turns that this process runs.
    pub cost_usd: Option<f64>,
    pub prices: Prices,
    /// Steps of a turn's graph. No agent comes near the default: it only guarantees termination.
    pub steps: Option<u64>,
}

/// The default limit for the steps of a turn's graph.
const MOST_STEPS: u64 = 1_000_000;

/// The error code for a sub-agent's separate limit.
const SUBAGENT_LIMIT: &str = "subagent_limit";

/// What a turn has spent, against its limits. Shared by everything that runs in it.
pub struct Budget {
    limits: Limits,
    /// The enclosing budget, and the name of the sub-agent that spends this part.
    part_of: Option<(Arc<Budget>, Arc<str>)>,
    session_calls_before: u64,
    /// US dollars that earlier turns of the session cost.
    cost_before: f64,
    started: Instant,
    spent: Mutex<Spent>,
}

#[derive(Default)]
struct Spent {
    steps: u64,
    model_calls: u64,
    tool_calls: u64,
    waiting_for_model: Duration,
    usage: Usage,
    by_model: Vec<ModelUsage>,
    /// The part that sub-agents spent; only in the budget of the whole turn.
    by_agent: Vec<AgentUsage>,
    /// Set once the turn has ended: spending since then that is not counted yet.
    late: Option<Late>,
    /// Tokens of the conversation, and whether they are an estimate.
    context: (u64, bool),
}

/// What a background sub-agent spends after the end of the turn that started it.
#[derive(Default)]
struct Late {
    model_calls: u64,
    usage: Usage,
    by_model: Vec<ModelUsage>,
    by_agent: Vec<AgentUsage>,
}

/// The sums at the end of a turn.
#[derive(Default)]
pub(crate) struct Sums {
    pub model_calls: u64,
    pub tool_calls: u64,
    pub duration: Duration,
    pub waiting_for_model: Duration,
    pub usage: Usage,
    pub by_model: Vec<ModelUsage>,
    pub by_agent: Vec<AgentUsage>,
    /// The tokens that the conversation takes, and whether they are an estimate; 0 if unknown.
    pub context: (u64, bool),
}

impl Budget {
    /// A fresh budget; `session_calls_before` is the number of model calls in earlier turns of the session.
    pub fn new(limits: Limits, session_calls_before: u64) -> Self {
        Self {
            limits,
            part_of: None,
            session_calls_before,
            cost_before: 0.0,
            started: Instant::now(),
            spent: Mutex::default(),
        }
    }

    /// The same budget, with the cost in US dollars of earlier turns of the session.
    #[must_use]
    pub fn after_cost(mut self, cost_usd: f64) -> Self {
        self.cost_before = cost_usd;
        self
    }

    /// A part of this budget for one run of the sub-agent `name`, with separate limits. Its spending counts
    /// here too.
    pub(crate) fn part(self: &Arc<Self>, name: Arc<str>, limits: Limits) -> Self {
        self.spend_as_agent(&AgentUsage { agent: name.clone(), runs: 1, ..AgentUsage::default() });
        Self { part_of: Some((self.clone(), name)), ..Self::new(limits, 0) }
    }

    /// True if `stop` was caused by a sub-agent's separate limit, which ends only that sub-agent.
    pub(crate) fn is_subagent_limit(stop: &Stop) -> bool {
        stop.error.as_ref().is_some_and(|error| error.code == SUBAGENT_LIMIT)
    }

    fn parent(&self) -> Option<&Arc<Self>> {
        self.part_of.as_ref().map(|(whole, _)| whole)
    }

    /// Adds what a sub-agent spent to the budget of the whole turn.
    fn spend_as_agent(&self, more: &AgentUsage) {
        if let Some(whole) = self.parent() {
            return whole.spend_as_agent(more);
        }
        let mut spent = self.lock();
        if let Some(late) = &mut spent.late {
            add_agent(&mut late.by_agent, more);
        }
        add_agent(&mut spent.by_agent, more);
    }

    /// Counts `more` for the sub-agent that spends this part; does nothing for a whole budget.
    fn count_for_agent(&self, more: &AgentUsage) {
        if let Some((whole, agent)) = &self.part_of {
            whole.spend_as_agent(&AgentUsage { agent: agent.clone(), ..more.clone() });
        }
    }

    /// The stop when the limit of `what` is reached.
    fn reached(&self, status: EndStatus, code: &'static str, what: &str, flag: &str) -> Stop {
        match &self.part_of {
            None => limit_reached(status, code, format!("the limit of {what} is reached ({flag})")),
            Some((_, agent)) => limit_reached(
                status,
                SUBAGENT_LIMIT,
                format!("the sub-agent '{agent}' reached its limit of {what}"),
            ),
        }
    }

    /// Adds what an earlier process spent on the same turn.
    pub(crate) fn carry(&self, model_calls: u64, tool_calls: u64, by_model: &[ModelUsage]) {
        let mut spent = self.lock();
        spent.model_calls += model_calls;
        spent.tool_calls += tool_calls;
        for model in by_model {
            spent.usage.add(&model.usage);
            spent.by_model.push(model.clone());
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts a model call, or returns the limit that forbids it.
    pub fn model_call(&self) -> Result<(), Stop> {
        self.count_model_call()?;
        self.count_for_agent(&AgentUsage { model_calls: 1, ..AgentUsage::default() });
        Ok(())
    }

    fn count_model_call(&self) -> Result<(), Stop> {
        let mut spent = self.lock();
        if let Some(limit) = self.limits.session_turns
            && self.session_calls_before + spent.model_calls >= limit
        {
            let what = format!("{limit} model calls for this session");
            return Err(self.reached(EndStatus::MaxTurns, "max_session_turns", &what, "--max-session-turns"));
        }
        if let Some(limit) = self.limits.turns
            && spent.model_calls >= limit
        {
            let what = format!("{limit} model calls for one prompt");
            return Err(self.reached(EndStatus::MaxTurns, "max_turns", &what, "--max-turns"));
        }
        if let Some(limit) = self.limits.tokens
            && spent.usage.total() >= limit
        {
            let what = format!("{limit} tokens ({} are spent)", spent.usage.total());
            return Err(self.reached(EndStatus::MaxTokens, "max_tokens_total", &what, "--max-tokens-total"));
        }
        let cost = self.cost_before + spent.by_model.iter().map(|model| model.cost_usd).sum::<f64>();
        if let Some(limit) = self.limits.cost_usd
            && cost >= limit
        {
            return Err(limit_reached(
                EndStatus::Budget,
                "max_budget_usd",
                format!("the limit of {limit} US dollars is reached: {cost:.6} are spent (--max-budget-usd)"),
            ));
        }
        if let Some(whole) = self.parent() {
            whole.count_model_call()?;
        }
        spent.model_calls += 1;
        if let Some(late) = &mut spent.late {
            late.model_calls += 1;
        }
        Ok(())
    }

    /// Describes by how much the turn exceeded its limit of tokens, which is checked only before a model
    /// call; none if it did not.
    pub(crate) fn token_excess(&self) -> Option<String> {
        let limit = self.limits.tokens?;
        let spent = self.lock().usage.total();
        let excess = spent.checked_sub(limit).filter(|excess| *excess > 0)?;
        Some(format!(
            "the limit of {limit} tokens was exceeded by {excess}: {spent} are spent (--max-tokens-total)"
        ))
    }

    /// Counts a step of a graph, or returns the limit that forbids it.
    pub fn step(&self) -> Result<(), Stop> {
        let limit = self.limits.steps.unwrap_or(MOST_STEPS);
        let mut spent = self.lock();
        if spent.steps >= limit {
            let message = format!("the limit of {limit} steps for one prompt is reached");
            return Err(limit_reached(EndStatus::Budget, "max_steps", message));
        }
        if let Some(whole) = self.parent() {
            whole.step()?;
        }
        spent.steps += 1;
        Ok(())
    }

    /// Counts a tool call, or returns the limit that forbids it.
    pub fn tool_call(&self) -> Result<(), Stop> {
        self.count_tool_call()?;
        self.count_for_agent(&AgentUsage { tool_calls: 1, ..AgentUsage::default() });
        Ok(())
    }

    fn count_tool_call(&self) -> Result<(), Stop> {
        let mut spent = self.lock();
        if let Some(limit) = self.limits.tool_calls
            && spent.tool_calls >= limit
        {
            let what = format!("{limit} tool calls");
            return Err(self.reached(EndStatus::MaxToolCalls, "max_tool_calls", &what, "--max-tool-calls"));
        }
        if let Some(whole) = self.parent() {
            whole.count_tool_call()?;
        }
        spent.tool_calls += 1;
        Ok(())
    }

    /// The stop when a turn's time is up.
    pub fn out_of_time(&self, limit: Duration) -> Stop {
        let what = match self.part_of {
            None => format!("{} s for a turn", limit.as_secs_f64()),
            Some(_) => format!("{} s", limit.as_secs_f64()),
        };
        self.reached(EndStatus::MaxWallTime, "max_wall_time", &what, "--max-wall-time")
    }

    /// Adds the usage of a model call and returns its cost in US dollars.
    pub fn spend(&self, model: &str, usage: &Usage, waited: Duration) -> f64 {
        let cost_usd = self.add_usage(model, usage, waited);
        self.count_for_agent(&AgentUsage { usage: *usage, cost_usd, ..AgentUsage::default() });
        cost_usd
    }

    fn add_usage(&self, model: &str, usage: &Usage, waited: Duration) -> f64 {
        let cost_usd = match self.parent() {
            Some(whole) => whole.add_usage(model, usage, waited),
            None => self.limits.prices.cost(model, usage),
        };
        let more = ModelUsage { model: model.into(), calls: 1, usage: *usage, cost_usd };
        let mut spent = self.lock();
        spent.usage.add(usage);
        spent.waiting_for_model += waited;
        if let Some(late) = &mut spent.late {
            late.usage.add(usage);
            add(&mut late.by_model, more.clone());
        }
        add(&mut spent.by_model, more);
        cost_usd
    }

    /// The sums at the end of the turn. Later spending is recorded as late and counts for a later turn.
    pub(crate) fn close(&self) -> Sums {
        let sums = self.sums();
        self.lock().late = Some(Late::default());
        sums
    }

    /// Adds late spending that was not added before to the `sums` of another turn. Returns its number of
    /// model calls, which count for the session but not for that turn.
    pub(crate) fn take_late(&self, sums: &mut Sums) -> u64 {
        let late = self.lock().late.as_mut().map(std::mem::take).unwrap_or_default();
        sums.usage.add(&late.usage);
        for more in late.by_model {
            add(&mut sums.by_model, more);
        }
        for more in &late.by_agent {
            add_agent(&mut sums.by_agent, more);
        }
        late.model_calls
    }

    /// Records how many tokens the conversation takes, and whether that is an estimate. Other model calls of
    /// the turn (a summary, a thought, a sub-agent's work) do not count.
    pub(crate) fn context_is(&self, tokens: u64, estimated: bool) {
        self.lock().context = (tokens, estimated);
    }

    /// How many tokens the conversation takes, as far as this turn knows, and whether that is an estimate; 0
    /// if unknown.
    pub(crate) fn context(&self) -> (u64, bool) {
        self.lock().context
    }

    pub(crate) fn sums(&self) -> Sums {
        let spent = self.lock();
        Sums {
            model_calls: spent.model_calls,
            tool_calls: spent.tool_calls,
            duration: self.started.elapsed(),
            waiting_for_model: spent.waiting_for_model,
            usage: spent.usage,
            by_model: spent.by_model.clone(),
            by_agent: spent.by_agent.clone(),
            context: spent.context,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Spent> {
        // Nothing can panic while the lock is held, so the counts are consistent even if the lock is
        // poisoned.
        self.spent.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn add(sums: &mut Vec<ModelUsage>, more: ModelUsage) {
    match sums.iter_mut().find(|sum| sum.model == more.model) {
        Some(sum) => {
            sum.calls += more.calls;
            sum.usage.add(&more.usage);
            sum.cost_usd += more.cost_usd;
        }
        None => sums.push(more),
    }
}

fn add_agent(sums: &mut Vec<AgentUsage>, more: &AgentUsage) {
    match sums.iter_mut().find(|sum| sum.agent == more.agent) {
        Some(sum) => sum.add(more),
        None => sums.push(more.clone()),
    }
}

fn limit_reached(status: EndStatus, code: &'static str, message: String) -> Stop {
    Stop { status, error: Some(ErrorInfo::new(ErrorKind::Limit, code, message)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_spends_from_the_whole_budget_and_has_its_own_limits() {
        let whole = Arc::new(Budget::new(Limits { tool_calls: Some(3), ..Limits::default() }, 0));
        let part = whole.part("helper".into(), Limits { turns: Some(1), ..Limits::default() });
        assert_eq!(part.model_call(), Ok(()));
        let own = part.model_call().unwrap_err();
        assert!(Budget::is_subagent_limit(&own) && own.error.unwrap().message.contains("'helper'"));
        assert!((0..3).all(|_| part.tool_call().is_ok()));
        let shared = part.tool_call().unwrap_err();
        assert_eq!((shared.status, Budget::is_subagent_limit(&shared)), (EndStatus::MaxToolCalls, false));
        part.spend("m", &Usage { prompt_tokens: 5, ..Usage::default() }, Duration::ZERO);
        let sums = whole.close();
        assert_eq!((sums.model_calls, sums.tool_calls, sums.usage.prompt_tokens), (1, 3, 5));
    }

    #[test]
    fn what_sub_agents_spend_is_counted_once_for_the_agent_that_spends_it() {
        let usage = Usage { prompt_tokens: 5, ..Usage::default() };
        let whole = Arc::new(Budget::new(Limits::default(), 0));
        let outer = Arc::new(whole.part("outer".into(), Limits::default()));
        let inner = outer.part("inner".into(), Limits::default());
        for budget in [&whole, &outer, &Arc::new(inner)] {
            assert!(budget.model_call().is_ok() && budget.tool_call().is_ok());
            budget.spend("m", &usage, Duration::ZERO);
        }
        let sums = whole.close();
        assert_eq!((sums.model_calls, sums.tool_calls, sums.usage.prompt_tokens), (3, 3, 15));
        let spent = |agent: &str| AgentUsage {
            agent: agent.into(),
            runs: 1,
            model_calls: 1,
            tool_calls: 1,
            usage,
            cost_usd: 0.0,
        };
        assert_eq!(sums.by_agent, [spent("outer"), spent("inner")]);
        outer.spend("m", &usage, Duration::ZERO);
        let mut later = Budget::new(Limits::default(), 0).sums();
        whole.take_late(&mut later);
        assert_eq!((later.by_agent.len(), later.by_agent[0].usage.prompt_tokens), (1, 5));
    }

    #[test]
    fn usage_after_the_end_of_a_turn_is_counted_once_in_a_later_turn() {
        let usage = Usage { prompt_tokens: 5, ..Usage::default() };
        let whole = Arc::new(Budget::new(Limits::default(), 0));
        let part = whole.part("helper".into(), Limits::default());
        part.spend("m", &usage, Duration::ZERO);
        assert_eq!(whole.close().usage.prompt_tokens, 5);
        assert_eq!(part.model_call(), Ok(()));
        part.spend("m", &usage, Duration::ZERO);
        let mut sums = Budget::new(Limits::default(), 0).sums();
        assert_eq!((whole.take_late(&mut sums), whole.take_late(&mut sums)), (1, 0));
        assert_eq!((sums.usage.prompt_tokens, sums.by_model[0].calls), (5, 1));
    }
}
