//! File tools that are sent outside of the workspace, by every spelling that we know. The mode allows
//! everything, so that nothing but the boundary holds; then the same without anyone to allow it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use mock_model::{Reply, gate};
use rustix::fs::{RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::harness::{Scene, TREASURE, each, write};

/// A path, and what is prepared for it.
struct Way(&'static str, &'static str, fn(&Scene));

fn nothing(_: &Scene) {}

fn link(scene: &Scene, target: impl AsRef<Path>, name: &str) {
    symlink(target, scene.here().join(name)).unwrap();
}

fn chain(scene: &Scene) {
    link(scene, "way-out", "l0");
    for number in 1..8 {
        link(scene, format!("l{}", number - 1), &format!("l{number}"));
    }
}

/// Ways to a file outside: read, written and edited through each of them.
#[rustfmt::skip]
fn ways_to_a_file() -> Vec<Way> {
    vec![
        Way("19 up", "{up}/treasure", nothing),
        Way("19 up from below", "sub/../{up}/treasure", nothing),
        Way("19 up from the root", "/../../../../..{outside}/treasure", nothing),
        Way("19 a whole path", "{outside}/treasure", nothing),
        Way("20 a link", "link", nothing),
        Way("20 a link on the way", "way-out/treasure", nothing),
        Way("23 /proc, working directory", "/proc/self/cwd/{up}/treasure", nothing),
        Way("23 /proc, root", "/proc/self/root{outside}/treasure", nothing),
        Way("23 /proc, thread", "/proc/thread-self/root{outside}/treasure", nothing),
        Way("slashes", ".//way-out///treasure", nothing),
        Way("dots", "./sub/./.././way-out/./treasure", nothing),
        Way("a slash behind a link", "way-out/treasure/", nothing),
        Way("a dot behind a link", "link/.", nothing),
        Way("up behind a link", "way-out/cave/../treasure", nothing),
        Way("up behind a link and down again", "way-out/../{name}/treasure", nothing),
        Way("a link to a link", "l7/treasure", chain),
        Way("a link upwards", "up/{name}/treasure", |scene| link(scene, "..", "up")),
        Way("a link to the root", "root{outside}/treasure", |scene| link(scene, "/", "root")),
        Way("a link to /proc", "proc/root{outside}/treasure", |scene| link(scene, "/proc/self", "proc")),
        Way("a link to a descriptor", "fd/../root{outside}/treasure", |scene| link(scene, "/proc/self/fd", "fd")),
        Way("a link with a long way", "long", |scene| {
            link(scene, format!("{}{}/treasure", "./".repeat(900), scene.outside.path().display()), "long");
        }),
        Way("a link in a link", "in/treasure", |scene| link(scene, "sub/../way-out/cave", "in")),
        Way("a home", "~/secret", |scene| write(scene.program.home_path().join("secret"), TREASURE)),
        Way("a home by its path", "{home}/secret", |scene| write(scene.program.home_path().join("secret"), TREASURE)),
        Way("an address", "file://{outside}/treasure", nothing),
        Way("escapes of an address", "%2e%2e/{name}/treasure", nothing),
        Way("slashes of another system", "..\\{name}\\treasure", nothing),
        Way("a NUL", "file\u{0}/../link", nothing),
        Way("a newline", "way-out/\n../treasure", nothing),
        Way("blanks around", " link ", nothing),
        Way("a blank before the root", " {outside}/treasure", nothing),
        Way("a byte order mark", "\u{feff}{outside}/treasure", nothing),
        Way("another case", "WAY-OUT/treasure", nothing),
        Way("dots of another width", "\u{ff0e}\u{ff0e}/{name}/treasure", nothing),
        Way("a loop", "loop/treasure", |scene| { link(scene, "loop2", "loop"); link(scene, "loop", "loop2"); }),
    ]
}

fn spelt(scene: &Scene, path: &str) -> String {
    let name = scene.outside.path().file_name().unwrap().to_string_lossy().into_owned();
    scene.filled(&path.replace("{up}", &format!("../{name}")).replace("{name}", &name))
}

fn scene(mode: &str) -> Scene {
    let scene = Scene::new();
    write(scene.out(&format!("{TREASURE}-by-name")), "");
    scene.args(["--sandbox=false", "--approval-mode", mode])
}

/// Makes the calls in both modes. Nothing outside may change or become known; without anyone to allow it,
/// each call is refused by the permissions or by the tool. The mode yolo reads what a path openly names, as
/// it does with a command, and nothing that a link or the kernel's own files lead to.
fn held(
    name: &str,
    prepare: fn(&Scene),
    calls: impl Fn(&Scene) -> Vec<(&'static str, Value)>,
) -> Result<(), String> {
    for mode in ["yolo", "default"] {
        let scene = scene(mode);
        prepare(&scene);
        let before = crate::tree::Tree::of([scene.outside.path(), scene.program.home_path()]);
        let calls = calls(&scene);
        let played = scene.play(&calls);
        let after = crate::tree::Tree::of([scene.outside.path(), scene.program.home_path()]);
        let changed = after.changed_since(&before);
        if !changed.is_empty() {
            return Err(format!("{name}, {mode}: {calls:?} changed {changed:?}"));
        }
        let readable = mode == "yolo" && calls.iter().any(|(_, arguments)| openly_outside(arguments));
        if readable {
            continue;
        }
        // What the model asked for is repeated to it; the treasure is in no call.
        if played.leaks(TREASURE) {
            return Err(format!("{name}, {mode}: {calls:?} told what is outside: {}", played.result("c1")));
        }
        for (at, call) in calls.iter().enumerate() {
            let id = format!("c{}", at + 1);
            let shown = played.ended.json_lines();
            let last = shown
                .iter()
                .rfind(|line| line["type"] == "x-qwen-tool-display" && line["tool_call_id"] == *id);
            let status = last.map_or(Value::Null, |line| line["status"].clone());
            // A search finds nothing, and some spellings are names of new files here.
            let reads = matches!(call.0, "read_file" | "list_directory" | "run_shell_command");
            if status != "error" && reads {
                return Err(format!("{name}, {mode}: {call:?} is {status}: {}", played.result(&id)));
            }
        }
    }
    Ok(())
}

/// Whether the path of a call leads out of the workspace by its words alone.
fn openly_outside(arguments: &Value) -> bool {
    let path = arguments["file_path"].as_str().or(arguments["path"].as_str()).unwrap_or_default();
    let is_absolute = path.starts_with(['/', '~']) && !path.starts_with("/proc");
    is_absolute || path.starts_with("../") || path.contains("/../../")
}

#[test]
fn no_spelling_leads_to_a_file_outside() {
    each(&ways_to_a_file(), |Way(name, path, prepare)| {
        held(name, *prepare, |scene| {
            let path = spelt(scene, path);
            vec![
                ("read_file", json!({ "file_path": path })),
                ("edit", json!({ "file_path": path, "old_string": "outside", "new_string": "x" })),
                ("edit", json!({ "file_path": path, "old_string": "", "new_string": "x" })),
                ("write_file", json!({ "file_path": path, "content": "x" })),
                ("grep_search", json!({ "pattern": "outsid.", "path": path })),
            ]
        })
    });
}

#[test]
fn no_spelling_leads_to_a_directory_outside() {
    #[rustfmt::skip]
    let ways = [
        Way("a link upwards", "up/{name}", |scene| link(scene, "..", "up")),
        Way("19 up", "{up}", nothing),
        Way("19 a whole path", "{outside}", nothing),
        Way("20 a link", "way-out", nothing),
        Way("a home", "~", |scene| write(scene.program.home_path().join(TREASURE), "")),
        Way("20 a link with a slash", "way-out/", nothing),
        Way("20 below a link", "way-out/cave/..", nothing),
        Way("23 /proc", "/proc/self/root{outside}", nothing),
        Way("a link to a link", "l7", chain),
    ];
    each(&ways, |Way(name, path, prepare)| {
        held(name, *prepare, |scene| {
            let path = spelt(scene, path);
            vec![
                ("list_directory", json!({ "path": path })),
                ("glob", json!({ "pattern": "*", "path": path })),
                ("glob", json!({ "pattern": format!("{path}/**") })),
                ("glob", json!({ "pattern": format!("{path}/*") })),
                ("grep_search", json!({ "pattern": "outsid.", "path": path })),
                ("grep_search", json!({ "pattern": "outsid.", "glob": format!("{path}/**") })),
                ("write_file", json!({ "file_path": format!("{path}/X"), "content": "x" })),
                ("write_file", json!({ "file_path": format!("{path}/new/deep/X"), "content": "x" })),
                ("run_shell_command", json!({ "command": "cat treasure", "directory": path })),
            ]
        })
    });
}

#[test]
fn searching_here_does_not_follow_links_away() {
    held("20 from here", chain, |_| {
        vec![
            ("glob", json!({ "pattern": "**" })),
            ("glob", json!({ "pattern": "**/*reasure*" })),
            ("glob", json!({ "pattern": "way-out/**" })),
            ("glob", json!({ "pattern": "{way-out,sub}/*" })),
            ("grep_search", json!({ "pattern": "outsid." })),
            ("grep_search", json!({ "pattern": "outsid.", "glob": "**/treasure" })),
        ]
    })
    .unwrap();
}

#[test]
fn a_link_to_nothing_is_not_written_through() {
    #[rustfmt::skip]
    let ways = [
        Way("21 to a file", "dangling", |scene| link(scene, scene.out("new"), "dangling")),
        Way("21 to a file in a directory", "dangling/X", |scene| link(scene, scene.out("new"), "dangling")),
        Way("21 to a link", "two", |scene| { link(scene, scene.out("new"), "one"); link(scene, "one", "two"); }),
        Way("21 by a relative way", "rel", |scene| {
            let name = scene.outside.path().file_name().unwrap().to_string_lossy().into_owned();
            link(scene, format!("../{name}/new"), "rel");
        }),
    ];
    each(&ways, |Way(name, path, prepare)| {
        held(name, *prepare, |_| {
            vec![
                ("edit", json!({ "file_path": path, "old_string": "", "new_string": "x" })),
                ("write_file", json!({ "file_path": path, "content": "x" })),
            ]
        })
    });
}

#[test]
fn special_files_are_not_opened() {
    let fifo = |scene: &Scene| {
        let made = Command::new("mkfifo").arg(scene.here().join("fifo")).status();
        assert!(made.unwrap().success());
    };
    #[rustfmt::skip]
    let things = [
        Way("23 a pipe", "fifo", fifo),
        Way("23 a device", "/dev/zero", nothing),
        Way("23 a device by a link", "zero", |scene| link(scene, "/dev/zero", "zero")),
        Way("23 the environment", "/proc/self/environ", nothing),
        Way("23 the environment of all", "/proc/1/environ", nothing),
        Way("23 the environment by a link", "env", |scene| link(scene, "/proc/self/environ", "env")),
        Way("23 a descriptor", "/proc/self/fd/0", nothing),
        Way("23 a descriptor, the short way", "/dev/fd/0", nothing),
        Way("23 the memory", "/proc/self/mem", nothing),
        Way("a socket", "socket", |scene| {
            drop(std::os::unix::net::UnixListener::bind(scene.here().join("socket")).unwrap());
        }),
    ];
    each(&things, |Way(name, path, prepare)| {
        held(name, *prepare, |_| {
            vec![
                ("read_file", json!({ "file_path": path })),
                ("edit", json!({ "file_path": path, "old_string": "a", "new_string": "b" })),
            ]
        })
    });
}

#[test]
fn a_search_of_the_root_does_not_reach_other_processes_even_in_yolo() {
    let calls = [
        ("grep_search", json!({ "pattern": "Name", "path": "/", "glob": "proc/*/status" })),
        ("glob", json!({ "pattern": "proc/*/status", "path": "/" })),
        ("grep_search", json!({ "pattern": "Name", "path": "/proc" })),
    ];
    let played = scene("yolo").play(&calls);
    for id in ["c1", "c2", "c3"] {
        let result = played.result(id);
        assert!(result.contains("outside the workspace"), "{result}");
    }
}

#[test]
fn our_own_settings_and_sessions_are_not_read_without_a_question_even_in_yolo() {
    let rule = ["--approval-mode", "default", "--allowed-tools", "Read(//**)"];
    for (flags, outside) in [(&["--yolo"][..], true), (&rule, true), (&["--approval-mode", "plan"], false)] {
        let scene = Scene::new().args(flags.iter().copied());
        let own = scene.program.qwen_home_path();
        write(own.join("keys.json"), "the-own-key 4711");
        write(own.join("skills/look/more.md"), "a skill");
        let home = scene.program.home_path().to_owned();
        write(home.join("notes"), "not the-own-key");
        let played = scene.play(&[
            ("read_file", json!({ "file_path": own.join("keys.json") })),
            ("read_file", json!({ "file_path": own.join("skills/../keys.json") })),
            ("list_directory", json!({ "path": own })),
            ("grep_search", json!({ "pattern": "own-key", "path": own })),
            ("grep_search", json!({ "pattern": "the-own-key", "path": home })),
            ("glob", json!({ "pattern": "**/*", "path": home })),
            ("read_file", json!({ "file_path": own.join("skills/look/more.md") })),
        ]);
        for id in ["c1", "c2", "c3", "c4"] {
            assert!(played.lists(id), "{flags:?} {id}: {}", played.result(id));
        }
        assert!(!played.leaks("4711"), "{flags:?}");
        assert_eq!(played.result("c5").contains("1 match"), outside, "{flags:?}: {}", played.result("c5"));
        let found = played.result("c6");
        assert_eq!(found.contains("notes"), outside, "{flags:?}: {found}");
        assert!(!found.contains("keys.json") && !found.contains(".jsonl"), "{flags:?}: {found}");
        assert_eq!(played.result("c7").contains("a skill"), outside, "{flags:?}: {}", played.result("c7"));
    }
}

#[test]
fn a_prompt_does_not_bring_in_what_is_outside() {
    #[rustfmt::skip]
    let prompts = [
        "@{up}/treasure", "@{outside}/treasure", "@link", "@way-out/treasure", "@way-out", "@way-out/", "@way-out/**",
        "@\"link\"", "@'way-out/treasure'", "@{outside}/*", "@sub/../link", "@./link", "@/proc/self/environ", "@~/secret",
        "@{home}/secret", "@fifo", "@/dev/zero", "@l*", "@file://{outside}/treasure", "@link\\ ", "@way-out/cave/../treasure",
    ];
    each(&prompts, |prompt| {
        let scene = Scene::new().args([
            "--yolo",
            "--sandbox=false",
            "--dialect",
            "qwen",
            "--output-format",
            "stream-json",
        ]);
        let scene = scene.env("HOARD", TREASURE);
        write(scene.program.home_path().join("secret"), TREASURE);
        assert!(Command::new("mkfifo").arg(scene.here().join("fifo")).status().unwrap().success());
        scene.mock.push(Reply::text("done"));
        let prompt = spelt(&scene, prompt);
        let ended = scene.program.clone().args(["-p", &format!("Look at {prompt} please")]).run();
        let asked: String = scene.mock.requests().iter().map(|request| request.body.to_string()).collect();
        if asked.contains(TREASURE) || ended.stdout.contains(TREASURE) {
            return Err(format!("{prompt}: {asked}"));
        }
        Ok(())
    });
    // A file of the workspace is brought in, or the above would say nothing.
    let scene = Scene::new().args(["--yolo", "-p", "Look at @file please"]);
    scene.mock.push(Reply::text("done"));
    assert_eq!(scene.program.run().code, Some(0));
    assert!(scene.mock.requests()[0].body.to_string().contains("alpha"));
}

#[test]
fn what_decides_what_runs_is_not_written_even_where_everything_is_allowed() {
    #[rustfmt::skip]
    let ways = [
        ".git/hooks/pre-commit", ".git/config", ".git/hooks", ".qwen/settings.json", ".qwen/agents/a.md", ".mcp.json", "./.mcp.json",
        "sub/../.qwen/settings.json", ".qwen//settings.json", ".QWEN/settings.json", ".Git/hooks/pre-commit", ".git/./config",
        "g/hooks/pre-commit", "q/settings.json", ".git/modules/m/config", "{here}/.mcp.json", ".git/info/../hooks/x", ".git/commondir",
        ".git/worktrees/w/config.worktree", ".git/worktrees/w/commondir", ".git/modules/m/info/attributes", ".git./hooks/x",
        ".g\u{200c}it/config", ".mcp.json.", ".qwen\u{200b}/settings.json",
    ];
    each(&ways, |path| {
        let scene = Scene::in_repository().args(["--yolo", "--sandbox=false"]);
        link(&scene, ".git", "g");
        link(&scene, ".qwen", "q");
        let before = scene.tree();
        let path = scene.filled(path);
        let played = scene.play(&[
            ("write_file", json!({ "file_path": path, "content": "x" })),
            ("edit", json!({ "file_path": path, "old_string": "", "new_string": "x" })),
            ("run_shell_command", json!({ "command": format!("echo x > {path}") })),
            ("run_shell_command", json!({ "command": format!("cp file {path}") })),
            ("write_file", json!({ "file_path": "made", "content": "x" })),
        ]);
        let after = scene.tree();
        let made = scene.here().join("made");
        let changed: Vec<_> = after.changed_since(&before).into_iter().filter(|path| *path != made).collect();
        let unlisted: Vec<&str> =
            ["c1", "c2", "c3", "c4"].into_iter().filter(|id| !played.lists(id)).collect();
        if !changed.is_empty() || !unlisted.is_empty() || !made.exists() {
            let told: Vec<String> = unlisted.iter().map(|id| played.result(id)).collect();
            return Err(format!("{path}: {changed:?} changed, {unlisted:?} not listed: {told:?}"));
        }
        Ok(())
    });
}

/// Exchanges two names over and over while `work` goes on.
fn while_swapping<T>(one: &Path, other: &Path, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        worked
    })
}

