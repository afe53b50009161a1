//! What the client advertised, as far as it changes the lines.

use serde_json::Value;

/// The approval modes: id, name, description.
pub const APPROVAL_MODES: [(&str, &str, &str); 4] = [
    ("plan", "Plan", "Reads only, and proposes a plan before it changes anything"),
    ("default", "Default", "Asks before changes and commands"),
    ("auto-edit", "Auto-edit", "Changes files in the workspace without asking; asks before commands"),
    ("yolo", "YOLO", "Asks about nothing"),
];

/// How the client shows the output of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TerminalOutput {
    /// As text in the content of the call.
    #[default]
    Text,
    /// In a display-only terminal, fed through `_meta.terminal_output`.
    Terminal,
    /// The same, fed through `_meta.terminal_output_delta`.
    TerminalDelta,
}

/// How the client shows what sub-agents do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubAgents {
    /// Their calls have the sub-agent's name in their titles; their texts are not sent.
    #[default]
    Titles,
    /// As a nested transcript: every update names the call that started the sub-agent in its `_meta`.
    Transcripts,
    /// Each as a session with its own id, which is announced in the session that started it.
    Sessions,
}

/// The capabilities of a client that change what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AcpClient {
    pub terminal: TerminalOutput,
    /// True if the client advertised `session.notices`: it receives `notice` updates.
    pub notices: bool,
    /// True if the client advertised `session.compaction`; otherwise a notice reports a compaction.
    pub compaction: bool,
    /// True if the client advertised `elicitation.form`: questions to the user are sent as forms.
    pub forms: bool,
    pub agents: SubAgents,
    /// True with `--acp-unstable usage`: prompt responses contain the turn's token counts.
    pub unstable_usage: bool,
}

impl AcpClient {
    /// Parses the names that [`Self::names`] returns, separated by commas. Unknown names are an error.
    pub fn parse(names: &str) -> Result<Self, String> {
        let mut client = Self::default();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "terminal" => client.terminal = TerminalOutput::Terminal,
                "terminal-delta" => client.terminal = TerminalOutput::TerminalDelta,
                "notices" => client.notices = true,
                "compaction" => client.compaction = true,
                "forms" => client.forms = true,
                "transcripts" => client.agents = SubAgents::Transcripts,
                "agent-sessions" => client.agents = SubAgents::Sessions,
                "usage" => client.unstable_usage = true,
                other => return Err(format!("'{other}' is not a capability of an ACP client")),
            }
        }
        Ok(client)
    }

    /// The names of the capabilities, separated by commas.
    pub fn names(&self) -> String {
        let terminal = match self.terminal {
            TerminalOutput::Text => None,
            TerminalOutput::Terminal => Some("terminal"),
            TerminalOutput::TerminalDelta => Some("terminal-delta"),
        };
        let agents = match self.agents {
            SubAgents::Titles => None,
            SubAgents::Transcripts => Some("transcripts"),
            SubAgents::Sessions => Some("agent-sessions"),
        };
        let flags = [
            (self.notices, "notices"),
            (self.compaction, "compaction"),
            (self.forms, "forms"),
            (self.unstable_usage, "usage"),
        ];
        let named = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name);
        terminal.into_iter().chain(agents).chain(named).collect::<Vec<_>>().join(",")
    }

    /// Returns what a client can show, from the capabilities that it sends. Only what it names counts.
    pub fn advertised(capabilities: &Value) -> Self {
        let is_marked = |pointer: &str| capabilities.pointer(pointer).is_some_and(Value::is_object);
        let is_true = |pointer: &str| capabilities.pointer(pointer) == Some(&Value::Bool(true));
        let air = capabilities
            .pointer("/_meta/jetbrains/air/capabilities")
            .or_else(|| capabilities.pointer("/_meta/jetbrains.air/capabilities"));
        let has_native_subagents = air
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|name| name == "nativeSubagentSessions"));
        let terminal = match () {
            () if is_true("/_meta/terminal_output_delta") => TerminalOutput::TerminalDelta,
            () if is_true("/_meta/terminal_output") => TerminalOutput::Terminal,
            () => TerminalOutput::Text,
        };
        let transcripts = capabilities.pointer("/_meta/subagent-transcript");
        let has_transcripts =
            transcripts.is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)));
        let agents = match () {
            () if has_native_subagents => SubAgents::Sessions,
            () if has_transcripts => SubAgents::Transcripts,
            () => SubAgents::Titles,
        };
        Self {
            terminal,
            notices: is_marked("/session/notices"),
            compaction: is_marked("/session/compaction"),
            forms: is_marked("/elicitation/form"),
            agents,
            unstable_usage: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_parsed_back() {
        let all = AcpClient {
            terminal: TerminalOutput::TerminalDelta,
            notices: true,
            compaction: true,
            forms: true,
            agents: SubAgents::Transcripts,
            unstable_usage: true,
        };
        let sessions = AcpClient { agents: SubAgents::Sessions, ..AcpClient::default() };
        for client in [AcpClient::default(), all, sessions] {
            assert_eq!(AcpClient::parse(&client.names()), Ok(client));
        }
        assert!(AcpClient::parse("telepathy").is_err());
    }

    #[test]
    fn only_what_is_advertised_counts() {
        assert_eq!(AcpClient::advertised(&Value::Null), AcpClient::default());
        let nothing =
            json!({"elicitation": {}, "session": {"notices": null}, "_meta": {"terminal_output": false}});
        assert_eq!(AcpClient::advertised(&nothing), AcpClient::default());
        let all = json!({"elicitation": {"form": {}}, "session": {"notices": {}, "compaction": {}},
            "_meta": {"terminal_output": true, "subagent-transcript": {}}});
        let client = AcpClient::advertised(&all);
        assert!(client.forms && client.notices && client.compaction);
        assert_eq!((client.terminal, client.agents), (TerminalOutput::Terminal, SubAgents::Transcripts));
        let air = json!({"_meta": {"jetbrains": {"air": {"version": 1, "capabilities": ["nativeSubagentSessions"]}}}});
        assert_eq!(AcpClient::advertised(&air).agents, SubAgents::Sessions);
    }
}
