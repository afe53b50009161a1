//! All sources of settings in ascending precedence: built-in < system defaults < user < trusted workspace <
//! system < environment < `--settings` < flags.

mod merge;
mod overlay;
mod paths;
mod profile;
mod restrict;

use std::path::{Path, PathBuf};

use qwen_events::ErrorInfo;

pub use self::merge::merge;
use self::paths::SettingsPaths;
use super::Invocation;
use super::claude::config::{ClaudeDirectories, is_claude_family};
use super::file::{self, Document, Layer, Node, Origin, Settings};
use super::model::KnownProvider;
use super::project::trust::Trust;
use crate::cli::{Configuration, Run};

/// The settings that start programs, which `--safe-mode` leaves out whatever their source is.
const RUNNING_KEYS: [&str; 2] = ["hooks", "mcpServers"];

/// The settings of a run and the origin of each.
pub struct Layered {
    /// All settings, each with its origin.
    pub root: Node,
    /// Warnings about the settings, one sentence each.
    pub warnings: Vec<String>,
    /// The files that were searched for.
    pub files: Vec<SettingsFile>,
    /// The trust in the working directory.
    pub trust: Trust,
    /// Which settings files are enabled.
    pub wanted: WantedSources,
    /// The directories of Claude's configuration, for hosts of that family.
    pub claude: ClaudeDirectories,
}

/// A file that was searched for.
#[derive(Clone)]
pub struct SettingsFile {
    /// The layer that the file belongs to.
    pub layer: Layer,
    /// The path, whether or not the file exists.
    pub path: PathBuf,
    /// The result of the search.
    pub state: &'static str,
}

impl SettingsFile {
    /// The state of a file whose folder is not trusted.
    pub const NOT_TRUSTED: &'static str = "not trusted";
}

/// Which settings files are enabled.
#[derive(Debug, Clone, Copy, Default)]
pub struct WantedSources {
    /// True if the user's settings are read.
    pub user: bool,
    /// The project's, once its folder is trusted.
    pub workspace: bool,
    /// The project's `settings.local.json`, which only Claude's configuration has.
    pub local: bool,
    /// True if `--setting-sources` named them; false if they are the default.
    pub are_named: bool,
}

impl Layered {
    /// Loads files, environment and flags.
    pub fn load(run: &Run, invocation: &mut Invocation) -> Result<Self, ErrorInfo> {
        let mut layered = Self::files(&run.configuration, invocation)?;
        let given = layered.read_settings_flag(&run.configuration, invocation)?;
        let flags = overlay::flags(run, invocation)?;
        layered.finish(given, flags, run.tool_flags.strict_mcp_config, &run.configuration, invocation)?;
        Ok(layered)
    }

    /// The same for commands that only show settings: no flags except those that name sources.
    pub fn for_display(
        configuration: &Configuration,
        invocation: &mut Invocation,
    ) -> Result<Self, ErrorInfo> {
        let mut layered = Self::files(configuration, invocation)?;
        let given = layered.read_settings_flag(configuration, invocation)?;
        layered.finish(given, Vec::new(), false, configuration, invocation)?;
        Ok(layered)
    }

    pub fn settings(&self) -> Result<Settings, ErrorInfo> {
        file::settings(&self.root)
    }

