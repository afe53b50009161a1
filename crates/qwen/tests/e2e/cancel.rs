//! Ctrl-C and SIGTERM, whatever they find us doing: the terminal record, its status, the exit code; the
//! model's connection closed and the tools gone.

use std::fs;
use std::thread;
use std::time::Instant;

use mock_model::process::{Run, Signal, wait_marked_gone};
use mock_model::{MockModel, Reply, Step, WAIT_LIMIT, anthropic, gate, sse};
use serde_json::json;

use crate::fifo::Fifo;
use crate::harness::{asked, judged, judged_text, qwen};
use crate::stdout_kind::{STDOUT_KINDS, StdoutKind, sleeps};
use crate::stream_content::StreamContent;
use crate::wire::{self, LITE, QWEN_CHUNK, Wire};

/// A signal and what it comes to.
const SIGNALS: [(Signal, &str, i32); 2] =
    [(Signal::INT, "cancelled", 130), (Signal::TERM, "interrupted", 143)];

/// Sends the signal and checks how the run ends.
#[track_caller]
fn end(wire: Wire, run: Run, (signal, status, code): (Signal, &str, i32)) -> StreamContent {
    run.signal(signal);
    let ended = run.wait();
    assert_eq!(ended.code, Some(code), "{signal:?}: {ended:?}");
    let told = judged(wire, &ended);
    assert_eq!(told.end().status, status, "{signal:?}");
    told
}

#[test]
fn in_the_middle_of_the_text() {
    wire::each(&wire::all(), |wire| {
        for signal in SIGNALS {
            let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")])]);
            let mut run = asked(&mock, wire).start();
            run.close_stdin();
            mock.reached("never");
            if wire.shows_pieces() {
                while !run.line().unwrap().contains("one") {}
            }
            let told = end(wire, run, signal);
            mock.client_gone(0);
            if wire.shows_pieces() {
                assert_eq!(told.text, "one", "what came is kept");
            }
            assert_eq!(mock.requests().len(), 1);
        }
    });
}

#[test]
fn the_record_counts_what_the_server_told_of_a_cut_off_answer_and_else_estimates() {
    let told_early = |mock: &MockModel| {
        mock.push(Reply::new([
            anthropic::message_start(42),
            anthropic::text_start(0),
            anthropic::text(0, "one"),
            gate("never"),
        ]));
        vec![("ANTHROPIC_BASE_URL", mock.origin()), ("ANTHROPIC_API_KEY", "k".to_owned())]
    };
    let counted_along = |mock: &MockModel| {
        let usage = json!({ "prompt_tokens": 42, "completion_tokens": 1, "total_tokens": 43 });
        mock.push(Reply::new([sse::usage_object(&usage), sse::text("one"), gate("never")]));
        vec![("OPENAI_BASE_URL", mock.base_url()), ("OPENAI_API_KEY", "k".to_owned())]
    };
    let never_told = |mock: &MockModel| {
        mock.push(Reply::new([sse::text("one"), gate("never")]));
        vec![("OPENAI_BASE_URL", mock.base_url()), ("OPENAI_API_KEY", "k".to_owned())]
    };
    type Server = fn(&MockModel) -> Vec<(&'static str, String)>;
    let servers: [(Server, bool); 3] = [(told_early, true), (counted_along, true), (never_told, false)];
    // The core dialect's `user_cancelled` has no place for it.
    let wires = wire::all().into_iter().filter(|wire| wire.shows_pieces() && wire.dialect != "core");
    wire::each(&wires.collect::<Vec<_>>(), |wire| {
        for (server, told) in servers {
            let mock = MockModel::start();
            let program =
                server(&mock).into_iter().fold(qwen(), |program, (name, value)| program.env(name, value));
            let mut run = program.args(["-p", "Hello", "--model", "mock"]).args(wire.flags()).start();
            run.close_stdin();
            while !run.line().unwrap().contains("one") {}
            let (read, written) = end(wire, run, SIGNALS[0]).end().tokens;
            if told {
                assert_eq!((read, written), (42, 1));
            } else {
                assert!(read > 10 && written == 1, "{read} {written}");
            }
        }
    });
}

#[test]
fn before_the_first_token() {
    wire::each(&wire::all(), |wire| {
        for (signal, reply) in SIGNALS.into_iter().flat_map(|signal| {
            [(signal, Reply::new([gate("never")])), (signal, Reply::new([Step::Head, gate("never")]))]
        }) {
            let mock = MockModel::with([reply]);
            let mut run = asked(&mock, wire).start();
            run.close_stdin();
            mock.reached("never");
            let told = end(wire, run, signal);
            mock.client_gone(0);
            assert_eq!(told.text, "");
        }
    });
}

#[test]
fn while_a_tool_runs() {
    wire::each(&wire::all(), |wire| {
        for signal in SIGNALS {
            let mock = MockModel::start();
            let mark = format!("in-a-tool-{}-{wire:?}-{signal:?}", std::process::id());
            let program = asked(&mock, wire).arg("--yolo").env("E2E_MARK", &mark);
            let (up, hold) = (Fifo::new(&program, "up"), Fifo::new(&program, "hold"));
            // A grandchild of its own session too: it must not outlive the run either.
            let command = format!("setsid sh -c 'cat {hold}' & echo up > {up}; cat {hold}");
            let call = serde_json::json!({ "command": command }).to_string();
            mock.push(Reply::call("c1", "run_shell_command", &call));
            let mut run = program.start();
            run.close_stdin();
            up.wait_for_line();
            let told = end(wire, run, signal);
            wait_marked_gone(&mark);
            assert_eq!(mock.requests().len(), 1, "no further model call");
            if !(wire.is_document() && matches!(wire.dialect, "qwen" | "claude")) {
                let [result] = &told.results[..] else { panic!("not one result: {told:#?}") };
                assert!(result.is_error && result.id == "c1", "{result:?}");
            }
        }
    });
}

#[test]
fn while_a_retry_is_waited_for() {
    wire::each(&wire::all(), |wire| {
        for signal in SIGNALS {
            let later = vec![("retry-after".to_owned(), "60".to_owned())];
            let mock = MockModel::with([Reply::new([Step::Status(503, later, "later".to_owned())])]);
            let mut run = asked(&mock, wire).start();
            run.close_stdin();
            run.wait_for_stderr("retry 1 of");
            end(wire, run, signal);
            assert_eq!(mock.requests().len(), 1);
        }
    });
}

#[test]
fn while_the_prompt_is_waited_for() {
    wire::each(&wire::all(), |wire| {
        for signal in SIGNALS {
            let mock = MockModel::start();
            let mut run = qwen().with_model(&mock).args(wire.flags()).start();
            run.write_line("the first line of a prompt that never ends");
            wait_until_heard(&run);
            end(wire, run, signal);
            assert_eq!(mock.requests().len(), 0);
        }
    });
}

/// Waits until the program has handlers for both signals and has gone on to wait for its input: one that
/// comes while the handlers are being installed is heard by nobody. Nothing tells when that is so, hence the
/// asking.
#[track_caller]
fn wait_until_heard(run: &Run) {
    let deadline = Instant::now() + WAIT_LIMIT;
    let both = 1 << (Signal::INT.as_raw() - 1) | 1 << (Signal::TERM.as_raw() - 1);
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(mask.trim(), 16).unwrap() & both == both && sleeps(run) {
            return;
        }
        assert!(Instant::now() < deadline, "signals are not heard");
        thread::yield_now();
    }
}

