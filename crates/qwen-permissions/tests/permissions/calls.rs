//! Calls of tools other than the shell.

use qwen_events::{ToolKind, Verdict};
use qwen_permissions::{DeclaredCall, Mode};

use crate::Desk;

#[test]
fn each_mode_decides_as_its_name_says() {
    use ToolKind::{Edit, ExitPlan, Fetch, Mcp, Memory, Read, Session, Undeclared};
    use Verdict::{Allow, Ask, Deny};
    // tool, kind, paths; plan, default, auto-edit, yolo
    let cases: [(&str, ToolKind, &[&str], [Verdict; 4]); 19] = [
        ("read_file", Read, &["file"], [Allow, Allow, Allow, Allow]),
        ("grep_search", Read, &[], [Allow, Allow, Allow, Allow]),
        ("read_file", Read, &["/etc/passwd"], [Ask, Ask, Ask, Allow]),
        ("read_file", Read, &["../outside"], [Ask, Ask, Ask, Allow]),
        ("read_file", Read, &["links/out"], [Ask, Ask, Ask, Allow]),
        ("read_file", Read, &[".git/config"], [Allow, Allow, Allow, Allow]),
        ("edit", Edit, &["file"], [Deny, Ask, Allow, Allow]),
        ("write_file", Edit, &["src/new"], [Deny, Ask, Allow, Allow]),
        ("write_file", Edit, &["/etc/passwd"], [Deny, Ask, Ask, Allow]),
        ("write_file", Edit, &["links/out"], [Deny, Ask, Ask, Allow]),
        ("write_file", Edit, &[".git/hooks/pre-commit"], [Deny, Ask, Ask, Ask]),
        ("write_file", Edit, &[".qwen/settings.json"], [Deny, Ask, Ask, Ask]),
        ("edit", Edit, &["sub/.mcp.json"], [Deny, Ask, Ask, Ask]),
        ("web_fetch", Fetch, &[], [Deny, Ask, Ask, Allow]),
        ("mcp__a__b", Mcp, &[], [Deny, Ask, Ask, Allow]),
        ("save_memory", Memory, &[], [Deny, Ask, Ask, Allow]),
        ("todo_write", Session, &[], [Allow, Allow, Allow, Allow]),
        ("todo_write", Undeclared, &[], [Deny, Ask, Ask, Allow]),
        ("exit_plan_mode", ExitPlan, &[], [Ask, Allow, Allow, Allow]),
    ];
    for (tool, kind, paths, expected) in cases {
        for (mode, verdict) in
            [Mode::Plan, Mode::Default, Mode::AutoEdit, Mode::Yolo].into_iter().zip(expected)
        {
            let decision = Desk::new(mode).call(tool, kind, paths).decision;
            assert_eq!(decision.verdict, verdict, "{tool} {paths:?} in {}: {}", mode.name(), decision.reason);
        }
    }
}

#[test]
fn planning_is_not_widened_by_rules() {
    let desk =
        Desk::new(Mode::Plan).allow(&["*", "Edit", "mcp__a__*", "save_memory", "Read(//etc/**)", "WebFetch"]);
    assert_eq!(desk.call("edit", ToolKind::Edit, &["file"]).decision.verdict, Verdict::Deny);
    assert_eq!(desk.call("mcp__a__b", ToolKind::Mcp, &[]).decision.verdict, Verdict::Deny);
    assert_eq!(desk.call("save_memory", ToolKind::Memory, &[]).decision.verdict, Verdict::Deny);
    assert_eq!(desk.call("web_fetch", ToolKind::Fetch, &[]).decision.verdict, Verdict::Deny);
    assert_eq!(desk.call("read_file", ToolKind::Read, &["/etc/passwd"]).decision.verdict, Verdict::Ask);
}

