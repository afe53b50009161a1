//! Deny rules match what a command does: aliases, reordered and long options, wrappers and other spellings.
//! What is beside the rule runs.

use std::process::Command;

use serde_json::json;

use crate::harness::{Scene, each, write};

/// Rules, a command that does what they deny, and one beside it that they do not deny.
struct Row(&'static [&'static str], &'static str, &'static str);

const PUSH: &[&str] = &["Bash(git push *)"];
const FORCE: &[&str] = &["Bash(git push --force *)"];
const FORCE_LETTER: &[&str] = &["Bash(git push -f *)"];
const REMOVE: &[&str] = &["Bash(rm -rf *)"];
const REMOVE_ANY: &[&str] = &["Bash(rm *)"];
const REMOVE_LONG: &[&str] = &["Bash(rm --recursive --force *)"];
const BRANCH: &[&str] = &["Bash(git branch -D *)"];
const IN_PLACE: &[&str] = &["Bash(sed -i *)"];
const OUTPUT: &[&str] = &["Bash(sort --output *)"];
const COPY: &[&str] = &["Bash(cp -r *)"];
const EXTRACT: &[&str] = &["Bash(tar -x *)"];
const MODE: &[&str] = &["Bash(chmod 777 *)"];
const RESET: &[&str] = &["Bash(git reset --hard *)"];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row(PUSH, "git -c alias.p=push p there HEAD:refs/heads/x", "git -c alias.p=log p"),
    Row(PUSH, "git -c alias.p='!git push' p there HEAD:refs/heads/x", "git -c alias.p='!git log' p"),
    Row(PUSH, "git -c alias.p='push there' p HEAD:refs/heads/x", "git -c alias.p='log -1' p"),
    Row(PUSH, "git -c alias.a=b -c alias.b=push a there HEAD:refs/heads/x", "git -c alias.a=b -c alias.b=log a"),
    Row(PUSH, "git -c ALIAS.P=push p there HEAD:refs/heads/x", "git -c ALIAS.P=status p"),
    Row(PUSH, "git ship there HEAD:refs/heads/x", "git look"),
    Row(PUSH, "git shout there HEAD:refs/heads/x", "git look -1"),
    Row(PUSH, "P=push git --config-env=alias.p=P p there HEAD:refs/heads/x", "git log"),
    Row(PUSH, "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p there HEAD:refs/heads/x", "git log"),
    Row(PUSH, "git -C sub push there HEAD:refs/heads/x", "git -C sub log"),
    Row(PUSH, "git --no-pager push there HEAD:refs/heads/x", "git --no-pager log -- push"),
    Row(PUSH, "git -c user.name=a push there HEAD:refs/heads/x", "git -c user.name=a log"),
    Row(PUSH, "git --git-dir .git push there HEAD:refs/heads/x", "git log"),
    Row(PUSH, "cd sub && git ship there HEAD:refs/heads/x", "cd sub && git look"),
    Row(PUSH, "$(git --exec-path)/git-push there HEAD:refs/heads/x", "git log push.txt 2>&1 || true"),
    Row(PUSH, "git send-pack . HEAD:refs/heads/x", "git stash push"),
    Row(PUSH, "git -c alias.p=send-pack p . HEAD:refs/heads/x", "git fetch there"),
    Row(PUSH, "git for-each-repo --config=list.of push there HEAD:refs/heads/x", "git for-each-repo --config=list.of status"),
    Row(FORCE, "git push -f there HEAD:refs/heads/x", "git push there HEAD:refs/heads/fine"),
    Row(FORCE, "git push there HEAD:refs/heads/x --force", "git push there HEAD:refs/heads/fine"),
    Row(FORCE, "git push there +HEAD:refs/heads/x", "git push there HEAD:refs/heads/fine"),
    Row(FORCE, "git push -uf there HEAD:refs/heads/x", "git push -u there HEAD:refs/heads/fine"),
    Row(FORCE_LETTER, "git push --force there HEAD:refs/heads/x", "git push --quiet there HEAD:refs/heads/fine"),
    Row(REMOVE, "rm -fr sub", "rm -f twin"),
    Row(REMOVE, "rm -r -f sub", "rm twin"),
    Row(REMOVE, "rm -f -R sub", "rm -v twin"),
    Row(REMOVE, "rm sub -r --force", "rm --force twin"),
    Row(REMOVE, "rm --recursive --force sub", "rm --verbose twin"),
    Row(REMOVE, "rm --rec --fo sub", "rm -- twin"),
    Row(REMOVE, "rm -Rfv sub", "rm -i twin < /dev/null"),
    Row(REMOVE, "/bin/rm -rf sub", "/bin/rm -f twin"),
    Row(REMOVE, "\\rm -rf sub", "echo rm -rf sub"),
    Row(REMOVE, "r\\m -'r'f sub", "ls -rf sub"),
    Row(REMOVE, "$'rm' -rf sub", "rm -f twin"),
    Row(REMOVE, "x=rm; $x -rf sub", "x=twin; cat $x"),
    Row(REMOVE, "x=-rf; rm $x sub", "x=twin; cat $x"),
    Row(REMOVE, "env A=b rm -fr sub", "env A=b rm -f twin"),
    Row(REMOVE, "command rm -fr sub", "command rm -f twin"),
    Row(REMOVE, "nice -n 1 timeout 9 rm -fr sub", "nice -n 1 timeout 9 rm -f twin"),
    Row(REMOVE, "echo sub | xargs rm -fr", "echo twin | xargs cat"),
    Row(REMOVE, "echo -fr sub | xargs rm", "echo file | xargs cat"),
    Row(REMOVE, "sh -c 'rm -fr sub'", "sh -c 'rm -f twin'"),
    Row(REMOVE, "find . -name sub -exec rm -fr {} +", "find . -name sub -exec ls {} +"),
    Row(REMOVE, "git -c alias.x='!rm -fr sub' x", "git -c alias.x='!ls sub' x"),
    Row(REMOVE, "find sub -delete", "find sub -name deep -delete"),
    Row(REMOVE_ANY, "unlink file", "npm ls rm"),
    Row(REMOVE_ANY, "/usr/bin/unlink file", "docker rm x"),
    Row(REMOVE_ANY, "find . -name file -delete", "find . -name '*.rm'"),
    Row(REMOVE_ANY, "shred -u file", "shred -n 1 file"),
    Row(REMOVE_ANY, "shred --remove=unlink file", "cat file"),
    Row(REMOVE_LONG, "rm -rf sub", "rm -f twin"),
    Row(REMOVE_LONG, "rm -R --force sub", "rm twin"),
    Row(BRANCH, "git branch -d -f old", "git branch new"),
    Row(BRANCH, "git branch --delete --force old", "git branch --list"),
    Row(BRANCH, "git branch -df old", "git branch -m old older"),
    Row(IN_PLACE, "sed --in-place s/a/b/ file", "sed s/a/b/ file"),
    Row(IN_PLACE, "sed -n -i.bak p file", "sed -n p file"),
    Row(IN_PLACE, "sed --in-pl=.bak s/a/b/ file", "sed --expression=p file"),
    Row(OUTPUT, "sort -ofile twin", "sort -r file"),
    Row(OUTPUT, "sort file -uo twin", "sort -u file"),
    Row(COPY, "cp -R sub copy", "cp file copy"),
    Row(COPY, "cp -a sub copy", "cp -p file copy"),
    Row(COPY, "cp --archive sub copy", "cp --force file copy"),
    Row(EXTRACT, "tar xf a.tar", "tar tf a.tar"),
    Row(EXTRACT, "tar --get --file=a.tar", "tar --list --file=a.tar"),
    Row(MODE, "chmod 0777 file", "chmod 644 file"),
    Row(MODE, "chmod a=rwx file", "chmod u+x file"),
    Row(MODE, "chmod -v ugo+rwx file", "chmod -v go-w file"),
    Row(REMOVE, "printf 'rm -rf sub' > z.sh; sh z.sh", "printf 'ls sub' > z.sh; sh z.sh"),
    Row(REMOVE, "cat > z.sh <<'E'\nrm -rf sub\nE\nsh ./z.sh", "echo rm -rf sub > note; cat note"),
    Row(RESET, "git reset --har", "git reset --soft"),
    Row(RESET, "git -c alias.r='reset --hard' r", "git -c alias.r=reset r -q"),
];

