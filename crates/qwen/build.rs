//! Chooses how the program is linked, and puts the commit and its date into release builds.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    link_at_fixed_address_on_request();
    embed_commit();
}

/// With `QWEN_BUILD_NO_PIE=1` the program has a fixed address, for hubs with many workers: otherwise every
/// process relocates half a megabyte of pointers at its start, which costs time and memory that is not shared
/// (docs/decisions/0014-hardened-binary.md). A static program gets its startup code from rustc, which must know
/// how it is linked.
fn link_at_fixed_address_on_request() {
    println!("cargo:rerun-if-env-changed=QWEN_BUILD_NO_PIE");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let is_dynamic = target("ENV") == "gnu" && !target("FEATURE").contains("crt-static");
    if target("OS") == "linux"
        && is_dynamic
        && env::var_os("QWEN_BUILD_NO_PIE").is_some_and(|value| value == "1")
    {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}

/// For `qwen --version`. The variables `QWEN_BUILD_COMMIT` and `QWEN_BUILD_DATE` replace what git says.
/// Other builds go without, because they would be compiled anew after every commit.
fn embed_commit() {
    println!("cargo:rerun-if-env-changed=QWEN_BUILD_COMMIT");
    println!("cargo:rerun-if-env-changed=QWEN_BUILD_DATE");
    if env::var("PROFILE").as_deref() != Ok("release") || env::var_os("QWEN_BUILD_COMMIT").is_some() {
        return;
    }
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return };
    // The reflog grows with every commit, checkout and rebase.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rustc-env=QWEN_BUILD_COMMIT={commit}");
    if let Some(date) = git(&["show", "-s", "--format=%cs", "HEAD"]) {
        println!("cargo:rustc-env=QWEN_BUILD_DATE={date}");
    }
}

/// The output of a git command; none without a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
