//! Finds the worker program.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::AgentError;

/// The worker program: the option, then `QWEN_BIN`, then `qwen` beside the running program, then `qwen` on
/// PATH. An option or a variable that names no program is an error, so that another version never runs by
/// accident.
pub(super) fn find_binary(option: Option<&Path>) -> Result<PathBuf, AgentError> {
    let exe = std::env::current_exe().ok();
    find(
        option,
        std::env::var_os("QWEN_BIN"),
        exe.as_deref().and_then(Path::parent),
        std::env::var_os("PATH").as_deref(),
    )
}

fn find(
    option: Option<&Path>,
    variable: Option<OsString>,
    bundle: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<PathBuf, AgentError> {
    let mut looked = Vec::new();
    let mut program = |place: &str, candidate: PathBuf| {
        let found = is_program(&candidate).then(|| candidate.clone());
        looked.push(format!("{place}: {}", candidate.display()));
        found
    };
    if let Some(option) = option {
        if let Some(found) = program("binary_path", option.to_owned()) {
            return Ok(found);
        }
    } else if let Some(variable) = variable.filter(|value| !value.is_empty()) {
        if let Some(found) = program("QWEN_BIN", variable.into()) {
            return Ok(found);
        }
    } else {
        if let Some(found) = bundle.and_then(|bundle| program("bundled", bundle.join("qwen"))) {
            return Ok(found);
        }
        let directories = path.into_iter().flat_map(std::env::split_paths);
        if let Some(found) = directories.map(|directory| directory.join("qwen")).find(|file| is_program(file))
        {
            return Ok(found);
        }
        looked.push("PATH".to_owned());
    }
    Err(AgentError::NoBinary { looked: looked.join(", ") })
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
