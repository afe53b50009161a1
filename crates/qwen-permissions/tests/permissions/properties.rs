//! What holds for any text.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use qwen_events::{Behavior, ToolKind, Verdict, is_hidden};
use qwen_permissions::shell::{Word, analyse};
use qwen_permissions::{DeclaredCall, Mode, Policy, RuleSource, escape_for_approval};

use crate::Desk;

/// Texts made of what shells are made of.
fn shell_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "echo",
        "touch",
        "a",
        "X",
        " ",
        " ",
        "\t",
        "\n",
        ";",
        ";;",
        "&",
        "&&",
        "|",
        "||",
        "|&",
        "(",
        ")",
        "{",
        "}",
        "$(",
        "`",
        "${",
        "$((",
        "))",
        "[[",
        "]]",
        "[",
        "]",
        "<",
        ">",
        ">>",
        "<<",
        "<<<",
        "<(",
        ">(",
        ">&",
        "&>",
        "2>",
        "<<EOF\n",
        "\nEOF\n",
        "\\",
        "\\\n",
        "'",
        "\"",
        "$'",
        "$x",
        "#",
        " # ",
        "!",
        "=",
        "x=",
        "*",
        "?",
        "~",
        "if ",
        "then ",
        "fi",
        "for i in ",
        "do ",
        "done",
        "case ",
        " in ",
        "esac",
        "while ",
        "function ",
        "time ",
        "coproc ",
        "-c ",
        "bash ",
        "env ",
        "/dev/null",
        ",",
        "..",
        "\u{a0}",
        "\r",
        "é",
        "\u{10ffff}",
        "1",
        "0",
        "@",
        "%",
        "^",
        "+",
        ":-",
    ]);
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

/// Words that are easily misread, most of them harmless.
fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a",
        "'touch X'",
        "'; touch X'",
        "\"; touch X\"",
        "\\;",
        "\\&",
        "a\\ b",
        "'a'\"b\"c",
        "\"a'b\"",
        "'a\"b'",
        "\"a\\\"b\"",
        "\"\\$(touch X)\"",
        "$(echo a)",
        "\"$(echo \"a b\")\"",
        "`echo a`",
        "\"`echo a`\"",
        "${x:-a}",
        "${x:-$(echo a)}",
        "$((1 + 2))",
        "$x",
        "\"$x\"",
        "a#b",
        "#",
        "# x",
        "''",
        "\"\"",
        "=",
        "x=y",
        "{a,b}",
        "{",
        "}",
        "[a]",
        "*",
        "~",
        "!",
        "a!",
        "\\\n",
        "\\\n a",
        "2>&1",
        "2>/dev/null",
        "</dev/null",
        "<<'E'\ntouch X\nE\n",
        "<<E\ntouch X\nE\n",
        "<<E\n$(echo a)\nE\n",
        "<<< 'touch X'",
        "<<-E\n\ttouch X\n\tE\n",
        "<(echo a)",
        "$",
        "\"$\"",
        "\"a $ b\"",
        "\"\\\n\"",
        "é",
        "'é'",
        "a\\\nb",
        "if",
        "then",
        "do",
        "(",
        ")",
        "\"$(echo ')')\"",
        "$(echo \")\")",
        "\"${x:-'a'}\"",
        "${x#a}",
        "-",
        "--",
    ])
    .prop_map(str::to_owned)
}

/// Commands that look like work: `echo` with words and separators.
fn echoes() -> impl Strategy<Value = String> {
    let separator = prop::sample::select(vec![
        " ",
        " ",
        " ",
        " ",
        "",
        "; echo ",
        " && echo ",
        " | echo ",
        "\necho ",
        " || echo ",
        " & echo ",
        ";\n#c\necho ",
    ]);
    prop::collection::vec((word(), separator), 1..7).prop_map(|words| {
        words.into_iter().fold("echo ".to_owned(), |line, (word, separator)| line + &word + separator)
    })
}

