//! Commands that nothing forbids: the mode allows everything, they are spelt so that nobody can tell what
//! they do, and only the kernel stands in their way.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use mock_model::process::Program;
use serde_json::json;

use crate::dialler::dial;
use crate::harness::{Scene, TREASURE, each, has_sandbox, write, write_program};

fn shell(command: &str) -> (&'static str, serde_json::Value) {
    ("run_shell_command", json!({ "command": command }))
}

/// A command that must not get through, and its twin, which must; both end with `echo twin`.
struct Row(&'static str, &'static str);

#[test]
fn what_a_command_must_not_write_the_kernel_keeps_it_from() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows = [
        Row("24 .qwen", "d=$(printf .q; echo wen); mkdir -p $d; echo '{}' > $d/settings.json"),
        Row("24 .qwen by a move", "d=$(printf .q; echo wen); mkdir x; echo '{}' > x/settings.json; mv x $d"),
        Row("24 .qwen by a link", "d=$(printf .q; echo wen); mkdir x; ln -s x $d"),
        Row("24 hooks", "g=$(printf .g; echo it); echo 'touch X' > $g/hooks/pre-commit"),
        Row("24 hooks, away and back", "g=$(printf .g; echo it); mv $g y; mkdir -p y/hooks; echo x > y/hooks/pre-commit; mv -T y $g"),
        Row("24 config", "g=$(printf .g; echo it); printf '[core]\\nfsmonitor = touch X\\n' >> $g/config"),
        Row("24 config by git", "c=config; git $c core.fsmonitor 'touch X'"),
        Row("24 .mcp.json", "m=$(printf .m; echo cp.json); echo '{}' > $m"),
        Row("24 config by way of git's own lock", "g=$(printf .g; echo it); echo x > $g/config.lock; mv $g/config.lock $g/config; rm -f $g/config.lock"),
        Row("24 config as another name", "g=$(printf .g; echo it); ln $g/config other && echo x >> other; rm -f other"),
        Row("24 .qwen without what stands in for it", "d=$(printf .q; echo wen); rmdir $d; rm -rf $d; mkdir $d; touch $d/x"),
        Row("24 attributes", "g=$(printf .g; echo it); echo '* diff=x' > $g/commondir; sleep 0.1; rm -f $g/commondir"),
        Row("24 .mcp.json by a link", "m=$(printf .m; echo cp.json); ln file $m; ln -s file $m"),
        Row("a file outside", "o={outside}; echo x > $o/treasure"),
        Row("a new file outside", "o={outside}; touch $o/X"),
        Row("a file outside by a link", "l=li; echo x > ${l}nk"),
        Row("a directory outside by a link", "w=way; touch $w-out/X"),
        Row("permissions outside", "o={outside}; chmod 777 $o/treasure"),
        Row("away with it", "o={outside}; rm -rf $o/cave"),
        Row("a hard link and through it", "o={outside}; ln $o/treasure hard && echo x > hard; rm -f hard"),
        Row("a profile", "h=~; echo x >> $h/.bashrc"),
        Row("our own settings", "d=$(printf .q; echo wen); echo '{}' > {home}/$d/settings.json"),
        Row("a mount", "o={outside}; mount --bind $o sub && touch sub/X"),
        Row("another namespace", "u=unshare; $u -rm sh -c 'mount -o remount,rw /; touch {outside}/X'"),
        Row("the root of another process", "p=/proc/1; touch $p/root{outside}/X"),
        Row("a program that is left behind", "o={outside}; (setsid sh -c \"sleep 1; touch $o/X\" &)"),
        Row("a descriptor of ours", "for f in /proc/$PPID/fd/*; do echo x > $f; done"),
        Row("a program that may be anyone", "b=bash; cp /bin/$b b; chmod u+s b; ./b -p -c 'touch {outside}/X'; rm b"),
    ];
    each(&rows, |Row(name, command)| {
        let scene = Scene::in_repository().args(["--yolo", "--sandbox"]);
        let command = scene.filled(&format!("{{ {command}; }} 2>/dev/null; rm -rf x y; echo twin"));
        scene.runs_without_changes(name, &command)
    });
    // Work is done all the same.
    let scene = Scene::in_repository().args(["--yolo", "--sandbox"]);
    scene.play(&[shell("echo made > made; mkdir -p a/b && touch a/b/c && mktemp")]);
    assert!(scene.here().join("made").exists() && scene.here().join("a/b/c").exists());
}

