//! What the host may read off: how full the context is, what was spent, which models there are.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use qwen_dialects::loom::rfc3339;
use qwen_engine::Session;
use qwen_engine::compaction::Window;
use qwen_events::{ErrorInfo, ErrorKind, Timestamp, ToolSpec};
use serde_json::{Map, Value, json};

use super::serve::Worker;
use crate::session::setup;

/// How full the context is, as of the last turn.
#[derive(Default)]
pub(super) struct Gauges {
    /// All of it.
    tokens: u64,
    /// Nobody counted that.
    estimated: bool,
    /// Of it, about so much for the system prompt.
    system: u64,
    /// And about so much for each tool.
    builtin: Vec<(Arc<str>, u64)>,
    mcp: Vec<(Arc<str>, u64)>,
}

impl Worker {
    /// Reads how full the context is now.
    pub(super) fn read_gauges(&mut self, session: &Session) {
        let setup = session.setup();
        let size = |spec: &ToolSpec| {
            let bytes = spec.name.len() + spec.description.len() + spec.parameters.as_str().len();
            (spec.name.clone(), estimate(bytes))
        };
        let (tokens, estimated) = session.context_tokens();
        self.gauges = Gauges {
            tokens,
            estimated,
            system: estimate(setup.system.len()),
            builtin: setup.tools.specs().iter().map(size).collect(),
            mcp: setup.mcp.tools().iter().map(|tool| size(tool.spec())).collect(),
        };
    }

    fn model_in_use(&self) -> Arc<str> {
        self.parts.overrides.model().unwrap_or_else(|| self.config.model_name.clone())
    }

    /// The models that can be chosen: the one in use, the configured one, and those to fall back to.
    pub(super) fn available_models(&self) -> Value {
        let mut names = vec![self.model_in_use(), self.config.model_name.clone()];
        names.extend(
            self.config.settings.model.fallback_models.iter().flatten().map(|name| name.as_str().into()),
        );
        let mut models: Vec<Value> = Vec::new();
        for name in names {
            if !models.iter().any(|model| model["id"] == *name) {
                models.push(json!({
                    "id": &*name, "label": &*name, "capabilities": {}, "contextWindowSize": setup::window(&self.config).tokens,
                }));
            }
        }
        json!({"subtype": "get_available_models", "models": models})
    }

    /// How full the context is. The whole is what the model's server counted, unless it says `estimated`; how it is made
    /// up is our own estimate.
    pub(super) fn context_usage(&self, details: bool) -> Value {
        let model = self.model_in_use();
        let claimed =
            self.claimed_tokens().map(|tokens| Gauges { tokens, estimated: true, ..Gauges::default() });
        let gauges = claimed.as_ref().unwrap_or(&self.gauges);
        let Window { tokens: window, percent } = setup::window(&self.config);
        let used = gauges.tokens;
        let free = window.saturating_sub(used);
        let sum = |tools: &[(Arc<str>, u64)]| tools.iter().map(|(_, tokens)| tokens).sum::<u64>();
        // Estimates never add up to more than there is.
        let system = gauges.system.min(used);
        let builtin = sum(&gauges.builtin).min(used - system);
        let mcp = sum(&gauges.mcp).min(used - system - builtin);
        let messages = used - system - builtin - mcp;
        // Where nothing is replaced by itself, the window is the limit.
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
        let agents: Vec<Value> = (self.config.agents.iter())
            .map(|agent| json!({"agentType": &*agent.name, "source": "session", "tokens": estimate(agent.description.len())}))
            .collect();
        json!({
            "subtype": "get_context_usage",
            "modelName": &*model,
            "model": &*model,
            "totalTokens": used,
            "estimated": gauges.estimated,
            "contextWindowSize": window,
            "maxTokens": window,
            "rawMaxTokens": window,
            "percentage": used.saturating_mul(100).checked_div(window),
            "categories": [
                {"name": "System prompt", "tokens": system, "color": "purple"},
                {"name": "System tools", "tokens": builtin, "color": "cyan"},
                {"name": "MCP tools", "tokens": mcp, "color": "green"},
                {"name": "Messages", "tokens": messages, "color": "blue"},
                {"name": "Free space", "tokens": free, "color": "gray"},
            ],
            "breakdown": {
                "systemPrompt": system, "builtinTools": builtin, "mcpTools": mcp, "memoryFiles": 0, "skills": 0,
                "startupContext": 0, "messages": messages, "unattributed": 0,
                "cachedTokens": self.sums.cached_tokens, "freeSpace": free,
                "autocompactBuffer": window.saturating_sub(auto),
                "thresholds": {"warn": warn, "auto": auto, "hard": hard, "effectiveWindow": window},
                "currentTier": tier,
            },
            "builtinTools": listed(&gauges.builtin),
            "mcpTools": listed(&gauges.mcp),
            "memoryFiles": [], "skills": [], "agents": agents, "gridRows": [],
            "isAutoCompactEnabled": percent > 0, "autoCompactThreshold": auto,
        })
    }

