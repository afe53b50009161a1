//! Protected objects under other names: links, hard links, worktrees, submodules and directories below the
//! root.

use std::path::Path;

use super::{Fixture, Variant, exists, has, variants};

/// A workspace with a repository, a submodule, a linked worktree, a nested repository and settings of agents.
const PREPARE: &str = r"set -e
git init -q -b main .; git commit -q --allow-empty -m zero; echo true > .git/hooks/pre-push
git init -q -b main $HOME/library; git -C $HOME/library commit -q --allow-empty -m zero
git -c protocol.file.allow=always submodule --quiet add $HOME/library module; git commit -qm module
git worktree add -q tree
git init -q -b main nested; git -C nested commit -q --allow-empty -m zero
mkdir -p sub/.qwen sub/.claude linked; echo '{}' > sub/.qwen/settings.json; echo '{}' > sub/.mcp.json
echo '{}' > sub/.claude/settings.json; echo '{}' > linked/mcp.json; ln -s linked/mcp.json .mcp.json; ln -s nowhere .qwen
echo x > sub/file
";

/// The strongest set of means and the one without mounts.
fn most_and_least() -> Vec<Variant> {
    let mut variants = variants();
    let without = variants.iter().position(|variant| !variant.mounts()).map(|at| variants.swap_remove(at));
    variants.truncate(1);
    variants.into_iter().chain(without).collect()
}

/// Everything that git or an agent acts on in the workspace.
fn state(fixture: &Fixture) -> String {
    fn look(root: &Path, path: &Path, state: &mut Vec<String>) {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let relative = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let inside = [".git/hooks/", ".qwen/"].iter().any(|directory| relative.contains(directory));
            let is_setting = ["config", "commondir", "gitdir", "config.worktree", ".mcp.json", "mcp.json"]
                .contains(&name.as_str())
                || name.starts_with("settings.")
                || (name == ".git" && meta.is_file())
                || inside
                || meta.is_symlink()
                || relative.contains("/hooks/");
            if meta.is_dir() {
                look(root, &path, state);
            } else if is_setting && !name.ends_with(".sample") {
                let content = std::fs::read_to_string(&path).unwrap_or_default();
                state.push(format!(
                    "{relative} {:?} {content:?}",
                    std::fs::read_link(&path).unwrap_or_default()
                ));
            }
        }
    }
    let mut state = Vec::new();
    look(&fixture.root, &fixture.root, &mut state);
    state.sort();
    state.join("\n")
}

const ATTACKS: &[&str] = &[
    // Links that the repository brings.
    "echo evil > linked/mcp.json",
    "mv linked away; mkdir linked; echo evil > linked/mcp.json",
    "rm .mcp.json; echo evil > .mcp.json",
    "mkdir nowhere; echo evil > nowhere/settings.json",
    "mkdir evil; echo evil > evil/settings.json; ln -s evil nowhere",
    "mkdir evil; echo evil > evil/settings.json; rm .qwen; mv -T evil .qwen",
    // Submodules and worktrees.
    "git -C module config core.fsmonitor 'touch x'",
    "echo '[core]' >> .git/modules/module/config",
    "echo 'touch x' > .git/modules/module/hooks/post-checkout; chmod +x .git/modules/module/hooks/post-checkout",
    "mv .git/modules away; mkdir -p .git/modules/module; cp -r away/module .git/modules/; echo '[core]' >> .git/modules/module/config",
    "mkdir evil; echo ../../../evil > .git/worktrees/tree/commondir",
    "echo evil > .git/worktrees/tree/config.worktree",
    "echo evil > .git/modules/module/commondir",
    "echo 'gitdir: ../evil' > module/.git",
    "git init -q --bare evil; rm tree/.git; ln -s ../evil tree/.git",
    "mkdir -p .git/worktrees/new evil/x; echo ../../../evil > .git/worktrees/new/commondir; echo 'gitdir: ../../.git/worktrees/new' > evil/x/.git",
    // Directories below the root.
    "git -C nested config core.fsmonitor 'touch x'",
    "echo 'touch x' > nested/.git/hooks/pre-commit",
    "mkdir evil; echo ../../evil > nested/.git/commondir",
    "echo evil > sub/.qwen/settings.json",
    "echo evil > sub/.mcp.json",
    "echo evil > sub/.claude/settings.json; echo evil > sub/.claude/settings.local.json",
    "mkdir -p other/.qwen; echo evil > other/.qwen/settings.json",
    "mkdir -p deep/er/.claude; echo evil > deep/er/.claude/settings.json",
    "mkdir -p .claude; echo evil > .claude/settings.json",
    "mkdir -p .claude/agents; echo evil > .claude/agents/a.md",
    "mkdir -p .claude/hooks; echo evil > .claude/hooks/a.sh",
    "mkdir -p a/b; cd a/b; git init -q .; git config core.hooksPath /evil",
    "mkdir -p a; echo evil > a/config; mkdir -p a/.git; cp a/config config; cp config a/.git/config; mkdir a/.git/objects a/.git/refs; echo x > a/.git/HEAD",
    "mv sub moved; echo evil > moved/.qwen/settings.json; mv moved sub",
];

