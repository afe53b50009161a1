//! Protected names, there or not.

use std::fmt::Write;
use std::path::Path;

use super::{Fixture, Variant, exists, has, variants};

const ATTACKS: &[&str] = &[
    "mkdir -p .qwen && echo '{}' > .qwen/settings.json",
    "mkdir x && echo '{}' > x/settings.json && mv x .qwen",
    "mkdir x && echo '{}' > x/settings.json && ln -s x .qwen",
    "rm -rf .qwen; mkdir x && echo '{}' > x/settings.json && mv -T x .qwen",
    "mv .qwen moved; mkdir .qwen; echo '{}' > .qwen/settings.json",
    "echo '{}' > .mcp.json",
    "echo '{}' > x && mv -f x .mcp.json",
    "echo '{}' > x && mv -T x .mcp.json",
    "rm -rf .mcp.json; echo '{}' > .mcp.json",
    "echo '{}' > x && ln x .mcp.json",
    "python3 -c 'import os; os.rename(\".mcp.json\", \"y\"); open(\".mcp.json\", \"w\").write(\"{}\")'",
    "mkdir -p .git/hooks && echo 'touch x' > .git/hooks/pre-commit; chmod +x .git/hooks/*",
    "mkdir -p .git/hooks && ln -s ../../x .git/hooks/post-checkout",
    "mv .git/hooks .git/h; mkdir .git/hooks; echo 'touch x' > .git/hooks/pre-commit",
    "mv .git moved; cp -r moved .git; echo 'touch x' > .git/hooks/pre-commit; echo '[core]' >> .git/config",
    "mkdir -p evil/hooks; echo '[core]' > evil/config; mv .git moved; ln -s evil .git",
    "mkdir -p .git; printf '[core]\\n\\tfsmonitor = touch x\\n' >> .git/config",
    "mkdir -p .git; printf '[core]\\n\\tfsmonitor = touch x\\n' > c; mv c .git/config",
    "cd .git && printf '[core]\\n\\tfsmonitor = touch x\\n' >> config",
    "mkdir -p .git evil; echo ../evil > .git/commondir; printf '[core]\\n\\tfsmonitor = touch x\\n' > evil/config",
    "git config core.fsmonitor 'touch x'",
    "git config --file .git/config core.hooksPath evil",
    "git init -q . && git config core.hooksPath evil",
    "git init -q --separate-git-dir evil .",
    "git init -q . && cp .git/hooks/pre-commit.sample .git/hooks/pre-commit",
    "(setsid bash -c 'mkdir .qwen; echo {} > .qwen/settings.json'); true",
    "chmod 777 .git/config .qwen; chmod -R 777 .git/hooks; echo x > .git/hooks/y; echo x >> .git/config",
];

/// What other programs act on: each protected path with its content, links and all. Git's examples are left
/// out.
fn state(fixture: &Fixture) -> String {
    fn look(path: &Path, name: &str, state: &mut String) {
        let Ok(meta) = std::fs::symlink_metadata(path) else { return };
        if name.ends_with(".sample") {
            return;
        }
        if meta.is_dir() {
            let _ = writeln!(state, "{name} directory");
            let mut names: Vec<_> =
                std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            for below in names {
                look(&path.join(&below), &format!("{name}/{}", below.to_string_lossy()), state);
            }
        } else {
            let target = std::fs::read_link(path).unwrap_or_default();
            let content = std::fs::read_to_string(path).unwrap_or_default();
            let _ = writeln!(state, "{name} {:?} {content:?}", target.display());
        }
    }
    let mut state = String::new();
    if fixture.root.join(".git").is_dir() {
        state += ".git directory\n";
    }
    for name in [".git/hooks", ".git/config", ".git/commondir", ".git/config.worktree", ".qwen", ".mcp.json"]
    {
        look(&fixture.root.join(name), name, &mut state);
    }
    if std::fs::symlink_metadata(fixture.root.join(".git")).is_ok_and(|meta| !meta.is_dir()) {
        state += ".git is no directory\n";
    }
    state
}

