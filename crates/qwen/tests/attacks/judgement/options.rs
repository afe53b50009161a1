//! Programs are judged by their real option grammars: what a program reads in its own way (a first word
//! without a dash, words behind one dash, shortened names, assignments that run something) is not taken for
//! harmless.

use serde_json::json;

use crate::harness::{Scene, each, write, write_program};

/// The rules in force, a command that would write or run, and one like it that only does what it may.
struct Row(&'static [&'static str], &'static str, &'static str);

const NOTHING: &[&str] = &[];
const TAR: &[&str] = &["Bash(tar *)"];
const MAKE: &[&str] = &["Bash(make *)"];
const SHUF: &[&str] = &["Bash(shuf *)"];
const FLOCK: &[&str] = &["Bash(flock *)"];
const TOOL: &[&str] = &["Bash(sort-files *)"];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row(NOTHING, "xxd -ps file X", "xxd -ps file"),
    Row(NOTHING, "xxd -p twin file", "xxd -p twin"),
    Row(NOTHING, "xxd -seek 0 file X", "xxd -s 0 file"),
    Row(NOTHING, "xxd - -X < file", "xxd - < file"),
    Row(NOTHING, "xxd -r -ps file X", "xxd -c 8 file"),
    Row(NOTHING, "sort --outp=X file", "sort --rev file"),
    Row(NOTHING, "sort --o X file", "sort --uniq file"),
    Row(NOTHING, "sort -ruoX file", "sort -ru file"),
    Row(NOTHING, "sort file -o X", "sort file -k 1"),
    Row(NOTHING, "sort -S 1b --compress-prog=./evil big", "sort -S 1M big"),
    Row(NOTHING, "uniq file X", "uniq -c file"),
    Row(NOTHING, "uniq -f 0 file X", "uniq -f 0 file"),
    Row(NOTHING, "uniq -- file X", "uniq -- file"),
    Row(NOTHING, "sed -n 'w X' file", "sed -n p file"),
    Row(NOTHING, "sed -n -- '/a/w X' file", "sed -n -- '/a/p' file"),
    Row(NOTHING, "sed --in-pl s/alpha/x/ file", "sed --quiet s/alpha/x/p file"),
    Row(NOTHING, "sed -ns '1w X' file", "sed -ns 1p file"),
    Row(NOTHING, "find . -fprint X", "find . -name file"),
    Row(NOTHING, "find . -name file -fls X", "find . -name file -ls"),
    Row(NOTHING, "find . -maxdepth 1 -name big -delete", "find . -maxdepth 1 -name big"),
    Row(NOTHING, "file -C -m magic", "file -b magic"),
    Row(NOTHING, "file -m magic --comp", "file --brief magic"),
    Row(NOTHING, "git diff --output=X", "git diff --stat"),
    Row(NOTHING, "git show --output=X", "git log --oneline"),
    Row(NOTHING, "git grep -O./evil alpha", "git grep -n alpha"),
    Row(NOTHING, "git grep --open=./evil alpha", "git grep --line-number alpha"),
    Row(NOTHING, "git -p -c core.pager=./evil log", "git --no-pager log"),
    Row(NOTHING, "git branch X", "git branch --list X"),
    Row(NOTHING, "env -S 'touch X'", "env echo a"),
    Row(NOTHING, "env --split-string='touch X'", "env LANG=C echo a"),
    Row(NOTHING, "echo X | xargs touch", "echo file | cat"),
    Row(NOTHING, "awk 'BEGIN { print > \"X\" }'", "cut -c1 file"),
    Row(NOTHING, "diff -l file twin > /dev/null; touch X", "diff file file"),
    Row(TAR, "tar cIf ./evil X.tar file", "tar cf made.tar file"),
    Row(TAR, "tar cfI X.tar ./evil file", "tar -cf made.tar file"),
    Row(TAR, "tar xfI a.tar ./evil", "tar tf a.tar"),
    Row(TAR, "tar xf a.tar --to-com=./evil", "tar xOf a.tar"),
    Row(TAR, "tar cf X.tar file --use-comp=./evil", "tar czf made.tgz file"),
    Row(TAR, "tar cf X.tar file --checkpoint=1 --checkpoint-act=exec=./evil", "tar cf made.tar --exclude=twin file"),
    Row(TAR, "tar tf a.tar --index-file=X -v", "tar tvf a.tar"),
    Row(MAKE, "make -E 'A:=$(shell touch X)' all", "make all"),
    Row(MAKE, "make --eval='$(shell touch X)' all", "make -s all"),
    Row(MAKE, "make --ev '$(shell touch X)' all", "make -j 2 all"),
    Row(MAKE, "make 'A:=$(shell touch X)' all", "make A=b all"),
    Row(MAKE, "make 'A!=touch X' all", "make A:=b CFLAGS='-O2 -g' all"),
    Row(MAKE, "make SHELL=./evil all", "make CC=gcc all"),
    Row(MAKE, "make -f sub/other.mk", "make -C . all"),
    Row(MAKE, "make --makef=sub/other.mk", "make --silent all"),
    Row(MAKE, "make -ksf sub/other.mk", "make -ks all"),
    Row(&["Bash(split *)"], "split --filter='touch X' file", "split -n 2 file"),
    Row(&["Bash(split *)"], "split --filt='touch X' file", "split -b 4 file part-"),
    Row(SHUF, "shuf -oX file", "shuf -n 1 file"),
    Row(SHUF, "shuf -eo X a", "shuf -e a o"),
    Row(&["Bash(iconv *)"], "iconv -c -oX file", "iconv -c -t utf-8 file"),
    Row(&["Bash(cc *)"], "cc -wrapper ./evil -x c -c file", "cc --version"),
    Row(NOTHING, "awk '{ print > \"X\" }' file", "awk '$1 > 0 { print }' file"),
    Row(NOTHING, "awk '{ print | \"touch X\" }' file", "awk '/alpha|beta/' file"),
    Row(FLOCK, "flock file touch X", "flock file cat twin"),
    Row(FLOCK, "flock file -c 'touch X'", "flock -n file ls"),
    Row(TOOL, "sort-files -oX", "sort-files -ojson"),
    Row(TOOL, "sort-files --outp X", "sort-files --reverse"),
    Row(TOOL, "sort-files --exec=touch", "sort-files a b"),
];

