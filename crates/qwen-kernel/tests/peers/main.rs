//! The hub against fake workers: programs that speak the pipes and the commit socket as a test writes it. What they
//! report, and what they write, arrives in every order that two streams allow.
#![expect(clippy::unwrap_used, reason = "what a test does may fail as it does")]

mod worker;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::Format;
use qwen_events::{ErrorInfo, SessionId};
use qwen_kernel::front::{LineWriter, QwenFront};
use qwen_kernel::ipc::{Place, Report, ReportedFact};
use qwen_kernel::process_manager::SpawnSpec;
use qwen_kernel::store::FileEvents;
use qwen_kernel::{Hub, HubParts, Identity, Pool, PoolLimits, Router, SessionOptions, WorkerKey, WorkerKeys};
use serde_json::{Value, json};
use tokio::task::LocalSet;

use self::worker::{Act, program};

/// How long a test waits for a line.
const LIMIT: Duration = Duration::from_secs(60);

struct OneProgram(PathBuf);

impl OneProgram {
    fn key(&self) -> Arc<WorkerKey> {
        let spec = SpawnSpec { binary: self.0.clone(), ..SpawnSpec::default() };
        WorkerKey { spec, ..WorkerKey::default() }.into()
    }
}

impl WorkerKeys for OneProgram {
    fn key(&mut self, _tenant: &str, _options: &SessionOptions) -> Result<Arc<WorkerKey>, ErrorInfo> {
        Ok(Self::key(self))
    }
}

/// A client of a hub whose workers do the steps.
struct Client {
    hub: Hub,
    directory: tempfile::TempDir,
    /// What workers wrote to standard error, and warnings.
    stderr: Rc<RefCell<Vec<String>>>,
    unread: Vec<u8>,
}

impl Client {
    fn start(acts: &[Act], limits: PoolLimits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let keys = OneProgram(program(directory.path(), acts));
        let front = Arc::new(QwenFront::new(Format::StreamJson));
        let writer = LineWriter::new(&*front, "fake".into(), "0");
        let pool = Pool::new(limits, keys.key(), 1);
        let session = SessionId::parse("default").unwrap();
        let router = Router::new(front, writer, Box::new(keys), pool, Identity::default(), session);
        let stderr = Rc::new(RefCell::new(Vec::new()));
        let passed_on = stderr.clone();
        let events = directory.path().join("events");
        let parts = HubParts {
            router,
            events: Some(Box::new(move |_| Ok(Box::new(FileEvents::open(&events, 64 << 20)?)))),
            session_logs: None,
            shared: None,
            turn_ends: None,
            log: None,
            worker_stderr: Some(Box::new(move |line| passed_on.borrow_mut().push(line.to_owned()))),
            write_now: None,
        };
        Self { hub: Hub::start(parts).unwrap(), directory, stderr, unread: Vec::new() }
    }

    fn send(&self, line: &Value) {
        self.hub.client_line(line.to_string().as_bytes());
    }

    fn prompt(&self, session: &str, prompt: &str) {
        self.send(&json!({"session_id": session, "prompt_id": prompt, "input": {"parts": []}}));
    }

    /// Lets a worker continue that awaits this file.
    fn allow(&self, name: &str) {
        std::fs::write(self.directory.path().join(name), "").unwrap();
    }

    /// The next line.
    async fn line(&mut self) -> Value {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            let more = tokio::time::timeout(LIMIT, self.hub.next_output()).await.unwrap();
            self.unread.extend(more.unwrap());
        }
    }

    /// The lines up to the terminal record of a turn.
    async fn lines_to_end(&mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            lines.push(self.line().await);
            if lines.last().unwrap()["metadata"]["turn"].is_object() {
                return lines;
            }
        }
    }

    fn running_turn(&self, session: &str) -> Value {
        let id = SessionId::parse(session).unwrap();
        self.hub
            .inspect(|router| router.session_status(&id))
            .map_or(Value::Null, |status| status["turn"].clone())
    }
}

fn limits() -> PoolLimits {
    PoolLimits { min_workers: 0, max_workers: 4, leash: None, ..PoolLimits::default() }
}

/// Runs a test as a client of a hub.
fn with_hub(acts: &[Act], limits: PoolLimits, test: impl AsyncFnOnce(Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(async {
        let mut client = Client::start(acts, limits);
        client.line().await;
        test(client).await;
    }));
}