/// A command that does what no rule allows, inside of any number of things that a command can be inside of.
fn nested() -> impl Strategy<Value = String> {
    let heart = prop::sample::select(vec![
        "touch X",
        "rm -rf a",
        "'tou'ch X",
        "/bin/touch X",
        "echo a > X",
        "x=1 touch X",
        "touch X # echo",
        "cat a >> X",
    ]);
    let quoted = |inner: &str| format!("'{}'", inner.replace('\'', "'\\''"));
    heart.prop_map(str::to_owned).prop_recursive(6, 24, 2, move |inner| {
        (inner, 0..24_usize).prop_map(move |(inner, way)| match way {
            0 => format!("echo $({inner})"),
            1 => format!("echo \"a $({inner}) b\""),
            2 => format!("bash -c {}", quoted(&inner)),
            3 => format!("env A=b sh -c {}", quoted(&inner)),
            4 => format!("{{ {inner}\n}}"),
            5 => format!("({inner}\n)"),
            6 => format!("if true; then {inner}\nfi"),
            7 => format!("if {inner}\nthen echo a; fi"),
            8 => format!("echo a && {inner}"),
            9 => format!("{inner}\necho a"),
            10 => format!("echo a | {{ {inner}\n}}"),
            11 => format!("for i in a b; do {inner}\ndone"),
            12 => format!("case a in a) {inner}\n;; esac"),
            13 => format!("while true; do {inner}\nbreak; done"),
            14 => format!("x=$({inner}\n); echo a"),
            15 => format!("echo ${{x:-$({inner}\n)}}"),
            16 => format!("cat <<E\n$({inner}\n)\nE"),
            17 => format!("cat <({inner}\n)"),
            18 => format!("timeout 5 bash -c {}", quoted(&inner)),
            19 => format!("echo a; ! ({inner}\n)"),
            20 => format!("eval {}", quoted(&inner)),
            21 => format!("xargs -I% sh -c {}", quoted(&inner)),
            22 => format!("f() {{ {inner}\n}}; f"),
            _ => format!("[[ -n $({inner}\n) ]] && echo a"),
        })
    })
}

/// Whether bash, given programs that leave a trace when they are started, leaves anything behind.
fn leaves_a_trace(command: &str, programs: &Path) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let status = Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", command])
        .current_dir(directory.path())
        .env_clear()
        .env("PATH", programs)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok());
    std::fs::read_dir(directory.path()).unwrap().next().is_some()
}

