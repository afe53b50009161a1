//! The first ten minutes of a new user: a fresh clone, no key, the demo, a first edit, rewound, resumed. The
//! page in docs is what this test saw; `QWEN_BLESS=1` writes it anew.

use std::path::Path;
use std::process::Command;

use mock_model::process::Program;

use crate::harness::{Screen, in_terminal};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/contributing/first-ten-minutes.md");

/// Wide enough for the path of a temporary directory, and high enough that nothing scrolls away.
const SIZE: (u16, u16) = (100, 60);

const VERSION: &str = concat!("qwen ", env!("CARGO_PKG_VERSION"), ",");

const FOOTER: &str = "demo · default";

/// Runs git without the user's own settings.
fn git(directory: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The binary in a fresh clone, without a key.
fn fresh_clone() -> Program {
    let program = Program::new("setsid").args(["-c", env!("CARGO_BIN_EXE_qwen")]);
    let home = program.home_path().to_owned();
    let upstream = home.join("upstream");
    std::fs::create_dir(&upstream).unwrap();
    git(&upstream, &["init", "-q", "-b", "main"]);
    std::fs::write(upstream.join("greeting.txt"), "Hello, world!\n").unwrap();
    std::fs::write(upstream.join("README.md"), "# Greetings\n").unwrap();
    git(&upstream, &["add", "."]);
    git(&upstream, &["commit", "-q", "-m", "first"]);
    git(&home, &["clone", "-q", "upstream", "project"]);
    in_terminal(program.cwd(home.join("project")))
}

/// The page as it is written.
struct Transcript {
    page: String,
    folder: String,
}

impl Transcript {
    fn say(&mut self, words: &str) {
        self.page.push_str(&format!("\n{words}\n"));
    }

    /// Adds the screen, without what differs between machines and runs.
    fn show(&mut self, screen: &Screen) {
        let text = screen.contents().replace(&format!("/{}", self.folder), "//home/ada/project");
        let text = text.replace(&self.folder, "~/project").replace(VERSION, "qwen,");
        let is_local = |line: &&str| line.contains("_API_KEY is set") || line.starts_with("A server listens");
        let lines: Vec<String> =
            text.trim_end().lines().filter(|line| !is_local(line)).map(settled).collect();
        self.page.push_str(&format!("\n```text\n{}\n```\n", lines.join("\n")));
    }
}

/// The seconds of a word such as `12s` or `12s.`.
fn seconds(word: &str) -> Option<&str> {
    let number = word.trim_end_matches('.').strip_suffix('s')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// A line without durations and counts of tokens.
fn settled(line: &str) -> String {
    let mut words: Vec<String> = line.trim_end().split(' ').map(str::to_owned).collect();
    // The duration of a call is only there if it took a second.
    if line.starts_with('●') && words.last().is_some_and(|word| seconds(word).is_some()) {
        words.pop();
    }
    for at in 0..words.len() {
        if let Some(number) = seconds(&words[at]) {
            words[at] = words[at].replace(number, "0");
        }
        if words.get(at + 1).is_some_and(|next| next == "tokens") {
            "900".clone_into(&mut words[at]);
            if let Some(share) = words.get_mut(at + 2).filter(|share| share.starts_with('(')) {
                "(0%)".clone_into(share);
            }
        }
    }
    words.join(" ")
}

/// Waits until `text` is shown and the live region is painted below it.
#[track_caller]
fn wait_for(screen: &mut Screen, text: &str) {
    screen.wait_until(&format!("{text:?} above the footer"), |now| {
        let contents = now.contents();
        let is_idle = !contents.contains("esc interrupts");
        let footer = contents.rfind(FOOTER);
        is_idle && contents.rfind(text).is_some_and(|at| footer.is_some_and(|footer| at < footer))
    });
}

#[test]
fn the_first_ten_minutes_are_as_the_page_shows_them() {
    let program = fresh_clone();
    let demo = program.clone().args(["--model", "demo"]);
    let greeting = program.cwd_path().join("greeting.txt");
    let read = || std::fs::read_to_string(&greeting).unwrap();
    let folder = program.cwd_path().display().to_string();
    let page = "# The first ten minutes\n\nWhat a new user sees, captured from a real terminal by the test `new_user`.\n";
    let mut transcript = Transcript { page: page.to_owned(), folder };
    transcript.say("## Without a key\n\nYou cloned a repository and start `qwen` in it. No key is set, so it reports what is missing and what you can do:");
    let mut screen = Screen::sized(&program, SIZE.0, SIZE.1);
    screen.wait_for("qwen --model demo");
    screen.wait_for("project · main");
    transcript.show(&screen);
    screen.type_keys("\u{4}");
    screen.wait();

    transcript.say("## The demo\n\nYou leave with Ctrl+D and take the advice, `qwen --model demo`, and type `look around`. Reading needs no approval:");
    let mut screen = Screen::sized(&demo, SIZE.0, SIZE.1);
    wait_for(&mut screen, "> ");
    screen.type_keys("look around\r");
    wait_for(&mut screen, "The tool list_directory has answered");
    transcript.show(&screen);

    transcript.say("## A first edit\n\n`edit greeting.txt replacing Hello with Hallo` changes a file, so you are asked first. You see the whole change and the rule that would allow it from now on:");
    screen.type_keys("edit greeting.txt replacing Hello with Hallo\r");
    screen.wait_for("? Change greeting.txt");
    screen.type_keys("\u{11}");
    screen.wait_for("y yes, once");
    screen.wait_for("project · main");
    transcript.show(&screen);
    assert_eq!(read(), "Hello, world!\n");
    transcript.say("You press `y`:");
    screen.type_keys("y");
    wait_for(&mut screen, "The tool edit has answered");
    transcript.show(&screen);
    assert_eq!(read(), "Hallo, world!\n");

    transcript.say("## Back again\n\nEsc Esc lists your prompts. Enter takes the last one, Down chooses \"conversation and files\", and the preview names what would change:");
    screen.type_keys("\u{1b}");
    screen.type_keys("\u{1b}");
    screen.wait_for("Go back to before a prompt");
    screen.type_keys("\r");
    screen.wait_for("Stay here");
    screen.type_keys("\u{1b}[B");
    screen.wait_for("Would be restored");
    screen.wait_for("project · main");
    transcript.show(&screen);
    transcript.say("Enter goes back. The prompt is in the composer again, and `greeting.txt` says Hello:");
    screen.type_keys("\r");
    wait_for(&mut screen, "The conversation is back before that prompt.");
    transcript.show(&screen);
    assert_eq!(read(), "Hello, world!\n");

    transcript.say("## Tomorrow\n\nCtrl+C clears the composer, Ctrl+D leaves. `qwen --model demo --continue` shows where you were, and continues:");
    screen.type_keys("\u{3}");
    screen.wait_for("Cleared; Up brings it back.");
    screen.type_keys("\u{4}");
    screen.wait();
    let mut screen = Screen::sized(&demo.arg("--continue"), SIZE.0, SIZE.1);
    wait_for(&mut screen, "> ");
    screen.type_keys("read greeting.txt\r");
    wait_for(&mut screen, "The tool read_file has answered");
    transcript.show(&screen);

    if std::env::var_os("QWEN_BLESS").is_some() {
        std::fs::write(PAGE, &transcript.page).unwrap();
    }
    let page = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(page, transcript.page, "QWEN_BLESS=1 writes the page anew");
}
