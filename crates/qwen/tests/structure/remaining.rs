//! Lists of places that do not follow a rule yet. They can only shrink.

use std::collections::BTreeSet;

/// Fails if a place breaks a rule without being on one of the `lists`, or is on a list without breaking it.
pub fn check(found: &[&str], lists: &[&[&str]]) {
    let found: BTreeSet<&str> = found.iter().copied().collect();
    let listed: BTreeSet<&str> = lists.iter().copied().flatten().copied().collect();
    let new: Vec<&&str> = found.difference(&listed).collect();
    assert!(new.is_empty(), "these places break the rule: {new:#?}");
    let done: Vec<&&str> = listed.difference(&found).collect();
    assert!(done.is_empty(), "these places follow the rule now; remove them from the list: {done:#?}");
}
