//! The environment of a session, as the model is told about it in the first request.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use qwen_dialects::loom::rfc3339;
use qwen_engine::memory::Memory;
use qwen_engine::{Audience, Permissions, SituationFact, Surroundings};
use qwen_sandbox::SandboxMode;
use qwen_sandbox::process::Environment;

use super::git_state::GitState;
use crate::runtime::clock;
use crate::settings::Config;

/// The maximum number of directory entries that are looked at.
const MAX_ENTRIES: usize = 1000;
/// The maximum length of the listing, in bytes.
const MAX_LISTING: usize = 400;
/// The maximum number of commands that are looked up, and that are reported as missing.
const MAX_COMMANDS: usize = 60;
const MAX_MISSING: usize = 10;

/// What the surroundings of a session are read from.
pub struct WorkEnvironment {
    pub config: Arc<Config>,
    pub permissions: Arc<Permissions>,
    pub memory: Arc<Memory>,
    pub env: Arc<Environment>,
    pub audience: Audience,
}

impl Surroundings for WorkEnvironment {
    fn limits(&self) -> Vec<SituationFact> {
        vec![
            SituationFact::new("sandbox", &self.describe_sandbox()),
            SituationFact::new("trust", describe_trust(self.config.workspace.is_trusted)),
        ]
    }

    fn survey(&self, cwd: &Path) -> Vec<SituationFact> {
        let mut facts = vec![SituationFact::new("working directory", &cwd.display().to_string())];
        let shell = self.env.get("SHELL").and_then(OsStr::to_str);
        let shell = shell.map(|shell| format!(", the user's shell is {shell}"));
        let platform =
            format!("{} {}{}", std::env::consts::OS, std::env::consts::ARCH, shell.unwrap_or_default());
        facts.push(SituationFact::new("platform", &platform));
        let now = rfc3339(clock::now());
        facts.push(SituationFact::new("date", now.split('T').next().unwrap_or_default()));
        let git = GitState::read(cwd).map(|state| state.describe());
        facts.push(SituationFact::new("git", git.as_deref().unwrap_or("not a repository")));
        facts.push(SituationFact::new("files", &list_directory(cwd)).unreported());
        let missing = missing_commands(&self.memory.text, self.env.get("PATH"));
        if !missing.is_empty() {
            facts.push(SituationFact::new(
                "named by the instructions, but not installed",
                &missing.join(", "),
            ));
        }
        facts
    }
}

impl WorkEnvironment {
    /// What the sandbox of commands allows, and who can change that.
    fn describe_sandbox(&self) -> String {
        let config = &*self.config;
        if config.sandbox.mode == SandboxMode::Off {
            return "off: commands can do what the user can".to_owned();
        }
        let added: String = config
            .workspace
            .extra_roots
            .iter()
            .chain(&self.permissions.added_directories())
            .map(|root| format!(", {}", root.display()))
            .collect();
        let network = match (config.sandbox.network, self.permissions.opens_network()) {
            (true, _) => "the network is on",
            (false, true) => {
                "of the network, commands reach only hosts that Network rules open, through the proxy that HTTPS_PROXY names"
            }
            (false, false) => "the network is off",
        };
        let remedy = match self.audience {
            Audience::Shell | Audience::Terminal => {
                "the user can change it with --include-directories DIR or --sandbox-network"
            }
            Audience::Program => {
                "the host can change it with its options for added directories and the sandbox's network"
            }
        };
        if self.permissions.mode() == "plan" {
            return "commands can write only in $TMPDIR, this session's private temporary directory; the network is off"
                .to_owned();
        }
        format!(
            "commands can write only in the working directory{added} and $TMPDIR, this session's private temporary \
             directory; git's hooks and settings, .qwen and .mcp.json are read-only; {network}. If that makes a command \
             fail, report it instead of trying again: {remedy}"
        )
    }
}

fn describe_trust(is_trusted: bool) -> &'static str {
    if is_trusted {
        "the folder is trusted: its settings, hooks, servers and agents apply"
    } else {
        "the folder is not trusted: its settings, hooks, servers and agents do not apply"
    }
}

