//! Completion suggestions for the text being typed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_events::{HintRequest, HintResult, HintStatus, HintTrigger, PromptId, SessionId, Suggestion};
use qwen_mcp::ResourceEntry;
use qwen_tools::workspace::Workspace;

use super::fuzzy::Query;
use super::{CommandSet, PathIndex};

/// The maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 20;

/// The suggestions for a request. `cwd` is the base of relative paths; a request that names another directory
/// must stay below it. `resources` are those of the connected MCP servers.
pub fn hint(
    request: &HintRequest,
    commands: &CommandSet,
    index: &PathIndex,
    cwd: &Path,
    resources: &[ResourceEntry],
    session_id: &SessionId,
) -> HintResult {
    let typed = typed(request);
    let found = match request.trigger {
        HintTrigger::Slash => Ok(slash(&typed, commands)),
        HintTrigger::At => files(&typed, index, request.cwd.as_deref(), cwd, resources),
    };
    let (status, found, message) = match found {
        Ok(found) => (HintStatus::Ok, found, None),
        Err(message) => (HintStatus::Error, Candidate::default(), Some(message.into())),
    };
    let asked = request.session_id.as_deref().and_then(|id| SessionId::parse(id).ok());
    HintResult {
        session_id: asked.unwrap_or_else(|| session_id.clone()),
        prompt_id: request.prompt_id.clone().unwrap_or_else(|| PromptId::new("preview")),
        trigger: request.trigger,
        status,
        suggestions: found.suggestions,
        is_perfect_match: found.perfect,
        message,
    }
}

#[derive(Default)]
struct Candidate {
    suggestions: Vec<Suggestion>,
    perfect: bool,
}

/// The text between the trigger and the cursor.
fn typed(request: &HintRequest) -> String {
    let end = request.cursor.map_or(usize::MAX, |cursor| usize::try_from(cursor).unwrap_or(usize::MAX));
    let text: String = request.text.chars().take(end).collect();
    match request.trigger {
        HintTrigger::Slash => {
            let text = text.trim_start();
            text.strip_prefix(['/', '?']).unwrap_or(text).to_owned()
        }
        HintTrigger::At => {
            let from = text.rfind('@').map_or(0, |at| at + 1);
            text[from..].trim_start_matches('"').to_owned()
        }
    }
}

fn slash(typed: &str, commands: &CommandSet) -> Candidate {
    if let Some((name, rest)) = typed.split_once(char::is_whitespace) {
        let subcommands = commands.builtin(name).map_or(&[][..], |command| command.subcommands);
        let all = subcommands.iter().map(|(name, about)| (Arc::from(*name), Some(Arc::from(*about))));
        return ranked(rest.trim_start(), all);
    }
    let all = commands.list().into_iter().map(|command| (command.name, Some(command.description)));
    let mut found = ranked(typed, all);
    found.perfect |= commands.builtin(typed).is_some();
    found
}

/// The names that start with what is typed, or if there are none the most similar ones, best first; ties are
/// sorted by name.
fn ranked(typed: &str, all: impl Iterator<Item = (Arc<str>, Option<Arc<str>>)>) -> Candidate {
    let query = Query::new(typed);
    let mut best = Best::default();
    let all: Vec<_> = all.collect();
    for (name, about) in &all {
        best.offer(&query, name, about.as_ref());
    }
    best.prefer_prefixes();
    best.into_candidate(typed)
}

/// The best matches so far, best first. Only they are kept, whatever the number of names.
#[derive(Default)]
struct Best<'a> {
    matches: Vec<Match<'a>>,
}

struct Match<'a> {
    /// The kind of match and, where that decides, how good it is; lower is better.
    rank: (u8, i64),
    name: &'a str,
    about: Option<&'a Arc<str>>,
}

impl<'a> Best<'a> {
    fn offer(&mut self, query: &Query, name: &'a str, about: Option<&'a Arc<str>>) {
        let Some(score) = query.score(name) else { return };
        // Exact and prefix matches are sorted by name, as users expect.
        let rank = match score {
            10_000.. => (0, 0),
            6_500.. => (1, 0),
            score => (2, -score),
        };
        if self.matches.len() == MAX_SUGGESTIONS
            && self.matches.last().is_some_and(|last| (last.rank, last.name) <= (rank, name))
        {
            return;
        }
        let at = self.matches.partition_point(|other| (other.rank, other.name) <= (rank, name));
        self.matches.truncate(MAX_SUGGESTIONS - 1);
        self.matches.insert(at, Match { rank, name, about });
    }

