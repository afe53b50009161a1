//! Prompts that join a turn: `"delivery":"steer"` and `"resend":true`.

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::{Host, chat, conversation, each_format, echo, ends_turn, is_error, worker};

/// A prompt that joins the running turn.
fn steer(prompt_id: &str, text: &str) -> Value {
    let mut line = chat(prompt_id, text);
    line["delivery"] = json!("steer");
    line
}

/// A prompt that is sent again.
fn resend(prompt_id: &str, text: &str) -> Value {
    let mut line = chat(prompt_id, text);
    line["resend"] = json!(true);
    line
}

/// Waits until the worker has read all that was sent: it answers in order.
fn read_all(host: &mut Host) {
    host.send(json!({"type": "heartbeat_request"}));
    host.until(|line| line["type"] == "result/heartbeat");
}

fn is_steered(line: &Value) -> bool {
    line["type"] == "x-qwen-session-event" && line["event"] == "Steered"
}

fn answer_of(line: &Value) -> &str {
    let choice = &line["choices"][0];
    choice["message"]["content"].as_str().or(choice["delta"]["content"].as_str()).unwrap_or_default()
}

/// A turn whose first model call calls a tool as soon as the gate `call` opens.
fn busy(format: &str) -> (MockModel, Host) {
    let mock = echo();
    let host = Host::with(&mock, format);
    let host = make_busy(&mock, host);
    (mock, host)
}

/// A message whose call comes when the gate `call` is opened.
fn held_call() -> Reply {
    Reply::new([
        sse::text("looking"),
        gate("call"),
        sse::call(0, "c1", "list_directory", "{}"),
        sse::finish("tool_calls"),
        sse::done(),
    ])
}

fn make_busy(mock: &MockModel, mut host: Host) -> Host {
    mock.push(held_call());
    host.send(chat("p1", "go"));
    mock.reached("call");
    host
}

/// How many turns a stream ends.
fn ends(lines: &[Value]) -> usize {
    lines.iter().filter(|line| ends_turn(line)).count()
}

#[test]
fn a_prompt_that_steers_joins_the_turn_before_its_next_model_call() {
    each_format(|format| {
        let (mock, mut host) = busy(format);
        host.send(steer("p2", "only the tests"));
        read_all(&mut host);
        mock.open("call");
        let lines = host.turn();
        let steered: Vec<&Value> = lines.iter().filter(|line| is_steered(line)).collect();
        let [steered] = steered[..] else { panic!("{lines:#?}") };
        assert_eq!(steered["prompt_id"], "p2");
        assert_eq!(steered["value"]["turn"], "p1");
        let end = lines.last().unwrap();
        assert_eq!(end["prompt_id"], "p1");
        assert_eq!(end["metadata"]["turn"]["model_calls"], 2);
        let requests = mock.requests();
        assert_eq!(requests.len(), 2);
        assert!(!conversation(&requests[0]).contains("only the tests"));
        assert_eq!(requests[1].last_user_text(), "only the tests");
        assert_eq!(ends(&host.leave()), 1, "a prompt that joined has no terminal record");
    });
}

#[test]
fn a_prompt_that_steers_during_the_last_model_call_continues_the_turn() {
    each_format(|format| {
        let mock = echo();
        mock.push(Reply::new([sse::text("done"), gate("end"), sse::finish("stop"), sse::done()]));
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "go"));
        mock.reached("end");
        host.send(steer("p2", "and this"));
        read_all(&mut host);
        mock.open("end");
        let lines = host.turn();
        assert!(lines.iter().any(is_steered), "{lines:#?}");
        let end = lines.last().unwrap();
        assert_eq!((&end["prompt_id"], &end["metadata"]["turn"]["status"]), (&json!("p1"), &json!("done")));
        assert_eq!(mock.requests()[1].last_user_text(), "and this");
        assert_eq!(ends(&host.leave()), 1);
    });
}

#[test]
fn a_prompt_that_steers_without_a_running_turn_is_an_ordinary_prompt() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(steer("p1", "hello"));
        let lines = host.turn();
        assert!(!lines.iter().any(is_steered));
        assert_eq!(lines.last().unwrap()["prompt_id"], "p1");
        host.leave();
    });
}