#[test]
fn no_other_name_leads_to_a_protected_object() {
    if !has("git") {
        return;
    }
    for variant in most_and_least() {
        for attack in ATTACKS {
            let fixture = Fixture::new();
            let prepared = fixture.outside(PREPARE).output().unwrap();
            assert!(prepared.status.success(), "{prepared:?}");
            let before = state(&fixture);
            let sandbox = fixture.sandbox(&variant);
            assert_eq!(sandbox.has_mounts(), variant.mounts(), "{}", sandbox.describe());
            let ran = fixture.run_in(&sandbox, attack);
            let after: Vec<String> = state(&fixture).lines().map(str::to_owned).collect();
            let left = |line: &&String| {
                line.starts_with("evil/") || line.starts_with("away/") || line.starts_with("config ")
            };
            let after: Vec<_> = after.iter().filter(|line| !left(line)).map(String::as_str).collect();
            let new: Vec<_> =
                after.iter().filter(|line| !before.lines().any(|known| known == **line)).collect();
            // What git itself writes into a new repository stays, and so does a record that no file points
            // at.
            let harmless = |line: &&&str| {
                !line.contains("evil")
                    && !line.contains("fsmonitor")
                    && !line.contains("hooksPath")
                    && line.starts_with("a/")
                    || line.starts_with("a/config")
                    || line.starts_with(".git/worktrees/new/")
            };
            let new: Vec<_> = new.into_iter().filter(|line| !harmless(line)).collect();
            let lost: Vec<_> = before.lines().filter(|line| !after.contains(line)).collect();
            assert!(
                new.is_empty() && lost.is_empty(),
                "{}: {attack}: {ran:?}\nnew: {new:#?}\nlost: {lost:#?}",
                variant.name
            );
        }
    }
}

#[test]
fn a_hard_link_is_no_way_to_a_protected_file() {
    for variant in variants() {
        let fixture = Fixture::new();
        fixture.write(".git/HEAD", "");
        let config = fixture.write(".git/config", "[core]\n");
        std::fs::hard_link(&config, fixture.root.join("notes")).unwrap();
        fixture.run(&variant, "echo evil >> notes; ln .git/config other && echo evil >> other");
        assert_eq!(std::fs::read_to_string(&config).unwrap(), "[core]\n", "{}", variant.name);
    }
}

#[test]
fn a_git_directory_behind_a_link_is_protected_and_usable() {
    if !has("git") {
        return;
    }
    for variant in variants() {
        let fixture = Fixture::new();
        let prepare =
            "set -e; git init -q .; mkdir data; mv .git data/git; ln -s data/git .git; rm -r data/git/hooks";
        assert!(fixture.outside(prepare).status().unwrap().success());
        assert_eq!(fixture.sandbox(&variant).has_mounts(), variant.mounts());
        let ran = fixture.run(&variant, "set -e; echo x > f; git add f; git commit -qm one");
        assert!(ran.ok && ran.tampered.is_empty(), "{}: {ran:?}", variant.name);
        for attack in [
            "mkdir -p data/git/hooks; echo 'touch x' > data/git/hooks/pre-commit",
            "echo '[alias]' >> data/git/config",
            "cp -r data other; echo '[alias]' >> other/git/config; mv data gone; mv other data",
            "rm .git; cp -r data/git evil; echo '[alias]' >> evil/config; ln -s evil .git",
        ] {
            let ran = fixture.run(&variant, attack);
            let config = std::fs::read_to_string(fixture.root.join(".git/config")).unwrap_or_default();
            assert!(!config.contains("alias"), "{}: {attack}: {ran:?}", variant.name);
            assert!(
                !exists(fixture.root.join(".git/hooks/pre-commit")),
                "{}: {attack}: {ran:?}",
                variant.name
            );
        }
    }
}

