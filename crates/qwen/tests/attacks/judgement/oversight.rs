//! Commands that mention what is protected without touching it run where their mode permits. Those that do
//! touch it ask.

use serde_json::json;

use crate::harness::{Scene, each};

/// Commands that only read: they run in every mode.
const READING: &[&str] = &[
    "find . -path ./.git -prune -o -type f -print",
    "find . -not -path './.git/*' -name file",
    "find . ! -path './.git/*'",
    "find . \\( -name .git -o -name sub \\) -prune -o -print",
    "git config user.name || true",
    "git config --get user.name || true",
    "git config --get-all remote.origin.url || true",
    "git config get user.name || true",
    "git config --local --list",
    "grep -r --exclude-dir=.git alpha .",
    "grep -r --exclude-dir .git alpha .",
    "grep -rn --exclude=.mcp.json alpha .",
    "du -sh --exclude=.git .",
    "ls .git",
    "ls -a --ignore=.git",
    "cat .git/HEAD",
    "cat .git/config",
    "head -1 .git/config",
    "echo .git",
    "printf '%s\\n' .git/hooks",
    "test -d .git && echo yes",
    "[ -f .git/config ] && echo yes",
    "git ls-files --exclude=.git",
    "git status --short",
    "diff -r --exclude=.git sub sub",
    "cd .git && ls",
];

/// Commands that write elsewhere: they run where everything is allowed.
const WRITING: &[&str] = &[
    "tar --exclude=.git -cf {outside}/a.tar .",
    "tar --exclude .git -cf {outside}/b.tar .",
    "tar -cf {outside}/c.tar --exclude='.git/*' --exclude=.qwen .",
    "tar cf {outside}/d.tar --exclude-vcs .",
    "zip -q -r {outside}/a.zip . -x '.git/*' || true",
    "zip -q -r {outside}/b.zip . -x .git .qwen || true",
    "rsync -a --exclude=.git sub/ {outside}/copy || true",
    "rsync -a --exclude .git sub/ {outside}/copy2 || true",
    "find . -path ./.git -prune -o -name made -delete",
    "find . -not -path './.git/*' -name made -exec rm {} +",
    "git config --global --get user.name || true",
    "git config --list > {outside}/settings",
    "git clean -n -e .git",
    "touch .gitignore",
    "cp -r .git {outside}/backup",
    "cp .git/config {outside}/config",
    "tar -czf {outside}/e.tgz .git",
    "tar cf {outside}/f.tar .git .qwen || true",
    "zip -q -r {outside}/c.zip .git || true",
    "cd .git && cat config",
    "echo '.git' > {outside}/list",
    "mkdir -p git/hooks",
];

/// Commands that do write what is protected.
const TOUCHING: &[&str] = &[
    "git config user.name evil",
    "git config --add user.name evil",
    "git config --unset user.name",
    "git config set user.name evil",
    "git config --file .git/config a.b c",
    "git -c a.b=c config user.name evil",
    "find .git -name config -delete",
    "find . -path './.git/hooks/*' -delete",
    "find . -name .git -exec rm -r {} +",
    "rm -rf .git",
    "mv .git gone",
    "cp evil .git/hooks/x -S .bak",
    "cp -t .git/hooks evil",
    "cp -r sub .git",
    "cp -l .git/config copy",
    "tar -xf a.tar .git/config",
    "tar -cf .git/config sub",
    "tar cf a.tar --remove-files .git",
    "zip -m a.zip .git/config",
    "zip .git/hooks/x file",
    "d=$(printf .git); cd $d/hooks && cp ../../evil pre-commit",
    "cd \"$(echo .git)\" && cp ../evil hooks/pre-commit",
    "tar -xf a.tar -C .git/hooks",
    "cp evil .git/hooks/pre-commit",
    "cd .git && cp ../evil hooks/pre-commit",
    "cd .git/hooks && cp ../../evil pre-commit",
    "cd .git/hooks && python3 -c \"open('pre-commit', 'w')\"",
    "tool --exclude .git/hooks/pre-commit",
    "touch --exclude-from=.git/hooks/x",
];

#[test]
fn mentioning_what_is_protected_is_not_touching_it() {
    each(&["plan", "default", "auto-edit", "yolo"], |mode| {
        let scene = Scene::in_repository().args(["--approval-mode", *mode]);
        let calls: Vec<_> =
            READING.iter().map(|command| ("run_shell_command", json!({ "command": command }))).collect();
        let played = scene.play(&calls);
        for (at, command) in READING.iter().enumerate() {
            let id = format!("c{}", at + 1);
            let result = played.result(&id);
            if played.lists(&id) || result.contains("Exit code: ") && !result.contains("Exit code: 0") {
                return Err(format!("{mode}: {command}: {result}"));
            }
        }
        Ok(())
    });
}

#[test]
fn leaving_out_what_is_protected_runs_where_everything_is_allowed() {
    let scene = Scene::in_repository().args(["--yolo", "--sandbox=false"]);
    let calls: Vec<_> = WRITING
        .iter()
        .map(|command| ("run_shell_command", json!({ "command": scene.filled(command) })))
        .collect();
    let played = scene.play(&calls);
    for (at, command) in WRITING.iter().enumerate() {
        let id = format!("c{}", at + 1);
        assert!(!played.lists(&id), "{command}: {}", played.result(&id));
    }
    for made in ["a.tar", "b.tar", "c.tar", "d.tar"] {
        assert!(scene.out(made).exists(), "{made} was packed");
    }
}

#[test]
fn leaving_out_runs_by_a_rule_for_its_program() {
    for (rule, command) in [
        ("Bash(tar *)", "tar --exclude=.git -cf a.tar sub"),
        ("Bash(tar *)", "tar cf a.tar --exclude .git sub"),
        ("Bash(rsync *)", "rsync -a --exclude=.git sub/ copy"),
        ("Bash(zip *)", "zip -q -r a.zip sub -x .git"),
    ] {
        let scene = Scene::in_repository().args(["--allowed-tools", rule]);
        let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
        assert!(!played.lists("c1"), "{command}: {}", played.result("c1"));
    }
}

#[test]
fn touching_what_is_protected_asks_even_where_everything_is_allowed() {
    each(TOUCHING, |command| {
        let scene = Scene::in_repository().args(["--yolo", "--sandbox=false"]);
        let before = scene.tree();
        let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
        let after = scene.tree();
        let changed = after.changed_since(&before);
        if !played.lists("c1") || !changed.is_empty() {
            return Err(format!("{command}: {changed:?} {}", played.result("c1")));
        }
        Ok(())
    });
}

#[test]
fn a_file_that_must_not_be_edited_may_be_copied_and_staged() {
    let reading = ["cp file copy", "cp -p file sub", "tar cf a.tar file", "git add file", "git add -- file"];
    let writing =
        ["cp evil file", "cp -l file linked", "mv file gone", "git checkout HEAD -- file", "tar cf file sub"];
    for (commands, refused) in [(&reading, false), (&writing, true)] {
        each(commands, |command| {
            let scene = Scene::in_repository().args(["--yolo", "--disallowed-tools", "Edit(./file)"]);
            let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
            if played.lists("c1") == refused {
                Ok(())
            } else {
                Err(format!("{command}: {}", played.result("c1")))
            }
        });
    }
}
