//! The configuration of a hub: YAML or JSON. Every key is checked, and unknown ones are reported.

mod bus;
mod keys;
mod profile;
mod tenant;
mod tenant_options;
mod yaml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

pub use bus::{BusConfig, NodeConfig, NodeWorkspace, TlsConfig, WorkspaceKind};
pub use keys::{Keys, session_log_directory};
pub use profile::{ProfileDirectory, redacted};

use crate::process_manager::{ResourceLimits, TenantUser};
use crate::tenant::is_tenant_name;
use crate::worker_pool::PoolLimits;

/// The reason why a configuration is unusable.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the hub's configuration {path} cannot be read: {source}", path = .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// The text is neither YAML nor JSON.
    #[error("the hub's configuration is not YAML or JSON: {0}")]
    Malformed(String),
    /// A value is invalid.
    #[error("the hub's configuration, `{key}`: {problem}")]
    Value {
        key: String,
        /// What is wrong and which values are valid.
        problem: String,
    },
}

fn invalid_value(key: &str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Value { key: key.to_owned(), problem: problem.into() }
}

/// The configuration of one tenant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TenantConfig {
    /// The settings of the tenant's sessions.
    pub settings_profile: Option<Value>,
    /// Environment variables of the tenant's workers.
    pub env: BTreeMap<String, String>,
    /// The file with the credentials of the tenant's account on a bus.
    pub credentials: Option<PathBuf>,
    /// The user of the tenant's workers, `uid` and `gid`. Only a hub that root started can choose it.
    pub user: Option<TenantUser>,
    /// What the tenant's processes may use together, `limits`.
    pub limits: Option<ResourceLimits>,
}

/// How the workers of different tenants are separated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TenantIsolation {
    /// A worker has its own user and mount namespace. Without namespaces, tenants are refused.
    #[default]
    Namespaces,
    /// `none`: only the worker's own checks and the sandbox of its commands separate tenants.
    None,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct HubConfig {
    /// The limits of the pool, `worker_pool`.
    pub worker_pool: PoolLimits,
    /// The program of the workers, `binary_path`; the hub's own program by default.
    pub binary_path: Option<PathBuf>,
    /// Arguments that every worker gets, `worker_args`.
    pub worker_args: Vec<String>,
    /// `settings_profile`, for every session whose tenant has no profile
    pub settings_profile: Option<Value>,
    /// `tenants`; if not empty, other tenants are refused
    pub tenants: BTreeMap<String, TenantConfig>,
    /// How workers of different tenants are separated, `tenants.isolation`.
    pub tenant_isolation: TenantIsolation,
    /// `bus`: how sessions are shared with other machines
    pub bus: BusConfig,
    /// `node`: what `qwen node` announces
    pub node: NodeConfig,
    /// `events.max_bytes`: the size of a session's stored numbered lines
    pub max_event_bytes: Option<u64>,
    /// Unknown keys, for a warning.
    pub unknown: Vec<String>,
}

