//! Commands in the background and sub-agents: what readers are told of their life, how they end, and what the
//! model hears.

use std::collections::VecDeque;
use std::fs;

use mock_model::process::{Run, Signal, wait_marked_gone};
use mock_model::{MockModel, Reply, ReplyEvent, Request, Step, gate};
use serde_json::{Value, json};

use crate::harness::qwen;
use crate::wire::{CLAUDE, QWEN, Wire};

/// A model that gives the main agent and its sub-agents replies of their own, whoever asks first.
fn model(main: impl IntoIterator<Item = Reply>, agent: impl IntoIterator<Item = Reply>) -> MockModel {
    let mock = MockModel::start();
    let [mut main, mut agent] = [main.into_iter().collect::<VecDeque<_>>(), agent.into_iter().collect()];
    mock.answer_with(move |request: &Request| {
        if is_agent(request) { &mut agent } else { &mut main }.pop_front()
    });
    mock
}

fn is_agent(request: &Request) -> bool {
    request.messages()[0]["content"].to_string().contains(HELPER)
}

/// A main agent that starts two sub-agents that explore with one tool call each, and one that only answers.
fn delegating_model() -> MockModel {
    let start = |id: &str, kind: &str| {
        let arguments = json!({"description": "dig", "prompt": "Dig!", "subagent_type": kind});
        ReplyEvent::call(id, "agent", &arguments.to_string()).step()
    };
    let calls = [start("c1", "explore"), start("c2", "explore"), start("c3", "general-purpose")];
    let mut main = VecDeque::from([Reply::new(calls), Reply::text("done")]);
    let mock = MockModel::start();
    mock.answer_with(move |request: &Request| {
        let explores = request.messages()[0]["content"].to_string().contains("You can only read");
        let has_result = request.messages().iter().any(|message| message["role"] == "tool");
        match (is_agent(request), explores && !has_result) {
            (false, _) => main.pop_front(),
            (true, true) => Some(Reply::call("d1", "list_directory", r#"{"path": "."}"#)),
            (true, false) => Some(Reply::text("dug")),
        }
    });
    mock
}

#[test]
fn the_end_of_a_turn_counts_what_each_sub_agent_spent() {
    let mock = delegating_model();
    let mut run = start(&mock, QWEN, &YOLO);
    say(&mut run, "Delegate");
    let end = run.json_until(|line| line["metadata"]["turn"].is_object()).pop().unwrap();
    let turn = &end["metadata"]["turn"];
    let spent = &turn["usage_by_agent"];
    assert_eq!(turn["model_calls"], 7);
    let explored = &spent["explore"];
    let counts = ["runs", "model_calls", "tool_calls"].map(|key| explored[key].as_u64().unwrap());
    assert_eq!(counts, [2, 4, 2], "{spent}");
    assert_eq!(spent["general-purpose"]["model_calls"], 1, "{spent}");
    assert!(explored["total_tokens"].as_u64() > Some(0), "{spent}");
    let mock = delegating_model();
    let mut run = start(&mock, CLAUDE, &YOLO);
    say(&mut run, "Delegate");
    let end = run.json_until(|line| line["type"] == "result").pop().unwrap();
    let explored = &end["agentUsage"]["explore"];
    let counts = ["runs", "modelCalls", "toolCalls"].map(|key| explored[key].as_u64().unwrap());
    assert_eq!(counts, [2, 4, 2], "{end}");
}

/// How the sub-agents are spoken to.
const HELPER: &str = "You are a sub-agent that another agent started";

fn start(mock: &MockModel, wire: Wire, flags: &[&str]) -> Run {
    let program = qwen().with_model(mock).args(["--input-format", "stream-json", "--model", "mock"]);
    program.args(wire.flags()).args(flags).start()
}

const YOLO: [&str; 2] = ["--permission-mode", "bypassPermissions"];

fn say(run: &mut Run, text: &str) {
    run.write_line(json!({"messages": [{"role": "user", "content": text}]}).to_string());
}

/// Says something and gives back the lines of its turn.
fn turn(run: &mut Run, text: &str) -> Vec<Value> {
    say(run, text);
    until(run, "result", "success")
}

fn until(run: &mut Run, kind: &str, subtype: &str) -> Vec<Value> {
    run.json_until(|line| line["type"] == kind && line["subtype"] == subtype)
}

/// The next line about a task of this kind.
fn told(run: &mut Run, subtype: &str) -> Value {
    until(run, "system", subtype).pop().unwrap()
}

fn find<'a>(lines: &'a [Value], subtype: &str) -> &'a Value {
    lines.iter().find(|line| line["subtype"] == subtype).unwrap_or_else(|| panic!("no {subtype}: {lines:#?}"))
}

