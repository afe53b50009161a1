//! What the working directory's own configuration would enable if the folder were trusted.

use std::path::Path;

use crate::cli::Run;
use crate::settings::{
    Config, FolderContent, Invocation, SettingsFile, TreeContent, Trust, TrustDecision, UserDirectories,
};

/// The most lines of each kind; the files themselves have the rest.
const MAX_LINES: usize = 20;

/// The configuration of a folder that is not trusted.
#[derive(Default)]
pub struct UntrustedContent {
    /// For the user; empty if the folder has no configuration or is trusted.
    pub lines: Vec<String>,
    /// The content that the lines describe. The user's answer applies to it, not to later changes.
    pub content: TreeContent,
}

/// Reads the configuration of the folder.
pub fn find_untrusted(run: &Run, config: &Config, invocation: &Invocation) -> UntrustedContent {
    let none = UntrustedContent::default();
    let is_ignored = |file: &SettingsFile| file.state == SettingsFile::NOT_TRUSTED;
    let home = invocation.qwen_home().map(|home| invocation.cwd.join(home));
    let own = invocation.cwd.join(".qwen");
    let has_definitions = || ["agents", "skills", "commands"].iter().any(|name| has_entries(&own.join(name)));
    let has_configuration = config.extensions.settings_files.iter().any(is_ignored)
        || (Some(&own) != home.as_ref() && has_definitions());
    // Most folders have nothing to trust, so the decision is left for last.
    if !has_configuration {
        return none;
    }
    let folders = &config.settings.security.trusted_folders;
    let trust = Trust::new(invocation, run.configuration.trust_workspace, folders);
    let mut lines = Vec::new();
    match trust.decision() {
        TrustDecision::ByFlag | TrustDecision::BySettings | TrustDecision::ByList => return none,
        TrustDecision::Changed => {
            lines.push("Changed since you trusted this folder:".to_owned());
            lines.extend(shorten(trust.changes()));
            lines.push("All of it:".to_owned());
        }
        TrustDecision::No => {}
    }
    let Ok(folder) = invocation.cwd.canonicalize() else { return none };
    let content = FolderContent::collect(&folder, &UserDirectories::resolve(invocation));
    lines.extend(shorten(&content.lines()));
    UntrustedContent { lines, content: TreeContent::from([(String::new(), content)]) }
}

fn has_entries(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// The first lines of each kind, so that many of one kind do not push out the others.
fn shorten(lines: &[String]) -> Vec<String> {
    let kind = |line: &str| {
        let kinds = ["permissions.allow", "hooks", "mcpServers"];
        kinds.into_iter().find(|kind| line.contains(&format!(": {kind}"))).unwrap_or("other")
    };
    let mut shown: Vec<String> = Vec::new();
    for group in lines.chunk_by(|one, other| kind(one) == kind(other)) {
        shown.extend(group.iter().take(MAX_LINES).cloned());
        if group.len() > MAX_LINES {
            shown.push(format!("({} more {} lines)", group.len() - MAX_LINES, kind(&group[0])));
        }
    }
    shown
}