/// The visible entries of a directory, sorted and bounded; directories end in `/`.
fn list_directory(directory: &Path) -> String {
    let Ok(entries) = directory.read_dir() else { return "cannot be listed".to_owned() };
    let mut names: Vec<String> = entries
        .take(MAX_ENTRIES)
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))?;
            let end = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
            Some(format!("{name}{end}"))
        })
        .collect();
    names.sort_unstable();
    let mut listing = String::new();
    for (at, name) in names.iter().enumerate() {
        if listing.len() + name.len() > MAX_LISTING {
            return format!("{listing} and {} more", names.len() - at);
        }
        if at > 0 {
            listing.push(' ');
        }
        listing.push_str(name);
    }
    if listing.is_empty() { "none".to_owned() } else { listing }
}

/// The commands that instructions name in code and that are not in `path`.
fn missing_commands(instructions: &str, path: Option<&OsStr>) -> Vec<String> {
    let Some(path) = path.filter(|_| !instructions.is_empty()) else { return Vec::new() };
    let directories: Vec<_> = std::env::split_paths(path).collect();
    let is_installed = |name: &&str| {
        directories.iter().any(|directory| {
            let found = directory.join(name).metadata();
            found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
    };
    let named = named_commands(instructions);
    let missing = named.into_iter().filter(|name| !is_installed(name));
    missing.take(MAX_MISSING).map(str::to_owned).collect()
}

/// The first words of the command lines in code: lines of shell blocks, and spans with arguments.
fn named_commands(text: &str) -> BTreeSet<&str> {
    let mut named = BTreeSet::new();
    let mut block: Option<bool> = None;
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = match block {
                Some(_) => None,
                None => Some(matches!(language.trim(), "sh" | "bash" | "shell" | "console" | "zsh")),
            };
            continue;
        }
        match block {
            Some(true) => named.extend(command_of(line)),
            Some(false) => {}
            None => {
                let spans = line.split('`').skip(1).step_by(2).filter(|span| span.contains(' '));
                named.extend(spans.filter_map(command_of));
            }
        }
        if named.len() >= MAX_COMMANDS {
            break;
        }
    }
    named
}

/// Words that bash runs itself.
const SHELL_WORDS: &[&str] = &[
    "alias", "bg", "cd", "command", "do", "done", "echo", "else", "eval", "exec", "exit", "export", "fi",
    "for", "function", "if", "local", "printf", "pwd", "read", "return", "set", "shift", "source", "test",
    "then", "time", "trap", "type", "ulimit", "umask", "unset", "wait", "while",
];

/// Keywords with which code of other languages begins.
const CODE_WORDS: &[&str] = &[
    "async", "class", "const", "def", "enum", "fn", "from", "func", "import", "impl", "let", "mod", "pub",
    "static", "struct", "type", "use", "var",
];

/// The program of a command line; none if the line does not look like one.
fn command_of(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches("$ ");
    let mut words = line.split_whitespace().skip_while(|word| {
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        *word == "sudo" || word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && is_name(name))
    });
    let word = words.next()?;
    let is_program = word.len() >= 2
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '+'));
    // A span such as `let x = 1` or `fn main()` is code of another language.
    let is_code = CODE_WORDS.contains(&word)
        || words.any(|next| matches!(next, "=" | ":" | "==" | ":=") || next.contains("()"));
    (is_program && !is_code && !SHELL_WORDS.contains(&word)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_shell_blocks_and_in_spans_with_arguments() {
        let text = "Run `cargo test` and `make`, not `fn main()`.\n```bash\n$ npm ci\nFOO=1 pnpm build # x\ncd src\n./run.sh\n```\n\
                    ```rust\nuse std::io;\n```\nSet `let x = 1`. Then `sudo apt-get update`.";
        let named: Vec<&str> = named_commands(text).into_iter().collect();
        assert_eq!(named, ["apt-get", "cargo", "npm", "pnpm"]);
    }

    #[test]
    fn only_commands_that_are_not_installed_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let tool = folder.path().join("here");
        std::fs::write(&tool, "").unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        let missing = missing_commands("`here now`, `absent tool`", Some(folder.path().as_os_str()));
        assert_eq!(missing, ["absent"]);
    }

    #[test]
    fn a_listing_is_sorted_bounded_and_marks_directories() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        for name in ["b.txt", ".hidden", "a.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(list_directory(folder.path()), "a.txt b.txt src/");
        for n in 0..300 {
            std::fs::write(folder.path().join(format!("file-{n:03}")), "").unwrap();
        }
        let listing = list_directory(folder.path());
        assert!(listing.len() < MAX_LISTING + 20 && listing.ends_with("more"), "{listing}");
    }
}
