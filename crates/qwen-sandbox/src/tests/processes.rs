//! Getting out of the sandbox, or at other processes.

use std::process::{Command, Stdio};

use super::{Fixture, ProcessRole, has, variants};

#[test]
fn privileges_are_never_gained() {
    for variant in variants() {
        let fixture = Fixture::new();
        let ran = fixture.run(&variant, "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status");
        assert_eq!(ran.out, "NoNewPrivs:\t1\nSeccomp:\t2\n", "{}", variant.name);
        let ran = fixture.run(&variant, "grep CapEff /proc/self/status | cut -f 2");
        let capabilities = u64::from_str_radix(ran.out.trim(), 16).unwrap();
        assert_eq!(capabilities & !crate::entry::KEPT_CAPABILITIES, 0, "{}", variant.name);
    }
}

#[test]
fn namespaces_and_mounts_are_refused() {
    if !has("python3") || !has("unshare") {
        return;
    }
    for variant in variants() {
        let fixture = Fixture::new();
        let outside = fixture.home.join("file");
        std::fs::write(&outside, "before").unwrap();
        for attack in [
            "unshare -m true",
            "unshare -U true",
            "unshare -Ur mount -t tmpfs none $HOME",
            "unshare -n true",
            "mount -t tmpfs none $TMPDIR",
            "umount .qwen || umount -l .mcp.json",
            "chroot / true",
            "python3 -c 'import os; os.setns(os.open(\"/proc/self/ns/mnt\", 0))'",
            // clone(CLONE_NEWUSER) and io_uring_setup, by number.
            "python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); sys.exit(l.unshare(0x10000000) != 0)'",
        ] {
            let ran = fixture.run(&variant, attack);
            assert!(!ran.ok, "{}: {attack}: {ran:?}", variant.name);
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_that_go_around_the_filter_are_refused() {
    if !has("python3") {
        return;
    }
    // clone3, clone with a namespace, io_uring_setup, bpf, userfaultfd, open_by_handle_at, keyctl, x32's
    // getpid, process_vm_readv, perf_event_open, open_tree_attr.
    let script = "python3 - <<'END'
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for call in [(435, 0, 0), (56, 0x10000000 | 17, 0), (425, 1, 0), (321, 0, 0), (323, 0, 0), (304, 0, 0), (250, 0, 0), (0x40000000 + 39,),
        (310, 0, 0), (298, 0, 0), (467, 0, 0)]:
    ctypes.set_errno(0)
    got = libc.syscall(*call)
    print(call[0], got, ctypes.get_errno())
END";
    for variant in variants() {
        let ran = Fixture::new().run(&variant, script);
        let refused = |call: i64| format!("{call} -1 1\n");
        let mut expected = "435 -1 38\n".to_owned();
        for call in [56, 425, 321, 323, 304, 250, 0x4000_0000 + 39, 310, 298, 467] {
            expected.push_str(&refused(call));
        }
        assert_eq!(ran.out, expected, "{}: {ran:?}", variant.name);
    }
}

#[test]
fn other_processes_keep_their_environment_and_files() {
    for variant in variants().iter().filter(|variant| variant.landlock()) {
        let fixture = Fixture::new();
        std::fs::write(fixture.home.join("key"), "TOPSECRET").unwrap();
        let mut other = fixture
            .outside("exec sleep 1000")
            .env("SECRET_KEY", "TOPSECRET")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = other.id();
        for attack in [
            format!("cat /proc/{pid}/environ"),
            format!(
                "cat /proc/{pid}/root{}/key > x; echo x > /proc/{pid}/root{}/key",
                fixture.home.display(),
                fixture.home.display()
            ),
            format!("cat /proc/{pid}/mem"),
            format!("cd /proc/{pid}/cwd && ls"),
        ] {
            let ran = fixture.run(variant, &attack);
            assert!(!ran.ok && !ran.out.contains("SECRET"), "{}: {attack}: {ran:?}", variant.name);
        }
        if variant.means.landlock_abi >= 6 {
            fixture.run(variant, &format!("kill -9 {pid}; kill -STOP {pid}"));
            assert_eq!(other.try_wait().unwrap(), None, "{}", variant.name);
        }
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(
            std::fs::read_to_string(fixture.home.join("key")).unwrap(),
            "TOPSECRET",
            "{}",
            variant.name
        );
    }
}

#[test]
fn children_in_sessions_of_their_own_stay_inside() {
    for variant in variants() {
        let fixture = Fixture::new();
        let ran =
            fixture.run(&variant, "setsid -w bash -c 'setsid -w bash -c \"echo x > $HOME/x; echo y > y\"'");
        assert!(
            !super::exists(fixture.home.join("x")) && super::exists(fixture.root.join("y")),
            "{}: {ran:?}",
            variant.name
        );
    }
}

#[test]
fn a_process_outside_can_end_one_inside_and_dies_with_its_parent() {
    use std::os::unix::process::ExitStatusExt;
    for variant in variants() {
        let fixture = Fixture::new();
        let sandbox = fixture.sandbox(&variant);
        let lease = sandbox.enter(ProcessRole::Command).unwrap();
        let (mut command, lease) = fixture.command(lease, "echo started; exec sleep 1000");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 8];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL), "{}", variant.name);
        drop(lease);
    }
}

#[test]
fn the_signal_of_a_parents_death_outlasts_the_entrance() {
    if !has("setpriv") || !has("python3") {
        return;
    }
    for variant in variants() {
        let fixture = Fixture::new();
        let lease = fixture.sandbox(&variant).enter(ProcessRole::Command).unwrap();
        let script = "python3 -c 'import ctypes; n=ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); print(n.value)'";
        let lease = std::sync::Arc::new(lease);
        let mut command = fixture.outside(script);
        super::before_exec(&mut command, &lease, fixture.preparation());
        arm_parent_death(&mut command);
        super::before_exec(&mut command, &lease, |entry| entry.apply());
        let out = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "9\n", "{}", variant.name);
    }
}

