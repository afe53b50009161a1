//! Sub-agents defined in files: `NAME.md` with front matter for the settings and a body for the system
//! prompt.
//!
//! A file can select and restrict, but never grant: fields about hooks, permissions or modes are ignored.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{AgentDefinition, AgentLimits};
use crate::front_matter::{self, DefinitionSource, FrontMatter};

/// The maximum size of an agent file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The maximum number of agents per directory.
const MAX_FILES: usize = 100;

/// Reads the agents in a directory, by name. Invalid files are skipped with a reason in `warnings`.
pub fn load(place: &Path, whose: DefinitionSource, warnings: &mut Vec<String>) -> Vec<AgentDefinition> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    if files.len() > MAX_FILES {
        warnings.push(format!("{}: only the first {MAX_FILES} agents are used", place.display()));
        files.truncate(MAX_FILES);
    }
    let mut found: Vec<AgentDefinition> = Vec::new();
    for path in files {
        match read(&whose.real(path.clone())) {
            Ok(agent) if found.iter().any(|known| known.name == agent.name) => {
                warnings.push(format!(
                    "{}: there is another agent '{}' here; this one is left out",
                    path.display(),
                    agent.name
                ));
            }
            Ok(agent) => found.push(agent),
            Err(problem) => {
                warnings.push(format!(
                    "{}: this is not a valid agent and is left out: {problem}",
                    path.display()
                ));
            }
        }
    }
    found
}

fn read(path: &Path) -> Result<AgentDefinition, String> {
    let text = crate::front_matter::read_file(path, MAX_BYTES)?;
    let (front, body) =
        front_matter::split(&text).ok_or("it must start with front matter between two lines of ---")?;
    let name = front.text("name").ok_or("its front matter has no name")?;
    if !is_name(&name) {
        return Err(format!(
            "'{}' is not a valid name: use letters, digits, '-' and '_'",
            name.escape_debug()
        ));
    }
    let description = front.text("description").ok_or("its front matter has no description")?;
    let prompt = body.trim();
    if prompt.is_empty() {
        return Err("it has no text below its front matter".to_owned());
    }
    let bare = |tools: Vec<String>| tools.iter().map(|tool| bare_name(tool)).collect::<Vec<_>>();
    Ok(AgentDefinition {
        name: name.into(),
        description: description.into(),
        prompt: prompt.into(),
        // Some files use `*` for all tools.
        tools: front.list("tools").map(bare).filter(|tools| !tools.iter().any(|tool| &**tool == "*")),
        disallowed_tools: front.list("disallowedTools").map(bare).unwrap_or_default(),
        model: front.text("model").and_then(|model| super::chosen_model(&model)),
        limits: limits(&front)?,
        background: background(&front)?,
    })
}

fn background(front: &FrontMatter) -> Result<bool, String> {
    match front.text("background").as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(format!("background must be true or false, not '{}'", other.escape_debug())),
    }
}

/// The tool's name without a pattern: a pattern would be a permission, and files grant none.
fn bare_name(tool: &str) -> Arc<str> {
    tool.split('(').next().unwrap_or(tool).trim().into()
}

fn limits(front: &FrontMatter) -> Result<AgentLimits, String> {
    // Looks up the plain key, or the same key below one of the group names that similar programs use.
    let given = |keys: &[&str]| {
        let mut spelt = keys
            .iter()
            .flat_map(|key| [(*key).to_owned(), format!("limits.{key}"), format!("runConfig.{key}")]);
        spelt.find_map(|key| Some((front.text(&key)?, key)))
    };
    let count = |keys: &[&str]| match given(keys) {
        None => Ok(None),
        Some((text, key)) => match text.parse::<u64>() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(format!("{key} must be a whole number above 0, not '{}'", text.escape_debug())),
        },
    };
    let time = |keys: &[&str], unit: f64| match given(keys) {
        None => Ok(None),
        Some((text, key)) => match seconds(&text, unit) {
            Some(time) => Ok(Some(time)),
            None => Err(format!("{key} must be a time such as 90s or 5m, not '{}'", text.escape_debug())),
        },
    };
    Ok(AgentLimits {
        turns: count(&["maxTurns"])?,
        tool_calls: count(&["maxToolCalls"])?,
        tokens: count(&["maxTokensTotal", "maxTokens"])?,
        wall_time: match time(&["maxWallTime"], 1.0)? {
            Some(time) => Some(time),
            None => time(&["maxTimeMinutes"], 60.0)?,
        },
    })
}

