//! The calls whose results are recorded.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use super::commands;

/// A PNG image up to its header.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
const UNICODE: &str = "naïve café\n日本語 ☃\n👩‍🚀 e\u{301} עברית\n";

/// Cases that share a session and its files.
pub struct Group {
    pub prepare: fn(&Path),
    pub cases: Vec<Case>,
}

/// A call.
pub struct Case {
    /// `None` if the call only prepares later ones.
    pub title: Option<&'static str>,
    /// A file that is made just before the call, which a background command waits for. A command that ended
    /// earlier could be reported with the result of the call before.
    pub releases: Option<&'static str>,
    tool: &'static str,
    arguments: Value,
}

impl Case {
    pub fn titled(title: &'static str, tool: &'static str, arguments: Value) -> Self {
        Self { title: Some(title), releases: None, tool, arguments }
    }

    pub fn preparing(tool: &'static str, arguments: Value) -> Self {
        Self { title: None, releases: None, tool, arguments }
    }

    pub fn releasing(self, file: &'static str) -> Self {
        Self { releases: Some(file), ..self }
    }

    /// Whether the vocabulary has this call.
    pub fn is_in(&self, vocabulary: &str) -> bool {
        match vocabulary {
            "qwen" => self.tool != "notebook_edit",
            _ => self.arguments.get("tail").is_none(),
        }
    }

    /// The names of tool and arguments in a vocabulary.
    pub fn call(&self, vocabulary: &str) -> (String, Value) {
        if vocabulary == "qwen" {
            return (self.tool.to_owned(), self.arguments.clone());
        }
        let arguments = self.arguments.as_object().unwrap();
        if self.tool == "shell_task" {
            return call_of_claudes_task(arguments);
        }
        let name = match self.tool {
            "read_file" => "Read",
            "write_file" => "Write",
            "edit" => "Edit",
            "list_directory" => "LS",
            "glob" => "Glob",
            "grep_search" => "Grep",
            "run_shell_command" => "Bash",
            "todo_write" => "TodoWrite",
            "web_fetch" => "WebFetch",
            "notebook_edit" => "NotebookEdit",
            other => panic!("{other} has no name in Claude's vocabulary"),
        };
        let renamed = arguments.iter().map(|(name, value)| match (self.tool, &**name) {
            ("grep_search", "limit") => ("head_limit".to_owned(), value.clone()),
            ("run_shell_command", "is_background") => ("run_in_background".to_owned(), value.clone()),
            _ => (name.clone(), value.clone()),
        });
        let mut renamed: Map<String, Value> = renamed.collect();
        if self.tool == "grep_search" {
            renamed.insert("output_mode".to_owned(), "content".into());
        }
        (name.to_owned(), renamed.into())
    }
}

fn call_of_claudes_task(arguments: &Map<String, Value>) -> (String, Value) {
    let id = &arguments["task_id"];
    if arguments["action"] == "kill" {
        return ("KillShell".to_owned(), json!({"shell_id": id}));
    }
    match arguments.get("wait") {
        Some(wait) => ("TaskOutput".to_owned(), json!({"task_id": id, "block": true, "timeout": wait})),
        None => ("BashOutput".to_owned(), json!({"bash_id": id})),
    }
}

pub fn groups() -> Vec<Group> {
    vec![
        Group { prepare: prepare_texts, cases: reads() },
        Group { prepare: prepare_texts, cases: edits() },
        Group { prepare: prepare_texts, cases: writes() },
        Group { prepare: prepare_directories, cases: lists() },
        Group { prepare: prepare_directories, cases: globs() },
        Group { prepare: prepare_directories, cases: searches() },
        Group { prepare: prepare_notebook, cases: others() },
        Group { prepare: prepare_texts, cases: commands::foreground() },
        Group { prepare: prepare_texts, cases: commands::background() },
    ]
}

fn numbered(lines: usize) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

fn prepare_texts(directory: &Path) {
    let write = |name: &str, content: &[u8]| fs::write(directory.join(name), content).unwrap();
    write("short.txt", numbered(5).as_bytes());
    write("full.txt", numbered(2000).as_bytes());
    write("long.txt", numbered(2001).as_bytes());
    write("wide.txt", format!("{}\n", "w".repeat(999)).repeat(80).as_bytes());
    write("unicode.txt", UNICODE.as_bytes());
    write("windows.txt", b"one\r\ntwo\r\nthree");
    write("latin1.txt", b"caf\xe9\nplain\n");
    write("program.bin", b"\x7fELF\0\x01\x02\xff\xfe\0\0\0");
    write("image.png", IMAGE);
    write("empty.txt", b"");
    write("open.txt", b"one\ntwo");
    let long_line = "x".repeat(900);
    write("minified.js", format!("{long_line}\nrun(1);\n{long_line}\n").as_bytes());
    write("alike.txt", "total = v\u{430}lue\u{a0}+ offset\n".as_bytes());
    fs::create_dir(directory.join("folder")).unwrap();
}

