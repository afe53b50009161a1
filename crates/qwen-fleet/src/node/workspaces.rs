//! Where the files of a session are: what nodes announce, and what `open` asks for.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use qwen_events::{ErrorInfo, ErrorKind};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::subjects::is_bus_name;

/// The maximum length of the address of a repository.
const MAX_URL: usize = 512;

/// A directory that a node announces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedWorkspace {
    pub id: String,
    /// Its path on that node.
    pub path: PathBuf,
    /// Who has its files: `local` or `shared`.
    pub kind: String,
}

/// Options of git that allow no address of this machine and no credentials of its user, also after a redirection.
const PUBLIC_ONLY: [&str; 6] =
    ["-c", "protocol.allow=never", "-c", "protocol.https.allow=always", "-c", "credential.helper="];

/// What `open` asks of the node of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Wanted {
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub workspace: Option<WantedWorkspace>,
}

/// The workspace that `open` names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WantedWorkspace {
    pub kind: String,
    pub id: Option<String>,
    pub url: Option<String>,
    pub commit: Option<String>,
}

impl Wanted {
    /// Reads and checks the keys of an `open` request.
    pub fn read(body: &str) -> Result<Self, ErrorInfo> {
        let refuse = |message: String| {
            let error = ErrorInfo::new(ErrorKind::Input, "invalid_workspace", message);
            error.with_param("workspace")
        };
        let wanted: Self = serde_json::from_str(body).map_err(|error| {
            refuse(format!(
                "`workspace` is {{kind, id | url, commit}} and `labels` maps texts to texts: {error}"
            ))
        })?;
        if let Some(workspace) = &wanted.workspace {
            workspace.check().map_err(refuse)?;
        }
        Ok(wanted)
    }

    /// Describes the request in an error.
    pub fn describe(&self) -> String {
        let labels = self.labels.iter().map(|(key, value)| format!("the label {key}={value}"));
        let workspace = self.workspace.iter().filter_map(|workspace| {
            Some(format!("the {} workspace '{}'", workspace.kind, workspace.id.as_ref()?))
        });
        labels.chain(workspace).collect::<Vec<_>>().join(", ")
    }
}

impl WantedWorkspace {
    fn check(&self) -> Result<(), String> {
        match (self.kind.as_str(), &self.id, &self.url) {
            ("none", None, None) | ("local", None, None) => Ok(()),
            ("local" | "shared", Some(id), None) if is_bus_name(id) => Ok(()),
            ("git", None, Some(url)) => {
                let is_url = !url.starts_with('-')
                    && !url.contains("::")
                    && url.len() <= MAX_URL
                    && !url.contains(|letter: char| letter.is_whitespace() || letter.is_control() || letter == '#');
                let is_commit = |commit: &String| {
                    !commit.is_empty()
                        && commit.len() <= 256
                        && !commit.starts_with('-')
                        && commit.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte))
                };
                match (is_url, self.commit.as_ref().is_none_or(is_commit)) {
                    (true, true) => Ok(()),
                    (false, _) => Err("`url` is not the address of a repository".to_owned()),
                    (_, false) => Err("`commit` is not the name of a commit".to_owned()),
                }
            }
            ("local" | "shared", ..) => Err("a shared workspace needs an `id` of letters, digits, '_' and '-', and a local one may have it".to_owned()),
            ("git", ..) => Err("a git workspace needs `url`, and may have `commit`".to_owned()),
            ("none", ..) => Err("the workspace 'none' has neither `id` nor `url`".to_owned()),
            (kind, ..) => {
                let shown: String = kind.chars().take(40).collect();
                Err(format!("`kind` is '{shown}'; the kinds are local, shared, git and none"))
            }
        }
    }

    /// Returns the place as the log of the session records it; none if that is the node itself.
    pub fn place(&self) -> Option<String> {
        match (self.kind.as_str(), &self.id, &self.url) {
            ("shared", Some(id), _) => Some(format!("shared:{id}")),
            ("git", _, Some(url)) => {
                Some(format!("git:{url}#{}", self.commit.as_deref().unwrap_or_default()))
            }
            ("none", ..) => Some("none:".to_owned()),
            _ => None,
        }
    }

    /// Reads what [`Self::place`] has written.
    pub fn of_place(place: &str) -> Option<Self> {
        let (kind, rest) = place.split_once(':')?;
        let empty = Self { kind: kind.to_owned(), id: None, url: None, commit: None };
        match kind {
            "shared" => Some(Self { id: Some(rest.to_owned()), ..empty }),
            "none" => Some(empty),
            "git" => {
                let (url, commit) = rest.split_once('#')?;
                let commit = (!commit.is_empty()).then(|| commit.to_owned());
                Some(Self { url: Some(url.to_owned()), commit, ..empty })
            }
            _ => None,
        }
    }

    /// Returns true if a node with these announced directories has this one.
    pub fn is_announced(&self, announced: &[AnnouncedWorkspace]) -> bool {
        self.find(announced).is_some()
    }

    fn find<'a>(&self, announced: &'a [AnnouncedWorkspace]) -> Option<&'a AnnouncedWorkspace> {
        let id = self.id.as_deref()?;
        announced.iter().find(|one| one.kind == self.kind && one.id == id)
    }

    /// Prepares the directory of a session below `parent`. None if the session needs no particular one. With
    /// `is_public`, only public repositories are cloned: nothing that this machine's user has access to.
    pub async fn prepare(
        &self,
        announced: &[AnnouncedWorkspace],
        parent: &Path,
        name: &str,
        is_public: bool,
    ) -> io::Result<Option<PathBuf>> {
        let own = parent.join(name);
        match (self.kind.as_str(), &self.url) {
            ("none", _) => {
                tokio::fs::create_dir_all(&own).await?;
                Ok(Some(own))
            }
            ("git", Some(url)) if !own.exists() => {
                tokio::fs::create_dir_all(parent).await?;
                self.clone_repository(url, &own, is_public).await?;
                Ok(Some(own))
            }
            ("git", _) => Ok(Some(own)),
            _ => Ok(self.find(announced).map(|found| found.path.clone())),
        }
    }

    async fn clone_repository(&self, url: &str, directory: &Path, is_public: bool) -> io::Result<()> {
        if is_public && !url.starts_with("https://") {
            return Err(io::Error::other("a tenant's repository must have an https:// address"));
        }
        let next = directory.with_extension(format!("{:08x}", fastrand::u32(..)));
        let restriction: &[&str] = if is_public { &PUBLIC_ONLY } else { &[] };
        let arguments = [restriction, &["clone", "--quiet", "--no-checkout", "--", url]].concat();
        let cloned = run_git(&arguments, &next, None).await;
        let commit = self.commit.as_deref().unwrap_or("HEAD");
        let done = match cloned {
            Ok(()) => run_git(&["checkout", "--quiet", "--detach", commit, "--"], &next, Some(&next)).await,
            failed => failed,
        };
        let done = match done {
            Ok(()) => tokio::fs::rename(&next, directory).await,
            failed => failed,
        };
        if done.is_err() {
            // What is left of a clone that failed is of no use.
            let _ = tokio::fs::remove_dir_all(&next).await;
        }
        done
    }
}

