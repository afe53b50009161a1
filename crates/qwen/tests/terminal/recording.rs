//! The recording in the README: a repair in the terminal, by the real binary with real tools. `make recording`
//! draws it anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mock_model::process::Program;

use crate::drawing::{Palette, cells, opening};
use crate::harness::{Screen, in_terminal};

const COLUMNS: u16 = 88;
const ROWS: u16 = 30;
const PALETTE: Palette = Palette::DARK;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The screens of a recording, each with the seconds for which it is shown.
#[derive(Default)]
struct Recording {
    frames: Vec<(String, f32)>,
}

impl Recording {
    fn show(&mut self, screen: &Screen, seconds: f32) {
        self.frames.push((cells(screen.parser.screen(), ROWS, PALETTE), seconds));
    }

    /// Types text a few letters at a time.
    fn type_visibly(&mut self, screen: &mut Screen, text: &str) {
        let mut typed = String::new();
        for letter in text.chars() {
            typed.push(letter);
            screen.type_keys(&letter.to_string());
            if typed.len().is_multiple_of(3) || typed.len() == text.len() {
                screen.wait_for(&typed);
                self.show(screen, 0.15);
            }
        }
    }

    /// An SVG that shows one frame after the other. Where animations are unwanted it shows the last.
    fn svg(&self) -> String {
        let total: f32 = self.frames.iter().map(|(_, seconds)| seconds).sum();
        let mut out = opening(ROWS, COLUMNS, PALETTE);
        out.push_str("<style>\ng{visibility:hidden}g:last-of-type{visibility:visible}\n");
        out.push_str("@media (prefers-reduced-motion:no-preference){\n");
        let mut begin = 0.0;
        for (number, (_, seconds)) in self.frames.iter().enumerate() {
            let (from, to) = (begin / total * 100.0, (begin + seconds) / total * 100.0);
            let _ = writeln!(
                out,
                "#f{number}{{animation:f{number} {total:.1}s step-end infinite}}\
                 @keyframes f{number}{{0%{{visibility:{}}}{from:.2}%{{visibility:visible}}{to:.2}%{{visibility:hidden}}}}",
                if number == 0 { "visible" } else { "hidden" }
            );
            begin += seconds;
        }
        out.push_str("}\n</style>\n");
        for (number, (frame, _)) in self.frames.iter().enumerate() {
            let _ = write!(out, "<g id=\"f{number}\">\n{frame}</g>\n");
        }
        out.push_str("</svg>\n");
        out
    }
}

#[test]
fn a_repair_in_the_terminal_asks_edits_and_ends_with_a_passing_test() {
    let example = root().join("examples/repair");
    let program = in_terminal(
        Program::new("setsid")
            .args(["-c", env!("CARGO_BIN_EXE_qwen")])
            .args(["--model", &format!("script:{}", example.join("model.json").display())]),
    );
    let project = program.home_path().join("slug");
    std::fs::create_dir(&project).unwrap();
    for name in ["slug.py", "test_slug.py"] {
        std::fs::copy(example.join(name), project.join(name)).unwrap();
    }
    let program = program.cwd(&project);
    let mut screen = Screen::sized(&program, COLUMNS, ROWS);
    screen.wait_for("> ");
    let mut recording = Recording::default();
    recording.show(&screen, 1.0);
    recording.type_visibly(&mut screen, "Fix the failing test");
    recording.show(&screen, 0.6);
    screen.type_keys("\r");
    for (question, answer) in [("Run this command?", "s"), ("Change slug.py", "y")] {
        screen.wait_for(question);
        // If no key was pressed for a while, it opens by itself and takes no key at first.
        if screen.contents().contains("y yes, once") {
            screen.type_keys("\u{1b}");
        }
        screen.wait_for("ctrl+q");
        recording.show(&screen, 1.0);
        screen.type_keys("\u{11}");
        screen.wait_for("y yes, once");
        recording.show(&screen, 3.0);
        screen.type_keys(answer);
        screen.wait_gone("y yes, once");
        recording.show(&screen, 0.8);
    }
    screen.wait_for("The test passes now.");
    screen.wait_for("> ");
    recording.show(&screen, 5.0);
    assert!(std::fs::read_to_string(project.join("slug.py")).unwrap().contains("isalnum"));
    if std::env::var_os("QWEN_BLESS").is_some() {
        std::fs::write(root().join("docs/pictures/repair.svg"), recording.svg()).unwrap();
    }
}
