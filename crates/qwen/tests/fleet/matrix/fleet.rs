//! A bus, a node that will fail, another one, and the clients of hubs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use mock_model::bus::BusServers;
use mock_model::process::{Program, Run, Signal};
use mock_model::{MockModel, Reply, Request, WAIT_LIMIT, gate, sse};
use serde_json::{Value, json};

use super::Fault;
use super::faults::{FullDisk, preload_clock};
use crate::harness::*;
use crate::link::Link;

/// What a session does when the fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The model was asked and has not answered.
    FirstToken,
    /// The model is in the middle of its answer.
    MidToken,
    /// A tool runs.
    MidTool,
    /// A question waits for the client.
    AwaitingAnswer,
    /// A turn has ended.
    Idle,
    /// The node claims a new session, and the bus does not have the claim yet.
    Claim,
    /// The same for a session with a log, after the node was started again.
    Resume,
    /// A tool is to run, and the bus does not have its start yet.
    BeforeCommit,
    /// The bus has the end of the turn in the log, and not in the lines.
    BetweenEnds,
    /// The node finishes a turn before it exits.
    Draining,
}

impl Moment {
    /// The moments at which a model, a tool or a client holds a session. They can be brought about together.
    pub const HELD: [Self; 5] =
        [Self::FirstToken, Self::MidToken, Self::MidTool, Self::AwaitingAnswer, Self::Idle];

    pub fn session(self) -> &'static str {
        match self {
            Self::FirstToken => "first",
            Self::MidToken => "mid",
            Self::MidTool => "tool",
            Self::AwaitingAnswer => "ask",
            Self::Idle => "idle",
            Self::Claim => "claim",
            Self::Resume => "resume",
            Self::BeforeCommit => "commit",
            Self::BetweenEnds => "ends",
            Self::Draining => "drain",
        }
    }

    /// The id of the prompt that the fault meets.
    pub fn prompt(self) -> String {
        format!("{}-1", self.session())
    }

    /// True if the turn ends only with an answer of the client.
    pub fn asks(self) -> bool {
        matches!(self, Self::AwaitingAnswer)
    }
}

/// A hub and what its client has seen.
pub struct Client {
    pub run: Run,
    /// The status of every end, by prompt.
    ends: BTreeMap<String, String>,
    /// The open questions, by session.
    questions: BTreeMap<String, Value>,
}

impl Client {
    pub fn new(run: Run) -> Self {
        Self { run, ends: BTreeMap::new(), questions: BTreeMap::new() }
    }

    pub fn send(&mut self, line: &Value) {
        self.run.write_line(line);
    }

    /// Waits until the hub has heard of so many nodes.
    #[track_caller]
    pub fn wait_for_nodes(&mut self, count: usize) {
        loop {
            self.send(&request("nodes", "hub/status", json!({})));
            let status = self.run.json_until(|line| line["request_id"] == "nodes").pop().unwrap();
            let machines = status["response"]["result"]["machines"].as_array().unwrap();
            if machines.iter().filter(|machine| machine["is_live"] == true).count() == count {
                return;
            }
        }
    }

    /// Reads until a condition is met.
    #[track_caller]
    pub fn read_until(&mut self, is_met: impl Fn(&Self) -> bool) {
        while !is_met(self) {
            let line = self.run.json();
            let session = line["session_id"].as_str().unwrap_or_default().to_owned();
            if is_end(&line) {
                let prompt = line["prompt_id"].as_str().unwrap_or_default().to_owned();
                let status = match line["metadata"]["error"]["code"].as_str() {
                    Some(code) if status(&line) == "error" => code.to_owned(),
                    _ => status(&line).to_owned(),
                };
                let former = self.ends.insert(prompt, status);
                assert!(former.is_none(), "a second end: {line}");
            } else if line["type"] == "control_request" {
                self.questions.insert(session, line["request_id"].clone());
            }
        }
    }

    /// The status with which a prompt ended.
    #[track_caller]
    pub fn end_of(&mut self, prompt: &str) -> String {
        self.read_until(|client| client.ends.contains_key(prompt));
        self.ends[prompt].clone()
    }

    pub fn has_ended(&self, prompt: &str) -> bool {
        self.ends.contains_key(prompt)
    }

    /// Allows the call that a session asks about.
    #[track_caller]
    pub fn allow(&mut self, session: &str) {
        self.read_until(|client| client.questions.contains_key(session));
        let id = self.questions.remove(session);
        self.send(&json!({"type": "control_response", "request_id": id, "session_id": session,
            "response": {"subtype": "success", "result": {"behavior": "allow"}}}));
    }
}

/// Everything that a cell needs.
pub struct Fleet {
    pub fault: Fault,
    pub servers: BusServers,
    pub mock: MockModel,
    /// The links of the node that fails, one for each server.
    pub node_links: Vec<Link>,
    pub hub_links: Vec<Link>,
    pub program: Program,
    /// None while the node is away.
    pub node: Option<Run>,
    pub others: Vec<(Program, Run)>,
    pub client: Client,
    pub disk: Option<FullDisk>,
    /// The moments at which sessions are.
    pub moments: Vec<Moment>,
    history: tempfile::TempDir,
}