/// A directory of programs that leave a trace, whatever their arguments.
fn tell_tales() -> tempfile::TempDir {
    let programs = tempfile::tempdir().unwrap();
    for name in ["touch", "a", "X", "1", "0", "b", "env", "bash"] {
        let program = programs.path().join(name);
        std::fs::write(&program, "#!/bin/sh\n: > trace\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    programs
}

/// Whether our reading of a command is that it starts nothing but `echo` and writes nothing.
fn only_echoes(command: &str) -> bool {
    let analysis = analyse(command);
    analysis.unanalysable.is_none()
        && analysis.invocations.iter().all(|invocation| {
            invocation.program().is_none_or(|program| program == "echo")
                && invocation.assignments.is_empty()
                && invocation.redirections.iter().all(|redirection| {
                    !redirection.kind.writes() || redirection.target.literal() == Some("/dev/null")
                })
        })
}

fn settings(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn a_tell_tale_tells() {
    let programs = tell_tales();
    assert!(leaves_a_trace("echo a; touch x", programs.path()));
    assert!(!leaves_a_trace("echo a; echo x", programs.path()));
}

proptest! {
    #![proptest_config(settings(1000))]

    #[test]
    fn no_text_breaks_the_judgement(text in prop_oneof![any::<String>(), shell_text()]) {
        let root = std::path::PathBuf::from("/nonexistent/workspace");
        for mode in [Mode::Plan, Mode::Default, Mode::Yolo] {
            let mut policy = Policy::new(mode, [root.clone()], None, crate::TOOLS);
            policy.add_rule(Behavior::Deny, "Bash(rm *)", RuleSource::Flag).unwrap();
            let (tool, kind) = ("run_shell_command", ToolKind::Execute);
            policy.judge(&DeclaredCall::new(tool, kind, &root).with_command(&text));
        }
    }

    #[test]
    fn no_text_stays_hidden_in_what_is_shown(text in any::<String>()) {
        prop_assert!(!escape_for_approval(&text).chars().any(is_hidden));
    }

    #[test]
    fn a_command_that_only_echoes_by_our_reading_only_echoes_in_bash(command in shell_text()) {
        let command = format!("echo {command}");
        if only_echoes(&command) {
            prop_assert!(!leaves_a_trace(&command, tell_tales().path()), "{command:?}");
        }
    }
}

proptest! {
    #![proptest_config(settings(300))]

    #[test]
    fn words_that_are_easily_misread_are_not(command in echoes()) {
        if only_echoes(&command) {
            prop_assert!(!leaves_a_trace(&command, tell_tales().path()), "{command:?}");
        }
    }

    #[test]
    fn the_words_that_we_read_are_those_that_bash_reads(words in prop::collection::vec(word(), 1..6)) {
        let command = format!("printf '%s\\0' {}", words.join(" "));
        let analysis = analyse(&command);
        let [invocation] = analysis.invocations.as_slice() else { return Ok(()) };
        let ours: Option<Vec<&str>> = invocation.words.iter().skip(2).map(Word::literal).collect();
        if let (None, Some(ours), true) = (&analysis.unanalysable, ours, invocation.redirections.is_empty()) {
            let output = Command::new("/bin/bash")
                .args(["--noprofile", "--norc", "-c", &command])
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let output = String::from_utf8(output.stdout).unwrap();
            // Without operands the format is used once, with an empty one. A tilde is ours to keep.
            let theirs: Vec<&str> = output.strip_suffix('\0').unwrap_or(&output).split('\0').collect();
            let ours = if ours.is_empty() { vec![""] } else { ours };
            let theirs: Vec<&str> = theirs.into_iter().zip(&ours).map(|(theirs, ours)| if *ours == "~" { "~" } else { theirs }).collect();
            prop_assert_eq!(ours, theirs, "{}", command);
        }
    }

    #[test]
    fn a_separator_and_another_program_are_never_covered(
        words in prop::collection::vec("[a-z0-9./=-]{1,6}|'[^'\n\r]{0,6}'|\"[a-z ;|&]{0,6}\"", 0..5),
        separator in prop::sample::select(vec![";", "&", "&&", "||", "|", "|&", "\n", " ; ", "\n\n", " &\n", ";\t", "|\n", "&& # c\n"]),
        tail in "[a-z]{0,5}",
    ) {
        let desk = Desk::new(Mode::Default).allow(&["Bash(echo *)"]);
        let command = format!("echo {}{separator}touch {tail}", words.join(" "));
        prop_assert_ne!(desk.run(&command).decision.verdict, Verdict::Allow);
    }

    #[test]
    fn nothing_is_allowed_by_what_it_is_inside_of(command in nested()) {
        let desk = Desk::new(Mode::Default).allow(&["Bash(echo *)", "Bash(cat *)", "Bash(true *)", "Bash(env *)", "Bash(x *)"]);
        prop_assert_ne!(desk.run(&command).decision.verdict, Verdict::Allow);
        // Nor does a rule that forbids lose sight of it where all else is allowed.
        let desk = Desk::new(Mode::Yolo).deny(&["Bash(touch *)", "Bash(rm *)", "Edit(/X)"]);
        prop_assert_ne!(desk.run(&command).decision.verdict, Verdict::Allow);
        let plan = Desk::new(Mode::Plan).allow(&["Bash"]);
        prop_assert_ne!(plan.run(&command).decision.verdict, Verdict::Allow);
    }

    #[test]
    fn what_may_be_read_unasked_is_inside_however_it_is_spelt(
        parts in prop::collection::vec(prop::sample::select(vec![
            "..", ".", "", "file", "src", "main.rs", "links", "out", "up", "outside", "secret", "key", "workspace", "sub", "deep", "new",
        ]), 0..8),
        start in prop::sample::select(vec!["", "/", "ROOT/", "//", "./", "~/", "/proc/self/cwd/"]),
    ) {
        let desk = Desk::new(Mode::Default);
        let root = desk.root().canonicalize().unwrap();
        let path = format!("{start}{}", parts.join("/")).replace("ROOT", root.to_str().unwrap());
        let read = desk.call("read_file", ToolKind::Read, &[&path]).decision.verdict;
        let shown = desk.run(&format!("cat '{path}'")).decision.verdict;
        for verdict in [read, shown] {
            if verdict == Verdict::Allow && let Ok(real) = root.join(&path).canonicalize() {
                prop_assert!(real.starts_with(&root), "{} is {}", path, real.display());
            }
        }
    }
}
