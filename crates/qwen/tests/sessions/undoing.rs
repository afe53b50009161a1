//! Files that the agent changed, put back to where they were.

use std::os::unix::fs::PermissionsExt;

use mock_model::process::{Program, Run};
use mock_model::{MockModel, Reply, Step, sse};
use serde_json::{Value, json};

use super::harness::{done, log, qwen, sessions};

/// Starts a worker.
fn worker(program: &Program, more: &[&str]) -> Run {
    let flags = ["--yolo", "--input-format", "stream-json", "--output-format", "stream-json"];
    program.clone().args(flags).args(more).start()
}

/// Says something in the session `s`, and waits for the end of the turn.
fn prompt(worker: &mut Run, uuid: &str) {
    let message = json!({"role": "user", "content": "Go"});
    worker.write_line(json!({"type": "user", "uuid": uuid, "message": message}));
    worker.json_until(|line| line["metadata"]["turn"]["status"] == "done");
}

/// Asks for files to be put back, and brings the answer.
fn rewind(worker: &mut Run, to: &str, dry_run: bool) -> Value {
    let request = json!({"subtype": "rewind_files", "user_message_id": to, "dry_run": dry_run});
    worker.write_line(json!({"type": "control_request", "request_id": "r", "request": request}));
    worker.json_until(|line| line["type"] == "control_response").pop().unwrap()["response"].clone()
}

/// The model reads a file, without which it may not overwrite it.
fn reads(path: &str) -> Reply {
    let arguments = json!({"file_path": path}).to_string();
    Reply::new(vec![
        sse::call(0, &format!("read_{path}"), "read_file", &arguments),
        sse::finish("tool_calls"),
        sse::done(),
    ])
}

/// The model writes these files at once.
fn writes(files: &[(&str, &str)]) -> Reply {
    let call = |(n, (path, content)): (usize, &(&str, &str))| {
        let arguments = json!({"file_path": path, "content": content}).to_string();
        sse::call(n, &format!("call_{path}_{content}"), "write_file", &arguments)
    };
    let mut steps: Vec<Step> = files.iter().enumerate().map(call).collect();
    steps.extend([sse::finish("tool_calls"), sse::done()]);
    Reply::new(steps)
}

/// A place in which the agent changed files in two turns.
fn changed() -> (MockModel, Program, Run) {
    let mock = MockModel::with([
        reads("a.txt"),
        writes(&[("a.txt", "a1"), ("new.txt", "n1")]),
        writes(&[("a.txt", "a2")]),
        Reply::text("Done."),
        reads("b.txt"),
        writes(&[("a.txt", "a3"), ("b.txt", "b3")]),
        Reply::text("Done."),
    ]);
    let program = qwen(&mock);
    let cwd = program.cwd_path();
    std::fs::write(cwd.join("a.txt"), "a0").unwrap();
    std::fs::write(cwd.join("b.txt"), b"b0 \xff").unwrap();
    std::fs::set_permissions(cwd.join("b.txt"), PermissionsExt::from_mode(0o750)).unwrap();
    let mut worker = worker(&program, &["--session-id", "s"]);
    prompt(&mut worker, "u1");
    prompt(&mut worker, "u2");
    (mock, program, worker)
}

fn read(program: &Program, name: &str) -> Option<Vec<u8>> {
    std::fs::read(program.cwd_path().join(name)).ok()
}

#[test]
fn files_are_put_back_to_where_they_were_before_a_prompt() {
    let (_mock, program, mut worker) = changed();
    let answer = rewind(&mut worker, "u2", true);
    assert_eq!(answer["response"]["filesChanged"].as_array().unwrap().len(), 2, "{answer}");
    assert_eq!(read(&program, "a.txt").unwrap(), b"a3", "a dry run changes nothing");
    let answer = rewind(&mut worker, "u2", false);
    assert_eq!(answer["response"]["canRewind"], true, "{answer}");
    assert_eq!(read(&program, "a.txt").unwrap(), b"a2");
    assert_eq!(read(&program, "b.txt").unwrap(), b"b0 \xff");
    let mode = program.cwd_path().join("b.txt").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    rewind(&mut worker, "u1", false);
    assert_eq!(read(&program, "a.txt").unwrap(), b"a0");
    assert_eq!(read(&program, "new.txt"), None, "what was made is gone again");
    let again = rewind(&mut worker, "u1", false);
    assert_eq!(again["response"]["filesChanged"], json!([]), "{again}");
}

#[test]
fn a_prompt_that_is_not_in_the_session_puts_nothing_back() {
    let (_mock, program, mut worker) = changed();
    let answer = rewind(&mut worker, "nobody", false);
    assert_eq!(answer["subtype"], "error", "{answer}");
    assert_eq!(read(&program, "a.txt").unwrap(), b"a3");
}

