//! The commands of `docs/serve.md`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use mock_model::{MockModel, Reply};

use crate::harness::*;

#[test]
fn the_commands_of_the_page_follow_a_prompt() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md")).unwrap();
    let block = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let mock = MockModel::with([Reply::text("I looked around.")]);
    let server = serve(&mock);
    let script = block.replace("127.0.0.1:4170", &server.host());
    let mut shell = Command::new("bash")
        .args(["-c", &script])
        .env("TOKEN", TOKEN)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("I looked around.")));
    // The last command follows the session until it is ended.
    server.run.signal(mock_model::process::Signal::TERM);
    lines.for_each(drop);
    shell.wait().unwrap();
}
