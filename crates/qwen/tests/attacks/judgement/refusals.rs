//! A refusal tells nothing about what is outside of the workspace: it reads the same for what is there and
//! for what is not, and names nothing that the call did not name.

use serde_json::{Value, json};

use crate::harness::{Scene, each};

/// A call, with `{name}` in the place of a name outside.
struct Row(&'static str, fn(&str) -> Value);

fn shell(command: &str) -> Value {
    json!({ "command": command })
}

#[test]
fn a_refusal_reads_the_same_for_what_is_there_and_what_is_not() {
    #[rustfmt::skip]
    let rows = [
        Row("run_shell_command", |path| shell(&format!("cat {path}"))),
        Row("run_shell_command", |path| shell(&format!("cat {path}*"))),
        Row("run_shell_command", |path| shell(&format!("ls {path}/*"))),
        Row("run_shell_command", |path| shell(&format!("cat < {path}"))),
        Row("run_shell_command", |path| shell(&format!("test -e {path}"))),
        Row("run_shell_command", |path| shell(&format!("[ -f {path} ]"))),
        Row("run_shell_command", |path| shell(&format!("cd {path} && ls"))),
        Row("run_shell_command", |path| shell(&format!("git -C {path} log"))),
        Row("run_shell_command", |path| shell(&format!("find {path}"))),
        Row("run_shell_command", |path| shell(&format!("diff -r {path} ."))),
        Row("run_shell_command", |path| shell(&format!("for f in {path}*; do cat $f; done"))),
        Row("run_shell_command", |path| shell(&format!("touch {path}"))),
        Row("run_shell_command", |path| shell(&format!("echo x > {path}"))),
        Row("read_file", |path| json!({ "file_path": path })),
        Row("read_file", |path| json!({ "file_path": format!("{path}/x") })),
        Row("list_directory", |path| json!({ "path": path })),
        Row("glob", |path| json!({ "pattern": "*", "path": path })),
        Row("grep_search", |path| json!({ "pattern": "a", "path": path })),
        Row("write_file", |path| json!({ "file_path": path, "content": "x" })),
        Row("edit", |path| json!({ "file_path": path, "old_string": "a", "new_string": "b" })),
    ];
    each(&rows, |Row(tool, arguments)| {
        for mode in ["default", "plan", "auto-edit"] {
            // Two names of one length, a file and a directory that are there, and nothing.
            let said: Vec<String> = ["treasure", "cave", "none"]
                .iter()
                .map(|name| {
                    let scene = Scene::new().args(["--approval-mode", mode]);
                    let path = scene.out(name).display().to_string();
                    let played = scene.play(&[(*tool, arguments(&path))]);
                    let listed = played.lists("c1");
                    let result = played.result("c1").replace(&path, "{path}");
                    format!(
                        "{listed} {}",
                        result.replace(&scene.outside.path().display().to_string(), "{outside}")
                    )
                })
                .collect();
            if said.iter().any(|other| *other != said[0]) || !said[0].starts_with("true") {
                return Err(format!("{tool} {}, {mode}: {said:#?}", arguments("PATH")));
            }
        }
        Ok(())
    });
}

#[test]
fn a_refusal_names_nothing_that_it_found() {
    let commands = [
        "cat {outside}/tre*",
        "ls {outside}/*",
        "cat {outside}/*/*",
        "cat way-out/tre*",
        "cat way-out/*",
        "ls way-out/c*",
        "cat lin?",
        "cat link",
        "for f in way-out/*; do echo $f; done",
    ];
    each(&commands, |command| {
        let scene = Scene::new();
        let played = scene.play(&[("run_shell_command", json!({ "command": scene.filled(command) }))]);
        let said = played.result("c1");
        let tells = ["treasure", "cave"].iter().any(|name| said.contains(name));
        if !played.lists("c1") || tells {
            return Err(format!("{command}: {said}"));
        }
        Ok(())
    });
}