#[test]
fn undo_leaves_replaced_files_alone() {
    let (_mock, program, mut worker) = changed();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("target");
    std::fs::write(&target, "mine").unwrap();
    let cwd = program.cwd_path();
    std::fs::remove_file(cwd.join("a.txt")).unwrap();
    std::os::unix::fs::symlink(&target, cwd.join("a.txt")).unwrap();
    std::fs::remove_file(cwd.join("b.txt")).unwrap();
    let answer = rewind(&mut worker, "u2", false);
    let skipped = answer["response"]["skippedLinks"][0].as_str().unwrap();
    assert!(skipped.ends_with("/a.txt"), "{answer}");
    assert_eq!(std::fs::read(&target).unwrap(), b"mine");
    assert_eq!(read(&program, "b.txt").unwrap(), b"b0 \xff", "a file that is gone comes back");
}

#[test]
fn files_can_be_put_back_by_a_later_process_and_in_a_fork() {
    let (mock, program, first) = changed();
    assert_eq!(first.finish().code, Some(0));
    mock.push(Reply::text("Hello."));
    done(&program, &["-p", "Fork", "--resume", "s", "--fork-session", "--session-id", "fork"]);
    let mut later = worker(&program, &["--resume", "s"]);
    mock.push(Reply::text("Hello."));
    prompt(&mut later, "u3");
    rewind(&mut later, "u2", false);
    assert_eq!(read(&program, "a.txt").unwrap(), b"a2");
    assert_eq!(later.finish().code, Some(0));
    // What the fork needs is its own.
    assert_eq!(sessions(&program, &["delete", "s"]).code, Some(0));
    assert!(!log(&program, "s").with_extension("files").exists());
    let mut forked = worker(&program, &["--resume", "fork"]);
    mock.push(Reply::text("Hello."));
    forked.write_line(json!({"session_id": "fork", "input": {"parts": [{"type": "text", "text": "x"}]}}));
    forked.json_until(|line| line["metadata"]["turn"]["status"] == "done");
    rewind(&mut forked, "u1", false);
    assert_eq!(read(&program, "a.txt").unwrap(), b"a0");
}

#[test]
fn a_session_that_is_not_kept_keeps_no_files_either() {
    let mock = MockModel::with([reads("a.txt"), writes(&[("a.txt", "a1")]), Reply::text("Done.")]);
    let program = qwen(&mock);
    std::fs::write(program.cwd_path().join("a.txt"), "a0").unwrap();
    done(&program, &["-p", "Go", "--yolo", "--no-session-persistence"]);
    assert!(!program.qwen_home_path().exists());
}

#[test]
fn undo_puts_back_what_the_turn_changed_one_turn_at_a_time() {
    let (_mock, program, mut worker) = changed();
    let read = |name: &str| std::fs::read(program.cwd_path().join(name)).ok();
    let mut undo = || {
        worker.write_line(json!({"messages": [{"role": "user", "content": "/undo"}]}));
        let line = worker.json_until(|line| line["type"] == "result/command").pop().unwrap();
        line["result"]["content"].as_str().unwrap().to_owned()
    };
    let told = undo();
    assert!(told.contains("a.txt") && told.contains("b.txt"), "{told}");
    assert_eq!((read("a.txt"), read("b.txt")), (Some(b"a2".to_vec()), Some(b"b0 \xff".to_vec())));
    assert_eq!(read("new.txt"), Some(b"n1".to_vec()), "an earlier turn made it");
    let told = undo();
    assert!(told.contains("Removed") && told.contains("new.txt"), "{told}");
    assert_eq!((read("a.txt"), read("new.txt")), (Some(b"a0".to_vec()), None));
    assert!(undo().contains("nothing to undo"));
}

#[test]
fn redo_brings_back_what_undo_removed_until_the_next_prompt() {
    let (mock, program, mut worker) = changed();
    let read = |name: &str| std::fs::read(program.cwd_path().join(name)).ok();
    let mut command = |text: &str| {
        worker.write_line(json!({"messages": [{"role": "user", "content": text}]}));
        let line = worker.json_until(|line| line["type"] == "result/command").pop().unwrap();
        line["result"]["content"].as_str().unwrap().to_owned()
    };
    command("/undo");
    command("/undo");
    assert_eq!((read("a.txt"), read("new.txt")), (Some(b"a0".to_vec()), None));
    command("/redo");
    assert_eq!((read("a.txt"), read("new.txt")), (Some(b"a2".to_vec()), Some(b"n1".to_vec())));
    command("/redo");
    assert_eq!((read("a.txt"), read("b.txt")), (Some(b"a3".to_vec()), Some(b"b3".to_vec())));
    assert!(command("/redo").contains("nothing to redo"));
    // The conversation came back too: the model gets both turns.
    command("/undo");
    mock.push(Reply::text("Done."));
    prompt(&mut worker, "u3");
    let sent = mock.requests().last().unwrap().body.to_string();
    assert!(sent.contains("a2") && !sent.contains("b3"), "{sent}");
    worker.write_line(json!({"messages": [{"role": "user", "content": "/redo"}]}));
    let line = worker.json_until(|line| line["type"] == "result/command").pop().unwrap();
    assert!(line["result"]["content"].as_str().unwrap().contains("nothing to redo"), "{line}");
}