#[test]
fn a_prompt_whose_turn_is_cancelled_before_it_joined_gets_a_turn_of_its_own() {
    let mock = echo();
    mock.push(Reply::new([sse::text("slow"), gate("never")]));
    let mut host = Host::with(&mock, "stream-json");
    host.send(chat("p1", "go"));
    mock.reached("never");
    host.send(steer("p2", "instead"));
    read_all(&mut host);
    host.ask("interrupt", json!({}));
    let first = host.turn().pop().unwrap();
    assert_eq!(
        (&first["prompt_id"], &first["metadata"]["turn"]["status"]),
        (&json!("p1"), &json!("cancelled"))
    );
    let second = host.turn().pop().unwrap();
    assert_eq!((&second["prompt_id"], answer_of(&second)), (&json!("p2"), "<instead>"));
    host.leave();
}

#[test]
fn a_prompt_that_has_not_joined_yet_can_be_withdrawn() {
    let (mock, mut host) = busy("stream-json");
    host.send(steer("p2", "never mind"));
    host.send(json!({"type": "control/cancel", "session_id": "s", "prompt_id": "p2"}));
    assert_eq!(host.until(|line| line["type"] == "result/cancel")["status"], "ok");
    let withdrawn = host.turn().pop().unwrap();
    assert_eq!(
        (&withdrawn["prompt_id"], &withdrawn["metadata"]["turn"]["status"]),
        (&json!("p2"), &json!("cancelled"))
    );
    mock.open("call");
    assert_eq!(host.turn().pop().unwrap()["prompt_id"], "p1");
    assert!(!conversation(&mock.requests()[1]).contains("never mind"));
    host.leave();
}

#[test]
fn a_hook_that_guards_prompts_sees_one_that_steers_and_can_block_it() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    host.ask("initialize", json!({"hooks": {"UserPromptSubmit": [{"hookCallbackIds": ["h"]}]}}));
    mock.push(held_call());
    host.send(chat("p1", "go"));
    let question = host.question();
    host.answer(&question, json!({}));
    mock.reached("call");
    host.send(steer("p2", "the secret word"));
    read_all(&mut host);
    mock.open("call");
    let question = host.question();
    assert!(question.to_string().contains("the secret word"), "{question}");
    host.answer(&question, json!({"decision": "block", "reason": "not allowed"}));
    let error = host.until(is_error);
    assert_eq!(error["metadata"]["error"]["code"], "prompt_blocked");
    host.turn();
    assert!(!conversation(&mock.requests()[1]).contains("the secret word"));
    host.leave();
}

#[test]
fn a_prompt_that_joined_is_part_of_the_session_that_a_later_process_resumes() {
    let mock = echo();
    let owner = worker(&mock, "stream-json");
    let program = || worker(&mock, "stream-json").env("QWEN_HOME", owner.qwen_home_path());
    let mut host = make_busy(&mock, Host::start(program()));
    host.send(steer("p2", "only the tests"));
    read_all(&mut host);
    mock.open("call");
    host.turn();
    host.leave();
    let mut host = Host::start(program().args(["--resume", "s"]));
    host.send(chat("p3", "what did I say?"));
    host.turn();
    assert!(conversation(mock.requests().last().unwrap()).contains("only the tests"));
    host.send(chat("p2", "again"));
    assert_eq!(host.until(is_error)["metadata"]["error"]["code"], "duplicate_prompt_id");
    host.leave();
}

#[test]
fn a_prompt_that_is_sent_again_joins_its_turn() {
    each_format(|format| {
        let (mock, mut host) = busy(format);
        host.send(resend("p1", "go"));
        read_all(&mut host);
        mock.open("call");
        let lines = host.turn();
        assert!(!lines.iter().any(is_error), "{lines:#?}");
        host.send(resend("p1", "go"));
        let again = host.turn().pop().unwrap();
        assert_eq!(
            (&again["prompt_id"], &again["metadata"]["turn"]["continuation"]),
            (&json!("p1"), &json!(true))
        );
        assert_eq!(mock.requests().len(), 2, "nothing is run twice");
        host.leave();
    });
}

#[test]
fn the_end_of_a_turn_is_told_again_by_a_later_process() {
    let mock = echo();
    let owner = worker(&mock, "stream-json");
    let program = || worker(&mock, "stream-json").env("QWEN_HOME", owner.qwen_home_path());
    let mut host = Host::start(program());
    host.send(chat("p1", "hello"));
    host.turn();
    host.leave();
    let mut host = Host::start(program().args(["--resume", "s"]));
    host.send(resend("p1", "hello"));
    let again = host.turn().pop().unwrap();
    assert_eq!((&again["prompt_id"], answer_of(&again)), (&json!("p1"), "<hello>"));
    assert_eq!(mock.requests().len(), 1, "nothing is run twice");
    host.leave();
}
