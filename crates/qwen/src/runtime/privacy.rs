//! Keeping what is in our memory to ourselves.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Keeps other programs of the same user, above all the commands that we start, from reading our memory and our
/// environment, which hold the model's keys; and keeps both out of a core dump.
pub fn forbid_memory_access() {
    // A kernel that refuses leaves us as any other program is.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