fn attack_all(prepare: &str, harmless: impl Fn(&str) -> bool) {
    if !has("git") || !has("python3") {
        return;
    }
    for variant in variants() {
        for attack in ATTACKS {
            let fixture = Fixture::new();
            assert!(fixture.outside(prepare).status().unwrap().success());
            let before = state(&fixture);
            let ran = fixture.run(&variant, attack);
            let after = state(&fixture);
            assert!(
                after == before || harmless(&after),
                "{}: {attack}: {ran:?}\n{before}---\n{after}",
                variant.name
            );
        }
    }
}

#[test]
fn names_that_are_there_do_not_change() {
    let prepare = "set -e; git init -q .; echo true > .git/hooks/pre-push; mkdir .qwen; echo '{}' > .qwen/settings.json; echo '{}' > .mcp.json";
    // What goes away whole leaves nothing to act on.
    attack_all(prepare, |after| !after.contains(".git") && after.matches("{}").count() == 2);
}

#[test]
fn names_that_are_missing_are_not_made() {
    // A repository that a command makes may be there; what makes git run something may not.
    let harmless = |state: &str| {
        let lines: Vec<_> = state.lines().collect();
        lines.contains(&".git directory") && !state.contains("fsmonitor") && !state.contains("hooksPath") && {
            !state.contains("pre-commit")
                && !state.contains(".qwen")
                && !state.contains(".mcp.json")
                && !state.contains("commondir")
        }
    };
    attack_all("true", harmless);
}

#[test]
fn names_that_are_missing_in_a_repository_are_not_made() {
    attack_all("git init -q . && rm -r .git/hooks", str::is_empty);
}

#[test]
fn with_mounts_the_kernel_refuses_writes_to_protected_names() {
    for variant in variants().iter().filter(|variant| variant.mounts()) {
        for name in [".qwen/settings.json", ".mcp.json", ".git/hooks/x", ".git/config"] {
            let fixture = Fixture::new();
            fixture.write(".git/HEAD", "");
            let ran = fixture.run(variant, &format!("echo x > {name}"));
            assert!(!ran.ok, "{}: {name}: {ran:?}", variant.name);
            assert_eq!(ran.tampered, [], "{}: {name}", variant.name);
        }
    }
}

#[test]
fn a_change_that_was_undone_is_reported() {
    for variant in variants() {
        let fixture = Fixture::new();
        fixture.write(".git/HEAD", "");
        let ran = fixture.run(&variant, "echo ../evil > .git/commondir");
        let told: Vec<_> = ran.tampered.iter().map(|t| (t.path.clone(), t.undone)).collect();
        assert_eq!(told, [(fixture.root.join(".git/commondir"), true)], "{}", variant.name);
        assert!(ran.tampered[0].to_string().contains("undone"));
    }
}

#[test]
fn nothing_of_ours_remains() {
    for variant in variants() {
        let fixture = Fixture::new();
        fixture.run(&variant, "true");
        assert_eq!(fixture.names(), Vec::<String>::new(), "{}", variant.name);
        fixture.write(".git/HEAD", "");
        fixture.run(&variant, "true");
        assert_eq!(fixture.names(), [".git"], "{}", variant.name);
        assert!(
            !exists(fixture.root.join(".git/hooks")) && !exists(fixture.root.join(".git/config")),
            "{}",
            variant.name
        );
    }
}

#[test]
fn protection_survives_a_replacement_from_outside() {
    for variant in variants().iter().filter(|variant| variant.mounts()) {
        let fixture = Fixture::new();
        fixture.write(".git/config", "one");
        fixture.write(".git/hooks/a", "one");
        let sandbox = fixture.sandbox(variant);
        assert_eq!(sandbox.without_namespaces, None, "{}", variant.name);
        assert!(!fixture.run_in(&sandbox, "echo x > .git/config").ok);
        let new = fixture.write("new", "two");
        std::fs::rename(new, fixture.root.join(".git/config")).unwrap();
        std::fs::remove_dir_all(fixture.root.join(".git/hooks")).unwrap();
        std::fs::create_dir(fixture.root.join(".git/hooks")).unwrap();
        let ran = fixture.run_in(&sandbox, "cat .git/config; echo x > .git/config; echo x > .git/hooks/x");
        assert_eq!(ran.out, "two", "{}", variant.name);
        assert_eq!(
            std::fs::read_to_string(fixture.root.join(".git/config")).unwrap(),
            "two",
            "{}",
            variant.name
        );
        assert!(!exists(fixture.root.join(".git/hooks/x")), "{}", variant.name);
    }
}

