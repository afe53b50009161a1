//! `qwen completions`: completion scripts, which ask the binary for sessions, models and agents.

use clap::CommandFactory;
use clap_complete::Shell;
use qwen_events::{AgentName, ErrorInfo};

use super::models;
use crate::cli::{Cli, CompletionKind, ModelsArgs};
use crate::model_list;
use crate::session::setup;
use crate::settings::{self, Invocation};

/// How many sessions are offered.
const SESSIONS: usize = 50;

/// Completes values in bash, and passes everything else to the generated function.
const BASH: &str = r#"
_qwen_with_values() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" kind=""
    case "${prev}" in
        --model|-m|--fallback-model) kind=models ;;
        --agent) kind=agents ;;
        --resume|-r) kind=sessions ;;
        show|export|replay|delete|checkpoints|fork|prune)
            if [[ "${COMP_WORDS[1]}" == sessions ]]; then kind=sessions; fi ;;
    esac
    if [[ -n "${kind}" && "${cur}" != -* ]]; then
        COMPREPLY=( $(compgen -W "$("${COMP_WORDS[0]}" complete-values "${kind}" 2>/dev/null)" -- "${cur}") )
        return 0
    fi
    _qwen "$@"
}
complete -F _qwen_with_values -o bashdefault -o default qwen
"#;

const ZSH: &str = r#"
_qwen_values() {
    local -a values
    values=("${(@f)$(_call_program values qwen complete-values $1 2>/dev/null)}")
    compadd -a values
}
_qwen_models() { _qwen_values models }
_qwen_agents() { _qwen_values agents }
_qwen_sessions() { _qwen_values sessions }

"#;

/// The beginnings of lines in the script for zsh, and the function that completes their values.
const ZSH_VALUES: [(&str, &str); 7] = [
    ("'-m+[", "_qwen_models"),
    ("'--model=[", "_qwen_models"),
    ("'--agent=[", "_qwen_agents"),
    ("'-r+[", "_qwen_sessions"),
    ("'--resume=[", "_qwen_sessions"),
    ("':id -- The session", "_qwen_sessions"),
    ("'*::ids -- The sessions", "_qwen_sessions"),
];

const FISH: &str = r#"
complete -c qwen -l model -s m -x -a "(qwen complete-values models 2>/dev/null)"
complete -c qwen -l agent -x -a "(qwen complete-values agents 2>/dev/null)"
complete -c qwen -l resume -s r -x -a "(qwen complete-values sessions 2>/dev/null)"
complete -c qwen -n "__fish_seen_subcommand_from sessions; and __fish_seen_subcommand_from show export replay delete checkpoints fork prune" -f -a "(qwen complete-values sessions 2>/dev/null)"
"#;

/// The completion script for a shell.
pub fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "qwen", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script.push_str(BASH),
        Shell::Zsh => script = for_zsh(&script),
        Shell::Fish => script.push_str(FISH),
        _ => {}
    }
    script
}

fn for_zsh(script: &str) -> String {
    let mut text = String::with_capacity(script.len() + ZSH.len());
    for line in script.lines() {
        if line.starts_with("if [ \"$funcstack[1]\"") {
            text.push_str(ZSH);
        }
        let completer = ZSH_VALUES.iter().find(|(start, _)| line.starts_with(start));
        match completer {
            Some((_, completer)) => text.push_str(&line.replacen(":_default'", &format!(":{completer}'"), 1)),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// The values that a script asks for, one per line.
pub async fn values(kind: CompletionKind, invocation: &mut Invocation) -> Result<String, ErrorInfo> {
    let values: Vec<String> = match kind {
        CompletionKind::Sessions => {
            let sessions = settings::store(invocation)
                .and_then(|store| store.list(Some(&invocation.cwd)).ok())
                .unwrap_or_default();
            let ids = sessions.into_iter().take(SESSIONS).map(|session| session.header.session_id);
            ids.map(|id| id.as_str().to_owned()).collect()
        }
        CompletionKind::Models => {
            let config = models::config(&ModelsArgs::default(), invocation)?;
            model_list::fetch(&config.model.config?, model_list::TIMEOUT).await?
        }
        CompletionKind::Agents => {
            let config = models::config(&ModelsArgs::default(), invocation)?;
            let defined = setup::agents(&config).into_iter().map(|agent| agent.name.to_string());
            AgentName::ALL.map(|agent| agent.name().to_owned()).into_iter().chain(defined).collect()
        }
    };
    Ok(values.into_iter().map(|value| value + "\n").collect())
}
