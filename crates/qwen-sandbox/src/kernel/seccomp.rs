//! The system call filter: no sockets beyond what the policy allows, no new namespaces or mounts, and none of
//! the calls that bypass Landlock or expose much of the kernel. A refused call fails with a permission error.
//!
//! We generate the program ourselves because of its shape. When a command installs a filter, the kernel runs
//! it once for every system call number: a search tree takes 70 microseconds, a chain of comparisons 200.

use crate::policy::SandboxPolicy;

/// Calls that nothing in a sandbox needs.
const REFUSED: &[libc::c_long] = &[
    // Other namespaces and mounts, which would lead out of ours.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Files by number instead of by path.
    libc::SYS_open_by_handle_at,
    // Sockets and files through calls that are not filtered here.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes' memory and descriptors.
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Keys that belong to the user and not to the command.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Parts of the kernel with a history of vulnerabilities.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    // The machine itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Missing in the `libc` crate: `open_tree` combined with mount attributes.
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;

/// Flags of `clone` that would make a namespace.
const NEW_NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// Requests that inject input into a terminal: TIOCSTI and TIOCLINUX.
const TERMINAL_TRICKS: [u32; 2] = [0x5412, 0x541C];

/// The bits of a socket's type that are its kind.
const SOCKET_KIND: u32 = 0xf;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();

/// The other active mechanisms, which determine what the filter has to enforce.
pub(crate) struct OtherMechanisms {
    /// The command has its own empty network namespace.
    pub network: bool,
    /// True if Landlock isolates processes.
    pub landlock: bool,
}

/// A filter program that commands apply to themselves.
#[derive(Debug)]
pub(crate) struct Filter(Vec<libc::sock_filter>);

impl Filter {
    pub(crate) fn build(policy: &SandboxPolicy, beside: &OtherMechanisms) -> Self {
        let mut rules: Vec<Rule> = REFUSED.iter().map(|&call| (call, vec![return_action(REFUSE)])).collect();
        rules.push((SYS_OPEN_TREE_ATTR, vec![return_action(REFUSE)]));
        if !beside.landlock {
            rules.push((libc::SYS_ptrace, vec![return_action(REFUSE)]));
        }
        // Its flags are in memory, which the filter cannot read. Programs fall back to `clone`.
        rules.push((libc::SYS_clone3, vec![return_action(UNKNOWN)]));
        rules.push((
            libc::SYS_clone,
            vec![
                load_argument(0),
                skip_unless_any_bit(NEW_NAMESPACES.cast_unsigned()),
                return_action(REFUSE),
                return_action(ALLOW),
            ],
        ));
        rules.push((
            libc::SYS_ioctl,
            choose(1, TERMINAL_TRICKS.into_iter().map(|request| (request, REFUSE)), ALLOW),
        ));
        // Own limits only: changed limits of the guardian or of our process would outlive the command.
        rules.push((libc::SYS_prlimit64, choose(0, [(0, ALLOW)], REFUSE)));
        rules.push((libc::SYS_socket, socket(policy, beside)));
        if !policy.unix_sockets {
            rules.push((libc::SYS_socketpair, socketpair()));
        }
        rules.sort_unstable_by_key(|(call, _)| *call);
        let mut program = prologue();
        search(&rules, &mut program);
        Self(program)
    }

    pub(crate) fn program(&self) -> &[libc::sock_filter] {
        &self.0
    }
}

/// A call, and the instructions that judge it. They always end with a return.
type Rule = (libc::c_long, Vec<libc::sock_filter>);

/// Decides which sockets may be created.
fn socket(policy: &SandboxPolicy, beside: &OtherMechanisms) -> Vec<libc::sock_filter> {
    let mut families = vec![];
    if policy.network || beside.network {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if policy.unix_sockets {
        families.push(libc::AF_UNIX);
    }
    let mut steps = vec![load_argument(0)];
    for family in families {
        steps.extend([skip_unless_equal(family.cast_unsigned(), 1), return_action(ALLOW)]);
    }
    // Netlink routing data about interfaces and addresses, which resolvers need. It reaches nothing else.
    steps.extend([skip_unless_equal(libc::AF_NETLINK.cast_unsigned(), 3), load_argument(2)]);
    steps.extend([
        skip_unless_equal(libc::NETLINK_ROUTE.cast_unsigned(), 1),
        return_action(ALLOW),
        return_action(REFUSE),
    ]);
    steps
}

/// A connected pair reaches no other socket, except a datagram pair, which can send to any address.
fn socketpair() -> Vec<libc::sock_filter> {
    let mut steps =
        choose(1, [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| (kind.cast_unsigned(), REFUSE)), ALLOW);
    steps.insert(1, step(AND, SOCKET_KIND, 0, 0));
    steps
}

/// Selects the result by the value of an argument.
fn choose(argument: u32, cases: impl IntoIterator<Item = (u32, u32)>, other: u32) -> Vec<libc::sock_filter> {
    let mut steps = vec![load_argument(argument)];
    for (value, answer) in cases {
        steps.extend([skip_unless_equal(value, 1), return_action(answer)]);
    }
    steps.push(return_action(other));
    steps
}

/// Instructions before the rules. Calls of another architecture, and those of x32 on x86, have other numbers,
/// so no rule would see them: all are refused.
fn prologue() -> Vec<libc::sock_filter> {
    const NUMBER_AT: u32 = 0;
    const ARCHITECTURE_AT: u32 = 4;
    const X32: u32 = 0x4000_0000;
    #[cfg(target_arch = "x86_64")]
    const NATIVE: u32 = 0xC000_003E;
    #[cfg(target_arch = "aarch64")]
    const NATIVE: u32 = 0xC000_00B7;
    vec![
        step(LOAD, ARCHITECTURE_AT, 0, 0),
        step(EQUAL, NATIVE, 1, 0),
        return_action(REFUSE),
        step(LOAD, NUMBER_AT, 0, 0),
        step(NOT_BELOW, X32, 0, 1),
        return_action(REFUSE),
    ]
}

/// Finds the rule of a call by binary search. Calls without a rule are allowed.
fn search(rules: &[Rule], program: &mut Vec<libc::sock_filter>) {
    let middle = rules.len() / 2;
    let Some((call, steps)) = rules.get(middle) else {
        program.push(return_action(ALLOW));
        return;
    };
    let number = u32::try_from(*call).unwrap_or(u32::MAX);
    program.push(skip_unless_equal(number, steps.len()));
    program.extend(steps);
    if rules.len() == 1 {
        program.push(return_action(ALLOW));
        return;
    }
    let mut below = vec![];
    search(&rules[..middle], &mut below);
    // A jump over the lower half may exceed the offset of a comparison.
    program.push(step(NOT_BELOW, number, 0, 1));
    program.push(step(JUMP, u32::try_from(below.len()).unwrap_or(u32::MAX), 0, 0));
    program.extend(below);
    search(&rules[middle + 1..], program);
}

// The operations: load a word, mask it, compare it with a constant and jump, jump, answer.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const EQUAL: u16 = 0x15;
const NOT_BELOW: u16 = 0x35;
const ANY_BIT: u16 = 0x45;
const JUMP: u16 = 0x05;
const ANSWER: u16 = 0x06;

fn step(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

fn return_action(answer: u32) -> libc::sock_filter {
    step(ANSWER, answer, 0, 0)
}

/// Loads the lower 32 bits of an argument, which is all that the kernel uses of the arguments judged here.
fn load_argument(number: u32) -> libc::sock_filter {
    const ARGUMENTS_AT: u32 = 16;
    step(LOAD, ARGUMENTS_AT + 8 * number, 0, 0)
}

fn skip_unless_equal(value: u32, steps: usize) -> libc::sock_filter {
    step(EQUAL, value, 0, u8::try_from(steps).unwrap_or(u8::MAX))
}

fn skip_unless_any_bit(mask: u32) -> libc::sock_filter {
    step(ANY_BIT, mask, 0, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the program's result for a call, and the number of steps.
    fn run(program: &[libc::sock_filter], architecture: u32, call: u32, arguments: [u32; 3]) -> (u32, usize) {
        let (mut at, mut word, mut steps) = (0, 0u32, 0);
        loop {
            steps += 1;
            let libc::sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let jump = |yes: bool| usize::from(if yes { jt } else { jf });
            match code {
                LOAD => {
                    word = match k {
                        0 => call,
                        4 => architecture,
                        k => arguments[(k as usize - 16) / 8],
                    }
                }
                AND => word &= k,
                EQUAL => at += jump(word == k),
                NOT_BELOW => at += jump(word >= k),
                ANY_BIT => at += jump(word & k != 0),
                JUMP => at += k as usize,
                ANSWER => return (k, steps),
                other => panic!("no such operation: {other}"),
            }
        }
    }

    fn native() -> u32 {
        prologue()[1].k
    }

    fn filter(network: bool, unix_sockets: bool, landlock: bool) -> Filter {
        let mut policy = SandboxPolicy::new("/", "/tmp");
        (policy.network, policy.unix_sockets) = (network, unix_sockets);
        Filter::build(&policy, &OtherMechanisms { network: false, landlock })
    }

    #[test]
    fn every_listed_call_is_refused_and_every_other_allowed() {
        let filter = filter(true, true, true);
        for call in 0..1000 {
            let (answer, steps) =
                run(filter.program(), native(), call, [libc::AF_INET.cast_unsigned(), 0, 0]);
            let number = libc::c_long::from(call);
            let expected = if number == libc::SYS_clone3 {
                UNKNOWN
            } else if number == libc::SYS_prlimit64 {
                // Given to another process here.
                REFUSE
            } else if REFUSED.contains(&number) || number == SYS_OPEN_TREE_ATTR {
                REFUSE
            } else {
                ALLOW
            };
            assert_eq!(answer, expected, "call {call}");
            assert!(steps < 40, "call {call} takes {steps} steps");
        }
    }

    #[test]
    fn other_architectures_get_nothing() {
        let filter = filter(true, true, true);
        assert_eq!(run(filter.program(), 0x4000_0003, 0, [0; 3]).0, REFUSE);
        assert_eq!(run(filter.program(), native(), 0x4000_0000, [0; 3]).0, REFUSE);
    }

    #[test]
    fn arguments_decide_about_sockets_clones_and_requests() {
        let call = |number: libc::c_long| u32::try_from(number).unwrap();
        let (inet, unix, netlink) = (libc::AF_INET as u32, libc::AF_UNIX as u32, libc::AF_NETLINK as u32);
        let cloexec = libc::SOCK_CLOEXEC as u32;
        for (network, unix_sockets, number, arguments, expected) in [
            (false, false, libc::SYS_socket, [inet, 1, 0], REFUSE),
            (true, false, libc::SYS_socket, [inet, 1, 0], ALLOW),
            (true, false, libc::SYS_socket, [libc::AF_INET6 as u32, 2, 0], ALLOW),
            (true, false, libc::SYS_socket, [unix, 1, 0], REFUSE),
            (false, true, libc::SYS_socket, [unix, 1, 0], ALLOW),
            (false, true, libc::SYS_socket, [inet, 1, 0], REFUSE),
            (false, false, libc::SYS_socket, [netlink, 3, 0], ALLOW),
            (true, true, libc::SYS_socket, [netlink, 3, 9], REFUSE),
            (true, true, libc::SYS_socket, [libc::AF_PACKET as u32, 3, 0], REFUSE),
            (true, true, libc::SYS_socket, [libc::AF_VSOCK as u32, 1, 0], REFUSE),
            (false, false, libc::SYS_socketpair, [unix, 1 | cloexec, 0], ALLOW),
            (false, false, libc::SYS_socketpair, [unix, 5, 0], ALLOW),
            (false, false, libc::SYS_socketpair, [unix, 2 | cloexec, 0], REFUSE),
            (false, false, libc::SYS_socketpair, [unix, 3, 0], REFUSE),
            (false, true, libc::SYS_socketpair, [unix, 2, 0], ALLOW),
            (true, true, libc::SYS_clone, [libc::CLONE_VM as u32 | libc::CLONE_THREAD as u32, 0, 0], ALLOW),
            (true, true, libc::SYS_clone, [libc::CLONE_NEWUSER as u32 | libc::CLONE_VM as u32, 0, 0], REFUSE),
            (true, true, libc::SYS_prlimit64, [0, 7, 0], ALLOW),
            (true, true, libc::SYS_prlimit64, [1, 7, 0], REFUSE),
            (true, true, libc::SYS_ioctl, [0, 0x5412, 0], REFUSE),
            (true, true, libc::SYS_ioctl, [0, 0x5401, 0], ALLOW),
        ] {
            let filter = filter(network, unix_sockets, true);
            let answer = run(filter.program(), native(), call(number), arguments).0;
            assert_eq!(answer, expected, "{number} {arguments:?}, network {network}, unix {unix_sockets}");
        }
    }

    #[test]
    fn tracing_is_left_to_landlock_where_that_is_there() {
        let ptrace = u32::try_from(libc::SYS_ptrace).unwrap();
        assert_eq!(run(filter(false, false, true).program(), native(), ptrace, [0; 3]).0, ALLOW);
        assert_eq!(run(filter(false, false, false).program(), native(), ptrace, [0; 3]).0, REFUSE);
    }
}
