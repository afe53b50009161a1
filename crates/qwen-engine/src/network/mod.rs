//! The network of sandboxed programs: rules, questions, credentials and the record of connections, for the
//! proxy in `qwen-proxy`.

mod answers;
mod gateway;
mod records;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::future::BoxFuture;
use qwen_events::Verdict;
use qwen_http::check_public;
use qwen_permissions::NetworkRequest;
use qwen_proxy::{
    Admission, Authority, ConnectionRecord, Credential, Destination, Gatekeeper, Mask, Problem,
};

use self::answers::Answers;
pub use self::gateway::SandboxGateway;
use self::records::Records;
use crate::log::{Log, WeakLog};
use crate::{Audience, Cancel, Host, Permissions, QuestionOrigin};

/// Secrets shorter than this are not looked for in responses: they would be found in ordinary text.
const MIN_MASKED: usize = 4;

/// The user's settings for the network of sandboxed programs.
#[derive(Debug, Clone, Default)]
pub struct NetworkSettings {
    /// Private addresses that may be reached, as `host:port`.
    pub private_hosts: Vec<String>,
    /// Addresses of names that are not resolved.
    pub aliases: HashMap<String, Vec<IpAddr>>,
    pub credentials: Vec<HostCredential>,
    /// Hosts that no rule names are open.
    pub is_open: bool,
}

/// A header with a secret that requests to a host get outside the sandbox.
#[derive(Clone)]
pub struct HostCredential {
    pub host: String,
    pub header: String,
    /// What precedes the secret in the header's value, such as `Bearer `.
    pub prefix: String,
    /// The variable of this process that contains the secret.
    pub variable: String,
    pub secret: Option<String>,
}

impl std::fmt::Debug for HostCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostCredential")
            .field("host", &self.host)
            .field("variable", &self.variable)
            .finish_non_exhaustive()
    }
}

/// Decides about the connections of a process's sandboxed programs.
pub struct NetworkGate {
    settings: NetworkSettings,
    permissions: Arc<Permissions>,
    host: Arc<dyn Host>,
    audience: Audience,
    /// The name under which questions are asked.
    tool: &'static str,
    authority: OnceLock<Arc<Authority>>,
    answers: Answers,
    records: Mutex<Records>,
    log: Mutex<Option<WeakLog>>,
}

/// A call whose programs may cause questions. It ends when this is dropped.
pub(crate) struct AskingCall<'a> {
    gate: &'a NetworkGate,
    number: u64,
}

impl Drop for AskingCall<'_> {
    fn drop(&mut self) {
        self.gate.answers.end_call(self.number);
    }
}

impl NetworkGate {
    /// A gate that asks `host`, under the tool name `tool`.
    pub fn new(
        settings: NetworkSettings,
        permissions: Arc<Permissions>,
        host: Arc<dyn Host>,
        audience: Audience,
        tool: &'static str,
    ) -> Self {
        Self {
            settings,
            permissions,
            host,
            audience,
            tool,
            authority: OnceLock::new(),
            answers: Answers::default(),
            records: Mutex::default(),
            log: Mutex::default(),
        }
    }

    /// True if sandboxed programs get a gateway: a rule opens hosts, or closes some of an open network.
    pub fn is_in_use(&self) -> bool {
        if self.settings.is_open {
            self.permissions.restricts_network()
        } else {
            self.permissions.opens_network()
        }
    }

    /// Connections are recorded in this log.
    pub(crate) fn set_log(&self, log: &Log) {
        *lock(&self.log) = Some(log.downgrade());
    }

