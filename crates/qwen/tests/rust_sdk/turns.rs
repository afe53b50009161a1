//! Turns: streams, several prompts, steering, commands, limits, structured output.

use mock_model::{Reply, gate, sse};
use qwen_kernel::{
    AgentError, AgentManager, AgentOptions, MessageKind, SessionAgent, SessionLimits, SessionOptions,
    TurnOptions,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::harness::{Harness, TOUCH, all, wait};

const LIST: &str = r#"{"path":"."}"#;

#[test]
fn a_session_streams_turns_and_remembers() {
    let harness = Harness::new([Reply::text("one"), Reply::text("two")]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let messages = all(session.stream("first").unwrap()).await;
        let last = messages.last().unwrap();
        assert_eq!(last.kind(), MessageKind::Result);
        assert_eq!(last["metadata"]["turn"]["status"], "done");
        let result = session.run("second").await.unwrap();
        assert_eq!((result.text.as_str(), result.status.as_str(), result.ok()), ("two", "done", true));
        assert!(result.usage.total_tokens > 0);
        assert_eq!(session.last_result(), Some(&result));
        session.close().await.unwrap();
        assert_eq!(manager.status().await.unwrap()["sessions"], 0);
        manager.close().await;
    });
    assert!(harness.said(1).iter().any(|text| text.contains("first")), "{:?}", harness.said(1));
}

#[test]
fn text_arrives_in_pieces_that_joined_are_the_text_of_the_result() {
    let pieces = ["Once ", "upon ", "a time."];
    let harness = Harness::new([Reply::new(pieces.map(sse::text))]);
    wait(async {
        let options = AgentOptions { include_partial_messages: true, ..harness.options() };
        let manager = AgentManager::start(options).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        let messages = all(session.stream("tell").unwrap()).await;
        let read: Vec<&str> =
            messages.iter().filter_map(|m| m.text()).filter(|text| !text.is_empty()).collect();
        assert_eq!(read, pieces);
        assert_eq!(session.last_result().unwrap().text, pieces.concat());
        manager.close().await;
    });
}

#[test]
fn prompts_of_a_channel_each_get_their_result() {
    let harness = Harness::new([Reply::text("1"), Reply::text("2"), Reply::text("3")]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let (prompts, input) = mpsc::channel(4);
        let mut prompts = Some(prompts);
        prompts.as_ref().unwrap().send("one".to_owned()).await.unwrap();
        let mut stream = session.stream_input(input);
        let mut results = Vec::new();
        while let Some(message) = stream.next().await.unwrap() {
            if message.kind() != MessageKind::Result {
                continue;
            }
            results.push(message.text().unwrap().to_owned());
            // The input waits for the first result; then it sends the rest and ends.
            if let Some(prompts) = prompts.take() {
                prompts.send("two".to_owned()).await.unwrap();
                prompts.send("three".to_owned()).await.unwrap();
            }
        }
        assert_eq!(results, ["1", "2", "3"]);
        drop(stream);
        manager.close().await;
    });
}

#[test]
fn steer_joins_the_running_turn() {
    let held =
        [sse::call(0, "c1", "list_directory", LIST), gate("held"), sse::finish("tool_calls"), sse::done()];
    let harness = Harness::new([Reply::new(held), Reply::text("Done both."), Reply::text("Next.")]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let mut stream = session.stream("Do one thing").unwrap();
        harness.mock.reached("held");
        let steering = stream.steer("Do another thing too").unwrap();
        // The worker has read the prompt before it answers this.
        stream.session().request("mcp_status", json!({})).await.unwrap();
        harness.mock.open("held");
        let messages = all(stream).await;
        let steered =
            |m: &&qwen_kernel::AgentMessage| m["event"] == "Steered" && m.prompt_id() == Some(&*steering);
        assert_eq!(messages.iter().filter(steered).count(), 1);
        assert_eq!(session.last_result().unwrap().text, "Done both.");
        assert!(harness.said(1).iter().any(|text| text.contains("another thing")));
        assert_eq!(session.run("And now?").await.unwrap().text, "Next.");
        manager.close().await;
    });
}

#[test]
fn a_slash_command_has_a_result_and_calls_no_model() {
    let harness = Harness::new([]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let help = session.run("/help").await.unwrap();
        assert_eq!(help.status, "done");
        assert!(help.text.contains("Commands"), "{}", help.text);
        let unknown = session.run("/no-such-command").await.unwrap();
        assert_eq!(unknown.status, "error");
        assert!(unknown.error.unwrap().message.contains("no-such-command"));
        manager.close().await;
    });
    assert!(harness.mock.requests().is_empty());
}

#[test]
fn a_turn_can_be_interrupted_and_the_session_goes_on() {
    let harness = Harness::new([Reply::new([sse::text("Half"), gate("held")]), Reply::text("Whole.")]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let stream = session.stream("go").unwrap();
        harness.mock.reached("held");
        stream.interrupt().unwrap();
        let result = stream.result().await.unwrap();
        assert_eq!((result.status.as_str(), result.text.as_str()), ("cancelled", "Half"));
        assert!(result.usage.total_tokens > 0, "usage is there on abort too");
        assert_eq!(session.run("again").await.unwrap().text, "Whole.");
        manager.close().await;
    });
}

