//! What happens to servers when we are killed.

use std::io::{BufRead, BufReader};
use std::process::Command;

use crate::fixture::{Fixture, alive, wait_until_gone};
use crate::scene::Scene;

/// Where the process that gets killed writes to.
const GATE: &str = "QWEN_TEST_MCP_GATE";

/// Not a test of its own: the process that the test below starts and kills.
#[tokio::test]
#[ignore = "run by the test that kills it"]
async fn the_process_that_gets_killed() {
    let Some(gate) = std::env::var_os(GATE) else { return };
    let scene = Scene::hostile("ignores-the-end");
    scene.connect().await;
    std::fs::write(gate, scene.fixture.read("pids")).unwrap();
    std::future::pending::<()>().await;
}

#[test]
fn no_server_is_left_when_we_are_killed_without_a_chance_to_clean_up() {
    let fixture = Fixture::new();
    fixture.fifo("gate");
    let gate = fixture.path().join("gate");
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "orphans::the_process_that_gets_killed", "--ignored"])
        .env(GATE, &gate)
        .spawn()
        .unwrap();
    let lines = BufReader::new(std::fs::File::open(&gate).unwrap()).lines();
    let pids: Vec<i32> = lines.map(|line| line.unwrap().parse().unwrap()).collect();
    assert!(pids.len() == 2 && pids.iter().all(|&pid| alive(pid)), "{pids:?}");
    process.kill().unwrap();
    process.wait().unwrap();
    for pid in pids {
        wait_until_gone(pid);
    }
}
