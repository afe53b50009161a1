//! What happens to commands when we are killed.

mod fixture;

use std::io::{BufRead, BufReader};
use std::process::Command;

use fixture::Fixture;
use serde_json::json;

/// Where the process that gets killed writes to.
const GATE: &str = "QWEN_TEST_GATE";

/// Not a test of its own: the process that the test below starts and kills.
#[tokio::test]
#[ignore = "run by the test that kills it"]
async fn the_process_that_gets_killed() {
    let Some(gate) = std::env::var_os(GATE) else { return };
    let fixture = Fixture::new();
    let gate = gate.to_str().unwrap();
    let background = format!("echo $$ >> {gate}; exec sleep 1000");
    fixture.call("run_shell_command", json!({"command": background, "is_background": true})).await;
    let script = format!(
        "trap '' TERM HUP; setsid sh -c 'echo $$ >> {gate}; exec sleep 1000' & (sh -c 'echo $$ >> {gate}; exec sleep 1000' &)
        echo $$ >> {gate}; wait; sleep 1000"
    );
    fixture.shell(&script).await;
}

#[test]
fn nothing_is_left_when_we_are_killed_without_a_chance_to_clean_up() {
    let fixture = Fixture::new();
    fixture.fifo("gate");
    let gate = fixture.path().join("gate");
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_gets_killed", "--ignored"])
        .env(GATE, &gate)
        .spawn()
        .unwrap();
    // The fifo closes between writers, so it is opened anew until all four have said who they are.
    let mut pids: Vec<i32> = Vec::new();
    while pids.len() < 4 {
        let lines = BufReader::new(std::fs::File::open(&gate).unwrap()).lines();
        pids.extend(lines.map(|line| line.unwrap().parse::<i32>().unwrap()));
    }
    assert!(pids.iter().all(|&pid| fixture::alive(pid)), "{pids:?}");
    process.kill().unwrap();
    process.wait().unwrap();
    for pid in pids {
        fixture::wait_until_gone(pid);
    }
}
