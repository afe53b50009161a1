//! Everything that can go wrong between us and the model, in every wire: one clear error, one terminal
//! record, the exit code of DESIGN, no hang.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use mock_model::process::{Ended, Program};
use mock_model::{MockModel, Reply, ReplyEvent, Step, sse};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use crate::harness::{asked, judged, qwen};
use crate::stream_content::StreamContent;
use crate::wire::{self, Wire};

/// Something that goes wrong, and what is told about it.
struct Fault {
    name: &'static str,
    replies: Vec<Reply>,
    /// What must be said of it; nothing where the turn is done all the same.
    says: &'static [&'static str],
    code: i32,
    requests: usize,
    retries: usize,
    /// The text that the model gave before, which must not be lost.
    text: &'static str,
}

impl Fault {
    /// A fault that ends the turn at once, with exit code 1.
    fn new(
        name: &'static str,
        replies: impl IntoIterator<Item = Reply>,
        says: &'static [&'static str],
    ) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        Self { name, requests: replies.len(), replies, says, code: 1, retries: 0, text: "" }
    }

    fn code(self, code: i32) -> Self {
        Self { code, ..self }
    }

    /// It is tried again before each request but the first.
    fn retried(self) -> Self {
        Self { retries: self.requests - 1, ..self }
    }

    fn after(self, text: &'static str) -> Self {
        Self { text, ..self }
    }

    /// It costs no more than a retry: the turn is done.
    fn harmless(self, text: &'static str) -> Self {
        Self { says: &[], code: 0, text, ..self }
    }

    #[track_caller]
    fn check(&self, wire: Wire) {
        let mock = MockModel::with(self.replies.iter().cloned());
        let ended = asked(&mock, wire).run();
        assert_eq!(mock.requests().len(), self.requests, "{}: model calls", self.name);
        self.check_run(wire, &ended);
    }

    #[track_caller]
    fn check_run(&self, wire: Wire, ended: &Ended) -> StreamContent {
        let name = self.name;
        assert_eq!(ended.code, Some(self.code), "{name}: exit code; {ended:?}");
        let told = judged(wire, ended);
        let end = told.end();
        assert_eq!(told.errors, Vec::<String>::new(), "{name}: one error only");
        let error = end.error.clone().unwrap_or_default();
        let expected = if self.says.is_empty() { "done" } else { "error" };
        assert_eq!(end.status, expected, "{name}: {error}");
        let notices = usize::from(!self.says.is_empty()) + self.retries;
        assert_eq!(ended.stderr.lines().count(), notices, "{name}: {:?}", ended.stderr);
        for word in self.says {
            assert!(error.contains(word), "{name}: {word:?} is not in {error:?}");
            assert!(ended.stderr.contains(word), "{name}: people are not told {word:?}: {:?}", ended.stderr);
        }
        if !wire.is_document() {
            assert_eq!(told.text, self.text, "{name}");
            // The flat dialect has no line for it; its readers find it on standard error.
            if wire.dialect != "claude-lite" {
                assert_eq!(told.retries, self.retries, "{name}: retries announced; {:#?}", told.lines);
            }
        }
        assert_eq!(ended.stderr.matches("retry ").count(), self.retries, "{name}: {:?}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{name}: {:?}", ended.stderr);
        told
    }
}

fn status(code: u16, body: &str) -> Reply {
    Reply::new([Step::Status(code, vec![("retry-after".to_owned(), "0".to_owned())], body.to_owned())])
}

fn raw(bytes: impl AsRef<[u8]>) -> Reply {
    Reply::new([sse::raw(bytes)])
}

fn page(content_type: &str, body: &str) -> Reply {
    Reply::new([Step::Status(
        200,
        vec![("content-type".to_owned(), content_type.to_owned())],
        body.to_owned(),
    )])
}

/// One `data:` line of ten megabytes, whose text is `text` over and over.
fn ten_megabytes(text: &str) -> String {
    text.repeat(10 * 1024 * 1024 / text.len())
}

