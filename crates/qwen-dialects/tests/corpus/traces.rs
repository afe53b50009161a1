//! The traces of the corpus: what can happen in a turn, one story each.

use qwen_events::{
    AgentName, Body, CancelResult, Channel, CommandCall, CommandKind, CommandResult, CommandResultBody,
    Confirmation, ConsoleLevel, ControlReply, DiffStat, Display, EndStatus, ErrorInfo, ErrorKind, FileDiff,
    HintResult, HintStatus, HintTrigger, Json, Level, LogScope, PromptId, SessionEvent, Suggestion,
    TaskProgress, Thinking, ToolStatus,
};

use crate::builder::{Trace, call, session};

/// Each trace and its name.
pub fn all() -> Vec<(&'static str, Trace)> {
    vec![
        ("plain-answer", plain_answer()),
        ("thought", thought()),
        ("one-tool", one_tool()),
        ("parallel-tools", parallel_tools()),
        ("denied-tool", denied_tool()),
        ("tool-failure", tool_failure()),
        ("cancel-in-text", cancel_in_text()),
        ("cancel-in-tool", cancel_in_tool()),
        ("retry", retry()),
        ("broken-stream", broken_stream()),
        ("max-turns", max_turns()),
        ("max-tool-calls", max_tool_calls()),
        ("max-wall-time", max_wall_time()),
        ("max-tokens", max_tokens()),
        ("tot", tot()),
        ("got", got()),
        ("multi-byte-text", multi_byte_text()),
        ("two-megabyte-output", two_megabyte_output()),
        ("two-turns", two_turns()),
        ("sub-agent", sub_agent()),
        ("side-lines", side_lines()),
        ("claude-tools", claude_tools()),
    ]
}

fn plain_answer() -> Trace {
    let mut t = Trace::new();
    t.asks("Hello");
    t.node("think", |t| t.says(&["Hello", "! What shall", " we build?"], &[]));
    t.done();
    t
}

fn thought() -> Trace {
    let mut t = Trace::new();
    t.asks("How many primes are there below 10?");
    t.node("think", |t| {
        t.thinks_and_says(
            &["**Counting primes** ", "2, 3, 5 and 7", " are prime."],
            &["There are ", "four."],
            &[],
        );
    });
    t.done();
    t
}

