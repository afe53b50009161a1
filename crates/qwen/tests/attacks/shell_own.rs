//! Our own attacks by way of the shell, in the spirit of the suite.

use crate::shell_rows::{Attack, cat, echo};

const NOTHING: &[&str] = &[];
const TEST: &[&str] = &["Bash(test *)", "Bash([ *)", "Bash(echo *)"];
const PRINTF: &[&str] = &["Bash(printf *)"];
const LOG: &[&str] = &["Bash(git log *)"];
const GREP: &[&str] = &["Bash(git grep *)", "Bash(cat *)"];
const BRANCH: &[&str] = &["Bash(git branch *)", "Bash(cat *)"];
const TAR: &[&str] = &["Bash(tar *)", "Bash(cat *)"];
const AWK: &[&str] = &["Bash(awk *)"];
const SORT: &[&str] = &["Bash(sort *)", "Bash(cd *)"];
const XARGS: &[&str] = &["Bash(xargs echo *)", "Bash(echo *)"];

const fn on(
    allow: &'static [&'static str],
    name: &'static str,
    command: &'static str,
    twin: &'static str,
) -> Attack {
    Attack::on(allow, name, command, twin)
}

/// Reading what is not in the workspace, where no rule says anything.
const fn reads(name: &'static str, command: &'static str) -> Attack {
    Attack::on(NOTHING, name, command, "cat twin")
}

const TOUCH: &[&str] = &["Bash(touch *)"];
const TREASURES: &[&str] = &["Read(//**/treasure)"];
const FILES: &[&str] = &["Edit(/file)", "Edit(/sub/deep)"];

/// What these rules deny, where everything else is allowed.
const fn denied(deny: &'static [&'static str], name: &'static str, command: &'static str) -> Attack {
    Attack::on(NOTHING, name, command, "cat twin").yolo_but(deny)
}

