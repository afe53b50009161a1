//! The worker's reports about itself: context usage, token totals and models.

use std::sync::Arc;

use qwen_dialects::loom::rfc3339;
use qwen_engine::Session;
use qwen_engine::commands::SessionTotals;
use qwen_engine::compaction::Window;
use qwen_events::{EndStatus, ErrorInfo, ErrorKind, ModelUsage, ToolSpec, TurnEnd};
use serde_json::{Map, Value, json};

use crate::runtime::clock;
use crate::session::{ProcessContext, setup};

/// Tokens in the context as of the last turn.
#[derive(Default)]
struct ContextSnapshot {
    total: u64,
    /// `total` is an estimate, not the model server's count.
    estimated: bool,
    /// Estimates of the parts.
    system: u64,
    builtin: Vec<(Arc<str>, u64)>,
    mcp: Vec<(Arc<str>, u64)>,
}

/// The usage of the process so far.
#[derive(Default)]
pub(super) struct UsageLedger {
    requests: u64,
    tool_calls: u64,
    tokens: qwen_events::Usage,
    /// The usage of all turns, by model.
    by_model: Vec<ModelUsage>,
    /// How long all turns took, in milliseconds, and how long of that they waited for the model.
    duration_ms: u64,
    api_duration_ms: u64,
    last_turn_failed: bool,
    context: ContextSnapshot,
}

impl UsageLedger {
    /// Adds what earlier processes spent on a session that continues.
    pub fn add_earlier(&mut self, spent: &[ModelUsage]) {
        for model in spent {
            self.requests += model.calls;
            self.tokens.add(&model.usage);
        }
        self.by_model.extend_from_slice(spent);
    }

    /// Adds a completed turn.
    pub fn add_turn(&mut self, end: &TurnEnd) {
        self.requests += end.model_calls;
        self.tool_calls += end.tool_calls;
        self.tokens.add(&end.usage);
        self.by_model.extend(end.usage_by_model.iter().cloned());
        self.duration_ms += end.duration_ms;
        self.api_duration_ms += end.api_duration_ms;
        self.last_turn_failed = end.status != EndStatus::Done;
    }

    pub fn last_turn_failed(&self) -> bool {
        self.last_turn_failed
    }

    /// The usage that slash commands report.
    pub fn totals(&self) -> SessionTotals {
        SessionTotals {
            requests: self.requests,
            tool_calls: self.tool_calls,
            prompt_tokens: self.tokens.prompt_tokens,
            completion_tokens: self.tokens.completion_tokens,
            cached_tokens: self.tokens.cached_tokens,
        }
    }

    /// Measures the context after a turn.
    pub fn measure_context(&mut self, session: &Session) {
        let context = session.context();
        let size = |spec: &ToolSpec| {
            let bytes = spec.name.len() + spec.description.len() + spec.parameters.as_str().len();
            (spec.name.clone(), estimate(bytes))
        };
        let (total, estimated) = session.context_tokens();
        self.context = ContextSnapshot {
            total,
            estimated,
            system: estimate(context.base_system_prompt.len()),
            builtin: context.base_tools.specs().iter().map(size).collect(),
            mcp: context.process.mcp.tools().iter().map(|tool| size(tool.spec())).collect(),
        };
    }