fn log(fixture: &Fixture) -> String {
    String::from_utf8(fixture.outside("git log --format=%s").output().unwrap().stdout).unwrap()
}

fn commits_in(variant: &Variant, fixture: &Fixture) {
    let script = "set -e; echo x > file; git add -A; git commit -qm one; echo y > file; git commit -qam two
        git checkout -qb other; git commit -q --allow-empty -m three; git stash list; git gc -q; git status --porcelain";
    let ran = fixture.run(variant, script);
    assert!(ran.ok, "{}: {ran:?}", variant.name);
    assert_eq!(ran.out, "", "{}: nothing unknown lies about", variant.name);
    assert_eq!(ran.tampered, [], "{}", variant.name);
    assert_eq!(log(fixture), "three\ntwo\none\n", "{}", variant.name);
}

#[test]
fn commits_work_in_the_workspace() {
    if !has("git") {
        return;
    }
    for variant in variants() {
        let fixture = Fixture::new();
        // A session excludes placeholders through its own exclude file.
        let prepare = "git init -q . && printf '.mcp.json\\n.qwen\\n.claude\\n' >> .git/info/exclude";
        assert!(fixture.outside(prepare).status().unwrap().success());
        commits_in(&variant, &fixture);
        let tree = fixture.outside("git ls-files").output().unwrap();
        assert_eq!(String::from_utf8(tree.stdout).unwrap(), "file\n", "{}", variant.name);
    }
}

#[test]
fn a_repository_can_be_made_and_used_at_once() {
    if !has("git") {
        return;
    }
    for variant in variants() {
        let fixture = Fixture::new();
        let script =
            "set -e; git init -q .; git config user.name A; echo x > f; git add f; git commit -qm one";
        let ran = fixture.run(&variant, script);
        assert!(ran.ok, "{}: {ran:?}", variant.name);
        assert_eq!(ran.tampered, [], "{}", variant.name);
        assert_eq!(log(&fixture), "one\n", "{}", variant.name);
    }
}

#[test]
fn commits_work_in_a_linked_worktree_whose_repository_stays_protected() {
    if !has("git") {
        return;
    }
    for variant in variants() {
        let mut fixture = Fixture::new();
        let prepare = "set -e; git init -q $HOME/main; cd $HOME/main; git commit -q --allow-empty -m zero
            printf '.mcp.json\\n.qwen\\n.claude\\n' >> .git/info/exclude; git worktree add -q $HOME/tree";
        assert!(fixture.outside(prepare).status().unwrap().success());
        fixture.root = fixture.home.join("tree");
        fixture.policy.roots = vec![fixture.root.clone()];
        let script = "set -e; echo x > file; git add -A; git commit -qm one; git status --porcelain";
        let ran = fixture.run(&variant, script);
        assert!(ran.ok && ran.out.is_empty(), "{}: {ran:?}", variant.name);
        assert_eq!(log(&fixture), "one\nzero\n", "{}", variant.name);
        let main = fixture.home.join("main");
        let before = std::fs::read_to_string(main.join(".git/config")).unwrap();
        let attack = "cd $HOME/main; echo x > file; echo x >> .git/config; echo x > .git/hooks/pre-commit
            echo x > .git/worktrees/tree/commondir; echo x > .git/commondir";
        fixture.run(&variant, attack);
        assert_eq!(std::fs::read_to_string(main.join(".git/config")).unwrap(), before, "{}", variant.name);
        assert_eq!(
            std::fs::read_to_string(main.join(".git/worktrees/tree/commondir")).unwrap(),
            "../..\n",
            "{}",
            variant.name
        );
        for name in ["file", ".git/hooks/pre-commit", ".git/commondir"] {
            assert!(!exists(main.join(name)), "{}: {name}", variant.name);
        }
    }
}
