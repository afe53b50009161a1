//! How each fault is brought about, and how it ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use mock_model::process::{Program, Signal};
use serde_json::{Value, json};

use super::Fault;
use super::fleet::Fleet;
use crate::harness::*;
use crate::link::Link;

impl Fleet {
    /// Lets the fault happen and end. The turns that can end have done so, or do so soon.
    pub fn fail_and_recover(&mut self) {
        match self.fault {
            Fault::WorkerKill => {
                for worker in children(self.node.as_ref().unwrap().pid()) {
                    let pid = rustix::process::Pid::from_raw(i32::try_from(worker).unwrap()).unwrap();
                    // It may have ended meanwhile.
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                }
            }
            Fault::NodeKill => self.node.take().unwrap().signal(Signal::KILL),
            Fault::NodeStop => {
                self.signal_node(Signal::STOP);
                self.wait_for_ends();
                self.open_node_links();
                self.signal_node(Signal::CONT);
            }
            Fault::NodeCut => {
                self.node_links.iter().for_each(Link::cut);
                self.wait_for_ends();
            }
            Fault::NodeHeld => {
                self.node_links.iter().for_each(Link::hold);
                self.wait_for_ends();
            }
            Fault::HubKill => {
                self.client.run.signal(Signal::KILL);
                let sessions: Vec<_> = self.moments.iter().map(|moment| moment.session()).collect();
                self.client = self.attach_elsewhere(&sessions);
            }
            Fault::HubCut => {
                self.hub_links.iter().for_each(Link::cut);
                self.end_turns_unseen();
                self.hub_links.iter().for_each(Link::open);
            }
            Fault::HubHeld => {
                self.hub_links.iter().for_each(Link::hold);
                self.end_turns_unseen();
                self.hub_links.iter().for_each(Link::open);
            }
            Fault::ClientStops => self.end_turns_unseen(),
            Fault::LeaderKill => {
                let leader = self.leader();
                self.servers.kill(leader);
            }
            Fault::LeaderTerm => {
                let leader = self.leader();
                self.servers.terminate(leader);
            }
            Fault::FollowerKill => {
                let follower = (self.leader() + 1) % 3;
                self.servers.kill(follower);
            }
            Fault::MajorityKill => {
                let leader = self.leader();
                for index in [leader, (leader + 1) % 3] {
                    self.servers.kill(index);
                }
                self.open_node_links();
                self.let_turns_end();
                for index in [leader, (leader + 1) % 3] {
                    self.servers.restart(index);
                }
            }
            Fault::BusFull => {
                self.limit_streams(1);
                self.open_node_links();
                self.let_turns_end();
                self.limit_streams(-1);
            }
            Fault::NodeDiskFull => {
                self.disk.as_ref().unwrap().fill();
                self.open_node_links();
                self.let_turns_end();
                self.wait_for_ends();
                self.disk.as_ref().unwrap().free();
            }
            Fault::ClockAhead | Fault::ClockBehind => {}
        }
        self.open_node_links();
        self.let_turns_end();
    }

    fn open_node_links(&self) {
        self.node_links.iter().for_each(Link::open);
    }

    fn signal_node(&self, signal: Signal) {
        self.node.as_ref().unwrap().signal(signal);
    }

    /// Waits until the hub has ended every open turn.
    fn wait_for_ends(&mut self) {
        for moment in self.moments.clone() {
            self.end_of(moment);
        }
    }

    /// Lets the turns end that need no answer, and waits until the bus has their ends.
    fn end_turns_unseen(&mut self) {
        self.open_node_links();
        self.let_turns_end();
        let unseen: Vec<_> = self.moments.iter().filter(|moment| !moment.asks()).copied().collect();
        let sessions: Vec<_> = unseen.iter().map(|moment| moment.session()).collect();
        let mut other = self.attach_elsewhere(&sessions);
        for moment in unseen {
            other.end_of(&moment.prompt());
        }
        assert_eq!(other.run.finish().code, Some(0));
    }

    /// The bus server that leads a stream.
    fn leader(&self) -> usize {
        let status = qwen().args(["bus", "status", "--json", "--bus", &self.servers.url()]).run();
        let report: Value = serde_json::from_str(&status.stdout).unwrap();
        self.servers.index_of(report["streams"][0]["leader"].as_str().unwrap())
    }

    /// Limits the size of the sessions' streams; -1 is no limit.
    fn limit_streams(&self, bytes: i64) {
        for shard in 0..3 {
            for stream in [format!("QLOG-{shard}"), format!("QEV-{shard}")] {
                let mut config = self.ask_bus(&format!("INFO.{stream}"), &Value::Null)["config"].clone();
                config["max_bytes"] = json!(bytes);
                let updated = self.ask_bus(&format!("UPDATE.{stream}"), &config);
                assert_eq!(updated["error"], Value::Null, "{updated}");
            }
        }
    }

    /// Sends a request about a stream to the first bus server.
    fn ask_bus(&self, verb: &str, body: &Value) -> Value {
        let mut socket = TcpStream::connect(("127.0.0.1", self.servers.ports()[0])).unwrap();
        let body = body.to_string();
        let request = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB $JS.API.STREAM.{verb} answer {}\r\n{body}\r\n",
            body.len()
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(socket).lines();
        lines.by_ref().find(|line| line.as_ref().unwrap().starts_with("MSG ")).unwrap().unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    }
}

/// A small file system that a test can fill.
pub struct FullDisk(tempfile::TempDir);

impl FullDisk {
    /// Mounts it; none without the right to do so.
    pub fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"])
            .arg(directory.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Self(directory))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes until there is no space.
    pub fn fill(&self) {
        let mut file = std::fs::File::create(self.0.path().join("filler")).unwrap();
        for size in [64 * 1024, 4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    pub fn free(&self) {
        std::fs::remove_file(self.0.path().join("filler")).unwrap();
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        // A process of the test may still be ending there.
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

/// The program with a clock that is wrong by some seconds.
pub fn preload_clock(program: Program, offset: i64) -> Program {
    let directory: PathBuf = program.home_path().to_owned();
    let (source, library) = (directory.join("clock.c"), directory.join("clock.so"));
    let text = r"
        #define _GNU_SOURCE
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        int clock_gettime(clockid_t id, struct timespec *now) {
            int result = syscall(SYS_clock_gettime, id, now);
            if (result == 0 && id == CLOCK_REALTIME) now->tv_sec += OFFSET;
            return result;
        }";
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", &format!("-DOFFSET=({offset})"), "-o"])
        .args([&library, &source])
        .status();
    assert!(compiled.unwrap().success());
    program.env("LD_PRELOAD", library)
}
