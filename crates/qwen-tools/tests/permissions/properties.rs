//! What holds for any text.

use std::process::Command;

use proptest::prelude::*;
use qwen_events::Verdict;
use qwen_tools::permissions::{Mode, Policy, escape_for_approval};
use qwen_tools::shell::{analyse, is_hidden};

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_breaks_the_judgement(text in prop_oneof![any::<String>(), shell_text()]) {
        let root = std::path::PathBuf::from("/nonexistent/workspace");
        for mode in [Mode::Plan, Mode::Default, Mode::Yolo] {
            let mut policy = Policy::new(mode, [root.clone()], None);
            policy.add_rule(qwen_events::Behavior::Deny, "Bash(rm *)", qwen_tools::permissions::RuleSource::Flag).unwrap();
            let call = qwen_tools::permissions::CallFacts {
                tool: "Bash", kind: qwen_tools::permissions::CallKind::Exec, cwd: &root, paths: Vec::new(),
                command: Some(&text), url: None,
            };
            policy.judge(&call);
        }
    }

    #[test]
    fn no_text_stays_hidden_in_what_is_shown(text in any::<String>()) {
        prop_assert!(!escape_for_approval(&text).chars().any(is_hidden));
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
    fn a_command_that_only_echoes_by_our_reading_only_echoes_in_bash(text in shell_text()) {
        let command = format!("echo {text}");
        let analysis = analyse(&command);
        let only_echoes = analysis.unanalysable.is_none()
            && analysis.invocations.iter().all(|invocation| {
                invocation.program().is_none_or(|program| program == "echo")
                    && invocation.assignments.is_empty()
                    && invocation.redirections.iter().all(|redirection| !redirection.kind.writes())
            });
        if only_echoes {
            let directory = tempfile::tempdir().unwrap();
            let bin = tempfile::tempdir().unwrap();
            // `touch` and `a` leave a trace when they are run, whatever their arguments.
            for name in ["touch", "a", "X", "1", "0"] {
                let program = bin.path().join(name);
                std::fs::write(&program, "#!/bin/sh\n: > trace\n").unwrap();
                let mut permissions = std::fs::metadata(&program).unwrap().permissions();
                std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
                std::fs::set_permissions(&program, permissions).unwrap();
            }
            let status = Command::new("/bin/bash")
                .args(["--noprofile", "--norc", "-c", &command])
                .current_dir(directory.path())
                .env_clear()
                .env("PATH", bin.path())
                .stdin(std::process::Stdio::null())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status();
            prop_assert!(status.is_ok());
            let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
            prop_assert!(left.is_empty(), "{command:?} left {left:?}");
        }
    }
}