#[test]
fn a_directory_that_is_swapped_for_a_link_leads_nowhere() {
    let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
    write(scene.here().join("dir/treasure"), "mine\n");
    write(scene.here().join("dir/cave/treasure"), "mine\n");
    link(&scene, scene.outside.path(), "other");
    let before = crate::tree::Tree::of([scene.outside.path()]);
    let mut calls = Vec::new();
    for number in 0..60 {
        calls.push(("read_file", json!({ "file_path": "dir/treasure" })));
        calls.push(("write_file", json!({ "file_path": format!("dir/X{number}"), "content": "x" })));
        calls.push(("write_file", json!({ "file_path": format!("dir/cave/new{number}/X"), "content": "x" })));
        calls.push((
            "edit",
            json!({ "file_path": "dir/treasure", "old_string": "outside", "new_string": "x" }),
        ));
        calls.push(("list_directory", json!({ "path": "dir" })));
        calls.push(("grep_search", json!({ "pattern": "outsid.", "path": "dir" })));
        calls.push(("glob", json!({ "pattern": "dir/**" })));
    }
    let played =
        while_swapping(&scene.here().join("dir"), &scene.here().join("other"), || scene.play(&calls));
    let after = crate::tree::Tree::of([scene.outside.path()]);
    assert_eq!(after.changed_since(&before), [] as [&Path; 0]);
    assert!(!played.leaks(TREASURE), "what is outside was read");
}

