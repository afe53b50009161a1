//! The bus of a process: how it is named and reached.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_fleet::{Bus, BusError, BusIdentity, BusOptions, BusSessions, Timing, TlsOptions};
use qwen_kernel::config::{BusConfig, HubConfig, TenantConfig, parse_duration};

use tokio::task::LocalSet;

use super::run_to_completion;
use crate::cli::BusFlags;
use crate::settings::Invocation;

/// How long after one append further lines of a session are collected.
const COALESCE: Duration = Duration::from_millis(40);
/// How long a session may be idle before it is deleted.
const LOG_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a line may wait for the bus.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns how to reach the bus, if one is named: by flag, variable or configuration, in this order.
pub fn options(
    flags: &BusFlags,
    config: &BusConfig,
    invocation: &Invocation,
) -> Result<Option<BusOptions>, ErrorInfo> {
    let variable = |name: &str| invocation.var(name).map(str::to_owned);
    let url = flags.bus.clone().or_else(|| variable("QWEN_BUS")).or_else(|| config.url.clone());
    let Some(url) = url else { return Ok(None) };
    let file = |flag: &Option<PathBuf>, name: &str, configured: &Option<PathBuf>| {
        let path = flag.clone().or_else(|| variable(name).map(Into::into)).or_else(|| configured.clone());
        path.map(|path| invocation.cwd.join(path))
    };
    let credentials = file(&flags.bus_credentials, "QWEN_BUS_CREDENTIALS", &config.credentials);
    let ca = file(&flags.bus_tls_ca, "QWEN_BUS_TLS_CA", &config.tls.ca);
    let certificate = file(&flags.bus_tls_cert, "QWEN_BUS_TLS_CERT", &config.tls.certificate);
    let key = file(&flags.bus_tls_key, "QWEN_BUS_TLS_KEY", &config.tls.key);
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            let message = "TLS to the bus needs both a certificate and its key; name them with --bus-tls-cert and --bus-tls-key";
            return Err(ErrorInfo::new(ErrorKind::Usage, "bad_flag", message));
        }
    };
    let is_set = |name: &str| variable(name).is_some_and(|value| value == "1" || value == "true");
    let is_required = flags.bus_tls
        || config.tls.is_required
        || is_set("QWEN_BUS_TLS")
        || ca.is_some()
        || identity.is_some();
    let prefix =
        flags.bus_prefix.clone().or_else(|| variable("QWEN_BUS_PREFIX")).or_else(|| config.prefix.clone());
    let time = |flag, name, configured| choose_duration(invocation, flag, name, configured);
    let default = Timing::default();
    let interval =
        time(flags.bus_heartbeat_interval, "QWEN_BUS_HEARTBEAT_INTERVAL", config.heartbeat_interval)?;
    let dead_after = time(flags.bus_dead_after, "QWEN_BUS_DEAD_AFTER", config.dead_after)?;
    let coalesce = time(flags.bus_events_coalesce, "QWEN_BUS_EVENTS_COALESCE", config.coalesce)?;
    let log_retention = time(flags.bus_log_retention, "QWEN_BUS_LOG_RETENTION", config.log_retention)?;
    let commit_timeout = time(flags.bus_commit_timeout, "QWEN_BUS_COMMIT_TIMEOUT", config.commit_timeout)?;
    Ok(Some(BusOptions {
        url,
        credentials,
        is_insecure: flags.insecure_bus || config.is_insecure || is_set("QWEN_BUS_INSECURE"),
        tls: TlsOptions { is_required, ca, identity },
        prefix: prefix.unwrap_or_default(),
        shards: choose_number(invocation, None, "QWEN_BUS_SHARDS", config.shards)?,
        timing: Timing {
            interval: interval.unwrap_or(default.interval),
            dead_after: dead_after.unwrap_or(default.dead_after),
        },
        coalesce: coalesce.unwrap_or(COALESCE),
        log_retention: log_retention.unwrap_or(LOG_RETENTION),
        commit_timeout: commit_timeout.unwrap_or(COMMIT_TIMEOUT),
    }))
}