    /// Answers `get_context_usage`. The total is the model server's count unless marked `estimated`; its
    /// parts are our own estimates. `claimed` is the size of a resumed session before its first turn.
    pub fn context_usage(&self, process: &ProcessContext, claimed: Option<u64>, details: bool) -> Value {
        let model = model_in_use(process);
        let claimed =
            claimed.map(|total| ContextSnapshot { total, estimated: true, ..ContextSnapshot::default() });
        let context = claimed.as_ref().unwrap_or(&self.context);
        let Window { tokens: window, percent } = setup::window(&process.config);
        let used = context.total;
        let free = window.saturating_sub(used);
        let sum = |tools: &[(Arc<str>, u64)]| tools.iter().map(|(_, tokens)| tokens).sum::<u64>();
        // Estimates must not exceed the total.
        let system = context.system.min(used);
        let builtin = sum(&context.builtin).min(used - system);
        let mcp = sum(&context.mcp).min(used - system - builtin);
        let messages = used - system - builtin - mcp;
        // Without automatic compaction, the window is the limit.
        let auto = if percent == 0 { 100 } else { percent };
        let [warn, auto, hard] = [70, auto, 95].map(|percent| window / 100 * percent);
        let tier = match used {
            used if used >= hard => "hard",
            used if used >= auto => "auto",
            used if used >= warn => "warn",
            _ => "normal",
        };
        let listed = |tools: &[(Arc<str>, u64)]| -> Vec<Value> {
            let shown = tools.iter().filter(|_| details);
            shown.map(|(name, tokens)| json!({"name": &**name, "tokens": tokens})).collect()
        };
        let agents: Vec<Value> = (process.config.agent.definitions.iter())
            .map(|agent| json!({"agentType": &*agent.name, "source": "session", "tokens": estimate(agent.description.len())}))
            .collect();
        json!({
            "subtype": "get_context_usage",
            "modelName": &*model,
            "model": &*model,
            "totalTokens": used,
            "estimated": context.estimated,
            "contextWindowSize": window,
            "maxTokens": window,
            "rawMaxTokens": window,
            "percentage": used.saturating_mul(100).checked_div(window),
            "categories": [
                {"id": "system_prompt", "name": "System prompt", "tokens": system, "color": "purple", "kind": "used"},
                {"id": "system_tools", "name": "System tools", "tokens": builtin, "color": "cyan", "kind": "used"},
                {"id": "mcp_tools", "name": "MCP tools", "tokens": mcp, "color": "green", "kind": "used"},
                {"id": "messages", "name": "Messages", "tokens": messages, "color": "blue", "kind": "used"},
                {"id": "free_space", "name": "Free space", "tokens": free, "color": "gray", "kind": "free"},
            ],
            "breakdown": {
                "systemPrompt": system, "builtinTools": builtin, "mcpTools": mcp, "memoryFiles": 0, "skills": 0,
                "startupContext": 0, "messages": messages, "unattributed": 0,
                "cachedTokens": self.tokens.cached_tokens, "freeSpace": free,
                "autocompactBuffer": window.saturating_sub(auto),
                "thresholds": {"warn": warn, "auto": auto, "hard": hard, "effectiveWindow": window},
                "currentTier": tier,
            },
            "builtinTools": listed(&context.builtin),
            "mcpTools": listed(&context.mcp),
            "memoryFiles": [], "skills": [], "agents": agents, "gridRows": [],
            "isAutoCompactEnabled": percent > 0, "autoCompactThreshold": auto, "apiUsage": null,
        })
    }

    /// Answers `get_usage`: cost, time, changed lines and the tokens of each model. Plans with limits on usage are
    /// not known here.
    pub fn session_usage(&self, process: &ProcessContext, lines: (u64, u64)) -> Value {
        let window = setup::window(&process.config).tokens;
        let max_output = setup::max_output(&process.config);
        let models: Map<String, Value> = (self.totals_by_model().into_iter())
            .map(|ModelUsage { model, usage, cost_usd, .. }| {
                let cached = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
                let tokens = json!({
                    "inputTokens": usage.prompt_tokens.saturating_sub(cached),
                    "outputTokens": usage.completion_tokens,
                    "cacheReadInputTokens": usage.cached_tokens,
                    "cacheCreationInputTokens": usage.cache_write_tokens,
                    "webSearchRequests": 0,
                    "costUSD": cost_usd,
                    "contextWindow": window,
                    "maxOutputTokens": max_output,
                });
                (model.to_string(), tokens)
            })
            .collect();
        json!({
            "session": {
                "total_cost_usd": self.cost_usd(),
                "total_api_duration_ms": self.api_duration_ms,
                "total_duration_ms": self.duration_ms,
                "total_lines_added": lines.0,
                "total_lines_removed": lines.1,
                "model_usage": models,
            },
            "subscription_type": null,
            "rate_limits_available": false,
            "rate_limits": null,
            "behaviors": null,
        })
    }

    /// Answers `get_session_cost`: the same in words.
    pub fn session_cost(&self, (added, removed): (u64, u64)) -> String {
        let seconds = |milliseconds: u64| milliseconds / 1000;
        let mut text = format!(
            "Total cost:            ${:.4}\nTotal duration (API):  {}s\nTotal duration (wall): {}s\nTotal code \
             changes:    {added} lines added, {removed} lines removed\nUsage by model:",
            self.cost_usd(),
            seconds(self.api_duration_ms),
            seconds(self.duration_ms),
        );
        for ModelUsage { model, usage, cost_usd, .. } in self.totals_by_model() {
            text.push_str(&format!(
                "\n   {model}:  {} input, {} output, {} cache read, {} cache write (${cost_usd:.4})",
                usage
                    .prompt_tokens
                    .saturating_sub(usage.cached_tokens)
                    .saturating_sub(usage.cache_write_tokens),
                usage.completion_tokens,
                usage.cached_tokens,
                usage.cache_write_tokens,
            ));
        }
        text
    }