fn text(text: &str) -> Act {
    Act::Line(format!(
        r#"{{"object":"chat.completion","session_id":"$SESSION","prompt_id":"$PROMPT","choices":[],"text":"{text}"}}"#
    ))
}

#[test]
fn a_report_that_is_early_applies_with_its_line() {
    let end = ReportedFact::TurnEnded {
        prompt_id: "p".to_owned(),
        status: "done".to_owned(),
        input_tokens: 0,
        output_tokens: 0,
    };
    // All reports of the turn are there before the first line.
    let acts = [
        Act::Greet,
        Act::Read,
        Act::Start,
        Act::Report(Report { at: Place::Line(4), fact: end }),
        text("first"),
        Act::Await("second".to_owned()),
        text("second"),
        Act::EndLine,
        Act::Serve,
    ];
    with_hub(&acts, limits(), async |mut client| {
        client.prompt("s", "p");
        assert_eq!(client.line().await["text"], "first");
        assert_eq!(client.running_turn("s"), "p", "the turn runs until its terminal record has passed");
        client.allow("second");
        assert_eq!(client.lines_to_end().await.len(), 2);
        assert_eq!(client.running_turn("s"), Value::Null);
    });
}

#[test]
fn a_turn_is_over_when_its_terminal_record_is_relayed_and_the_next_one_is_not() {
    let acts = [
        Act::Greet,
        Act::Read,
        Act::Read,
        Act::Start,
        Act::End { dies: false },
        Act::Start,
        text("next"),
        Act::End { dies: false },
        Act::Serve,
    ];
    with_hub(&acts, limits(), async |mut client| {
        client.prompt("s", "p1");
        client.prompt("s", "p2");
        // The fake worker knows only its last prompt, which is enough: each end is one.
        assert_eq!(client.lines_to_end().await.len(), 1);
        let lines = client.lines_to_end().await;
        assert_eq!((&lines[0]["text"], lines.len()), (&json!("next"), 2));
    });
}

#[test]
fn a_worker_that_dies_between_the_report_of_an_end_and_its_line_leaves_one_terminal_record() {
    let acts = [Act::Greet, Act::Read, Act::Start, text("half"), Act::End { dies: true }];
    with_hub(&acts, limits(), async |mut client| {
        client.prompt("s", "p");
        let end = client.lines_to_end().await.pop().unwrap();
        assert_eq!(end["metadata"]["turn"]["status"], "interrupted", "{end}");
        assert_eq!(end["metadata"]["error"]["code"], "worker_lost", "{end}");
        client.hub.client_eof();
        while let Some(more) = client.hub.next_output().await {
            assert!(!String::from_utf8_lossy(&more).contains("\"turn\":"), "one terminal record");
        }
    });
}

#[test]
fn a_worker_that_writes_lines_without_reports_is_refused_with_a_clear_error() {
    let acts = [Act::GreetWithoutReport, Act::Serve];
    with_hub(&acts, limits(), async |mut client| {
        client.prompt("s", "p");
        let end = client.lines_to_end().await.pop().unwrap();
        let error = &end["metadata"]["error"];
        assert_eq!(error["code"], "unsupported_protocol", "{end}");
        assert!(error["message"].as_str().unwrap().contains("does not report its turns"), "{end}");
    });
}

#[test]
fn a_client_that_does_not_read_holds_up_lines_and_not_signs_of_life() {
    let acts =
        [Act::Greet, Act::Read, Act::Start, Act::Lines(4000, 1000), Act::End { dies: false }, Act::Serve];
    let limits = PoolLimits {
        heartbeat_interval: Duration::from_millis(20),
        heartbeat_timeout: Duration::from_secs(5),
        ..limits()
    };
    with_hub(&acts, limits, async |mut client| {
        client.prompt("s", "p");
        // Pings and pongs continue while four megabytes wait for the client.
        let pings = || client.hub.inspect(|router| router.metrics().messages);
        let before = pings();
        while pings() < before + 20 {
            tokio::task::yield_now().await;
        }
        assert!(client.hub.inspect(|router| router.output().len()) < 1024 * 1024, "lines wait in the pipe");
        let lines = client.lines_to_end().await;
        assert_eq!(lines.len(), 4001);
        assert_eq!(lines[4000]["metadata"]["turn"]["status"], "done");
    });
}

