//! Commands that never outlive us. [`spawn`] starts one under a guardian. Dropping the [`Running`] kills it
//! and all its descendants, and so does any end of our process.

mod children;
pub(crate) mod cleaner;
mod command;
mod environment;
pub(crate) mod first;
mod guardian;
mod guardians;
mod order;
mod orphans;
mod output_order;
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
pub use output_order::{OutputOrder, OutputStream, ReadyStream};
pub use running::{Exit, Running};
pub use spawn::spawn;
pub use text::Utf8Pieces;

/// A command to start.
pub struct ProcessSpec {
    /// The program: a path, or a name to be looked up in the `PATH` of `env`.
    pub program: OsString,
    /// `argv[0]`, if it differs from `program`.
    pub name: Option<OsString>,
    /// The arguments, without `argv[0]`.
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited.
    pub env: Arc<Environment>,
    /// Runs in the command's process before the exec.
    pub before_exec: Option<Arc<dyn BeforeExec>>,
    pub stdin: Stdin,
    /// Records the order of writes to standard output and standard error, in [`Running::order`].
    pub ordered_output: bool,
    /// Descriptors that it inherits under the same number.
    pub keep: Vec<OwnedFd>,
    /// The pool that provides an idle guardian, and receives it back afterwards.
    pub guardians: Option<Arc<Guardians>>,
}

impl ProcessSpec {
    /// A command with empty standard input. Its output goes to [`Running::stdout`] and [`Running::stderr`].
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>, env: Arc<Environment>) -> Self {
        Self {
            program: program.into(),
            name: None,
            args: Vec::new(),
            cwd: cwd.into(),
            env,
            before_exec: None,
            stdin: Stdin::Null,
            ordered_output: false,
            keep: Vec::new(),
            guardians: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// An empty input, from `/dev/null`.
    Null,
    /// A pipe, connected to [`Running::stdin`].
    Pipe,
}

/// A hook that runs in a command's process between fork and exec, such as entering a sandbox.
///
/// It runs in a process that was forked from one with many threads and that shares its parent's memory: it
/// must only make raw system calls on data prepared beforehand. No allocation, no lock, no panic. All our
/// descriptors are still open, or at least [`BeforeExec::descriptors`]; those not in [`ProcessSpec::keep`]
/// close at the exec. The process is not dumpable until then, so that its own files in `/proc` belong to
/// root. Its behaviour must never change: it may run on a memory copy that is older than the command.
pub trait BeforeExec: Send + Sync {
    /// True if the guardian has to be forked by a process that ran [`BeforeExec::join`].
    fn has_family(&self) -> bool {
        false
    }

    /// Enters what only takes effect for children. Runs before [`BeforeExec::prepare`], in the guardian's parent or
    /// in the guardian itself.
    fn join(&self) -> Result<(), i32> {
        Ok(())
    }

    /// Runs once in the guardian, before its first command, for state that commands can inherit. Returns the
    /// `errno` because of which no command is run. The guardian must still be able to start, find and kill
    /// its children.
    fn prepare(&self) -> Result<(), i32> {
        Ok(())
    }

    /// Runs in each command's process. Returns the `errno` because of which the command is not run. If its
    /// guardian was reused, the command is tried once more with a new one.
    fn apply(&self) -> Result<(), i32>;

    /// The descriptors that this uses, all above 2.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program is not in `PATH`.
    #[error("there is no program called {} in PATH", .0.display())]
    NotFound(OsString),
    /// The program exists but cannot be run.
    #[error("{} cannot be run: {source}", program.display())]
    Exec {
        /// The program that could not be started.
        program: PathBuf,
        /// The reason that the system gave.
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error("the directory {} cannot be entered: {source}", cwd.display())]
    Directory {
        /// The directory that could not be entered.
        cwd: PathBuf,
        /// The reason that the system gave.
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
