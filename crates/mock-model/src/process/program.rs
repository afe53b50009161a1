//! A program to start: arguments, environment and directory.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use tempfile::TempDir;

use super::run::{Ended, Run};
use crate::{WAIT_LIMIT, fail};

/// Prefixes of variables that would let the developer's configuration change the result of a test.
const FOREIGN: [&str; 9] =
    ["OPENAI_", "ANTHROPIC_", "DASHSCOPE_", "QWEN_", "CLAUDE_", "OTEL_", "TRACE", "MAKE", "MFLAGS"];

/// A program that can be started several times. A clone shares the directories, so that a second run finds
/// the files of the first.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, Option<OsString>)>,
    home: Arc<TempDir>,
    cwd: Arc<TempDir>,
    other_cwd: Option<PathBuf>,
    input: Vec<u8>,
}

/// The program under test; integration tests pass `env!("CARGO_BIN_EXE_qwen")`.
#[track_caller]
pub fn qwen(binary: impl AsRef<Path>) -> Program {
    Program::new(binary)
}

impl Program {
    /// A program in a clean environment: `HOME`, `QWEN_HOME` and the working directory are new and empty,
    /// `SHELL` is `/bin/sh`, and the variables that configure models, keys, proxies and `make` are removed.
    #[track_caller]
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            home: fresh_dir(),
            cwd: fresh_dir(),
            other_cwd: None,
            input: Vec::new(),
        }
    }

    /// Lets another program start this one: it gets the path and then the arguments.
    pub fn start_through(mut self, wrapper: impl AsRef<Path>) -> Self {
        let path = std::mem::replace(&mut self.path, wrapper.as_ref().to_owned());
        self.args.insert(0, path.into_os_string());
        self
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes a variable that the program would get from the defaults.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), None));
        self
    }

    /// Sets the OpenAI variables to a mock.
    pub fn with_model(self, mock: &crate::MockModel) -> Self {
        self.env("OPENAI_BASE_URL", mock.base_url()).env("OPENAI_API_KEY", "test-key")
    }

    /// Replaces the new working directory by this one.
    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Self {
        self.other_cwd = Some(dir.as_ref().to_owned());
        self
    }

    /// Writes this to standard input at the start.
    pub fn stdin(mut self, input: impl AsRef<[u8]>) -> Self {
        self.input.extend_from_slice(input.as_ref());
        self
    }

    /// The fresh home directory.
    pub fn home_path(&self) -> &Path {
        self.home.path()
    }

    /// `QWEN_HOME`, below the home directory; it exists once the program has created it.
    pub fn qwen_home_path(&self) -> PathBuf {
        self.home.path().join(".qwen")
    }

    pub fn cwd_path(&self) -> &Path {
        self.other_cwd.as_deref().unwrap_or_else(|| self.cwd.path())
    }

    /// Starts the program with standard input left open.
    #[track_caller]
    pub fn start(&self) -> Run {
        self.start_onto(Stdio::piped(), Stdio::piped())
    }

    /// Starts the program with the test's own standard output and standard error, such as a socket, a file
    /// or a terminal; [`Run`] does not see that output.
    #[track_caller]
    pub fn start_onto(&self, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Run {
        self.spawn(Stdio::piped(), stdout.into(), stderr.into())
    }

    #[track_caller]
    fn spawn(&self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Run {
        let mut command = self.command();
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        let started = Instant::now();
        loop {
            match command.spawn() {
                Ok(child) => return Run::new(self.describe(), child, &self.input, self.clone()),
                // A file that the test has just written is busy while another thread's child, not yet
                // executing its own program, holds a copy of the descriptor.
                Err(error)
                    if error.kind() == ErrorKind::ExecutableFileBusy && started.elapsed() < WAIT_LIMIT =>
                {
                    std::thread::yield_now();
                }
                Err(error) => fail(&format!("cannot start {}: {error}", self.describe())),
            }
        }
    }

    /// Starts the program, closes standard input after the given input, and waits for its end.
    #[track_caller]
    pub fn run(&self) -> Ended {
        // A busy machine may need more than a second to close the pipe afterwards, and the program warns of
        // an input that does not come.
        let mut run = if self.input.is_empty() {
            self.spawn(ended_pipe(), Stdio::piped(), Stdio::piped())
        } else {
            self.start()
        };
        run.close_stdin();
        run.wait()
    }

    /// The command that starts the program, for tests that set up the standard streams themselves.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.args).current_dir(self.cwd_path());
        for (name, _) in std::env::vars_os() {
            if is_foreign(&name.to_string_lossy()) {
                command.env_remove(&name);
            }
        }
        command.env("HOME", self.home.path()).env("QWEN_HOME", self.qwen_home_path()).env("SHELL", "/bin/sh");
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    fn describe(&self) -> String {
        let args: Vec<_> = self.args.iter().map(|arg| arg.to_string_lossy()).collect();
        format!("{} {}", self.path.display(), args.join(" "))
    }
}

fn is_foreign(name: &str) -> bool {
    FOREIGN.iter().any(|prefix| name.starts_with(prefix)) || name.to_ascii_lowercase().ends_with("_proxy")
}

#[track_caller]
fn fresh_dir() -> Arc<TempDir> {
    match tempfile::tempdir() {
        Ok(dir) => Arc::new(dir),
        Err(error) => fail(&format!("cannot make a temporary directory: {error}")),
    }
}

/// A pipe that has ended before anybody reads from it.
#[track_caller]
fn ended_pipe() -> Stdio {
    match std::io::pipe() {
        Ok((reader, writer)) => {
            drop(writer);
            reader.into()
        }
        Err(error) => fail(&format!("cannot make a pipe: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::is_foreign;

    #[test]
    fn keys_models_and_proxies_of_the_developer_are_foreign() {
        let foreign =
            ["OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "DASHSCOPE_API_KEY", "QWEN_DIALECT", "https_proxy"];
        assert!(foreign.iter().all(|name| is_foreign(name)));
        assert!(["PATH", "LANG", "TMPDIR", "MY_OPENAI_NOTES"].iter().all(|name| !is_foreign(name)));
    }
}