    fn cost_usd(&self) -> f64 {
        self.by_model.iter().map(|spent| spent.cost_usd).sum()
    }

    /// The usage of all turns, one entry for each model.
    fn totals_by_model(&self) -> Vec<ModelUsage> {
        let mut totals: Vec<ModelUsage> = Vec::new();
        for spent in &self.by_model {
            match totals.iter_mut().find(|total| total.model == spent.model) {
                Some(total) => {
                    total.calls += spent.calls;
                    total.usage.add(&spent.usage);
                    total.cost_usd += spent.cost_usd;
                }
                None => totals.push(spent.clone()),
            }
        }
        totals
    }

    /// Answers `get_usage_info` with the usage of this process, which lies in every range that ends now.
    /// `lines` are the lines that file tools of the session added and removed.
    pub fn usage_info(&self, range: Option<&str>, lines: (u64, u64)) -> Result<Value, ErrorInfo> {
        let range = range.unwrap_or("all");
        if !["today", "week", "month", "all"].contains(&range) {
            let message = format!("Invalid range: {range}. Valid values are: today, week, month, all");
            return Err(ErrorInfo::new(ErrorKind::Input, "invalid_value", message).with_param("range"));
        }
        let tokens = &self.tokens;
        let mut models = self.totals_by_model();
        models.sort_by_key(|spent| std::cmp::Reverse(spent.usage.total()));
        let read_rate = ratio(tokens.cached_tokens, tokens.prompt_tokens);
        let total = tokens.prompt_tokens + tokens.completion_tokens;
        let of_model = |ModelUsage { model, calls, usage, .. }: &ModelUsage| {
            json!({
                "model": &**model,
                "requests": calls,
                "inputTokens": usage.prompt_tokens,
                "outputTokens": usage.completion_tokens,
                "cachedTokens": usage.cached_tokens,
                "thoughtsTokens": usage.thought_tokens,
                "totalTokens": usage.total(),
                "cacheReadRate": ratio(usage.cached_tokens, usage.prompt_tokens),
                "share": ratio(usage.total(), total),
            })
        };
        let models: Vec<Value> = models.iter().map(of_model).collect();
        let (added, removed) = lines;
        let sessions = u64::from(self.requests > 0);
        let generated_at = rfc3339(clock::now());
        let day: &str = generated_at.split('T').next().unwrap_or_default();
        Ok(json!({
            "subtype": "get_usage_info",
            "generatedAt": &*generated_at,
            "range": range,
            "summary": {
                "totalTokens": total,
                "inputTokens": tokens.prompt_tokens,
                "outputTokens": tokens.completion_tokens,
                "cachedTokens": tokens.cached_tokens,
                "thoughtsTokens": tokens.thought_tokens,
                "requests": self.requests,
                "sessions": sessions,
                "toolCalls": self.tool_calls,
                "linesAdded": added,
                "linesRemoved": removed,
                "cacheReadRate": read_rate,
            },
            "models": models,
            "skills": [],
            "daily": [{"date": day, "tokens": total, "sessions": sessions}],
            "heatmap": {day: {"tokens": total, "cacheReadRate": read_rate}},
            "heatmapDays": 1,
        }))
    }
}

/// Answers `get_available_models`: the model in use, the configured one and the fallbacks.
pub(super) fn available_models(process: &ProcessContext) -> Value {
    let mut names = vec![model_in_use(process), process.config.model.name.clone()];
    let fallbacks = process.config.settings.model.fallback_models.iter().flatten();
    names.extend(fallbacks.map(|name| name.as_str().into()));
    let mut models: Vec<Value> = Vec::new();
    for name in names {
        if !models.iter().any(|model| model["id"] == *name) {
            models.push(json!({
                "id": &*name, "label": &*name, "capabilities": {},
                "contextWindowSize": setup::window(&process.config).tokens,
            }));
        }
    }
    json!({"subtype": "get_available_models", "models": models})
}

fn model_in_use(process: &ProcessContext) -> Arc<str> {
    process.services.overrides.model().unwrap_or_else(|| process.config.model.name.clone())
}

/// Estimates the tokens of a text of that many bytes.
fn estimate(bytes: usize) -> u64 {
    u64::try_from(bytes / 4).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more digits than a double has")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
