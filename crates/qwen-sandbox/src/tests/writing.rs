//! Writing outside the workspace.

use super::{Fixture, exists, variants};

#[test]
fn nothing_outside_can_be_written() {
    for variant in variants() {
        let fixture = Fixture::new();
        let outside = fixture.home.join("file");
        std::fs::write(&outside, "before").unwrap();
        let unique = format!("qwen-sandbox-{}", std::process::id());
        for place in
            ["/etc", "/tmp", "/var/tmp", "/dev/shm", "/root", "/usr/bin", fixture.home.to_str().unwrap()]
        {
            let path = format!("{place}/{unique}");
            let ran = fixture.run(
                &variant,
                &format!("echo x > {path}; mkdir {path}.d; ln -s x {path}.l; mkfifo {path}.p"),
            );
            for name in ["", ".d", ".l", ".p"] {
                let path = format!("{path}{name}");
                let written = exists(&path);
                let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path));
                assert!(!written, "{}: {path} was written: {ran:?}", variant.name);
            }
        }
        for attack in [
            "echo x > $HOME/file",
            "echo x >> $HOME/file",
            "rm $HOME/file",
            "mv $HOME/file $HOME/moved",
            "mv $HOME/file .",
            "truncate -s 0 $HOME/file",
            "ln -s $HOME link; echo x > link/file",
            "ln -s $HOME/file soft; echo x > soft",
            "ln $HOME/file hard && echo x > hard",
            "echo x > new; mv new $HOME/file",
            "cp /bin/true $HOME/file",
            "python3 -c 'import os; os.truncate(os.environ[\"HOME\"]+\"/file\", 0)'",
            "echo x > /proc/self/root$HOME/file",
            "echo x > /proc/self/cwd/../home/file",
            "cd /; echo x > .$HOME/file",
            "(setsid bash -c 'echo x > $HOME/file'); true",
        ] {
            let ran = fixture.run(&variant, attack);
            let now = std::fs::read_to_string(&outside).unwrap_or_default();
            assert_eq!(now, "before", "{}: {attack}: {ran:?}", variant.name);
        }
    }
}

#[test]
fn permissions_owners_and_times_outside_stay_where_mounts_are_there() {
    use std::os::unix::fs::MetadataExt;
    for variant in variants().iter().filter(|variant| variant.mounts()) {
        let fixture = Fixture::new();
        let outside = fixture.home.join("file");
        std::fs::write(&outside, "x").unwrap();
        let look = || {
            let meta = std::fs::metadata(&outside).unwrap();
            (meta.mode(), meta.uid(), meta.mtime())
        };
        let before = look();
        fixture.run(variant, "chmod 777 $HOME/file; chown 12345 $HOME/file; touch -d 2001-01-01 $HOME/file");
        assert_eq!(look(), before, "{}", variant.name);
    }
}

#[test]
fn the_workspace_and_the_temporary_directory_can_be_written() {
    for variant in variants() {
        let fixture = Fixture::new();
        let script = "set -e; mkdir -p a/b; echo one > a/b/c; mv a/b/c a/d; ln a/d a/e; ln -s d a/f; mkfifo pipe
            echo two > $TMPDIR/t; mv $TMPDIR/t t; mktemp; truncate -s 1 t; chmod 600 t; rm pipe
            echo > /dev/null; cat a/e; exec 3<> t; echo hi | tee /dev/stderr > /dev/null; diff <(echo 1) <(echo 1)";
        let ran = fixture.run(&variant, script);
        assert!(ran.ok, "{}: {ran:?}", variant.name);
        assert_eq!(fixture.names(), ["a", "t"], "{}", variant.name);
        assert_eq!(ran.tampered, [], "{}", variant.name);
    }
}

#[test]
fn other_directories_can_be_made_writable() {
    for variant in variants() {
        let mut fixture = Fixture::new();
        fixture.policy.writable = vec![fixture.home.join("cache"), fixture.home.join("not-there")];
        std::fs::create_dir(fixture.home.join("cache")).unwrap();
        let ran = fixture.run(&variant, "echo x > $HOME/cache/x && ! echo x > $HOME/x");
        assert!(ran.ok && exists(fixture.home.join("cache/x")), "{}: {ran:?}", variant.name);
        assert!(!exists(fixture.home.join("x")), "{}", variant.name);
    }
}

#[test]
fn a_workspace_inside_a_writable_place_needs_nothing_more() {
    for variant in variants() {
        let mut fixture = Fixture::new();
        fixture.policy.temp = fixture.root.join(".tmp");
        std::fs::create_dir(&fixture.policy.temp).unwrap();
        let ran = fixture.run(&variant, "echo x > .tmp/x && echo x > x && echo x > .qwen/x");
        assert!(
            !ran.ok && exists(fixture.root.join(".tmp/x")) && exists(fixture.root.join("x")),
            "{}: {ran:?}",
            variant.name
        );
        assert!(!exists(fixture.root.join(".qwen")), "{}", variant.name);
    }
}

#[test]
fn devices_cannot_be_made() {
    for variant in variants() {
        let fixture = Fixture::new();
        let ran = fixture.run(&variant, "mknod disk b 1 0; mknod mem c 1 1; mknod void c 0 0; true");
        if variant.landlock() {
            assert_eq!(fixture.names(), Vec::<String>::new(), "{}: {ran:?}", variant.name);
        } else {
            assert!(
                !exists(fixture.root.join("disk")) && !exists(fixture.root.join("mem")),
                "{}: {ran:?}",
                variant.name
            );
        }
    }
}

#[test]
fn with_mounts_read_only_paths_stay_unchanged() {
    for variant in variants().iter().filter(|variant| variant.mounts()) {
        let mut fixture = Fixture::new();
        fixture.write("a/keep/deep/key", "kept");
        fixture.write("a/file", "kept");
        fixture.write("a/other", "x");
        fixture.policy.deny_write =
            ["a/keep", "a/file", "absent"].map(|name| fixture.root.join(name)).to_vec();
        let sandbox = fixture.sandbox(variant);
        for attack in [
            "echo x > a/file; echo x >> a/keep/deep/key; touch a/keep/new; rm -rf a/keep a/file",
            "mv a b; mkdir -p a/keep/deep; echo x > a/file; echo x > a/keep/deep/key; rm -rf b",
            "mv a/other a/file; ln -f a/other a/file; ln a/file hard && echo x > hard; rm -f hard",
            "sed -i s/kept/x/ a/file a/keep/deep/key; cp a/other a/file; truncate -s 0 a/file; chmod 777 a/file",
            "mount -o remount,rw a/file; umount a/file; echo x > a/file",
            "cd a/keep && echo x > deep/key; exec 3<>/proc/self/cwd/deep/key",
        ] {
            let ran = fixture.run_in(&sandbox, attack);
            let read = |name: &str| std::fs::read_to_string(fixture.root.join(name)).unwrap_or_default();
            let now =
                (read("a/keep/deep/key"), read("a/file"), super::exists(fixture.root.join("a/keep/new")));
            assert_eq!(now, ("kept".into(), "kept".into(), false), "{}: {attack}: {ran:?}", variant.name);
        }
        let ran = fixture.run_in(
            &sandbox,
            "cat a/file a/keep/deep/key && echo new > a/new && mv a/new moved && cat moved",
        );
        assert_eq!(ran.out, "keptkeptnew\n", "{}: {ran:?}", variant.name);
        // What comes later is held from the next command on.
        fixture.write("absent", "kept");
        let ran = fixture.run_in(&sandbox, "echo x > absent");
        assert!(!ran.ok, "{}: {ran:?}", variant.name);
    }
}
