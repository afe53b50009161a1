//! A turn with everything in it, and a second prompt that waits: what the model says, the tools, and where it
//! can be held.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use mock_model::process::Program;
use mock_model::{MockModel, Reply, Step, WAIT_LIMIT, gate, sse};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::endings::fifo;

/// The gate before all others: it opens when the worker has heard both prompts.
pub const BEGIN: &str = "begin";

/// What can be held besides the model: the server while it is greeted, and the two tools that take their
/// time.
pub const HELD: [&str; 3] = ["greeting", "shell", "server"];

/// The places of the story that the worker's host is asked about.
pub const HOOKS: [&str; 4] = ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];

/// A server over pipes with one tool. It says that it is at work and waits until it may go on.
const SERVER: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
    *'"method":"initialize"'*)
        echo up > greeting.up; read -r go < greeting.go
        say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"lib","version":"1"}}' ;;
    *'"method":"tools/list"'*)
        say '{"tools":[{"name":"lend","description":"Lends a book.","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*)
        echo up > server.up; read -r go < server.go
        say '{"content":[{"type":"text","text":"Here you are."}]}' ;;
    esac
done
"#;

/// A command with a grandchild that has left its process group. It too waits until it may go on.
const COMMAND: &str =
    "setsid sh -c 'cat never' > /dev/null 2>&1 & echo up > shell.up; read -r go < shell.go; echo went";

/// What the model does about each request of the story, in order.
fn replies() -> Vec<Vec<Step>> {
    let call = |id: &str, name: &str, arguments: Value| {
        vec![sse::call(0, id, name, &arguments.to_string()), sse::finish("tool_calls"), sse::done()]
    };
    let say = |words: &[&str]| {
        let words = words.iter().map(|word| sse::text(word));
        words.chain([sse::finish("stop"), sse::usage(10, 2), sse::done()]).collect::<Vec<Step>>()
    };
    let soon = vec![("retry-after-ms".to_owned(), "0".to_owned())];
    let agent = json!({"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"});
    vec![
        vec![Step::Status(429, soon, r#"{"error":{"message":"slow down"}}"#.to_owned())],
        vec![
            sse::role(),
            sse::thought("**Hm** so"),
            sse::text("Let me"),
            sse::text(" look."),
            sse::call(0, "read", "read_file", r#"{"file_path":"#),
            sse::arguments(0, r#""a.txt"}"#),
            sse::finish("tool_calls"),
            sse::usage(20, 7),
            sse::done(),
        ],
        call("run", "run_shell_command", json!({"command": COMMAND})),
        call("lend", "mcp__lib__lend", json!({})),
        call("task", "agent", agent),
        // The sub-agent.
        call("look", "read_file", json!({"file_path": "a.txt"})),
        say(&["It says ", "alpha."]),
        // The window is nearly full, so that a summary comes next.
        vec![
            sse::call(0, "list", "list_directory", r#"{"path":"."}"#),
            sse::finish("tool_calls"),
            sse::usage(125_000, 20),
            sse::done(),
        ],
        say(&["They looked ", "around."]),
        say(&["All ", "done."]),
        // The second prompt.
        say(&["And ", "again."]),
    ]
}

/// A story that is ready to be played.
pub struct Story {
    pub mock: MockModel,
    pub program: Program,
    holds: Vec<Hold>,
    /// Where the worker puts what is temporary.
    pub temporary: TempDir,
    /// What is in the working directory.
    pub brought: BTreeSet<OsString>,
}

/// Something that says when it is there, and goes on when it is told to.
struct Hold {
    name: &'static str,
    up: File,
    go: File,
}

impl Story {
    /// All goes by itself, except where it is held: at a gate of the model, or in a tool.
    pub fn new(start: impl FnOnce(&MockModel) -> Program, held: Option<&str>) -> Self {
        let mock = MockModel::start();
        let temporary = tempfile::tempdir().unwrap();
        for (number, steps) in replies().into_iter().enumerate() {
            let begin = (number == 0).then(|| gate(BEGIN));
            let steps = steps.into_iter().enumerate();
            let gated = steps.flat_map(|(step, what)| [gate(&gate_name(number, step)), what]);
            mock.push(Reply::new(begin.into_iter().chain(gated)));
        }
        mock.answer_with(|_: &mock_model::Request| Some(Reply::text("fine")));
        gates().iter().filter(|gate| held != Some(gate)).for_each(|gate| mock.open(gate));
        let program = start(&mock).env("TMPDIR", temporary.path());
        fs::write(program.cwd_path().join("a.txt"), "alpha\n").unwrap();
        fs::write(program.cwd_path().join("server.sh"), SERVER).unwrap();
        fs::create_dir_all(program.qwen_home_path()).unwrap();
        let server = json!({"command": "sh", "args": [program.cwd_path().join("server.sh")]});
        let settings = json!({"mcpServers": {"lib": server}}).to_string();
        fs::write(program.qwen_home_path().join("settings.json"), settings).unwrap();
        fifo(&program, "never");
        let open = |name: &str| {
            let path = fifo(&program, name);
            // Whoever holds both ends waits for nobody.
            File::options().read(true).write(true).open(path).unwrap()
        };
        let hold = |name| Hold { name, up: open(&format!("{name}.up")), go: open(&format!("{name}.go")) };
        let holds = HELD.into_iter().map(hold).collect();
        let brought = names_in(program.cwd_path());
        let story = Self { mock, program, holds, temporary, brought };
        HELD.iter().filter(|place| held != Some(place)).for_each(|place| story.release(place));
        story
    }

    /// Waits until the story is at this place.
    #[track_caller]
    pub fn reached(&self, place: &str) {
        let Some(hold) = self.holds.iter().find(|hold| hold.name == place) else {
            return self.mock.reached(place);
        };
        let patience = Timespec { tv_sec: WAIT_LIMIT.as_secs().cast_signed(), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&hold.up.as_fd(), PollFlags::IN)], Some(&patience)).unwrap();
        assert_eq!(ready, 1, "{place} was never at work");
        (&hold.up).read_exact(&mut [0; 3]).unwrap();
    }

    /// Lets it go on from there.
    pub fn release(&self, place: &str) {
        match self.holds.iter().find(|hold| hold.name == place) {
            Some(hold) => (&hold.go).write_all(b"go\n").unwrap(),
            None => self.mock.open(place),
        }
    }
}

/// The names of what a directory holds.
pub fn names_in(path: &Path) -> BTreeSet<OsString> {
    fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// The gates of the model: before it answers, and after each piece of an answer but the last.
pub fn gates() -> Vec<String> {
    let steps = replies().into_iter().map(|steps| steps.len()).enumerate();
    steps.flat_map(|(reply, steps)| (0..steps).map(move |step| gate_name(reply, step))).collect()
}

fn gate_name(reply: usize, step: usize) -> String {
    format!("reply {reply}, step {step}")
}