    /// Removes matches in the middle of a name where there are exact or prefix matches.
    fn prefer_prefixes(&mut self) {
        if self.matches.first().is_some_and(|best| best.rank.0 < 2) {
            self.matches.retain(|found| found.rank.0 < 2);
        }
    }

    fn into_candidate(self, typed: &str) -> Candidate {
        let perfect = self.matches.iter().any(|found| found.name == typed);
        let suggestion = |found: Match| {
            let name: Arc<str> = found.name.into();
            Suggestion { label: name.clone(), value: name, description: found.about.cloned() }
        };
        Candidate { suggestions: self.matches.into_iter().map(suggestion).collect(), perfect }
    }
}

fn files(
    typed: &str,
    index: &PathIndex,
    asked: Option<&str>,
    cwd: &Path,
    resources: &[ResourceEntry],
) -> Result<Candidate, String> {
    let root = root(asked, cwd)?;
    let all = index.paths(&root, !typed.is_empty());
    let of_servers: Vec<(String, &ResourceEntry)> = resources
        .iter()
        .map(|resource| (format!("{}:{}", resource.server, resource.uri), resource))
        .collect();
    let query = Query::new(typed);
    let mut best = Best::default();
    for (name, resource) in &of_servers {
        best.offer(&query, name, Some(&resource.name).filter(|name| !name.is_empty()));
    }
    for path in all.with_letters_of(typed) {
        best.offer(&query, path, None);
    }
    Ok(best.into_candidate(typed))
}

/// The directory that relative paths start from.
fn root(asked: Option<&str>, cwd: &Path) -> Result<PathBuf, String> {
    let workspace = Workspace::new(cwd, &[]).map_err(|error| error.to_string())?;
    let opened = workspace.open_directory(asked.filter(|path| !path.is_empty()).unwrap_or("."));
    opened.map(|opened| opened.path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(trigger: HintTrigger, text: &str) -> HintRequest {
        HintRequest { session_id: None, prompt_id: None, trigger, text: text.into(), cursor: None, cwd: None }
    }

    fn hinted(trigger: HintTrigger, text: &str, cwd: &Path) -> (Vec<String>, bool) {
        let id = SessionId::parse("s").unwrap();
        let (commands, index) = (CommandSet::default(), PathIndex::default());
        let result = hint(&request(trigger, text), &commands, &index, cwd, &[], &id);
        assert_eq!(result.status, HintStatus::Ok, "{:?}", result.message);
        (result.suggestions.iter().map(|s| s.value.to_string()).collect(), result.is_perfect_match)
    }

    #[test]
    fn slash_hints_come_best_first() {
        let cases: &[(&str, &[&str], bool)] = &[
            ("/c", &["chat", "clear", "compress", "copy"], false),
            ("/clear", &["clear"], true),
            ("/cmp", &["compress"], false),
            ("/chat l", &["list"], false),
            ("/chat list", &["list"], true),
            ("/xyzzy", &[], false),
        ];
        for (text, first, perfect) in cases {
            let (names, is_perfect) = hinted(HintTrigger::Slash, text, Path::new("/"));
            assert_eq!(&names[..first.len().min(names.len())], *first, "{text}: {names:?}");
            assert_eq!(is_perfect, *perfect, "{text}");
        }
    }

    #[test]
    fn at_hints_are_files_that_are_not_ignored() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("src")).unwrap();
        for (name, text) in [("src/main.rs", ""), ("notes.md", ""), ("skip.log", ""), (".gitignore", "*.log")]
        {
            std::fs::write(place.path().join(name), text).unwrap();
        }
        let (names, _) = hinted(HintTrigger::At, "look at @mai", place.path());
        assert_eq!(names, ["src/main.rs"]);
        let (names, perfect) = hinted(HintTrigger::At, "@notes.md", place.path());
        assert_eq!((names.first().map(String::as_str), perfect), (Some("notes.md"), true));
        assert!(!hinted(HintTrigger::At, "@skip", place.path()).0.contains(&"skip.log".to_owned()));
    }
}