#[test]
fn what_a_server_refuses_is_one_error_and_one_terminal_record() {
    let unknown = r#"{"error":{"message":"The model `mock` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#;
    let faults = [
        Fault::new("unknown model", [status(404, unknown)], &["404", "mock", "does not exist"]),
        Fault::new("wrong path", [status(404, "<h1>nothing here</h1>")], &["404", "base URL"]),
        Fault::new(
            "wrong key",
            [status(401, r#"{"error":{"message":"no such key"}}"#)],
            &["401", "no such key"],
        )
        .code(41),
        Fault::new(
            "key without rights",
            [status(403, r#"{"error":"not for you"}"#)],
            &["403", "not for you"],
        )
        .code(41),
        Fault::new("bad request", [status(400, r#"{"error":{"message":"too hot"}}"#)], &["400", "too hot"]),
        Fault::new("too long", [status(413, "")], &["413"]),
        Fault::new(
            "no quota",
            [status(429, r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#)],
            &["429", "pay"],
        ),
        Fault::new("moved", [status(302, "")], &["302", "base URL"]),
        Fault::new("down", (0..5).map(|_| status(500, "it broke")), &["500", "it broke", "5 attempts"])
            .retried(),
        Fault::new("bad gateway", (0..5).map(|_| status(502, "<html>nginx</html>")), &["502"]).retried(),
        Fault::new("down and up again", [status(503, "busy"), Reply::text("Hi")], &[])
            .retried()
            .harmless("Hi"),
        Fault::new("slow down", [status(429, ""), status(429, ""), Reply::text("Hi")], &[])
            .retried()
            .harmless("Hi"),
    ];
    wire::each(&wire::all(), |wire| faults.iter().for_each(|fault| fault.check(wire)));
}

#[test]
fn what_is_no_answer_is_one_error_and_one_terminal_record() {
    let faults = [
        Fault::new(
            "a page",
            [page("text/html", "<!doctype html><title>Log in</title>")],
            &["Log in", "base URL"],
        ),
        Fault::new(
            "a page named a stream",
            [page("text/event-stream", "<html>Log in</html>")],
            &["Log in", "base URL"],
        ),
        Fault::new(
            "a page named JSON",
            [page("application/json", "<html>Log in</html>")],
            &["Log in", "base URL"],
        ),
        Fault::new("garbage", [raw("data: {not json}\n\n")], &["not json"]),
        Fault::new("garbage after text", [Reply::new([sse::text("Hel"), sse::raw("data: {\n\n")])], &[])
            .after("Hel"),
        Fault::new("a list", [raw("data: [1,2,3]\n\n")], &[]),
        Fault::new("a text", [raw("data: \"hello\"\n\n")], &[]),
        Fault::new("a number", [raw("data: 42\n\n")], &[]),
        Fault::new("a list as the body", [page("application/json", "[1,2,3]")], &[]),
        Fault::new("a text as the body", [page("application/json", "\"hello\"")], &[]),
        Fault::new(
            "invalid UTF-8",
            [raw(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}\n\n")],
            &["UTF-8"],
        ),
        Fault::new(
            "an error in the stream",
            [Reply::new([sse::text("Hel"), sse::error("out of memory")])],
            &["out of memory"],
        )
        .after("Hel"),
        Fault::new(
            "cut off after text",
            [Reply::new([sse::text("Hel"), Step::Close])],
            &["before its answer was complete"],
        )
        .after("Hel"),
        Fault::new("ended after text", [Reply::new([sse::text("Hel")])], &["before its answer was complete"])
            .after("Hel"),
        Fault::new(
            "half an event",
            [Reply::new([sse::text("Hel"), sse::raw("data: {\"choi"), Step::Close])],
            &[],
        )
        .after("Hel"),
        Fault::new(
            "ten megabytes of garbage",
            [raw(format!("data: {}\n\n", ten_megabytes("garbage ")))],
            &[],
        ),
    ];
    wire::each(&wire::all(), |wire| {
        for fault in &faults {
            // What has no words of its own here must still be an error.
            let says = if fault.says.is_empty() { &["model"] } else { fault.says };
            Fault { says, replies: fault.replies.clone(), ..*fault }.check(wire);
        }
    });
}

/// A port that nobody listens on, and that nobody else can get while the socket is held.
fn unreachable_port() -> (OwnedFd, u16) {
    let held = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&held, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = SocketAddrV4::try_from(getsockname(&held).unwrap()).unwrap().port();
    (held, port)
}

#[test]
fn a_server_that_never_says_a_word_is_tried_again_and_given_up() {
    let silent =
        |name, reply: Reply| Fault::new(name, (0..5).map(|_| reply.clone()), &["5 attempts"]).retried();
    let hangs_up = Reply::new([Step::Head, Step::Close]);
    let faults = [
        silent("hangs up", hangs_up),
        silent("empty stream", raw("")),
        silent("only a comment", Reply::new([sse::comment("hi")])),
    ];
    let (_reserved, nobody) = unreachable_port();
    let unreachable = Fault::new("unreachable", [], &["base URL", "5 attempts"]);
    let unreachable = Fault { retries: 4, ..unreachable };
    std::thread::scope(|scope| {
        for fault in &faults {
            scope.spawn(|| wire::each(&wire::all(), |wire| fault.check(wire)));
        }
        wire::each(&wire::all(), |wire| {
            let program = asked(&MockModel::start(), wire)
                .env("OPENAI_BASE_URL", format!("http://127.0.0.1:{nobody}/v1"));
            unreachable.check_run(wire, &program.run());
        });
    });
}

#[test]
fn a_line_of_ten_megabytes_is_an_answer_like_any_other() {
    let padding = ten_megabytes("0123456789abcdef");
    let line =
        format!(r#"data: {{"x_padding":"{padding}","choices":[{{"index":0,"delta":{{"content":"Hi"}}}}]}}"#);
    let reply = Reply::new([sse::raw(line + "\n\n"), sse::finish("stop"), sse::done()]);
    wire::each(&wire::all(), |wire| {
        let mock = MockModel::with([reply.clone()]);
        let ended = asked(&mock, wire).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let told = judged(wire, &ended);
        assert_eq!((told.end().status.as_str(), told.text.as_str()), ("done", "Hi"));
    });
}

#[test]
fn ten_megabytes_of_text_in_one_piece_arrive() {
    let text = ten_megabytes("0123456789abcdef");
    for wire in [wire::LITE, wire::QWEN, wire::CLAUDE] {
        let mock = MockModel::with([Reply::text(&text)]);
        let ended = asked(&mock, wire).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let told = StreamContent::read(wire, &ended.stdout);
        assert_eq!(told.end().status, "done");
        assert!(told.text == text, "{} bytes of text, not {}", told.text.len(), text.len());
    }
}

#[test]
fn a_call_that_makes_no_sense_is_the_tools_failure_and_the_turn_goes_on() {
    let calls = [
        ("not JSON", "read_file", "{\"file_path\": "),
        ("a list", "read_file", "[1]"),
        ("a text", "read_file", "\"a.txt\""),
        ("null", "read_file", "null"),
        ("two objects", "read_file", "{} {}"),
        ("no such tool", "fly_to_the_moon", "{}"),
        ("missing argument", "read_file", "{}"),
        ("wrong type", "read_file", "{\"file_path\":7}"),
    ];
    wire::each(&wire::all(), |wire| {
        for (name, tool, arguments) in calls {
            let mock = MockModel::with([Reply::call("c1", tool, arguments), Reply::text("Sorry")]);
            let ended = asked(&mock, wire).run();
            assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
            let told = judged(wire, &ended);
            assert_eq!((told.end().status.as_str(), told.errors.len()), ("done", 0), "{name}");
            let back = mock.requests()[1].messages().last().unwrap().clone();
            assert_eq!(
                (&back["role"], &back["tool_call_id"]),
                (&"tool".into(), &"c1".into()),
                "{name}: {back}"
            );
            if wire.is_document() && matches!(wire.dialect, "qwen" | "claude") {
                continue;
            }
            let [result] = &told.results[..] else { panic!("{name}: not one result: {told:#?}") };
            assert!(result.is_error && result.id == "c1", "{name}: {result:?}");
            assert_eq!(told.calls.len(), 1, "{name}: {told:#?}");
            assert_eq!(told.calls[0].name, tool, "{name}");
        }
    });
}

#[test]
fn a_run_that_cannot_start_is_one_error_record_and_its_exit_code() {
    type Start = fn(Wire) -> Program;
    let starts: [(&str, Start, i32, &str); 9] = [
        ("no prompt", |wire| qwen().args(["-m", "demo"]).args(wire.flags()), 42, "prompt"),
        ("an empty prompt", |wire| qwen().args(["-m", "demo", "-p", ""]).args(wire.flags()), 42, "prompt"),
        ("no model", |wire| qwen().args(["-p", "x"]).args(wire.flags()), 41, "OPENAI_API_KEY"),
        ("a bad session id", |wire| demo_run(wire, &["--session-id", "../x"]), 42, "../x"),
        ("a missing file", |wire| demo_run(wire, &["--system-prompt-file", "gone.md"]), 42, "gone.md"),
        (
            "a missing script",
            |wire| qwen().args(["-p", "x", "-m", "script:gone.json"]).args(wire.flags()),
            42,
            "gone.json",
        ),
        ("a bad mode", |wire| demo_run(wire, &["--approval-mode", "wild"]), 2, "wild"),
        ("a bad time", |wire| demo_run(wire, &["--max-wall-time", "soon"]), 2, "soon"),
        ("a bad flag", |wire| demo_run(wire, &["--no-such-flag"]), 2, "--no-such-flag"),
    ];
    wire::each(&wire::all(), |wire| {
        for (name, start, code, says) in starts {
            let ended = start(wire).run();
            assert_eq!(ended.code, Some(code), "{name}: {ended:?}");
            let told = judged(wire, &ended);
            let end = told.end();
            assert_eq!(told.errors, Vec::<String>::new(), "{name}");
            assert!(end.error.as_ref().is_some_and(|error| error.contains(says)), "{name}: {end:?}");
            assert!(ended.stderr.contains(says), "{name}: people are not told: {:?}", ended.stderr);
        }
    });
}

fn demo_run(wire: Wire, more: &[&str]) -> Program {
    qwen().args(["-p", "x", "-m", "demo"]).args(wire.flags()).args(more)
}

#[test]
fn an_answer_that_the_model_cut_off_is_done_and_says_so() {
    let cut =
        || Reply::new([ReplyEvent::Text("Hel".into()).step(), ReplyEvent::Finish("length".into()).step()]);
    wire::each(&wire::all(), |wire| {
        let mock = MockModel::with([cut()]);
        let ended = asked(&mock, wire).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = judged(wire, &ended);
        // Hosts of Claude read an answer that was cut off as a failure.
        let status = if wire.dialect == "claude" { "error" } else { "done" };
        assert_eq!(told.end().status, status);
        let last = told.lines.last().unwrap();
        let said = match wire.dialect {
            "qwen" => last["choices"][0]["finish_reason"] == "length",
            "claude" | "claude-lite" => last["stop_reason"] == "max_tokens",
            "core" => last["value"]["reason"] == "MAX_TOKENS",
            _ => true,
        };
        assert!(said, "{last}");
    });
}
