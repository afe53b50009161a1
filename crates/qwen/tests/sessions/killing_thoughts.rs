//! A tree or graph of thoughts that is killed, at any question it asks and behind any line it says, comes to
//! what it would have come to.

use mock_model::process::{Program, Run, Signal};

use super::harness::{DIALECTS, done, exports_well, speaks_well};
use super::thinking::{Agent, DEPTH_FIRST, GRAPH, Outcome, Server, TREE, program, section};

fn start(program: &Program) -> Run {
    let mut run = program.clone().args(["-p", "Solve it", "--session-id", "s", "--json"]).start();
    run.close_stdin();
    run
}

fn kill(run: Run) {
    run.signal(Signal::KILL);
    assert_eq!(run.wait().signal, Some(9));
}

/// One question at a time, so that one is in flight when the kill comes.
const ONE_BY_ONE: [&str; 2] = ["--parallel", "1"];

/// A run that was killed while it waited for the answer to its question `number`.
fn killed_at(number: usize, agent: &Agent) -> (Server, Program) {
    let server = Server::start();
    server.hold(number);
    let program = program(&server, agent).args(ONE_BY_ONE);
    let run = start(&program);
    server.mock.reached("held");
    kill(run);
    (server, program)
}

fn is_killed_at_each_question(agent: &Agent) {
    let whole = Outcome::undisturbed(agent);
    for number in 0..usize::try_from(whole.calls).unwrap() {
        let (server, program) = killed_at(number, agent);
        done(&program, &["--resume", "s"]);
        let came = Outcome::of(&program, "s");
        comes_to(came, &whole, &format!("{} killed at question {number}", agent.name));
        assert_eq!(server.asked() as u64, whole.calls + 1, "{} killed at question {number}", agent.name);
        exports_well(&program, "s");
    }
}

#[track_caller]
fn comes_to(came: Outcome, whole: &Outcome, when: &str) {
    // A tool that had only begun is not begun again, because nobody knows what it did; one that had ended
    // never is.
    assert!(came.effects <= whole.effects, "{when}: {came:?}");
    assert_eq!(&Outcome { effects: whole.effects, ..came }, whole, "{when}");
}

fn is_killed_behind_each_line(agent: &Agent) {
    let whole = Outcome::undisturbed(agent);
    let mut behind = 1;
    loop {
        let server = Server::start();
        let program = program(&server, agent);
        let mut run = start(&program);
        let lines = (0..behind).map_while(|_| run.line()).count();
        if lines < behind {
            return;
        }
        // It runs on while we count, and may be done by now: then there is nothing left to go on with.
        run.signal(Signal::KILL);
        run.wait();
        let again = program.clone().args(["--resume", "s"]).run();
        assert!(matches!(again.code, Some(0 | 42)), "{} behind line {behind}: {}", agent.name, again.stderr);
        let came = Outcome::of(&program, "s");
        let (calls, asked) = (came.calls, server.asked() as u64);
        comes_to(
            Outcome { calls: whole.calls, ..came },
            &whole,
            &format!("{} behind line {behind}", agent.name),
        );
        exports_well(&program, "s");
        assert!(
            calls.abs_diff(whole.calls) <= 4 && asked <= whole.calls + 4,
            "{} behind line {behind}: {calls}, {asked}",
            agent.name
        );
        behind += 7;
    }
}

#[test]
fn a_tree_that_is_killed_at_any_question_comes_to_the_same() {
    is_killed_at_each_question(&TREE);
}

#[test]
fn a_tree_searched_depth_first_that_is_killed_at_any_question_comes_to_the_same() {
    is_killed_at_each_question(&DEPTH_FIRST);
}

#[test]
fn a_graph_that_is_killed_at_any_question_comes_to_the_same() {
    is_killed_at_each_question(&GRAPH);
}

#[test]
fn a_tree_that_is_killed_behind_any_line_comes_to_the_same() {
    is_killed_behind_each_line(&TREE);
}

#[test]
fn a_graph_that_is_killed_behind_any_line_comes_to_the_same() {
    is_killed_behind_each_line(&GRAPH);
}

#[test]
fn the_results_of_a_finished_sibling_are_kept() {
    let server = Server::start();
    server.hold_text("part b");
    let program = program(&server, &GRAPH);
    let mut run = start(&program);
    run.json_until(|line| line["type"] == "got_node_complete" && line["id"] == "a");
    kill(run);
    let about_a = || {
        let requests = server.mock.requests();
        requests
            .iter()
            .filter(|request| section(&request.last_user_text(), "Instruction") == "part a")
            .count()
    };
    let before = about_a();
    server.hold_text("nothing");
    done(&program, &["--resume", "s"]);
    assert_eq!(about_a(), before, "the finished thought is not thought again");
    assert_eq!(Outcome::of(&program, "s"), Outcome::undisturbed(&GRAPH));
    exports_well(&program, "s");
}

#[test]
fn a_resumed_run_writes_a_complete_stream_in_every_dialect() {
    for (agent, number) in [(&TREE, 1), (&TREE, 4), (&DEPTH_FIRST, 3), (&GRAPH, 2), (&GRAPH, 4)] {
        for dialect in DIALECTS {
            let (_server, program) = killed_at(number, agent);
            speaks_well(&program, &["--resume", "s"], dialect);
            speaks_well(&program, &["--resume", "s", "--at", "1-1"], dialect);
            exports_well(&program, "s");
        }
    }
}
