//! The permission rule that a question offers for calls like the one it is about.

use crate::{Confirmation, ToolCall};

/// The rule that is offered for calls like this one; none if no rule can allow them. It covers a program's
/// action with other arguments where the program is known, otherwise this call only.
pub fn offer_rule(call: &ToolCall, confirmation: &Confirmation) -> Option<String> {
    match confirmation {
        // Rules are one line, and a parenthesis ends them.
        Confirmation::Exec { command, .. } => {
            let command = command.trim();
            if let Some(prefix) = command_prefix(command) {
                return Some(format!("Bash({prefix} *)"));
            }
            (!command.contains(['\n', '(', ')', '*'])).then(|| format!("Bash({command})"))
        }
        Confirmation::Edit(change) => Some(format!("Edit(//{})", change.file_path.trim_start_matches('/'))),
        Confirmation::Mcp { .. } => Some(call.name.to_string()),
        Confirmation::Info { urls, .. } => {
            let host = urls.first()?.split("://").nth(1)?.split(['/', '?', '#']).next()?;
            let host = host.split(':').next().unwrap_or(host);
            // Both names under which questions about the connections of commands are asked.
            let is_connection = matches!(&*call.name, "network_access" | "SandboxNetworkAccess");
            Some(if is_connection { format!("Network({host})") } else { format!("WebFetch(domain:{host})") })
        }
        Confirmation::Plan { .. } => None,
    }
}

/// The words of a command up to its first argument that varies: `npm install`, `cargo test`, `touch`.
fn command_prefix(command: &str) -> Option<String> {
    // Anything that combines, expands or redirects has no single program.
    if command.contains(['\n', '\r', '(', ')', '*', ';', '|', '&', '<', '>', '$', '`', '"', '\'', '\\', '='])
    {
        return None;
    }
    let is_word = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
    };
    let words: Vec<&str> = command.split_whitespace().collect();
    let (program, rest) = words.split_first()?;
    // A program that runs what it is given has no harmless arguments.
    if INTERPRETERS.contains(program) || !is_word(program) {
        return None;
    }
    let has_actions = ACTIONS.contains(program);
    Some(match rest.first().filter(|word| has_actions && is_word(word)) {
        Some(action) => format!("{program} {action}"),
        None if has_actions => return None,
        None => (*program).to_owned(),
    })
}

/// Programs whose first argument is an action.
const ACTIONS: &[&str] = &[
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "docker",
    "dotnet",
    "gem",
    "git",
    "go",
    "gradle",
    "helm",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "podman",
    "rustup",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// Programs that run other programs or code from their arguments.
const INTERPRETERS: &[&str] = &[
    "awk", "bash", "chroot", "dash", "doas", "env", "eval", "exec", "find", "ksh", "nice", "node", "nohup",
    "npx", "perl", "php", "python", "python3", "rm", "ruby", "sed", "sh", "ssh", "su", "sudo", "time",
    "timeout", "watch", "xargs", "zsh",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, Json};

    #[test]
    fn a_rule_covers_the_action_of_a_known_program_and_otherwise_this_call_only() {
        let offered = |command: &str| {
            let call = ToolCall::new(CallId::new("c"), "Bash".into(), Json::empty_object());
            let confirmation = Confirmation::Exec { command: command.into(), root_command: "".into() };
            offer_rule(&call, &confirmation)
        };
        for (command, rule) in [
            ("npm install left-pad", Some("Bash(npm install *)")),
            ("touch a b", Some("Bash(touch *)")),
            ("python3 run.py", Some("Bash(python3 run.py)")),
            ("make test && rm x", Some("Bash(make test && rm x)")),
            ("echo $(id)", None),
        ] {
            assert_eq!(offered(command).as_deref(), rule, "{command}");
        }
    }
}
