//! Attacks on the sandbox by real processes, judged by what they leave behind. Every attack is tried with
//! every set of mechanisms that this machine has; missing ones are skipped with a message.

mod network;
mod objects;
mod processes;
mod programs;
mod protected;
mod reading;
mod writing;

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::kernel::namespaces::{self, NamespaceMethod};
use crate::process::BeforeExec;
use crate::report::KernelFeatures;
use crate::{ProcessRole, Sandbox, SandboxLease, SandboxPolicy, Tampering, sandboxed_env_removals};

/// A set of means to make a sandbox of.
struct Variant {
    name: &'static str,
    means: KernelFeatures,
}

impl Variant {
    fn mounts(&self) -> bool {
        self.means.namespaces.is_some()
    }

    fn landlock(&self) -> bool {
        self.means.landlock_abi > 0
    }
}

/// Every set of means that this machine has.
fn variants() -> Vec<Variant> {
    let here = KernelFeatures::detect();
    let mut variants = vec![];
    let mut offer = |name: &'static str, means: Option<KernelFeatures>| match means {
        Some(means) => variants.push(Variant { name, means }),
        None => eprintln!("SKIPPED on this machine: {name}"),
    };
    let landlock = here.landlock_abi > 0 && here.seccomp;
    offer("everything", (landlock && here.namespaces.is_some()).then(|| here.clone()));
    let with = |namespaces| KernelFeatures { namespaces, no_namespaces: None, ..here.clone() };
    let user = crate::kernel::namespaces::probe(NamespaceMethod::UserNamespace, true).is_ok();
    offer(
        "everything in a user namespace",
        (landlock && user).then(|| with(Some((NamespaceMethod::UserNamespace, true)))),
    );
    offer("Landlock and filter only", landlock.then(|| with(None)));
    let mounts = here.seccomp && here.namespaces.is_some();
    offer("mounts and filter only", mounts.then(|| KernelFeatures { landlock_abi: 0, ..here.clone() }));
    variants
}

/// A place to attack: a workspace, a private temporary directory and a home outside.
struct Fixture {
    _place: tempfile::TempDir,
    root: PathBuf,
    temp: PathBuf,
    home: PathBuf,
    policy: SandboxPolicy,
}

impl Fixture {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        let (root, temp, home) = (path.join("workspace"), path.join("temp"), path.join("home"));
        for dir in [&root, &temp, &home] {
            std::fs::create_dir(dir).unwrap();
        }
        let policy = SandboxPolicy::new(&root, &temp);
        Self { _place: place, root, temp, home, policy }
    }

    fn sandbox(&self, variant: &Variant) -> Arc<Sandbox> {
        Arc::new(Sandbox::with(&self.policy, &variant.means).unwrap())
    }

    /// Runs a script in a new sandbox.
    fn run(&self, variant: &Variant, script: &str) -> Ran {
        self.run_in(&self.sandbox(variant), script)
    }

    /// Runs a script in a sandbox.
    fn run_in(&self, sandbox: &Arc<Sandbox>, script: &str) -> Ran {
        let lease = sandbox.enter(ProcessRole::Command).unwrap();
        let (command, lease) = self.command(lease, script);
        let ran = { command }.output().unwrap();
        let lease = Arc::into_inner(lease).expect("the command is gone");
        Ran {
            ok: ran.status.success(),
            out: String::from_utf8_lossy(&ran.stdout).into_owned(),
            err: String::from_utf8_lossy(&ran.stderr).into_owned(),
            tampered: lease.release(),
        }
    }

    /// A command that puts itself into the sandbox.
    fn command(&self, lease: SandboxLease, script: &str) -> (Command, Arc<SandboxLease>) {
        let lease = Arc::new(lease);
        let mut command = self.outside(script);
        before_exec(&mut command, &lease, self.preparation());
        before_exec(&mut command, &lease, |entry| entry.apply());
        for name in sandboxed_env_removals() {
            command.env_remove(name);
        }
        (command, lease)
    }

    /// What a guardian does, and going back to where one stood before that.
    fn preparation(&self) -> impl Fn(&dyn BeforeExec) -> Result<(), i32> + use<> {
        let root = namespaces::text(&self.root);
        move |entry| {
            entry.join()?;
            if entry.has_family() {
                continue_in_child();
            }
            entry.prepare()?;
            rustix::process::chdir(root.as_c_str()).map_err(rustix::io::Errno::raw_os_error)
        }
    }

    /// The same script without a sandbox.
    fn outside(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(&self.root).stdin(Stdio::null());
        command.env("HOME", &self.home).env("TMPDIR", &self.temp).env("ROOT", &self.root);
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        for (name, value) in [("NAME", "A"), ("EMAIL", "a@example.org")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        command
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// What the workspace holds, names only.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(&self.root)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Returns in a child, which is in the namespaces that this process joined for its children. This process waits for
/// it and ends as it does.
#[expect(unsafe_code, reason = "as a guardian is born between fork and exec")]
fn continue_in_child() {
    // SAFETY: raw system calls in a process with one thread.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            return;
        }
        // Whoever started us waits for the end of these.
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        let mut status = 0;
        while libc::waitpid(child, &raw mut status, 0) < 0 {}
        if libc::WIFSIGNALED(status) {
            libc::signal(libc::WTERMSIG(status), libc::SIG_DFL);
            libc::raise(libc::WTERMSIG(status));
        }
        libc::_exit(libc::WEXITSTATUS(status));
    }
}

#[expect(unsafe_code, reason = "the sandbox is entered between fork and exec")]
fn before_exec(
    command: &mut Command,
    lease: &Arc<SandboxLease>,
    step: impl Fn(&dyn BeforeExec) -> Result<(), i32> + Send + Sync + 'static,
) {
    let lease = Arc::downgrade(lease);
    let apply = move || match lease.upgrade() {
        Some(lease) => {
            let outcome = step(&*lease.entry()).map_err(io::Error::from_raw_os_error);
            // The reference count belongs to the other process: dropping it here would release the lease
            // twice.
            std::mem::forget(lease);
            outcome
        }
        None => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
    };
    // SAFETY: `apply` makes system calls on prepared data; the reference count is this process's own copy.
    unsafe { command.pre_exec(apply) };
}

/// How a script went.
#[derive(Debug)]
struct Ran {
    ok: bool,
    out: String,
    err: String,
    tampered: Vec<Tampering>,
}

/// True if a program is there to be tried.
fn has(program: &str) -> bool {
    let there = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|dir| dir.join(program).is_file());
    if !there {
        eprintln!("SKIPPED: there is no {program} here");
    }
    there
}

fn exists(path: impl AsRef<Path>) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
