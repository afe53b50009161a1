//! Reading what is denied.

use std::path::Path;

use super::{Fixture, has, variants};

#[test]
fn denied_files_cannot_be_read_by_any_program() {
    for variant in variants() {
        let mut fixture = Fixture::new();
        fixture.write("secret/deep/key", "TOPSECRET");
        fixture.write(".env", "TOPSECRET");
        fixture.write("open/.env", "fine");
        std::fs::write(fixture.home.join("key"), "TOPSECRET").unwrap();
        std::os::unix::fs::symlink(fixture.home.join("key"), fixture.root.join("link")).unwrap();
        fixture.policy.deny_read = vec![
            fixture.root.join("secret"),
            fixture.root.join(".env"),
            fixture.home.join("key"),
            fixture.root.join("absent"),
        ];
        let sandbox = fixture.sandbox(&variant);
        let mut attacks = vec![
            "cat secret/deep/key .env $HOME/key link",
            "cp .env copy; cat copy; ln .env hard; cat hard; mv .env moved; cat moved; mv secret s; cat s/deep/key",
            "grep -r TOP . $HOME; tar c . | cat; cat /proc/self/root$HOME/key; cat /proc/self/cwd/.env",
            "mkdir new; mv s/deep new; mv open open2; mv moved open2; ln hard open2; cat new/deep/key open2/moved open2/hard; mv open2 open",
            "cat new/deep/key open2/moved open/moved open/hard; dd if=.env; source .env; tail -c 100 < .env; cat $(find . -name key)",
        ];
        if has("python3") {
            attacks.push("python3 -c 'print(open(\".env\").read())'; python3 -c 'print(open(\"secret/deep/key\").read())'");
        }
        for attack in attacks {
            let ran = fixture.run_in(&sandbox, attack);
            assert!(
                !ran.out.contains("SECRET") && !ran.err.contains("TOPSECRET"),
                "{}: {attack}: {ran:?}",
                variant.name
            );
        }
        let ran = fixture.run_in(&sandbox, "cat open/.env");
        assert_eq!(ran.out, "fine", "{}: {ran:?}", variant.name);
        let ran = fixture.run_in(&sandbox, "cat .env");
        assert!(!ran.ok, "{}: refused, not empty: {ran:?}", variant.name);
        if variant.mounts() {
            let now = std::fs::read_to_string(fixture.root.join(".env")).unwrap();
            assert_eq!(now, "TOPSECRET", "{}", variant.name);
        }
    }
}

#[test]
fn a_denied_directory_may_hold_the_workspace() {
    for variant in variants() {
        let mut fixture = Fixture::new();
        let place = fixture.root.parent().unwrap().to_owned();
        std::fs::write(place.join("other"), "TOPSECRET").unwrap();
        std::fs::write(fixture.home.join("other"), "TOPSECRET").unwrap();
        fixture.write("mine", "mine");
        fixture.policy.deny_read = vec![place];
        let ran = fixture.run(
            &variant,
            "cat mine; echo new > new; cat new; echo t > $TMPDIR/t; cat $TMPDIR/t; cat ../other $HOME/other",
        );
        assert_eq!(ran.out, "minenew\nt\n", "{}: {ran:?}", variant.name);
    }
}

#[test]
fn a_secret_that_appears_later_is_covered_for_the_next_command() {
    for variant in variants() {
        let mut fixture = Fixture::new();
        fixture.policy.deny_read = vec![fixture.root.join(".env")];
        let sandbox = fixture.sandbox(&variant);
        assert!(fixture.run_in(&sandbox, "true").ok);
        fixture.write(".env", "TOPSECRET");
        let ran = fixture.run_in(&sandbox, "cat .env");
        assert!(!ran.ok && !ran.out.contains("SECRET"), "{}: {ran:?}", variant.name);
        let replacement = fixture.write("new", "TOPSECRET");
        std::fs::rename(replacement, fixture.root.join(".env")).unwrap();
        let ran = fixture.run_in(&sandbox, "cat .env");
        assert!(!ran.ok && !ran.out.contains("SECRET"), "{}: {ran:?}", variant.name);
    }
}

#[test]
fn disks_cannot_be_read_past_the_files() {
    let Some(disk) = ["/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0"]
        .into_iter()
        .find(|disk| Path::new(disk).exists())
    else {
        eprintln!("SKIPPED: there is no disk here");
        return;
    };
    for variant in variants() {
        let mut fixture = Fixture::new();
        fixture.policy.deny_read = vec![fixture.home.clone()];
        let ran = fixture.run(&variant, &format!("head -c 512 {disk} | wc -c"));
        assert_eq!(ran.out.trim(), "0", "{}: {ran:?}", variant.name);
    }
}

#[test]
fn an_exception_in_a_denied_directory_can_be_read_and_nothing_else_there() {
    for variant in variants() {
        let mut fixture = Fixture::new();
        let shared = fixture.home.join("shared");
        for name in ["own/temp", "other/temp"] {
            std::fs::create_dir_all(shared.join(name)).unwrap();
            std::fs::write(shared.join(name).join("note"), "TOPSECRET").unwrap();
        }
        std::fs::write(shared.join("own/spill"), "mine\n").unwrap();
        fixture.policy.temp = shared.join("own/temp");
        fixture.policy.deny_read = vec![shared.clone()];
        fixture.policy.show = vec![shared.join("own")];
        let ran = fixture.run(
            &variant,
            "cd ~/shared; cat own/spill; echo t > own/temp/note; cat own/temp/note; cat other/temp/note; ls other; \
             touch own/X && rm own/X && echo wrote; echo x > own/spill && echo wrote; true",
        );
        assert_eq!(ran.out.replace("temp\n", ""), "mine\nt\n", "{}: {ran:?}", variant.name);
        let spill = std::fs::read_to_string(shared.join("own/spill")).unwrap();
        assert_eq!(spill, "mine\n", "{}", variant.name);
    }
}
