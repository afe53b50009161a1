//! Ruling 22: standard input of a one-shot run is read to its end.

use mock_model::{MockModel, Reply};

use crate::harness::{qwen, shell};

#[test]
fn a_slow_producer_in_a_pipeline_is_waited_for_with_a_notice() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let program = shell(r#"{ read go < ready; echo late; } | "$QWEN" -p "And this" --model mock"#);
    let ready = program.cwd_path().join("ready");
    let made = std::process::Command::new("mkfifo").arg(&ready).status().unwrap();
    assert!(made.success());
    let run = program.with_model(&mock).start();
    run.wait_for_stderr("reading standard input until it ends");
    std::fs::write(&ready, "go\n").unwrap();
    let ended = run.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hi\n"), "{ended:?}");
    assert_eq!(mock.requests()[0].last_user_text(), "late\n\n\nAnd this");
}

#[test]
fn a_producer_that_pauses_after_its_first_line_is_read_to_its_end() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let program =
        shell(r#"{ echo first; read go < ready; echo second; } | "$QWEN" -p "And this" --model mock"#);
    let ready = program.cwd_path().join("ready");
    assert!(std::process::Command::new("mkfifo").arg(&ready).status().unwrap().success());
    let run = program.with_model(&mock).start();
    run.wait_for_stderr("reading standard input until it ends");
    std::fs::write(&ready, "go\n").unwrap();
    assert_eq!(run.wait().code, Some(0));
    assert_eq!(mock.requests()[0].last_user_text(), "first\nsecond\n\n\nAnd this");
}

#[test]
fn a_silent_pipe_of_the_calling_program_is_given_up_with_a_warning() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let ended = qwen().with_model(&mock).args(["-p", "alone"]).start().wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hi\n"), "{ended:?}");
    assert!(
        ended.stderr.contains("warning: standard input is an open pipe of the calling program"),
        "{ended:?}"
    );
    assert_eq!(mock.requests()[0].last_user_text(), "alone");
}

#[test]
fn no_stdin_skips_standard_input() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let ended = qwen().with_model(&mock).args(["-p", "alone", "--no-stdin", "-q"]).stdin("ignored").run();
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "Hi\n", ""));
    assert_eq!(mock.requests()[0].last_user_text(), "alone");
}

#[test]
fn input_that_is_not_utf_8_is_converted_with_a_notice() {
    let cases: [(&[u8], &str, &str); 3] = [
        (b"caf\xe9 \xff!", "caf\u{fffd} \u{fffd}!\n\nx", "2 invalid sequences were replaced"),
        (b"\xff\xfeh\0i\0", "hi\n\nx", "converted from UTF-16"),
        (b"\xfe\xff\0h\0i", "hi\n\nx", "converted from UTF-16"),
    ];
    for (input, prompt, notice) in cases {
        let mock = MockModel::with([Reply::text("Hi")]);
        let ended = qwen().with_model(&mock).args(["-p", "x"]).stdin(input).run();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hi\n"), "{ended:?}");
        assert!(ended.stderr.contains(notice), "{ended:?}");
        assert_eq!(mock.requests()[0].last_user_text(), prompt);
    }
}

#[test]
fn arguments_and_prompt_files_that_are_not_utf_8_are_converted_with_a_notice() {
    let mock = MockModel::with([Reply::text("Hi"), Reply::text("Hi")]);
    let script = r#"printf 'caf\351 rules\n' > rules.txt
        "$QWEN" -q -p "$(printf 'caf\351')" --model mock --no-stdin
        "$QWEN" -q -p x --model mock --no-stdin --system-prompt-file rules.txt"#;
    let ended = shell(script).with_model(&mock).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hi\nHi\n"), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains("replaced by U+FFFD")), "{ended:?}");
    let requests = mock.requests();
    assert_eq!(requests[0].last_user_text(), "caf\u{fffd}");
    assert!(requests[1].messages()[0]["content"].as_str().unwrap().contains("caf\u{fffd} rules"));
}

#[test]
fn escape_sequences_in_piped_input_do_not_reach_the_model() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let piped = "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}and\u{9b}2J \u{1b}plain\ttext\r\n";
    let ended = qwen().with_model(&mock).args(["-p", "x", "-q"]).stdin(piped).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(mock.requests()[0].last_user_text(), "red and plain\ttext\r\n\n\nx");
}
