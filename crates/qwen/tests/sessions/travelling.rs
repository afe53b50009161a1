//! Time travel: back to a checkpoint, on from there, with the same state or another.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::Value;

use super::harness::{conversation, done, exports_well, log, qwen, sessions};
use super::thinking::{GRAPH, Outcome, Server, TREE, program};

fn checkpoints(program: &Program, id: &str) -> Vec<Value> {
    let listed = sessions(program, &["checkpoints", id, "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    serde_json::from_str::<Vec<Value>>(&listed.stdout).unwrap()
}

fn ids(program: &Program, id: &str) -> Vec<String> {
    let words = checkpoints(program, id);
    words.iter().map(|checkpoint| checkpoint["checkpoint_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn from_every_checkpoint_but_the_last_a_search_can_be_run_on_and_comes_to_the_same() {
    for agent in [&TREE, &GRAPH] {
        let whole = Outcome::undisturbed(agent);
        let server = Server::start();
        let program = program(&server, agent);
        done(&program, &["-p", "Solve it", "--session-id", "s"]);
        let places = checkpoints(&program, "s");
        let (last, earlier) = places.split_last().unwrap();
        let mut turns = 1;
        for place in earlier {
            let id = place["checkpoint_id"].as_str().unwrap();
            done(&program, &["--resume", "s", "--at", id]);
            turns += 1;
            let came = Outcome::of(&program, "s");
            assert_eq!(
                (&came.reply, &came.thoughts),
                (&whole.reply, &whole.thoughts),
                "{} at {id}",
                agent.name
            );
            assert!(came.calls < whole.calls, "{} at {id}: what came before is not asked again", agent.name);
            let now = checkpoints(&program, "s");
            assert_eq!(now[..places.len()], places, "the old ones stay");
            assert_eq!(now.last().unwrap()["turn"], turns, "what is run again is a turn of its own");
        }
        exports_well(&program, "s");
        let id = last["checkpoint_id"].as_str().unwrap();
        let ended = program.clone().args(["--resume", "s", "--at", id]).run();
        assert_eq!(ended.code, Some(42), "{}: nothing is left to do there", ended.stderr);
    }
}

#[test]
fn a_checkpoint_can_be_named_by_its_turn_and_step() {
    let server = Server::start();
    let program = program(&server, &TREE);
    done(&program, &["-p", "Solve it", "--session-id", "s"]);
    done(&program, &["--resume", "s", "--at", "1-2"]);
    done(&program, &["--resume", "s", "--at", "2"]);
    let ended = program.clone().args(["--resume", "s", "--at", "s-9-9"]).run();
    assert_eq!(ended.code, Some(42));
    assert!(
        ended.stderr.contains("s-9-9") && ended.stderr.contains("qwen sessions checkpoints s"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_turn_with_tools_can_be_run_on_from_between_the_call_and_its_result() {
    let call = r#"{"path":"."}"#;
    let mock = MockModel::with([Reply::call("call_1", "list_directory", call), Reply::text("One file.")]);
    let program = qwen(&mock);
    done(&program, &["-p", "Look", "--session-id", "s"]);
    std::fs::write(program.cwd_path().join("new.txt"), "").unwrap();
    mock.push(Reply::text("Another file."));
    // After think: the call is asked for and not made.
    done(&program, &["--resume", "s", "--at", "s-1-1"]);
    let said = conversation(&mock.requests()[2]);
    assert_eq!(said[..2], ["user: Look", "assistant: [call_1]"]);
    assert!(said[2].contains("new.txt"), "the call is made again, now: {said:?}");
    mock.push(Reply::text("As before."));
    // After act: the call is made.
    done(&program, &["--resume", "s", "--at", "s-1-2"]);
    let said = conversation(&mock.requests()[3]);
    assert!(said.len() == 3 && !said[2].contains("new.txt"), "what was seen then: {said:?}");
    mock.push(Reply::text("Hello."));
    done(&program, &["-p", "And now?", "--resume", "s", "--at", "s-1-1"]);
    let said = conversation(&mock.requests()[4]);
    assert!(said[2].starts_with("tool call_1: not run"), "a new prompt ends what was open: {said:?}");
    exports_well(&program, "s");
}

#[test]
fn a_fork_can_begin_with_an_edited_state() {
    let server = Server::start();
    let program = program(&server, &TREE);
    done(&program, &["-p", "Solve it", "--session-id", "s"]);
    let before = std::fs::read(log(&program, "s")).unwrap();
    // After the first evaluation the beam is made to be the other branch alone.
    let forked = sessions(
        &program,
        &[
            "fork",
            "s",
            "--at",
            "s-1-2",
            "--set",
            "frontier=[1]",
            "--set",
            "options.breadth=1",
            "--session-id",
            "f",
        ],
    );
    assert_eq!((forked.code, forked.stdout.trim()), (Some(0), "f"), "{}", forked.stderr);
    done(&program, &["--resume", "f"]);
    let came = Outcome::of(&program, "f");
    assert!(came.reply.contains("s2") && !came.reply.contains("s1"), "{came:?}");
    assert_eq!(std::fs::read(log(&program, "s")).unwrap(), before, "the old session stays as it is");
    exports_well(&program, "f");
}

#[test]
fn an_edit_that_makes_no_sense_is_refused_with_the_reason() {
    let server = Server::start();
    let program = program(&server, &TREE);
    done(&program, &["-p", "Solve it", "--session-id", "s"]);
    for (edit, code, why) in [
        ("frontier=[77]", 42, "77"),
        ("nothing=1", 42, "frontier"),
        ("thoughts.99.score=1", 42, "0 to"),
        ("thoughts.0.parent=0", 42, "does not come before"),
        ("frontier=\"x\"", 42, "invalid type"),
        ("problem=words", 2, "quotes"),
        ("problem", 2, "KEY=JSON"),
    ] {
        let ended = sessions(&program, &["fork", "s", "--at", "s-1-2", "--set", edit, "--session-id", "f"]);
        assert_eq!(ended.code, Some(code), "{edit}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{edit}: {}", ended.stderr);
        assert!(!log(&program, "f").exists(), "{edit}: nothing is made");
    }
}

#[test]
fn a_conversation_can_be_edited_too() {
    let mock = MockModel::with(["Blue.", "Hello."].map(Reply::text));
    let program = qwen(&mock);
    done(&program, &["-p", "What colour?", "--session-id", "s"]);
    let edit = r#"messages.1.content="Red.""#;
    let forked = sessions(&program, &["fork", "s", "--set", edit, "--session-id", "f"]);
    assert_eq!(forked.code, Some(0), "{}", forked.stderr);
    done(&program, &["-p", "Sure?", "--resume", "f"]);
    assert_eq!(conversation(&mock.requests()[1]), ["user: What colour?", "assistant: Red.", "user: Sure?"]);
}

#[test]
fn a_state_of_another_version_is_refused_with_the_reason() {
    let server = Server::start();
    let program = program(&server, &TREE);
    done(&program, &["-p", "Solve it", "--session-id", "s"]);
    let kept = std::fs::read_to_string(log(&program, "s")).unwrap();
    let newer = kept.replace(r#"{"base":{"version":1,"#, r#"{"base":{"version":9,"#);
    assert_ne!(newer, kept);
    std::fs::write(log(&program, "s"), newer).unwrap();
    let ended = program.clone().args(["--resume", "s", "--at", "s-1-2"]).run();
    assert_ne!(ended.code, Some(0));
    assert!(ended.stderr.contains("form 9") && ended.stderr.contains("reads form 1"), "{}", ended.stderr);
}

#[test]
fn pruning_keeps_the_latest_checkpoint_and_those_that_forks_began_at() {
    let server = Server::start();
    let program = program(&server, &TREE);
    done(&program, &["-p", "Solve it", "--session-id", "s"]);
    done(&program, &["--resume", "s", "--at", "s-1-2", "--fork-session", "--session-id", "f"]);
    let all = ids(&program, "s");
    let size = || std::fs::metadata(log(&program, "s")).unwrap().len();
    let before = size();
    let would = sessions(&program, &["prune", "s", "--dry-run"]);
    assert!(would.stdout.contains("would be") && size() == before, "{}", would.stdout);
    assert_eq!(sessions(&program, &["prune", "s"]).code, Some(0));
    assert!(size() < before, "{} bytes, {before} before", size());
    assert_eq!(ids(&program, "s"), ["s-1-2".to_owned(), all.last().unwrap().clone()]);
    let gone = program.clone().args(["--resume", "s", "--at", "s-1-3"]).run();
    assert_eq!(gone.code, Some(42));
    assert!(gone.stderr.contains("pruned"), "{}", gone.stderr);
    done(&program, &["--resume", "s", "--at", "s-1-2"]);
    assert_eq!(Outcome::of(&program, "s").reply, Outcome::undisturbed(&TREE).reply);
    exports_well(&program, "s");
    assert_eq!(sessions(&program, &["prune", "s", "--keep", "0"]).code, Some(2));
}

#[test]
fn a_run_that_was_killed_is_not_pruned() {
    let server = Server::start();
    server.hold(5);
    let program = program(&server, &TREE);
    let mut run = program.clone().args(["-p", "Solve it", "--session-id", "s"]).start();
    run.close_stdin();
    server.mock.reached("held");
    run.signal(mock_model::process::Signal::KILL);
    run.wait();
    assert_eq!(sessions(&program, &["prune"]).code, Some(0));
    done(&program, &["--resume", "s"]);
    let whole = Outcome::undisturbed(&TREE);
    assert_eq!(Outcome::of(&program, "s").thoughts, whole.thoughts);
}
