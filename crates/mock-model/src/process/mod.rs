//! A process under control: started in a clean place, fed and read line by line, signalled, waited for, and looked
//! for after its end. Every wait is bounded and fails with what the process had said.

mod presence;
mod program;
mod run;

pub use presence::{marked, wait_gone, wait_marked_gone};
pub use program::{Program, qwen};
pub use run::{Ended, ProcessHandle, Run};
pub use rustix::process::Signal;