fn scene(rules: &[&str]) -> Scene {
    let mut scene = Scene::in_repository().args(["--yolo", "--sandbox=false"]);
    for rule in rules {
        scene = scene.args(["--exclude-tools", *rule]);
    }
    scene.git(&["init", "-q", "--bare", &scene.out("there").display().to_string()]);
    scene.git(&["remote", "add", "there", &scene.out("there").display().to_string()]);
    scene.git(&["push", "-q", "there", "HEAD:refs/heads/old"]);
    scene.git(&["branch", "old"]);
    let pack = ["-cf", "a.tar", "--transform=s/twin/unpacked/", "twin"];
    assert!(Command::new("tar").args(pack).current_dir(scene.here()).status().unwrap().success());
    // Aliases of the repository and of the user.
    scene.git(&["config", "alias.ship", "push"]);
    scene.git(&["config", "alias.look", "log"]);
    scene.git(&["config", "list.of", &scene.here().display().to_string()]);
    write(
        scene.program.home_path().join(".gitconfig"),
        "[alias]\n\tshout = !git push\n[user]\n\tname = a\n\temail = a@b\n",
    );
    scene
}

#[test]
fn a_deny_rule_matches_the_action_in_every_spelling_and_nothing_beside_it() {
    each(ROWS, |Row(rules, command, twin)| {
        let scene = scene(rules);
        let before = scene.tree();
        let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
        let after = scene.tree();
        let changed = after.changed_since(&before);
        if !changed.is_empty() || !played.lists("c1") {
            return Err(format!("{rules:?}: {command}: {changed:?} {}", played.result("c1")));
        }
        let scene = self::scene(rules);
        let played = scene.play(&[("run_shell_command", json!({ "command": twin }))]);
        if played.lists("c1") {
            return Err(format!("{rules:?}: the twin {twin}: {}", played.result("c1")));
        }
        Ok(())
    });
}

