//! The options that a tenant may choose when it opens a session. Everything else belongs to the operator.

use qwen_events::{ErrorInfo, ErrorKind};

use crate::router::SessionOptions;

/// Flags with a value that name no file and no address.
const WITH_VALUE: &[&str] = &[
    "--agent",
    "--agents",
    "--allowed-tools",
    "--allowedTools",
    "--append-system-prompt",
    "--approval-mode",
    "--core-tools",
    "--dialect",
    "--disallowed-tools",
    "--disallowedTools",
    "--effort",
    "--exclude-tools",
    "--fallback-model",
    "--input-format",
    "--max-budget-usd",
    "--max-session-turns",
    "--max-thinking-tokens",
    "--max-tokens-total",
    "--max-tool-calls",
    "--max-turns",
    "--max-wall-time",
    "--model",
    "--output-format",
    "--permission-mode",
    "--permission-prompt-tool",
    "--setting-sources",
    "--stream-mode",
    "--system-prompt",
    "--tool-names",
    "--tools",
    "-m",
    "-o",
];

/// Flags without a value. They restrict a session or change its output.
const SWITCHES: &[&str] = &[
    "--include-hook-events",
    "--include-partial-messages",
    "--replay-user-messages",
    "--restricted",
    "--safe-mode",
    "--sandbox",
    "--verbose",
    "--yolo",
    "-y",
];

/// Variables that choose files, programs or libraries of the worker.
const RESERVED_VARIABLES: &[&str] =
    &["CLAUDE_CONFIG_DIR", "HOME", "PATH", "PWD", "SHELL", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR"];
const RESERVED_PREFIXES: &[&str] =
    &["DYLD_", "LD_", "QWEN_CODE_", "QWEN_HOME", "QWEN_BUILD", "XDG_", "OTEL_"];

/// Fails if an option could reach beyond the tenant.
pub(super) fn check_tenant_options(options: &SessionOptions) -> Result<(), ErrorInfo> {
    let refuse = |what: &str, param: &'static str| {
        let message =
            format!("a tenant cannot choose {what}; the hub's configuration can set it for the tenant");
        Err(ErrorInfo::new(ErrorKind::Input, "option_not_allowed", message).with_param(param))
    };
    let mut args = options.args.iter();
    while let Some(arg) = args.next() {
        let (flag, value) =
            arg.split_once('=').map_or((arg.as_str(), None), |(flag, value)| (flag, Some(value)));
        if WITH_VALUE.contains(&flag) {
            if value.is_none() {
                args.next();
            }
        } else if !SWITCHES.contains(&flag) {
            return refuse(&format!("the argument '{flag}'"), "args");
        }
    }
    let is_reserved = |name: &str| {
        RESERVED_VARIABLES.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    match options.env.keys().find(|name| is_reserved(name)) {
        Some(name) => refuse(&format!("the variable {name}"), "env"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str], env: &[&str]) -> bool {
        let mut options =
            SessionOptions { args: args.iter().map(|arg| (*arg).to_owned()).collect(), ..Default::default() };
        options.env = env.iter().map(|name| ((*name).to_owned(), Some("/".to_owned()))).collect();
        check_tenant_options(&options).is_ok()
    }

    #[test]
    fn a_tenant_chooses_models_and_limits_and_no_places() {
        for good in
            [&["--model", "m"][..], &["--max-turns=3", "--verbose"], &["--system-prompt", "--add-dir"], &[]]
        {
            assert!(check(good, &["LANG", "OPENAI_API_KEY", "MY_OWN"]), "{good:?}");
        }
        for bad in [
            &["--add-dir", "/x"][..],
            &["--add-dir=/x"],
            &["--include-directories", "/x"],
            &["--settings", "/x"],
            &["--settings-profile", "/x"],
            &["--mcp-config", "{}"],
            &["--append-system-prompt-file", "/x"],
            &["--system-prompt-file", "/x"],
            &["--debug-file", "/x"],
            &["--model", "m", "/x"],
            &["--private-dir", "/x"],
            &["--visible-dir", "/x"],
            &["--commit-fd", "3"],
            &["--plugin-dir", "/x"],
            &["--resume", "a"],
            &["--telemetry-outfile", "/x"],
            &["--output-last-message", "/x"],
            &["--", "x"],
            &["--mod", "m"],
        ] {
            assert!(!check(bad, &[]), "{bad:?}");
        }
        for bad in [
            "HOME",
            "QWEN_HOME",
            "TMPDIR",
            "LD_PRELOAD",
            "XDG_CONFIG_HOME",
            "QWEN_CODE_USER_SETTINGS_PATH",
            "PATH",
        ] {
            assert!(!check(&[], &[bad]), "{bad}");
        }
    }
}
