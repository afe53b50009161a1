//! Commands that record, move or remove files, in repositories with denied files.

use crate::denied::{SECRET, denying, git_output, run};
use crate::harness::{each, has_sandbox, write};

const DENIED: &[&str] = &["private", "secret.txt", "conf/.env"];
const RULES: &[&str] = &["Read(/private/**)", "Read(secret.txt)", "Read(**/.env)"];

/// A command, and whether it succeeds with the denied files out of reach.
struct Row(&'static str, bool);

#[test]
fn no_command_records_a_denied_path_as_changed() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows = [
        Row("git add -A && git commit -qm two", true),
        Row("git add -u && git commit -qm two", true),
        Row("git commit -qam two", true),
        Row("git add . && git commit -qm two", true),
        Row("git stash && git stash pop && git commit -qam two", true),
        Row("git stash -q && git reset -q --hard && git checkout -q -b other && git stash pop", true),
        Row("git reset -q --hard && echo more >> public && git commit -qam two", true),
        Row("git checkout -q -- public && echo more >> public && git commit -qam two", true),
        Row("git checkout -q . && git status", true),
        Row("git clean -qfdx && git commit -qam two", true),
        Row("git rm -q --cached secret.txt; git commit -qm two", false),
        Row("git rm -qr --cached . && git commit -qm two", false),
        Row("git rm -qr private; git commit -qm two", false),
        Row("git mv secret.txt other.txt; git commit -qam two", false),
        Row("git update-index --force-remove secret.txt && git commit -qm two", false),
        Row("git read-tree --empty && git add -A; git commit -qm two", false),
        Row("rm -rf private secret.txt conf; git add -A; git commit -qm two", false),
        Row("mv private elsewhere; mv conf conf2; git add -A; git commit -qm two", false),
        Row("rm .git/index; git add -A; git commit -qm two", false),
        Row("env -i PATH=\"$PATH\" HOME=\"$HOME\" git commit -qam two", false),
    ];
    each(&rows, |Row(command, succeeds)| {
        let scene = denying(RULES);
        let here = scene.here();
        write(here.join("public"), "two\n");
        let listing = |tree: &str| git_output(here, &[&["ls-tree", "-r", tree, "--"], DENIED].concat());
        let staged = || git_output(here, &[&["ls-files", "-s", "--"], DENIED].concat());
        let before = (listing("HEAD"), staged());
        let played = run(&scene, command);
        let said = played.result("c1");
        if (listing("HEAD"), staged()) != before {
            return Err(format!("{command}: recorded a change: {} {}: {said}", listing("HEAD"), staged()));
        }
        for name in ["private/key", "secret.txt", "conf/.env"] {
            let content = std::fs::read_to_string(here.join(name)).unwrap_or_default();
            if content != format!("{SECRET} {name}\n") {
                return Err(format!("{command}: {name} is now {content:?}: {said}"));
            }
        }
        if played.leaks(SECRET) {
            return Err(format!("{command}: showed it: {said}"));
        }
        if *succeeds && (played.lists("c1") || said.contains("Exit code")) {
            return Err(format!("{command}: failed: {said}"));
        }
        Ok(())
    });
}
