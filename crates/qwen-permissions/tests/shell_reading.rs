//! What a command line is read as.

use qwen_permissions::shell::{RedirectionKind, SimpleCommand, Word, analyse};

/// An analysis in a line: words with `|` between commands; `…` is what is only known later.
fn written(command: &str) -> String {
    let analysis = analyse(command);
    let commands: Vec<String> = analysis.invocations.iter().map(invocation).collect();
    let end = if analysis.unanalysable.is_some() || analysis.defines_functions { " ???" } else { "" };
    format!("{}{end}", commands.join(" | "))
}

fn invocation(invocation: &SimpleCommand) -> String {
    let mut parts: Vec<String> = Vec::new();
    for assignment in &invocation.assignments {
        parts.push(format!("{}={}", assignment.name, word(&assignment.value)));
    }
    parts.extend(invocation.words.iter().map(word));
    for redirection in &invocation.redirections {
        let sign = match redirection.kind {
            RedirectionKind::Read => "<",
            RedirectionKind::Write => ">",
            RedirectionKind::Append => ">>",
            RedirectionKind::Duplicate => ">&",
            RedirectionKind::Here => "<<",
        };
        parts.push(format!("{sign}{}", word(&redirection.target)));
    }
    if invocation.in_background {
        parts.push("&".to_owned());
    }
    if let Some(wrapped_by) = invocation.wrapped_by {
        parts.push(format!("@{}.{}", wrapped_by.invocation, wrapped_by.word));
    }
    parts.join(" ")
}

fn word(word: &Word) -> String {
    match word {
        Word::Literal(text) if text.is_empty() || text.contains(' ') => format!("{text:?}"),
        Word::Literal(text) => text.clone(),
        Word::Dynamic(dynamic) => format!("{}…", dynamic.prefix),
    }
}

#[test]
fn a_line_is_read_as_bash_reads_it() {
    let cases = [
        ("", ""),
        ("ls -la", "ls -la"),
        ("l's' \"-\"la a\\ b", "ls -la \"a b\""),
        ("echo 'a;b' \"c|d\" e\\&f", "echo a;b c|d e&f"),
        ("echo '' \"\"", "echo \"\" \"\""),
        ("echo \"a\\\"b\\$c\\d\"", "echo a\"b$c\\d"),
        ("echo $x \"a$x\" a*b {a,b} {}", "echo … a… a… a b {}"),
        ("echo x'{a,b}' \"{1..2}\"y", "echo x{a,b} {1..2}y"),
        ("a; b & c", "a | b & | c"),
        ("a && b || c", "a | b | c"),
        ("a | b |& c", "a | b | c"),
        ("(a; b)", "a | b"),
        ("{ a; b; } > f", ">f | a | b"),
        ("! a", "a"),
        ("a > f 2>&1 < g >> h", "a >f >&1 <g >>h"),
        ("> f a b", "a b >f"),
        ("a > f b c", "a b c >f"),
        ("a &> f >& g", "a >f >g"),
        ("A=1 B=$(c) d e", "c | A=1 B=… d e"),
        ("A=1", "A=1"),
        ("export A=1 B", "A=1 export B"),
        ("a $(b $(c))", "c | b … | a …"),
        ("a `b`", "b | a …"),
        ("a <(b) >(c)", "b | c | a /dev/fd/… /dev/fd/…"),
        ("a ${x:-$(b)}", "b | a …"),
        ("a <<E\nx $(b)\nE\n", "b | a <<…"),
        ("a <<'E'\nx $(b)\nE\n", "a <<\"x $(b)\\n\""),
        ("a - <<'E'\nx\nE", "a - <<x\n"),
        ("a <<< x", "a <<x"),
        ("a $(<f)", "<f | a …"),
        ("if a; then b; elif c; then d; else e; fi", "a | b | c | d | e"),
        ("for i in x $(a); do b $i; done", "a | b … | i=x i=…"),
        ("while a; do b; done < f", "<f | a | b"),
        ("case x in a|b) c;; *) d; esac", "c | d"),
        ("[ -f a ] && b", "[ -f a ] | b"),
        ("[[ -f a && b == c ]]", "[[ -f a && b == c ]]"),
        ("a # b; c\nd", "a | d"),
        ("a \\\n  b", "a b"),
        ("env -i A=1 timeout 5 a b", "env -i A=1 timeout 5 a b | A=1 timeout 5 a b @0.3 | a b @1.2"),
        ("bash -c 'a; b'", "bash -c \"a; b\" | a @0.2 | b @0.2"),
        ("find . -exec a {} \\; -exec b +", "find . -exec a {} ; -exec b + | a … @0.3 | b @0.7"),
        ("a | xargs -n 1 b c", "a | xargs -n 1 b c | b c … @1.3"),
        ("sudo -u x a", "sudo -u x a | a @0.3"),
    ];
    for (command, expected) in cases {
        assert_eq!(written(command), expected, "{command}");
    }
}

#[test]
fn an_unreadable_part_is_reported_and_the_findings_are_kept() {
    let cases = [
        ("$a b", "… b ???"),
        ("eval a", "eval a ???"),
        ("f() { a; }; f", "a | f ???"),
        ("a; b 'c", "???"),
        ("zsh -c 'a'", "zsh -c a | a @0.2 ???"),
        ("coproc a b", "coproc a b | a b @0.1 | b @0.2 ???"),
        ("a $((b))", "a … ???"),
        ("a | sh", "a | sh ???"),
        ("a\rb", "a b ???"),
    ];
    for (command, expected) in cases {
        let written = written(command);
        assert!(written.ends_with("???"), "{command}: {written}");
        if expected != "???" {
            assert_eq!(written, expected, "{command}");
        }
    }
}

#[test]
fn a_text_that_takes_the_grammar_too_long_is_given_up() {
    for text in
        ["a|".repeat(30_000), "a ".repeat(10_000), ")$".repeat(2_000), "$(".repeat(900), "x".repeat(70_000)]
    {
        assert!(analyse(&text).unanalysable.is_some());
    }
    // A file that is written from a quoted here-document is no structure.
    let file = format!("cat <<'END' > table\n{}END\n", "| a | {b} | $(c) << d |\n".repeat(1_500));
    assert_eq!(analyse(&file).unanalysable, None);
}
