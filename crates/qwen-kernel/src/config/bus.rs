//! `bus` and `node`: how sessions are shared with other machines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{ConfigError, HubConfig, duration, invalid_value, number, object, text_of, texts};

/// The bus that processes on several machines share.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BusConfig {
    /// `bus.url`: the addresses of its servers
    pub url: Option<String>,
    /// `bus.credentials`: the file that contains them
    pub credentials: Option<PathBuf>,
    /// `bus.insecure`: plain text to other machines
    pub is_insecure: bool,
    /// `bus.tls`: how both sides prove who they are
    pub tls: TlsConfig,
    /// `bus.prefix`: begins the names of all streams and subjects
    pub prefix: Option<String>,
    /// `bus.replicas`: how many servers keep each message
    pub replicas: Option<u32>,
    /// `bus.shards`: how many streams share the sessions
    pub shards: Option<u32>,
    /// `bus.events.retention`: for how long numbered lines can be read
    pub events_retention: Option<Duration>,
    /// `bus.events.coalesce`: for how long lines wait to be stored together
    pub coalesce: Option<Duration>,
    /// `bus.log.retention`: sessions that are idle for longer are deleted
    pub log_retention: Option<Duration>,
    /// `bus.heartbeat_interval`: the time between two heartbeats of a node
    pub heartbeat_interval: Option<Duration>,
    /// `bus.dead_after`: how long a node is silent before it is dead
    pub dead_after: Option<Duration>,
    /// `bus.commit_timeout`: for how long a line may wait
    pub commit_timeout: Option<Duration>,
}

/// `bus.tls`: `true`, or files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// True to refuse a server without TLS.
    pub is_required: bool,
    /// `ca`: the certificates that may sign the server's
    pub ca: Option<PathBuf>,
    /// `cert`: the certificate of this process
    pub certificate: Option<PathBuf>,
    /// `key`: the key of that certificate
    pub key: Option<PathBuf>,
}

/// `node`: what `qwen node` announces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeConfig {
    pub name: Option<String>,
    /// `node.labels`, by which `open` selects nodes
    pub labels: BTreeMap<String, String>,
    pub workspaces: Vec<NodeWorkspace>,
    /// `node.tenants`: the tenants that the node serves; all of the configuration by default
    pub tenants: Vec<String>,
}

/// A directory that a node announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWorkspace {
    pub id: String,
    pub path: PathBuf,
    pub kind: WorkspaceKind,
}

/// Where the files of a workspace are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceKind {
    /// On the machine that announces it.
    Local,
    /// On every node that announces its id.
    Shared,
}

impl WorkspaceKind {
    /// Parses the kind of an announced directory.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "local" => Some(Self::Local),
            "shared" => Some(Self::Shared),
            _ => None,
        }
    }

    /// Returns the kind as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Shared => "shared",
        }
    }
}

impl HubConfig {
    pub(super) fn read_bus(&mut self, value: &Value) -> Result<(), ConfigError> {
        for (name, value) in object("bus", value)? {
            let key = format!("bus.{name}");
            let bus = &mut self.bus;
            match name.as_str() {
                "url" => bus.url = Some(text_of(&key, value)?),
                "credentials" => bus.credentials = Some(text_of(&key, value)?.into()),
                "insecure" => bus.is_insecure = flag(&key, value)?,
                "tls" => self.read_tls(value)?,
                "prefix" => bus.prefix = Some(text_of(&key, value)?),
                "replicas" => bus.replicas = Some(number(&key, value)?),
                "shards" => bus.shards = Some(number(&key, value)?),
                "events" => self.read_bus_events(value)?,
                "log" => self.read_bus_log(value)?,
                "heartbeat_interval" => bus.heartbeat_interval = Some(duration(&key, value)?),
                "dead_after" => bus.dead_after = Some(duration(&key, value)?),
                "commit_timeout" => bus.commit_timeout = Some(duration(&key, value)?),
                _ => self.unknown.push(key),
            }
        }
        Ok(())
    }

    fn read_tls(&mut self, value: &Value) -> Result<(), ConfigError> {
        if let Some(is_required) = value.as_bool() {
            self.bus.tls.is_required = is_required;
            return Ok(());
        }
        self.bus.tls.is_required = true;
        for (name, value) in object("bus.tls", value)? {
            let key = format!("bus.tls.{name}");
            let tls = &mut self.bus.tls;
            match name.as_str() {
                "ca" => tls.ca = Some(text_of(&key, value)?.into()),
                "cert" => tls.certificate = Some(text_of(&key, value)?.into()),
                "key" => tls.key = Some(text_of(&key, value)?.into()),
                _ => self.unknown.push(key),
            }
        }
        Ok(())
    }

    fn read_bus_events(&mut self, value: &Value) -> Result<(), ConfigError> {
        for (name, value) in object("bus.events", value)? {
            let key = format!("bus.events.{name}");
            match name.as_str() {
                "retention" => self.bus.events_retention = Some(duration(&key, value)?),
                "coalesce" => self.bus.coalesce = Some(duration(&key, value)?),
                _ => self.unknown.push(key),
            }
        }
        Ok(())
    }

