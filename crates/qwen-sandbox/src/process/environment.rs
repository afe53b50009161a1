//! The environment of commands: ours without withheld variables.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use qwen_events::TraceContext;

/// Variables that no command inherits: the API keys of the model.
pub const WITHHELD: &[&str] = &["OPENAI_API_KEY", "DASHSCOPE_API_KEY", "ANTHROPIC_API_KEY"];

/// The environment of a command, stored in the kernel's format.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    entries: Vec<CString>,
    /// The path of bash, cached after the first lookup.
    bash: OnceLock<Option<PathBuf>>,
}

impl Environment {
    pub fn empty() -> Self {
        Self::default()
    }

    /// Our own environment without [`WITHHELD`].
    pub fn inherited() -> Self {
        Self::from_variables(std::env::vars_os())
    }

    /// These variables without [`WITHHELD`].
    pub fn from_variables(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let entries = variables
            .into_iter()
            .filter(|(name, _)| !WITHHELD.iter().any(|withheld| name == withheld))
            .filter_map(|(name, value)| entry(&name, &value))
            .collect();
        Self { entries, bash: OnceLock::new() }
    }

    /// Sets a variable. An invalid name or value (a NUL, an `=` in the name) is ignored.
    pub fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.remove(name.as_ref());
        self.entries.extend(entry(name.as_ref(), value.as_ref()));
    }

    /// Sets the program's trace context and removes our own.
    pub fn set_trace(&mut self, trace: &TraceContext) {
        self.set("TRACEPARENT", &*trace.traceparent);
        match &trace.tracestate {
            Some(state) => self.set("TRACESTATE", &**state),
            None => self.remove("TRACESTATE"),
        }
    }

    pub fn remove(&mut self, name: impl AsRef<OsStr>) {
        self.bash.take();
        let name = name.as_ref().as_bytes();
        self.entries.retain(|entry| value_in(entry, name).is_none());
    }

    /// Removes every variable whose name `unwanted` accepts.
    pub fn remove_where(&mut self, unwanted: impl Fn(&[u8]) -> bool) {
        self.bash.take();
        self.entries.retain(|entry| {
            let entry = entry.as_bytes();
            !unwanted(&entry[..entry.iter().position(|&b| b == b'=').unwrap_or(entry.len())])
        });
    }

    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.entries.iter().find_map(|entry| value_in(entry, name.as_ref().as_bytes())).map(OsStr::from_bytes)
    }

    /// Resolves `program`: unchanged if it contains a slash, otherwise the first match in `PATH`.
    pub fn find_program(&self, program: &OsStr) -> Option<PathBuf> {
        if program.as_bytes().contains(&b'/') {
            return Some(program.into());
        }
        let path = self.get("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        // An empty entry would mean the working directory, where a repository could shadow any program.
        std::env::split_paths(path)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join(program))
            .find(|file| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file())
    }

    /// The program bash, looked up once, because every shell command line needs it.
    pub fn bash(&self) -> Option<&Path> {
        self.bash.get_or_init(|| self.find_program("bash".as_ref())).as_deref()
    }

    /// The names of all variables that are text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| entry.to_str().ok()?.split('=').next())
    }

    /// The entries, `NAME=value` each.
    pub(super) fn entries(&self) -> &[CString] {
        &self.entries
    }
}

fn entry(name: &OsStr, value: &OsStr) -> Option<CString> {
    if name.is_empty() || name.as_bytes().contains(&b'=') {
        return None;
    }
    let mut text = OsString::with_capacity(name.len() + 1 + value.len());
    text.push(name);
    text.push("=");
    text.push(value);
    CString::new(text.into_vec()).ok()
}

fn value_in<'a>(entry: &'a CString, name: &[u8]) -> Option<&'a [u8]> {
    entry.as_bytes().strip_prefix(name)?.strip_prefix(b"=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_once_and_gone_when_removed() {
        let mut env = Environment::empty();
        env.set("A", "1");
        env.set("AB", "2");
        env.set("A", "3");
        assert_eq!(env.get("A"), Some(OsStr::new("3")));
        assert_eq!(env.entries().len(), 2);
        env.remove("A");
        assert_eq!(env.get("A"), None);
        assert_eq!(env.get("AB"), Some(OsStr::new("2")));
        env.remove_where(|name| name.starts_with(b"A"));
        assert!(env.entries().is_empty());
    }

    #[test]
    fn the_keys_of_the_model_are_withheld() {
        let all = ["PATH", "OPENAI_API_KEY", "DASHSCOPE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_MODEL"];
        let env = Environment::from_variables(all.map(|name| (name.into(), "x".into())));
        assert_eq!(env.entries(), [c"PATH=x".to_owned(), c"OPENAI_MODEL=x".to_owned()]);
    }

    #[test]
    fn invalid_environment_variables_are_left_out() {
        let mut env = Environment::empty();
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
            env.set(name, value);
        }
        assert!(env.entries().is_empty());
    }

    #[test]
    fn programs_are_never_found_in_the_working_directory() {
        let mut env = Environment::empty();
        env.set("PATH", ":.:bin");
        assert_eq!(env.find_program(OsStr::new("sh")), None);
        assert_eq!(env.find_program(OsStr::new("./sh")), Some(PathBuf::from("./sh")));
    }
}
