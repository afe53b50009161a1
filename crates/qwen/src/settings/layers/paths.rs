//! The paths of settings files.

use std::path::PathBuf;

use super::super::Invocation;

/// The files of a run in ascending precedence. None means that there is no path to search.
pub(super) struct SettingsPaths {
    pub system_defaults: Option<PathBuf>,
    pub user: Option<PathBuf>,
    pub workspace: Option<PathBuf>,
    pub system: Option<PathBuf>,
}

#[cfg(target_os = "macos")]
const SYSTEM: &str = "/Library/Application Support/QwenCode";
#[cfg(not(target_os = "macos"))]
const SYSTEM: &str = "/etc/qwen-code";

impl SettingsPaths {
    pub fn resolve(invocation: &Invocation) -> Self {
        let given = |name: &str| invocation.var(name).map(|path| invocation.cwd.join(path));
        let system = |file: &str| Some(PathBuf::from(SYSTEM).join(file));
        let user = || Some(invocation.cwd.join(invocation.qwen_home()?).join("settings.json"));
        let user = given("QWEN_CODE_USER_SETTINGS_PATH").or_else(user);
        let workspace = given("QWEN_CODE_WORKSPACE_SETTINGS_PATH")
            .or_else(|| Some(invocation.cwd.join(".qwen").join("settings.json")))
            // In the home directory both paths are the same file, which belongs to the user.
            .filter(|path| Some(path) != user.as_ref());
        Self {
            system_defaults: given("QWEN_CODE_SYSTEM_DEFAULTS_PATH")
                .or_else(|| system("system-defaults.json")),
            user,
            workspace,
            system: given("QWEN_CODE_SYSTEM_SETTINGS_PATH").or_else(|| system("settings.json")),
        }
    }
}
