//! A controlled process: started in a clean environment, fed and read line by line, signalled, awaited, and
//! checked for leftovers after its end. Every wait is bounded and fails with the output of the process so
//! far.

mod presence;
mod program;
mod run;

pub use presence::{marked, wait_gone, wait_marked_gone};
pub use program::{Program, qwen};
pub use run::{Ended, ProcessHandle, Run};
pub use rustix::process::Signal;
