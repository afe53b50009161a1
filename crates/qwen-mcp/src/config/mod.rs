//! Server configurations, read from `{"mcpServers": {…}}` in the spellings of Claude and of Qwen.

pub mod expand;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

/// Variables that the configuration of a workspace may reference: they contain no secrets.
pub(super) const REFERENCEABLE_VARIABLES: &[&str] = &[
    "HOME",
    "PATH",
    "PWD",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TMPDIR",
    "TEMP",
    "TMP",
    "CLAUDE_PROJECT_DIR",
    "QWEN_PROJECT_DIR",
];

/// How to reach one server, and which of its tools to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    pub transport: Transport,
    /// Time limit of one request; `None` means the default.
    pub timeout: Option<Duration>,
    /// The configuration asks to run its tools without permission requests. The permission policy decides
    /// whether to honour it.
    pub trust: bool,
    /// Only these tools; none means all.
    pub include_tools: Option<Vec<String>>,
    /// The tools that are not offered.
    pub exclude_tools: Vec<String>,
    pub enabled: bool,
    /// Its tools are never deferred, whatever the size of their schemas.
    pub always_load: bool,
    pub confinement: Confinement,
}

/// Permissions that a server's configuration requests for its program, beyond the defaults of its source.
/// Callers decide whether to grant them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Whether the program is sandboxed; `None` means like commands.
    pub sandbox: Option<bool>,
    /// Whether the program may use the network; `None` means the default of its source.
    pub network: Option<bool>,
    /// Additional writable directories, as configured.
    pub writable: Vec<String>,
    /// The configuration comes from the workspace, so the server is confined like a command.
    pub of_workspace: bool,
}

impl ServerConfig {
    /// Creates a configuration with defaults for everything but the transport.
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            timeout: None,
            trust: false,
            include_tools: None,
            exclude_tools: Vec::new(),
            enabled: true,
            always_load: false,
            confinement: Confinement::default(),
        }
    }

    /// True if the include and exclude lists permit the tool.
    pub(crate) fn permits(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == tool);
        self.include_tools.as_deref().is_none_or(named) && !named(&self.exclude_tools)
    }
}

/// How a server is reached. Strings may contain `${NAME}` and `${NAME:-default}`, which are expanded when the
/// server starts.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that we start and communicate with through its standard input and output.
    Stdio {
        command: String,
        args: Vec<String>,
        /// Variables on top of the session's environment.
        env: Vec<(String, String)>,
        /// Working directory; `None` means the session's directory.
        cwd: Option<PathBuf>,
    },
    /// A server that speaks streamable HTTP.
    Http {
        url: String,
        /// Sent with every request.
        headers: Vec<(String, String)>,
    },
    /// A server inside the host, reached over the control channel.
    Host,
    /// An unsupported transport, with the reason.
    Unsupported(Arc<str>),
}

impl Transport {
    /// The name of the transport in configurations.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Host => "sdk",
            Self::Unsupported(_) => "unsupported",
        }
    }
}

// Implemented manually because variables and headers contain secrets.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, .. } => {
                f.debug_struct("Stdio").field("command", command).field("args", args).finish_non_exhaustive()
            }
            Self::Http { url, .. } => f.debug_struct("Http").field("url", url).finish_non_exhaustive(),
            Self::Host => f.write_str("Host"),
            Self::Unsupported(reason) => f.debug_tuple("Unsupported").field(reason).finish(),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpConfigError {
    #[error("the MCP configuration is not JSON: {0}")]
    Json(String),
    /// The `mcpServers` object is missing.
    #[error("the MCP configuration must be an object with `mcpServers`, an object of servers by name")]
    Shape,
    /// A server's entry is invalid.
    #[error("the MCP server `{server}` cannot be used: {problem}")]
    Server { server: String, problem: String },
}

/// Parses the text of `.mcp.json` or `--mcp-config`.
pub fn parse_config(json: &str) -> Result<Vec<(Arc<str>, ServerConfig)>, McpConfigError> {
    let value: Value = serde_json::from_str(json).map_err(|error| McpConfigError::Json(error.to_string()))?;
    match value.get("mcpServers") {
        Some(Value::Object(servers)) => parse_servers(servers),
        _ => Err(McpConfigError::Shape),
    }
}

/// Parses the object of servers itself, as it appears in settings and in the SDKs' handshake.
pub fn parse_servers(servers: &Map<String, Value>) -> Result<Vec<(Arc<str>, ServerConfig)>, McpConfigError> {
    servers.iter().map(|(name, value)| Ok((name.as_str().into(), parse_server(name, value)?))).collect()
}