fn scene(rules: &[&str], flags: &[&str]) -> Scene {
    let scene = Scene::in_repository().args(["--sandbox=false"]).args(flags.iter().copied());
    let scene = rules.iter().fold(scene, |scene, rule| scene.args(["--allowed-tools", *rule]));
    // Enough lines that sorting them in little memory needs temporary files.
    write(scene.here().join("big"), "alpha beta gamma delta\n".repeat(2000));
    write(scene.here().join("magic"), "0 string alpha alpha\n");
    write(scene.here().join("Makefile"), "all:\n\t@echo made: $(A)\n");
    write(scene.here().join("sub/other.mk"), "all:\n\ttouch X\n");
    let tool = scene.out("bin/sort-files");
    write_program(&tool, "#!/bin/sh\ncase \"$1\" in --o*|--e*|-oX) : > X;; esac\n");
    let packed =
        std::process::Command::new("tar").args(["-cf", "a.tar", "twin"]).current_dir(scene.here()).status();
    assert!(packed.unwrap().success());
    let path = format!("{}:{}", scene.out("bin").display(), std::env::var("PATH").unwrap());
    scene.env("PATH", path)
}

fn shell(command: &str) -> (&'static str, serde_json::Value) {
    ("run_shell_command", json!({ "command": command }))
}

#[test]
fn an_option_that_writes_or_runs_asks_in_every_spelling_and_its_harmless_twin_runs() {
    each(ROWS, |Row(rules, command, twin)| {
        for mode in ["default", "plan"] {
            let scene = scene(rules, &["--approval-mode", mode]);
            let before = scene.tree();
            let played = scene.play(&[shell(command)]);
            let after = scene.tree();
            let changed = after.changed_since(&before);
            if !changed.is_empty() || !played.lists("c1") {
                return Err(format!("{mode}: {command}: {changed:?} {}", played.result("c1")));
            }
            let played = self::scene(rules, &["--approval-mode", mode]).play(&[shell(twin)]);
            // What only a rule allows does not run while planning.
            if played.lists("c1") != (mode == "plan" && !rules.is_empty()) {
                return Err(format!("{mode}: the twin {twin}: {}", played.result("c1")));
            }
        }
        Ok(())
    });
}

#[test]
fn every_such_option_would_have_had_an_effect() {
    // These run a pager, which there is none for here, or a program in the middle of something else.
    let quiet = ["git -p -c core.pager=./evil log", "git grep"];
    let rows: Vec<&Row> =
        ROWS.iter().filter(|row| !quiet.iter().any(|quiet| row.1.starts_with(quiet))).collect();
    each(&rows, |Row(_, command, _)| {
        let scene = scene(&[], &["--yolo"]);
        let before = scene.tree();
        let played = scene.play(&[shell(command)]);
        let after = scene.tree();
        if after.changed_since(&before).is_empty() {
            return Err(format!("{command} does nothing: {}", played.result("c1")));
        }
        Ok(())
    });
}