#[test]
fn a_file_that_is_swapped_between_reading_and_editing_is_left_alone() {
    let scene = Scene::new().args(["--yolo", "--sandbox=false", "-p", "go"]);
    let call = |id: &str, tool: &str, arguments: Value| scene.names.call(id, tool, arguments);
    scene.mock.push(Reply::new([call("c1", "read_file", json!({ "file_path": "file" }))]));
    scene.mock.push(Reply::new([
        gate("swap"),
        call("c2", "edit", json!({ "file_path": "file", "old_string": "alpha", "new_string": "x" })),
        call("c3", "write_file", json!({ "file_path": "file", "content": "x" })),
    ]));
    scene.mock.push(Reply::text("done"));
    let mut run = scene.program.start();
    run.close_stdin();
    scene.mock.reached("swap");
    fs::remove_file(scene.here().join("file")).unwrap();
    write(scene.out("alpha"), "alpha\n");
    link(&scene, scene.out("alpha"), "file");
    scene.mock.open("swap");
    assert_eq!(run.wait().code, Some(0));
    assert_eq!(fs::read_to_string(scene.out("alpha")).unwrap(), "alpha\n");
}

#[test]
fn an_edit_through_a_hard_link_leaves_the_other_name_as_it_was() {
    let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
    for (name, tool, arguments) in [
        ("one", "edit", json!({ "file_path": "one", "old_string": "outside", "new_string": "x" })),
        ("two", "write_file", json!({ "file_path": "two", "content": "x" })),
    ] {
        fs::hard_link(scene.out("treasure"), scene.here().join(name)).unwrap();
        scene.play_rounds(&[&[("read_file", json!({ "file_path": name }))], &[(tool, arguments)]]);
        assert_eq!(fs::read_to_string(scene.out("treasure")).unwrap(), TREASURE, "{tool}");
        assert!(
            fs::read_to_string(scene.here().join(name)).unwrap().contains('x'),
            "{tool} did change its own name"
        );
    }
}

