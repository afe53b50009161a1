//! Protects the memory of the process.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Prevents other programs of the same user, above all the commands that we start, from reading our memory
/// and our environment, which hold the model's keys. Also keeps both out of a core dump.
pub fn forbid_memory_access() {
    // If the kernel refuses, we have the same protection as any other program.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