fn one_tool() -> Trace {
    let read = call("call-1", "read_file", r#"{"file_path":"main.py"}"#);
    let mut t = Trace::new();
    t.asks("What does main.py do?");
    t.node("think", |t| t.says(&["Let me look."], &[&read]));
    t.node("act", |t| {
        t.allowed(&read);
        t.starts(&read);
        t.writes(&read, Channel::Stdout, "print(\"Hello\")\n");
        t.ends(&read, ToolStatus::Success, "print(\"Hello\")\n");
    });
    t.observe();
    t.node("think", |t| t.says(&["It prints ", "a greeting."], &[]));
    t.done();
    t
}

fn parallel_tools() -> Trace {
    let tests = call("call-1", "run_shell_command", r#"{"command":"make test"}"#);
    let read = call("call-2", "read_file", r#"{"file_path":"Makefile","limit":20}"#);
    let mut t = Trace::new();
    t.asks("Do the tests pass?");
    t.node("think", |t| t.says(&["I run them and read the Makefile."], &[&tests, &read]));
    t.node("act", |t| {
        t.allowed(&tests);
        t.starts(&tests);
        t.allowed(&read);
        t.starts(&read);
        t.writes(&tests, Channel::Stdout, "\u{1b}[32mok\u{1b}[0m 12 tests\n");
        t.ends(&read, ToolStatus::Success, "test:\n\tpytest\n");
        t.writes(&tests, Channel::Stderr, "1 warning\n");
        t.ends(&tests, ToolStatus::Success, "ok 12 tests\n1 warning\n");
    });
    t.observe();
    t.node("think", |t| t.says(&["All 12 tests pass."], &[]));
    t.done();
    t
}

fn denied_tool() -> Trace {
    let remove = call("call-1", "run_shell_command", r#"{"command":"rm -rf build"}"#);
    let mut t = Trace::new();
    t.asks("Clean up");
    t.node("think", |t| t.says(&["I remove the build folder."], &[&remove]));
    t.node("act", |t| {
        t.asked(&remove, "rm -rf build");
        t.ends(&remove, ToolStatus::Denied, "The call of run_shell_command was declined: keep it");
    });
    t.observe();
    t.node("think", |t| t.says(&["I left everything ", "as it is."], &[]));
    t.done();
    t
}

fn tool_failure() -> Trace {
    let tests = call("call-1", "run_shell_command", r#"{"command":"make test"}"#);
    let mut t = Trace::new();
    t.asks("Run the tests");
    t.node("think", |t| t.says(&[], &[&tests]));
    t.node("act", |t| {
        t.asked(&tests, "make test");
        t.starts(&tests);
        t.writes(&tests, Channel::Stderr, "make: *** No rule to make target 'test'.\n");
        t.ends(&tests, ToolStatus::Error, "make: *** No rule to make target 'test'.\n[exit code 1]");
    });
    t.observe();
    t.node("think", |t| t.says(&["There is no target called test."], &[]));
    t.done();
    t
}

fn cancel_in_text() -> Trace {
    let mut t = Trace::new();
    t.asks("Tell me a long story");
    t.failing_node("think", "cancelled", |t| t.breaks_off(&["Once upon", " a time"]));
    t.cancelled();
    t
}

fn cancel_in_tool() -> Trace {
    let sleep = call("call-1", "run_shell_command", r#"{"command":"sleep 600"}"#);
    let mut t = Trace::new();
    t.asks("Wait a while");
    t.node("think", |t| t.says(&["I wait."], &[&sleep]));
    t.node("act", |t| {
        t.allowed(&sleep);
        t.starts(&sleep);
        t.writes(&sleep, Channel::Stdout, "zzz\n");
        t.ends(&sleep, ToolStatus::Cancelled, "zzz\n[cancelled]");
    });
    t.observe_and_stop("cancelled");
    t.cancelled();
    t
}

fn retry() -> Trace {
    let mut t = Trace::new();
    t.asks("Hello");
    t.node("think", |t| {
        for attempt in 1..=2 {
            t.notice(SessionEvent::Retry {
                attempt,
                max_retries: 4,
                delay_ms: 500 * u64::from(attempt),
                status: Some(503),
                error: "the model's server is overloaded".into(),
            });
        }
        t.says(&["Hello again."], &[]);
    });
    t.done();
    t
}

fn broken_stream() -> Trace {
    let mut error = ErrorInfo::new(
        ErrorKind::Network,
        "stream_broken",
        "the model's stream ended without saying that it is finished",
    );
    error.retryable = true;
    let mut t = Trace::new();
    t.asks("Explain this");
    t.failing_node("think", &error.message, |t| t.breaks_off(&["The first", " thing"]));
    t.stopped(EndStatus::Error, error);
    t
}

fn max_turns() -> Trace {
    let read = call("call-1", "read_file", r#"{"file_path":"main.py"}"#);
    let error = limit(
        "max_session_turns",
        "the limit of 1 model calls for this session is reached (--max-session-turns)",
    );
    let mut t = Trace::new();
    t.asks("What does main.py do?");
    t.node("think", |t| t.says(&["Let me look."], &[&read]));
    t.node("act", |t| t.runs(&read, "print(\"Hello\")\n"));
    t.observe();
    t.failing_node("think", &error.message, |t| t.notice(SessionEvent::MaxTurns { limit: 1 }));
    t.stopped(EndStatus::MaxTurns, error);
    t
}

fn max_tool_calls() -> Trace {
    let first = call("call-1", "read_file", r#"{"file_path":"a.py"}"#);
    let second = call("call-2", "read_file", r#"{"file_path":"b.py"}"#);
    let error = limit("max_tool_calls", "the limit of 1 tool calls is reached (--max-tool-calls)");
    let mut t = Trace::new();
    t.asks("Compare a.py and b.py");
    t.node("think", |t| t.says(&["I read both."], &[&first, &second]));
    t.node("act", |t| {
        t.runs(&first, "a = 1\n");
        t.ends(&second, ToolStatus::Cancelled, "not run: the limit of tool calls is reached");
    });
    t.observe_and_stop(&error.message);
    t.stopped(EndStatus::MaxToolCalls, error);
    t
}

fn max_wall_time() -> Trace {
    let error = limit("max_wall_time", "the limit of 90 s for a turn is reached (--max-wall-time)");
    let mut t = Trace::new();
    t.asks("Think hard");
    t.failing_node("think", &error.message, |t| t.breaks_off(&["So far", " I have this"]));
    t.stopped(EndStatus::MaxWallTime, error);
    t
}

fn max_tokens() -> Trace {
    let read = call("call-1", "read_file", r#"{"file_path":"main.py"}"#);
    let error =
        limit("max_tokens_total", "the limit of 1000 tokens is reached: 1111 are spent (--max-tokens-total)");
    let mut t = Trace::new();
    t.asks("What does main.py do?");
    t.node("think", |t| t.says(&["Let me look."], &[&read]));
    t.node("act", |t| t.runs(&read, "print(\"Hello\")\n"));
    t.observe();
    t.failing_node("think", &error.message, |t| {
        t.notice(SessionEvent::MaxTokens { message: error.message.clone() });
    });
    t.stopped(EndStatus::MaxTokens, error);
    t
}

fn tot() -> Trace {
    let mut t = Trace::new().agent(AgentName::Tot);
    t.asks("4 9 10 13");
    t.node("expand", |t| {
        t.says(&["13 - 9 = 4", "\n", "10 - 4 = 6", "\n", "9 + 4 = 13"], &[]);
        t.step(Thinking::TotExpand {
            candidates: vec!["13 - 9 = 4".into(), "10 - 4 = 6".into(), "9 + 4 = 13".into()],
        });
    });
    t.node("evaluate", |t| t.step(Thinking::TotEvaluate { chosen: 2, scores: vec![0.5, 0.25, 0.75] }));
    t.node("backtrack", |t| {
        t.step(Thinking::TotBacktrack { reason: "no candidate reaches 24".into(), to_depth: 0 });
    });
    t.node("expand", |t| {
        t.says(&["10 - 4 = 6"], &[]);
        t.step(Thinking::TotExpand { candidates: vec!["10 - 4 = 6".into()] });
    });
    t.node("evaluate", |t| t.step(Thinking::TotEvaluate { chosen: 0, scores: vec![1.0] }));
    t.node("answer", |t| t.says(&["(10 - 4) * ", "(13 - 9) = 24"], &[]));
    t.done();
    t
}

fn got() -> Trace {
    let mut t = Trace::new().agent(AgentName::Got);
    t.asks("Sort ascending: 5 3 1");
    t.node("plan", |t| {
        t.step(Thinking::GotPlan {
            node_ids: vec!["split".into(), "sort-1".into(), "sort-2".into(), "merge".into()],
            edge_count: 4,
        });
    });
    t.node("solve", |t| {
        t.step(Thinking::GotNodeStart { id: "split".into() });
        t.step(Thinking::GotNodeComplete { id: "split".into(), result_summary: "5 3 | 1".into() });
        t.step(Thinking::GotNodeStart { id: "sort-1".into() });
        t.step(Thinking::GotNodeStart { id: "sort-2".into() });
        t.step(Thinking::GotExpand { id: "sort-1".into(), nodes_added: 2, edges_added: 1 });
        t.step(Thinking::GotNodeFailed { id: "sort-2".into(), error: "the model said nothing".into() });
        t.step(Thinking::GotNodeComplete { id: "sort-1".into(), result_summary: "3 5".into() });
    });
    t.node("answer", |t| t.says(&["1 3 5"], &[]));
    t.done();
    t
}

fn multi_byte_text() -> Trace {
    let write = call("call-ü", "edit", r#"{"file_path":"日本語.md","new_string":"a\"b\\c\n\t\u0007"}"#);
    let mut t = Trace::new();
    t.asks("Schreib „Grüße“ \u{1f980} auf 日本語");
    t.node("think", |t| t.says(&["Grü", "ße ", "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}"], &[&write]));
    t.node("act", |t| {
        t.allowed(&write);
        t.starts(&write);
        t.writes(&write, Channel::Stdout, "\u{1b}[1m\u{202e}שלום\u{202c}\u{1b}[0m \u{0}\u{7}\r\n");
        t.ends(&write, ToolStatus::Success, "e\u{301} \u{2028}\u{2029} \"\\\u{7f}\n");
    });
    t.observe();
    t.node("think", |t| t.says(&["完", "了\u{ff01}", " \u{1f389}\"\\/\u{8}\u{c}\n", "\u{fffd}"], &[]));
    t.done();
    t
}

fn two_megabyte_output() -> Trace {
    const PIECE: usize = 64 * 1024;
    let line = "0123456789abcdef \"quoted\" back\\slash, then text to make the line long enough\n";
    let output: String = line.repeat(2 * 1024 * 1024 / line.len() + 1);
    let list = call("call-1", "run_shell_command", r#"{"command":"cat big.log"}"#);
    let mut t = Trace::new();
    t.asks("Show me big.log");
    t.node("think", |t| t.says(&["Here it comes."], &[&list]));
    t.node("act", |t| {
        t.allowed(&list);
        t.starts(&list);
        for piece in output.as_bytes().chunks(PIECE) {
            t.writes(&list, Channel::Stdout, std::str::from_utf8(piece).unwrap());
        }
        t.ends(&list, ToolStatus::Success, &output);
    });
    t.observe();
    t.node("think", |t| t.says(&["That was ", "all of it."], &[]));
    t.done();
    t
}

fn two_turns() -> Trace {
    let read = call("call-1", "read_file", r#"{"file_path":"main.py"}"#);
    let mut t = Trace::new();
    t.asks("What does main.py do?");
    t.node("think", |t| t.says(&["Let me look."], &[&read]));
    t.node("act", |t| t.runs(&read, "print(\"Hello\")\n"));
    t.observe();
    t.node("think", |t| t.says(&["It prints a greeting."], &[]));
    t.done();
    t.asks("Thanks");
    t.node("think", |t| t.says(&["You are ", "welcome."], &[]));
    t.done();
    t
}

fn sub_agent() -> Trace {
    let agent =
        call("call-1", "agent", r#"{"description":"Find the tests","prompt":"Where are the tests?"}"#);
    let list = call("call-2", "list_directory", r#"{"path":"."}"#);
    let mut t = Trace::new();
    t.asks("Where are the tests?");
    t.node("think", |t| t.says(&["I send someone."], &[&agent]));
    t.node("act", |t| {
        t.allowed(&agent);
        t.starts(&agent);
        t.inside(&agent, |t| {
            t.node("think", |t| t.thinks_and_says(&["Look around."], &["I look."], &[&list]));
            t.node("act", |t| {
                t.allowed(&list);
                t.starts(&list);
                t.writes(&list, Channel::Stdout, "tests/\n");
                t.ends(&list, ToolStatus::Success, "tests/\n");
            });
            t.node("think", |t| t.says(&["In tests/."], &[]));
        });
        t.then(Body::ToolDisplay {
            call: agent.clone(),
            display: Box::new(Display::Task(TaskProgress {
                agent: "general".into(),
                description: "Find the tests".into(),
                status: "completed",
                tool_calls: 1,
                tokens: 2300,
                result: Some("In tests/.".into()),
            })),
        });
        t.ends(&agent, ToolStatus::Success, "In tests/.");
    });
    t.observe();
    t.node("think", |t| t.says(&["They are in tests/."], &[]));
    t.done();
    t
}

/// Everything that is about the connection or the session, before, in and between turns.
fn side_lines() -> Trace {
    let mut t = Trace::new();
    let bad_line =
        ErrorInfo::new(ErrorKind::Input, "invalid_json", "the line is not JSON: send one object a line");
    let help = CommandCall { kind: CommandKind::Slash, path: vec!["help".into()], args: "".into() };
    t.then(Body::ControlReply(Box::new(ControlReply {
        request_id: "init-1".into(),
        nested: true,
        result: Ok(Json::trusted(r#"{"commands":[]}"#)),
    })));
    t.then(Body::Heartbeat(qwen_events::Heartbeat::idle(session())));
    t.then(Body::Error(Box::new(bad_line.clone())));
    t.then(Body::HintResult(Box::new(HintResult {
        session_id: session(),
        prompt_id: PromptId::new("session-123########preview"),
        trigger: HintTrigger::Slash,
        status: HintStatus::Ok,
        suggestions: vec![Suggestion { label: "help".into(), value: "help".into(), description: None }],
        is_perfect_match: false,
        message: None,
    })));
    t.notice(SessionEvent::ModeChanged { mode: "auto-edit".into() });
    t.then(Body::CommandResult(Box::new(CommandResult {
        session_id: session(),
        prompt_id: PromptId::new("session-123########help"),
        message_uuid: None,
        message_origin: None,
        cleared_session: None,
        command: help,
        body: CommandResultBody::Message { level: Level::Info, content: "Ask away.".into() },
    })));
    t.asks("Hello");
    t.then(Body::Console {
        level: ConsoleLevel::Warn,
        scope: LogScope::System,
        text: "the cache is \u{1b}[33mcold\u{1b}[0m".into(),
    });
    t.notice(SessionEvent::Compressed { original_tokens: 12_000, new_tokens: 8_000, manual: false });
    t.node("think", |t| {
        t.notice(SessionEvent::ModelFallback {
            from: "qwen-max".into(),
            to: "qwen-coder".into(),
            reason: "overloaded".into(),
        });
        t.then(Body::Heartbeat(qwen_events::Heartbeat::idle(session())));
        t.says(&["Hel"], &[]);
        t.then(Body::Error(Box::new(bad_line.clone())));
        t.then(Body::Custom(Json::trusted(r#"{"note":[1,2]}"#)));
        t.notice(SessionEvent::LoopDetected { message: "the same call three times".into() });
        t.then(Body::ControlReply(Box::new(ControlReply {
            request_id: "req-9".into(),
            nested: false,
            result: Err(ErrorInfo::new(ErrorKind::Input, "unknown_subtype", "there is no such request")),
        })));
        t.then(Body::ControlCancel { request_id: "req-call-1".into() });
    });
    t.done();
    t.then(Body::CancelResult(Box::new(CancelResult {
        session_id: session(),
        prompt_id: None,
        cancelled: false,
        message: "There is nothing to cancel.".into(),
        reason: "escape".into(),
        request_id: Some("req-10".into()),
    })));
    t.then(Body::Error(Box::new(bad_line)));
    t
}

/// A session that uses Claude's names for tools and arguments.
fn claude_tools() -> Trace {
    let read = call("toolu-1", "Read", r#"{"file_path":"/workspace/demo/main.py"}"#);
    let edit = call(
        "toolu-2",
        "Edit",
        r#"{"file_path":"/workspace/demo/main.py","old_string":"Hello","new_string":"Goodbye"}"#,
    );
    let push = call("toolu-3", "Bash", r#"{"command":"git push","description":"Publish the change"}"#);
    let change = FileDiff {
        file_name: "main.py".into(),
        file_path: "/workspace/demo/main.py".into(),
        diff: "--- main.py\n+++ main.py\n@@ -1 +1 @@\n-print(\"Hello\")\n+print(\"Goodbye\")\n".into(),
        original: Some("print(\"Hello\")\n".into()),
        modified: "print(\"Goodbye\")\n".into(),
        stat: DiffStat { ai_added_lines: 1, ai_removed_lines: 1, ..DiffStat::default() },
    };
    let tools = &["Read", "Write", "Edit", "Glob", "Grep", "LS", "Bash", "BashOutput", "KillShell", "Task"];
    let mut t = Trace::new().tools(tools);
    t.asks("Say goodbye instead, and publish it");
    t.node("think", |t| t.says(&["Let me look."], &[&read]));
    t.node("act", |t| t.runs(&read, "print(\"Hello\")\n"));
    t.observe();
    t.node("think", |t| t.says(&[], &[&edit, &push]));
    t.node("act", |t| {
        t.asked_to_confirm(&edit, Confirmation::Edit(change));
        t.asked(&push, "git push");
        t.starts(&edit);
        t.ends(&edit, ToolStatus::Success, "main.py was changed: one replacement.");
        t.ends(&push, ToolStatus::Denied, "The call of Bash was declined: not today");
    });
    t.observe();
    t.node("think", |t| t.says(&["It says goodbye now. ", "I published nothing."], &[]));
    t.done();
    t
}

fn limit(code: &'static str, message: &str) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Limit, code, message)
}
