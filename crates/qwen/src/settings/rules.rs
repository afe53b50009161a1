//! Permission rules and the choice of tools, from flags.

use qwen_events::Behavior;
use qwen_tools::permissions::RuleSource;

use crate::cli::Run;

/// The rules that flags give.
pub(super) fn resolve(run: &Run) -> Vec<(Behavior, String, RuleSource)> {
    let given = |behavior: Behavior, lists: &[String]| {
        let rules: Vec<_> = lists.iter().flat_map(|list| split(list)).collect();
        rules.into_iter().map(move |rule| (behavior, rule, RuleSource::Flag)).collect::<Vec<_>>()
    };
    let mut rules = given(Behavior::Allow, &run.allowed_tools);
    rules.extend(given(Behavior::Deny, &run.exclude_tools));
    rules
}

/// The built-in tools that are wanted. An empty list means none, the word `default` all.
pub(super) fn tools(run: &Run) -> Option<Vec<String>> {
    let list = run.core_tools.as_deref().filter(|list| *list != "default")?;
    // A rule such as `ShellTool(git status)` wants the tool; the rest of it is about permission.
    Some(split(list).iter().map(|name| name.split('(').next().unwrap_or(name).trim().to_owned()).collect())
}

/// Cuts a list at its commas, except those inside the brackets of a rule.
fn split(list: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut depth = 0_usize;
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(item) = items.last_mut() {
            item.push(c);
        }
    }
    items.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_at_commas_outside_brackets() {
        assert_eq!(
            split("Read, Bash(git log a,b) ,,Edit(/src/**)"),
            ["Read", "Bash(git log a,b)", "Edit(/src/**)"]
        );
        assert!(split("").is_empty());
    }
}