impl HubConfig {
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Parses a text: JSON, or else YAML.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_) => yaml::parse(text).map_err(ConfigError::Malformed)?,
        };
        let mut config = Self::default();
        if value.is_null() {
            return Ok(config);
        }
        for (key, value) in object("", &value)? {
            match key.as_str() {
                "worker_pool" => config.read_pool(value)?,
                "binary_path" => config.binary_path = Some(text_of(key, value)?.into()),
                "worker_args" => config.worker_args = texts(key, value)?,
                "settings_profile" => config.settings_profile = Some(profile::checked(key, value)?),
                "tenants" => config.read_tenants(value)?,
                "events" => config.read_events(value)?,
                "bus" => config.read_bus(value)?,
                "node" => config.read_node(value)?,
                _ => config.unknown.push(key.clone()),
            }
        }
        config.check()?;
        Ok(config)
    }

    fn read_pool(&mut self, value: &Value) -> Result<(), ConfigError> {
        let pool = &mut self.worker_pool;
        for (name, value) in object("worker_pool", value)? {
            let key = format!("worker_pool.{name}");
            match name.as_str() {
                "min_workers" => pool.min_workers = number(&key, value)?,
                "max_workers" => pool.max_workers = number(&key, value)?,
                "idle_timeout" => pool.idle_timeout = duration(&key, value)?,
                "max_sessions_per_worker" => pool.max_sessions_per_worker = number::<u64>(&key, value)?,
                "health_check_interval" => pool.health_check_interval = duration(&key, value)?,
                "heartbeat_interval" => pool.heartbeat_interval = duration(&key, value)?,
                "heartbeat_timeout" => pool.heartbeat_timeout = duration(&key, value)?,
                "start_timeout" => pool.start_timeout = duration(&key, value)?,
                "kill_after" => pool.kill_after = duration(&key, value)?,
                "max_worker_age" => pool.max_worker_age = Some(duration(&key, value)?),
                "max_worker_memory" => pool.max_worker_memory = Some(number(&key, value)?),
                "max_open_files" => pool.max_open_files = Some(number(&key, value)?),
                "max_address_space" => pool.max_address_space = Some(number(&key, value)?),
                "leash" => pool.leash = Some(duration(&key, value)?).filter(|leash| !leash.is_zero()),
                "max_queue" => pool.max_queue = number(&key, value)?,
                "max_queue_per_tenant" => pool.max_queue_per_tenant = number(&key, value)?,
                "queue_timeout" => pool.queue_timeout = duration(&key, value)?,
                "drain_timeout" => pool.drain_timeout = duration(&key, value)?,
                _ => self.unknown.push(key),
            }
        }
        Ok(())
    }

    fn read_events(&mut self, value: &Value) -> Result<(), ConfigError> {
        for (name, value) in object("events", value)? {
            let key = format!("events.{name}");
            match name.as_str() {
                "max_bytes" => self.max_event_bytes = Some(number(&key, value)?),
                _ => self.unknown.push(key),
            }
        }
        Ok(())
    }

    fn read_tenants(&mut self, value: &Value) -> Result<(), ConfigError> {
        for (name, value) in object("tenants", value)? {
            let key = format!("tenants.{name}");
            if name == "isolation" {
                self.tenant_isolation = match value.as_str() {
                    Some("namespaces") => TenantIsolation::Namespaces,
                    Some("none") => TenantIsolation::None,
                    _ => return Err(invalid_value(&key, "the values are \"namespaces\" and \"none\"")),
                };
                continue;
            }
            if !is_tenant_name(name) {
                return Err(invalid_value(&key, "a tenant's name is 1 to 64 letters, digits, '_' and '-'"));
            }
            let tenant = tenant::read_tenant(&key, value, &mut self.unknown)?;
            self.tenants.insert(name.clone(), tenant);
        }
        Ok(())
    }

    /// Checks constraints between several keys.
    pub fn check(&self) -> Result<(), ConfigError> {
        let pool = &self.worker_pool;
        if pool.max_workers == 0 {
            return Err(invalid_value("worker_pool.max_workers", "at least one worker is needed"));
        }
        if pool.min_workers > pool.max_workers {
            let problem =
                format!("{} is more than max_workers, which is {}", pool.min_workers, pool.max_workers);
            return Err(invalid_value("worker_pool.min_workers", problem));
        }
        tenant::check_users(self)?;
        if pool.max_sessions_per_worker == 0 {
            return Err(invalid_value(
                "worker_pool.max_sessions_per_worker",
                "at least one session is needed",
            ));
        }
        Ok(())
    }
}

fn object<'a>(key: &str, value: &'a Value) -> Result<&'a Map<String, Value>, ConfigError> {
    value.as_object().ok_or_else(|| {
        let key = if key.is_empty() { "the whole" } else { key };
        invalid_value(key, "it must be a mapping of keys to values")
    })
}

