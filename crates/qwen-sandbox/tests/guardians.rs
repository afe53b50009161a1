//! A guardian that watches over one command after the other.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod presence;

use std::sync::Arc;

use presence::{alive, wait_until_gone};
use qwen_sandbox::process::{
    BeforeExec, Environment, Exit, Guardians, ProcessSpec, Running, SpawnError, spawn,
};
use tokio::io::AsyncReadExt;

fn command(guardians: &Arc<Guardians>, script: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new("sh", "/", Arc::new(Environment::inherited()));
    spec.args = vec!["-c".into(), script.into()];
    spec.guardians = Some(guardians.clone());
    spec
}

async fn output(mut running: Running) -> String {
    let mut text = String::new();
    running.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(running.wait().await, Exit::Code(0));
    text
}

async fn run(spec: ProcessSpec) -> String {
    output(spawn(spec).await.unwrap()).await
}

/// The guardian that gets the next command.
async fn guardian(guardians: &Arc<Guardians>) -> i32 {
    run(command(guardians, "echo $PPID")).await.trim().parse().unwrap()
}

#[tokio::test]
async fn one_guardian_serves_commands_that_follow_each_other() {
    let guardians = Arc::default();
    let first = guardian(&guardians).await;
    assert_eq!(guardian(&guardians).await, first);
    let mut spec = command(&guardians, "pwd; echo \"$0 $1 $A\"; umask");
    spec.args.extend(["name".into(), "two\nlines".into()]);
    spec.cwd = "/proc".into();
    let mut env = Environment::inherited();
    env.set("A", "ä");
    spec.env = Arc::new(env);
    let umask = run(command(&guardians, "umask")).await;
    assert_eq!(run(spec).await, format!("/proc\nname two\nlines ä\n{umask}"));
    assert_eq!(guardian(&guardians).await, first);
}

#[tokio::test]
async fn commands_beside_each_other_have_guardians_of_their_own() {
    let guardians = Arc::default();
    let script = "echo $PPID; exec sleep 1000";
    let (mut one, mut other) = (
        spawn(command(&guardians, script)).await.unwrap(),
        spawn(command(&guardians, script)).await.unwrap(),
    );
    let mut pids = Vec::new();
    for running in [&mut one, &mut other] {
        let mut buffer = [0; 64];
        let got = running.stdout.as_mut().unwrap().read(&mut buffer).await.unwrap();
        pids.push(String::from_utf8_lossy(&buffer[..got]).into_owned());
    }
    assert_ne!(pids[0], pids[1]);
    one.terminate();
    assert_eq!(one.wait().await, Exit::Signal(15));
    assert_eq!(other.gone_by_now(), None);
    let (after, ended): (_, i32) = (guardian(&guardians).await, pids[0].trim().parse().unwrap());
    assert_eq!(after, ended, "a command that was asked to end leaves its guardian");
    other.kill();
    assert_eq!(other.wait().await, Exit::Signal(9));
}

#[tokio::test]
async fn leftover_processes_are_ended_before_the_next_command_starts() {
    let guardians = Arc::default();
    for _ in 0..5 {
        let script = "trap '' TERM HUP; setsid sh -c 'exec sleep 1000 >&- 2>&-' & echo $!; (exec sleep 1000 >&- 2>&- & echo $!)";
        let left = run(command(&guardians, script)).await;
        for pid in left.lines() {
            assert!(!alive(pid.parse().unwrap()), "{left}");
        }
        assert_eq!(run(command(&guardians, "cat /proc/$PPID/task/$PPID/children | wc -w")).await.trim(), "1");
    }
}

#[tokio::test]
async fn a_guardian_that_was_killed_while_it_waited_is_replaced() {
    let guardians = Arc::default();
    let first = guardian(&guardians).await;
    let pid = rustix::process::Pid::from_raw(first).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_until_gone(first);
    assert_ne!(guardian(&guardians).await, first);
}

#[tokio::test]
async fn guardians_end_with_those_who_hold_them() {
    let guardians = Arc::default();
    let waiting = guardian(&guardians).await;
    assert!(alive(waiting));
    drop(guardians);
    wait_until_gone(waiting);
}

#[tokio::test]
async fn a_command_that_is_dropped_takes_its_guardian_along() {
    let guardians = Arc::default();
    let first = guardian(&guardians).await;
    drop(spawn(command(&guardians, "exec sleep 1000")).await.unwrap());
    wait_until_gone(first);
}

#[tokio::test]
async fn a_command_that_cannot_start_says_why_to_a_guardian_that_waited() {
    let guardians = Arc::default();
    guardian(&guardians).await;
    let mut spec = command(&guardians, "true");
    spec.cwd = "/no/such/place".into();
    assert!(matches!(spawn(spec).await, Err(SpawnError::Directory { .. })));
    guardian(&guardians).await;
    let mut spec = command(&guardians, "true");
    spec.program = "/".into();
    assert!(matches!(spawn(spec).await, Err(SpawnError::Exec { .. })));
}

#[tokio::test]
async fn an_order_that_is_too_long_to_be_told_is_carried_out_all_the_same() {
    let guardians = Arc::default();
    guardian(&guardians).await;
    let mut spec = command(&guardians, "echo ${#0}");
    spec.args.push("x".repeat(100_000).into());
    assert_eq!(run(spec).await, "100000\n");
}

struct Mask(u32);

impl BeforeExec for Mask {
    fn apply(&self) -> Result<(), i32> {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(self.0));
        Ok(())
    }
}

#[tokio::test]
async fn a_command_does_what_it_is_to_do_before_the_start_and_nothing_that_another_was_to_do() {
    let guardians: Arc<Guardians> = Arc::default();
    let hooks: [Option<Arc<dyn BeforeExec>>; 3] =
        [Some(Arc::new(Mask(0o027))), Some(Arc::new(Mask(0o057))), None];
    let own = run(command(&guardians, "umask")).await;
    let expected = ["0027\n", "0057\n", &own];
    for turn in [0, 0, 1, 2, 2, 1, 0] {
        let mut spec = command(&guardians, "umask");
        spec.before_exec.clone_from(&hooks[turn]);
        assert_eq!(run(spec).await, expected[turn]);
    }
}

/// Ready once it is prepared, until somebody puts something at the path.
struct Ready(std::path::PathBuf);

impl BeforeExec for Ready {
    fn prepare(&self) -> Result<(), i32> {
        let _ = rustix::fs::unlink(&self.0);
        Ok(())
    }

    fn apply(&self) -> Result<(), i32> {
        if self.0.exists() { Err(libc::ESTALE) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_sandbox_broken_between_two_commands_is_prepared_again_by_another_guardian() {
    let guardians: Arc<Guardians> = Arc::default();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("apart");
    let hook: Arc<dyn BeforeExec> = Arc::new(Ready(path.clone()));
    let guardian = async || {
        let mut spec = command(&guardians, "echo $PPID");
        spec.before_exec = Some(hook.clone());
        run(spec).await
    };
    let first = guardian().await;
    assert_eq!(guardian().await, first);
    std::fs::write(&path, "").unwrap();
    let second = guardian().await;
    assert_ne!(second, first);
    assert!(!path.exists());
    assert_eq!(guardian().await, second);
}
