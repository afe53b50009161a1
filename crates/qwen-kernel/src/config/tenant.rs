//! The configuration of one tenant.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    ConfigError, HubConfig, TenantConfig, TenantIsolation, invalid_value, number, object, profile, text_of,
};
use crate::process_manager::{ResourceLimits, TenantUser};

/// The limit of processes and threads of a tenant with its own user that has no `limits.pids`.
const DEFAULT_PIDS: u64 = 1024;

/// Reads `tenants.NAME`.
pub(super) fn read_tenant(
    key: &str,
    value: &Value,
    unknown: &mut Vec<String>,
) -> Result<TenantConfig, ConfigError> {
    let mut tenant = TenantConfig::default();
    let (mut uid, mut gid) = (None, None);
    for (name, value) in object(key, value)? {
        let key = format!("{key}.{name}");
        match name.as_str() {
            "settings_profile" => tenant.settings_profile = Some(profile::checked(&key, value)?),
            "env" => {
                for (name, value) in object(&key, value)? {
                    tenant.env.insert(name.clone(), text_of(&format!("{key}.{name}"), value)?);
                }
            }
            "credentials" => tenant.credentials = Some(text_of(&key, value)?.into()),
            "uid" => uid = Some(user_id(&key, value)?),
            "gid" => gid = Some((key.clone(), user_id(&key, value)?)),
            "limits" => tenant.limits = Some(read_limits(&key, value, unknown)?),
            _ => unknown.push(key),
        }
    }
    tenant.user = match (uid, gid) {
        (Some(uid), gid) => Some(TenantUser { uid, gid: gid.map_or(uid, |(_, gid)| gid) }),
        (None, Some((key, _))) => return Err(invalid_value(&key, "it needs a uid")),
        (None, None) => None,
    };
    if tenant.user.is_some() {
        let limits = tenant
            .limits
            .get_or_insert_with(|| ResourceLimits { memory: half_of_memory(), ..ResourceLimits::default() });
        limits.pids.get_or_insert(DEFAULT_PIDS);
    }
    Ok(tenant)
}

fn user_id(key: &str, value: &Value) -> Result<u32, ConfigError> {
    match number::<u32>(key, value)? {
        // The largest means "unchanged" to the system.
        0 | u32::MAX => Err(invalid_value(key, "a tenant's user has a number from 1 to 4294967294")),
        id => Ok(id),
    }
}

fn read_limits(key: &str, value: &Value, unknown: &mut Vec<String>) -> Result<ResourceLimits, ConfigError> {
    let mut limits = ResourceLimits::default();
    for (name, value) in object(key, value)? {
        let key = format!("{key}.{name}");
        match name.as_str() {
            "memory" => limits.memory = Some(positive(&key, value)?),
            "pids" => limits.pids = Some(positive(&key, value)?),
            "cpu" => {
                let processors = value.as_f64().filter(|processors| (0.01..=10_000.0).contains(processors));
                let processors = processors
                    .ok_or_else(|| invalid_value(&key, "it is a number of processors, such as 1.5"))?;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the range is checked"
                )]
                let thousandths = (processors * 1000.0) as u64;
                limits.cpu = Some(thousandths);
            }
            _ => unknown.push(key),
        }
    }
    Ok(limits)
}

fn positive(key: &str, value: &Value) -> Result<u64, ConfigError> {
    match number::<u64>(key, value)? {
        0 => Err(invalid_value(key, "it must be more than 0")),
        number => Ok(number),
    }
}

/// Half of the machine's memory, in bytes.
fn half_of_memory() -> Option<u64> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 512)
}

/// Fails if two tenants share a user, or if users are asked for without namespaces.
pub(super) fn check_users(config: &HubConfig) -> Result<(), ConfigError> {
    let mut owners = BTreeMap::new();
    for (name, tenant) in &config.tenants {
        let Some(user) = tenant.user else { continue };
        let key = format!("tenants.{name}.uid");
        if config.tenant_isolation == TenantIsolation::None {
            return Err(invalid_value(&key, "it cannot be combined with `tenants.isolation: none`"));
        }
        if let Some(other) = owners.insert(user.uid, name) {
            return Err(invalid_value(&key, format!("the tenant {other} has the same user")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_its_own_user_and_limits() {
        let text = "tenants:\n  red: {uid: 20001, limits: {memory: 1000, cpu: 1.5}}\n  blue: {uid: 20002, gid: 7}\n  plain: {}\n";
        let config = HubConfig::parse(text).unwrap();
        let red = &config.tenants["red"];
        assert_eq!(red.user, Some(TenantUser { uid: 20001, gid: 20001 }));
        let limits = ResourceLimits { memory: Some(1000), pids: Some(DEFAULT_PIDS), cpu: Some(1500) };
        assert_eq!(red.limits, Some(limits));
        assert_eq!(config.tenants["blue"].user, Some(TenantUser { uid: 20002, gid: 7 }));
        assert!(config.tenants["blue"].limits.unwrap().memory.is_some());
        assert_eq!(config.tenants["plain"], TenantConfig::default());
        for (text, key) in [
            ("tenants: {red: {uid: 0}}", "tenants.red.uid"),
            ("tenants: {red: {uid: -1}}", "tenants.red.uid"),
            ("tenants: {red: {uid: root}}", "tenants.red.uid"),
            ("tenants: {red: {uid: 4294967295}}", "tenants.red.uid"),
            ("tenants: {red: {gid: 5}}", "tenants.red.gid"),
            ("tenants: {red: {uid: 5, gid: 0}}", "tenants.red.gid"),
            ("tenants: {red: {uid: 5}, blue: {uid: 5}}", "tenants.red.uid"),
            ("tenants: {isolation: none, red: {uid: 5}}", "tenants.red.uid"),
            ("tenants: {red: {limits: {memory: 0}}}", "tenants.red.limits.memory"),
            ("tenants: {red: {limits: {pids: many}}}", "tenants.red.limits.pids"),
            ("tenants: {red: {limits: {cpu: 0}}}", "tenants.red.limits.cpu"),
        ] {
            let error = HubConfig::parse(text).unwrap_err().to_string();
            assert!(error.contains(key), "{text}: {error}");
        }
    }
}
