//! A request takes an answer only from keys that were pressed while it was visible and open.

use std::time::Duration;

use mock_model::{MockModel, Reply};

use crate::harness::{Screen, qwen};

const ASK: &str = "\u{11}";
const ESC: &str = "\u{1b}";
const CLEAR: &str = "\u{15}";

fn touch() -> Reply {
    Reply::call("c1", "run_shell_command", r#"{"command":"touch made.txt"}"#)
}

fn form() -> Reply {
    let arguments = r#"{"questions":[{"question":"Which?","options":[{"label":"red"},{"label":"blue"}]}]}"#;
    Reply::call("c1", "ask_user_question", arguments)
}

fn plan() -> Reply {
    Reply::call("c1", "exit_plan_mode", r##"{"plan":"# Plan\n\n1. look"}"##)
}

#[test]
fn text_typed_when_a_request_appears_goes_to_the_prompt() {
    let mock = MockModel::with([touch(), Reply::text("All done.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    screen.type_keys("go\r");
    screen.wait_for("? Run this command?");
    screen.pass_time(Duration::from_millis(450));
    screen.type_keys("yes but use make instead");
    screen.wait_for("> yes but use make instead");
    screen.wait_for("ctrl+q to answer");
    assert!(!program.cwd_path().join("made.txt").exists());
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn a_request_that_was_closed_stays_closed_until_the_user_opens_it() {
    for close in [ESC, ASK] {
        let mock = MockModel::with([touch(), Reply::text("All done.")]);
        let program = qwen(&mock);
        let mut screen = Screen::ready(&program);
        screen.type_keys("go\r");
        screen.wait_for("y yes, once");
        // From here on the key is known to be pressed by a user who sees the request.
        screen.pass_time(Duration::from_millis(500));
        screen.type_keys(close);
        screen.wait_for("closed, ctrl+q opens it");
        screen.pass_time(Duration::from_millis(500));
        screen.type_keys("why is this needed?");
        screen.wait_for("> why is this needed?");
        screen.type_keys(CLEAR);
        screen.wait_gone("> why is this needed?");
        // Longer than a prompt must be idle before a request opens.
        screen.pass_time(Duration::from_millis(1200));
        assert!(screen.contents().contains("closed, ctrl+q opens it"), "{}", screen.contents());
        assert_eq!(mock.requests().len(), 1);
        screen.type_keys(ASK);
        screen.wait_for("y yes, once");
        screen.type_keys("y");
        screen.wait_for("All done.");
        assert!(program.cwd_path().join("made.txt").exists());
    }
}

/// A small generator, so that a failure can be repeated by its seed.
struct Schedule(u64);

impl Schedule {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pause(&mut self, screen: &mut Screen, most: u64) {
        screen.pass_time(Duration::from_millis(self.below(most)));
    }
}

/// True while the request with its answers is on the screen.
fn is_open(screen: &Screen) -> bool {
    let text = screen.contents();
    ["y yes", "a number or enter answers"].iter().any(|mark| text.contains(mark))
}

/// Types, pastes, clears, and closes the request whenever it is visible, but never answers it.
fn annoy(screen: &mut Screen, schedule: &mut Schedule) {
    for _ in 0..8 {
        schedule.pause(screen, 900);
        if is_open(screen) {
            screen.type_keys(if schedule.below(2) == 0 { ESC } else { ASK });
            screen.pass_time(Duration::from_millis(350));
            if is_open(screen) {
                // The key came while it was opening and turned to it.
                screen.type_keys(ESC);
            }
            screen.wait_for("closed, ctrl+q opens it");
        }
        match schedule.below(4) {
            0 => screen.type_keys("y"),
            1 => screen.type_keys("\u{1b}[200~1 yes\u{1b}[201~"),
            2 => {
                for key in ["y", "e", "s", " ", "1", "a"] {
                    screen.type_keys(key);
                    schedule.pause(screen, 120);
                }
            }
            _ => screen.type_keys("1 or 2, yes"),
        }
        if schedule.below(2) == 0 {
            schedule.pause(screen, 400);
            screen.type_keys(CLEAR);
        }
    }
}

#[test]
fn random_typing_never_answers_a_request_that_is_not_visible_and_open() {
    let requests: [(fn() -> Reply, &[&str]); 3] =
        [(touch, &[]), (form, &[]), (plan, &["--approval-mode", "plan"])];
    for seed in 0..6u64 {
        let (request, arguments) = &requests[usize::try_from(seed).unwrap() % requests.len()];
        let mock = MockModel::with([request(), Reply::text("Answered.")]);
        let program = qwen(&mock).args(arguments.iter().copied());
        let mut schedule = Schedule(seed + 1);
        let mut screen = Screen::ready(&program);
        screen.type_keys("go\r");
        if schedule.below(2) == 0 {
            screen.wait_for("? ");
        }
        annoy(&mut screen, &mut schedule);
        assert_eq!(mock.requests().len(), 1, "seed {seed}:\n{}", screen.contents());
        assert!(!program.cwd_path().join("made.txt").exists(), "seed {seed}");
    }
}

#[test]
fn the_trust_question_is_not_answered_by_typing() {
    let mock = MockModel::with([Reply::text("Hello.")]);
    let program = qwen(&mock);
    let folder = program.cwd_path().join(".qwen");
    std::fs::create_dir_all(folder.join("commands")).unwrap();
    std::fs::write(folder.join("commands/deploy.md"), "deploy").unwrap();
    let mut screen = Screen::ready(&program);
    screen.wait_for("? Trust this folder?");
    // The letter comes with the key that opens the question, before anything is visible.
    screen.type_keys("\u{11}y");
    screen.wait_for("> y");
    screen.wait_for("? Trust this folder?");
    assert!(!screen.contents().contains("Trust this folder? yes"), "{}", screen.contents());
}

#[test]
fn the_next_question_of_a_form_takes_no_key_that_was_pressed_before_it_was_visible() {
    let arguments = r#"{"questions":[
        {"question":"First?","options":[{"label":"red"},{"label":"blue"}]},
        {"question":"Second?","options":[{"label":"cat"},{"label":"dog"}]}]}"#;
    let mock = MockModel::with([Reply::call("c1", "ask_user_question", arguments), Reply::text("Answered.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    screen.wait_for("? The model asks");
    screen.type_keys(ASK);
    screen.wait_for("1/2 First?");
    // The second key arrives together with the first one, before the second question is painted.
    screen.type_keys("\r\r");
    screen.wait_for("2/2 Second?");
    screen.type_keys("2");
    screen.wait_for("Answered.");
    let said = mock.wait_for_request(1).body.to_string();
    assert!(said.contains("First?: red") && said.contains("Second?: dog"), "{said}");
}
