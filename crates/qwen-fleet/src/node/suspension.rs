//! Commands that are stopped while their node is cut off from the bus.
//!
//! Another node that sees the same files may continue the session meanwhile. The worker itself starts nothing, since
//! it commits every start on the bus first; the commands that run already would change files.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use qwen_events::SessionId;
use rustix::process::{Pid, Signal, kill_process};

/// The stopped commands, by session.
#[derive(Default)]
pub struct Suspension(RefCell<HashMap<SessionId, Stopped>>);

/// The commands of a session.
#[derive(Default)]
struct Stopped {
    worker: i32,
    commands: BTreeSet<i32>,
}

impl Suspension {
    /// Stops the commands that a session's worker has started.
    pub fn stop(&self, session: &SessionId, worker: i32) {
        let commands = find_commands(worker);
        if commands.is_empty() {
            return;
        }
        let mut all = self.0.borrow_mut();
        let stopped = all.entry(session.clone()).or_default();
        stopped.worker = worker;
        for pid in commands {
            if stopped.commands.insert(pid) {
                send(pid, Signal::STOP);
            }
        }
    }

    /// Returns the sessions with stopped commands.
    pub fn sessions(&self) -> Vec<SessionId> {
        self.0.borrow().keys().cloned().collect()
    }

    /// Continues the commands of a session.
    pub fn resume(&self, session: &SessionId) {
        if let Some(stopped) = self.0.borrow_mut().remove(session) {
            stopped.signal(Signal::CONT);
        }
    }

    /// Ends the commands and the worker of a session that another process has taken.
    pub fn end(&self, session: &SessionId) {
        if let Some(stopped) = self.0.borrow_mut().remove(session) {
            stopped.signal(Signal::KILL);
            // It has no session any more. Its guardians end what else it has started.
            send(stopped.worker, Signal::KILL);
        }
    }

    /// Ends the commands of all sessions: a stopped one could not end by itself.
    pub fn end_all(&self) {
        for session in self.sessions() {
            self.end(&session);
        }
    }
}

impl Stopped {
    fn signal(&self, signal: Signal) {
        let descendants = find_commands(self.worker);
        // A pid may belong to another process by now.
        for pid in self.commands.iter().filter(|pid| descendants.contains(pid)) {
            send(*pid, signal);
        }
    }
}

fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // A process that has ended needs no signal.
        let _ = kill_process(pid, signal);
    }
}

/// Finds the descendants of a worker that run other programs than the worker: its guardians must stay able to act.
fn find_commands(worker: i32) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let mut names: HashMap<i32, String> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Some((name, parent)) = read_stat(pid) else { continue };
        children.entry(parent).or_default().push(pid);
        names.insert(pid, name);
    }
    let own = names.get(&worker).cloned();
    let mut found = BTreeSet::new();
    let mut left = vec![worker];
    while let Some(pid) = left.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            left.push(*child);
            if names.get(child) != own.as_ref() {
                found.insert(*child);
            }
        }
    }
    found
}

/// Reads the name and the parent of a process.
fn read_stat(pid: i32) -> Option<(String, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (start, rest) = stat.rsplit_once(')')?;
    let (_, name) = start.split_once('(')?;
    let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
    Some((name.to_owned(), parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_worker_are_its_descendants_with_other_names() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(find_commands(own).contains(&pid));
        assert_eq!(read_stat(pid).unwrap().1, own);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!find_commands(own).contains(&pid));
    }
}
