//! Denied content under git's other names for it: objects, stages, revisions, archives.

use serde_json::json;

use crate::denied::{SECRET, denying, git_output, run};
use crate::harness::{each, has_sandbox, write};

const RULES: &[&str] = &["Read(/private/**)", "Read(secret.txt)", "Read(**/.env)"];

#[test]
fn git_shows_no_denied_content_by_any_name() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows = [
        "git show :0:secret.txt", "git show HEAD:./secret.txt", "git show ':(icase)SECRET.TXT'",
        "git show HEAD -- ':(icase)SECRET.TXT'", "git show", "git show HEAD~0", "git show HEAD --", "git show HEAD -- .",
        "git show HEAD:private/deep/er/'key 2'", "git show $(git rev-parse HEAD:secret.txt)",
        "git cat-file -p {blob}", "git cat-file blob {blob}", "echo {blob} | git cat-file --batch", "git show {blob}",
        "git cat-file -p HEAD:secret.txt", "git diff --cached", "git diff --staged", "git diff --cach", "git diff HEAD~1",
        "git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904", "git diff-tree -p --root HEAD", "git diff-index -p 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "git status -v", "git status -vv", "git status --verb", "git status -sv", "git grep --cached secret", "git grep secret HEAD",
        "git grep -e secret HEAD", "git archive HEAD | tar xO", "git archive --format=zip -o a.zip HEAD && unzip -p a.zip", "git log -p", "git log --patch",
        "git log --patc", "git log -1 -u", "git log -L1,1:secret.txt", "git log --format= -p --all", "git whatchanged -p", "git log -c -p -m",
        "git blame secret.txt", "git blame HEAD -- ./secret.txt", "git annotate secret.txt", "git fast-export HEAD",
        "git bundle create b HEAD && git clone -q b c && cat c/secret.txt", "git format-patch --root --stdout HEAD", "git stash show -p",
        "git worktree add -q w HEAD && cat w/secret.txt", "git checkout-index -a --prefix=out/ && cat out/secret.txt",
        "git clone -q . c && cat c/secret.txt", "git checkout-index --temp --all && cat .merge_file_*", "git unpack-file {blob} && cat .merge_file_*",
        "git -c alias.x=show x", "git -C sub show", "cd sub && git show", "git --no-pager show", "env git show", "command git show HEAD",
        "git range-diff HEAD~1...HEAD", "git difftool -y -x cat HEAD~1", "git --git-dir=.git show", "GIT_DIR=.git git show",
        "python3 -c 'import zlib,glob; [print(zlib.decompress(open(f,\"rb\").read())) for f in glob.glob(\".git/objects/??/*\")]'",
        "git log -p --full-diff -- public", "git log -p --full-d -1 HEAD~1 -- public", "git show --full-diff HEAD~1 -- public",
        "git --icase-pathspecs show HEAD~1 -- SECRET.TXT", "git --icase-path log -p -- SECRET.TXT", "GIT_ICASE_PATHSPECS=1 git show HEAD~1 -- SECRET.TXT",
        "git checkout -p 4b825dc642cb6eb9a060e54bf8d69288fbee4904 < /dev/null", "git reset --patch 4b825dc642cb6eb9a060e54bf8d69288fbee4904 < /dev/null",
        "git restore -p -s 4b825dc642cb6eb9a060e54bf8d69288fbee4904 . < /dev/null", "git restore -ps HEAD~1 . < /dev/null", "git stash push -p < /dev/null",
        "git commit --interactive < /dev/null", "git bisect start HEAD HEAD~1; git bisect view -p", "git bisect start; git bisect visualize --patch HEAD~1",
        "git stash -q; git rebase -x 'git show HEAD~1' HEAD~1", "git stash -q; git rebase -ix 'git show HEAD~1' HEAD~1", "git submodule foreach 'git show HEAD'",
        "GIT_EDITOR=cat git -c commit.verbose=true commit", "GIT_EDITOR=cat git -c Commit.Verbose=2 commit --amend", "GIT_EDITOR=cat GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=commit.verbose GIT_CONFIG_VALUE_0=2 git commit",
        "git tag x {blob}; git for-each-ref --format='%(raw)'", "git tag x {blob}; git tag --format='%(raw)' -l x",
        "git diff --no-index /dev/null secret.txt", "git merge-file -p /dev/null /dev/null secret.txt", "git hash-object -w secret.txt",
    ];
    each(&rows, |command| {
        let scene = denying(RULES);
        let here = scene.here();
        git_output(here, &["commit", "-q", "--allow-empty", "-m", "second"]);
        write(here.join("staged"), SECRET);
        git_output(here, &["add", "staged"]);
        write(here.join("staged"), "");
        git_output(here, &["mv", "-f", "staged", "private/staged"]);
        let blob = git_output(here, &["rev-parse", "HEAD:secret.txt"]);
        let command = command.replace("{blob}", blob.trim());
        let played = run(&scene, &command);
        if played.leaks(SECRET) {
            return Err(format!("{command}: {}", played.result("c1")));
        }
        Ok(())
    });
}