    /// What this process has spent, which lies in every range that ends now.
    pub(super) fn usage_info(&self, range: Option<&str>) -> Result<Value, ErrorInfo> {
        let range = range.unwrap_or("all");
        if !["today", "week", "month", "all"].contains(&range) {
            let message = format!("Invalid range: {range}. Valid values are: today, week, month, all");
            return Err(ErrorInfo::new(ErrorKind::Input, "invalid_value", message).with_param("range"));
        }
        let sums = &self.sums;
        let mut models: Map<String, Value> = Map::new();
        for spent in &sums.by_model {
            let model = models.entry(&*spent.model).or_insert_with(|| {
                json!({"model": &*spent.model, "requests": 0, "inputTokens": 0, "outputTokens": 0,
                       "cachedTokens": 0, "thoughtsTokens": 0, "totalTokens": 0})
            });
            for (field, more) in [
                ("requests", spent.calls),
                ("inputTokens", spent.usage.prompt_tokens),
                ("outputTokens", spent.usage.completion_tokens),
                ("cachedTokens", spent.usage.cached_tokens),
                ("thoughtsTokens", spent.usage.thought_tokens),
                ("totalTokens", spent.usage.total()),
            ] {
                model[field] = (model[field].as_u64().unwrap_or_default() + more).into();
            }
        }
        let read_rate = ratio(sums.cached_tokens, sums.prompt_tokens);
        let total = sums.prompt_tokens + sums.completion_tokens;
        let count = |model: &Value, field: &str| model[field].as_u64().unwrap_or_default();
        let mut models: Vec<Value> = models.into_iter().map(|(_, model)| model).collect();
        models.sort_by_key(|model| std::cmp::Reverse(count(model, "totalTokens")));
        for model in &mut models {
            model["cacheReadRate"] = ratio(count(model, "cachedTokens"), count(model, "inputTokens")).into();
            model["share"] = ratio(count(model, "totalTokens"), total).into();
        }
        // Of the session that is held, by the tools that change files; what commands change nobody counts.
        let (added, removed) = self.bench.upgrade().map(|bench| bench.lines.sums()).unwrap_or_default();
        let sessions = u64::from(sums.requests > 0);
        let generated_at = rfc3339(now());
        let day: &str = generated_at.split('T').next().unwrap_or_default();
        Ok(json!({
            "subtype": "get_usage_info",
            "generatedAt": &*generated_at,
            "range": range,
            "summary": {
                "totalTokens": total,
                "inputTokens": sums.prompt_tokens,
                "outputTokens": sums.completion_tokens,
                "cachedTokens": sums.cached_tokens,
                "thoughtsTokens": sums.thought_tokens,
                "requests": sums.requests,
                "sessions": sessions,
                "toolCalls": sums.tool_calls,
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

/// A guess at the tokens of so many bytes.
fn estimate(bytes: usize) -> u64 {
    u64::try_from(bytes / 4).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more digits than a double has")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
