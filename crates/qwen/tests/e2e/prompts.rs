//! Where a prompt comes from, and what text mode writes.

use std::fs;

use mock_model::process::Program;
use mock_model::{MockModel, Reply, ReplyEvent};

use crate::harness::qwen;

/// The prompt that the model was asked.
#[track_caller]
fn asked_with(program: &Program) -> String {
    let mock = MockModel::with([Reply::text("Hi")]);
    let ended = program.clone().with_model(&mock).env("QWEN_MODEL", "mock").run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hi\n"), "{ended:?}");
    assert!(ended.stderr.starts_with("qwen: session ") && ended.stderr.lines().count() == 1, "{ended:?}");
    mock.requests()[0].last_user_text()
}

#[test]
fn flag_argument_input_and_their_combinations() {
    let cases: &[(&[&str], &str, &str)] = &[
        (&["-p", "by flag"], "", "by flag"),
        (&["--prompt", "by flag"], "", "by flag"),
        (&["--prompt=by flag"], "", "by flag"),
        (&["-pby flag"], "", "by flag"),
        (&["by argument"], "", "by argument"),
        (&["by", "arguments"], "", "by arguments"),
        (&["-p", "by flag", "and argument"], "", "by flag and argument"),
        (&[], "by pipe", "by pipe"),
        (&["-p"], "by pipe", "by pipe"),
        (&[], "\u{feff}by pipe", "by pipe"),
        (&["-p", ""], "by pipe", "by pipe"),
        (&["-p", "Summarise"], "some text", "some text\n\nSummarise"),
        (&["Summarise"], "some text", "some text\n\nSummarise"),
        (&["-p", "x"], "", "x"),
        (&["-p", "x"], "  \n", "x"),
        (&["-p", "two\nlines\n\n# and markdown"], "", "two\nlines\n\n# and markdown"),
        (&["-p", "ümläut 世界 🦀 \u{202e}"], "", "ümläut 世界 🦀 \u{202e}"),
        (&["-p", "x", "--", "-not-a-flag"], "", "x -not-a-flag"),
        (&["--", "--help"], "", "--help"),
    ];
    for (args, stdin, expected) in cases {
        assert_eq!(asked_with(&qwen().args(*args).stdin(stdin)), *expected, "{args:?} {stdin:?}");
    }
}

#[test]
fn a_file_as_input_is_read_and_no_input_at_all_is_fine() {
    let shell = |script: &str| {
        let program = Program::new("/bin/sh").args(["-c", script]).env("QWEN", env!("CARGO_BIN_EXE_qwen"));
        fs::write(program.cwd_path().join("prompt.md"), "from a file").unwrap();
        asked_with(&program)
    };
    assert_eq!(shell(r#"exec "$QWEN" < prompt.md"#), "from a file");
    assert_eq!(shell(r#"exec "$QWEN" -p "And this" < prompt.md"#), "from a file\n\nAnd this");
    assert_eq!(shell(r#"exec "$QWEN" -p alone < /dev/null"#), "alone");
    assert_eq!(shell(r#"exec "$QWEN" -p alone <&-"#), "alone");
    assert_eq!(shell(r#"cat prompt.md | "$QWEN" -p Summarise"#), "from a file\n\nSummarise");
}

#[test]
fn without_a_prompt_there_is_an_error_that_says_what_to_do() {
    for args in [&[][..], &["-p", ""], &["-p", "  \n "], &["--prompt="], &["", " "]] {
        for stdin in ["", "\n", "   "] {
            let mock = MockModel::start();
            let ended = qwen().with_model(&mock).args(args).stdin(stdin).run();
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(42), ""), "{args:?}: {ended:?}");
            assert!(ended.stderr.starts_with("qwen: ") && ended.stderr.contains("-p"), "{ended:?}");
            assert_eq!((ended.stderr.lines().count(), mock.requests().len()), (1, 0));
        }
    }
}

#[test]
fn a_prompt_of_a_megabyte_goes_through() {
    let long = "word ".repeat(200_000);
    assert!(asked_with(&qwen().stdin(&long)) == long);
}

#[test]
fn piped_text_is_the_final_message_as_the_model_wrote_it() {
    let replies = [
        Reply::new([
            ReplyEvent::Thought("hm".into()).step(),
            ReplyEvent::Text("**Let** me `look`.".into()).step(),
            ReplyEvent::call("c1", "list_directory", r#"{"path":"."}"#).step(),
        ]),
        Reply::text("# Done\n\n```sh\nls\n```\n"),
    ];
    let mock = MockModel::with(replies);
    let ended =
        qwen().with_model(&mock).args(["-p", "look", "--yolo", "--output-format", "text", "-q"]).run();
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stdout, "# Done\n\n```sh\nls\n```\n");
    assert_eq!(ended.stderr, "");
}

#[test]
fn a_refusal_is_told_to_people_and_the_turn_goes_on() {
    let call = r#"{"command":"touch made"}"#;
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", call), Reply::text("I may not.")]);
    let program = qwen().with_model(&mock).args(["-p", "make it"]);
    let ended = program.run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "I may not.\n"), "{ended:?}");
    assert!(ended.stderr.contains("run_shell_command"), "{ended:?}");
    assert!(!program.cwd_path().join("made").exists());
    let back = mock.requests()[1].messages().last().unwrap().clone();
    assert!(back["content"].as_str().unwrap().contains("requires permission"), "{back}");
}