/// A duration: a number in units of `unit` seconds, or one with the suffix `s`, `m` or `h`.
fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let (number, unit) = match text.chars().next_back()? {
        's' => (text.strip_suffix('s')?, 1.0),
        'm' => (text.strip_suffix('m')?, 60.0),
        'h' => (text.strip_suffix('h')?, 3600.0),
        _ => (text, unit),
    };
    let time = Duration::try_from_secs_f64(number.trim().parse::<f64>().ok()? * unit).ok()?;
    (!time.is_zero()).then_some(time)
}

/// True if `word` is a valid name for an agent or a skill.
pub(crate) fn is_name(word: &str) -> bool {
    word.len() <= 64
        && word.starts_with(char::is_alphanumeric)
        && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(files: &[(&str, &str)]) -> (Vec<AgentDefinition>, Vec<String>) {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(place.path().join(name), text).unwrap();
        }
        let mut warnings = Vec::new();
        (load(place.path(), DefinitionSource::Project, &mut warnings), warnings)
    }

    #[test]
    fn a_file_says_who_the_agent_is_what_it_may_use_and_how_much() {
        let (agents, warnings) = loaded(&[
            (
                "a.md",
                "---\nname: reviewer\ndescription: Reviews.\ntools: Read, Bash(rm *)\nmodel: inherit\nmaxTurns: 3\n\
                 limits:\n  maxToolCalls: 4\n  maxWallTime: 1.5m\nhooks: x\npermissionMode: yolo\n---\nYou review.\n",
            ),
            (
                "b.md",
                "---\nname: b\ndescription: B.\ntools: '*'\nmodel: m2\nrunConfig:\n  max_time_minutes: 2\n---\nB",
            ),
            ("notes.txt", "no agent"),
        ]);
        assert!(warnings.is_empty(), "{warnings:?}");
        let [b, a] = agents.as_slice() else { panic!("{agents:?}") };
        let (a, b) = if &*a.name == "reviewer" { (a, b) } else { (b, a) };
        assert_eq!((&*a.description, &*a.prompt, &a.model), ("Reviews.", "You review.", &None));
        assert_eq!(a.tools.as_deref(), Some(&["Read".into(), "Bash".into()][..]));
        let limits = AgentLimits {
            turns: Some(3),
            tool_calls: Some(4),
            tokens: None,
            wall_time: Some(Duration::from_secs(90)),
        };
        assert_eq!(a.limits, limits);
        assert_eq!((b.tools.as_ref(), b.model.as_deref()), (None, Some("m2")));
        assert_eq!(b.limits.wall_time, Some(Duration::from_secs(120)));
    }

    #[test]
    fn an_invalid_agent_file_is_skipped_with_a_reason() {
        let front = |lines: &str| format!("---\n{lines}\n---\nPrompt");
        let cases = [
            ("no front matter".to_owned(), "front matter"),
            (front("description: d"), "no name"),
            (front("name: a"), "no description"),
            (front("name: ../a\ndescription: d"), "is not a valid name"),
            ("---\nname: a\ndescription: d\n---\n \n".to_owned(), "has no text"),
            (front("name: a\ndescription: d\nmaxTurns: many"), "maxTurns"),
            (front("name: a\ndescription: d\nlimits:\n  maxWallTime: -1s"), "maxWallTime"),
            ("x".repeat(70_000), "larger than"),
        ];
        for (text, piece) in &cases {
            let (agents, warnings) = loaded(&[("a.md", text)]);
            assert!(agents.is_empty(), "{piece}");
            assert!(
                warnings.len() == 1 && warnings[0].contains(piece) && warnings[0].contains("a.md"),
                "{warnings:?}"
            );
        }
        let twice = front("name: a\ndescription: d");
        let (agents, warnings) = loaded(&[("a.md", &twice), ("b.md", &twice)]);
        assert_eq!((agents.len(), warnings.len()), (1, 1), "{warnings:?}");
    }
}