fn agent(background: bool) -> Reply {
    let arguments = json!({"description": "dig", "prompt": "Dig!", "run_in_background": background});
    Reply::call("c1", "agent", &arguments.to_string())
}

fn gated(name: &str, step: Step) -> Reply {
    Reply::new([gate(name), step])
}

fn words(text: &str) -> Step {
    ReplyEvent::Text(text.to_owned()).step()
}

fn shell(id: &str, command: &str) -> Reply {
    Reply::call(id, "run_shell_command", &json!({"command": command}).to_string())
}

fn control(request: &Value) -> String {
    json!({"type": "control_request", "request_id": "r", "request": request}).to_string()
}

#[test]
fn a_command_in_the_background_is_told_of_from_its_start_to_its_end_between_turns() {
    let command = "echo out; while [ ! -e go ]; do sleep 0.01; done; exit 3";
    let arguments = json!({"command": command, "is_background": true, "description": "wait"}).to_string();
    let mock = model(
        [Reply::call("c1", "run_shell_command", &arguments), Reply::text("ok"), Reply::text("so it failed")],
        [],
    );
    let program = qwen().with_model(&mock).args(["--input-format", "stream-json", "--model", "mock"]);
    let go = program.cwd_path().join("go");
    let mut run = program.args(CLAUDE.flags()).args(YOLO).start();
    let lines = turn(&mut run, "Wait");
    let started = find(&lines, "task_started");
    for (field, value) in [
        ("task_id", "shell-1"),
        ("tool_use_id", "c1"),
        ("description", "wait"),
        ("task_type", "local_bash"),
        ("session_id", lines[0]["session_id"].as_str().unwrap()),
    ] {
        assert_eq!(started[field], value, "{started}");
    }
    assert_eq!(started["is_backgrounded"], true);
    fs::write(go, "").unwrap();
    let ended = told(&mut run, "task_notification");
    assert_eq!((&ended["task_id"], &ended["status"]), (&json!("shell-1"), &json!("failed")), "{ended}");
    assert!(ended["summary"].as_str().unwrap().contains("exit code 3"), "{ended}");
    assert_eq!(fs::read_to_string(ended["output_file"].as_str().unwrap()).unwrap(), "out\n");
    turn(&mut run, "And?");
    let asked = mock.requests().pop().unwrap().last_user_text();
    assert!(asked.starts_with("And?") && asked.contains("<system-reminder>"), "{asked}");
    assert!(asked.contains("shell-1") && asked.contains("exit code 3"), "{asked}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_running_command_is_moved_to_the_background_at_the_hosts_wish() {
    let command = "echo be''gun; while [ ! -e go ]; do sleep 0.01; done; echo over";
    let mock = model([shell("c1", command), Reply::text("It goes on."), Reply::text("So it ended.")], []);
    let program = qwen().with_model(&mock).args(["--input-format", "stream-json", "--model", "mock"]);
    let go = program.cwd_path().join("go");
    let mut run = program.args(QWEN.flags()).args(["--yolo"]).start();
    let move_it = |run: &mut Run, call: Option<&str>| {
        run.write_line(control(&json!({"subtype": "background_tasks", "tool_use_id": call})));
        run.json_until(|line| line["type"] == "control_response").pop().unwrap()["response"].clone()
    };
    // Nothing runs yet.
    assert_eq!(move_it(&mut run, None)["response"]["moved"], 0);
    say(&mut run, "Wait");
    run.json_until(|line| line.to_string().contains("begun\\n"));
    let refused = move_it(&mut run, Some("c9"));
    assert_eq!(refused["subtype"], "error", "{refused}");
    let moved = move_it(&mut run, Some("c1"));
    assert_eq!((&moved["subtype"], &moved["response"]["moved"]), (&json!("success"), &json!(1)), "{moved}");
    run.json_until(|line| !line["metadata"]["turn"].is_null());
    let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
    assert!(told.contains("moved the command to the background") && told.contains("shell-1"), "{told}");
    assert!(told.contains("begun"), "{told}");
    fs::write(go, "").unwrap();
    run.json_until(|line| line.to_string().contains("exit code 0"));
    say(&mut run, "And?");
    run.json_until(|line| !line["metadata"]["turn"].is_null());
    let asked = mock.requests()[2].last_user_text();
    assert!(asked.contains("shell-1") && asked.contains("exit code 0"), "{asked}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_sub_agent_in_the_background_works_on_after_the_turn_and_its_report_reaches_the_next_one() {
    let mock = model(
        [agent(true), Reply::text("It digs."), Reply::text("Gold!")],
        [Reply::call("l1", "list_directory", r#"{"path":"."}"#), gated("dug", words("I found gold."))],
    );
    let mut run = start(&mock, CLAUDE, &YOLO);
    let lines = turn(&mut run, "Dig");
    let started = find(&lines, "task_started");
    assert_eq!((&started["task_id"], &started["task_type"]), (&json!("agent-1"), &json!("local_agent")));
    assert_eq!(
        (&started["subagent_type"], &started["is_backgrounded"]),
        (&json!("general-purpose"), &json!(true))
    );
    let result = lines.iter().find(|line| line["type"] == "user").unwrap();
    assert!(result["message"]["content"][0]["content"].to_string().contains("agent-1"), "{result}");
    assert!(lines.iter().all(|line| line["parent_tool_use_id"].is_null()), "{lines:#?}");
    mock.reached("dug");
    mock.open("dug");
    let mut lines = until(&mut run, "system", "task_notification");
    let ended = lines.pop().unwrap();
    assert_eq!((&ended["status"], &ended["summary"]), (&json!("completed"), &json!("I found gold.")));
    assert_eq!((&ended["tool_use_id"], &ended["usage"]["tool_uses"]), (&json!("c1"), &json!(1)), "{ended}");
    assert!(ended["usage"]["total_tokens"].as_u64().unwrap() > 0 && ended["usage"]["duration_ms"].is_u64());
    let written = fs::read_to_string(ended["output_file"].as_str().unwrap()).unwrap();
    assert!(written.contains("> list_directory") && written.ends_with("I found gold.\n"), "{written}");
    let end = turn(&mut run, "And?").pop().unwrap();
    let asked = mock.requests().pop().unwrap().last_user_text();
    assert!(asked.contains("agent-1") && asked.contains("I found gold."), "{asked}");
    // What it spent after its turn is part of the running total.
    assert_eq!(end["modelUsage"]["mock"]["inputTokens"], 50, "{end}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn an_agent_of_the_host_that_is_made_for_the_background_runs_there_unasked() {
    let arguments = json!({"description": "dig", "prompt": "Dig!", "subagent_type": "digger"}).to_string();
    let mock = model(
        [Reply::call("c1", "agent", &arguments), Reply::text("It digs.")],
        [gated("dug", words("I found gold."))],
    );
    let mut run = start(&mock, CLAUDE, &YOLO);
    let digger = json!({"description": "digs", "prompt": HELPER, "background": true});
    run.write_line(control(&json!({"subtype": "initialize", "agents": {"digger": digger}})));
    let lines = turn(&mut run, "Dig");
    let started = find(&lines, "task_started");
    assert_eq!((&started["subagent_type"], &started["is_backgrounded"]), (&json!("digger"), &json!(true)));
    mock.reached("dug");
    mock.open("dug");
    let ended = told(&mut run, "task_notification");
    assert_eq!(ended["summary"], "I found gold.", "{ended}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_sub_agent_that_ends_while_the_turn_goes_on_is_heard_of_at_its_next_step_and_once() {
    let mock = model(
        [
            agent(true),
            gated("next", ReplyEvent::call("c2", "list_directory", r#"{"path":"."}"#).step()),
            Reply::text("Gold!"),
            Reply::text("Yes."),
            Reply::text("Still."),
        ],
        [Reply::text("I found gold.")],
    );
    let program = qwen().with_model(&mock).args(["--input-format", "stream-json", "--model", "mock"]);
    let program = program.args(CLAUDE.flags()).args(YOLO);
    let mut run = program.start();
    say(&mut run, "Dig");
    let ended = told(&mut run, "task_notification");
    assert_eq!(ended["status"], "completed");
    mock.reached("next");
    mock.open("next");
    until(&mut run, "result", "success");
    turn(&mut run, "Really?");
    let requests = mock.requests();
    let [heard, later] = &requests[requests.len() - 2..] else { unreachable!() };
    assert!(heard.last_user_text().contains("I found gold."), "{:?}", heard.messages());
    assert_eq!(heard.messages().last().unwrap()["role"], "user");
    assert_eq!(later.last_user_text(), "Really?");
    let times =
        later.messages().iter().filter(|message| message.to_string().contains("I found gold.")).count();
    assert_eq!(times, 1, "{:?}", later.messages());
    assert_eq!(run.finish().code, Some(0));
    // And a later process knows it as this one did.
    let mut run = program.arg("--continue").start();
    turn(&mut run, "Still?");
    let resumed = mock.requests().pop().unwrap();
    assert_eq!(resumed.messages()[1..later.messages().len()], later.messages()[1..]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_sub_agent_that_is_waited_for_is_told_of_too() {
    let mock = model(
        [agent(false), Reply::text("Gold!")],
        [Reply::call("l1", "list_directory", r#"{"path":"."}"#), Reply::text("I found gold.")],
    );
    let mut run = start(&mock, CLAUDE, &YOLO);
    let lines = turn(&mut run, "Dig");
    assert_eq!(find(&lines, "task_started")["is_backgrounded"], false);
    let progress = find(&lines, "task_progress");
    assert_eq!(
        (&progress["task_id"], &progress["tool_use_id"]),
        (&json!("agent-1"), &json!("c1")),
        "{progress}"
    );
    assert_eq!(
        (&progress["last_tool_name"], &progress["usage"]["tool_uses"]),
        (&json!("list_directory"), &json!(0))
    );
    let at = |wanted: &dyn Fn(&Value) -> bool| lines.iter().position(wanted).unwrap();
    let ended = at(&|line| line["subtype"] == "task_notification");
    let result = at(&|line| line["type"] == "user" && line["parent_tool_use_id"].is_null());
    assert!(ended < result, "{lines:#?}");
    assert_eq!((&lines[ended]["status"], &lines[ended]["output_file"]), (&json!("completed"), &json!("")));
    turn_has_no_reminder(&mock);
    assert_eq!(run.finish().code, Some(0));
}

fn turn_has_no_reminder(mock: &MockModel) {
    assert!(mock.requests().iter().all(|request| !request.body.to_string().contains("system-reminder")));
}

#[test]
fn a_sub_agent_is_stopped_at_the_hosts_wish_and_only_it() {
    for background in [true, false] {
        let mock = model(
            [agent(background), Reply::text("Well then."), Reply::text("Gone.")],
            [gated("never", words("never said"))],
        );
        let mut run = start(&mock, CLAUDE, &YOLO);
        say(&mut run, "Dig");
        mock.reached("never");
        run.write_line(control(&json!({"subtype": "stop_task", "task_id": "agent-1"})));
        let lines = run.json_until(|line| line["subtype"] == "task_notification");
        let updated = find(&lines, "task_updated");
        assert_eq!(updated["patch"]["status"], "killed", "{updated}");
        assert_eq!(lines.last().unwrap()["status"], "stopped", "{lines:#?}");
        if !background {
            let end = until(&mut run, "result", "success").pop().unwrap();
            assert_eq!(end["result"], "Well then.", "{end}");
        }
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn a_cancel_ends_the_sub_agents_in_the_background_in_a_turn_and_between_two() {
    for idle in [true, false] {
        let mock = model(
            [agent(true), Reply::text("It digs."), gated("turn", words("never said"))],
            [gated("never", words("never said"))],
        );
        let mut run = start(&mock, CLAUDE, &YOLO);
        turn(&mut run, "Dig");
        mock.reached("never");
        if !idle {
            say(&mut run, "Go on");
            mock.reached("turn");
        }
        run.write_line(control(&json!({"subtype": "interrupt"})));
        assert_eq!(told(&mut run, "task_notification")["status"], "stopped");
        run.finish();
    }
}

#[test]
fn nothing_of_a_sub_agent_in_the_background_outlives_the_session() {
    for signal in [None, Some(Signal::TERM)] {
        let mark = format!("{}.{}", 100_000 + fastrand::u32(..900_000), fastrand::u32(..));
        let sleep = shell("s1", &format!("echo > up; sleep {mark}"));
        let mock = model([agent(true), Reply::text("It digs.")], [sleep]);
        let program = qwen().with_model(&mock).args(["--input-format", "stream-json", "--model", "mock"]);
        let up = program.cwd_path().join("up");
        let mut run = program.args(CLAUDE.flags()).args(YOLO).start();
        turn(&mut run, "Dig");
        while !up.exists() {
            std::thread::yield_now();
        }
        let ended = match signal {
            None => run.finish(),
            Some(signal) => {
                run.signal(signal);
                run.wait()
            }
        };
        assert_eq!(ended.code, Some(if signal.is_some() { 143 } else { 0 }), "{ended:?}");
        wait_marked_gone(&mark);
    }
}

#[test]
fn a_reader_that_reads_nothing_between_turns_is_told_at_the_next_one() {
    let mock = model(
        [agent(true), Reply::text("It digs."), gated("end", words("Gold!"))],
        [gated("dug", words("I found gold."))],
    );
    let mut run = start(&mock, CLAUDE, &["--channel=SDK", "--approval-mode", "yolo"]);
    let lines = turn(&mut run, "Dig");
    find(&lines, "task_started");
    mock.reached("dug");
    mock.open("dug");
    // The only line between the turns is the answer; the agent may end before or after it.
    run.write_line(control(&json!({"subtype": "get_available_models"})));
    assert_eq!(run.json()["type"], "control_response");
    say(&mut run, "And?");
    assert_eq!(run.json()["subtype"], "init");
    assert_eq!(told(&mut run, "task_notification")["status"], "completed");
    mock.open("end");
    until(&mut run, "result", "success");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_sub_agent_in_the_background_asks_the_host_between_turns() {
    for behavior in ["allow", "deny"] {
        let touch = ReplyEvent::call("s1", "run_shell_command", r#"{"command":"touch hole"}"#).step();
        let mock = model(
            [agent(true), Reply::text("It digs."), Reply::text("Thanks.")],
            [gated("ask", touch), Reply::text("Dug.")],
        );
        let program = qwen().with_model(&mock).args(["--input-format", "stream-json", "--model", "mock"]);
        let hole = program.cwd_path().join("hole");
        let mut run = program.args(CLAUDE.flags()).args(["--permission-prompt-tool", "stdio"]).start();
        turn(&mut run, "Dig");
        mock.reached("ask");
        mock.open("ask");
        let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
        let request = &question["request"];
        assert_eq!((&request["subtype"], &request["agent_id"]), (&json!("can_use_tool"), &json!("c1")));
        let answer =
            json!({"behavior": behavior, "message": "no", "updatedInput": {"command": "touch hole"}});
        let response =
            json!({"subtype": "success", "request_id": question["request_id"], "response": answer});
        run.write_line(json!({"type": "control_response", "response": response}).to_string());
        assert_eq!(told(&mut run, "task_notification")["status"], "completed");
        assert_eq!(hole.exists(), behavior == "allow");
        let end = turn(&mut run, "Thanks").pop().unwrap();
        let denied = usize::from(behavior == "deny");
        assert_eq!(end["permission_denials"].as_array().unwrap().len(), denied, "{end}");
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn a_question_of_a_sub_agent_waits_for_the_next_turn_where_nobody_reads_between_two() {
    let touch = ReplyEvent::call("s1", "run_shell_command", r#"{"command":"touch hole"}"#).step();
    let mock = model(
        [agent(true), Reply::text("It digs."), gated("end", words("Thanks."))],
        [gated("ask", touch), Reply::text("Dug.")],
    );
    let mut run = start(&mock, CLAUDE, &["--channel=SDK"]);
    turn(&mut run, "Dig");
    mock.reached("ask");
    mock.open("ask");
    run.write_line(control(&json!({"subtype": "get_available_models"})));
    assert_eq!(run.json()["type"], "control_response");
    say(&mut run, "And?");
    assert_eq!(run.json()["subtype"], "init");
    let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    let response =
        json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "deny"}});
    run.write_line(json!({"type": "control_response", "response": response}).to_string());
    assert_eq!(told(&mut run, "task_notification")["status"], "completed");
    mock.open("end");
    until(&mut run, "result", "success");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_run_of_one_prompt_waits_for_its_sub_agents() {
    let mock = model([agent(true), Reply::text("Gold!")], [Reply::text("I found gold.")]);
    let program = qwen().with_model(&mock).args(["-p", "Dig", "--model", "mock", "--yolo"]);
    let ended = program.args(CLAUDE.flags()).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(find(&ended.json_lines(), "task_started")["is_backgrounded"], false);
    let heard = mock.requests().pop().unwrap();
    assert!(heard.messages().last().unwrap()["content"].to_string().contains("I found gold."));
}

#[test]
fn the_session_protocol_tells_tasks_in_the_background_as_session_events() {
    let mock = model([agent(true), Reply::text("It digs.")], [gated("dug", words("I found gold."))]);
    let mut run = start(&mock, QWEN, &["--yolo"]);
    say(&mut run, "Dig");
    let lines = run.json_until(|line| line["metadata"]["turn"].is_object());
    let event = |line: &Value, name: &str| line["event"] == name;
    let started = lines.iter().find(|line| event(line, "TaskStarted")).unwrap();
    assert!(started["message"].as_str().unwrap().contains("agent-1"), "{started}");
    mock.reached("dug");
    mock.open("dug");
    let ended = run.json_until(|line| event(line, "TaskUpdated")).pop().unwrap();
    assert!(ended["message"].as_str().unwrap().contains("agent-1 is completed: I found gold."), "{ended}");
    assert_eq!(run.finish().code, Some(0));
}
