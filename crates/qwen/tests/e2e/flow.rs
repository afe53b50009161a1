//! Nothing is lost, nothing is hoarded, and a reader that goes away is a normal end.

use std::fs::File;
use std::process::Stdio;

use mock_model::process::{Program, wait_marked_gone};
use mock_model::{MockModel, Reply, ReplyEvent, Step, gate, sse};

use crate::fifo::Fifo;
use crate::harness::{asked, judged, judged_text, qwen};
use crate::stdout_kind::{STDOUT_KINDS, StdoutKind, allocated_memory, wait_stuck};
use crate::wire::{self, LITE, QWEN_CHUNK, STREAMS, Wire};

const CHUNKS: usize = 20_000;

/// A debug build that hoards nothing stays below this.
const MEMORY: usize = 16 * 1024 * 1024;

/// A stream of many pieces, held at the gate `end` before its last words.
fn flood(piece: impl Fn(usize) -> String) -> (Reply, String) {
    let pieces: Vec<String> = (0..CHUNKS).map(piece).collect();
    let steps = pieces.iter().map(|piece| sse::text(piece));
    let closing = [gate("end"), sse::finish("stop"), sse::usage(7, 20_000), sse::done()];
    (Reply::new(steps.chain(closing)).coalesced(16 * 1024), pieces.concat())
}

fn number(n: usize) -> String {
    format!("{n} ")
}

#[test]
fn twenty_thousand_pieces_reach_a_reader_that_starts_late() {
    for (stdout_kind, wires) in [(StdoutKind::Pipe, &STREAMS[..]), (StdoutKind::Socket, &[QWEN_CHUNK, LITE])]
    {
        wire::each(wires, |wire| {
            let (reply, text) = flood(number);
            let mock = MockModel::with([reply]);
            let (mut run, mut reader) = stdout_kind.start(&asked(&mock, wire));
            run.close_stdin();
            if wire.shows_pieces() {
                reader.wait_full();
            }
            mock.open("end");
            let stdout = reader.rest();
            let ended = run.wait();
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{stdout_kind:?}");
            let told = judged_text(wire, &stdout);
            assert!(told.text == text, "{stdout_kind:?}: {} of {} bytes", told.text.len(), text.len());
            assert_eq!(
                (told.end().status.as_str(), told.end().tokens),
                ("done", (7, 20_000)),
                "{stdout_kind:?}"
            );
            if wire.shows_pieces() {
                assert!(told.lines.len() >= CHUNKS, "each piece is a line: {}", told.lines.len());
            }
        });
    }
}

#[test]
fn a_reader_that_does_not_read_costs_no_memory() {
    // Forty megabytes in all: held anywhere on our side they would show.
    let (reply, _) = flood(|n| format!("{n:2048}"));
    for stdout_kind in STDOUT_KINDS {
        let mock = MockModel::with([reply.clone()]);
        let (mut run, reader) = stdout_kind.start(&asked(&mock, LITE));
        run.close_stdin();
        reader.wait_full();
        wait_stuck(&run, mock.port());
        let allocated = allocated_memory(&run);
        assert!(allocated < MEMORY, "{stdout_kind:?}: {allocated} bytes while nobody reads");
        assert!(!mock.has_reached("end"), "the model waits too, or there would be nothing to measure");
    }
}

#[test]
fn a_file_gets_it_all() {
    wire::each(&wire::all(), |wire| {
        let pieces: Vec<String> = (0..1000).map(number).collect();
        let text = pieces.concat();
        let mock =
            MockModel::with([Reply::new(pieces.into_iter().map(|piece| ReplyEvent::Text(piece).step()))]);
        let program = asked(&mock, wire);
        let path = program.home_path().join("out.jsonl");
        let mut run = program.start_onto(File::create(&path).unwrap(), Stdio::piped());
        run.close_stdin();
        assert_eq!(run.wait().code, Some(0));
        let told = judged_text(wire, &std::fs::read_to_string(path).unwrap());
        assert_eq!(told.end().status, "done");
        assert!(told.text == text, "{} of {} bytes", told.text.len(), text.len());
    });
}

#[test]
fn pieces_are_written_as_they_come() {
    wire::each(&STREAMS, |wire| {
        let reply =
            Reply::new([sse::text("one"), gate("half"), sse::text("two"), sse::finish("stop"), sse::done()]);
        let mock = MockModel::with([reply]);
        let mut run = asked(&mock, wire).start();
        run.close_stdin();
        if wire.shows_pieces() {
            // The model is held and will not say more before this has been read.
            while !run.line().unwrap().contains("one") {}
        }
        mock.open("half");
        assert_eq!(judged(wire, &run.wait()).text, "onetwo");
    });
}

