//! The settings of the network of sandboxed programs.

use qwen_engine::{HostCredential, NetworkSettings};
use qwen_events::{ErrorInfo, ErrorKind};
use qwen_permissions::normalize_host;

use crate::settings::Settings;
use crate::settings::file::Credential;
use crate::settings::invocation::Invocation;

/// Resolves the settings. A credential or an alias that cannot be used is an error.
pub(in crate::settings) fn resolve(
    settings: &Settings,
    invocation: &Invocation,
) -> Result<NetworkSettings, ErrorInfo> {
    let network = &settings.tools.network;
    let known = |host: &str, key: &str| {
        normalize_host(host).ok_or_else(|| invalid(key, &format!("`{host}` is not the name of a host")))
    };
    let aliases = network
        .resolve
        .iter()
        .map(|(host, addresses)| known(host, "tools.network.resolve").map(|host| (host, addresses.clone())));
    let credentials = network.credentials.iter().map(|credential| {
        let host = known(&credential.host, "tools.network.credentials")?;
        read_credential(host, credential, invocation)
    });
    Ok(NetworkSettings {
        private_hosts: settings.tools.web_fetch.allow_private_hosts.clone(),
        aliases: aliases.collect::<Result<_, ErrorInfo>>()?,
        credentials: credentials.collect::<Result<_, _>>()?,
        is_open: settings.tools.sandbox_network.unwrap_or_default(),
    })
}

fn read_credential(
    host: String,
    credential: &Credential,
    invocation: &Invocation,
) -> Result<HostCredential, ErrorInfo> {
    let (header, prefix) = credential.header.split_once(':').unwrap_or((&credential.header, ""));
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if !is_token(header) || !is_sendable(prefix) {
        let problem =
            format!("`{}` is neither a header's name nor `NAME: PREFIX`", credential.header.escape_debug());
        return Err(invalid("tools.network.credentials", &problem));
    }
    let secret = invocation.var(&credential.from_env).filter(|secret| !secret.is_empty());
    if secret.is_some_and(|secret| !is_sendable(secret)) {
        let problem =
            format!("the variable {} has characters that a header cannot contain", credential.from_env);
        return Err(invalid("tools.network.credentials", &problem));
    }
    let prefix = prefix.trim();
    Ok(HostCredential {
        host,
        header: header.to_owned(),
        prefix: if prefix.is_empty() { String::new() } else { format!("{prefix} ") },
        variable: credential.from_env.clone(),
        secret: secret.map(str::to_owned),
    })
}

fn is_sendable(text: &str) -> bool {
    text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

fn invalid(key: &str, problem: &str) -> ErrorInfo {
    ErrorInfo::new(
        ErrorKind::Settings,
        "invalid_setting",
        format!("The setting {key} cannot be used: {problem}."),
    )
}
