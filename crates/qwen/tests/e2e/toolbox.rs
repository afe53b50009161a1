//! Every built-in tool through the real binary: what the model is told, and what happened on disk.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use mock_model::process::Program;
use mock_model::{MockModel, Reply, Request};
use serde_json::{Value, json};

use crate::stage::{asked, judged, qwen};
use crate::wire::QWEN;

/// A workspace, and what came of calls made in it one after the other.
struct Shop {
    program: Program,
    mock: MockModel,
}

/// What the model is told of a call.
struct Told {
    text: String,
    is_error: bool,
    display: Value,
}

impl Shop {
    fn new() -> Self {
        let mock = MockModel::start();
        let program = asked(&mock, QWEN).arg("--yolo");
        Self { program, mock }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.program.cwd_path().join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Lets the model make these calls, one a message, and then say that it is done.
    #[track_caller]
    fn calls(&self, calls: &[(&str, Value)]) -> Vec<Told> {
        let script: Vec<Reply> = calls
            .iter()
            .enumerate()
            .map(|(at, (name, arguments))| Reply::call(&format!("c{at}"), name, &arguments.to_string()))
            .collect();
        let mut script = script.into_iter();
        self.mock.answer_with(move |_: &Request| Some(script.next().unwrap_or_else(|| Reply::text("Done."))));
        let ended = self.program.run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        judged(QWEN, &ended);
        let request = self.mock.requests().pop().unwrap();
        let texts: HashMap<String, String> = (request.messages().iter())
            .filter(|message| message["role"] == "tool")
            .map(|message| (message["tool_call_id"].as_str().unwrap().to_owned(), plain(&message["content"])))
            .collect();
        let lines = ended.json_lines();
        (0..calls.len())
            .map(|at| {
                let id = format!("c{at}");
                let shown =
                    |line: &&Value| line["type"] == "x-qwen-tool-display" && line["tool_call_id"] == *id;
                let display = lines.iter().rfind(shown).cloned().unwrap_or_default();
                let is_error = display["status"] == "error";
                Told { text: texts[&id].clone(), is_error, display }
            })
            .collect()
    }
}

fn plain(content: &Value) -> String {
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}

impl Told {
    #[track_caller]
    fn says(&self, pieces: &[&str]) -> &Self {
        let shown: String = self.text.chars().take(500).collect();
        assert!(pieces.iter().all(|piece| self.text.contains(piece)), "{pieces:?} in {shown:?}");
        self
    }

    #[track_caller]
    fn well(&self) -> &Self {
        assert!(!self.is_error, "{}: {}", self.text, self.display);
        self
    }