/// Starts a run whose reader leaves once the model holds its answer back.
#[track_caller]
fn ends_quietly_without_reader(stdout_kind: StdoutKind, mock: &MockModel, wire: Wire) {
    let (mut run, reader) = stdout_kind.start(&asked(mock, wire));
    run.close_stdin();
    mock.reached("never");
    drop(reader);
    let ended = run.wait();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{stdout_kind:?}");
    mock.client_gone(0);
}

#[test]
fn a_reader_that_leaves_while_the_model_is_silent_is_a_quiet_end() {
    for stdout_kind in STDOUT_KINDS {
        wire::each(&STREAMS, |wire| {
            let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")])]);
            ends_quietly_without_reader(stdout_kind, &mock, wire);
        });
    }
}

#[test]
fn a_reader_that_leaves_before_the_first_token_is_a_quiet_end() {
    for stdout_kind in STDOUT_KINDS {
        let mock = MockModel::with([Reply::new([gate("never")])]);
        ends_quietly_without_reader(stdout_kind, &mock, LITE);
    }
}

#[test]
fn a_reader_that_leaves_in_a_flood_is_a_quiet_end() {
    for stdout_kind in STDOUT_KINDS {
        wire::each(&STREAMS, |wire| {
            let (reply, _) = flood(|n| format!("{n:200}"));
            let mock = MockModel::with([reply]);
            let (mut run, mut reader) = stdout_kind.start(&asked(&mock, wire));
            run.close_stdin();
            assert!(reader.line().is_some());
            drop(reader);
            let ended = run.wait();
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{stdout_kind:?}");
        });
    }
}

#[test]
fn a_reader_that_leaves_while_a_retry_is_waited_for_is_a_quiet_end() {
    let later = vec![("retry-after".to_owned(), "60".to_owned())];
    let mock = MockModel::with([Reply::new([Step::Status(503, later, "later".to_owned())])]);
    let (mut run, reader) = StdoutKind::Pipe.start(&asked(&mock, LITE));
    run.close_stdin();
    run.wait_for_stderr("retry 1 of");
    drop(reader);
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn a_reader_that_leaves_takes_the_tools_with_it() {
    for stdout_kind in STDOUT_KINDS {
        let mock = MockModel::start();
        let mark = format!("reader-leaves-{stdout_kind:?}-{}", std::process::id());
        let program = asked(&mock, LITE).arg("--yolo").env("E2E_MARK", &mark);
        let (up, hold) = (Fifo::new(&program, "up"), Fifo::new(&program, "hold"));
        let command = format!("echo up > {up}; cat {hold}");
        let call = serde_json::json!({ "command": command }).to_string();
        mock.push(Reply::call("c1", "run_shell_command", &call));
        let (mut run, reader) = stdout_kind.start(&program);
        run.close_stdin();
        up.wait_for_line();
        drop(reader);
        let ended = run.wait();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{stdout_kind:?}");
        wait_marked_gone(&mark);
    }
}

#[test]
fn head_gets_its_line_and_the_pipeline_ends() {
    let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")])]);
    let script = r#"{ "$QWEN" -p hi --output-format stream-json; echo "code $?" >&2; } | head -n 1"#;
    let program = Program::new("/bin/sh").args(["-c", script]).env("QWEN", env!("CARGO_BIN_EXE_qwen"));
    let ended = program.with_model(&mock).run();
    assert!(ended.stdout.starts_with(r#"{"type":"message_start""#), "{ended:?}");
    assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (1, "code 0\n"));
}

#[test]
fn a_worker_whose_reader_leaves_ends_quietly_at_rest_and_at_work() {
    let worker = |mock: &MockModel| {
        let flags = ["--input-format", "stream-json", "--output-format", "stream-json"];
        qwen().with_model(mock).args(flags)
    };
    for stdout_kind in STDOUT_KINDS {
        let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")])]);
        let (run, mut reader) = stdout_kind.start(&worker(&mock));
        assert!(reader.line().is_some_and(|line| line.contains("protocol_version")));
        drop(reader);
        let ended = run.wait();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{stdout_kind:?} at rest");

        let (mut run, reader) = stdout_kind.start(&worker(&mock));
        run.write_line(r#"{"messages":[{"role":"user","content":"hi"}]}"#);
        mock.reached("never");
        drop(reader);
        let ended = run.wait();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{stdout_kind:?} at work");
        mock.client_gone(0);
    }
}

#[test]
fn a_full_disk_is_an_error_that_people_are_told() {
    let check = |wire: Wire| {
        let mock = MockModel::with([Reply::text("Hi")]);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut run = asked(&mock, wire).start_onto(full, Stdio::piped());
        run.close_stdin();
        let ended = run.wait();
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.contains("standard output") && ended.stderr.contains("space"), "{ended:?}");
    };
    wire::each(&wire::all(), check);
}
