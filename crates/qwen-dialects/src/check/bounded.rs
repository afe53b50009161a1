//! Bounded sets and maps of names: a stream may be endless and come from an untrusted writer.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The maximum number of sessions that are tracked at a time.
const SESSIONS: usize = 4096;
/// The maximum number of remembered names of one kind.
const NAMES: usize = 16_384;

/// What a checker remembers of each session of a stream.
#[derive(Debug)]
pub(crate) struct Sessions<T> {
    by_id: HashMap<Box<str>, T>,
}

/// A session that can be forgotten while it is idle.
pub(crate) trait Idle {
    fn is_idle(&self) -> bool;
}

impl<T> Default for Sessions<T> {
    fn default() -> Self {
        Self { by_id: HashMap::new() }
    }
}

impl<T: Default + Idle> Sessions<T> {
    /// The state of the session `id`. If there are too many, idle sessions are forgotten first.
    pub(crate) fn get_or_insert(&mut self, id: &str) -> &mut T {
        if self.by_id.len() >= SESSIONS && !self.by_id.contains_key(id) {
            self.by_id.retain(|_, session| !session.is_idle());
            if self.by_id.len() >= SESSIONS {
                self.by_id.clear();
            }
        }
        self.by_id.entry(id.into()).or_default()
    }

    /// All sessions, sorted by name.
    pub(crate) fn all(&mut self) -> Vec<(&str, &mut T)> {
        let mut all: Vec<_> = self.by_id.iter_mut().map(|(id, session)| (&**id, session)).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }
}

/// The most recent names of one kind; the oldest are forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Names {
    /// Remembers `name` and returns whether it is new.
    pub(crate) fn insert(&mut self, name: &str) -> bool {
        let hash = hash(name);
        if !self.known.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > NAMES
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.known.contains(&hash(name))
    }

    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.order.clear();
    }
}

/// Open items by name: each was opened and must be closed.
#[derive(Debug)]
pub(crate) struct Open<T> {
    by_name: HashMap<Box<str>, T>,
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self { by_name: HashMap::new() }
    }
}

impl<T> Open<T> {
    /// Opens `name`, unless too many are open; returns whether it was closed before.
    pub(crate) fn insert(&mut self, name: &str, value: T) -> bool {
        if self.by_name.len() >= NAMES && !self.by_name.contains_key(name) {
            return true;
        }
        self.by_name.insert(name.into(), value).is_none()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.by_name.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.by_name.get_mut(name)
    }

    pub(crate) fn get_or_insert_with(&mut self, name: &str, value: impl FnOnce() -> T) -> &mut T {
        if self.by_name.len() >= NAMES && !self.by_name.contains_key(name) {
            self.by_name.clear();
        }
        self.by_name.entry(name.into()).or_insert_with(value)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<T> {
        self.by_name.remove(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.by_name.clear();
    }

    /// The open items that `which` selects, sorted by name.
    pub(crate) fn names(&self, which: impl Fn(&T) -> bool) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.by_name.iter().filter(|(_, value)| which(value)).map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names
    }
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Busy(bool);

    impl Idle for Busy {
        fn is_idle(&self) -> bool {
            !self.0
        }
    }

    #[test]
    fn sessions_at_rest_are_forgotten_first_and_the_table_never_overflows() {
        let mut sessions = Sessions::<Busy>::default();
        sessions.get_or_insert("busy").0 = true;
        for n in 0..2 * SESSIONS {
            sessions.get_or_insert(&n.to_string());
            assert!(sessions.by_id.len() <= SESSIONS);
        }
        assert!(sessions.get_or_insert("busy").0);
        for n in 0..2 * SESSIONS {
            sessions.get_or_insert(&n.to_string()).0 = true;
            assert!(sessions.by_id.len() <= SESSIONS);
        }
    }

    #[test]
    fn the_oldest_names_are_forgotten_first() {
        let mut names = Names::default();
        for n in 0..=NAMES {
            assert!(names.insert(&n.to_string()));
        }
        assert!(!names.contains("0"));
        assert!(!names.insert("1"));
        assert_eq!(names.order.len(), NAMES);
    }
}