    fn read_bus_log(&mut self, value: &Value) -> Result<(), ConfigError> {
        for (name, value) in object("bus.log", value)? {
            let key = format!("bus.log.{name}");
            match name.as_str() {
                "retention" => self.bus.log_retention = Some(duration(&key, value)?),
                _ => self.unknown.push(key),
            }
        }
        Ok(())
    }

    pub(super) fn read_node(&mut self, value: &Value) -> Result<(), ConfigError> {
        for (name, value) in object("node", value)? {
            let key = format!("node.{name}");
            match name.as_str() {
                "name" => self.node.name = Some(text_of(&key, value)?),
                "labels" => {
                    for (name, value) in object(&key, value)? {
                        let text = match value {
                            Value::Number(_) | Value::Bool(_) => value.to_string(),
                            _ => text_of(&format!("{key}.{name}"), value)?,
                        };
                        self.node.labels.insert(name.clone(), text);
                    }
                }
                "workspaces" => {
                    let list = value.as_array().ok_or_else(|| {
                        invalid_value(&key, "it must be a list of mappings with `id`, `path` and `kind`")
                    })?;
                    for (index, value) in list.iter().enumerate() {
                        self.read_workspace(&format!("{key}.{index}"), value)?;
                    }
                }
                "tenants" => self.node.tenants = texts(&key, value)?,
                _ => self.unknown.push(key),
            }
        }
        Ok(())
    }

    fn read_workspace(&mut self, key: &str, value: &Value) -> Result<(), ConfigError> {
        let (mut id, mut path, mut kind) = (None, None, WorkspaceKind::Local);
        for (name, value) in object(key, value)? {
            let key = format!("{key}.{name}");
            match name.as_str() {
                "id" => id = Some(text_of(&key, value)?),
                "path" => path = Some(PathBuf::from(text_of(&key, value)?)),
                "kind" => {
                    kind = value.as_str().and_then(WorkspaceKind::parse).ok_or_else(|| {
                        invalid_value(&key, "a node announces the kinds \"local\" and \"shared\"")
                    })?;
                }
                _ => self.unknown.push(key),
            }
        }
        let (Some(id), Some(path)) = (id, path) else {
            return Err(invalid_value(key, "it needs `id` and `path`"));
        };
        self.node.workspaces.push(NodeWorkspace { id, path, kind });
        Ok(())
    }
}

fn flag(key: &str, value: &Value) -> Result<bool, ConfigError> {
    value.as_bool().ok_or_else(|| invalid_value(key, "the values are true and false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_bus_and_node_is_read() {
        let text = r"
bus:
  url: tls://bus.example:4222
  credentials: bus.creds
  tls: {ca: ca.pem, cert: me.pem, key: me.key}
  prefix: team
  replicas: 3
  shards: 5
  events: {retention: 1h, coalesce: 40ms}
  log: {retention: 30d}
  heartbeat_interval: 0.5
  dead_after: 2s
  commit_timeout: 1m
node:
  name: a
  labels: {gpu: true, zone: west}
  workspaces:
    - {id: repo, path: /srv/repo, kind: shared}
    - {id: own, path: /srv/own}
  tenants: [red]
";
        let config = HubConfig::parse(text).unwrap();
        assert!(config.unknown.is_empty(), "{:?}", config.unknown);
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let bus = &config.bus;
        assert_eq!((bus.prefix.as_deref(), bus.replicas, bus.shards), (Some("team"), Some(3), Some(5)));
        assert_eq!((seconds(bus.events_retention), seconds(bus.coalesce)), (Some(3600.0), Some(0.04)));
        assert_eq!(seconds(bus.log_retention), Some(30.0 * 86400.0));
        assert_eq!((seconds(bus.heartbeat_interval), seconds(bus.dead_after)), (Some(0.5), Some(2.0)));
        assert_eq!(seconds(bus.commit_timeout), Some(60.0));
        assert!(bus.tls.is_required && bus.tls.ca.is_some() && bus.tls.key.is_some());
        let node = &config.node;
        assert_eq!((node.name.as_deref(), node.labels["gpu"].as_str()), (Some("a"), "true"));
        assert_eq!(node.workspaces[0].kind, WorkspaceKind::Shared);
        assert_eq!((node.workspaces.len(), node.tenants.len()), (2, 1));
    }

    #[test]
    fn values_of_bus_and_node_that_cannot_be_meant_are_refused_with_their_key() {
        for (text, named) in [
            ("bus: {commit_timeout: soon}", "bus.commit_timeout"),
            ("bus: {events: {retention: -1}}", "bus.events.retention"),
            ("bus: {tls: 3}", "bus.tls"),
            ("bus: {shards: many}", "bus.shards"),
            ("node: {workspaces: [{id: a}]}", "node.workspaces.0"),
            ("node: {workspaces: [{id: a, path: /, kind: git}]}", "node.workspaces.0.kind"),
            ("node: {labels: [a]}", "node.labels"),
        ] {
            let error = HubConfig::parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
