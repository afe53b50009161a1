//! What a rule does cover, so that refusing everything is no answer.

use qwen_events::Verdict;
use qwen_permissions::Mode;

use super::desk;
use crate::Desk;

#[test]
fn a_command_that_a_rule_allows_runs() {
    desk().all(
        Verdict::Allow,
        &[
            "echo",
            "echo a",
            "echo 'a; touch X'",
            "echo \"a && b | c > d\"",
            "echo a\\;b",
            "echo $HOME",
            "echo \"$HOME\" ${x:-y} ${#x} ${x%.rs}",
            "echo $(echo a)",
            "echo \"`cat file`\"",
            "echo a 2>&1",
            "echo a >&2",
            "echo a > /dev/null",
            "echo a 2>/dev/null | cat",
            "echo a &> /dev/null",
            "echo *",
            "echo {a,b}",
            "echo $((1 + 2))",
            "echo 'x' \"y\" z # comment",
            "cat /etc/hosts",
            "cat $x",
            "cat -- -n",
            "cat <<'EOF'\n$(touch X)\nEOF",
            "cat < file",
            "git log",
            "git log --oneline -5",
            "git log @{u}..",
            "git log --grep='$(touch X)' -- 'a;touch X'",
            "echo \"a\\\"; touch X; echo \\\"b\"",
            "git log -p --stat HEAD~3..HEAD -- src",
            "git log --format='%h %s' --since=yesterday",
            "git --no-pager log -n 3",
            "git show HEAD:src/main.rs",
            "git branch -d old",
            "git fetch --prune origin",
            "git commit -m 'a message'",
            "git commit -m \"$(cat <<'EOF'\na message\nEOF\n)\"",
            "git rebase main",
            "find / -name a -type f",
            "find src -name '*.rs' | head -5",
            "rg -n a /etc",
            "rg a src/*.rs",
            "sort -rn -k 2 file | uniq -c",
            "sed -n 1,5p /etc/hosts",
            "awk '{print $1}' file",
            "tar -xzf a.tgz -C out",
            "curl -sSL https://example.com",
            "curl -X POST -d a=b https://example.com",
            "rsync -av a b",
            "ssh -p 22 host uptime",
            "tool a --flag=b -x c",
            "tool -o json a",
            "tool a -o",
            "tool *.rs",
            "timeout 5 echo a",
            "time git log",
            "env LANG=C git log",
            "LC_ALL=C sort file",
            "NO_COLOR=1 rg a",
            "bash -c 'echo a && cat file'",
            "for f in a b; do cat \"$f\"; done",
            "if [ -f file ]; then cat file; else echo none; fi",
            "x=$(git log); echo \"$x\"",
            "cd src && cat main.rs && git log",
            "echo a & ",
            "[ -f \"$x\" ] && echo a",
            "[ \"$x\" = \"$y\" ] && echo a",
            "for f in *.rs; do [ -e \"$f\" ] || continue; cat \"$f\"; done",
            "echo file | xargs cat",
            "while read -r line; do echo \"$line\"; done < file",
            "[[ -f file && $x == a ]] && echo a",
        ],
    );
}

#[test]
fn a_rule_that_names_what_runs_or_writes_covers_it() {
    let desk = Desk::new(Mode::Default).allow(&[
        "Bash(find . -delete)",
        "Bash(find . -exec grep *)",
        "Bash(git -c color.ui=never log *)",
        "Bash(sort -o sorted *)",
        "Bash(FOO=1 tool *)",
        "Bash(./run.sh *)",
        "Bash(python *)",
        "Bash(xargs wc *)",
        "Bash(npm run build)",
        "Bash(npm run test:*)",
        "Bash(sudo systemctl status *)",
        "Bash(make && make install)",
        "Bash(sed -i s/a/b/ *)",
    ]);
    desk.all(
        Verdict::Allow,
        &[
            "find . -delete",
            "find . -exec grep a {} \\;",
            "git -c color.ui=never log -3",
            "sort -o sorted file",
            "FOO=1 tool a",
            "./run.sh a",
            "python -c 'print(1)'",
            "python script.py --output=x",
            "find src -name x | xargs wc -l",
            "npm run build",
            "npm run test",
            "npm run test --watch",
            "sudo systemctl status x",
            "make && make install",
        ],
    );
    desk.all(
        Verdict::Ask,
        &[
            "find / -delete",
            "find . -exec rm {} \\;",
            "find . -exec grep a {} \\; -delete",
            "git -c core.pager=x log",
            "git -c color.ui=never -c core.pager=x log",
            "sort -o other file",
            "FOO=2 tool a",
            "BAR=1 FOO=1 tool a",
            "FOO=1 BAR=1 tool a",
            "run.sh a",
            "./sub/run.sh a",
            "xargs rm",
            "npm run build:evil",
            "npm run build --x",
            "npm run tester",
            "npm run",
            "sudo systemctl stop x",
            "make && make uninstall",
            "make install",
        ],
    );
}

#[test]
fn what_the_workspace_puts_in_front_of_a_program_is_not_that_program() {
    let mut desk = desk();
    let bin = desk.root().join("bin");
    let system = desk.directory.path().join("system");
    for directory in [&bin, &system] {
        std::fs::create_dir(directory).unwrap();
        std::fs::write(directory.join("cat"), "").unwrap();
    }
    std::fs::write(bin.join("tool"), "").unwrap();
    desk.policy.set_search_path([bin.clone(), system.clone()]);
    desk.all(Verdict::Ask, &["cat file", "timeout 5 cat file"]);
    desk.all(Verdict::Allow, &["tool a", "echo a"]);
    desk.policy.set_search_path([system, bin]);
    desk.all(Verdict::Allow, &["cat file"]);
    desk.policy.set_search_path(["".into(), ".".into()]);
    std::fs::write(desk.root().join("ls"), "").unwrap();
    desk.all(Verdict::Ask, &["ls"]);
}
