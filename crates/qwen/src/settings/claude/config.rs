//! The configuration of Claude's CLI (`~/.claude`, `.claude/`), which applies to hosts of that family.
//!
//! A project's configuration needs folder trust, like our own project settings. Two things are only text for
//! the model and need no trust: the name of the output style, and agents and skills if the host itself named
//! the project as a source with `--setting-sources`. Neither grants anything
//! (docs/decisions/0007-claude-configuration.md).

use std::path::{Path, PathBuf};

use qwen_engine::memory;

use crate::settings::Invocation;
use crate::settings::Settings;
use crate::settings::layers::{Layered, WantedSources};

/// The maximum size of an output style, in bytes.
const MAX_STYLE: u64 = 64 * 1024;

/// True if the host is Claude's CLI or one of its SDKs.
pub fn is_claude_family(invocation: &Invocation) -> bool {
    invocation.var("CLAUDE_CODE_ENTRYPOINT").is_some() || invocation.program == "claude"
}

/// The directories of Claude's configuration that a run reads; empty for other hosts.
#[derive(Debug, Clone, Default)]
pub struct ClaudeDirectories {
    /// The user's directory: `$CLAUDE_CONFIG_DIR`, or `~/.claude`.
    pub user: Option<PathBuf>,
    /// `.claude` of the working directory.
    pub project: Option<PathBuf>,
    /// True if the host named the project as a source itself.
    pub project_requested: bool,
}

impl ClaudeDirectories {
    /// The directories for this run, limited to the enabled sources.
    pub fn resolve(invocation: &Invocation, sources: WantedSources) -> Self {
        if !is_claude_family(invocation) {
            return Self::default();
        }
        let user = invocation
            .var("CLAUDE_CONFIG_DIR")
            .map(|path| invocation.cwd.join(path))
            .or_else(|| Some(Path::new(invocation.var("HOME")?).join(".claude")))
            .filter(|_| sources.user);
        let project = Some(invocation.cwd.join(".claude"))
            .filter(|path| (sources.workspace || sources.local) && Some(path) != user.as_ref());
        Self { user, project, project_requested: sources.are_named && sources.workspace }
    }

    pub fn user_settings(&self) -> Option<PathBuf> {
        self.user.as_ref().map(|directory| directory.join("settings.json"))
    }

    /// The project's settings files, in ascending precedence.
    pub fn project_settings(&self, sources: WantedSources) -> Vec<PathBuf> {
        let Some(project) = &self.project else { return Vec::new() };
        let named = [("settings.json", sources.workspace), ("settings.local.json", sources.local)];
        named.into_iter().filter(|(_, wanted)| *wanted).map(|(name, _)| project.join(name)).collect()
    }
}

/// Which memory files are added to the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySources {
    /// The directory of the user's memory files.
    pub home: Option<PathBuf>,
    /// Their file names; empty means the default names.
    pub names: Vec<String>,
    /// The file name that is used in a directory without any of `names`.
    pub fallback: Option<&'static str>,
    /// False if the project's memory files are not read.
    pub project: bool,
}

impl MemorySources {
    /// The files of this run: for Claude's hosts those of Claude's CLI, by their setting sources; ours
    /// otherwise.
    pub fn resolve(settings: &Settings, invocation: &Invocation, layered: &Layered) -> Self {
        let names = settings.context.file_name.clone();
        if !is_claude_family(invocation) || !names.is_empty() {
            let fallback = names.is_empty().then_some(memory::FALLBACK);
            return Self { home: invocation.qwen_home(), names, fallback, project: true };
        }
        let names = ["CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"].map(str::to_owned).into();
        let home = layered.claude.user.clone();
        Self { home, names, fallback: Some("AGENTS.md"), project: layered.wanted.workspace }
    }
}

/// A named set of instructions on how to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputStyle {
    pub name: String,
    /// Text appended to the system prompt; none for the default style and for an undefined one.
    pub instructions: Option<String>,
}

impl Default for OutputStyle {
    fn default() -> Self {
        Self { name: "default".to_owned(), instructions: None }
    }
}

/// Styles that need no file.
const BUILT_IN_STYLES: [(&str, &str); 2] = [
    (
        "Explanatory",
        "While you work, explain in two or three sentences why you chose a solution and how the surrounding code works.",
    ),
    (
        "Learning",
        "Help the user to learn: explain what you do, and leave small, well-chosen pieces of the work to them, marked with \
         TODO(human).",
    ),
];

impl OutputStyle {
    /// Finds a style by name: built in, or `NAME.md` in a directory `output-styles` of the user or the
    /// trusted project.
    pub fn find(
        name: Option<&str>,
        directories: &ClaudeDirectories,
        project_is_trusted: bool,
        warnings: &mut Vec<String>,
    ) -> Self {
        let Some(name) = name.filter(|name| *name != "default") else { return Self::default() };
        let project = directories.project.as_ref().filter(|_| project_is_trusted);
        let files = project.into_iter().chain(&directories.user).filter(|_| is_file_name(name));
        let in_file = files
            .map(|place| place.join("output-styles").join(format!("{name}.md")))
            .find_map(|file| read(&file));
        let built_in =
            || BUILT_IN_STYLES.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        let instructions = in_file.or_else(built_in);
        if instructions.is_none() {
            warnings.push(format!("the output style '{name}' is not defined; answers use the default style"));
        }
        Self { name: name.to_owned(), instructions }
    }

    /// The names of the styles that are offered to a host.
    pub fn available() -> impl Iterator<Item = &'static str> {
        std::iter::once("default").chain(BUILT_IN_STYLES.iter().map(|(name, _)| *name))
    }
}

/// True if the name cannot point outside its directory.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != ".."
}

/// The text of a style file after its front matter. Only a regular file within the size limit is read.
fn read(path: &Path) -> Option<String> {
    let metadata = path.symlink_metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_STYLE {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let body = match text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---")) {
        Some((_, body)) => body.trim_start_matches('-'),
        None => &text,
    };
    Some(body.trim().to_owned()).filter(|body| !body.is_empty())
}
