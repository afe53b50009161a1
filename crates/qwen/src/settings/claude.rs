//! What the flags of Claude's SDKs say about the model.

use qwen_events::{ErrorInfo, Reasoning, Thoughts};
use qwen_model::{ModelConfig, Provider, Secret};

use super::bad_flag;
use crate::cli::ClaudeFlags;

/// The header in which Anthropic's wire is told which unsettled features are wanted.
const BETA_HEADER: &str = "anthropic-beta";

/// The feature that tells the model what a turn may cost.
const TASK_BUDGET_BETA: &str = "task-budgets-2026-03-13";

/// Whether the model thinks, and what is shown of it, when nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThinkingFlags {
    /// Whether the model thinks before it answers, and how much.
    pub reasoning: Option<Reasoning>,
    /// What is shown of that.
    pub thoughts: Option<Thoughts>,
}

/// Reads the flags about thinking.
pub(super) fn thinking(flags: &ClaudeFlags) -> Result<ThinkingFlags, ErrorInfo> {
    let budget = flags.max_thinking_tokens.map(Reasoning::of_tokens);
    let reasoning = match flags.thinking.as_deref() {
        None => budget,
        Some("disabled") => Some(Reasoning::Off),
        Some("adaptive") => Some(Reasoning::Adaptive),
        Some("enabled") => Some(budget.unwrap_or(Reasoning::Adaptive)),
        Some(other) => {
            return Err(bad_flag(format!("--thinking '{other}': it is adaptive, enabled or disabled")));
        }
    };
    let thoughts = flags.thinking_display.as_deref().map(|word| {
        Thoughts::parse(word)
            .ok_or_else(|| bad_flag(format!("--thinking-display '{word}': it is summarized or omitted")))
    });
    Ok(ThinkingFlags { reasoning, thoughts: thoughts.transpose()? })
}

/// Asks the model's server for the features that the flags name, where it speaks the wire that knows them.
pub(super) fn ask_for_betas(config: &mut ModelConfig, flags: &ClaudeFlags, warnings: &mut Vec<String>) {
    let named = flags.betas.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    let mut names: Vec<&str> = named.collect();
    if config.provider != Provider::Anthropic {
        let given = [("betas", !names.is_empty()), ("task-budget", flags.task_budget.is_some())];
        let note = |flag| format!("--{flag} changes nothing here: only Anthropic's wire knows such a thing");
        warnings.extend(given.into_iter().filter(|(_, given)| *given).map(|(flag, _)| note(flag)));
        return;
    }
    if flags.task_budget.is_some() && !names.contains(&TASK_BUDGET_BETA) {
        names.push(TASK_BUDGET_BETA);
    }
    if names.is_empty() {
        return;
    }
    // The settings may ask for some too.
    let header = config.extra_headers.iter().position(|(name, _)| name.eq_ignore_ascii_case(BETA_HEADER));
    let before = header.map(|at| config.extra_headers.remove(at).1.expose().to_owned());
    let all: Vec<&str> = before.as_deref().into_iter().chain(names).collect();
    config.extra_headers.push((BETA_HEADER.to_owned(), Secret::new(all.join(","))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(thinking: Option<&str>, tokens: Option<u64>) -> ClaudeFlags {
        ClaudeFlags {
            thinking: thinking.map(str::to_owned),
            max_thinking_tokens: tokens,
            ..ClaudeFlags::default()
        }
    }

    #[test]
    fn the_kind_of_thinking_goes_before_its_budget() {
        let cases = [
            (None, None, None),
            (None, Some(0), Some(Reasoning::Off)),
            (None, Some(5000), Some(Reasoning::Budget(5000))),
            (Some("adaptive"), Some(5000), Some(Reasoning::Adaptive)),
            (Some("disabled"), Some(5000), Some(Reasoning::Off)),
            (Some("enabled"), Some(5000), Some(Reasoning::Budget(5000))),
            (Some("enabled"), None, Some(Reasoning::Adaptive)),
        ];
        for (kind, tokens, expected) in cases {
            let read = thinking(&flags(kind, tokens)).expect("flags");
            assert_eq!(read.reasoning, expected, "{kind:?} {tokens:?}");
        }
        assert!(thinking(&flags(Some("hard"), None)).is_err());
    }

    #[test]
    fn betas_are_one_header_of_anthropics_wire_and_a_note_elsewhere() {
        let asked = ClaudeFlags {
            betas: vec!["one".to_owned(), " two".to_owned()],
            task_budget: Some(9),
            ..ClaudeFlags::default()
        };
        let mut warnings = Vec::new();
        let mut config = ModelConfig::new(Provider::Anthropic, "m");
        config.extra_headers.push(("Anthropic-Beta".to_owned(), Secret::new("zero")));
        ask_for_betas(&mut config, &asked, &mut warnings);
        let headers: Vec<_> =
            config.extra_headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [(BETA_HEADER, "zero,one,two,task-budgets-2026-03-13")]);
        assert!(warnings.is_empty());
        ask_for_betas(&mut ModelConfig::new(Provider::OpenAi, "m"), &asked, &mut warnings);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }
}