    #[track_caller]
    fn wrong(&self) -> &Self {
        assert!(self.is_error, "{}: {}", self.text, self.display);
        self
    }
}

#[test]
fn a_file_is_read_whole_in_part_or_kindly_refused() {
    let shop = Shop::new();
    shop.put("a.txt", "one\ntwo\nthree\n");
    shop.put("empty", "");
    shop.put("long-line", "x".repeat(200_000));
    shop.put("many", "line\n".repeat(5_000));
    shop.put("program", b"\x7fELF\0\0\0");
    shop.put("latin", b"gr\xfc\xdfe");
    shop.put("large", vec![b'x'; 21 << 20]);
    shop.put("picture.png", b"\x89PNG\r\n\x1a\n");
    fs::create_dir(shop.path("folder")).unwrap();
    let read = |name: &str| ("read_file", json!({"file_path": name}));
    let told = shop.calls(&[
        read("a.txt"),
        ("read_file", json!({"file_path": "a.txt", "offset": 1, "limit": 1})),
        read(shop.path("a.txt").to_str().unwrap()),
        read("empty"),
        read("long-line"),
        read("many"),
        read("program"),
        read("latin"),
        read("large"),
        read("nothing"),
        read("folder"),
        ("read_file", json!({"file_path": "a.txt", "offset": 99})),
        read("picture.png"),
    ]);
    assert_eq!(told[0].well().text, "one\ntwo\nthree\n");
    told[1].well().says(&["lines 2 to 2 of 3", "read on with offset 2", "two\n"]);
    assert_eq!(told[2].well().text, "one\ntwo\nthree\n");
    told[3].well().says(&["empty"]);
    told[4].well().says(&["was cut"]);
    assert!(told[4].text.len() < 70_000);
    told[5].well().says(&["lines 1 to 2000 of 5000", "offset 2000"]);
    told[6].wrong().says(&["program", "binary"]);
    told[7].well().says(&["not UTF-8"]);
    told[8].wrong().says(&["22020096 bytes"]);
    told[9].wrong().says(&["nothing"]);
    told[10].wrong().says(&["folder"]);
    told[11].wrong().says(&["offset", "3 lines"]);
    told[12].well().says(&["image/png"]);
    let sent = shop.mock.requests().pop().unwrap().body.to_string();
    assert!(sent.contains("data:image/png;base64,iVBORw0KGgo="), "the image is no part of the request");
}

#[test]
fn a_file_is_written_in_one_step_and_keeps_its_mode_and_line_ends() {
    let shop = Shop::new();
    shop.put("run.sh", "#!/bin/sh\r\necho old\r\n");
    fs::set_permissions(shop.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(shop.path("run.sh"), shop.path("other-name")).unwrap();
    fs::create_dir(shop.path("folder")).unwrap();
    let write = |name: &str, content: &str| ("write_file", json!({"file_path": name, "content": content}));
    let told = shop.calls(&[
        write("deep/er/new.txt", "a\nb\n"),
        write("run.sh", "#!/bin/sh\necho new\n"),
        write("folder", "x"),
        write("run.sh/x", "x"),
    ]);
    told[0].well().says(&["+2 -0"]);
    told[1].well().says(&["+1 -1"]);
    told[2].wrong().says(&["folder"]);
    told[3].wrong();
    assert_eq!(shop.read("deep/er/new.txt"), "a\nb\n");
    assert_eq!(shop.read("run.sh"), "#!/bin/sh\r\necho new\r\n");
    assert_eq!(shop.read("other-name"), "#!/bin/sh\r\necho old\r\n");
    assert_eq!(fs::metadata(shop.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    let names: Vec<_> =
        fs::read_dir(shop.program.cwd_path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "something was left behind: {names:?}");
}

#[test]
fn a_file_that_changed_on_disk_is_not_overwritten_until_it_is_read_again() {
    let shop = Shop::new();
    shop.put("a.txt", "one\n");
    let read = || ("read_file", json!({"file_path": "a.txt"}));
    let change = || ("run_shell_command", json!({"command": "echo theirs >> a.txt"}));
    let told = shop.calls(&[
        read(),
        change(),
        ("write_file", json!({"file_path": "a.txt", "content": "mine\n"})),
        ("edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        read(),
        ("edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        ("write_file", json!({"file_path": "a.txt", "content": "mine\n"})),
    ]);
    told[2].wrong().says(&["was changed by something else"]);
    told[3].wrong().says(&["was changed by something else"]);
    told[5].well();
    told[6].well();
    assert_eq!(shop.read("a.txt"), "mine\n");
}

#[test]
fn an_edit_is_exact_and_unique_and_its_diff_is_shown_with_line_counts() {
    let shop = Shop::new();
    shop.put("a.rs", "fn one() {\n    1\n}\nfn two() {\n    1\n}\n");
    let edit = |old: &str, new: &str| json!({"file_path": "a.rs", "old_string": old, "new_string": new});
    let all = json!({"file_path": "a.rs", "old_string": "    1", "new_string": "    2\n    + 2", "replace_all": true});
    let told = shop.calls(&[
        ("edit", edit("fn one()", "fn first()")),
        ("edit", edit("    1", "    2")),
        ("edit", edit("fn two() {\n  1\n}", "x")),
        ("edit", edit("fn one()", "fn one()")),
        ("edit", json!({"file_path": "none.rs", "old_string": "x", "new_string": "y"})),
        ("edit", edit("", "x")),
        ("replace", all),
        ("edit", json!({"file_path": "made.rs", "old_string": "", "new_string": "new\n"})),
    ]);
    told[0].well().says(&["+1 -1"]);
    told[1].wrong().says(&["2 times", "line 2", "line 5", "replace_all"]);
    told[2].wrong().says(&["nearest is at line 4", "white space"]);
    told[3].wrong().says(&["same"]);
    told[4].wrong().says(&["none.rs", "does not exist"]);
    told[5].wrong().says(&["exists"]);
    told[6].well().says(&["2 occurrences", "+4 -2"]);
    told[7].well();
    assert_eq!(shop.read("a.rs"), "fn first() {\n    2\n    + 2\n}\nfn two() {\n    2\n    + 2\n}\n");
    assert_eq!(shop.read("made.rs"), "new\n");
    let shown = told[6].display.to_string();
    assert!(
        shown.contains("@@")
            && shown.contains("ai_added_lines\":4")
            && shown.contains("ai_removed_lines\":2"),
        "{shown}"
    );
}

#[test]
fn directories_are_listed_and_files_and_lines_are_found() {
    let shop = Shop::new();
    for (name, text) in [
        ("src/a.rs", "fn needle() {}\n"),
        ("src/b.ts", "Needle\n"),
        ("skip.log", "needle\n"),
        ("build/out", "needle\n"),
        ("secret.me", "needle\n"),
        (".gitignore", "*.log\nbuild/\n"),
        (".qwenignore", "secret.me\n"),
        (".git/config", "needle\n"),
        ("bin", "needle\0"),
    ] {
        shop.put(name, text);
    }
    let told = shop.calls(&[
        ("list_directory", json!({"path": "."})),
        ("list_directory", json!({"path": ".", "ignore": ["*.log", "src"]})),
        ("list_directory", json!({"path": "nowhere"})),
        ("list_directory", json!({"path": "skip.log"})),
        ("glob", json!({"pattern": "**/*.{rs,ts,log}"})),
        ("glob", json!({"pattern": "*.rs", "path": "src"})),
        ("glob", json!({"pattern": "*.zig"})),
        ("grep_search", json!({"pattern": "needle"})),
        ("grep_search", json!({"pattern": "Needle"})),
        ("grep_search", json!({"pattern": "needle", "glob": "*.ts"})),
        ("grep_search", json!({"pattern": "needle", "path": "src/a.rs"})),
        ("grep_search", json!({"pattern": "needle", "limit": 1})),
        ("grep_search", json!({"pattern": "("})),
        ("search_file_content", json!({"pattern": "fn \\w+"})),
        ("grep_search", json!({"pattern": "root", "path": "/etc"})),
    ]);
    told[0].well().says(&["src/\n", "skip.log (7 bytes)"]);
    assert!(!told[1].well().text.contains("skip.log") && !told[1].text.contains("src/"));
    told[2].wrong().says(&["nowhere"]);
    told[3].wrong().says(&["skip.log"]);
    told[4].well().says(&["2 files", "src/a.rs", "src/b.ts"]);
    told[5].well().says(&["src/a.rs"]);
    told[6].well().says(&["No file"]);
    told[7].well().says(&["2 matches in 2 files", "src/a.rs\n1: fn needle() {}", "src/b.ts\n1: Needle"]);
    told[8].well().says(&["1 match", "src/b.ts"]);
    told[9].well().says(&["1 match", "src/b.ts"]);
    told[10].well().says(&["1 match", "src/a.rs"]);
    told[11].well().says(&["The first 1 matches"]);
    told[12].wrong().says(&["`pattern`", "regular expression"]);
    told[13].well().says(&["fn needle"]);
    told[14].wrong();
}

#[test]
fn a_command_is_streamed_ended_in_time_and_kept_whole() {
    let shop = Shop::new();
    fs::create_dir(shop.path("sub")).unwrap();
    let run = |command: &str| ("run_shell_command", json!({"command": command}));
    let told = shop.calls(&[
        run("echo out; echo err >&2; exit 3"),
        ("run_shell_command", json!({"command": "pwd", "directory": "sub", "description": "Where am I"})),
        ("run_shell_command", json!({"command": "echo before; sleep 1000", "timeout": 300})),
        run("seq 1 20000"),
        run("kill -9 $$"),
        run("cat"),
        run("true"),
    ]);
    told[0].wrong().says(&["out\n", "err\n", "Exit code: 3"]);
    told[1].well().says(&["/sub\n"]);
    told[2].wrong().says(&["before", "timed out after 300 ms"]);
    told[3].well().says(&["1\n2\n3\n", "20000\n"]);
    assert!(told[3].text.len() < 40_000, "{}", told[3].text.len());
    told[4].wrong().says(&["signal 9"]);
    told[5].well();
    told[6].well().says(&["(no output)"]);
    // The scratch directory goes with the session, so that its file is looked at by a command of the same session.
    let again = Shop::new();
    let told = again.calls(&[run("seq 1 20000")]);
    let file = told[0].text.split_whitespace().find(|word| word.contains("shell") && word.contains('/'));
    assert!(file.is_some(), "the file with the whole output is not named");
}

#[test]
fn a_command_in_the_background_is_looked_at_and_ended() {
    let shop = Shop::new();
    let started =
        "echo started; echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo went; sleep 1000";
    let told = shop.calls(&[
        ("run_shell_command", json!({"command": started, "is_background": true})),
        ("run_shell_command", json!({"command": "while [ ! -s pid ]; do sleep 0.01; done"})),
        ("shell_task", json!({"task_id": "shell-1", "action": "output"})),
        ("shell_task", json!({"task_id": "shell-1", "action": "kill"})),
        ("shell_task", json!({"task_id": "shell-1", "action": "output"})),
        ("shell_task", json!({"task_id": "nobody", "action": "output"})),
    ]);
    told[0].well().says(&["background"]);
    let id = told[0].text.split_whitespace().find(|word| word.starts_with("shell-")).unwrap().to_owned();
    assert_eq!(id, "shell-1");
    told[2].well().says(&["started", "It is running."]);
    told[3].well().says(&["was ended"]);
    told[4].well();
    told[5].wrong().says(&["no background task"]);
    mock_model::process::wait_gone(shop.read("pid").trim().parse().unwrap());
}

#[test]
fn every_bad_argument_is_one_tool_error_and_the_turn_goes_on() {
    let shop = Shop::new();
    shop.put("a.txt", "one\n");
    let wrong: &[(&str, Value, &str)] = &[
        ("read_file", json!({}), "`file_path` is missing"),
        ("read_file", json!({"file_path": ["a.txt"]}), "`file_path` must be a string"),
        (
            "read_file",
            json!({"file_path": "a.txt", "lines": 3}),
            "no argument `lines`; the arguments are `file_path`, `limit`, `offset`",
        ),
        ("read_file", json!({"file_path": "x".repeat(100_000)}), ""),
        ("read_file", json!({"file_path": "a.txt", "offset": 1e30}), "`offset`"),
        ("write_file", json!({"file_path": "b.txt"}), "`content` is missing"),
        ("write_file", json!({"file_path": "b.txt", "content": 7}), "`content` must be a string"),
        (
            "edit",
            json!({"file_path": "a.txt", "old_string": "one", "new_string": "two", "replaceAll": true}),
            "no argument `replaceAll`",
        ),
        ("glob", json!({"pattern": null}), "`pattern` is missing"),
        ("grep_search", json!({"pattern": "a".repeat(2_000_000)}), "`pattern`"),
        ("list_directory", json!({"path": ".", "ignore": "x"}), "`ignore`"),
        ("run_shell_command", json!({"cmd": "touch made"}), "no argument `cmd`"),
        ("run_shell_command", json!({"command": "touch made", "timeout": "soon"}), "`timeout`"),
        ("todo_write", json!({"todos": "all"}), "`todos` must be a list"),
        ("web_fetch", json!({"url": "ftp://example.org/", "prompt": "p"}), "`url`"),
        ("web_fetch", json!({"prompt": "p"}), "`url` is missing"),
        ("save_memory", json!({"fact": " "}), "`fact`"),
        ("save_memory", json!({"fact": "f", "scope": "world"}), "`scope`"),
        ("exit_plan_mode", json!({}), "`plan` is missing"),
        ("agent", json!({"description": "d"}), "`prompt` is missing"),
        (
            "agent",
            json!({"description": "d", "prompt": "p", "subagent_type": "nobody"}),
            "no sub-agent 'nobody'",
        ),
        ("no_such_tool", json!({}), "no tool called 'no_such_tool'"),
    ];
    let calls: Vec<(&str, Value)> =
        wrong.iter().map(|(name, arguments, _)| (*name, arguments.clone())).collect();
    for (told, (name, _, piece)) in shop.calls(&calls).iter().zip(wrong) {
        assert!(
            told.is_error && told.text.contains(piece),
            "{name}, {piece}: {}",
            told.text.chars().take(300).collect::<String>()
        );
        assert!(told.text.len() < 10_000, "{name}: {} bytes of complaint", told.text.len());
    }
    assert!(!shop.path("made").exists() && !shop.path("b.txt").exists());
    assert_eq!(shop.read("a.txt"), "one\n");
}

#[test]
fn the_tools_have_the_names_and_arguments_that_programs_bind_to() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    qwen().with_model(&mock).args(["-p", "Hello", "--model", "mock"]).run();
    let body = &mock.requests()[0].body;
    let properties = |name: &str| -> (Vec<String>, Vec<String>) {
        let tools = body["tools"].as_array().unwrap();
        let tool =
            tools.iter().find(|tool| tool["function"]["name"] == name).unwrap_or_else(|| panic!("{name}"));
        let parameters = &tool["function"]["parameters"];
        let mut all: Vec<String> = parameters["properties"].as_object().unwrap().keys().cloned().collect();
        all.sort();
        let required = parameters["required"].as_array().unwrap();
        (all, required.iter().map(|field| field.as_str().unwrap().to_owned()).collect())
    };
    for (name, all, required) in [
        ("read_file", &["file_path", "limit", "offset"][..], &["file_path"][..]),
        ("write_file", &["content", "file_path"], &["file_path", "content"]),
        (
            "edit",
            &["file_path", "new_string", "old_string", "replace_all"],
            &["file_path", "old_string", "new_string"],
        ),
        ("glob", &["path", "pattern"], &["pattern"]),
        ("grep_search", &["glob", "limit", "path", "pattern"], &["pattern"]),
        ("list_directory", &["ignore", "path"], &["path"]),
        (
            "run_shell_command",
            &["command", "description", "directory", "is_background", "timeout"],
            &["command"],
        ),
        ("todo_write", &["todos"], &["todos"]),
        ("web_fetch", &["format", "prompt", "url"], &["url", "prompt"]),
        ("ask_user_question", &["questions"], &["questions"]),
        ("exit_plan_mode", &["plan"], &["plan"]),
        (
            "agent",
            &["description", "prompt", "run_in_background", "subagent_type"],
            &["description", "prompt"],
        ),
    ] {
        let (found, needed) = properties(name);
        assert_eq!(
            (found, needed),
            (
                all.iter().map(|s| (*s).to_owned()).collect(),
                required.iter().map(|s| (*s).to_owned()).collect()
            ),
            "{name}"
        );
    }
}

#[test]
fn a_search_shows_nothing_of_a_file_that_may_not_be_read() {
    let mock = MockModel::with([
        Reply::call("c1", "grep_search", r#"{"pattern":"needle"}"#),
        Reply::call("c2", "grep_search", r#"{"pattern":"needle","path":"keys/secret"}"#),
        Reply::text("Done."),
    ]);
    let program =
        asked(&mock, QWEN).args(["--yolo", "--settings", r#"{"permissions":{"deny":["Read(/keys/**)"]}}"#]);
    for (name, text) in [("keys/secret", "needle in keys"), ("open", "needle in the open")] {
        fs::create_dir_all(program.cwd_path().join(name).parent().unwrap()).unwrap();
        fs::write(program.cwd_path().join(name), text).unwrap();
    }
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = mock.requests()[2].body["messages"].to_string();
    assert!(told.contains("needle in the open") && !told.contains("needle in keys"), "{told}");
}

/// A worker whose host answers its questions.
fn asked_by_a_worker(mock: &MockModel, flags: &[&str], answer: &Value) -> (Value, Vec<Value>) {
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--model", "mock"]
        .iter()
        .chain(flags)
        .copied();
    let mut run = qwen().with_model(mock).args(flags).start();
    run.write_line(json!({"messages": [{"role": "user", "content": "Go"}]}));
    let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": answer});
    run.write_line(json!({"type": "control_response", "response": response}));
    let lines = run.json_until(|line| line["metadata"]["turn"].is_object());
    (question, lines)
}

#[test]
fn a_question_to_the_user_is_put_in_every_mode_and_only_the_host_answers_it() {
    let question = json!({"questions": [{"question": "Which colour?", "options": [{"label": "red"}]}]});
    for mode in ["default", "yolo"] {
        let mock = MockModel::with([
            Reply::call("c1", "ask_user_question", &question.to_string()),
            Reply::text("Done."),
        ]);
        let answer = json!({"behavior": "allow", "updatedInput": {"questions": question["questions"], "answers": {"Which colour?": "red"}}});
        let (asked, _) = asked_by_a_worker(&mock, &["--approval-mode", mode], &answer);
        assert!(asked.to_string().contains("Which colour?"), "{asked}");
        let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
        assert!(told.contains("Which colour?: red"), "{mode}: {told}");
    }
    // The model cannot answer its own question, and where nobody is there, that is said.
    let forged = json!({"questions": question["questions"], "answers": {"Which colour?": "blue"}});
    for (arguments, piece) in [(forged, "no argument `answers`"), (question, "requires permission")] {
        let mock = MockModel::with([
            Reply::call("c1", "ask_user_question", &arguments.to_string()),
            Reply::text("Done."),
        ]);
        let ended = asked(&mock, QWEN).arg("--yolo").run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
        assert!(told.contains(piece) && !told.contains("blue"), "{told}");
    }
}

#[test]
fn a_plan_is_shown_and_work_begins_once_it_is_agreed_to() {
    for (behavior, mode) in [("allow", "default"), ("deny", "plan")] {
        let mock = MockModel::with([
            Reply::call("c1", "exit_plan_mode", r##"{"plan":"# First\nthen"}"##),
            Reply::text("Done."),
        ]);
        let answer = json!({"behavior": behavior});
        let (asked, lines) = asked_by_a_worker(&mock, &["--approval-mode", "plan"], &answer);
        assert!(asked.to_string().contains("# First"), "{asked}");
        let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
        assert_eq!(told.contains("agreed"), behavior == "allow", "{told}");
        assert_eq!(
            lines.iter().any(|line| line.to_string().contains("ModeChanged")),
            mode == "default",
            "{lines:?}"
        );
    }
}
