//! Ordinary programs work inside the sandbox.

use std::io::{PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Fixture, Variant, has, variants};

/// Runs a script in every sandbox and expects the same output as outside.
fn works(program: &str, script: &str, expected: &str) {
    if !has(program) {
        return;
    }
    let outside = Fixture::new().outside(script).output().unwrap();
    if String::from_utf8_lossy(&outside.stdout) != expected {
        eprintln!(
            "SKIPPED: {program} does not do this outside either: {}",
            String::from_utf8_lossy(&outside.stderr)
        );
        return;
    }
    for variant in variants() {
        let ran = Fixture::new().run(&variant, script);
        assert_eq!(ran.out, expected, "{}: {ran:?}", variant.name);
    }
}

#[test]
fn shells_and_tools() {
    works(
        "bash",
        "cat <<< here; (echo sub) | sort; sleep 0 & wait; ls | wc -l; date > /dev/null; echo $((1+1))",
        "here\nsub\n0\n2\n",
    );
}

#[test]
fn make_works() {
    works("make", "printf 'all:\\n\\t@echo made\\n' > Makefile; make -j2", "made\n");
}

#[test]
fn gcc_compiles_and_its_program_runs() {
    works(
        "gcc",
        "echo 'int puts(const char*); int main(void){ puts(\"hi\"); }' > a.c; gcc -w a.c -o a && ./a",
        "hi\n",
    );
}

#[test]
fn python_runs_with_threads_children_and_an_event_loop() {
    let script = "python3 - <<'END'
import asyncio, subprocess, tempfile, threading
threading.Thread(target=lambda: None).start()
print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')
async def main():
    process = await asyncio.create_subprocess_exec('echo', 'loop', stdout=asyncio.subprocess.PIPE)
    print((await process.communicate())[0].decode(), end='')
asyncio.run(main())
tempfile.TemporaryFile().write(b'x')
END";
    works("python3", script, "child\nloop\n");
}

#[test]
fn python_shares_locks_between_processes_where_mounts_are_there() {
    if !has("python3") {
        return;
    }
    let script = "python3 -c 'import multiprocessing as m; p = m.get_context(\"fork\").Pool(2); print(p.map(abs, [-1, -2]))'";
    for variant in variants().iter().filter(|variant: &&Variant| variant.mounts()) {
        let ran = Fixture::new().run(variant, script);
        assert_eq!(ran.out, "[1, 2]\n", "{}: {ran:?}", variant.name);
    }
}

#[test]
fn node_runs_with_children_and_workers() {
    let script = "node -e '
const { execFileSync, fork } = require(\"child_process\");
const { Worker } = require(\"worker_threads\");
process.stdout.write(execFileSync(\"echo\", [\"child\"]));
require(\"fs\").writeFileSync(\"f.js\", \"process.send(1)\");
fork(\"./f.js\").on(\"message\", () => new Worker(\"console.log(2)\", { eval: true }));
'";
    works("node", script, "child\n2\n");
}

#[test]
fn terminals_can_be_made_where_mounts_are_there() {
    if !has("python3") {
        return;
    }
    let script = "python3 -c 'import pty; pty.spawn([\"echo\", \"typed\"])'; ls /dev/pts";
    for variant in variants().iter().filter(|variant| variant.mounts()) {
        let ran = Fixture::new().run(variant, script);
        assert_eq!(ran.out, "typed\r\nptmx\n", "{}: {ran:?}", variant.name);
    }
}

/// A program that was forked and has not called `exec` yet holds copies of all descriptors.
#[expect(unsafe_code, reason = "holds programs up between fork and exec")]
#[test]
fn a_sandbox_has_its_mounts_while_other_threads_start_programs() {
    const THREADS: usize = 3;
    /// Ends the threads, also if the test fails.
    struct End<'a>(&'a AtomicBool, &'a PipeWriter);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
            self.1.write_all(&[0; THREADS]).unwrap();
        }
    }
    let (reader, writer) = std::io::pipe().unwrap();
    let held = reader.as_raw_fd();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = End(&is_over, &writer);
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    let mut program = Command::new("true");
                    // SAFETY: reading is allowed between fork and exec, and the pipe is open until the threads end.
                    unsafe {
                        program.pre_exec(move || {
                            let mut byte = 0_u8;
                            libc::read(held, (&raw mut byte).cast(), 1);
                            Ok(())
                        });
                    }
                    program.status().unwrap();
                }
            });
        }
        let mut reasons = Vec::new();
        for variant in variants().iter().filter(|variant| variant.mounts()) {
            let fixture = Fixture::new();
            for _ in 0..100 {
                // The programs that are held up start, and others are forked meanwhile.
                (&writer).write_all(&[0; THREADS]).unwrap();
                let sandbox = fixture.sandbox(variant);
                reasons.extend(sandbox.without_namespaces.clone().map(|reason| (variant.name, reason)));
            }
        }
        assert_eq!(reasons, []);
    });
}
