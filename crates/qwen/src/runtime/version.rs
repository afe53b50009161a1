//! `--version`: identifies this build.

use serde_json::json;

/// The commit and its date. `build.rs` sets them in release builds.
const COMMIT: Option<&str> = option_env!("QWEN_BUILD_COMMIT");
const DATE: Option<&str> = option_env!("QWEN_BUILD_DATE");

/// The text to print if the command line requests the version.
pub fn requested() -> Option<String> {
    let arguments: Vec<_> = std::env::args_os().skip(1).take(3).collect();
    let is_version =
        |argument: &std::ffi::OsString| ["--version", "-V", "-v"].iter().any(|flag| argument == flag);
    match &arguments[..] {
        [only] if is_version(only) => Some(text()),
        [one, other] if is_version(one) && other == "--json" || one == "--json" && is_version(other) => {
            Some(json_document())
        }
        _ => None,
    }
}

fn text() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let set = |value: Option<&'static str>| value.filter(|value| !value.is_empty());
    match (set(COMMIT), set(DATE)) {
        (Some(commit), Some(date)) => format!("qwen {version} ({commit} {date})\n"),
        (Some(commit), None) => format!("qwen {version} ({commit})\n"),
        (None, _) => format!("qwen {version}\n"),
    }
}

fn json_document() -> String {
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": COMMIT,
        "date": DATE,
        "protocol_version": qwen_dialects::qwen::PROTOCOL_VERSION,
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
    });
    format!("{document:#}\n")
}