#[test]
fn names_that_a_temporary_file_might_have_are_not_followed() {
    let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
    let victim = scene.out("treasure");
    let (temporary, here) = (scene.out("tmp"), scene.here().to_owned());
    fs::create_dir(&temporary).unwrap();
    for name in [
        "file.tmp",
        ".file.tmp",
        "file~",
        ".file.swp",
        "file.bak",
        ".file.qwen",
        "file.new",
        ".file",
        "file.orig",
    ] {
        symlink(&victim, here.join(name)).unwrap();
    }
    for name in
        ["qwen", "qwen-0", "qwen-1", "qwen-of-0", "qwen-of-1000", "shell.txt", "qwen.tmp", "background.txt"]
    {
        symlink(&victim, temporary.join(name)).unwrap();
    }
    let scene = scene.env("TMPDIR", &temporary);
    let before = crate::tree::Tree::of([scene.outside.path()]);
    let noise = "i=0; while [ $i -lt 9000 ]; do echo $i $i $i $i; i=$((i + 1)); done";
    let played = scene.play_rounds(&[
        &[("read_file", json!({ "file_path": "file" }))],
        &[("edit", json!({ "file_path": "file", "old_string": "alpha", "new_string": "x" }))],
        &[("write_file", json!({ "file_path": "file", "content": "y\n" }))],
        &[("run_shell_command", json!({ "command": noise }))],
    ]);
    assert!(played.result("c4").contains("left out here"), "{}", played.result("c4"));
    assert_eq!(fs::read_to_string(here.join("file")).unwrap(), "y\n");
    let after = crate::tree::Tree::of([scene.outside.path()]);
    assert_eq!(after.changed_since(&before), [] as [&Path; 0]);
}

#[test]
fn paths_that_no_system_takes_cost_one_error() {
    let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
    let (long, name) = ("d/".repeat(5000), "n".repeat(5000));
    let paths = [
        long.as_str(),
        name.as_str(),
        "",
        ".",
        "..",
        "/",
        "\u{0}",
        "a\u{0}b",
        "sub",
        "file/",
        "file/x",
        "\u{d7ff}\u{e000}",
    ];
    let calls: Vec<_> = paths.iter().map(|path| ("read_file", json!({ "file_path": path }))).collect();
    let played = scene.play(&calls);
    assert_eq!(played.end["status"], "done");
    let before = scene.tree();
    let calls: Vec<_> =
        paths[..8].iter().map(|path| ("write_file", json!({ "file_path": path, "content": "x" }))).collect();
    scene.play(&calls);
    let after = scene.tree();
    assert_eq!(after.changed_since(&before), [] as [&Path; 0]);
}
