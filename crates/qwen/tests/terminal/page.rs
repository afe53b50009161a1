//! The commands that docs/terminal.md shows open a session on a terminal.

use mock_model::process::Program;
use mock_model::{MockModel, Reply, Request};

use crate::harness::Screen;

const PAGE: &str = include_str!("../../../../docs/terminal.md");

#[test]
fn the_commands_of_the_page_open_a_session() {
    let (_, block) = PAGE.split_once("```sh terminal\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let mock = MockModel::start();
    mock.answer_with(|_: &Request| Some(Reply::text("An answer.")));
    let base = Program::new("setsid")
        .with_model(&mock)
        .env("OPENAI_MODEL", "mock")
        .env("TERM", "xterm-256color")
        .env("LANG", "C.UTF-8")
        .env_remove("LC_ALL");
    for line in block.lines() {
        let arguments = line.strip_prefix("qwen").unwrap_or_else(|| panic!("{line}: not a command"));
        let command = format!("exec '{}'{arguments}", env!("CARGO_BIN_EXE_qwen"));
        let mut screen = Screen::ready(&base.clone().args(["-c", "/bin/bash", "-c", &command]));
        if line.contains(" -i ") {
            screen.wait_for("An answer.");
            screen.wait_gone("esc interrupts");
        }
        screen.type_keys("\u{4}");
        assert_eq!(screen.wait().code(), Some(0), "{line}:\n{}", screen.contents());
    }
}