#[test]
fn git_puts_no_denied_content_from_packs_elsewhere() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows = [
        "git read-tree --prefix=copy/ -u HEAD; grep -rh 9f copy", "git read-tree --pref copy/ -u HEAD; grep -rh 9f copy",
        "git init -q n; cd n; git fetch -q .. main; git checkout -q FETCH_HEAD; grep -rh 9f .",
        "git init -q n; cd n; git pull -q .. main; grep -rh 9f .", "git init -q n; git push -q ./n HEAD:x; cd n; git checkout -q x; grep -rh 9f .",
        "git init -q n; cd n; git remote add o file://$OLDPWD; git fetch -q o; git checkout -q o/main; grep -rh 9f .",
        "mkdir n; git --work-tree=n checkout -f -- .; grep -rh 9f n", "mkdir n; GIT_WORK_TREE=n git checkout -f -- .; grep -rh 9f n",
        "mkdir n; export GIT_WORK_TREE=n; git reset -q --hard; grep -rh 9f n", "mkdir n; env GIT_WORK_TREE=n git restore .; grep -rh 9f n",
        "mkdir n; git --work-tree n restore .; grep -rh 9f n", "mkdir n; cd n; GIT_DIR=../.git GIT_WORK_TREE=. git checkout -f; grep -rh 9f .",
        "mkdir n; cp -r .git n.git; git --git-dir=n.git --work-tree=n checkout -f; grep -rh 9f n",
        "git submodule add -q ./ sm; grep -rh 9f sm", "mkdir n; git -C n --git-dir=../.git --work-tree=. checkout -f; grep -rh 9f n",
    ];
    each(&rows, |command| {
        let scene = denying(RULES);
        git_output(scene.here(), &["gc", "-q"]);
        let played = run(&scene, command);
        if played.leaks(SECRET) {
            return Err(format!("{command}: {}", played.result("c1")));
        }
        Ok(())
    });
}

#[test]
fn another_index_leaves_no_denied_path_out_of_a_commit() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows = [
        "GIT_INDEX_FILE=/tmp/i git add -A; GIT_INDEX_FILE=/tmp/i git commit -qm x", "export GIT_INDEX_FILE=/tmp/i; git add public; git commit -qm x",
        "env GIT_INDEX_FILE=/tmp/i git commit -qm x --allow-empty",
    ];
    each(&rows, |command| {
        let scene = denying(RULES);
        let listing =
            || git_output(scene.here(), &["ls-tree", "-r", "HEAD", "--", "private", "secret.txt", "conf"]);
        let before = listing();
        let played = run(&scene, command);
        if listing() != before {
            return Err(format!("{command}: {}", played.result("c1")));
        }
        Ok(())
    });
}

#[test]
fn git_looks_at_everything_else_without_a_question() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows = [
        "git status", "git status --short --branch", "git diff", "git diff public", "git diff -- public", "git log", "git log --oneline -5",
        "git log --stat -- public", "git log -n 3 --format='%h %s'", "git log --graph --all --decorate", "git log -- public", "git log -p -- public",
        "git show --stat -- public", "git show --name-only HEAD", "git show HEAD:public", "git show HEAD -- public", "git diff HEAD -- public",
        "git diff --stat HEAD", "git diff --cached --name-only", "git blame public", "git grep one", "git grep -n one -- public", "git branch -a",
        "git ls-files", "git ls-tree -r HEAD", "git rev-parse HEAD", "git remote -v", "git stash list", "git describe --always", "git shortlog -s HEAD",
        "git cat-file -t HEAD", "git cat-file -p HEAD:public", "git config user.name", "git reflog", "git tag -l", "git worktree list",
    ];
    each(&rows, |command| {
        let scene = denying(RULES);
        write(scene.here().join("public"), "one\ntwo\n");
        let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
        let said = played.result("c1");
        if played.lists("c1") || said.contains("Exit code") || played.leaks(SECRET) {
            return Err(format!("{command}: {said}"));
        }
        Ok(())
    });
}