/// A program of the workspace that a rule allows, and that reads what another rule denies.
fn readers(program: &Program) {
    write_program(
        program.cwd_path().join("read"),
        "#!/bin/sh\nfor f in \"$@\"; do cat \"$f\"; done\necho twin\n",
    );
}

#[test]
fn what_a_rule_denies_to_read_no_program_reads() {
    if !has_sandbox() {
        return;
    }
    // The rule, and the file that it is about.
    let rows = [
        ("Read(/secret/**)", "{here}/secret/key"),
        ("Read(./secret/key)", "{here}/secret/key"),
        ("Read(secret/)", "{here}/secret/key"),
        ("Read(*.pem)", "{here}/sub/x.pem"),
        ("Read(**/.env)", "{here}/sub/.env"),
        ("Read(.env)", "{here}/.env"),
        ("Read(~/.ssh/**)", "{home}/.ssh/id"),
        ("Read(/{outside}/cave)", "{outside}/cave/treasure"),
        ("Read(//**/*.pem)", "{here}/sub/x.pem"),
    ];
    each(&rows, |(rule, file)| {
        for denied in [true, false] {
            let scene = Scene::new();
            readers(&scene.program);
            let file = scene.filled(file);
            write(&file, TREASURE);
            let rule = scene.filled(rule);
            let mut scene = scene.args([
                "--sandbox",
                "--allowed-tools",
                "Bash(./read)",
                "--allowed-tools",
                "Bash(./list)",
            ]);
            if denied {
                scene = scene.args(["--exclude-tools", &rule]);
            }
            // The names are not on the command line, where a rule could see them.
            write_program(scene.here().join("list"), format!("#!/bin/sh\nexec ./read {file}\n"));
            let played = scene.play(&[shell("./list")]);
            if !played.result("c1").contains("twin") {
                return Err(format!("{rule}: did not run: {}", played.result("c1")));
            }
            if played.leaks(TREASURE) == denied {
                return Err(format!("{rule}, denied {denied}: {}", played.result("c1")));
            }
        }
        Ok(())
    });
}

#[test]
fn what_a_rule_denies_to_read_is_hidden_also_when_it_is_made_later() {
    if !has_sandbox() {
        return;
    }
    for denied in [true, false] {
        let scene = Scene::new();
        // Neither names the file where a rule could see it.
        let (made, read) = (scene.here().join("make"), scene.here().join("look"));
        write_program(made, format!("#!/bin/sh\nmkdir late && echo {TREASURE} > late/x.pem && echo twin\n"));
        write_program(read, "#!/bin/sh\ncat late/*\necho twin\n");
        let mut scene = scene.args(["--sandbox", "--yolo"]);
        if denied {
            scene = scene.args(["--exclude-tools", "Read(*.pem)"]);
        }
        let played = scene.play_rounds(&[&[shell("echo twin")], &[shell("./make")], &[shell("./look")]]);
        for id in ["c1", "c2", "c3"] {
            assert!(played.result(id).contains("twin"), "{id}: {}", played.result(id));
        }
        assert_eq!(played.result("c3").contains(TREASURE), !denied, "{}", played.result("c3"));
    }
}

#[test]
fn our_memory_and_environment_are_nobody_elses() {
    let key = "k-not-for-children-4711";
    let look = "cat /proc/[0-9]*/environ > all 2>/dev/null; env >> all; for p in /proc/[0-9]*; do \
                head -c 1 $p/mem; done > mem 2>&1; ls -l /proc/$PPID/fd /proc/$PPID/cwd > fds 2>&1; echo twin";
    for (flag, fenced) in [("--sandbox=true", true), ("--sandbox=false", false)] {
        if fenced && !has_sandbox() {
            continue;
        }
        let scene = Scene::new().args(["--yolo", flag]).env("OPENAI_API_KEY", key);
        let scene = scene.user_settings(
            &json!({ "env": { "DASHSCOPE_API_KEY": key, "OPENAI_API_KEY": key, "PLAIN": "plain" } }),
        );
        let played = scene.play(&[shell(look), shell("cat /proc/self/environ > own; env > listed")]);
        assert!(played.result("c1").contains("twin"), "{}", played.result("c1"));
        let read = |name: &str| {
            String::from_utf8_lossy(&fs::read(scene.here().join(name)).unwrap_or_default()).into_owned()
        };
        for file in ["own", "listed"] {
            assert!(!read(file).contains(key), "{flag}: {file} has the model's key");
        }
        assert!(read("listed").contains("PLAIN=plain"), "the settings' other variables are there");
        // Root can read any process where nothing fences it in.
        if fenced || !rustix::process::geteuid().is_root() {
            assert!(!read("all").contains(key), "{flag}: the environment of some process was read");
        }
    }
}

