//! One prompt, one agent, one oracle: a turn of a real session.

use std::sync::Arc;

use qwen_engine::hooks::HookSet;
use qwen_engine::{
    Audience, Cancel, Emitter, HeadlessHost, Host, Limits, NetworkGate, NetworkSettings, NoSurroundings,
    Permissions, ProcessServices, Session, SessionContext, SessionOverrides, TurnInput, tool_search,
};
use qwen_events::{AgentName, Body, ErrorInfo, Part, SessionId, Thinking, TurnEnd};
use qwen_mcp::Servers;
use qwen_model::{Model, ModelConfig, Provider, build};
use qwen_permissions::{Mode, Policy};
use qwen_thoughts::{ThinkingOptions, ThoughtAgents};
use qwen_tools::{Registry, SessionResources};
use tokio::sync::mpsc;

/// Plays prompts with one agent.
pub struct Player {
    pub agent: AgentName,
    pub thinking: ThinkingOptions,
    model: Arc<dyn Model>,
}

/// How a prompt was played.
pub struct Played {
    /// How the turn ended.
    pub end: TurnEnd,
    /// The steps of the tree or graph, in order.
    pub steps: Vec<Thinking>,
}

impl Player {
    /// A player with the oracle that `spec` describes, such as `game24?seed=1`.
    pub fn new(agent: AgentName, spec: &str, thinking: ThinkingOptions) -> Result<Self, ErrorInfo> {
        let model = build(&ModelConfig::new(Provider::Oracle(spec.to_owned()), "oracle"))?;
        Ok(Self { agent, thinking, model })
    }

    /// Runs one prompt to its end and judges the answer.
    pub async fn play(&self, prompt: &str) -> Played {
        let (sender, mut receiver) = mpsc::channel(256);
        let emit = Emitter::new(sender);
        let mut session = Session::new(self.setup());
        let turn = async {
            let input = TurnInput::message(vec![Part::Text(prompt.into())]);
            let end = session.turn(input, &emit, &Cancel::default()).await;
            drop(emit);
            end
        };
        let watch = async {
            let mut steps = Vec::new();
            while let Some(event) = receiver.recv().await {
                if let Body::Thinking(step) = event.body {
                    steps.push(*step);
                }
            }
            steps
        };
        let (end, steps) = tokio::join!(turn, watch);
        Played { end, steps }
    }

    fn setup(&self) -> SessionContext {
        let cwd = std::path::PathBuf::from("/");
        let permissions = Arc::new(Permissions::new(
            Policy::new(Mode::Default, [cwd.clone()], None, qwen_engine::TOOLS),
            cwd.clone(),
        ));
        let host: Arc<dyn Host> = Arc::new(HeadlessHost);
        let settings = NetworkSettings::default();
        let network =
            NetworkGate::new(settings, permissions.clone(), host.clone(), Audience::Shell, "network_access");
        let process = ProcessServices {
            host,
            network: Arc::new(network),
            permissions: permissions.clone(),
            overrides: Arc::new(SessionOverrides::default()),
            mcp: Arc::new(Servers::none()),
            hooks: Arc::new(HookSet::default()),
            audience: Audience::Shell,
        };
        SessionContext {
            process: Arc::new(process),
            id: SessionId::from_random(1),
            agent: self.agent,
            search_agents: Arc::new(ThoughtAgents { options: self.thinking.clone() }),
            model: self.model.clone(),
            base_tools: Arc::new(Registry::new()),
            base_system_prompt: "You solve problems.".into(),
            limits: Limits::default(),
            resources: Arc::new(SessionResources::with_own_environment(cwd)),
            key_source: "none".into(),
            slash_commands: Vec::new(),
            skills: Vec::new(),
            agents: Arc::from([]),
            agent_levels: 0,
            schema_budget: tool_search::SCHEMA_BUDGET,
            loaded_tools: Arc::default(),
            cache_watch: Arc::default(),
            instructions: Arc::default(),
            surroundings: Arc::new(NoSurroundings),
            window: qwen_engine::compaction::Window::default(),
        }
    }
}
