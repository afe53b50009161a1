//! Changes during a session.

use std::sync::Arc;

use qwen_events::{Behavior, PermissionUpdate, ToolKind, Verdict};
use qwen_permissions::shell::{root_commands, subcommands};
use qwen_permissions::{Mode, RuleSource};

use crate::Desk;

fn rules(texts: &[&str]) -> Vec<Arc<str>> {
    texts.iter().map(|text| Arc::from(*text)).collect()
}

#[test]
fn an_answer_can_change_rules_mode_and_workspace() {
    let mut desk = Desk::new(Mode::Default);
    desk.all(Verdict::Ask, &["npm test"]);
    let add = PermissionUpdate::AddRules { behavior: Behavior::Allow, rules: rules(&["Bash(npm test)"]) };
    desk.policy.apply(&add).unwrap();
    desk.all(Verdict::Allow, &["npm test"]);
    let remove =
        PermissionUpdate::RemoveRules { behavior: Behavior::Allow, rules: rules(&["Bash(npm test)"]) };
    desk.policy.apply(&remove).unwrap();
    desk.all(Verdict::Ask, &["npm test"]);
    desk.policy.apply(&PermissionUpdate::SetMode("acceptEdits".into())).unwrap();
    assert_eq!(desk.policy.mode(), Mode::AutoEdit);
    let outside = desk.directory.path().join("outside");
    let path = outside.to_str().unwrap();
    assert_eq!(desk.call("read_file", ToolKind::Read, &[path]).decision.verdict, Verdict::Ask);
    let directory = desk.directory.path().to_str().unwrap().into();
    desk.policy.apply(&PermissionUpdate::AddDirectories(vec![directory])).unwrap();
    assert_eq!(desk.call("read_file", ToolKind::Read, &[path]).decision.verdict, Verdict::Allow);
}

#[test]
fn an_answer_cannot_take_back_what_the_settings_forbid() {
    let mut desk = Desk::new(Mode::Yolo);
    desk.policy.add_rule(Behavior::Deny, "Bash(rm *)", RuleSource::Settings("settings.json".into())).unwrap();
    let remove = PermissionUpdate::RemoveRules { behavior: Behavior::Deny, rules: rules(&["Bash(rm *)"]) };
    desk.policy.apply(&remove).unwrap();
    desk.all(Verdict::Deny, &["rm x"]);
}

#[test]
fn an_answer_that_cannot_be_understood_is_an_error() {
    let mut desk = Desk::new(Mode::Default);
    assert!(desk.policy.apply(&PermissionUpdate::SetMode("bogus".into())).is_err());
    let add = PermissionUpdate::AddRules { behavior: Behavior::Allow, rules: rules(&["Bash("]) };
    assert!(desk.policy.apply(&add).is_err());
    assert_eq!(desk.policy.mode(), Mode::Default);
}

#[test]
fn the_programs_of_a_command_are_told_in_their_order() {
    let cases: [(&str, &[&str]); 6] = [
        ("git log | head && git status", &["git", "head"]),
        ("timeout 5 /bin/rm x", &["timeout", "rm"]),
        ("echo $(whoami)", &["whoami", "echo"]),
        ("bash -c 'ls; pwd'", &["bash", "ls", "pwd"]),
        ("$x 'unclosed", &["$x"]),
        ("", &[]),
    ];
    for (command, expected) in cases {
        assert_eq!(root_commands(command), expected, "{command}");
    }
}

#[test]
fn the_subcommand_belongs_to_a_program_that_has_some() {
    let cases: [(&str, &[&str]); 6] = [
        ("git push origin main", &["git push"]),
        ("cargo test && cargo test -q && cargo build", &["cargo test", "cargo build"]),
        ("git -C x status", &["git"]),
        ("npm run \"$x\"; make test", &["npm run", "make"]),
        ("git $verb", &["git"]),
        ("", &[]),
    ];
    for (command, expected) in cases {
        assert_eq!(subcommands(command), expected, "{command}");
    }
}