#[test]
fn no_network_and_no_socket_is_reached() {
    if !has_sandbox() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = place.path().join("docker.sock");
    let unix = UnixListener::bind(&path).unwrap();
    let name = format!("qwen-attack-{}", std::process::id());
    let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let port = tcp.local_addr().unwrap().port();
    let overrides =
        [format!("tcp:127.0.0.1:{port}"), format!("unix:{}", path.display()), format!("abstract:{name}")];
    tcp.set_nonblocking(true).unwrap();
    unix.set_nonblocking(true).unwrap();
    hidden.set_nonblocking(true).unwrap();
    let called = || [tcp.accept().is_ok(), unix.accept().is_ok(), hidden.accept().is_ok()];
    let mut commands: Vec<String> = overrides.iter().map(|address| dial(address)).collect();
    commands.push(format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo x >&3"));
    commands.push(format!("echo x > /dev/udp/127.0.0.1/{port}"));
    let calls: Vec<_> = commands.iter().map(|command| shell(command)).collect();
    let scene = Scene::new().args(["--yolo", "--sandbox"]);
    // Where sockets are is not told either.
    let scene = scene.env("SSH_AUTH_SOCK", &path).env("DOCKER_HOST", format!("unix://{}", path.display()));
    let played = scene.play(&calls);
    assert_eq!(called(), [false; 3]);
    for id in ["c1", "c2", "c3"] {
        assert!(played.result(id).contains("not got through"), "{}", played.result(id));
    }
    let played = scene.play(&[shell("env")]);
    assert!(!played.result("c1").contains("docker.sock"), "{}", played.result("c1"));
    // It is the sandbox that keeps them off.
    let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
    scene.play(&calls);
    assert_eq!(called(), [true; 3]);
}

#[test]
fn one_worker_finds_nothing_of_another() {
    if !has_sandbox() {
        return;
    }
    let other = Scene::new().args(["--yolo", "--sandbox"]).env("TENANT_MARK", TREASURE);
    let go = other.here().join("go");
    let held = format!("touch ready; until [ -e {} ]; do sleep 0.05; done; echo {TREASURE}", go.display());
    let command = json!({ "command": held });
    other.mock.push(mock_model::Reply::new([other.names.call("c1", "run_shell_command", command)]));
    other.mock.push(mock_model::Reply::text("done"));
    let mut run = other.program.clone().args(["-p", "x"]).start();
    run.close_stdin();
    while !other.here().join("ready").exists() {
        std::thread::yield_now();
    }
    // Workers of one hub keep their things in one home.
    let scene = Scene::new().args(["--yolo", "--sandbox"]).env("QWEN_HOME", other.program.qwen_home_path());
    let look = format!(
        "cat /proc/[0-9]*/environ > all 2>/dev/null; cat {}/.qwen/sessions/* >> all 2>/dev/null; \
         ls -R $TMPDIR >> all; echo twin",
        other.program.home_path().display()
    );
    let played = scene.play(&[shell(&look)]);
    fs::write(&go, "").unwrap();
    assert_eq!(run.wait().code, Some(0));
    assert!(played.result("c1").contains("twin"), "{}", played.result("c1"));
    let found = String::from_utf8_lossy(&fs::read(scene.here().join("all")).unwrap()).into_owned();
    assert!(!found.contains(TREASURE), "it read what is another's: {found}");
}

#[test]
fn what_a_sandbox_puts_in_the_way_does_not_stop_another_session() {
    let scene = Scene::new().args(["--trust-workspace"]);
    fs::create_dir(scene.here().join(".mcp.json")).unwrap();
    fs::create_dir(scene.here().join(".qwen")).unwrap();
    assert!(scene.play(&[("read_file", json!({ "file_path": "twin" }))]).result("c1").contains("twin"));
}

#[test]
fn variables_of_the_users_shell_do_not_give_words_another_meaning() {
    for (name, value, command) in [
        ("CDPATH", "{outside}", "cd cave && cat treasure"),
        ("BASH_ENV", "{outside}/env", "echo twin"),
        ("ENV", "{outside}/env", "echo twin"),
        ("SHELLOPTS", "noexec", "echo twin"),
        ("BASHOPTS", "dotglob", "cat .hid* *en"),
        ("GLOBIGNORE", "file", "cat *en"),
    ] {
        let scene = Scene::new().args(["--sandbox=false"]);
        write(scene.here().join("cave/treasure"), "twin\n");
        write(scene.here().join("open-en"), "twin\n");
        write(scene.here().join(".hidden-en"), "twin\n");
        write(scene.out("env"), "cat() { command cat \"$0\"; }; echo the-treasure-outside\n");
        let value = scene.filled(value);
        let scene = scene.env(name, value);
        let played = scene.play(&[shell(command)]);
        assert!(!played.leaks(TREASURE), "{name}: {}", played.result("c1"));
        assert!(played.result("c1").contains("twin"), "{name}: {}", played.result("c1"));
    }
}

/// Refuses the system calls of Landlock, as a kernel without it does, and then runs a program.
#[cfg(target_arch = "x86_64")]
const WITHOUT_LANDLOCK: &str = r"
my @filter = ([0x20,0,0,0], [0x35,0,2,444], [0x25,1,0,446], [0x06,0,0,0x00050026], [0x06,0,0,0x7fff0000]);
my $code = join '', map { pack 'SCCL', @$_ } @filter;
my $program = pack 'Sx6P', scalar(@filter), $code;
syscall(157, 38, 1, 0, 0, 0) == 0 or exit 99;
syscall(157, 22, 2, $program) == 0 or exit 98;
exec @ARGV or exit 97;
";

/// A scene on a machine that can enforce nothing: no mount namespaces and no Landlock.
#[cfg(target_arch = "x86_64")]
fn without_sandbox() -> Option<Scene> {
    let scene = Scene::new();
    let (script, wrapper) = (scene.out("without-landlock.pl"), scene.out("without-sandbox"));
    write(&script, WITHOUT_LANDLOCK);
    let refuses = "echo 0 > /proc/sys/user/max_mnt_namespaces";
    let inner = format!("{refuses} && exec perl {} \"$@\"", script.display());
    write_program(&wrapper, format!("#!/bin/sh\nexec unshare -U -r sh -c '{inner}' - \"$@\"\n"));
    let tried = std::process::Command::new(&wrapper).arg("true").output();
    let works = tried.is_ok_and(|tried| tried.status.success());
    works.then(|| Scene { program: scene.program.clone().start_through(wrapper), ..scene })
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_sandbox_that_is_required_and_cannot_be_had_ends_with_44_and_auto_warns_once() {
    let Some(scene) = without_sandbox() else { return };
    let required = scene.program.clone().args(["-p", "go", "--sandbox"]).run();
    assert_eq!(required.code, Some(44), "{required:?}");
    assert!(required.stderr.contains("cannot confine what commands write"), "{}", required.stderr);
    assert_eq!(scene.mock.requests().len(), 0, "nothing is asked of the model");
    let reported = scene.program.clone().arg("sandbox").run();
    assert_eq!(reported.code, Some(44), "{reported:?}");
    // With `auto` it runs, and the user is told once.
    let scene = scene.args(["--yolo"]);
    let played = scene.play_rounds(&[&[shell("echo twin > one")], &[shell("echo twin > two")]]);
    assert!(scene.here().join("one").exists() && scene.here().join("two").exists());
    let told = &played.ended.stderr;
    assert_eq!(told.matches("WITHOUT A SANDBOX").count(), 1, "{told}");
}

#[test]
fn git_removes_untracked_files_without_stumbling_over_protected_names() {
    if !has_sandbox() {
        return;
    }
    for (command, left) in [
        ("git clean -fd && echo twin", false),
        ("git clean -nd && echo twin", true),
        ("git stash -u && git stash pop && echo twin", true),
        ("git add -A && git status --short && echo twin", true),
    ] {
        let scene = Scene::in_repository().args(["--yolo", "--sandbox"]);
        write(scene.here().join("untracked/file"), "x");
        let played = scene.play(&[shell(command)]);
        let result = played.result("c1");
        assert!(result.contains("twin") && !result.contains("Exit code"), "{command}: {result}");
        assert!(!result.contains(".qwen") && !result.contains(".mcp.json"), "{command}: {result}");
        assert_eq!(scene.here().join("untracked/file").exists(), left, "{command}");
        assert!(!scene.here().join(".qwen").exists() && !scene.here().join(".mcp.json").exists());
    }
}
