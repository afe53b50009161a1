//! What is recorded of connections. A flood costs a bounded number of lines.

use std::collections::BTreeMap;

use qwen_proxy::{ConnectionRecord, Problem};

use crate::log::LoggedConnection;

/// Connections that are logged one by one while programs run. Further ones are counted.
const MAX_SINGLE: usize = 256;
/// Destinations that are counted separately.
const MAX_COUNTED: usize = 64;
/// Refusals that a command's result lists.
const MAX_REFUSALS: usize = 5;
const MAX_REASON: usize = 300;

#[derive(Default)]
pub(super) struct Records {
    single: usize,
    counted: BTreeMap<(String, &'static str), LoggedConnection>,
    refusals: Vec<String>,
    further_refusals: usize,
}

impl Records {
    /// The entry for the log; `None` if the connection is only counted.
    pub fn note(&mut self, connection: &ConnectionRecord) -> Option<LoggedConnection> {
        let entry = entry(connection);
        self.single += 1;
        if self.single <= MAX_SINGLE {
            return Some(entry);
        }
        let mut key = (entry.destination.clone(), entry.outcome);
        if self.counted.len() >= MAX_COUNTED && !self.counted.contains_key(&key) {
            "further destinations".clone_into(&mut key.0);
        }
        let first = LoggedConnection {
            destination: key.0.clone(),
            method: None,
            address: None,
            count: 0,
            sent: 0,
            received: 0,
            ..entry.clone()
        };
        let counted = self.counted.entry(key).or_insert(first);
        counted.count += 1;
        counted.sent += entry.sent;
        counted.received += entry.received;
        None
    }

    /// The entries of connections that were only counted.
    pub fn take_uncounted(&mut self) -> Vec<LoggedConnection> {
        self.single = 0;
        std::mem::take(&mut self.counted).into_values().collect()
    }

    pub fn note_refusal(&mut self, reason: &str) {
        let reason: String = reason.chars().take(MAX_REASON).collect();
        if self.refusals.contains(&reason) {
            return;
        }
        if self.refusals.len() < MAX_REFUSALS {
            self.refusals.push(reason);
        } else {
            self.further_refusals += 1;
        }
    }

    pub fn take_refusals(&mut self) -> Vec<String> {
        let mut refusals = std::mem::take(&mut self.refusals);
        let further = std::mem::take(&mut self.further_refusals);
        refusals.extend((further > 0).then(|| format!("{further} further connections were refused")));
        refusals
    }
}

fn entry(connection: &ConnectionRecord) -> LoggedConnection {
    LoggedConnection {
        destination: connection.destination.to_string(),
        method: connection.method.clone(),
        address: connection.address.map(|address| address.to_string()),
        outcome: match &connection.problem {
            None => "allowed",
            Some(Problem::Refused(_)) => "refused",
            Some(Problem::Failed(_)) => "failed",
        },
        reason: connection.problem.as_ref().map(|problem| problem.text().chars().take(MAX_REASON).collect()),
        count: 1,
        sent: connection.sent,
        received: connection.received,
    }
}

#[cfg(test)]
mod tests {
    use qwen_proxy::Destination;

    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_listed() {
        let mut records = Records::default();
        let record = |number: usize| ConnectionRecord {
            destination: Destination { host: format!("h{}.example", number % 1000), port: 443 },
            method: None,
            address: None,
            problem: Some(Problem::Refused(format!("no {number}"))),
            sent: 1,
            received: 2,
        };
        let mut listed = 0;
        for number in 0..100_000 {
            let connection = record(number);
            records.note_refusal(connection.problem.as_ref().unwrap().text());
            listed += usize::from(records.note(&connection).is_some());
        }
        let counted = records.take_uncounted();
        assert_eq!(listed, MAX_SINGLE);
        assert!(counted.len() <= MAX_COUNTED + 1, "{}", counted.len());
        let sums =
            counted.iter().fold((0, 0), |(count, sent), entry| (count + entry.count, sent + entry.sent));
        assert_eq!(sums, (100_000 - 256, 100_000 - 256));
        assert_eq!(records.take_refusals().len(), MAX_REFUSALS + 1);
        assert!(records.take_uncounted().is_empty() && records.take_refusals().is_empty());
    }
}