#[test]
fn while_nobody_reads() {
    // More than fits anywhere, so that the terminal record cannot be written: the exit code still tells.
    let flood = || Reply::new((0..5000).map(|n| sse::text(&format!("{n:1000}"))).chain([gate("never")]));
    thread::scope(|scope| {
        for stdout_kind in STDOUT_KINDS {
            for (signal, _, code) in SIGNALS {
                scope.spawn(move || {
                    let mock = MockModel::with([flood()]);
                    let (mut run, reader) = stdout_kind.start(&asked(&mock, QWEN_CHUNK));
                    run.close_stdin();
                    reader.wait_full();
                    run.signal(signal);
                    let ended = run.wait();
                    assert_eq!(ended.code, Some(code), "{stdout_kind:?} {signal:?}: {ended:?}");
                    mock.client_gone(0);
                });
            }
        }
    });
}

#[test]
fn a_reader_that_comes_back_in_time_still_gets_the_record() {
    let flood = Reply::new((0..5000).map(|n| sse::text(&format!("{n:100}"))).chain([gate("never")]));
    let mock = MockModel::with([flood]);
    let (mut run, mut reader) = StdoutKind::Pipe.start(&asked(&mock, LITE));
    run.close_stdin();
    reader.wait_full();
    run.signal(Signal::TERM);
    let told = judged_text(LITE, &reader.rest());
    assert_eq!((run.wait().code, told.end().status.as_str()), (Some(143), "interrupted"));
}

#[test]
fn the_first_signal_lets_go_of_the_model_and_the_second_of_the_reader() {
    let flood = Reply::new((0..5000).map(|n| sse::text(&format!("{n:1000}"))).chain([gate("never")]));
    let mock = MockModel::with([flood]);
    let (mut run, reader) = StdoutKind::Pipe.start(&asked(&mock, LITE));
    run.close_stdin();
    reader.wait_full();
    run.signal(Signal::INT);
    mock.client_gone(0);
    let output = fs::read_link(format!("/proc/{}/fd/1", run.pid()));
    assert!(output.is_ok(), "the model is let go at once, not only with all else when we end");
    run.signal(Signal::INT);
    assert_eq!(run.wait().code, Some(130));
}

#[test]
fn in_text_mode_the_words_so_far_are_kept_and_people_are_told() {
    for (signal, status, code) in SIGNALS {
        let mock = MockModel::with([Reply::new([sse::text("one\n"), gate("never")])]);
        let mut run = qwen().with_model(&mock).args(["-p", "hi", "--debug"]).start();
        run.close_stdin();
        run.wait_for_stderr(r#""content":"one"#);
        run.signal(signal);
        let ended = run.wait();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), "one\n"));
        assert!(ended.stderr.contains(&format!("\nqwen: {status}\n")), "{ended:?}");
    }
}