#[test]
fn rules_widen_and_narrow_what_the_mode_says() {
    use ToolKind::{Edit, Mcp, Read};
    use Verdict::{Allow, Ask, Deny};
    let desk = Desk::new(Mode::Default)
        .allow(&[
            "Edit(/src/**)",
            "Read(//etc/hosts)",
            "mcp__files__*",
            "mcp__db__query",
            "write_file(/out/*)",
        ])
        .ask(&["mcp__files__delete", "Edit(/src/generated/**)"])
        .deny(&["Read(secret/**)", "Edit(*.lock)", "mcp__files__format"]);
    let cases: [(&str, ToolKind, &[&str], Verdict); 21] = [
        ("edit", Edit, &["src/main.rs"], Allow),
        ("write_file", Edit, &["src/a/b"], Allow),
        ("edit", Edit, &["src/../file"], Ask),
        ("edit", Edit, &["src/main.rs", "file"], Ask),
        ("edit", Edit, &["src/generated/x"], Ask),
        ("edit", Edit, &["src/Cargo.lock"], Deny),
        ("write_file", Edit, &["out/x"], Allow),
        ("edit", Edit, &["out/x"], Ask),
        ("write_file", Edit, &["out/a/b"], Ask),
        ("read_file", Read, &["/etc/hosts"], Allow),
        ("read_file", Read, &["/etc/passwd"], Ask),
        ("read_file", Read, &["secret/key"], Deny),
        ("read_file", Read, &["up/workspace/secret/key"], Deny),
        ("list_directory", Read, &["secret"], Deny),
        ("glob", Read, &["secret/sub"], Deny),
        ("edit", Edit, &["secret/key"], Ask),
        ("mcp__files__read", Mcp, &[], Allow),
        ("mcp__files__delete", Mcp, &[], Ask),
        ("mcp__files__format", Mcp, &[], Deny),
        ("mcp__db__query", Mcp, &[], Allow),
        ("mcp__db__drop", Mcp, &[], Ask),
    ];
    for (tool, kind, paths, verdict) in cases {
        let decision = desk.call(tool, kind, paths).decision;
        assert_eq!(decision.verdict, verdict, "{tool} {paths:?}: {}", decision.reason);
    }
}

#[test]
fn a_tool_that_is_allowed_as_a_whole_stays_in_the_workspace() {
    let desk = Desk::new(Mode::Default).allow(&["Edit", "Read"]);
    assert_eq!(desk.call("edit", ToolKind::Edit, &["file"]).decision.verdict, Verdict::Allow);
    assert_eq!(desk.call("edit", ToolKind::Edit, &["/etc/passwd"]).decision.verdict, Verdict::Ask);
    assert_eq!(desk.call("read_file", ToolKind::Read, &["up/outside"]).decision.verdict, Verdict::Ask);
}

#[test]
fn an_address_is_judged_by_its_host() {
    let desk = Desk::new(Mode::Default)
        .allow(&["WebFetch(domain:example.com)"])
        .deny(&["WebFetch(domain:evil.org)"]);
    let cases = [
        ("https://example.com/a", Verdict::Allow),
        ("https://example.com.evil.org/a", Verdict::Deny),
        ("https://example.com@evil.org/a", Verdict::Deny),
        ("https://other.com/", Verdict::Ask),
        ("https://sub.evil.org/", Verdict::Deny),
    ];
    for (url, verdict) in cases {
        let root = desk.root();
        let call = DeclaredCall::new("web_fetch", ToolKind::Fetch, &root).with_url(url);
        assert_eq!(desk.policy.judge(&call).decision.verdict, verdict, "{url}");
    }
}

#[test]
fn a_refused_path_is_named() {
    let judgement = Desk::new(Mode::Default).call("read_file", ToolKind::Read, &["/etc/passwd"]);
    assert_eq!(judgement.blocked_path.as_deref(), Some(std::path::Path::new("/etc/passwd")));
    assert!(judgement.decision.reason.contains("/etc/passwd"));
}
