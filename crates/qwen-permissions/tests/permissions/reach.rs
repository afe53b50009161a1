//! What a command gets at without naming it, where a rule denies that and no kernel is there to keep it off.

use qwen_events::Verdict;
use qwen_permissions::{Kernel, Mode};

use crate::Desk;

const REACHES_READING: &[&str] = &[
    "grep -r x .",
    "grep -rn x",
    "grep -R x ./",
    "cd src && grep -r x ..",
    "rg x",
    "rg --hidden x .",
    "git grep x",
    "find . -type f -exec cat {} +",
    "find . -name 'k*' | xargs cat",
    "ls | xargs head",
    "cp -r . elsewhere",
    "cp -a . sub",
    "tar cf - .",
    "zip -r x.zip .",
    "rsync -a ./ elsewhere",
    "mv . elsewhere",
    "cat $(base64 -d <<< c2VjcmV0L2tleQ==)",
    "x=$(printf 'secre\\x74/key'); cat $x",
    "cat < $(echo c2VjcmV0 | base64 -d)/key",
    "read f < file; cat \"$f\"",
    "x=secretX; cat ${x%X}/key",
    "diff -r . src",
    "ln -s . here && cat here/file",
];

const DOES_NOT_REACH_READING: &[&str] = &[
    "grep -r x src",
    "grep x file",
    "cat file",
    "cp -r src elsewhere",
    "find src -type f -exec cat {} +",
    "find . -name '*.rs'",
    "ls",
    "ls -R src",
    "tar cf x.tar src",
    "for f in src/*; do cat \"$f\"; done",
    "x=file; cat $x",
    "cargo build",
    "echo $(date)",
    "git commit -m \"$(date)\"",
    "mkdir -p new/dir && touch new/dir/x",
    "kill $(pgrep x)",
];

const REACHES_WRITING: &[&str] = &[
    "rm -rf .",
    "rm -rf ./",
    "rm -rf ../workspace",
    "find . -delete",
    "find . -type f -exec rm {} +",
    "find . -name 'k*' | xargs rm",
    "chmod -R 777 .",
    "cp -r src/. .",
    "rsync -a src/ .",
    "tar xf a.tar",
    "tar -xf a.tar -C .",
    "unzip a.zip",
    "patch -p1 < a.diff",
    "git checkout -- .",
    "git checkout .",
    "git restore .",
    "git clean -fdx",
    "git reset --hard",
    "git stash",
    "git apply a.diff",
    "tee $(base64 -d <<< c2VjcmV0L2tleQ==) < file",
    "echo x > $(base64 -d <<< c2VjcmV0L2tleQ==)",
    "sed -i s/a/b/ $(find . -name 'k*')",
    "mv . elsewhere",
];

const DOES_NOT_REACH_WRITING: &[&str] = &[
    "rm -rf src",
    "rm file",
    "touch new",
    "echo x > new",
    "grep -r x .",
    "cat secret/key",
    "sed -i s/a/b/ src/main.rs",
    "git checkout -- src/main.rs",
    "git add file && git commit -m x",
    "find . -name '*.rs'",
    "chmod -R 755 src",
];

#[test]
fn a_line_that_may_get_at_what_is_denied_to_read_asks() {
    for mode in [Mode::Yolo, Mode::Default] {
        let desk = Desk::new(mode).allow(&["Bash"]).deny(&["Read(/secret/**)"]);
        desk.all(Verdict::Ask, REACHES_READING);
        desk.all(Verdict::Allow, DOES_NOT_REACH_READING);
    }
    for rule in ["Read(secret/key)", "Read(**/key)", "Read(key)", "Read(./secret/)"] {
        let desk = Desk::new(Mode::Yolo).deny(&[rule]);
        desk.all(Verdict::Ask, &["grep -r x .", "cp -r . x", "find . -type f | xargs cat"]);
        desk.all(Verdict::Allow, DOES_NOT_REACH_READING);
    }
}

#[test]
fn a_line_that_may_get_at_what_is_denied_to_edit_asks() {
    let desk = Desk::new(Mode::Yolo).deny(&["Edit(/secret/**)"]);
    desk.all(Verdict::Ask, REACHES_WRITING);
    desk.all(Verdict::Allow, DOES_NOT_REACH_WRITING);
}

#[test]
fn a_denied_file_named_for_a_change_is_denied() {
    let desk = Desk::new(Mode::Yolo).deny(&["Edit(/secret/**)"]);
    desk.all(
        Verdict::Deny,
        &[
            "echo x > secret/key",
            "echo x >> secret/new",
            "echo x >| ./secret/key",
            "echo x &> secret/key",
            "tee secret/key < file",
            "cp file secret/key",
            "cp file secret",
            "cp -t secret file",
            "mv file secret/",
            "mv secret elsewhere",
            "sed -i s/a/b/ secret/key",
            "sed -i s/a/b/ secret/*",
            "dd if=file of=secret/key",
            "rm secret/key",
            "rm -rf secret",
            "rmdir secret",
            "touch secret/key",
            "ln file secret/link",
            "ln -sf file secret/key",
            "install -m 644 file secret/key",
            "truncate -s 0 secret/key",
            "git checkout -- secret/key",
            "git restore secret",
            "git rm secret/key",
            "perl -pi -e s/a/b/ secret/key",
            "sort -o secret/key file",
            "curl -o secret/key http://localhost",
            "tar xf a.tar -C secret",
            "unzip a.zip -d secret",
            "chmod 777 secret/key",
            "mkdir secret/new",
            "rsync file secret/",
        ],
    );
    desk.all(
        Verdict::Ask,
        &["python3 -c \"open('secret/key', 'w')\"", "cd secret && touch key", "cat <> secret/key"],
    );
}

#[test]
fn no_question_is_asked_about_what_the_kernel_prevents() {
    let mut desk = Desk::new(Mode::Yolo).deny(&["Read(/secret/**)", "Edit(/src/main.rs)"]);
    desk.policy.set_kernel(|| Kernel { hides: true, holds: true });
    desk.all(
        Verdict::Allow,
        &["grep -r x .", "rg x", "find . -type f | xargs cat", "git stash", "chmod -R a+r ."],
    );
    desk.all(Verdict::Deny, &["cat secret/key", "echo x > src/main.rs"]);
    desk.policy.set_kernel(|| Kernel { hides: true, holds: false });
    desk.all(Verdict::Allow, &["grep -r x ."]);
    desk.all(Verdict::Ask, &["chmod -R a+r ."]);
}
