//! What the host may read off: how full the context is, what was spent, which models there are.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use qwen_dialects::loom::rfc3339;
use qwen_engine::Session;
use qwen_engine::compaction::Window;
use qwen_events::{ErrorInfo, ErrorKind, Timestamp, ToolSpec};
use serde_json::{Map, Value, json};

use super::serve::Worker;
use crate::setup;

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
        self.parts.dials.model().unwrap_or_else(|| self.config.model_name.clone())
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
        let (gauges, model) = (&self.gauges, self.model_in_use());
        let Window { tokens: window, percent } = setup::window(&self.config);
        let used = gauges.tokens;
        let free = window.saturating_sub(used);
        let sum = |tools: &[(Arc<str>, u64)]| tools.iter().map(|(_, tokens)| tokens).sum::<u64>();
        // Estimates never add up to more than there is.
        let system = gauges.system.min(used);
        let builtin = sum(&gauges.builtin).min(used - system);
        let mcp = sum(&gauges.mcp).min(used - system - builtin);
        let messages = used - system - builtin - mcp;
        let [warn, auto, hard] = [70, percent, 95].map(|percent| window / 100 * percent);
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
            "memoryFiles": [], "skills": [],
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
        Ok(json!({
            "subtype": "get_usage_info",
            "generatedAt": rfc3339(now()),
            "range": range,
            "summary": {
                "totalTokens": sums.prompt_tokens + sums.completion_tokens,
                "inputTokens": sums.prompt_tokens,
                "outputTokens": sums.completion_tokens,
                "cachedTokens": sums.cached_tokens,
                "thoughtsTokens": sums.thought_tokens,
                "requests": sums.requests,
                "sessions": u64::from(sums.requests > 0),
                "toolCalls": sums.tool_calls,
                "linesAdded": 0,
                "linesRemoved": 0,
                "cacheReadRate": read_rate,
            },
            "models": models.into_iter().map(|(_, model)| model).collect::<Vec<_>>(),
            "skills": [], "daily": [], "heatmap": [], "heatmapDays": 0,
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