fn reads() -> Vec<Case> {
    let read = |title, arguments| Case::titled(title, "read_file", arguments);
    vec![
        read("a whole file", json!({"file_path": "short.txt"})),
        read("a part", json!({"file_path": "short.txt", "offset": 2, "limit": 2})),
        read("an offset after the end", json!({"file_path": "short.txt", "offset": 9})),
        read("as many lines as come at once", json!({"file_path": "full.txt"})),
        read("one line more than comes at once", json!({"file_path": "long.txt"})),
        read("more bytes than come at once", json!({"file_path": "wide.txt"})),
        read("Unicode", json!({"file_path": "unicode.txt"})),
        read("CRLF without a last line end", json!({"file_path": "windows.txt"})),
        read("invalid UTF-8", json!({"file_path": "latin1.txt"})),
        read("a binary file", json!({"file_path": "program.bin"})),
        read("an image", json!({"file_path": "image.png"})),
        read("an empty file", json!({"file_path": "empty.txt"})),
        read("a file that does not exist", json!({"file_path": "missing.txt"})),
        read("a directory", json!({"file_path": "folder"})),
    ]
}

fn edits() -> Vec<Case> {
    let edit = |title, file: &str, old: &str, new: &str| {
        Case::titled(title, "edit", json!({"file_path": file, "old_string": old, "new_string": new}))
    };
    let all =
        json!({"file_path": "short.txt", "old_string": "line", "new_string": "row", "replace_all": true});
    vec![
        edit("one line", "short.txt", "line 3\n", "line three\n"),
        edit("no match", "short.txt", "line 2\nline 3\nline 4\n", "x"),
        edit("no match, because the last line has no line end", "open.txt", "two\n", "x"),
        edit("no match, because characters look the same", "alike.txt", "total = value + offset", "x"),
        edit("long lines around", "minified.js", "run(1);", "run(2);"),
        edit("no match at all", "short.txt", "nothing of the sort", "x"),
        edit("not unique", "short.txt", "line", "row"),
        Case::titled("every occurrence", "edit", all),
        edit("a new file", "made.txt", "", "made\n"),
        edit("Unicode", "unicode.txt", "日本語 ☃", "日本 ☀"),
        edit("as many changed lines as are shown", "full.txt", "line 100\n", &"new\n".repeat(34)),
        edit("more changed lines than are shown", "full.txt", "line 1000\n", &"new\n".repeat(35)),
        Case::preparing("read_file", json!({"file_path": "windows.txt"})),
        Case::preparing(
            "run_shell_command",
            json!({"command": "printf 'zero\\r\\none\\r\\ntwo\\r\\n' > windows.txt"}),
        ),
        edit("a file that a command changed", "windows.txt", "two", "second"),
        edit("a binary file", "program.bin", "ELF", "elf"),
        edit("a file that does not exist", "missing.txt", "a", "b"),
        edit("no change", "short.txt", "row 1", "row 1"),
    ]
}

fn writes() -> Vec<Case> {
    let write = |title, file: &str, content: &str| {
        Case::titled(title, "write_file", json!({"file_path": file, "content": content}))
    };
    vec![
        write("a new file", "new/deep.txt", "one\ntwo\n"),
        write("Unicode", "unicode-new.txt", UNICODE),
        write("a file that was not read", "short.txt", "x\n"),
        Case::preparing("read_file", json!({"file_path": "short.txt"})),
        write("a file that was read", "short.txt", "line 1\nline two\n"),
        write("the same content", "short.txt", "line 1\nline two\n"),
        Case::preparing("run_shell_command", json!({"command": "echo more >> short.txt"})),
        write("a file that a command changed", "short.txt", "x\n"),
        write("a directory", "folder", "x"),
        write("a path through a file", "short.txt/deep.txt", "x"),
    ]
}

