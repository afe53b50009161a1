//! What a shell call costs, next to starting the same program without any care. Run with `--release`.
#![expect(clippy::print_stdout, reason = "a measurement is printed")]
#![expect(unsafe_code, reason = "getrusage has no safe wrapper here")]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use qwen_events::{CallId, Json, ToolCall};
use qwen_tools::{CallContext, DiscardedOutput, Registry, SessionResources};

const CALLS: u32 = 500;

/// CPU time of this process and of all that it waited for.
fn cpu() -> Duration {
    let of = |who| {
        // SAFETY: the structure is plain data and outlives the call.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let time = |time: libc::timeval| {
            Duration::from_secs(time.tv_sec.unsigned_abs())
                + Duration::from_micros(time.tv_usec.unsigned_abs())
        };
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

fn report(what: &str, cpu_before: Duration, start: Instant) {
    println!(
        "{what:<28} {:>9.1?} CPU  {:>9.1?} wall",
        cpu().saturating_sub(cpu_before) / CALLS,
        start.elapsed() / CALLS
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    for script in ["true", "echo hello", "ls / | wc -l"] {
        println!("bash -c {script:?}");
        let (before, start) = (cpu(), Instant::now());
        for _ in 0..CALLS {
            Command::new("bash").args(["-c", script]).stdin(Stdio::null()).output()?;
        }
        report("  bare", before, start);

        let resources = SessionResources::with_own_environment(std::env::current_dir()?);
        let cancel = tokio_util::sync::CancellationToken::new();
        let cx = CallContext::new(Arc::new(resources), cancel, Arc::new(DiscardedOutput));
        let registry = Registry::builtin();
        let call = ToolCall::new(
            CallId::new("1"),
            "run_shell_command".into(),
            Json::trusted(serde_json::json!({ "command": script }).to_string()),
        );
        let Some(tool) = registry.get(&call.name) else { return Ok(()) };
        let (before, start) = (cpu(), Instant::now());
        for _ in 0..CALLS {
            tool.run(&call, &cx).await;
        }
        report("  run_shell_command", before, start);
    }
    Ok(())
}