/// Exports the streams to a directory of recordings, and checks them all. Servers that have just started need a moment.
#[track_caller]
pub fn check_history(servers: &BusServers, directory: &Path) {
    let deadline = Instant::now() + WAIT_LIMIT;
    loop {
        let exported = qwen().args(["bus", "export", "--bus", &servers.url()]).arg(directory).run();
        if exported.code == Some(0) {
            break;
        }
        assert!(Instant::now() < deadline, "{}", exported.stderr);
    }
    let checked = qwen().args(["check", "--history"]).arg(directory).run();
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
}

/// The model's answers, by the marker in the prompt.
fn reply(request: &Request) -> Option<Reply> {
    let messages = request.body["messages"].as_array()?;
    let last = messages.last()?;
    if last["role"] == "tool" {
        return Some(Reply::text("After the tool."));
    }
    let prompt = last["content"].to_string();
    if prompt.contains("[first]") {
        Some(Reply::new([gate("first"), sse::text("All."), sse::finish("stop"), sse::done()]))
    } else if prompt.contains("[mid]") {
        Some(Reply::new([
            sse::text("Half"),
            gate("mid"),
            sse::text(&" whole.".repeat(20_000)),
            sse::finish("stop"),
            sse::done(),
        ]))
    } else if prompt.contains("[tool]") {
        let run = r#"echo '{"session_id":"tool","call":"c-tool"}' >> tools.jsonl; until test -e release; do sleep 0.05; done"#;
        Some(Reply::call("c-tool", "run_shell_command", &json!({"command": run}).to_string()))
    } else if prompt.contains("[drain]") {
        Some(Reply::new([sse::text("Half"), gate("drain"), sse::finish("stop"), sse::done()]))
    } else if prompt.contains("[commit]") {
        let run = r#"echo '{"session_id":"commit","call":"c-commit"}' >> tools.jsonl"#;
        Some(Reply::call("c-commit", "run_shell_command", &json!({"command": run}).to_string()))
    } else if prompt.contains("[ask]") {
        let run = r#"echo '{"session_id":"ask","call":"c-ask"}' >> tools.jsonl"#;
        Some(Reply::call("c-ask", "run_shell_command", &json!({"command": run}).to_string()))
    } else {
        Some(Reply::text("Whole."))
    }
}

/// The addresses of all servers, through links.
fn url(links: &[Link]) -> String {
    links.iter().map(Link::url).collect::<Vec<_>>().join(",")
}

impl Fleet {
    /// Starts a bus, the node that fails and a hub. None if this machine cannot bring the fault about.
    pub fn start(fault: Fault) -> Option<Self> {
        let servers = bus(if fault.needs_cluster() { 3 } else { 1 });
        let links = || servers.ports().into_iter().map(Link::to).collect::<Vec<_>>();
        let (node_links, hub_links) = (links(), links());
        let mock = MockModel::start();
        mock.answer_with(reply);
        let history = tempfile::tempdir().unwrap();
        // The node with more room gets the sessions.
        let mut program = Self::node_program(&url(&node_links), &mock, "a", "20", history.path());
        let other = Self::node_program(&servers.url(), &mock, "b", "8", history.path());
        let disk = if fault == Fault::NodeDiskFull { Some(FullDisk::mount()?) } else { None };
        if let Some(disk) = &disk {
            program = program.env("QWEN_HOME", disk.path());
        }
        match fault {
            Fault::ClockAhead => program = preload_clock(program, 3600),
            Fault::ClockBehind => program = preload_clock(program, -3600),
            _ => {}
        }
        let (node, second) = (program.start(), other.start());
        let client = Client::new(Self::hub_program(&url(&hub_links), "h1", history.path()).start());
        for run in [&node, &second] {
            run.wait_for_stderr("is on the bus");
        }
        let mut client = client;
        client.wait_for_nodes(2);
        let (node, others, moments) = (Some(node), vec![(other, second)], Vec::new());
        Some(Self {
            fault,
            servers,
            mock,
            node_links,
            hub_links,
            program,
            node,
            others,
            client,
            disk,
            moments,
            history,
        })
    }

    fn node_program(url: &str, mock: &MockModel, name: &str, workers: &str, history: &Path) -> Program {
        let record = history.join(name).display().to_string();
        let args = [
            "node",
            "--bus",
            url,
            "--name",
            name,
            "--min-workers",
            "0",
            "--max-workers",
            workers,
            "--record-dir",
            &record,
        ];
        qwen().args(args).args(["--shared-workspace", "w", "--", "--model", "mock"]).with_model(mock)
    }

    fn hub_program(url: &str, name: &str, history: &Path) -> Program {
        let record = history.join(name).display().to_string();
        qwen().args(["hub", "--bus", url, "--record-dir", &record])
    }

