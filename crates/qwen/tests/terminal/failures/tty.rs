//! Terminals that vanish, stop, shrink or are shared, and disks that fail.

use mock_model::process::Program;
use mock_model::{MockModel, Reply, gate, sse};
use rustix::process::{Signal, WaitOptions, waitpid};

use crate::harness::{Screen, contains, qwen, started_by};

#[test]
fn suspending_gives_the_terminal_back_and_continuing_takes_it_again() {
    let mock = MockModel::with([]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("kept");
    screen.wait_for("> kept");
    screen.type_keys("\u{1a}");
    let (_, status) = waitpid(Some(screen.pid()), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped(), "{status:?}");
    screen.wait_for_raw(b"\x1b[?2004l");
    screen.assert_given_back();
    screen.assert_cooked();
    screen.signal(Signal::CONT);
    screen.wait_until("the draft again", |now| now.contents().contains("> kept") && now.bracketed_paste());
    screen.type_keys("!");
    screen.wait_for("> kept!");
}

#[test]
fn no_size_of_the_terminal_breaks_it() {
    let mock = MockModel::with([Reply::text("An answer of some length, to be wrapped.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("hello\r");
    screen.wait_for("An answer");
    for (columns, rows) in [(1, 1), (2, 1), (500, 200), (20, 5), (3, 40), (80, 24)] {
        screen.resize(columns, rows);
    }
    screen.type_keys("still here");
    screen.wait_for("still here");
}

#[test]
fn it_starts_in_the_smallest_and_in_a_huge_terminal() {
    for (columns, rows) in [(1, 1), (500, 200)] {
        let mock = MockModel::with([Reply::text("Answered.")]);
        let mut screen = Screen::sized(&qwen(&mock), columns, rows);
        screen.wait_for_raw(b"\x1b[?2004h");
        screen.type_keys("hello\r");
        mock.wait_for_request(0);
        screen.resize(80, 24);
        screen.type_keys("still here");
        screen.wait_for("> still here");
    }
}

/// An answer of about 4 MB, far more than the terminal's buffer and the queues in between.
fn long_answer(end: impl IntoIterator<Item = mock_model::Step>) -> Reply {
    let piece = format!("{}\n\n", "word ".repeat(2000));
    Reply::new((0..400).map(move |_| sse::text(&piece)).chain(end))
}

#[test]
fn a_terminal_that_takes_nothing_can_still_be_interrupted() {
    let mock = MockModel::with([long_answer([gate("never")]), Reply::text("The end.")]);
    let program = qwen(&mock);
    // The answer must fit, or the next turn would begin with a summary.
    std::fs::create_dir_all(program.qwen_home_path()).unwrap();
    std::fs::write(
        program.qwen_home_path().join("settings.json"),
        r#"{"model":{"contextWindow":100000000}}"#,
    )
    .unwrap();
    let mut screen = Screen::ready(&program);
    screen.stop_reading();
    screen.type_keys("go\r");
    mock.wait_for_request(0);
    // Nothing of the answer was read, and the key works nevertheless.
    screen.type_keys("\u{1b}");
    mock.client_gone(0);
    screen.go_on_reading();
    screen.wait_for("Interrupted.");
    screen.type_keys("again\r");
    screen.wait_for("The end.");
}

#[test]
fn a_terminal_that_stops_for_a_while_gets_the_whole_answer() {
    let end = [sse::text("The last words."), sse::finish("stop"), sse::done()];
    let mock = MockModel::with([long_answer(end)]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.stop_reading();
    screen.type_keys("go\r");
    mock.wait_for_request(0);
    screen.type_keys("typed meanwhile");
    screen.go_on_reading();
    screen.wait_for("The last words.");
    screen.wait_for("> typed meanwhile");
    let words = screen.raw.windows(5).filter(|window| window == b"word ").count();
    assert!(words >= 400 * 2000 * 9 / 10, "{words} words");
}

#[test]
fn quitting_during_a_turn_ends_it() {
    let mock = MockModel::with([Reply::new([gate("never")])]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    mock.reached("never");
    screen.type_keys("\u{4}");
    assert_eq!(screen.wait().code(), Some(0));
    screen.assert_given_back();
}

#[test]
fn without_a_model_the_session_opens_and_says_what_is_missing() {
    let mock = MockModel::with([]);
    let program = qwen(&mock).env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL");
    let mut screen = Screen::start(&program);
    screen.wait_for("qwen --model demo");
    screen.wait_for("> ");
}

#[test]
fn without_colours_or_unicode_there_are_none() {
    let mock =
        MockModel::with([Reply::call("c1", "list_directory", r#"{"path":"."}"#), Reply::text("**Bold**.")]);
    let mut screen = Screen::ready(&qwen(&mock).env("NO_COLOR", "1").env("LANG", "C"));
    screen.type_keys("look\r");
    screen.wait_for("Bold.");
    screen.wait_for("* List .");
    let has_colour = (0..24).flat_map(|row| (0..80).map(move |column| (row, column))).any(|(row, column)| {
        let cell = screen.parser.screen().cell(row, column);
        cell.is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
    });
    assert!(!has_colour && screen.contents().is_ascii(), "{}", screen.contents());
}

#[test]
fn a_terminal_that_is_closed_during_a_turn_ends_the_turn_and_the_process() {
    let mock = MockModel::with([Reply::new([sse::text("Half of "), gate("never")])]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    mock.reached("never");
    screen.wait_for("Half of");
    screen.hang_up();
    screen.wait();
    mock.client_gone(0);
}

#[test]
fn kill_9_during_the_start_leaves_no_mode_behind() {
    let mock = MockModel::with([]);
    let program = qwen(&mock);
    for pieces in 0..2 {
        let mut screen = Screen::start(&program);
        screen.read_pieces(pieces);
        screen.signal(Signal::KILL);
        screen.wait();
        if contains(&screen.raw, b"\x1b[?2004h") {
            screen.wait_for_raw(b"\x1b[?2004l");
            screen.assert_given_back();
        }
    }
}

#[test]
fn ctrl_c_during_the_start_ends_the_program_cleanly() {
    let mock = MockModel::with([]);
    let mut screen = Screen::start(&qwen(&mock));
    screen.type_until_it_ends("\u{3}");
    screen.assert_given_back();
    screen.assert_cooked();
}

#[test]
fn a_storm_of_resizes_loses_nothing() {
    let pieces = (0..60).map(|n| sse::text(&format!("Paragraph {n} of many.\n\n")));
    let end = [gate("end"), sse::text("The very end."), sse::finish("stop"), sse::done()];
    let mock = MockModel::with([Reply::new(pieces.chain(end))]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    for n in 0..300 {
        // Wide enough for a paragraph, so that each is printed as one row whatever the moment.
        screen.resize(40 + n * 7 % 160, 3 + n * 5 % 60);
    }
    mock.reached("end");
    screen.resize(80, 24);
    mock.open("end");
    screen.wait_for("The very end.");
    let written = String::from_utf8_lossy(&screen.raw).into_owned();
    for n in 0..60 {
        assert!(written.contains(&format!("Paragraph {n} of many.")), "{n}");
    }
    screen.type_keys("still here");
    screen.wait_for("> still here");
}

#[test]
fn it_runs_inside_script() {
    let mock = MockModel::with([Reply::text("Recorded.")]);
    let inside = format!("{} --model mock", env!("CARGO_BIN_EXE_qwen"));
    let program = Program::new("setsid")
        .args(["-c", "script", "-qec", &inside, "/dev/null"])
        .with_model(&mock)
        .env("TERM", "xterm-256color")
        .env("SHELL", "/bin/sh")
        .env("LANG", "C.UTF-8");
    let mut screen = Screen::ready(&program);
    screen.type_keys("say\r");
    screen.wait_for("Recorded.");
    screen.type_keys("\u{4}");
    screen.wait();
    screen.assert_given_back();
}

#[test]
fn a_second_terminal_on_the_same_session_is_refused_and_given_back() {
    let mock = MockModel::with([Reply::text("First."), Reply::text("Second.")]);
    let program = qwen(&mock);
    let mut first = Screen::ready(&program.clone().args(["--session-id", "shared"]));
    first.type_keys("one\r");
    first.wait_for("First.");
    first.wait_gone("esc interrupts");
    let mut second = Screen::start(&program.args(["--resume", "shared"]));
    assert_ne!(second.wait().code(), Some(0));
    assert!(second.contents().contains("shared"), "{}", second.contents());
    second.assert_given_back();
    second.assert_cooked();
    first.type_keys("two\r");
    first.wait_for("Second.");
}

#[test]
fn a_disk_that_takes_nothing_does_not_stop_the_conversation_silently() {
    let mock = MockModel::with([Reply::text("Answered.")]);
    let program = qwen(&mock);
    std::fs::create_dir_all(program.qwen_home_path()).unwrap();
    // A file in place of the directory fails for every user, root included.
    std::fs::write(program.qwen_home_path().join("terminal"), "").unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("hello\r");
    screen.wait_for("Answered.");
    let written = String::from_utf8_lossy(&screen.raw).into_owned();
    assert!(written.contains("cannot be"), "{}", screen.contents());
}

#[test]
fn a_log_whose_last_line_is_torn_is_gone_on_with() {
    let mock = MockModel::with([Reply::text("Kept."), Reply::text("Went on.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program.clone().args(["--session-id", "torn"]));
    screen.type_keys("one\r");
    screen.wait_for("Kept.");
    screen.wait_gone("esc interrupts");
    screen.type_keys("\u{4}");
    screen.wait();
    let log = program.qwen_home_path().join("sessions/torn.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    std::io::Write::write_all(&mut file, b"{\"at\":1,\"type\":\"turn_st").unwrap();
    let mut screen = Screen::ready(&program.args(["--resume", "torn"]));
    screen.wait_for("Kept.");
    screen.type_keys("two\r");
    screen.wait_for("Went on.");
}

#[test]
fn a_cut_connection_ends_the_turn_and_keeps_the_session_and_the_draft() {
    let mock = MockModel::with([Reply::new([sse::text("Half of "), gate("never")]), Reply::text("Went on.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program.clone().args(["--session-id", "cut"]));
    screen.type_keys("the first prompt\r");
    mock.reached("never");
    screen.wait_for("Half of");
    screen.type_keys("unsent words");
    screen.wait_for("> unsent words");
    // The other side takes nothing any more, then the kernel hangs up and takes the terminal away.
    screen.stop_reading();
    screen.signal(Signal::HUP);
    screen.hang_up();
    screen.wait();
    mock.client_gone(0);
    let mut again = Screen::ready(&program.args(["--resume", "cut"]));
    again.wait_for("> the first prompt");
    again.wait_for("> unsent words");
    again.type_keys("\r");
    again.wait_for("Went on.");
}

#[test]
fn on_a_line_of_a_kilobyte_a_second_keys_work_and_no_finished_text_is_lost() {
    let paragraphs: Vec<String> = (1..=8).map(|n| format!("Paragraph {n} is here.\n\n")).collect();
    let words = paragraphs.iter().flat_map(|text| text.split_inclusive(' ')).map(sse::text);
    let mock = MockModel::with([Reply::new(words.chain([sse::finish("stop"), sse::done()]))]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.slow_down();
    screen.type_keys("go\r");
    mock.wait_for_request(0);
    screen.type_keys("typed meanwhile");
    screen.wait_for("Paragraph 8 is here.");
    screen.wait_for("> typed meanwhile");
    let shown = screen.contents();
    let places: Vec<_> = paragraphs.iter().map(|text| shown.match_indices(text.trim()).collect()).collect();
    let is_ordered = places.windows(2).all(|pair: &[Vec<_>]| pair[0] < pair[1]);
    assert!(places.iter().all(|found| found.len() == 1) && is_ordered, "{shown}");
}

#[test]
fn a_disk_that_is_full_under_the_session_log_is_reported_and_the_conversation_goes_on() {
    let long = "word ".repeat(20_000);
    let mock = MockModel::with([Reply::text(&long), Reply::text("Still here.")]);
    // Files cannot grow beyond 32 kB, and the signal that says so is ignored, as on a full disk.
    let script = r#"trap "" XFSZ; ulimit -f 64; exec setsid -c "$0" "$@""#;
    let program = Program::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_qwen")]);
    let mut screen = Screen::ready(&started_by(program, &mock));
    screen.type_keys("go\r");
    screen.wait_for("are not stored");
    screen.wait_gone("esc interrupts");
    screen.type_keys("and now?\r");
    screen.wait_for("Still here.");
    screen.type_keys("\u{4}");
    assert_eq!(screen.wait().code(), Some(0));
}

#[test]
fn it_runs_inside_gnu_screen() {
    let Ok(version) = std::process::Command::new("screen").arg("-v").output() else {
        eprintln!("SKIPPED: GNU screen is not installed");
        return;
    };
    assert!(!version.stdout.is_empty());
    let mock = MockModel::with([Reply::text("Inside screen.")]);
    let program = Program::new("setsid").args(["-c", "screen", "-U", "-c", "/dev/null"]);
    let program = program.arg(env!("CARGO_BIN_EXE_qwen"));
    let sockets = program.home_path().join("sockets");
    std::fs::create_dir(&sockets).unwrap();
    std::fs::set_permissions(&sockets, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let mut screen = Screen::ready(&started_by(program, &mock).env("SCREENDIR", &sockets));
    screen.type_keys("hello\r");
    screen.wait_for("Inside screen.");
    screen.type_keys("/copy\r");
    screen.wait_for("asked to copy");
    screen.type_keys("\u{4}");
    screen.wait();
}