#[expect(unsafe_code, reason = "as a guardian does it between fork and exec")]
fn arm_parent_death(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let arm = || {
        // SAFETY: no memory is touched.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
        Ok(())
    };
    // SAFETY: one system call.
    unsafe { command.pre_exec(arm) };
}

#[test]
fn a_working_directory_below_a_protected_one_is_entered_through_the_shield() {
    for variant in variants() {
        let mut fixture = Fixture::new();
        fixture.write(".git/hooks/keep", "");
        let root = std::mem::replace(&mut fixture.root, std::path::PathBuf::new());
        fixture.root = root.join(".git/hooks");
        fixture.run(&variant, "echo x > pre-commit; echo x > ../config");
        assert!(
            !super::exists(root.join(".git/hooks/pre-commit")) && !super::exists(root.join(".git/config")),
            "{}",
            variant.name
        );
    }
}

#[test]
fn other_terminals_are_neither_read_nor_written() {
    if !has("python3") {
        return;
    }
    let fixture = Fixture::new();
    let holder = "import os, pty, sys; here, there = pty.openpty(); print(os.ttyname(there), flush=True); sys.stdin.read()";
    let mut holder = fixture
        .outside(&format!("exec python3 -c '{holder}'"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut terminal = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(holder.stdout.as_mut().unwrap()), &mut terminal)
        .unwrap();
    let terminal = terminal.trim();
    for variant in variants() {
        for attack in [format!("echo x > {terminal}"), format!("exec 3< {terminal}")] {
            let ran = fixture.run(&variant, &attack);
            assert!(!ran.ok, "{}: {attack}: {ran:?}", variant.name);
        }
    }
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn shared_memory_of_others_is_out_of_reach_where_namespaces_are_there() {
    if !has("ipcmk") || !has("ipcs") || !has("ipcrm") {
        return;
    }
    let fixture = Fixture::new();
    let made = fixture.outside("ipcmk -M 100 | grep -o '[0-9]*$'").output().unwrap();
    let id = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let seen: Vec<_> = variants()
        .iter()
        .filter(|variant| variant.mounts())
        .map(|variant| fixture.run(variant, &format!("ipcs -m -i {id} | grep -q bytes")).ok)
        .collect();
    fixture.outside(&format!("ipcrm -m {id}")).status().unwrap();
    assert!(!seen.contains(&true));
}

#[test]
fn a_process_that_shares_its_parents_memory_can_enter() {
    struct Shared {
        lease: super::SandboxLease,
        entered: Result<(), i32>,
        refused: bool,
    }
    for variant in variants() {
        let fixture = Fixture::new();
        let lease = fixture.sandbox(&variant).enter(ProcessRole::Command).unwrap();
        let mut shared = Shared { lease, entered: Err(0), refused: false };
        let enter = |shared: &mut Shared| {
            let entry = shared.lease.entry();
            shared.entered = entry.join().and_then(|()| entry.prepare()).and_then(|()| entry.apply());
            shared.refused = crate::kernel::unshare(libc::CLONE_NEWNS).is_err();
        };
        crate::kernel::run_outside_namespaces(&mut crate::kernel::ProcessStack::new(), enter, &mut shared)
            .unwrap();
        assert_eq!((shared.entered, shared.refused), (Ok(()), true), "{}", variant.name);
        assert!(std::fs::write(fixture.home.join("x"), "ours").is_ok(), "the parent stays outside");
    }
}

#[test]
fn a_command_sees_the_processes_of_its_sandbox_only() {
    for variant in variants().iter().filter(|variant| variant.mounts()) {
        let fixture = Fixture::new();
        let mut other =
            fixture.outside("exec sleep 1000").env("OTHER", "x").stdin(Stdio::null()).spawn().unwrap();
        let script = "sleep 77 & echo own $!; cat /proc/$!/cmdline | tr '\\0' ' '; echo; \
            for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done; \
            kill $!; wait $!; echo status $?; readlink /proc/self/exe";
        let ran = fixture.run(variant, script);
        other.kill().unwrap();
        other.wait().unwrap();
        let said = &ran.out;
        assert!(said.contains("\nsleep 77 \n") && said.contains("status 143"), "{}: {ran:?}", variant.name);
        assert!(!said.contains("sleep 1000") && said.contains("readlink"), "{}: {ran:?}", variant.name);
        let numbers = fixture.run(variant, "ls -d /proc/[0-9]* | wc -l").out;
        assert!(numbers.trim().parse::<u32>().unwrap() < 10, "{}: {numbers}", variant.name);
    }
}

#[test]
fn what_is_left_in_a_sandbox_ends_with_it() {
    for variant in variants().iter().filter(|variant| variant.mounts()) {
        let fixture = Fixture::new();
        let sandbox = fixture.sandbox(variant);
        let fifo = fixture.root.join("fifo");
        let ran = fixture.run_in(
            &sandbox,
            "mkfifo fifo; setsid bash -c 'exec 9<>fifo; echo > there; sleep 1000' > /dev/null 2>&1 & \
            until [ -e there ]; do sleep 0.01; done",
        );
        assert!(ran.ok, "{}: {ran:?}", variant.name);
        drop(sandbox);
        // While a process has it open for reading, it can be opened for writing.
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
        let opened = rustix::fs::open(&fifo, flags, rustix::fs::Mode::empty());
        assert_eq!(opened.err(), Some(rustix::io::Errno::NXIO), "{}", variant.name);
    }
}
