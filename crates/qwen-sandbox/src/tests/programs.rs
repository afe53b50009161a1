//! Ordinary programs work inside the sandbox.

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

/// Programs that have been forked and have not called `exec` yet hold copies of all descriptors.
#[expect(unsafe_code, reason = "holds a program up between fork and exec")]
#[test]
fn a_sandbox_has_its_mounts_while_other_threads_start_programs() {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&is_over);
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let mut program = Command::new("true");
                    // SAFETY: the call is allowed between fork and exec.
                    unsafe {
                        program.pre_exec(|| {
                            libc::usleep(2000);
                            Ok(())
                        });
                    }
                    program.status().unwrap();
                }
            });
        }
        for variant in variants().iter().filter(|variant| variant.mounts()) {
            let fixture = Fixture::new();
            for _ in 0..40 {
                let sandbox = fixture.sandbox(variant);
                assert_eq!(sandbox.without_namespaces, None, "{}", variant.name);
            }
        }
    });
}
