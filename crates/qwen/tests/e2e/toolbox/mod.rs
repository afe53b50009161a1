//! Every built-in tool through the real binary: what the model is told, and what happened on disk.

mod arguments;
mod asking;
mod files;
mod shell;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use mock_model::process::Program;
use mock_model::{MockModel, Reply, Request};
use serde_json::Value;

use crate::harness::{asked, judged};
use crate::wire::QWEN;

/// A workspace, and what came of calls made in it one after the other.
struct Shop {
    program: Program,
    mock: MockModel,
}

/// What the model is told of a call.
struct StreamContent {
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
    fn calls(&self, calls: &[(&str, Value)]) -> Vec<StreamContent> {
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
                StreamContent { text: texts[&id].clone(), is_error, display }
            })
            .collect()
    }
}

fn plain(content: &Value) -> String {
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}

impl StreamContent {
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
