//! The state of a session as its client knows it.

use std::sync::Arc;

use qwen_dialects::acp::wire::{AvailableCommand, ConfigChoice, ConfigOption, Mode, ModeState};
use qwen_dialects::acp::{APPROVAL_MODES, PromptContent, one_line, push_prompt};
use qwen_events::SessionId;
use serde_json::{Value, json};

use super::session_settings::SessionSettings;
use qwen_dialects::acp::rpc::{RpcError, RpcId};

/// The thought levels: value, name.
const EFFORTS: [(&str, &str); 4] =
    [("default", "Default"), ("low", "Low"), ("medium", "Medium"), ("high", "High")];

/// The ids of the options.
pub const MODE_OPTION: &str = "mode";
pub const MODEL_OPTION: &str = "model";
pub const EFFORT_OPTION: &str = "thought_level";

/// The running turn of a session, from its prompt to the answer.
pub struct Turn {
    /// Our id of the prompt.
    pub prompt_id: String,
    /// The id of the client's `session/prompt`, which the end of the turn answers.
    pub request: RpcId,
    /// The client cancelled it: its answer is `cancelled` whatever happens.
    pub is_cancelled: bool,
    /// Prompts that are to join the turn.
    pub steering: Vec<Steering>,
    /// The content of the prompt.
    pub content: PromptContent,
    /// The updates of the turn until now.
    pub shown: ShownUpdates,
    /// The result of the turn, which waits for a steered prompt that came too late to join it.
    pub held_result: Option<Result<Value, RpcError>>,
}

/// A prompt that is to join the running turn.
pub struct Steering {
    pub prompt_id: String,
    /// The id of the client's `_session/steering`.
    pub request: RpcId,
    pub content: PromptContent,
}

/// The updates that the client received during a turn. The session's log has them only once their message or call is
/// complete, and a client that loads the session during the turn needs all of them.
#[derive(Default)]
pub struct ShownUpdates {
    lines: Vec<u8>,
    is_cut: bool,
}

/// The maximum size of the updates that are held for one turn, in bytes.
const MAX_SHOWN: usize = 32 * 1024 * 1024;

impl ShownUpdates {
    /// Adds a line, without its line break.
    pub fn push(&mut self, line: &[u8]) {
        if self.is_cut || self.lines.len() + line.len() >= MAX_SHOWN {
            *self = Self { lines: Vec::new(), is_cut: true };
            return;
        }
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
    }

    /// Adds a prompt that joined the turn.
    pub fn push_prompt(&mut self, session_id: &SessionId, steering: &Steering) {
        if !self.is_cut {
            push_prompt(session_id.as_str(), &steering.prompt_id, &steering.content, &mut self.lines);
        }
    }

    /// All lines; none if there were too many to hold them.
    pub fn lines(&self) -> Option<&[u8]> {
        (!self.is_cut).then_some(&self.lines)
    }
}

/// The requests that are answered once the session has no turn and is closed.
#[derive(Default)]
pub struct Closing {
    pub closes: Vec<RpcId>,
    /// Requests to delete the session's log, too.
    pub deletes: Vec<RpcId>,
}

/// A session that the client opened on this connection.
pub struct Session {
    pub id: SessionId,
    pub turn: Option<Turn>,
    pub closing: Option<Closing>,
    pub settings: SessionSettings,
    pub mode: String,
    pub model: Arc<str>,
    /// `default`, or a thought level.
    pub effort: String,
    /// The cost of the session until now, in US dollars.
    pub spent: f64,
    /// The title, from the first prompt.
    pub title: Option<String>,
}

impl Session {
    pub fn new(id: SessionId, settings: SessionSettings) -> Self {
        Self {
            id,
            turn: None,
            closing: None,
            mode: settings.mode.name().to_owned(),
            model: settings.model.clone(),
            effort: settings.effort.clone().unwrap_or_else(|| "default".to_owned()),
            settings,
            spent: 0.0,
            title: None,
        }
    }

