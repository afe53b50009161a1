//! What must be so however and wherever a worker was ended.

use std::collections::BTreeSet;
use std::fs;

use mock_model::process::Program;
use mock_model::{MockModel, Reply, Request};
use serde_json::Value;

use super::play::{Ending, Played};
use super::story::{Story, names_in};
use super::wire::Wire;

/// Judges all that a worker said and left behind.
pub fn judge(wire: Wire, ending: Ending, played: &Played) {
    let Played { ended, lines, story, .. } = played;
    let shown = || ended.stdout.chars().take(20_000).collect::<String>();
    let for_people = ended.stderr.lines().all(|line| line.starts_with("qwen: "));
    assert!(for_people, "what is on standard error is no warning: {}", ended.stderr);
    if ending == Ending::Kill {
        assert_eq!(ended.signal, Some(9), "{}", shown());
    } else {
        // Between turns the end of input may be all that the worker lives to see.
        let early = ending == Ending::EofTerm && ended.code == Some(0);
        assert!(
            early || ended.code == Some(ending.code()),
            "{:?}: {}\n{}",
            ended.code,
            ended.stderr,
            shown()
        );
        let faults = wire.faults(&ended.stdout);
        assert!(faults.is_empty(), "{faults:#?}\n{}", shown());
        let open = wire.open_calls(lines);
        assert!(open.is_empty(), "{open:#?}\n{}", shown());
        each_prompt_ended_once(wire, ending, played);
        nothing_is_left(story);
    }
    log_parses(story, ending);
    goes_on(played, ending);
}

impl Ending {
    fn code(self) -> i32 {
        match self {
            Self::Term | Self::EofTerm => 143,
            Self::Int => 130,
            Self::Eof | Self::Kill => 0,
        }
    }

    /// What becomes of a turn that is not done.
    fn status(self) -> &'static str {
        match self {
            Self::Term | Self::EofTerm => "interrupted",
            Self::Int => "cancelled",
            Self::Eof | Self::Kill => "done",
        }
    }
}

fn each_prompt_ended_once(wire: Wire, ending: Ending, played: &Played) {
    let ends = wire.ends(&played.lines);
    let expected = if played.told { 2 } else { 0 };
    // What a signal overtakes was never heard.
    let certain = ending == Ending::Eof || played.heard || !played.told;
    let right = if certain { ends.len() == expected } else { ends.len() <= expected };
    assert!(right, "{ends:?}\n{}", played.ended.stdout);
    if !matches!(wire, Wire::Qwen | Wire::QwenChunks) {
        return;
    }
    for (prompt, how) in &ends {
        assert!(how == "done" || how == ending.status(), "{prompt} ended as {how}");
        assert_eq!(ends.iter().filter(|(other, _)| other == prompt).count(), 1, "{prompt}");
    }
    for prompt in ["p1", "p2"] {
        let last = played.lines.iter().rfind(|line| line["prompt_id"] == prompt);
        assert!(last.is_none_or(|last| wire.ends_turn(last)), "{prompt} ends with {last:?}");
    }
    let ids = |kind: &str| {
        let lines = played.lines.iter().filter(|line| line["type"] == kind);
        lines.map(|line| line["request_id"].to_string()).collect::<BTreeSet<String>>()
    };
    let open: Vec<String> = ids("control_request").difference(&played.answered).cloned().collect();
    let withdrawn = ids("control_cancel_request");
    assert!(open.iter().all(|id| withdrawn.contains(id)), "{open:?} stay open: {}", played.ended.stdout);
}

/// What a worker makes for itself it takes away again.
fn nothing_is_left(story: &Story) {
    let temporary = names_in(story.temporary.path());
    assert!(temporary.is_empty(), "{temporary:?}");
    assert_eq!(names_in(story.program.cwd_path()), story.brought);
}

fn log_parses(story: &Story, ending: Ending) {
    let path = story.program.qwen_home_path().join("sessions/s.jsonl");
    let log = fs::read_to_string(&path).unwrap_or_default();
    let torn = ending == Ending::Kill && !log.ends_with('\n');
    for line in log.lines().take(log.lines().count() - usize::from(torn && !log.is_empty())) {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

/// The session goes on with a conversation that a model takes, and that is neither more nor less than what
/// was said.
fn goes_on(Played { story, lines, .. }: &Played, ending: Ending) {
    if !story.program.qwen_home_path().join("sessions/s.jsonl").exists() {
        return;
    }
    let asked = |prompt: &str| story.mock.requests().iter().any(|request| says(request.messages(), prompt));
    let mock = MockModel::start();
    mock.answer_with(|_: &Request| Some(Reply::text("fine")));
    story.release("greeting");
    let program = resumed(&story.program, &mock);
    if ending == Ending::Kill {
        // Once without a prompt: what was left unfinished goes on, and where all was finished that is said.
        let ended = program.clone().run();
        assert!(matches!(ended.code, Some(0 | 42)), "{ended:?}");
        story.release("greeting");
    }
    let ended = program.args(["-p", "and now?"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let requests = mock.requests();
    for request in &requests {
        matches_calls(request.messages());
    }
    let last = requests.last().unwrap();
    assert_eq!(last.last_user_text(), "and now?");
    for prompt in ["p1", "p2"] {
        let lost = asked(prompt) && !says(last.messages(), prompt);
        assert!(!lost, "{prompt} is lost: {:#?}", last.messages());
    }
    // While there is a host it is asked about each prompt whose turn begins. One that only waited was never
    // said.
    let begun = lines.iter().filter(|line| line.to_string().contains("UserPromptSubmit")).count();
    if matches!(ending, Ending::Term | Ending::Int | Ending::Kill) && begun < 2 {
        assert!(!says(last.messages(), "p2"), "p2 was never begun: {:#?}", last.messages());
    }
}

/// Whether a user said this. Behind a summary there is more to it than that.
fn says(messages: &[Value], prompt: &str) -> bool {
    let users = messages.iter().filter(|message| message["role"] == "user");
    users.filter_map(|message| message["content"].as_str()?.lines().next()).any(|first| first == prompt)
}

/// The binary on the session that another one left.
fn resumed(program: &Program, mock: &MockModel) -> Program {
    let fresh = Program::new(env!("CARGO_BIN_EXE_qwen")).with_model(mock).cwd(program.cwd_path());
    let fresh = fresh.env("HOME", program.home_path()).env("QWEN_HOME", program.qwen_home_path());
    fresh.args(["--model", "mock", "--resume", "s", "--output-format", "json"])
}

/// Every call is answered at once, and nothing is answered that was not called.
fn matches_calls(messages: &[Value]) {
    let mut open: Vec<&Value> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let place = open.iter().position(|id| **id == message["tool_call_id"]);
            open.remove(place.unwrap_or_else(|| panic!("nobody called: {message}")));
            continue;
        }
        assert!(open.is_empty(), "unanswered {open:?}: {messages:#?}");
        open = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]).collect();
    }
    assert!(open.is_empty(), "unanswered {open:?}: {messages:#?}");
}