/// Runs git without questions, hooks and helpers that a repository names. `target` is the last argument of a clone.
async fn run_git(args: &[&str], target: &Path, within: Option<&Path>) -> io::Result<()> {
    let mut command = Command::new("git");
    command.args(["-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null"]).args(args);
    match within {
        Some(directory) => command.current_dir(directory),
        None => command.arg(target),
    };
    command.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let ended = command.output().await?;
    if ended.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&ended.stderr);
    let why = why.lines().last().unwrap_or("it gave no reason").trim();
    Err(io::Error::other(format!("git failed: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for body in [
            r#"{"workspace":{"kind":"shared","id":"repo"}}"#,
            r#"{"workspace":{"kind":"git","url":"https://example.com/a.git","commit":"main"}}"#,
            r#"{"workspace":{"kind":"git","url":"/srv/a.git"}}"#,
            r#"{"workspace":{"kind":"none"}}"#,
        ] {
            let wanted = Wanted::read(body).unwrap().workspace.unwrap();
            assert_eq!(WantedWorkspace::of_place(&wanted.place().unwrap()), Some(wanted), "{body}");
        }
        assert_eq!(Wanted::read("{}").unwrap(), Wanted::default());
        assert_eq!(WantedWorkspace::of_place("local:a"), None);
    }

    #[test]
    fn workspaces_that_cannot_be_meant_are_refused() {
        for workspace in [
            r#"{"kind":"cloud"}"#,
            r#"{"kind":"shared"}"#,
            r#"{"kind":"shared","id":"a.b"}"#,
            r#"{"kind":"git"}"#,
            r#"{"kind":"git","url":"ext::sh -c x"}"#,
            r#"{"kind":"git","url":"--upload-pack=x"}"#,
            r#"{"kind":"git","url":"https://a/b","commit":"--x"}"#,
            r#"{"kind":"none","id":"a"}"#,
            r#"{"id":"a"}"#,
            "3",
        ] {
            let error = Wanted::read(&format!("{{\"workspace\":{workspace}}}")).unwrap_err();
            assert_eq!(error.code, "invalid_workspace", "{workspace}");
        }
        assert!(Wanted::read(r#"{"labels":["a"]}"#).is_err());
    }
}