fn text_of(key: &str, value: &Value) -> Result<String, ConfigError> {
    value.as_str().map(str::to_owned).ok_or_else(|| invalid_value(key, format!("{value} is not a text")))
}

fn texts(key: &str, value: &Value) -> Result<Vec<String>, ConfigError> {
    let list = value.as_array().ok_or_else(|| invalid_value(key, "it must be a list of texts"))?;
    list.iter().map(|item| text_of(key, item)).collect()
}

fn number<T: TryFrom<u64>>(key: &str, value: &Value) -> Result<T, ConfigError> {
    let fits = value.as_u64().and_then(|number| T::try_from(number).ok());
    fits.ok_or_else(|| invalid_value(key, format!("{value} is not a whole number from 0 on")))
}

/// Reads a duration: a number of seconds, possibly fractional, or a text such as "90s".
fn duration(key: &str, value: &Value) -> Result<Duration, ConfigError> {
    let read = match value {
        Value::String(text) => parse_duration(text),
        _ => value.as_f64().filter(|number| (0.0..=1e9).contains(number)).map(Duration::from_secs_f64),
    };
    read.ok_or_else(|| {
        invalid_value(key, format!("{value} is not a number of seconds or a time such as \"90s\" or \"1h\""))
    })
}

/// Parses a duration: seconds, or a number with `ms`, `s`, `m`, `h` or `d`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let end = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    };
    let seconds = number.trim().parse::<f64>().ok()? * factor;
    (0.0..=1e10).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_is_read_as_printed() {
        let text = "worker_pool:\n  min_workers: 5\n  max_workers: 50\n  idle_timeout: 1800  # 30 分钟\n  max_sessions_per_worker: 100\n  health_check_interval: 60\n";
        let config = HubConfig::parse(text).unwrap();
        let pool = config.worker_pool;
        assert_eq!((pool.min_workers, pool.max_workers, pool.max_sessions_per_worker), (5, 50, 100));
        assert_eq!((pool.idle_timeout.as_secs(), pool.health_check_interval.as_secs()), (1800, 60));
        assert!(config.unknown.is_empty());
    }

    #[test]
    fn json_is_read_too_and_unknown_keys_are_named() {
        let config =
            HubConfig::parse(r#"{"worker_pool":{"max_workers":2,"workers":3},"colour":"red"}"#).unwrap();
        assert_eq!(config.worker_pool.max_workers, 2);
        assert_eq!(config.unknown, ["colour", "worker_pool.workers"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_key() {
        let cases = [
            ("worker_pool: {min_workers: 5, max_workers: 2}", "worker_pool.min_workers"),
            ("worker_pool: {max_workers: 0}", "worker_pool.max_workers"),
            ("worker_pool: {max_workers: many}", "worker_pool.max_workers"),
            ("worker_pool: {idle_timeout: -1}", "worker_pool.idle_timeout"),
            ("worker_pool: 3", "worker_pool"),
            ("tenants: {a.b: {}}", "tenants.a.b"),
            ("tenants: {'>': {}}", "tenants.>"),
            ("[1, 2]", "the whole"),
            ("worker_pool: {min_workers: 1", "not YAML or JSON"),
            ("a: b: c", "not YAML or JSON"),
            ("settings_profile: {colour: {}}", "settings_profile.colour"),
        ];
        for (text, named) in cases {
            let error = HubConfig::parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
        assert_eq!(HubConfig::parse("").unwrap(), HubConfig::default());
    }

    #[test]
    fn durations_are_seconds_or_texts() {
        for (text, seconds) in [
            ("90", 90.0),
            ("1.5", 1.5),
            ("250ms", 0.25),
            ("90s", 90.0),
            ("5m", 300.0),
            ("1h", 3600.0),
            ("30d", 2_592_000.0),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "h", "-1s", "1w", "NaN", "inf", "1h30m", "1e99d"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        let config = HubConfig::parse("worker_pool: {idle_timeout: 30m}").unwrap();
        assert_eq!(config.worker_pool.idle_timeout.as_secs(), 1800);
    }
}
