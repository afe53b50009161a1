//! Whatever a command says, it is judged the same twice, no rule that forbids lets more through, and what one
//! rule for `echo` lets through starts nothing else that is not known to only read.

#![no_main]

use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use qwen_events::{Behavior, ToolCatalogue, ToolKind, Verdict};
use qwen_permissions::{DeclaredCall, Mode, Policy, RuleSource};
use qwen_permissions::shell::analyse;

/// Programs that do more than read.
const ACTING: &[&str] =
    &["touch", "rm", "sh", "bash", "eval", "tee", "cp", "mv", "python", "perl", "curl", "sudo"];

fn judged(mode: Mode, rules: &[(Behavior, &str)], command: &str) -> Verdict {
    let root = PathBuf::from("/nonexistent/workspace");
    let mut policy = Policy::new(mode, [root.clone()], None, ToolCatalogue::new(&[qwen_tools::DECLARATIONS]));
    for (behavior, rule) in rules {
        policy.add_rule(*behavior, rule, RuleSource::Flag).expect("the rules are sound");
    }
    let (tool, kind, cwd): (_, _, &Path) = ("run_shell_command", ToolKind::Execute, &root);
    let facts = DeclaredCall::new(tool, kind, cwd).with_command(command);
    policy.judge(&facts).decision.verdict
}

fuzz_target!(|command: &str| {
    let echo = (Behavior::Allow, "Bash(echo *)");
    let no_touch = (Behavior::Deny, "Bash(touch *)");
    let verdict = judged(Mode::Default, &[echo], command);
    assert_eq!(verdict, judged(Mode::Default, &[echo], command));
    if verdict == Verdict::Allow {
        let analysis = analyse(command);
        assert!(analysis.unanalysable.is_none(), "allowed though nobody knows what it does");
        for invocation in &analysis.invocations {
            let program = invocation.program_name().unwrap_or("");
            // A wrapper is named beside what it runs, which has to pass by itself.
            assert!(invocation.transparent || !ACTING.contains(&program), "{program} was allowed");
        }
    }
    for (mode, rules) in [(Mode::Default, &[echo][..]), (Mode::Yolo, &[])] {
        let forbidding: Vec<_> = rules.iter().copied().chain([no_touch]).collect();
        if judged(mode, &forbidding, command) == Verdict::Allow {
            assert_eq!(judged(mode, rules, command), Verdict::Allow, "a rule that forbids let it through");
        }
    }
    if judged(Mode::Plan, &[], command) == Verdict::Allow {
        assert_eq!(judged(Mode::Default, &[], command), Verdict::Allow, "plan allows more than default");
    }
});
