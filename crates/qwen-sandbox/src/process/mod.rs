//! Commands that never outlive us. [`spawn`] starts one under a guardian; dropping the [`Running`] ends it
//! with all that it started, and so does our own end, however it comes.

mod children;
mod command;
mod environment;
mod guardian;
mod guardians;
mod order;
mod orphans;
mod running;
mod spawn;
mod text;

use std::ffi::OsString;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;

pub use environment::{Environment, WITHHELD};
pub use guardians::Guardians;
pub use running::{Exit, Running};
pub use spawn::spawn;
pub use text::Utf8Pieces;

/// A command to start.
pub struct ProcessSpec {
    /// The program: a path, or a name to be looked up in the `PATH` of `env`.
    pub program: OsString,
    /// The name that it is started under, where that is not `program`.
    pub name: Option<OsString>,
    /// Its arguments, without the name of the program itself.
    pub args: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Arc<Environment>,
    /// What it does to itself before it becomes the program.
    pub before_exec: Option<Arc<dyn BeforeExec>>,
    /// What it reads.
    pub stdin: Stdin,
    /// Descriptors that it gets under the number that they have here.
    pub keep: Vec<OwnedFd>,
    /// Where its guardian comes from, if one waits there, and where it waits afterwards.
    pub guardians: Option<Arc<Guardians>>,
}

impl ProcessSpec {
    /// A command that reads nothing. What it writes goes into [`Running::stdout`] and [`Running::stderr`].
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>, env: Arc<Environment>) -> Self {
        Self {
            program: program.into(),
            name: None,
            args: Vec::new(),
            cwd: cwd.into(),
            env,
            before_exec: None,
            stdin: Stdin::Null,
            keep: Vec::new(),
            guardians: None,
        }
    }
}

/// What a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    Null,
    /// What is written to [`Running::stdin`].
    Pipe,
}

/// Something that happens to a command's process between fork and exec, such as entering a sandbox.
///
/// It runs in a process that was forked from one with many threads and that shares its parent's memory: it must do
/// nothing but raw system calls on data prepared beforehand. No allocation, no lock, no panic. All descriptors of ours
/// are still open, or at least [`BeforeExec::descriptors`]; those not in [`ProcessSpec::keep`] close at the exec. The
/// process is not dumpable until then, so that its own files in `/proc` belong to root. What this does must never change:
/// it may run on a copy of it that is older than the command.
pub trait BeforeExec: Send + Sync {
    /// Done once, by the guardian to itself, before its first command: what commands may as well inherit. Gives the
    /// `errno` for which no command is run. The guardian must still be able to start, find and kill its children.
    fn prepare(&self) -> Result<(), i32> {
        Ok(())
    }

    /// Done by each command's process to itself. Gives the `errno` for which the command is not run. One whose guardian
    /// has had other commands before is then tried once more with a new one.
    fn apply(&self) -> Result<(), i32>;

    /// The descriptors that this uses, all above 2.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program in `PATH`.
    #[error("there is no program called {} in PATH", .0.display())]
    NotFound(OsString),
    /// The program is there and cannot be run.
    #[error("{} cannot be run: {source}", program.display())]
    Exec {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error("the directory {} cannot be entered: {source}", cwd.display())]
    Directory {
        /// The directory.
        cwd: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The sandbox refused, so the command did not run.
    #[error("the sandbox could not be entered, so the command was not run: {0}")]
    BeforeExec(io::Error),
    /// A program, argument or directory holds a NUL byte.
    #[error("{0} holds a NUL character, which no program can be given")]
    Nul(&'static str),
    /// The system has no process, descriptor or memory left.
    #[error("the system could not start a process: {0}")]
    System(#[from] io::Error),
}