fn prepare_notebook(directory: &Path) {
    let cell = json!({"id": "a1", "cell_type": "code", "source": ["x = 1\n", "x"], "metadata": {}, "execution_count": 1,
        "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["1"]}, "metadata": {}, "execution_count": 1}]});
    let notebook = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    fs::write(directory.join("book.ipynb"), notebook.to_string()).unwrap();
}

fn others() -> Vec<Case> {
    let todos = |title, todos: Value| Case::titled(title, "todo_write", json!({"todos": todos}));
    let todo =
        |content: &str, status: &str| json!({"content": content, "status": status, "activeForm": content});
    let notebook = |title, cell: &str, mode: &str| {
        let arguments = json!({"notebook_path": "book.ipynb", "cell_id": cell, "new_source": "x = 2", "edit_mode": mode,
            "cell_type": "code"});
        Case::titled(title, "notebook_edit", arguments)
    };
    vec![
        todos("one entry", json!([todo("look", "in_progress")])),
        todos("several entries", json!([todo("look", "completed"), todo("日本語", "pending")])),
        todos("an entry without a text", json!([todo("", "pending")])),
        Case::titled(
            "a private address",
            "web_fetch",
            json!({"url": "http://127.0.0.1:9/", "prompt": "the title"}),
        ),
        Case::titled("not an address", "web_fetch", json!({"url": "file:///etc/passwd", "prompt": "x"})),
        Case::titled("a notebook", "read_file", json!({"file_path": "book.ipynb"})),
        notebook("a cell replaced", "a1", "replace"),
        notebook("a cell that does not exist", "zz", "replace"),
        notebook("a cell deleted", "a1", "delete"),
    ]
}

/// Directories with as many entries as come at once, and one more.
fn prepare_directories(directory: &Path) {
    let fill = |name: &str, files: usize| {
        let folder = directory.join(name);
        fs::create_dir(&folder).unwrap();
        for number in 0..files {
            let path = folder.join(format!("{number:04}.{name}"));
            fs::write(&path, "").unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + number as u64);
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        }
    };
    fill("full", 1000);
    fill("over", 1001);
    fill("most", 200);
    fill("more", 201);
    for lines in [200, 201] {
        let needles: String = (1..=lines).map(|line| format!("needle {line}\n")).collect();
        fs::write(directory.join(format!("{lines}.txt")), needles).unwrap();
    }
    let mixed = directory.join("mixed");
    fs::create_dir_all(mixed.join("übung")).unwrap();
    fs::write(mixed.join("日本語.txt"), "Schnee ☃ here\n").unwrap();
    fs::write(mixed.join("two words.md"), "first\nSnow here\nlast\n").unwrap();
    fs::write(mixed.join("program.bin"), b"\x7fELF\0here\xff").unwrap();
    fs::write(mixed.join("latin1.txt"), b"caf\xe9 here\n").unwrap();
    fs::write(mixed.join("wide.txt"), format!("{}wide{}\n", "é".repeat(600), "x".repeat(600))).unwrap();
    fs::create_dir(directory.join("empty")).unwrap();
}

fn lists() -> Vec<Case> {
    let list = |title, arguments| Case::titled(title, "list_directory", arguments);
    vec![
        list("files and directories, Unicode", json!({"path": "mixed"})),
        list("without what is ignored", json!({"path": "mixed", "ignore": ["*.txt"]})),
        list("an empty directory", json!({"path": "empty"})),
        list("as many entries as come at once", json!({"path": "full"})),
        list("one entry more than comes at once", json!({"path": "over"})),
        list("a directory that does not exist", json!({"path": "missing"})),
        list("a file", json!({"path": "mixed/two words.md"})),
    ]
}

fn globs() -> Vec<Case> {
    let glob = |title, arguments| Case::titled(title, "glob", arguments);
    vec![
        glob("newest first", json!({"pattern": "full/000?.full"})),
        glob("Unicode in a directory", json!({"pattern": "日*", "path": "mixed"})),
        glob("no file", json!({"pattern": "*.none"})),
        glob("as many files as come at once", json!({"pattern": "most/*"})),
        glob("one file more than comes at once", json!({"pattern": "more/*"})),
        glob("a pattern that is not valid", json!({"pattern": "a[b"})),
        glob("a pattern that leads elsewhere", json!({"pattern": "/etc/*.conf"})),
        glob("a directory that does not exist", json!({"pattern": "*", "path": "missing"})),
    ]
}

fn searches() -> Vec<Case> {
    let search = |title, arguments| Case::titled(title, "grep_search", arguments);
    vec![
        search("Unicode, invalid UTF-8 and a binary file", json!({"pattern": "here", "path": "mixed"})),
        search("one file", json!({"pattern": "Snow", "path": "mixed/two words.md"})),
        search("a long line", json!({"pattern": "wide", "path": "mixed"})),
        search("no match", json!({"pattern": "no such text"})),
        search("a filter that no file fits", json!({"pattern": "needle", "glob": "*.none"})),
        search(
            "as many matches as come at once",
            json!({"pattern": "needle", "path": "200.txt", "limit": 200}),
        ),
        search(
            "one match more than comes at once",
            json!({"pattern": "needle", "path": "201.txt", "limit": 200}),
        ),
        search("an expression that is not valid", json!({"pattern": "a(b"})),
    ]
}
