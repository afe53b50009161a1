//! The command line itself: help, version, completions, and what is wrong with it.

use crate::harness::qwen;

#[test]
fn help_goes_to_standard_output_and_shows_the_way_in() {
    for flag in ["--help", "-h"] {
        let ended = qwen().arg(flag).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        for word in
            ["Usage: qwen", "--output-format", "--input-format", "--dialect", "stream-json", "--model demo"]
        {
            assert!(ended.stdout.contains(word), "{flag}: {word}\n{}", ended.stdout);
        }
    }
}

#[test]
fn the_version_is_one_line() {
    for flag in ["--version", "-V"] {
        let ended = qwen().arg(flag).run();
        let line = format!("qwen {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!((ended.code, ended.stdout, ended.stderr.as_str()), (Some(0), line, ""));
    }
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = qwen().args(["completions", shell]).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{shell}");
        assert!(ended.stdout.contains("output-format"), "{shell}");
    }
    let ended = qwen().args(["completions", "tcsh"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("tcsh") && ended.stderr.contains("bash"), "{ended:?}");
}

#[test]
fn a_bad_flag_is_told_to_people_and_to_programs() {
    let cases: &[(&[&str], &str)] = &[
        (&["--no-such-flag"], "--no-such-flag"),
        (&["--output-formt", "stream-json"], "--output-format"),
        (&["--max-turns", "many"], "many"),
        (&["--max-tokens-total", "-5"], "-5"),
        (&["--input-format", "xml"], "xml"),
        (&["--approval-mode", "wild"], "wild"),
        (&["--max-wall-time", "1 parsec"], "parsec"),
        (&["--auth-type", "magic"], "magic"),
        (&["--agent", "smith"], "smith"),
    ];
    let formats = [None, Some("text"), Some("json"), Some("stream-json"), Some("stream-chunk-json")];
    for (args, says) in cases {
        for format in formats {
            let mut program = qwen().args(["-p", "x"]).args(*args);
            if let Some(format) = format {
                program = program.args(["--dialect", "qwen", "--output-format", format]);
            }
            let ended = program.run();
            assert_eq!(ended.code, Some(2), "{args:?} {format:?}: {ended:?}");
            assert!(ended.stderr.starts_with("qwen: ") && ended.stderr.contains(says), "{args:?}: {ended:?}");
            if matches!(format, None | Some("text")) && !args.contains(&"stream-json") {
                assert_eq!(ended.stdout, "", "{args:?} {format:?}");
            } else {
                let lines = ended.json_lines();
                let [line] = &lines[..] else { panic!("{args:?} {format:?}: not one line: {ended:?}") };
                let error = &line["error"];
                assert!(error["message"].as_str().is_some_and(|message| message.contains(says)), "{line}");
                assert_eq!(error["type"], "invalid_request_error", "{line}");
                assert!(error["code"].is_string() && error.get("param").is_some(), "{line}");
            }
        }
    }
}

#[test]
fn a_bad_format_is_an_error_that_lists_the_formats() {
    let ended = qwen().args(["-p", "x", "--output-format", "yaml"]).run();
    assert_eq!(ended.code, Some(2));
    for word in ["yaml", "text", "json", "stream-json", "stream-chunk-json"] {
        assert!(ended.stderr.contains(word), "{word}: {ended:?}");
    }
}
