//! Mode, model, thought level and cost are what the client was told, whoever changed them and whichever worker runs.

use mock_model::{MockModel, Reply, sse};
use serde_json::{Value, json};

use crate::editor::{Editor, program, updates};
use crate::sessions::kill_workers;

/// The last value of an option in some frames.
fn option(frames: &[Value], id: &str) -> Option<Value> {
    let last = updates(frames, "config_option_update").pop()?;
    let options = last["configOptions"].as_array()?;
    options.iter().find(|option| option["id"] == id).map(|option| option["currentValue"].clone())
}

fn is_option_update(frame: &Value) -> bool {
    frame["params"]["update"]["sessionUpdate"] == "config_option_update"
}

#[test]
fn a_command_that_changes_the_mode_is_reported_also_before_the_first_turn() {
    for has_turn in [false, true] {
        let mock = MockModel::with([Reply::text("x")]);
        let mut editor = Editor::start(&mock);
        let session = editor.session();
        if has_turn {
            editor.turn(&session, "Hi");
        }
        let (frames, _) = editor.turn(&session, "/approval-mode plan");
        let modes = updates(&frames, "current_mode_update");
        assert_eq!(modes.last().unwrap()["currentModeId"], "plan", "{frames:#?}");
        assert_eq!(option(&frames, "mode"), Some(json!("plan")));
    }
}

#[test]
fn a_command_that_changes_the_model_is_reported() {
    let mock = MockModel::with([Reply::text("x")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    editor.turn(&session, "/model another-model");
    let frames = editor.until(is_option_update);
    assert_eq!(option(&frames, "model"), Some(json!("another-model")));
    editor.turn(&session, "Hi");
    assert_eq!(mock.requests()[0].body["model"], "another-model");
}

#[test]
fn mode_and_model_survive_a_dead_worker() {
    let mock = MockModel::with([Reply::text("x")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    editor.turn(&session, "Hi");
    editor.ask("session/set_mode", &json!({"sessionId": session, "modeId": "plan"}));
    let model = json!({"sessionId": session, "configId": "model", "value": "another-model"});
    editor.ask("session/set_config_option", &model);
    kill_workers(&editor);
    mock.push(Reply::call("c1", "run_shell_command", r#"{"command":"touch made"}"#));
    mock.push(Reply::text("x"));
    let (frames, reason) = editor.turn(&session, "Again");
    assert_eq!(reason, "end_turn", "no approval is asked for in plan mode: {frames:#?}");
    assert!(!editor.program.cwd_path().join("made").exists());
    assert_eq!(mock.requests().last().unwrap().body["model"], "another-model");
}

/// The costs that a client was shown.
fn costs(frames: &[Value]) -> Vec<f64> {
    updates(frames, "usage_update").iter().filter_map(|update| update["cost"]["amount"].as_f64()).collect()
}

#[test]
fn the_cost_of_a_session_only_grows_whichever_workers_ran_it() {
    let reply = || Reply::new([sse::text("x"), sse::usage(100_000, 1000), sse::finish("stop"), sse::done()]);
    let mock = MockModel::with([reply(), reply(), reply(), reply()]);
    let priced = program(&mock);
    std::fs::create_dir_all(priced.qwen_home_path()).unwrap();
    let settings = json!({"model": {"prices": {"mock": {"input": 2, "output": 8}}}});
    std::fs::write(priced.qwen_home_path().join("settings.json"), settings.to_string()).unwrap();
    let mut editor = Editor::with(priced, &json!({}));
    let session = editor.session();
    let mut shown = costs(&editor.turn(&session, "One").0);
    let each = shown[0];
    assert!(each > 0.0);
    shown.extend(costs(&editor.turn(&session, "Two").0));
    kill_workers(&editor);
    shown.extend(costs(&editor.turn(&session, "Three").0));
    editor.ask("session/close", &json!({"sessionId": session}));
    let params = json!({"sessionId": session, "cwd": editor.cwd(), "mcpServers": []});
    editor.ask("session/load", &params);
    shown.extend(costs(&editor.turn(&session, "Four").0));
    assert!(shown.is_sorted(), "{shown:?}");
    assert!((shown.last().unwrap() - 4.0 * each).abs() < 1e-9, "{shown:?}");
}
