//! Earlier prompts, oldest first.

/// The maximum number of entries.
const MAX_ENTRIES: usize = 1000;

/// Earlier prompts and the position of the user in them.
#[derive(Debug, Default)]
pub struct History {
    entries: Vec<String>,
    /// The shown entry; none while the draft is shown.
    at: Option<usize>,
    draft: String,
}

impl History {
    pub fn new(entries: Vec<String>) -> Self {
        Self { entries, ..Self::default() }
    }

    /// Adds an entry, unless it repeats the last one. Returns whether it was added.
    pub fn add(&mut self, text: &str) -> bool {
        self.at = None;
        if text.trim().is_empty() || self.entries.last().is_some_and(|last| last == text) {
            return false;
        }
        self.entries.push(text.to_owned());
        if self.entries.len() > MAX_ENTRIES {
            self.entries.remove(0);
        }
        true
    }

    /// The next older entry, if there is one; `current` is stored as the draft at the first step.
    pub fn older(&mut self, current: &str) -> Option<String> {
        let at = match self.at {
            None => {
                current.clone_into(&mut self.draft);
                self.entries.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(at);
        Some(self.entries[at].clone())
    }

    /// The next newer entry, or the draft after the newest.
    pub fn newer(&mut self) -> Option<String> {
        let at = self.at? + 1;
        match self.entries.get(at) {
            Some(entry) => {
                self.at = Some(at);
                Some(entry.clone())
            }
            None => {
                self.at = None;
                Some(std::mem::take(&mut self.draft))
            }
        }
    }

    /// Resets the position: the next step back starts from the newest again.
    pub fn leave(&mut self) {
        self.at = None;
    }

    /// The newest entry that contains `text`, `skip` matches further back.
    pub fn search(&self, text: &str, skip: usize) -> Option<&str> {
        let lowered = text.to_lowercase();
        let matches = self.entries.iter().rev().filter(|entry| entry.to_lowercase().contains(&lowered));
        matches.map(String::as_str).nth(skip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_is_behind_the_newest_entry() {
        let mut history = History::new(vec!["one".into(), "two".into()]);
        assert_eq!(history.older("draft").as_deref(), Some("two"));
        assert_eq!(history.older("two").as_deref(), Some("one"));
        assert_eq!(history.older("one"), None);
        assert_eq!(history.newer().as_deref(), Some("two"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
        assert_eq!(history.search("O", 1), Some("one"));
    }
}