    /// Starts a session and waits until it is where the fault is to meet it.
    pub fn bring_to(&mut self, moment: Moment) {
        self.moments.push(moment);
        let session = moment.session();
        match moment {
            Moment::Claim => self.stop_node_before(&["HPUB q1.log."]),
            Moment::Resume => {
                self.restart_node(session);
                self.stop_node_before(&["HPUB q1.log."]);
            }
            Moment::BetweenEnds => self.stop_node_before(&["Q-End: ends-1", "HPUB q1.ev."]),
            _ => {}
        }
        self.client.send(&named(session, &moment.prompt(), &format!("go [{session}]")));
        match moment {
            Moment::FirstToken | Moment::MidToken => self.mock.reached(session),
            Moment::Draining => {
                self.mock.reached(session);
                self.node.as_ref().unwrap().signal(Signal::TERM);
            }
            Moment::MidTool => {
                self.client.allow(session);
                self.wait_for_tool();
            }
            Moment::AwaitingAnswer => {
                self.client.read_until(|client| client.questions.contains_key(session));
            }
            Moment::Idle => drop(self.client.end_of(&moment.prompt())),
            Moment::BeforeCommit => {
                self.client.read_until(|client| client.questions.contains_key(session));
                self.stop_node_before(&["Q-Effect: "]);
                self.client.allow(session);
                self.wait_stopped();
            }
            Moment::Claim | Moment::Resume | Moment::BetweenEnds => self.wait_stopped(),
        }
    }

    /// Gives a session a log on the node, and starts the node again.
    fn restart_node(&mut self, session: &str) {
        let prompt = format!("{session}-0");
        self.client.send(&named(session, &prompt, "begin"));
        assert_eq!(self.client.end_of(&prompt), "done");
        let node = self.node.take().unwrap();
        node.signal(Signal::TERM);
        assert_eq!(node.wait().code, Some(143));
        let node = self.program.start();
        node.wait_for_stderr("is on the bus");
        self.node = Some(node);
        self.client.wait_for_nodes(2);
    }

    /// Holds what the node sends from the last of these texts on.
    fn stop_node_before(&self, texts: &[&str]) {
        for link in &self.node_links {
            link.stop_before(texts);
        }
    }

    /// Waits until the node has sent what it is stopped at.
    #[track_caller]
    fn wait_stopped(&self) {
        let deadline = Instant::now() + WAIT_LIMIT;
        while !self.node_links.iter().any(Link::is_stopped) {
            assert!(Instant::now() < deadline, "the node did not send what it is to be stopped at");
            std::thread::yield_now();
        }
    }

    #[track_caller]
    fn wait_for_tool(&self) {
        let started = self.program.cwd_path().join("tools.jsonl");
        let deadline = Instant::now() + WAIT_LIMIT;
        while !started.exists() {
            assert!(Instant::now() < deadline, "the tool did not start");
            std::thread::yield_now();
        }
    }

    /// Starts another hub, whose client attaches to every session.
    pub fn attach_elsewhere(&mut self, sessions: &[&str]) -> Client {
        let hub = Self::hub_program(&self.servers.url(), "h2", self.history.path()).start();
        let mut client = Client::new(hub);
        for session in sessions {
            client.send(&request(session, "attach", json!({"session_id": session, "after": 0})));
        }
        client
    }

    /// Lets the model and the tools of the first turns end.
    pub fn let_turns_end(&mut self) {
        for gate in ["first", "mid", "drain"] {
            self.mock.open(gate);
        }
        std::fs::write(self.program.cwd_path().join("release"), "").unwrap();
    }

    /// The status with which the first turn of a session ended. A question is answered if its node is there.
    #[track_caller]
    pub fn end_of(&mut self, moment: Moment) -> String {
        let (session, prompt) = (moment.session(), moment.prompt());
        if moment.asks() && !self.fault.ends_turns() {
            self.client
                .read_until(|client| client.has_ended(&prompt) || client.questions.contains_key(session));
            if !self.client.has_ended(&prompt) {
                self.client.allow(session);
            }
        }
        self.client.end_of(&prompt)
    }

    /// Sends a second prompt, and returns the status of its end.
    #[track_caller]
    pub fn continue_session(&mut self, moment: Moment) -> String {
        let session = moment.session();
        let prompt = format!("{session}-2");
        self.client.send(&named(session, &prompt, "go on"));
        self.client.end_of(&prompt)
    }

    /// Ends all processes and checks what they have recorded.
    pub fn check_history(mut self) {
        assert_eq!(self.client.run.finish().code, Some(0));
        let mut places: Vec<(String, PathBuf)> = vec![("a".to_owned(), self.program.cwd_path().to_owned())];
        let nodes = self.node.take().into_iter().chain(self.others.drain(..).map(|(program, run)| {
            places.push(("b".to_owned(), program.cwd_path().to_owned()));
            run
        }));
        for node in nodes.collect::<Vec<_>>() {
            node.signal(Signal::TERM);
            assert_eq!(node.wait().code, Some(143));
        }
        for (name, cwd) in places {
            let directory = self.history.path().join(format!("tools-{name}"));
            if cwd.join("tools.jsonl").exists() {
                std::fs::create_dir_all(&directory).unwrap();
                std::fs::copy(cwd.join("tools.jsonl"), directory.join("tools.jsonl")).unwrap();
            }
        }
        check_history(&self.servers, self.history.path());
    }
}
