//! Random repositories, deny rules and git commands: whatever runs, no denied path changes in the index, in
//! commits or on disk, and none of its bytes appear.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::denied::{SECRET, git_output, run};
use crate::harness::{Scene, each, has_sandbox, write};

const COMMANDS: [&str; 25] = [
    "git add -A",
    "git add -u",
    "git add .",
    "git commit -qam x",
    "git commit -qm x --allow-empty",
    "git commit -q --amend --no-edit",
    "git stash",
    "git stash -u",
    "git stash && git stash pop",
    "git reset --hard",
    "git reset",
    "git checkout .",
    "git checkout -b other",
    "git switch -c other",
    "git restore .",
    "git clean -fdx",
    "git rm -r --cached .",
    "git rm -rf .",
    "git mv a b; git mv b c; git commit -qm moved",
    "git diff; git diff --cached; git diff HEAD",
    "git log -p; git show; git grep secret; git grep --cached secret",
    "git worktree add ../w; cat ../w/*; git worktree add w2; cat w2/* w2/*/*",
    "git submodule status; git sparse-checkout set a; git sparse-checkout disable",
    "git update-index --really-refresh; git update-index --assume-unchanged a; git commit -qam x",
    "mkdir -p copy; cp -a . copy/; tar cf t.tar .; rm -rf a b c; git add -A; git commit -qm x",
];

/// Pseudorandom numbers; each seed is one case.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn choose<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// A repository of a few files in a few directories, and a rule that denies some of them.
fn random_repository(numbers: &mut Numbers) -> (Scene, Vec<String>) {
    let rules = [
        ("Read(/a/**)", "a"),
        ("Read(/a/b/**)", "a/b"),
        ("Read(/a/x)", "a/x"),
        ("Read(z.txt)", "z.txt"),
        ("Read(/c/d/x)", "c/d/x"),
        ("Read(c)", "c"),
    ];
    let (rule, denied) = rules[numbers.below(rules.len())];
    let scene = Scene::new().user_settings(&json!({ "permissions": { "deny": [rule] } }));
    let here = scene.here();
    git_output(here, &["init", "-q", "-b", "main", "."]);
    for (name, value) in [("user.name", "a"), ("user.email", "a@example.org"), ("gc.auto", "0")] {
        git_output(here, &["config", name, value]);
    }
    let names = ["a/x", "a/b/y", "a/b/deep/z", "c/d/x", "c/e", "z.txt", "file", "sub/deep"];
    let mut secrets = Vec::new();
    for name in names {
        let is_denied = Path::new(name).starts_with(denied);
        let length = numbers.below(3);
        let content = if is_denied { SECRET } else { "plain" };
        write(here.join(name), format!("{content}{}\n", "\nmore".repeat(length)));
        if is_denied {
            secrets.push(name.to_owned());
        }
    }
    git_output(here, &["add", "-A"]);
    git_output(here, &["commit", "-qm", "first"]);
    if numbers.below(2) == 0 {
        git_output(here, &["gc", "-q"]);
    }
    write(here.join("file"), numbers.choose(&["one\n", "two\n", "plain\n", "a longer text\n"]));
    write(here.join("untracked"), "u\n");
    (scene, secrets)
}

#[test]
fn random_commands_leave_random_denied_paths_as_they_are() {
    if !has_sandbox() {
        return;
    }
    let cases: Vec<(usize, u64)> = (0..COMMANDS.len()).flat_map(|at| [(at, 1), (at, 2)]).collect();
    each(&cases, |(at, seed)| {
        let command = COMMANDS[*at];
        let mut numbers = Numbers(*seed * 1000 + *at as u64);
        numbers.below(2);
        let (scene, secrets) = random_repository(&mut numbers);
        let here = scene.here();
        let paths: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let staged = || git_output(here, &[&["ls-files", "-s", "--"], &paths[..]].concat());
        let committed = || git_output(here, &[&["ls-tree", "-r", "HEAD", "--"], &paths[..]].concat());
        let on_disk =
            || paths.iter().map(|path| fs::read(here.join(path)).unwrap_or_default()).collect::<Vec<_>>();
        let before = (staged(), committed(), on_disk());
        let played = run(&scene, command);
        let said = played.result("c1");
        if (staged(), committed(), on_disk()) != before {
            return Err(format!("{command}, seed {seed}, {paths:?}: changed: {said}"));
        }
        if played.leaks(SECRET) {
            return Err(format!("{command}, seed {seed}, {paths:?}: showed: {said}"));
        }
        Ok(())
    });
}