#[test]
fn a_worker_that_ignores_pings_is_killed_as_stalled() {
    let acts = [Act::IgnorePings, Act::Greet, Act::Read, Act::Start, text("half"), Act::Serve];
    let limits = PoolLimits {
        heartbeat_interval: Duration::from_millis(20),
        heartbeat_timeout: Duration::from_millis(50),
        ..limits()
    };
    with_hub(&acts, limits, async |mut client| {
        client.prompt("s", "p");
        let end = client.lines_to_end().await.pop().unwrap();
        assert_eq!(end["metadata"]["error"]["worker"]["reason"], "stalled", "{end}");
    });
}

#[test]
fn a_warning_of_several_workers_is_passed_on_once() {
    let warned = ReportedFact::Warned { code: "settings".to_owned(), text: "the file is ignored".to_owned() };
    let acts = [
        Act::Report(Report { at: Place::Anywhere, fact: warned }),
        Act::Greet,
        Act::Read,
        Act::Start,
        Act::End { dies: false },
        Act::Serve,
    ];
    with_hub(&acts, limits(), async |mut client| {
        for session in ["a", "b", "c"] {
            client.prompt(session, session);
            client.lines_to_end().await;
        }
        assert_eq!(*client.stderr.borrow(), ["qwen: the file is ignored"]);
    });
}

#[test]
fn a_refused_line_of_input_is_that_prompt_and_no_other() {
    let refused = ReportedFact::Refused {
        input: Some(2),
        prompt_id: None,
        code: "wrong_type".to_owned(),
        message: "no".to_owned(),
    };
    let error = r#"{"object":"chat.completion","choices":[],"metadata":{"error":{"code":"wrong_type"}}}"#;
    let acts = [
        Act::Greet,
        Act::Read,
        Act::Start,
        Act::Read,
        Act::Report(Report { at: Place::Line(2), fact: refused }),
        Act::Line(error.to_owned()),
        Act::Await("end".to_owned()),
        Act::End { dies: false },
        Act::Serve,
    ];
    with_hub(&acts, limits(), async |mut client| {
        client.prompt("s", "p");
        client.prompt("s", "p");
        assert_eq!(client.line().await["metadata"]["error"]["code"], "wrong_type");
        assert_eq!(client.running_turn("s"), "p", "the first prompt runs");
        client.allow("end");
        client.lines_to_end().await;
        client.hub.client_eof();
        while client.hub.next_output().await.is_some() {}
        assert_eq!(client.hub.exit_code(), Some(0), "no prompt is left");
    });
}

#[test]
fn a_client_that_attaches_gets_a_large_history_in_pages_and_new_lines_after_it() {
    const HISTORY: usize = 8000;
    let acts = [
        Act::Greet,
        Act::Read,
        Act::Start,
        Act::Lines(HISTORY, 1000),
        Act::Await("more".to_owned()),
        Act::Lines(500, 1000),
        Act::End { dies: false },
        Act::Serve,
    ];
    with_hub(&acts, limits(), async |mut client| {
        client.send(
            &json!({"type": "control_request", "request_id": "i", "subtype": "initialize", "sequence": true}),
        );
        client.line().await;
        client.prompt("s", "p");
        for number in 1..=HISTORY {
            assert_eq!(client.line().await["seq"], number);
        }
        let attach = |id: &str, after: usize| json!({"type": "control_request", "request_id": id, "subtype": "attach", "session_id": "s", "after": after});
        client.send(&attach("a", 0));
        client.allow("more");
        // Another client's request waits for the first one.
        client.send(&attach("b", HISTORY - 10));
        let mut largest = 0;
        let mut next = 1;
        let mut answers = 0;
        let total = HISTORY + 501;
        while answers < 2 || next <= total {
            largest = largest.max(client.hub.inspect(|router| router.output().len()));
            let line = client.line().await;
            match line["request_id"].as_str() {
                Some("a") => assert_eq!(line["response"]["result"]["after"], 0),
                Some("b") => next = HISTORY - 9,
                _ => {
                    assert_eq!(line["seq"], next, "a gap or a repeat");
                    next += 1;
                }
            }
            answers += usize::from(line["request_id"].is_string());
        }
        assert!(largest < 512 * 1024, "{largest} bytes of {} MB were in memory", HISTORY / 1000);
    });
}
