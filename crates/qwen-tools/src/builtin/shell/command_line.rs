//! Starts a command line with bash, or directly where bash would only start one program.

use std::env::split_paths;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::shell_report::ShellReport;
use crate::CallContext;
use qwen_permissions::GitHardening;
use qwen_permissions::shell;
use qwen_sandbox::ProcessSandbox;
use qwen_sandbox::process::{Environment, ProcessSpec, Running, SpawnError, spawn};

/// Longest single argument that Linux passes to a program, in bytes including the terminating NUL.
const MAX_ARGUMENT: usize = 128 * 1024;

/// Starts a command line. Starting bash takes longer than the rest of a call, so it is skipped where it makes
/// no difference.
pub(super) async fn start(
    command: &str,
    cwd: PathBuf,
    report: Option<&ShellReport>,
    sandbox: &ProcessSandbox,
    cx: &CallContext,
) -> Result<Running, SpawnError> {
    let env = sandbox.environment(environment(cx));
    let fenced = |mut spec: ProcessSpec| {
        spec.before_exec = sandbox.before_exec();
        spec.guardians = Some(cx.session.guardians.clone());
        spec.ordered_output = true;
        spec
    };
    // A report comes from bash.
    if report.is_none()
        && let Some(spec) = without_bash(command, &cwd, &env)
    {
        match spawn(fenced(spec)).await {
            // Bash may run what the kernel cannot start, such as a script without an interpreter line. Its
            // error messages are also the familiar ones.
            Err(SpawnError::Exec { .. }) => {}
            started => return started,
        }
    }
    let bash = cx.session.env.bash();
    let mut spec = match report.filter(|_| bash.is_some()) {
        None => with_bash(command, cwd, env, bash)?,
        Some(report) => {
            let (descriptor, prologue) = report.prepare()?;
            let mut spec = with_bash(&format!("{prologue}{command}"), cwd, env, bash)?;
            spec.keep.push(descriptor);
            spec
        }
    };
    spec = fenced(spec);
    spawn(spec).await
}

/// Returns the single program that a command line starts, with the environment that bash would give it.
fn without_bash(command: &str, cwd: &Path, env: &Arc<Environment>) -> Option<ProcessSpec> {
    let words = shell::plain_words(command)?;
    let (name, arguments) = words.split_first()?;
    // A relative entry in `PATH` refers to the current directory or (`~`) a home directory; leave these to
    // bash.
    if !name.contains('/')
        && env.get("PATH").is_some_and(|path| !split_paths(path).all(|dir| dir.is_absolute()))
    {
        return None;
    }
    let program = env.find_program(name.as_ref())?;
    let mut env = (**env).clone();
    if env.get("OLDPWD").is_some_and(|before| !Path::new(before).is_dir()) {
        env.remove("OLDPWD");
    }
    env.set("PWD", cwd);
    env.set("_", &program);
    let level = env.get("SHLVL").and_then(|level| level.to_str()?.parse::<u32>().ok());
    if level.is_none() {
        env.set("SHLVL", "0");
    }
    let mut spec = ProcessSpec::new(program, cwd, Arc::new(env));
    spec.name = Some(name.into());
    spec.args = arguments.iter().map(OsString::from).collect();
    Some(spec)
}

/// The command line for `bash`, or for `sh` where there is no bash.
fn with_bash(
    command: &str,
    cwd: PathBuf,
    env: Arc<Environment>,
    bash: Option<&Path>,
) -> io::Result<ProcessSpec> {
    // Keep the plain name as `argv[0]`, because bash prefixes its error messages with it.
    let mut spec = ProcessSpec::new(bash.unwrap_or("sh".as_ref()), cwd, env);
    // The command that was judged is the one that runs: no start-up file, variable or exported function may
    // change the meaning of a word.
    if bash.is_some() {
        spec.name = Some("bash".into());
        spec.args = vec!["--noprofile".into(), "--norc".into()];
    }
    if command.len() < MAX_ARGUMENT {
        // A command line that starts with `-` is not an option.
        spec.args.extend(["-c".into(), "--".into(), command.into()]);
    } else {
        let script = script_in_memory(command)?;
        spec.args.push(OsString::from(format!("/proc/self/fd/{}", script.as_raw_fd())));
        spec.keep.push(script);
    }
    Ok(spec)
}

/// Stores a script that is too long for an argument in an anonymous file.
fn script_in_memory(command: &str) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create("qwen-script", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(fd);
    file.write_all(command.as_bytes())?;
    Ok(file.into())
}

/// Variables that change how a shell interprets a command: start-up files, shell options, and the targets of
/// `cd`.
const REINTERPRETING: &[&[u8]] = &[
    b"BASH_ENV",
    b"ENV",
    b"BASHOPTS",
    b"SHELLOPTS",
    b"BASH_COMPAT",
    b"POSIXLY_CORRECT",
    b"GLOBIGNORE",
    b"CDPATH",
];

fn environment(cx: &CallContext) -> Arc<Environment> {
    let mut env = (*cx.session.env).clone();
    env.remove_where(|name| REINTERPRETING.contains(&name) || name.starts_with(b"BASH_FUNC_"));
    if let Some(hardening) = &cx.harden_git {
        env.remove_where(GitHardening::unsets);
        for (name, value) in hardening.env() {
            env.set(name, value);
        }
    }
    if let Some(trace) = &cx.trace {
        env.set_trace(trace);
    }
    Arc::new(env)
}
