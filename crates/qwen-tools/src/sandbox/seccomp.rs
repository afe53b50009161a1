//! The system call filter: no sockets beyond what the policy allows, no new namespaces or mounts, none of the calls
//! that reach around Landlock or deep into the kernel. What is refused gets an error, as if it were not permitted.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::policy::Policy;

/// Why no filter could be made.
#[derive(Debug, thiserror::Error)]
#[error("the system call filter cannot be built: {0}")]
pub struct FilterError(#[from] seccompiler::BackendError);

/// Calls that nothing in a sandbox needs.
const REFUSED: &[libc::c_long] = &[
    // Other namespaces and mounts: the way out of ours.
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
    // Sockets and files without the calls that are filtered here.
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
    // Parts of the kernel with a history.
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

/// Newer than the list of the `libc` crate: `open_tree` and attributes in one.
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;

/// Flags of `clone` that would make a namespace.
const NEW_NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests that put words into a terminal's mouth.
const TERMINAL_TRICKS: &[libc::c_ulong] = &[libc::TIOCSTI, 0x541C];

/// The bits of a socket's type that are its kind.
const SOCKET_KIND: u64 = 0xf;

/// What else stands guard, which decides what is left for the filter.
pub(super) struct Beside {
    /// The command has a network of its own, with nobody in it.
    pub network: bool,
    /// Landlock keeps processes apart.
    pub landlock: bool,
}

/// A program that commands put themselves under.
pub(super) struct Filter(Box<[libc::sock_filter]>);

impl Filter {
    pub(super) fn build(policy: &Policy, beside: &Beside) -> Result<Self, FilterError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|&call| (call, Vec::new())).collect();
        rules.insert(SYS_OPEN_TREE_ATTR, Vec::new());
        if !beside.landlock {
            rules.insert(libc::SYS_ptrace, Vec::new());
        }
        let mut clones = Vec::new();
        for &flag in NEW_NAMESPACES {
            let flag = u64::from(flag.cast_unsigned());
            clones.push(rule(vec![condition(0, SeccompCmpOp::MaskedEq(flag), flag)?])?);
        }
        rules.insert(libc::SYS_clone, clones);
        let mut requests = Vec::new();
        for &request in TERMINAL_TRICKS {
            requests.push(rule(vec![condition(1, SeccompCmpOp::Eq, request)?])?);
        }
        rules.insert(libc::SYS_ioctl, requests);
        let (sockets, pairs) = socket_rules(policy, beside)?;
        rules.insert(libc::SYS_socket, sockets);
        if !pairs.is_empty() {
            rules.insert(libc::SYS_socketpair, pairs);
        }

        let refusal = SeccompAction::Errno(libc::EPERM.cast_unsigned());
        let arch = std::env::consts::ARCH.try_into()?;
        let filter: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch)?.try_into()?;
        let rest = filter.iter().map(|i| libc::sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k });
        Ok(Self(prologue().into_iter().chain(rest).collect()))
    }

    pub(super) fn program(&self) -> &[libc::sock_filter] {
        &self.0
    }
}

/// Which sockets are refused, and which pairs of sockets.
fn socket_rules(policy: &Policy, beside: &Beside) -> Result<(Vec<SeccompRule>, Vec<SeccompRule>), FilterError> {
    let mut allowed = vec![];
    if policy.network || beside.network {
        allowed.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if policy.unix_sockets {
        allowed.push(libc::AF_UNIX);
    }
    let other_family = |more: &[i32]| {
        let families = allowed.iter().chain(more);
        families.map(|&family| condition(0, SeccompCmpOp::Ne, family_number(family))).collect::<Result<Vec<_>, _>>()
    };
    // The kernel's own news of interfaces and addresses, which resolvers ask for; it leads nowhere else.
    let netlink = family_number(libc::AF_NETLINK);
    let routes = u64::from(libc::NETLINK_ROUTE.cast_unsigned());
    let sockets = vec![
        rule(other_family(&[libc::AF_NETLINK])?)?,
        rule(vec![condition(0, SeccompCmpOp::Eq, netlink)?, condition(2, SeccompCmpOp::Ne, routes)?])?,
    ];
    let pairs = if policy.unix_sockets {
        vec![]
    } else {
        // A connected pair reaches nobody else, except one of datagrams, which can be pointed at any address.
        let kind = |kind: libc::c_int| {
            let kind = u64::from(kind.cast_unsigned());
            rule(vec![condition(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind)?])
        };
        vec![kind(libc::SOCK_DGRAM)?, kind(libc::SOCK_RAW)?]
    };
    Ok((sockets, pairs))
}

fn family_number(family: libc::c_int) -> u64 {
    u64::from(family.cast_unsigned())
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, FilterError> {
    Ok(SeccompRule::new(conditions)?)
}

/// A condition on an argument of 32 bits, which is what the kernel looks at too.
fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?)
}

/// What comes before the rules. Calls of another architecture, and those of x32 on x86, have other numbers, so no
/// rule would see them: all are refused. `clone3` hides its flags in memory; programs that miss it use `clone`.
fn prologue() -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const NUMBER_AT: u32 = 0;
    const ARCHITECTURE_AT: u32 = 4;
    const X32: u32 = 0x4000_0000;
    #[cfg(target_arch = "x86_64")]
    const NATIVE: u32 = 0xC000_003E;
    #[cfg(target_arch = "aarch64")]
    const NATIVE: u32 = 0xC000_00B7;
    let error = |errno: libc::c_int| libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX);
    vec![
        step(LOAD, ARCHITECTURE_AT, 0, 0),
        step(EQUAL, NATIVE, 1, 0),
        step(RETURN, error(libc::EPERM), 0, 0),
        step(LOAD, NUMBER_AT, 0, 0),
        step(AT_LEAST, X32, 0, 1),
        step(RETURN, error(libc::EPERM), 0, 0),
        step(EQUAL, clone3, 0, 1),
        step(RETURN, error(libc::ENOSYS), 0, 0),
    ]
}
