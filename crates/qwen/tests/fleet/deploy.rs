//! The files in `deploy/`, as far as they can be checked without machines.

use std::path::{Path, PathBuf};
use std::process::Command;

use qwen_kernel::config::HubConfig;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join("deploy").join(file)).unwrap()
}

/// The seconds after a key in a YAML file.
#[track_caller]
fn seconds(text: &str, key: &str) -> u64 {
    let rest = text.split_once(key).unwrap().1.trim_start_matches([':', ' ']);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn the_drain_of_a_node_fits_the_time_before_it_is_killed() {
    let config = HubConfig::parse(&read("kubernetes/node-config.yaml")).unwrap();
    assert_eq!(config.unknown, Vec::<String>::new());
    let grace = seconds(&read("kubernetes/nodes.yaml"), "terminationGracePeriodSeconds");
    assert!(grace >= config.worker_pool.drain_timeout.as_secs() + 15, "{grace}");
    let default = HubConfig::default().worker_pool.drain_timeout.as_secs();
    let compose = read("compose/compose.yaml");
    let node = compose.split_once("x-node").unwrap().1;
    assert!(seconds(node, "stop_grace_period") >= default + 15);
    assert!(seconds(&read("bus/qwen-node.service"), "TimeoutStopSec=") >= default + 15);
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn the_servers_accept_their_configuration() {
    let server = root().join("target/fleet/nats-server");
    for file in [
        "bus/server-1.conf",
        "bus/server-2.conf",
        "bus/server-3.conf",
        "compose/bus.conf",
        "kubernetes/bus.conf",
    ] {
        let passwords = [("TEAM_A_PASSWORD", "a"), ("TEAM_B_PASSWORD", "b")];
        let path = root().join("deploy").join(file);
        let checked =
            Command::new(&server).args(["-t", "--config"]).arg(path).envs(passwords).output().unwrap();
        assert!(checked.status.success(), "{file}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}