/// Returns a duration by flag, variable or configuration, in this order.
pub fn choose_duration(
    invocation: &Invocation,
    flag: Option<Duration>,
    name: &str,
    configured: Option<Duration>,
) -> Result<Option<Duration>, ErrorInfo> {
    match (flag, invocation.var(name)) {
        (None, Some(text)) => parse_duration(text).map(Some).ok_or_else(|| {
            refuse_value(name, text, "a number of seconds or a time such as '90s', '1h' or '30d'")
        }),
        (flag, _) => Ok(flag.or(configured)),
    }
}

/// Returns a number by flag, variable or configuration, in this order.
pub fn choose_number(
    invocation: &Invocation,
    flag: Option<u32>,
    name: &str,
    configured: Option<u32>,
) -> Result<Option<u32>, ErrorInfo> {
    match (flag, invocation.var(name)) {
        (None, Some(text)) => {
            text.trim().parse().map(Some).map_err(|_| refuse_value(name, text, "a whole number"))
        }
        (flag, _) => Ok(flag.or(configured)),
    }
}

fn refuse_value(name: &str, value: &str, wanted: &str) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Usage, "bad_flag", format!("{name}: '{value}' is not {wanted}"))
}

/// Returns how to reach the account of each tenant of the configuration.
pub fn tenant_accounts(
    config: &HubConfig,
    options: &BusOptions,
) -> Result<Vec<(String, BusOptions)>, ErrorInfo> {
    let account = |(name, tenant): (&String, &TenantConfig)| {
        let Some(file) = &tenant.credentials else {
            let message = format!(
                "The tenant '{name}' has no account on the bus. Name the file of its credentials in `tenants.{name}.credentials`."
            );
            return Err(ErrorInfo::new(ErrorKind::Settings, "tenant_without_credentials", message));
        };
        Ok((name.clone(), BusOptions { credentials: Some(file.clone()), ..options.clone() }))
    };
    config.tenants.iter().map(account).collect()
}

/// Reads the section `bus` of a configuration file.
pub fn configured(path: Option<&Path>) -> Result<BusConfig, ErrorInfo> {
    let Some(path) = path else { return Ok(BusConfig::default()) };
    let config = HubConfig::load(path)
        .map_err(|error| ErrorInfo::new(ErrorKind::Settings, "invalid_hub_config", error.to_string()))?;
    Ok(config.bus)
}

/// Returns the bus error as the error of this process.
pub fn to_error(error: &BusError) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Network, error.code, error.to_string())
}

/// Returns the name of this run of a process.
pub fn identity(name: &str) -> BusIdentity {
    BusIdentity { name: name.to_owned(), incarnation: format!("{:016x}", fastrand::u64(..)), workspace: None }
}

/// Connects to the bus and its streams.
pub async fn open(
    options: &BusOptions,
    identity: BusIdentity,
) -> Result<(Rc<Bus>, Rc<BusSessions>), ErrorInfo> {
    let bus = Rc::new(Bus::connect(options, identity).await.map_err(|error| to_error(&error))?);
    let sessions = BusSessions::open(bus.clone()).await.map_err(|error| to_error(&error))?;
    Ok((bus, Rc::new(sessions)))
}

/// Returns the error of a read or change on the bus.
pub fn unreadable(error: &std::io::Error) -> ErrorInfo {
    let message = format!("The sessions on the bus cannot be used: {error}");
    ErrorInfo::new(ErrorKind::Network, "bus_unavailable", message)
}

/// Runs work on a bus in another thread and waits for it.
pub fn run_apart<T, F>(work: impl FnOnce() -> F + Send + 'static) -> Result<T, String>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ErrorInfo>>,
{
    let run = move || run_to_completion(LocalSet::new().run_until(work()));
    let done = std::thread::spawn(run).join().map_err(|_| "the bus was not asked".to_owned())?;
    done.and_then(|done| done).map_err(|error| error.to_string())
}

/// A private directory for copies of logs, which is removed at the end.
pub struct LogCopies(PathBuf);

impl LogCopies {
    pub fn create() -> Result<Self, ErrorInfo> {
        let path = std::env::temp_dir().join(format!("qwen-sessions-{:016x}", fastrand::u64(..)));
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            let message = format!("The directory {} cannot be created: {error}", path.display());
            ErrorInfo::new(ErrorKind::Internal, "no_temporary_directory", message)
        })?;
        Ok(Self(path))
    }

    /// The directory, in the place of QWEN_HOME.
    pub fn home(&self) -> &Path {
        &self.0
    }
}

impl Drop for LogCopies {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
