//! Common pipelines, with standard output, standard error and exit code.

use std::fs;

use mock_model::{MockModel, Reply};

use crate::harness::shell;

/// What a pipeline must come to.
struct Case {
    script: &'static str,
    stdout: &'static str,
    /// What standard error contains, line by line.
    stderr: &'static [&'static str],
    code: i32,
    /// What the model is asked first.
    prompt: Option<&'static str>,
}

const SUMMARY: &str = "qwen: session ";

const CASES: &[Case] = &[
    Case {
        script: r#"printf '1 failed\n' | "$QWEN" -p "Why?""#,
        stdout: "Hi\n",
        stderr: &[SUMMARY],
        code: 0,
        prompt: Some("1 failed\n\n\nWhy?"),
    },
    Case {
        script: r#"git init -q . && echo a > f && git add f && echo b > f && git diff | "$QWEN" "Review this diff" -q"#,
        stdout: "Hi\n",
        stderr: &[],
        code: 0,
        prompt: Some("diff --git a/f b/f"),
    },
    Case {
        script: r#"printf 'a\nb\nc\n' | xargs -P 3 -I{} "$QWEN" -q -p "Explain {}""#,
        stdout: "Hi\nHi\nHi\n",
        stderr: &[],
        code: 0,
        prompt: Some("Explain "),
    },
    Case {
        script: r#"timeout 20 "$QWEN" -q -p x < /dev/null"#,
        stdout: "Hi\n",
        stderr: &[],
        code: 0,
        prompt: Some("x"),
    },
    Case {
        script: r#"nohup "$QWEN" -q -p x < /dev/null 2>/dev/null | cat"#,
        stdout: "Hi\n",
        stderr: &[],
        code: 0,
        prompt: Some("x"),
    },
    Case {
        script: r#"env -i OPENAI_BASE_URL="$OPENAI_BASE_URL" OPENAI_API_KEY=k "$QWEN" -q -m mock -p x < /dev/null"#,
        stdout: "Hi\n",
        stderr: &["qwen: there is no home directory to keep sessions in"],
        code: 0,
        prompt: Some("x"),
    },
    Case {
        script: r#"cd / && env -i HOME="$HOME" PATH=/usr/bin:/bin SHELL=/bin/sh OPENAI_BASE_URL="$OPENAI_BASE_URL" OPENAI_API_KEY=k "$QWEN" -q -m mock -p x < /dev/null"#,
        stdout: "Hi\n",
        stderr: &[],
        code: 0,
        prompt: Some("x"),
    },
    Case {
        script: r#"answer=$("$QWEN" -p x 2>/dev/null < /dev/null) && printf '[%s]' "$answer""#,
        stdout: "[Hi]",
        stderr: &[],
        code: 0,
        prompt: Some("x"),
    },
    Case {
        script: r#""$QWEN" -p x < /dev/null | head -c 0"#,
        stdout: "",
        stderr: &[],
        code: 0,
        prompt: None,
    },
    Case {
        script: r#"pytest() { echo "1 failed, 2 passed"; return 1; }; pytest 2>&1 | "$QWEN" -q "Fix it""#,
        stdout: "Hi\n",
        stderr: &[],
        code: 0,
        prompt: Some("1 failed, 2 passed\n\n\nFix it"),
    },
    Case {
        script: r#"git diff --no-index missing a 2>/dev/null | "$QWEN" -q -p Review"#,
        stdout: "Hi\n",
        stderr: &[],
        code: 0,
        prompt: Some("Review"),
    },
    Case {
        script: r#"echo notes > in.txt; "$QWEN" -q Summarise < in.txt > out.txt && cat out.txt"#,
        stdout: "Hi\n",
        stderr: &[],
        code: 0,
        prompt: Some("notes\n\n\nSummarise"),
    },
    Case {
        script: r#""$QWEN" -p x < /dev/null 2>&1 >/dev/null | grep -c '^qwen: session '"#,
        stdout: "1\n",
        stderr: &[],
        code: 0,
        prompt: Some("x"),
    },
    Case { script: r#""$QWEN" -q -p x <&-"#, stdout: "Hi\n", stderr: &[], code: 0, prompt: Some("x") },
    Case {
        script: r#"set -e; "$QWEN" -q -p x --max-session-turns 0 < /dev/null; echo unreached"#,
        stdout: "",
        stderr: &["qwen: "],
        code: 53,
        prompt: None,
    },
    Case {
        script: r#""$QWEN" -q < /dev/null"#,
        stdout: "",
        stderr: &["qwen: there is no prompt"],
        code: 42,
        prompt: None,
    },
    Case {
        script: r#"env -i "$QWEN" -p x < /dev/null"#,
        stdout: "",
        stderr: &["qwen: no model is configured"],
        code: 41,
        prompt: None,
    },
];

#[test]
fn common_pipelines_have_the_documented_output_and_exit_code() {
    for case in CASES {
        let mock = MockModel::with([Reply::text("Hi"), Reply::text("Hi"), Reply::text("Hi")]);
        let program = shell(case.script).with_model(&mock).env("QWEN_MODEL", "mock");
        fs::write(program.cwd_path().join("README"), "x\n").unwrap();
        let ended = program.run();
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(case.code), case.stdout),
            "{}: {ended:?}",
            case.script
        );
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), case.stderr.len(), "{}: {ended:?}", case.script);
        for (line, expected) in lines.iter().zip(case.stderr) {
            assert!(line.starts_with(expected), "{}: {ended:?}", case.script);
        }
        if let Some(prompt) = case.prompt {
            let asked = mock.requests()[0].last_user_text();
            assert!(asked.starts_with(prompt), "{}: {asked}", case.script);
        }
    }
}