    /// Lets questions about connections be asked on behalf of a call. `None` if there is no gateway.
    pub(crate) fn begin_call(&self, origin: &QuestionOrigin, cancel: &Cancel) -> Option<AskingCall<'_>> {
        let number = self.is_in_use().then(|| self.answers.begin_call(origin, cancel))?;
        Some(AskingCall { gate: self, number })
    }

    /// Answers and counts end with the programs for which they were given.
    fn end_use(&self) {
        self.answers.forget();
        let rest = lock(&self.records).take_uncounted();
        if let Some(log) = lock(&self.log).as_ref().and_then(WeakLog::upgrade) {
            for connection in rest {
                log.note_connection(&connection);
            }
        }
    }

    fn take_refusals(&self) -> Vec<String> {
        lock(&self.records).take_refusals()
    }

    /// True if the proxy may have to read encrypted connections.
    fn reads_encrypted(&self) -> bool {
        !self.settings.credentials.is_empty() || self.permissions.has_method_rules()
    }

    async fn decide(&self, to: &Destination, method: Option<&str>) -> Result<Admission, String> {
        let judge = |method: Option<&str>| {
            self.permissions.judge_network(&NetworkRequest { host: &to.host, port: to.port, method })
        };
        let mut judged = judge(method);
        // Without rules about methods, answers are about the host.
        let method = method.filter(|_| judged.is_by_method);
        if method.is_none() {
            judged = judge(None);
        }
        let admission =
            Admission { is_by_method: judged.is_by_method, is_any_protocol: judged.is_any_protocol };
        let what = method.map_or_else(|| to.to_string(), |method| format!("{method} to {to}"));
        match judged.decision.verdict {
            Verdict::Allow => Ok(admission),
            Verdict::Deny => Err(format!("{what} was refused: {}", judged.decision.reason)),
            // The method may be allowed, which is known once the request is read.
            Verdict::Ask if judged.is_by_method && method.is_none() => Ok(admission),
            Verdict::Ask if judged.decision.rule.is_none() && self.settings.is_open => {
                Ok(Admission { is_any_protocol: true, ..admission })
            }
            Verdict::Ask => self.ask(to, method, &what, &judged.decision.reason).await.map(|()| admission),
        }
    }
}

impl Gatekeeper for NetworkGate {
    fn admit<'a>(
        &'a self,
        to: &'a Destination,
        method: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Admission, String>> {
        Box::pin(self.decide(to, method))
    }

    fn check_address(&self, to: &Destination, address: IpAddr) -> Result<(), String> {
        if let Some(rule) = self.permissions.find_address_rule(address, to.port) {
            return Err(format!("the rule {rule} denies it"));
        }
        let asked = to.to_string();
        if self.settings.private_hosts.iter().any(|listed| listed.trim().eq_ignore_ascii_case(&asked)) {
            return Ok(());
        }
        check_public(address).map_err(|reason| {
            format!("{reason}. The user can allow it by adding \"{asked}\" to the setting tools.webFetch.allowPrivateHosts")
        })
    }

    fn find_alias(&self, host: &str) -> Option<Vec<IpAddr>> {
        self.settings.aliases.get(host).cloned()
    }

    fn find_credential(&self, host: &str) -> Option<Result<Credential, String>> {
        let ours: Vec<&HostCredential> =
            self.settings.credentials.iter().filter(|credential| credential.host == host).collect();
        if ours.is_empty() {
            return None;
        }
        let mut headers = Vec::new();
        let mut secrets = Vec::new();
        for HostCredential { header, prefix, variable, secret, .. } in ours {
            let Some(secret) = secret else {
                return Some(Err(format!(
                    "the credential for {host} is missing: the variable {variable} is not set for qwen itself"
                )));
            };
            headers.push((header.clone(), format!("{prefix}{secret}")));
            secrets.extend(Some(secret.clone()).filter(|secret| secret.len() >= MIN_MASKED));
        }
        Some(Ok(Credential { headers, mask: Mask::new(secrets) }))
    }

    fn authority(&self) -> io::Result<Arc<Authority>> {
        if let Some(authority) = self.authority.get() {
            return Ok(authority.clone());
        }
        let made = Arc::new(Authority::new()?);
        Ok(self.authority.get_or_init(|| made).clone())
    }

    fn record(&self, connection: &ConnectionRecord) {
        let log = lock(&self.log).as_ref().and_then(WeakLog::upgrade);
        let mut records = lock(&self.records);
        if let Some(Problem::Refused(reason)) = &connection.problem {
            records.note_refusal(reason);
        }
        let noted = records.note(connection);
        drop(records);
        if let (Some(log), Some(noted)) = (log, noted) {
            log.note_connection(&noted);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