/// What must go on working: each script succeeds, and nothing is undone.
const ORDINARY: &[&str] = &[
    "cd module && echo y > f && git add f && git commit -qm two && git -C .. status --porcelain",
    "cd tree && echo y > f && git add f && git commit -qm two",
    "cd nested && echo y > f && git add f && git commit -qm two && git log --oneline",
    "rm -rf nested",
    "mv nested moved && git -C moved log --oneline",
    "cp -r nested copy && git -C copy log --oneline",
    "rm -rf sub",
    "mv sub elsewhere",
    "cp -r sub copied",
    "echo y > sub/file; mkdir sub/new",
    "git init -q fresh && cd fresh && git config user.name A && echo x > f && git add f && git commit -qm one",
    "git clone -q nested cloned && git -C cloned log --oneline",
    "git worktree add -q another && cd another && echo y > f && git add f && git commit -qm two",
    "mkdir -p .claude/notes && echo x > .claude/notes/a.md",
];

#[test]
fn ordinary_work_with_nested_repositories_goes_on() {
    if !has("git") {
        return;
    }
    for variant in most_and_least() {
        for script in ORDINARY {
            let fixture = Fixture::new();
            assert!(fixture.outside(PREPARE).output().unwrap().status.success());
            let ran = fixture.run(&variant, &format!("set -e; {script}"));
            assert!(ran.ok && ran.tampered.is_empty(), "{}: {script}: {ran:?}", variant.name);
        }
    }
}

#[test]
fn a_repository_that_was_moved_and_changed_is_put_back_where_it_is_now() {
    if !has("git") {
        return;
    }
    for variant in variants() {
        let fixture = Fixture::new();
        assert!(fixture.outside(PREPARE).output().unwrap().status.success());
        let before = std::fs::read(fixture.root.join("nested/.git/config")).unwrap();
        let ran = fixture.run(&variant, "mv nested moved; git -C moved config core.fsmonitor x; mv sub other; echo evil > other/.mcp.json");
        assert_eq!(
            std::fs::read(fixture.root.join("moved/.git/config")).unwrap(),
            before,
            "{}: {ran:?}",
            variant.name
        );
        assert_eq!(
            std::fs::read_to_string(fixture.root.join("other/.mcp.json")).unwrap(),
            "{}\n",
            "{}",
            variant.name
        );
        assert_eq!(ran.tampered.len(), 2, "{}: {ran:?}", variant.name);
    }
}

#[test]
fn commits_work_from_a_directory_of_a_repository_whose_settings_stay_protected() {
    if !has("git") {
        return;
    }
    for variant in variants() {
        let mut fixture = Fixture::new();
        let prepare = "set -e; git init -q $HOME/project; mkdir -p $HOME/project/part/deep; cd $HOME/project; git commit -q --allow-empty -m zero; printf '.mcp.json\\n.qwen\\n.claude\\n' >> .git/info/exclude";
        assert!(fixture.outside(prepare).status().unwrap().success());
        let project = fixture.home.join("project");
        fixture.root = project.join("part/deep");
        fixture.policy.roots = vec![fixture.root.clone()];
        let script = "set -e; echo x > file; git add -A; git commit -qm one; git status --porcelain; git log --format=%s";
        let ran = fixture.run(&variant, script);
        assert!(ran.ok && ran.out == "one\nzero\n", "{}: {ran:?}", variant.name);
        let before = std::fs::read(project.join(".git/config")).unwrap();
        let attack = "cd $HOME/project; echo x > outside; echo x >> .git/config; echo x > .git/hooks/pre-commit; echo x > .git/commondir
            mv .git .moved; git config core.fsmonitor x";
        let ran = fixture.run(&variant, attack);
        assert_eq!(std::fs::read(project.join(".git/config")).unwrap(), before, "{}: {ran:?}", variant.name);
        for name in ["outside", ".git/hooks/pre-commit", ".git/commondir", ".moved"] {
            assert!(!exists(project.join(name)), "{}: {name}: {ran:?}", variant.name);
        }
    }
}

#[test]
fn calls_of_a_process_that_stays_are_watched() {
    for variant in variants() {
        let fixture = Fixture::new();
        let settings = fixture.write("sub/.qwen/settings.json", "{}");
        let sandbox = fixture.sandbox(&variant);
        let lease = sandbox.enter(crate::ProcessRole::Server).unwrap();
        let watched = lease.watcher().begin();
        std::fs::write(&settings, "evil").unwrap();
        let tampered = watched.end();
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), "{}", "{}", variant.name);
        assert!(tampered.len() == 1 && tampered[0].undone, "{}: {tampered:?}", variant.name);
    }
}