#[rustfmt::skip]
pub fn attacks() -> Vec<Attack> {
    vec![
        // Words that are run.
        echo("substitution in arithmetic", "echo $(( a[$(touch X)] ))", "echo $((1 + 2)) twin"),
        echo("substitution in an index", "echo ${a[$(touch X)]}", "echo ${a:-twin}"),
        echo("substitution as a length", "echo ${PWD:0:$(touch X)1}", "echo ${PWD%%/*} twin"),
        echo("substitution in a pattern", "echo ${PWD/$(touch X)/b}", "echo ${PWD%%/*} twin"),
        echo("a prompt that is expanded", "x='$(touch X)'; echo ${x@P}", "x='$(touch X)'; echo twin"),
        echo("a name reference", "declare -n r='a[$(touch X)]'; echo $r", "echo twin"),
        echo("declaring an element", "declare 'a[$(touch X)]=1'", "echo twin"),
        echo("an integer", "declare -i x='a[$(touch X)]'", "echo twin"),
        echo("let", "let 'a[$(touch X)]=1'", "echo twin"),
        on(PRINTF, "printf -v", "printf -v 'a[$(touch X)]' b", "printf 'twin\\n'"),
        on(PRINTF, "printf -v, glued", "printf -v'a[$(touch X)]' b", "printf '%s\\n' twin"),
        on(TEST, "test -v", "a=(1); test -v 'a[$(touch X)]'", "test -f twin && echo twin"),
        on(TEST, "[[ -v", "a=(1); [[ -v 'a[$(touch X)]' ]]", "[[ -f twin ]] && echo twin"),
        on(TEST, "[[ -eq", "[[ 'a[$(touch X)]' -eq 0 ]]", "[ -f twin ] && echo twin"),
        echo("read into an element", "read 'a[$(touch X)]' <<< b", "echo twin"),
        echo("mapfile with a callback", "mapfile -C 'touch X #' -c 1 a < file", "echo twin"),
        echo("unset of an element", "a=(1); unset 'a[$(touch X)]'", "echo twin"),
        // Words that change what words mean.
        echo("trap", "trap 'touch X' EXIT", "echo 'trap' twin"),
        echo("trap before each command", "trap 'touch X' DEBUG; echo a", "echo twin"),
        echo("coproc", "coproc touch X; wait", "echo coproc twin"),
        echo("alias", "shopt -s expand_aliases\nalias echo='touch X #'\necho a", "echo alias twin"),
        echo("function of an allowed name", "echo() { touch X; }; echo a", "echo 'echo()' twin"),
        echo("function by the other word", "function echo { touch X; }\necho a", "echo twin"),
        echo("a remembered place", "hash -p ./evil echo2; echo2; hash -p ./evil ls; ls", "echo twin"),
        echo("command", "command touch X", "command echo twin"),
        echo("builtin", "builtin eval 'touch X'", "echo twin"),
        echo("exec", "exec touch X", "echo exec twin"),
        echo("exec under another name", "exec -a echo touch X", "echo twin"),
        echo("eval", "eval 'touch X'", "echo eval twin"),
        echo("eval of what a command says", "eval \"$(echo touch X)\"", "echo \"$(echo twin)\""),
        echo("source", "source ./evil", "echo source twin"),
        echo("dot", ". ./evil", "echo . twin"),
        echo("dot of a stream", ". <(echo touch X)", "echo twin"),
        echo("a shell that reads", "echo touch X | bash", "echo touch X | cat; echo twin"),
        echo("a shell that is told by a here-string", "bash <<< 'touch X'", "cat <<< twin"),
        echo("a shell that is told by a here-document", "sh <<E\ntouch X\nE", "cat <<E\ntwin\nE"),
        echo("an exported function", "env 'BASH_FUNC_echo%%=() { touch X; }' bash -c 'echo a'", "bash -c 'echo twin'"),
        echo("a variable for the prompt", "PS4='$(touch X)' bash -xc 'echo a'", "bash -c 'echo twin'").barks(),
        echo("a variable for each command", "PROMPT_COMMAND='touch X' bash -ic 'echo a'", "bash -c 'echo twin'").barks(),
        // Names that are put together.
        echo("a name in pieces", "'t'ouch X", "'e'cho twin"),
        echo("a name with a backslash", "t\\ouch X", "e\\cho twin"),
        echo("a name in quotes", "\"touch\" X", "\"echo\" twin"),
        echo("a name in code", "$'\\x74ouch' X", "echo twin"),
        echo("a name in a variable", "x=touch; \"$x\" X", "x=a; echo \"$x\" twin"),
        echo("a name as a default", "${x:-touch} X", "echo ${x:-twin}"),
        echo("a name that a command says", "$(echo touch) X", "echo $(echo twin)"),
        echo("a name out of braces", "{touch,X}", "echo {a,twin}"),
        echo("a name out of a pattern", "./ev?l", "echo ./tw?n"),
        echo("a name by its path", "/bin/../bin/touch X", "echo /bin/../bin/touch twin"),
        echo("a letter that looks the same", "\u{435}cho a", "echo twin").barks(),
        echo("vertical tab", "echo a\u{b}touch X", "echo twin").barks(),
        echo("form feed", "echo a\u{c}; touch X", "echo a; echo twin"),
        echo("a line that goes on", "echo a &\\\n& touch X", "echo a \\\n&& echo twin"),
        echo("an operator that goes on", "echo a ;\\\n touch X", "echo a ;\\\n echo twin"),
        echo("a comment that ends", "echo a # b\ntouch X", "echo a # b\necho twin"),
        echo("no comment", "echo a#b; touch X", "echo a#b; echo twin"),
        echo("history", "echo !!; touch X", "echo twin"),
        // Bodies.
        echo("not", "! touch X", "! echo twin"),
        echo("time", "time touch X", "time echo twin"),
        echo("time -p in a group", "time -p { touch X; }", "time echo twin"),
        echo("group", "{ touch X; }", "{ echo twin; }"),
        echo("subshell", "(touch X)", "(echo twin)"),
        echo("if", "if touch X; then echo a; fi", "if true; then echo twin; fi"),
        echo("else", "if false; then echo a; else touch X; fi", "if false; then echo a; else echo twin; fi"),
        echo("while", "while touch X; do break; done", "while true; do echo twin; break; done"),
        echo("until", "until touch X; do echo a; done", "until true; do echo a; done; echo twin"),
        echo("for", "for i in a; do touch X; done", "for i in a; do echo twin; done"),
        echo("for over what a command says", "for i in $(touch X); do echo a; done", "for i in $(echo twin); do echo $i; done"),
        echo("for in numbers", "for ((i = 0; i < 1 + a[$(touch X)0]; i++)); do echo a; done", "for i in 1; do echo twin; done"),
        echo("case", "case a in a) touch X;; esac", "case a in a) echo twin;; esac"),
        echo("case that falls through", "case a in a) echo a;& b) touch X;; esac", "case a in a) echo twin;; esac"),
        echo("case of what a command says", "case $(touch X) in *) echo a;; esac", "case $(echo a) in *) echo twin;; esac"),
        echo("select", "select x in a; do touch X; break; done <<< 1", "echo twin"),
        // Redirections.
        echo("for into a file", "for i in a; do echo a; done > X", "for i in a; do echo twin; done > /dev/stdout"),
        echo("if into a file", "if true; then echo a; fi > X", "if true; then echo twin; fi 2>&1"),
        echo("while into a file", "while true; do echo a; break; done > X", "while true; do echo twin; break; done 2>&1"),
        echo("case into a file", "case a in a) echo a;; esac > X", "case a in a) echo twin;; esac 2>&1"),
        echo("group into a file", "{ echo a; } > X", "{ echo twin; } 2>&1"),
        echo("subshell into a file", "(echo a) > X", "(echo twin) 2>&1"),
        echo("test into a file", "[[ -n a ]] > X", "[[ -n a ]] && echo twin"),
        echo("nothing into a file", "> X", "echo twin"),
        echo("both into a file", "echo a &> X", "echo twin &> /dev/stdout"),
        echo("both into a file, the old way", "echo a >&X", "echo twin >&1"),
        echo("both ways", "echo a <>X", "echo twin"),
        echo("another descriptor", "echo a 3>X", "echo twin 2>&1"),
        echo("a descriptor in a variable", "echo a {fd}>X", "echo twin 2>&1"),
        echo("from here on", "exec 3>X", "echo twin"),
        echo("before the name", ">X echo a", "2>/dev/null echo twin"),
        echo("twice", "echo a >/dev/null >X", "echo twin 2>/dev/null"),
        echo("into a process", "echo a > >(tee X); wait $!", "echo twin | cat"),
        echo("into a name that is put together", "x=X; echo a > $x", "x=a; echo $x twin"),
        echo("through a link", "echo x > way-out/treasure", "echo twin"),
        // Programs that run or write.
        on(LOG, "git log --output", "git log --format=%B --output=X", "git log --format=%B"),
        on(LOG, "git log --output apart", "git log --output X", "git log"),
        on(GREP, "git grep -O", "git grep -O./evil alpha", "cat twin"),
        on(GREP, "git grep --open-files-in-pager", "git grep --open-files-in-pager=./evil alpha", "cat twin"),
        on(BRANCH, "git branch --edit-description", "GIT_EDITOR=./evil git branch --edit-description", "cat twin"),
        on(TAR, "tar --checkpoint-action", "tar -cf - --checkpoint=1 --checkpoint-action=exec='touch X' file", "cat twin"),
        on(TAR, "tar -I", "tar -cf - -I 'touch X; cat' file", "cat twin"),
        on(TAR, "tar --to-command", "tar -cf - file | tar -xf - --to-command='touch X'", "cat twin"),
        on(AWK, "awk that runs", "awk 'BEGIN { system(\"touch X\") }'", "awk '{ print }' twin"),
        on(AWK, "awk that writes", "awk 'BEGIN { print \"a\" > \"X\" }'", "awk '{ print $1 }' twin"),
        on(AWK, "awk with a pipe", "awk 'BEGIN { \"touch X\" | getline }'", "awk '{ print }' twin"),
        on(AWK, "awk with a program of its own", "awk -f ./sub/prog", "awk '{ print }' twin"),
        on(SORT, "sort -o", "sort -o X file", "sort twin"),
        on(SORT, "sort -o among others", "sort -uoX file", "sort -u twin"),
        on(SORT, "a file that is an option", "cd options && sort *", "sort twin"),
        echo("tee", "echo a | tee X", "echo twin | cat"),
        echo("dd", "echo a | dd of=X", "echo twin"),
        echo("cp", "cp file X", "echo twin"),
        echo("install", "install file X", "echo twin"),
        echo("ln", "ln -s file X", "echo twin"),
        on(XARGS, "xargs from a file", "xargs -a file touch", "echo twin | xargs echo"),
        on(XARGS, "xargs with a place", "echo X | xargs -I{} touch {}", "echo twin | xargs echo"),
        echo("env -S", "env -S 'touch X'", "env LANG=C echo twin"),
        echo("env -S, glued", "env '-Stouch X'", "env LANG=C echo twin"),
        echo("perl", "perl -e 'open F, \">X\"'", "echo twin"),
        cat("the file of a here-document", "cat <<E > X\na\nE", "cat <<E\ntwin\nE"),
        // Reading what is not here.
        reads("another directory", "cd {outside} && cat treasure"),
        reads("another directory by a link", "cd way-out && cat treasure"),
        reads("a whole path", "cat {outside}/treasure"),
        reads("a link", "cat link"),
        reads("a link as input", "cat < link"),
        reads("a link by a pattern", "cat l*k"),
        reads("a link among all files", "cat *"),
        reads("a link out of braces", "cat {link,file}"),
        reads("a link in a variable", "x=link; cat $x"),
        reads("a link by the working directory", "cat \"$PWD/link\""),
        reads("a link by /proc", "cat /proc/self/cwd/link"),
        reads("a link as a descriptor", "cat /dev/fd/3 3< link"),
        reads("up and down again", "cat sub/../way-out/treasure"),
        reads("more than one slash", "cat .//way-out///treasure"),
        reads("grep that follows links", "grep -R the ."),
        reads("grep behind a link", "grep -r the way-out/"),
        reads("a file of names", "wc --files0-from=link"),
        reads("a file of dates", "date -f link"),
        reads("a difference", "diff twin link"),
        reads("a difference by git", "git diff --no-index twin {outside}/treasure"),
        reads("a loop", "for f in li??; do cat \"$f\"; done"),
        reads("what a command says", "cat $(echo link)"),
        reads("what xargs is told", "echo link | xargs cat"),
        reads("a home that is another", "HOME={outside}; cat ~/treasure"),
        reads("a directory to go to by name", "CDPATH={outside} cd cave && cat treasure"),
        reads("line by line", "while read -r l || [ -n \"$l\" ]; do echo \"$l\"; l=; done < link"),
        reads("the last lines", "tail -n +1 file link"),
        reads("a class of letters", "cat [[:lower:]]ink"),
        reads("letters that are the same", "cat [[=l=]]ink"),
        reads("a letter by its name", "cat [[.l.]]ink"),
        reads("a class behind a bracket", "cat []l[:digit:]]ink"),
        reads("a range", "cat [a-z][a-z][a-z]k"),
        reads("arguments out of a file", "strings @link").barks(),
        // A program that a rule denies, in places where programs are named.
        denied(TOUCH, "an alias of git", "git -c alias.x='!touch X' x"),
        denied(TOUCH, "a program for each file of git", "git -c core.pager='touch X;' -p log").barks(),
        denied(TOUCH, "the loader", "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch X").barks(),
        denied(TOUCH, "a program at another time", "at now <<< 'touch X'").barks(),
        denied(TOUCH, "code on the way in", "python3 <<< 'import os; os.system(\"touch X\")'").barks(),
        denied(&["Bash(*uch X*)"], "a rule that begins in a word", "touch X"),
        denied(&["Bash(*evil*)"], "a rule about an argument", "bash ./evil"),
        // A file that a rule denies to read, spelt so that its path is not on the line.
        denied(TREASURES, "from its directory", "cd {outside} && cat treasure"),
        denied(TREASURES, "from its directory, by a pattern", "cd {outside}; cat tre*"),
        denied(TREASURES, "from its directory, in a subshell", "(cd {outside}/cave; cat ./treasure)"),
        denied(TREASURES, "from its directory, pushed", "pushd {outside}; cat treasure"),
        denied(TREASURES, "by a class of letters", "cat {outside}/treasur[[:lower:]]"),
        denied(TREASURES, "out of braces", "cat {outside}/{treasure,cave/treasure}"),
        denied(TREASURES, "out of a variable", "x={outside}/treasure; cat $x"),
        denied(TREASURES, "below a variable", "x={outside}; cat \"$x/treasure\""),
        denied(TREASURES, "out of a variable and back", "x=treasure; cd {outside}; cat ${x}"),
        denied(TREASURES, "from a directory in a variable", "x={outside}; cd $x; cat treasure"),
        denied(TREASURES, "what a command says", "cat $(echo {outside}/treasure)"),
        denied(TREASURES, "what eval makes of it", "eval \"cat {outside}/trea\"\"sure\""),
        denied(TREASURES, "a shell that is told", "bash -c 'cat {outside}/treasure'"),
        denied(TREASURES, "a loop", "for f in {outside}/treasure; do cat \"$f\"; done"),
        denied(TREASURES, "a loop over a pattern", "for f in {outside}/tr*; do cat \"$f\"; done"),
        denied(TREASURES, "code", "python3 -c \"print(open('{outside}/treasure').read())\"").barks(),
        denied(TREASURES, "a link", "cat link"),
        denied(TREASURES, "below the working directory", "cat \"$PWD/link\""),
        denied(TREASURES, "below the working directory, by a pattern", "cat \"${PWD}\"/li*"),
        // A file that a rule denies to change.
        denied(FILES, "in its directory", "cd sub; echo x > deep"),
        denied(FILES, "in its directory, away", "cd sub && rm deep"),
        denied(FILES, "from below", "cd sub; echo x > ../file"),
        denied(FILES, "in a variable", "x=file; echo a > $x"),
        denied(FILES, "in a variable, by a program", "x=file; truncate -s 0 \"$x\""),
        // What git and we obey later, where everything is allowed.
        denied(NOTHING, "settings in a variable", "x=.git/config; echo '[a]' >> $x").barks(),
        denied(NOTHING, "hooks below a variable", "g=.git; echo x > $g/hooks/pre-commit").barks(),
        denied(NOTHING, "settings in pieces", "d=.qwe; mkdir -p ${d}n").barks(),
        denied(NOTHING, "settings out of braces", "touch .mcp.{json,x}").barks(),
    ]
}