pub fn parse_server(name: &str, value: &Value) -> Result<ServerConfig, McpConfigError> {
    let wrong = |problem: String| McpConfigError::Server { server: name.to_owned(), problem };
    check_name(name).map_err(wrong)?;
    let Value::Object(fields) = value else { return Err(wrong("it must be an object".to_owned())) };
    read(&Fields(fields)).map_err(wrong)
}

/// Checks that `mcp__<server>__<tool>` can be split unambiguously, so that no server can impersonate another.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || !name.bytes().all(is_name_byte) {
        Err("its name may contain only letters, digits, `_`, `.` and `-`".to_owned())
    } else if name.contains("__") || name.ends_with('_') {
        Err("its name must not contain `__` nor end with `_`, which separate servers from tools".to_owned())
    } else if name.len() > 64 {
        Err("its name is longer than 64 characters".to_owned())
    } else {
        Ok(())
    }
}

/// True if names of servers and tools may contain this byte.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

struct Fields<'a>(&'a Map<String, Value>);

fn read(fields: &Fields<'_>) -> Result<ServerConfig, String> {
    let mut config = ServerConfig::new(transport(fields)?);
    config.timeout = fields.number("timeout")?.map(Duration::from_millis);
    config.trust = fields.flag("trust")?.unwrap_or(false);
    config.include_tools = fields.texts("includeTools")?;
    config.exclude_tools = fields.texts("excludeTools")?.unwrap_or_default();
    config.enabled = fields.flag("enabled")?.unwrap_or(true) && !fields.flag("disabled")?.unwrap_or(false);
    config.always_load = fields.flag("alwaysLoad")?.unwrap_or(false);
    config.confinement = Confinement {
        sandbox: fields.flag("sandbox")?,
        network: fields.flag("network")?,
        writable: fields.texts("writableDirectories")?.unwrap_or_default(),
        of_workspace: false,
    };
    Ok(config)
}

fn transport(fields: &Fields<'_>) -> Result<Transport, String> {
    let url = match fields.text("httpUrl")? {
        Some(url) => Some(url),
        None => fields.text("url")?,
    };
    let kind = match (fields.text("type")?, fields.has("command"), &url) {
        (Some(kind), ..) => kind,
        (None, true, _) => "stdio".to_owned(),
        (None, false, Some(_)) => "http".to_owned(),
        (None, false, None) => {
            return Err("it needs `command` for a program or `url` for a server".to_owned());
        }
    };
    match kind.as_str() {
        "stdio" => Ok(Transport::Stdio {
            command: fields
                .text("command")?
                .filter(|command| !command.trim().is_empty())
                .ok_or_else(|| "`command` is missing; it must name a program".to_owned())?,
            args: fields.texts("args")?.unwrap_or_default(),
            env: fields.pairs("env")?,
            cwd: fields.text("cwd")?.map(PathBuf::from),
        }),
        "http" | "streamable-http" | "streamableHttp" => Ok(Transport::Http {
            url: url
                .filter(|url| url.starts_with("http://") || url.starts_with("https://") || url.starts_with("${"))
                .ok_or_else(|| "`url` is missing; it must be an http:// or https:// address".to_owned())?,
            headers: fields.pairs("headers")?,
        }),
        "sdk" => Ok(Transport::Host),
        "sse" => Ok(Transport::Unsupported(
            "the old transport `sse` is not supported; use the server's streamable HTTP address with type `http`".into(),
        )),
        other => Err(format!("its type is `{other}`; the types are stdio, http and sdk")),
    }
}

