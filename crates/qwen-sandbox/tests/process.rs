//! Commands under their guardian, used directly.

use std::sync::Arc;

use qwen_sandbox::process::{BeforeExec, Environment, Exit, ProcessSpec, SpawnError, Stdin, spawn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn command(script: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new("sh", "/", Arc::new(Environment::inherited()));
    spec.args = vec!["-c".into(), script.into()];
    spec
}

#[tokio::test]
async fn a_conversation_over_pipes_goes_on_until_its_input_ends() {
    let mut spec = command("exec cat");
    spec.stdin = Stdin::Pipe;
    let mut running = spawn(spec).await.unwrap();
    let (mut stdin, mut stdout) = (running.stdin.take().unwrap(), running.stdout.take().unwrap());
    for message in ["one\n", "two\n"] {
        stdin.write_all(message.as_bytes()).await.unwrap();
        let mut answer = vec![0; message.len()];
        stdout.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, message.as_bytes());
    }
    assert_eq!(running.gone_by_now(), None);
    drop(stdin);
    assert_eq!(running.wait().await, Exit::Code(0));
    assert_eq!(running.gone_by_now(), Some(Exit::Code(0)));
}

#[tokio::test]
async fn a_killed_command_is_gone() {
    let mut running = spawn(command("trap '' TERM; sleep 1000 & wait")).await.unwrap();
    running.kill();
    assert_eq!(running.wait().await, Exit::Signal(9));
}

#[tokio::test]
async fn why_a_command_cannot_start_is_told_apart() {
    let env = Arc::new(Environment::inherited());
    let error = |spec| async { spawn(spec).await.err().unwrap() };
    assert!(matches!(
        error(ProcessSpec::new("no-such-program", "/", env.clone())).await,
        SpawnError::NotFound(_)
    ));
    assert!(matches!(error(ProcessSpec::new("/", "/", env.clone())).await, SpawnError::Exec { .. }));
    assert!(matches!(
        error(ProcessSpec::new("sh", "/no/such/place", env.clone())).await,
        SpawnError::Directory { .. }
    ));
    let mut spec = command("true");
    spec.args.push("a\0b".into());
    assert!(matches!(error(spec).await, SpawnError::Nul(_)));
    let mut spec = command("true");
    spec.args.push("x".repeat(200_000).into());
    assert!(matches!(error(spec).await, SpawnError::Exec { .. }));
}

struct Mask;

impl BeforeExec for Mask {
    fn apply(&self) -> Result<(), i32> {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
        Ok(())
    }
}

struct Refuse;

impl BeforeExec for Refuse {
    fn apply(&self) -> Result<(), i32> {
        Err(rustix::io::Errno::PERM.raw_os_error())
    }
}

#[tokio::test]
async fn a_failure_before_exec_prevents_the_start() {
    let mut spec = command("umask");
    spec.before_exec = Some(Arc::new(Mask));
    let mut running = spawn(spec).await.unwrap();
    let mut text = String::new();
    running.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "0027\n");

    let mut spec = command("touch /should-not-exist");
    spec.before_exec = Some(Arc::new(Refuse));
    assert!(matches!(spawn(spec).await, Err(SpawnError::BeforeExec(_))));
}