#[test]
fn a_stream_that_is_dropped_early_cancels_its_turn_and_the_next_starts_clean() {
    let harness = Harness::new([Reply::new([sse::text("Half"), gate("held")]), Reply::text("Whole.")]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let stream = session.stream("go").unwrap();
        harness.mock.reached("held");
        drop(stream);
        let messages = all(session.stream("again").unwrap()).await;
        assert!(messages.iter().all(|message| message.text() != Some("Half")), "{messages:?}");
        assert_eq!(session.last_result().unwrap().text, "Whole.");
        manager.close().await;
    });
}

#[test]
fn model_and_permission_mode_change_within_a_session() {
    let replies = [Reply::call("c1", "run_shell_command", TOUCH), Reply::text("ok"), Reply::text("other")];
    let harness = Harness::new(replies);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        session.set_permission_mode("yolo").await.unwrap();
        assert!(session.run("touch").await.unwrap().ok());
        session.set_model(Some("another-model")).await.unwrap();
        assert_eq!(session.run("who?").await.unwrap().text, "other");
        let refused = session.set_permission_mode("no-such-mode").await;
        assert!(matches!(refused, Err(AgentError::Refused { .. })), "{refused:?}");
        manager.close().await;
    });
    assert!(harness.touched());
    assert_eq!(harness.mock.requests()[2].body["model"], "another-model");
}

#[test]
fn a_limit_ends_the_turn_with_its_cause_and_what_there_is() {
    let looks = [
        sse::text("Looking."),
        sse::call(0, "c1", "list_directory", LIST),
        sse::finish("tool_calls"),
        sse::done(),
    ];
    let harness = Harness::new([Reply::new(looks)]);
    wait(async {
        let limits = SessionLimits { max_turns: Some(1), ..SessionLimits::default() };
        let (manager, mut session) = harness.open(SessionOptions::default().limits(limits)).await;
        let result = session.run("look").await.unwrap();
        assert_eq!((result.status.as_str(), result.text.as_str()), ("max_turns", "Looking."));
        assert!(result.usage.total_tokens > 0);
        manager.close().await;
    });
}

#[test]
fn usage_is_on_every_result_of_failed_turns_too_by_model() {
    let harness = Harness::new([Reply::text("fine"), Reply::status(400, r#"{"error":{"message":"no"}}"#)]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let fine = session.run("one").await.unwrap();
        assert_eq!((fine.usage.calls, fine.usage_by_model["mock"].calls), (1, 1));
        assert_eq!(fine.usage.total_tokens, fine.usage_by_model["mock"].total_tokens);
        let failed = session.run("two").await.unwrap();
        assert_eq!(failed.status, "error");
        assert!(failed.error.is_some() && failed.record["usage"].is_object());
        manager.close().await;
    });
}

#[derive(Debug, PartialEq)]
struct Verdict {
    verdict: String,
}

impl<'de> serde::Deserialize<'de> for Verdict {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(source)?;
        let verdict = value["verdict"].as_str().filter(|word| ["good", "bad"].contains(word));
        let verdict = verdict.ok_or_else(|| serde::de::Error::custom("the verdict must be good or bad"))?;
        Ok(Self { verdict: verdict.to_owned() })
    }
}

#[test]
fn structured_output_is_a_validated_value_or_an_error() {
    let answers = |word: &str| Reply::call("c1", "structured_output", &json!({"verdict": word}).to_string());
    let harness = Harness::new([answers("good"), answers("so-so"), Reply::status(400, "{}"), answers("bad")]);
    let schema =
        json!({"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]});
    wait(async {
        let options = SessionOptions::default().output_schema(schema.clone()).core_tools(&["read_file"]);
        let (manager, mut session) = harness.open(options).await;
        let good = session.run("review").await.unwrap();
        assert_eq!(good.output::<Verdict>().unwrap(), Verdict { verdict: "good".to_owned() });
        let unfit = session.run("review").await.unwrap().output::<Verdict>().unwrap_err();
        assert!(unfit.to_string().contains("good or bad"), "{unfit}");
        let failed = session.run("review").await.unwrap().output::<Verdict>().unwrap_err();
        assert!(failed.to_string().contains("status error"), "{failed}");
        session.close().await.unwrap();
        // For one turn only.
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        let options = TurnOptions { output_schema: Some(schema), ..TurnOptions::default() };
        let bad = session.run_with("review", options).await.unwrap();
        assert_eq!(bad.output::<Verdict>().unwrap().verdict, "bad");
        manager.close().await;
    });
}

#[test]
fn agents_of_the_host_are_offered_and_their_work_counts_for_the_turn() {
    let starts =
        json!({"description": "Look", "prompt": "Look around", "subagent_type": "scout"}).to_string();
    let harness = Harness::new([
        Reply::call("c1", "agent", &starts),
        Reply::text("Nothing."),
        Reply::text("It found nothing."),
    ]);
    wait(async {
        let scout = SessionAgent {
            description: "Looks around.".to_owned(),
            prompt: "You look around.".to_owned(),
            tools: Some(vec!["list_directory".to_owned()]),
            ..SessionAgent::default()
        };
        let agents = [("scout".to_owned(), scout)].into();
        let options = SessionOptions::default().agents(&agents).permission_mode("yolo");
        let (manager, mut session) = harness.open(options).await;
        let result = session.run("explore").await.unwrap();
        assert_eq!((result.text.as_str(), result.model_calls), ("It found nothing.", 3));
        manager.close().await;
    });
    assert!(harness.said(1).iter().any(|text| text.contains("You look around.")));
}
