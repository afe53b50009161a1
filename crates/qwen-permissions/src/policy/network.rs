//! The judgement on a connection of a sandboxed program.

use std::net::IpAddr;

use qwen_events::{Behavior, Decision, Verdict};

use super::Policy;
use crate::rules::network_pattern::{Destination, NetworkPattern};
use crate::rules::{Rule, Scope};

/// Where a sandboxed program wants to connect to.
#[derive(Debug, Clone, Copy)]
pub struct NetworkRequest<'a> {
    /// As [`normalize_host`](crate::normalize_host) returns it.
    pub host: &'a str,
    pub port: u16,
    /// The HTTP method, once it is known.
    pub method: Option<&'a str>,
}

/// The judgement on a connection, or on one HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkJudgement {
    /// A host that no rule names is an `Ask` without a rule.
    pub decision: Decision,
    /// Rules for single methods are about this host: each request has to be judged.
    pub is_by_method: bool,
    /// The rule that allows the connection names its port: any protocol may be spoken there.
    pub is_any_protocol: bool,
}

impl Policy {
    /// True if a rule opens hosts, or asks about them.
    pub fn opens_network(&self) -> bool {
        let mut rules = self.rules(Behavior::Allow).iter().chain(self.rules(Behavior::Ask));
        rules.any(Rule::is_about_network)
    }

    /// True if a rule closes hosts, or asks about them.
    pub fn restricts_network(&self) -> bool {
        let mut rules = self.rules(Behavior::Deny).iter().chain(self.rules(Behavior::Ask));
        rules.any(Rule::is_about_network)
    }

    /// True if a rule opens a server of this machine under a loopback name.
    pub fn opens_loopback(&self) -> bool {
        let mut rules = self.rules(Behavior::Allow).iter().chain(self.rules(Behavior::Ask));
        rules.any(|rule| pattern(rule).is_some_and(NetworkPattern::is_loopback))
    }

    /// True if a rule is about single HTTP methods.
    pub fn has_method_rules(&self) -> bool {
        let behaviors = [Behavior::Deny, Behavior::Ask, Behavior::Allow].into_iter();
        let mut rules = behaviors.flat_map(|behavior| self.rules(behavior));
        rules.any(|rule| pattern(rule).is_some_and(|pattern| pattern.method().is_some()))
    }

    /// Judges a connection: deny beats ask beats allow. Without a method, rules for single methods do not
    /// decide.
    pub fn judge_network(&self, request: &NetworkRequest<'_>) -> NetworkJudgement {
        let destination = Destination { host: request.host, port: request.port };
        let mut is_by_method = false;
        let mut matching = |behavior: Behavior| -> Option<&Rule> {
            let mut found = None;
            for rule in self.rules(behavior).iter().filter(|rule| rule.is_about_network()) {
                let Some(pattern) = pattern(rule) else {
                    found = found.or(Some(rule));
                    continue;
                };
                let is_meant = match behavior {
                    Behavior::Allow => pattern.allows(destination),
                    Behavior::Ask | Behavior::Deny => pattern.forbids(destination),
                };
                if is_meant {
                    is_by_method |= pattern.method().is_some();
                    if pattern.method().is_none() || pattern.method() == request.method {
                        found = found.or(Some(rule));
                    }
                }
            }
            found
        };
        let (denied, asked, allowed) =
            (matching(Behavior::Deny), matching(Behavior::Ask), matching(Behavior::Allow));
        let is_any_protocol = allowed.and_then(pattern).is_some_and(NetworkPattern::names_port);
        let host = request.host;
        let method = request.method.map(|method| format!(" for {method}")).unwrap_or_default();
        let (verdict, reason, rule) = match (denied, asked, allowed) {
            (Some(rule), ..) => (Verdict::Deny, format!("The rule {} denies it.", rule.text()), Some(rule)),
            (_, Some(rule), _) => {
                (Verdict::Ask, format!("The rule {} asks for it.", rule.text()), Some(rule))
            }
            (.., Some(rule)) => (Verdict::Allow, format!("The rule {} allows it.", rule.text()), Some(rule)),
            (None, None, None) => (Verdict::Ask, format!("No rule opens {host}{method}."), None),
        };
        let decision =
            Decision { verdict, reason: reason.into(), rule: rule.map(|rule| rule.text().clone()) };
        NetworkJudgement { decision, is_by_method, is_any_protocol }
    }

    /// The rule that denies an address, under whatever name it was found.
    pub fn denies_address(&self, address: IpAddr, port: u16) -> Option<&Rule> {
        let host = address.to_canonical().to_string();
        let destination = Destination { host: &host, port };
        let is_it = |rule: &&Rule| {
            let pattern = pattern(rule);
            pattern.is_some_and(|pattern| pattern.method().is_none() && pattern.forbids(destination))
        };
        self.rules(Behavior::Deny).iter().find(is_it)
    }
}

fn pattern(rule: &Rule) -> Option<&NetworkPattern> {
    match &rule.scope {
        Scope::Network(pattern) => Some(pattern),
        Scope::All | Scope::Command(_) | Scope::Path(_) | Scope::Host(_) | Scope::Unknown => None,
    }
}