impl Fields<'_> {
    fn non_null(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    fn has(&self, field: &str) -> bool {
        self.non_null(field).is_some()
    }

    fn text(&self, field: &str) -> Result<Option<String>, String> {
        match self.non_null(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{field}` must be a string")),
        }
    }

    fn flag(&self, field: &str) -> Result<Option<bool>, String> {
        match self.non_null(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(format!("`{field}` must be true or false")),
        }
    }

    fn number(&self, field: &str) -> Result<Option<u64>, String> {
        match self.non_null(field) {
            None => Ok(None),
            Some(value) => match value.as_u64().filter(|number| *number > 0) {
                Some(number) => Ok(Some(number)),
                None => Err(format!("`{field}` must be a number of milliseconds above 0")),
            },
        }
    }

    fn texts(&self, field: &str) -> Result<Option<Vec<String>>, String> {
        let wrong = || format!("`{field}` must be a list of strings");
        match self.non_null(field) {
            None => Ok(None),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect::<Result<_, _>>()
                .map(Some),
            Some(_) => Err(wrong()),
        }
    }

    fn pairs(&self, field: &str) -> Result<Vec<(String, String)>, String> {
        let wrong = || format!("`{field}` must be an object of strings");
        match self.non_null(field) {
            None => Ok(Vec::new()),
            Some(Value::Object(pairs)) => pairs
                .iter()
                .map(|(name, value)| match value {
                    Value::String(text) => Ok((name.clone(), text.clone())),
                    Value::Number(_) | Value::Bool(_) => Ok((name.clone(), value.to_string())),
                    _ => Err(wrong()),
                })
                .collect(),
            Some(_) => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(value: &Value) -> Result<ServerConfig, String> {
        parse_server("s", value).map_err(|error| error.to_string())
    }

    #[test]
    fn both_spellings_are_read() {
        let text = r#"{"mcpServers":{
            "a":{"command":"npx","args":["-y","x"],"env":{"K":"v","N":1},"cwd":"/w","timeout":5000,"trust":true,
                 "includeTools":["t"],"excludeTools":["u"]},
            "b":{"type":"http","url":"https://h/mcp","headers":{"Authorization":"Bearer ${T}"}},
            "c":{"httpUrl":"http://h/mcp"},
            "d":{"type":"sdk","name":"d"},
            "e":{"type":"stdio","command":"x","disabled":true}}}"#;
        let servers = parse_config(text).unwrap();
        let config = |name: &str| servers.iter().find(|(known, _)| &**known == name).unwrap().1.clone();
        let a = config("a");
        assert_eq!(
            a.transport,
            Transport::Stdio {
                command: "npx".into(),
                args: vec!["-y".into(), "x".into()],
                env: vec![("K".into(), "v".into()), ("N".into(), "1".into())],
                cwd: Some("/w".into()),
            }
        );
        assert_eq!((a.timeout, a.trust), (Some(Duration::from_secs(5)), true));
        assert!(a.permits("t") && !a.permits("u") && !a.permits("v"));
        let headers = vec![("Authorization".to_owned(), "Bearer ${T}".to_owned())];
        assert_eq!(config("b").transport, Transport::Http { url: "https://h/mcp".into(), headers });
        assert_eq!(config("c").transport, Transport::Http { url: "http://h/mcp".into(), headers: vec![] });
        assert_eq!(config("d").transport, Transport::Host);
        assert!(!config("e").enabled);
    }

    #[test]
    fn the_old_transport_is_named_and_not_an_error() {
        let config = one(&json!({"type": "sse", "url": "https://h/sse"})).unwrap();
        assert!(
            matches!(config.transport, Transport::Unsupported(reason) if reason.contains("`sse` is not supported"))
        );
    }

    #[test]
    fn a_configuration_error_names_the_server() {
        for (value, problem) in [
            (json!({}), "it needs `command` for a program or `url` for a server"),
            (json!([]), "it must be an object"),
            (json!({"command": 1}), "`command` must be a string"),
            (json!({"command": " "}), "`command` is missing; it must name a program"),
            (json!({"command": "x", "args": "y"}), "`args` must be a list of strings"),
            (json!({"command": "x", "env": {"A": []}}), "`env` must be an object of strings"),
            (json!({"command": "x", "timeout": 0}), "`timeout` must be a number of milliseconds above 0"),
            (json!({"url": "ftp://h"}), "`url` is missing; it must be an http:// or https:// address"),
            (
                json!({"type": "carrier-pigeon"}),
                "its type is `carrier-pigeon`; the types are stdio, http and sdk",
            ),
        ] {
            let error = one(&value).unwrap_err();
            assert_eq!(error, format!("the MCP server `s` cannot be used: {problem}"), "{value}");
        }
        assert_eq!(parse_config("{}"), Err(McpConfigError::Shape));
        assert!(matches!(parse_config("{"), Err(McpConfigError::Json(_))));
    }

    #[test]
    fn no_server_can_have_a_name_that_passes_for_another() {
        for name in ["a", "my-server", "a.b", "a_b", "_a", "A1"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "a__b", "a_", "__", "a b", "a/b", "ä", "a\u{200b}", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let config = one(&json!({"url": "https://h", "headers": {"Authorization": "geheim"}})).unwrap();
        assert!(!format!("{config:?}").contains("geheim"));
        let config = one(&json!({"command": "x", "env": {"K": "geheim"}})).unwrap();
        assert!(!format!("{config:?}").contains("geheim"));
    }
}
