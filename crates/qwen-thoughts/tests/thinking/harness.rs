//! A session with an agent, a model and perhaps a log, and what is heard of its turns.

use std::path::Path;
use std::sync::Arc;

use qwen_engine::hooks::HookSet;
use qwen_engine::log::{LogHeader, Recorder, Store};
use qwen_engine::{
    Audience, Cancel, Emitter, HeadlessHost, Host, Limits, NetworkGate, NetworkSettings, NoSurroundings,
    Permissions, ProcessServices, Session, SessionContext, SessionOverrides, TurnInput,
};
use qwen_events::{AgentName, Body, Event, Part, SessionId, Thinking, Timestamp, TurnEnd};
use qwen_mcp::Servers;
use qwen_model::{Model, ModelConfig, Provider, build};
use qwen_permissions::{Mode, Policy};
use qwen_thoughts::{ThinkingOptions, ThoughtAgents};
use qwen_tools::{Registry, SessionResources};
use tokio::sync::mpsc;

pub fn session_id() -> SessionId {
    SessionId::parse("thinker").expect("an id")
}

pub fn oracle(spec: &str) -> Arc<dyn Model> {
    build(&ModelConfig::new(Provider::Oracle(spec.to_owned()), "oracle")).expect("an oracle")
}

/// What a test may change before its session begins.
pub struct Setup {
    pub context: SessionContext,
    pub thinking: ThinkingOptions,
}

pub fn setup(agent: AgentName, model: Arc<dyn Model>, change: impl FnOnce(&mut Setup)) -> SessionContext {
    let cwd = std::env::temp_dir();
    let permissions = Arc::new(Permissions::new(
        Policy::new(Mode::Yolo, [cwd.clone()], None, qwen_engine::TOOLS),
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
    let context = SessionContext {
        process: Arc::new(process),
        id: session_id(),
        agent,
        search_agents: Arc::new(ThoughtAgents::default()),
        model,
        base_tools: Arc::new(Registry::new()),
        base_system_prompt: "You solve problems.".into(),
        limits: Limits::default(),
        resources: Arc::new(SessionResources::with_own_environment(cwd)),
        key_source: "none".into(),
        agents: Arc::from([]),
        skills: Vec::new(),
        agent_levels: 0,
        slash_commands: Vec::new(),
        instructions: Arc::default(),
        schema_budget: qwen_engine::tool_search::SCHEMA_BUDGET,
        loaded_tools: Arc::default(),
        cache_watch: Arc::default(),
        surroundings: Arc::new(NoSurroundings),
        window: qwen_engine::compaction::Window::default(),
    };
    let mut setup = Setup { context, thinking: ThinkingOptions::default() };
    change(&mut setup);
    let search_agents = Arc::new(ThoughtAgents { options: setup.thinking });
    SessionContext { search_agents, ..setup.context }
}

pub fn recorder(home: &Path) -> Recorder {
    let header = LogHeader {
        session_id: session_id(),
        cwd: "/".into(),
        created: Timestamp(1),
        version: "0".into(),
        parent: None,
        title: Arc::default(),
    };
    Recorder::begin(Some(Store::new(home)), header)
}

/// What is heard of a turn.
pub struct Heard {
    pub end: TurnEnd,
    pub events: Vec<Event>,
}

impl Heard {
    pub fn steps(&self) -> Vec<&Thinking> {
        let step = |event: &'_ Event| matches!(event.body, Body::Thinking(_));
        let steps = self.events.iter().filter(|event| step(event));
        steps
            .map(|event| match &event.body {
                Body::Thinking(step) => &**step,
                _ => unreachable!("only steps are left"),
            })
            .collect()
    }

    /// The codes of the errors that the turn went on after.
    pub fn errors(&self) -> Vec<&str> {
        let code = |event: &'_ Event| match &event.body {
            Body::Error(error) => Some(error.code),
            _ => None,
        };
        self.events.iter().filter_map(code).collect()
    }

    /// The state that was told last.
    pub fn state(&self) -> serde_json::Value {
        let state = self.events.iter().rev().find_map(|event| match &event.body {
            Body::Checkpoint(checkpoint) => Some(checkpoint.state.as_str()),
            _ => None,
        });
        serde_json::from_str(state.expect("a checkpoint")).expect("JSON")
    }
}

/// Runs a prompt, or goes on with what was left unfinished.
pub async fn hear(session: &mut Session, prompt: Option<&str>) -> Heard {
    hear_until(session, prompt, &Cancel::default(), |_| {}).await
}

/// The same, with someone who watches and may cancel.
pub async fn hear_until(
    session: &mut Session,
    prompt: Option<&str>,
    cancel: &Cancel,
    mut watch: impl FnMut(&Event),
) -> Heard {
    let (sender, mut receiver) = mpsc::channel(64);
    let emit = Emitter::new(sender).with_state();
    let turn = async {
        let end = match prompt {
            Some(prompt) => {
                let input = TurnInput::message(vec![Part::Text(prompt.into())]);
                Box::pin(session.turn(input, &emit, cancel)).await
            }
            None => session.continue_unfinished(true, &emit, cancel).await.expect("an unfinished turn"),
        };
        drop(emit);
        end
    };
    let listen = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            watch(&event);
            events.push(event);
        }
        events
    };
    let (end, events) = tokio::join!(turn, listen);
    Heard { end, events }
}

/// Runs one prompt in a session without a log.
pub async fn ask(setup: SessionContext, prompt: &str) -> Heard {
    hear(&mut Session::new(setup), Some(prompt)).await
}