#[test]
fn every_denied_action_would_have_had_an_effect() {
    each(ROWS, |Row(_, command, _)| {
        let scene = scene(&[]);
        let before = scene.tree();
        let mut shell = Command::new("bash");
        shell.args(["-c", command]).current_dir(scene.here()).env("HOME", scene.program.home_path());
        let output = shell.output().unwrap();
        let after = scene.tree();
        if after.changed_since(&before).is_empty() {
            return Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(())
    });
}

#[test]
fn an_ask_rule_matches_the_action_too() {
    for (rule, command, twin) in [
        ("Bash(git push *)", "git ship there HEAD:refs/heads/x", "git look"),
        ("Bash(rm -rf *)", "rm --force --recursive sub", "rm -f twin"),
    ] {
        let scene = scene(&[]).user_settings(&json!({ "permissions": { "ask": [rule] } }));
        let before = scene.tree();
        let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
        let after = scene.tree();
        assert!(played.lists("c1") && after.changed_since(&before).is_empty(), "{command}");
        let scene = self::scene(&[]).user_settings(&json!({ "permissions": { "ask": [rule] } }));
        let played = scene.play(&[("run_shell_command", json!({ "command": twin }))]);
        assert!(!played.lists("c1"), "{twin}: {}", played.result("c1"));
    }
}