    /// The provider of the model; none if no source names one.
    pub fn provider(&self, invocation: &Invocation) -> Option<&'static KnownProvider> {
        overlay::provider(&self.root, &self.root, invocation)
    }

    /// Loads the settings files.
    fn files(configuration: &Configuration, invocation: &Invocation) -> Result<Self, ErrorInfo> {
        let root = Node::empty(Origin::new(Layer::BuiltIn, "built-in"));
        let trust = Trust::new(invocation, configuration.trust_workspace, &[]);
        let wanted = WantedSources::resolve(configuration)?;
        let claude = ClaudeDirectories::default();
        let mut layered = Self { root, warnings: Vec::new(), files: Vec::new(), trust, wanted, claude };
        if let Some(profile) = &configuration.settings_profile {
            // A profile replaces everything else.
            layered.wanted = WantedSources::default();
            for document in profile::load(profile, invocation)? {
                layered.add(document, Layer::Given);
            }
            return Ok(layered);
        }
        let paths = SettingsPaths::resolve(invocation);
        layered.file(paths.system_defaults, Layer::SystemDefaults, true)?;
        layered.claude = ClaudeDirectories::resolve(invocation, wanted);
        layered.file(paths.user, Layer::User, wanted.user)?;
        layered.claude_user()?;
        let system = paths.system.map(|path| (file::load(&path, Layer::System), path));
        // A folder must not declare itself trusted, so trust is decided before its settings are read.
        let own = layered.trusted_folders(system.as_ref().and_then(|(read, _)| read.as_ref().ok()?.as_ref()));
        layered.trust = Trust::new(invocation, configuration.trust_workspace, &own);
        layered.workspace(Some(invocation.cwd.join(".mcp.json")), wanted.workspace)?;
        layered.workspace(paths.workspace, wanted.workspace)?;
        layered.claude_project()?;
        if let Some((read, path)) = system {
            layered.add_read(read?, path, Layer::System);
        }
        Ok(layered)
    }

    fn trusted_folders(&self, system: Option<&Document>) -> Vec<String> {
        let folders = |root: &Node| file::settings(root).map(|settings| settings.security.trusted_folders);
        let mut all = folders(&self.root).unwrap_or_default();
        all.extend(system.and_then(|document| folders(&document.root).ok()).unwrap_or_default());
        all
    }

    fn file(&mut self, path: Option<PathBuf>, layer: Layer, wanted: bool) -> Result<(), ErrorInfo> {
        let Some(path) = path else { return Ok(()) };
        if !wanted {
            self.files.push(SettingsFile { layer, path, state: "left out" });
            return Ok(());
        }
        let read = file::load(&path, layer)?;
        self.add_read(read, path, layer);
        Ok(())
    }

    fn add_read(&mut self, read: Option<Document>, path: PathBuf, layer: Layer) {
        self.files.push(SettingsFile {
            layer,
            path,
            state: if read.is_some() { "read" } else { "not there" },
        });
        if let Some(document) = read {
            self.add(document, layer);
        }
    }

    /// The project's settings, if its folder is trusted.
    fn workspace(&mut self, path: Option<PathBuf>, wanted: bool) -> Result<(), ErrorInfo> {
        let layer = Layer::Workspace;
        let Some(path) = path else { return Ok(()) };
        // A sandbox creates a directory of that name so that commands cannot create the file.
        if !wanted || !exists(&path) || path.is_dir() {
            let state = if wanted { "not there" } else { "left out" };
            self.files.push(SettingsFile { layer, path, state });
            return Ok(());
        }
        if !self.trust.decision().is_trusted() {
            if !is_empty_object(&path) {
                self.warnings.push(format!(
                    "{} is ignored, because this folder is not trusted; trust it with 'qwen trust', or for one run with \
                     --trust-workspace",
                    path.display()
                ));
            }
            self.files.push(SettingsFile { layer, path, state: SettingsFile::NOT_TRUSTED });
            return Ok(());
        }
        self.file(Some(path), layer, true)
    }

    /// The user's settings for Claude's CLI.
    fn claude_user(&mut self) -> Result<(), ErrorInfo> {
        let Some(path) = self.claude.user_settings() else { return Ok(()) };
        let read = file::load(&path, Layer::User)?.map(Document::with_one_warning);
        self.add_read(read, path, Layer::User);
        Ok(())
    }

    /// The project's settings for Claude's CLI. Until the folder is trusted, only the name of the output
    /// style is used.
    fn claude_project(&mut self) -> Result<(), ErrorInfo> {
        for path in self.claude.project_settings(self.wanted) {
            if !exists(&path) || path.is_dir() {
                continue;
            }
            if self.trust.decision().is_trusted() {
                let read = file::load(&path, Layer::Workspace)?.map(Document::with_one_warning);
                self.add_read(read, path, Layer::Workspace);
                continue;
            }
            let unchecked = file::load(&path, Layer::Workspace).ok().flatten();
            if let Some(style) = unchecked.as_ref().and_then(|document| document.root.at("output.style")) {
                self.root.put("output.style", &style.origin.clone(), style.clone());
            }
            self.workspace(Some(path), true)?;
        }
        Ok(())
    }

    fn add(&mut self, mut document: Document, layer: Layer) {
        self.warnings.append(&mut document.warnings);
        if layer == Layer::Workspace {
            restrict::restrict(&mut document.root, &self.root, &mut self.warnings);
        }
        merge(&mut self.root, document.root);
    }

    /// Reads the value of `--settings`, a document or a file.
    fn read_settings_flag(
        &mut self,
        configuration: &Configuration,
        invocation: &Invocation,
    ) -> Result<Option<Node>, ErrorInfo> {
        let Some(given) = configuration.settings.as_deref().filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        let document = if given.trim_start().starts_with('{') {
            file::parse(given, Layer::Given, "--settings")?
        } else {
            let path = invocation.cwd.join(given);
            file::load(&path, Layer::Given)?
                .ok_or_else(|| file::unusable(format!("--settings: there is no file {}", path.display())))?
        };
        let document = if is_claude_family(invocation) { document.with_all_warnings() } else { document };
        let Document { root, mut warnings, .. } = document;
        self.warnings.append(&mut warnings);
        Ok(Some(root))
    }

    /// Merges the environment, `--settings` and the flags on top.
    fn finish(
        &mut self,
        given: Option<Node>,
        flags: Vec<overlay::Entry>,
        only_given_servers: bool,
        configuration: &Configuration,
        invocation: &mut Invocation,
    ) -> Result<(), ErrorInfo> {
        if configuration.safe_mode {
            for key in RUNNING_KEYS {
                self.root.remove(key);
            }
        } else if only_given_servers {
            self.root.remove("mcpServers");
        }
        let mut above = Node::empty(Origin::new(Layer::Flag, "flags"));
        if let Some(given) = given {
            merge(&mut above, given);
        }
        for (path, node) in flags {
            let mut flag = Node::empty(node.origin.clone());
            flag.put(path, &node.origin.clone(), node);
            merge(&mut above, flag);
        }
        if configuration.safe_mode {
            for key in RUNNING_KEYS {
                above.remove(key);
            }
        }
        // Variables from the settings act like those of the environment, which takes precedence.
        for root in [&above, &self.root] {
            if root.at("env").is_some() {
                invocation.add(file::settings(root)?.env);
            }
        }
        overlay::discard_other_provider(&mut self.root, &above);
        for (path, node) in overlay::environment(&self.root, &above, invocation) {
            let mut variable = Node::empty(node.origin.clone());
            variable.put(path, &node.origin.clone(), node);
            merge(&mut self.root, variable);
        }
        merge(&mut self.root, above);
        Ok(())
    }
}

impl WantedSources {
    fn resolve(configuration: &Configuration) -> Result<Self, ErrorInfo> {
        let safe = configuration.safe_mode;
        if configuration.restricted {
            return Ok(Self { are_named: true, ..Self::default() });
        }
        let Some(words) = &configuration.setting_sources else {
            return Ok(Self { user: true, workspace: !safe, local: !safe, are_named: false });
        };
        let mut wanted = Self { are_named: true, ..Self::default() };
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "user" => wanted.user = true,
                "project" | "workspace" => wanted.workspace = !safe,
                "local" => wanted.local = !safe,
                other => {
                    return Err(super::bad_flag(format!(
                        "--setting-sources '{other}': the sources are user, project and local"
                    )));
                }
            }
        }
        Ok(wanted)
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// True for a file with an empty object, such as the workspace layer of a settings profile that has none.
fn is_empty_object(path: &Path) -> bool {
    let is_short = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < 64);
    is_short
        && std::fs::read_to_string(path).is_ok_and(|text| text.split_whitespace().collect::<String>() == "{}")
}
