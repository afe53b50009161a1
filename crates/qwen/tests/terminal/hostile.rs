//! Text of others never drives the terminal.

use mock_model::{MockModel, Reply};

use crate::harness::{Screen, contains, qwen};

const EVIL: &str = "\\u001b]0;owned\\u0007\\u001b]52;c;b3duZWQ=\\u0007\\u001b[?1049h\\u001b[2J\\u009b21t";

#[test]
fn escapes_of_models_tools_names_and_branches_are_removed() {
    let text: String = serde_json::from_str(&format!("\"before {EVIL} after\"")).unwrap();
    let call = Reply::call("c1", "run_shell_command", r#"{"command":"cat evil.txt; ls"}"#);
    let mock = MockModel::with([call, Reply::text(&text)]);
    let program = qwen(&mock).arg("--yolo");
    std::fs::write(program.cwd_path().join("evil.txt"), &text).unwrap();
    std::fs::write(program.cwd_path().join("na\u{1b}]0;owned\u{7}me.txt"), "x").unwrap();
    std::fs::create_dir(program.cwd_path().join(".git")).unwrap();
    std::fs::write(program.cwd_path().join(".git/HEAD"), "ref: refs/heads/\u{1b}]0;owned\u{7}main\n")
        .unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("look @na\r");
    screen.wait_for("before  after");
    screen.wait_gone("esc interrupts");
    let forbidden: [&[u8]; 6] =
        [b"\x1b]0;", b"\x1b]52", b"\x1b[?1049h", b"\x1b[2J", b"\xc2\x9b", b"owned\x07"];
    for bytes in forbidden {
        assert!(!contains(&screen.raw, bytes), "{} was written", bytes.escape_ascii());
    }
}
