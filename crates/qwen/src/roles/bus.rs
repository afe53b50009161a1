//! The bus of a process: how it is named and reached.

use std::rc::Rc;
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_fleet::{Bus, BusError, BusIdentity, BusOptions, BusSessions};
use qwen_kernel::config::BusConfig;

use crate::cli::BusFlags;
use crate::settings::Invocation;

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
    let credentials = flags
        .bus_credentials
        .clone()
        .or_else(|| variable("QWEN_BUS_CREDENTIALS").map(Into::into))
        .or_else(|| config.credentials.clone());
    let seconds = match (flags.bus_commit_timeout, variable("QWEN_BUS_COMMIT_TIMEOUT")) {
        (Some(seconds), _) => Some(seconds),
        (None, Some(text)) => Some(text.parse().map_err(|_| not_seconds("QWEN_BUS_COMMIT_TIMEOUT", &text))?),
        (None, None) => None,
    };
    let commit_timeout = match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| not_seconds("--bus-commit-timeout", &seconds.to_string()))?,
        None => config.commit_timeout.unwrap_or(COMMIT_TIMEOUT),
    };
    let is_insecure = flags.insecure_bus
        || config.is_insecure
        || variable("QWEN_BUS_INSECURE").is_some_and(|value| value == "1" || value == "true");
    let credentials = credentials.map(|path| invocation.cwd.join(path));
    Ok(Some(BusOptions { url, credentials, is_insecure, commit_timeout }))
}

fn not_seconds(name: &str, value: &str) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Usage, "bad_flag", format!("{name}: {value} is not a number of seconds"))
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
