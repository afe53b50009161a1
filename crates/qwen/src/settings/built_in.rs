//! The built-in defaults as a settings tree, for `qwen config`.

use qwen_engine::compaction::DEFAULT_WINDOW;
use qwen_engine::{memory, subagent};
use qwen_model::{ModelConfig, Provider};
use qwen_permissions::Mode;
use qwen_thoughts::ThinkingOptions;
use qwen_tools::SessionResources;
use serde_json::json;

use super::Invocation;
use super::file::{Layer, Node, Origin};
use super::layers::{Layered, merge};

impl Layered {
    /// The settings merged on top of the built-in defaults.
    pub fn with_built_in(&self, invocation: &Invocation) -> Node {
        let model = ModelConfig::new(Provider::OpenAi, "");
        let timeouts = model.timeouts;
        let known = self.provider(invocation);
        let ThinkingOptions { tot, got, parallel, timeout, retries } = ThinkingOptions::default();
        let agent = json!({
            "name": "react",
            "tot": {
                "search": tot.search,
                "breadth": tot.breadth,
                "proposals": tot.proposals,
                "depth": tot.depth,
                "samples": tot.samples,
                "threshold": tot.threshold,
                "maxThoughts": tot.max_thoughts,
            },
            "got": {
                "maxNodes": got.max_nodes,
                "maxDepth": got.max_depth,
                "maxLayers": got.max_layers,
                "maxPerLayer": got.max_per_layer,
            },
            "adaptive": got.adaptive,
            "parallel": parallel,
            "thoughtTimeout": timeout.map(|time| time.as_secs()),
            "thoughtRetries": retries,
            "maxSubagentDepth": subagent::MAX_DEPTH,
        });
        let built_in = json!({
            "model": {
                "name": known.map(|known| known.model),
                "authType": known.map(|known| known.auth_type),
                "baseUrl": known.and_then(|known| known.base_url),
                "maxRetries": model.max_retries,
                "connectTimeout": timeouts.connect.as_secs(),
                "firstTokenTimeout": timeouts.first_token.as_secs(),
                "stallTimeout": timeouts.stall.as_secs(),
                "maxWait": model.max_wait.as_secs(),
                "textToolCalls": "auto",
                "contextWindow": DEFAULT_WINDOW,
            },
            "output": {"format": "text"},
            "permissions": {"defaultMode": Mode::default().name()},
            "tools": {
                "sandbox": "auto",
                "sandboxNetwork": false,
                "sandboxUnasked": false,
                "schemaBudget": qwen_engine::tool_search::SCHEMA_BUDGET,
                "shell": {
                    "timeoutMs": u64::try_from(SessionResources::SHELL_TIMEOUT.as_millis()).unwrap_or(u64::MAX),
                    "outputLimit": SessionResources::OUTPUT_LIMIT,
                },
            },
            "agent": agent,
            "general": {"chatRecording": true},
            "telemetry": {"enabled": false, "otlpEndpoint": super::telemetry::DEFAULT_ENDPOINT, "logPrompts": false},
            "context": {"fileName": memory::NAMES, "maxFileSize": memory::MAX_TOTAL},
        });
        let mut root = Node::of_json(&Origin::new(Layer::BuiltIn, "built-in"), built_in);
        for key in ["name", "authType", "baseUrl"] {
            let path = format!("model.{key}");
            if root.at(&path).is_some_and(|node| node.value == super::file::Value::Null) {
                root.remove(&path);
            }
        }
        merge(&mut root, self.root.clone());
        root
    }
}
