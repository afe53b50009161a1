//! The binary under test, and files in its places.

use std::fs;
use std::path::Path;

use mock_model::MockModel;
use mock_model::process::{self, Program};
use serde_json::Value;

/// The binary in a clean place, where no settings of the machine reach it.
pub fn qwen() -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .env("QWEN_CODE_SYSTEM_DEFAULTS_PATH", "/nonexistent/defaults.json")
        .env("QWEN_CODE_SYSTEM_SETTINGS_PATH", "/nonexistent/settings.json")
}

/// The binary with a prompt and a model behind it.
pub fn asked(mock: &MockModel) -> Program {
    qwen().with_model(mock).args(["-p", "Hello"])
}

/// Writes a file, with the directories that it is in.
pub fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Writes the user's settings.
pub fn user(program: &Program, text: &str) {
    write(program.qwen_home_path().join("settings.json"), text);
}

/// Writes the workspace's settings.
pub fn workspace(program: &Program, text: &str) {
    write(program.cwd_path().join(".qwen/settings.json"), text);
}

/// What `qwen config` says about a key: the value and its source.
#[track_caller]
pub fn config(program: Program, key: &str) -> (Value, String, String) {
    let ended = program.args(["config", "--json", key]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    let setting = &said["settings"][key];
    let text = |field: &str| setting[field].as_str().unwrap().to_owned();
    (setting["value"].clone(), text("source"), text("place"))
}
