//! A snapshot of the environment, the working directory and the program name, so that resolving flags is a
//! pure function of it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Environment, working directory and the name that the program was started under.
pub struct Invocation {
    vars: HashMap<String, String>,
    pub cwd: PathBuf,
    /// The name that the program was started under.
    pub program: String,
}

impl Invocation {
    /// Takes the snapshot of the current process.
    pub fn current() -> std::io::Result<Self> {
        let text =
            |pair: (OsString, OsString)| Some((pair.0.into_string().ok()?, pair.1.into_string().ok()?));
        let program = std::env::args_os().next().unwrap_or_default();
        let program = Path::new(&program).file_name().map(|n| n.to_string_lossy().into_owned());
        Ok(Self {
            vars: std::env::vars_os().filter_map(text).collect(),
            cwd: std::env::current_dir()?,
            program: program.unwrap_or_default(),
        })
    }

    /// A variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn vars(&self) -> impl Iterator<Item = (&str, &str)> {
        self.vars.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Sets those variables that are not set yet.
    pub fn add(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        for (name, value) in variables {
            self.vars.entry(name).or_insert(value);
        }
    }

    /// Resolves a path as users write it: `~` is the home directory, and a relative path is relative to the
    /// working directory.
    pub fn absolute(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Some(Path::new(self.var("HOME")?).join(rest.trim_start_matches('/')))
            }
            _ => Some(self.cwd.join(path)),
        }
    }

    /// The directory for our own files: `$QWEN_HOME`, else `~/.qwen`.
    pub fn qwen_home(&self) -> Option<PathBuf> {
        self.var("QWEN_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(self.var("HOME")?).join(".qwen")))
    }

    #[cfg(test)]
    pub fn from_variables(vars: &[(&str, &str)]) -> Self {
        Self {
            vars: vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            cwd: PathBuf::from("/"),
            program: "qwen".to_owned(),
        }
    }
}