    /// The modes with the one in force.
    pub fn modes(&self) -> ModeState<'_> {
        let offered = APPROVAL_MODES.iter().filter(|(id, ..)| *id != "yolo" || self.may_use_yolo());
        let mut available: Vec<Mode<'_>> = offered
            .map(|(id, name, description)| Mode {
                id: (*id).into(),
                name: (*name).into(),
                description: Some((*description).into()),
            })
            .collect();
        if !available.iter().any(|mode| mode.id == self.mode) {
            let id = self.mode.as_str();
            available.push(Mode { id: id.into(), name: id.into(), description: None });
        }
        ModeState { current_mode_id: self.mode.as_str().into(), available_modes: available }
    }

    fn may_use_yolo(&self) -> bool {
        self.settings.may_skip_approval || self.mode == "yolo"
    }

    pub fn has_mode(&self, id: &str) -> bool {
        self.modes().available_modes.iter().any(|mode| mode.id == id)
    }

    pub fn has_effort(&self, value: &str) -> bool {
        value == self.effort || EFFORTS.iter().any(|(known, _)| *known == value)
    }

    /// All options with their values.
    pub fn config_options(&self) -> Vec<ConfigOption<'_>> {
        let choice = |value: &str, name: &str, description: Option<&str>| ConfigChoice {
            value: value.to_owned().into(),
            name: name.to_owned().into(),
            description: description.map(|text| text.to_owned().into()),
        };
        let modes = self.modes().available_modes;
        let modes =
            modes.iter().map(|mode| choice(&mode.id, &mode.name, mode.description.as_deref())).collect();
        let mut models: Vec<ConfigChoice<'_>> = Vec::new();
        let named = [&self.model, &self.settings.model].into_iter().chain(&self.settings.other_models);
        for name in named {
            if !models.iter().any(|model| model.value == **name) {
                models.push(choice(name, &one_line(name), None));
            }
        }
        let mut efforts: Vec<ConfigChoice<'_>> =
            EFFORTS.iter().map(|(value, name)| choice(value, name, None)).collect();
        if !efforts.iter().any(|effort| effort.value == self.effort) {
            efforts.push(choice(&self.effort, &self.effort, None));
        }
        let option = |id: &'static str, name: &'static str, current: &str, options| ConfigOption {
            id: id.into(),
            name: name.into(),
            description: None,
            category: Some(id.into()),
            kind: "select".into(),
            current_value: current.to_owned().into(),
            options,
        };
        vec![
            option(MODE_OPTION, "Mode", &self.mode, modes),
            option(MODEL_OPTION, "Model", &self.model, models),
            option(EFFORT_OPTION, "Thought level", &self.effort, efforts),
        ]
    }

    /// `modes` and `configOptions`, as the answers to `session/new`, `load` and `resume` have them.
    pub fn state(&self) -> Value {
        json!({"modes": self.modes(), "configOptions": self.config_options()})
    }
}

/// The slash commands that a worker reported, for the client.
pub fn commands(reported: &Value) -> Vec<AvailableCommand<'_>> {
    // These control a terminal or would leave the session that the client shows.
    const HIDDEN: [&str; 8] = ["quit", "exit", "clear", "resume", "fork", "theme", "editor", "vim"];
    let text = |command: &Value, name: &str| command.get(name)?.as_str().map(str::to_owned);
    let listed = reported.as_array().into_iter().flatten();
    listed
        .filter_map(|command| {
            let name = text(command, "name").filter(|name| !HIDDEN.contains(&name.as_str()))?;
            let hint = text(command, "argumentHint").filter(|hint| !hint.is_empty());
            Some(AvailableCommand {
                name: name.into(),
                description: one_line(&text(command, "description").unwrap_or_default()).into(),
                input: hint.map(|hint| qwen_dialects::acp::wire::CommandInput { hint: hint.into() }),
            })
        })
        .collect()
}
