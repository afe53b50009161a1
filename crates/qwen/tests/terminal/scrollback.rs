//! The terminal's own scrollback, read back from tmux.

use std::process::Command;
use std::time::Instant;

use mock_model::process::Program;
use mock_model::{MockModel, Reply, WAIT_LIMIT, gate, sse};

use crate::harness::qwen;

/// A tmux server of its own, ended with the test.
struct Tmux {
    socket: std::path::PathBuf,
}

impl Tmux {
    fn start(program: &Program, columns: u16, rows: u16) -> Self {
        let socket = program.home_path().join("tmux.socket");
        let binary = env!("CARGO_BIN_EXE_qwen");
        let script = format!("for n in 1 2 3 4 5; do echo shell line $n; done; {binary} --model mock");
        let started = Command::new("tmux")
            .args(["-S"])
            .arg(&socket)
            .args(["-f", "/dev/null", "new-session", "-d"])
            .args(["-x", &columns.to_string(), "-y", &rows.to_string()])
            .args(["sh", "-c", &script])
            .envs(program.command().get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env_remove("TMUX")
            .current_dir(program.cwd_path())
            .status()
            .unwrap_or_else(|error| panic!("tmux is needed for this test (apt-get install tmux): {error}"));
        assert!(started.success());
        let tmux = Self { socket };
        tmux.run(&["set-option", "-g", "history-limit", "50000"]);
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let done =
            Command::new("tmux").arg("-S").arg(&self.socket).args(args).env_remove("TMUX").output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    }

    /// Everything that can be scrolled to, wrapped lines joined.
    fn all(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    #[track_caller]
    fn wait_for_row(&self, row: &str) {
        let until = Instant::now() + WAIT_LIMIT;
        while !self.run(&["capture-pane", "-p"]).lines().any(|line| line == row) {
            assert!(Instant::now() < until, "no row {row:?}:\n{}", self.run(&["capture-pane", "-p"]));
        }
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        let until = Instant::now() + WAIT_LIMIT;
        while !self.all().contains(text) {
            assert!(Instant::now() < until, "{text:?} was not shown:\n{}", self.all());
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

fn block_text(block: usize) -> String {
    let words = "some words that wrap at a narrow width ".repeat(3);
    format!("block {block:03} begins {words}ends")
}

/// What of a block fits into the first row of a terminal so wide.
fn first_row(block: usize, columns: usize) -> String {
    let mut row = String::new();
    for word in block_text(block).split(' ') {
        if !row.is_empty() && row.len() + 1 + word.len() > columns - 1 {
            break;
        }
        row = if row.is_empty() { word.to_owned() } else { format!("{row} {word}") };
    }
    row
}

#[test]
fn two_hundred_blocks_through_five_resizes_are_each_there_once_and_in_order() {
    let mut steps = Vec::new();
    for block in 0..200 {
        if block % 40 == 20 {
            steps.push(gate(&format!("resize {block}")));
        }
        steps.push(sse::text(&format!("{}\n\n", block_text(block))));
    }
    steps.extend([sse::finish("stop"), sse::done()]);
    let mock = MockModel::with([Reply::new(steps)]);
    let program = qwen(&mock);
    let tmux = Tmux::start(&program, 80, 24);
    tmux.wait_for("> ");
    tmux.run(&["send-keys", "go", "Enter"]);
    for (at, (columns, rows)) in [
        (20, ("60", "20")),
        (60, ("100", "30")),
        (100, ("40", "12")),
        (140, ("80", "24")),
        (180, ("54", "15")),
    ] {
        let gate = format!("resize {at}");
        mock.reached(&gate);
        tmux.wait_for(&format!("block {:03} begins", at - 1));
        tmux.run(&["resize-window", "-x", columns, "-y", rows]);
        // tmux tells the program a moment later; until then both disagree about the width.
        tmux.wait_for_row(&first_row(at - 1, columns.parse().unwrap()));
        mock.open(&gate);
    }
    tmux.wait_for("block 199 begins");
    let until = Instant::now() + WAIT_LIMIT;
    while tmux.all().contains("esc interrupts") {
        assert!(Instant::now() < until, "the turn does not end");
    }
    let all = tmux.all();
    let mut last = 0;
    for block in 0..200 {
        let text = format!("block {block:03} begins");
        let found: Vec<usize> = all.match_indices(&text).map(|(at, _)| at).collect();
        assert_eq!(found.len(), 1, "{text} is there {} times:\n{all}", found.len());
        assert!(found[0] >= last, "{text} is out of order");
        last = found[0];
    }
    assert_eq!(
        all.matches("width ends").count() + all.matches("width\nends").count(),
        200,
        "every block is whole:\n{all}"
    );
    for n in 1..=5 {
        assert!(all.contains(&format!("shell line {n}")), "what was there before is gone:\n{all}");
    }
}

#[test]
fn code_and_commands_are_single_lines_that_equal_their_source() {
    let code = "let very_long_line = \"a string that is much longer than the forty columns of this terminal\"; // end";
    let command = "echo a-rather-long-command-line-that-does-not-fit-into-forty-columns | cat";
    let mock = MockModel::with([
        Reply::call("c1", "run_shell_command", &serde_json::json!({ "command": command }).to_string()),
        Reply::text(&format!("Here:\n\n```rust\n{code}\n\tindented();\n```\n\nThat was it.")),
    ]);
    let program = qwen(&mock);
    std::fs::create_dir_all(program.qwen_home_path()).unwrap();
    std::fs::write(program.qwen_home_path().join("settings.json"), r#"{"tools":{"approvalMode":"yolo"}}"#)
        .unwrap();
    let tmux = Tmux::start(&program, 40, 20);
    tmux.wait_for("> ");
    tmux.run(&["send-keys", "go", "Enter"]);
    tmux.wait_for("That was it.");
    let all = tmux.all();
    let lines: Vec<&str> = all.lines().collect();
    for line in [code, command, "a-rather-long-command-line-that-does-not-fit-into-forty-columns"] {
        assert!(lines.contains(&line), "{line}:\n{all}");
    }
}
