//! Skills: `NAME/SKILL.md`, instructions for a kind of task. The model gets their names and descriptions, and
//! reads one when it needs it.
//!
//! A skill is text: fields of its front matter about hooks, tools or modes grant nothing.

mod tool;

use qwen_events::{ClaudeTool, ToolDeclaration, ToolKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use tool::SkillTool;

use crate::front_matter::{self, DefinitionSource};
use crate::subagent::is_name;

pub const TOOL: &str = "skill";

/// The tool's declaration. Its schema lists the skills of the session.
pub const DECLARATION: ToolDeclaration =
    ToolDeclaration::new(TOOL, ToolKind::Session, "", &[]).claude(&[ClaudeTool::with_name("Skill")]);

/// The file in a skill's directory.
const FILE: &str = "SKILL.md";

/// The maximum size of a skill, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The maximum number of skills per directory.
const MAX_SKILLS: usize = 100;

/// The maximum length of a description, in characters: all descriptions are part of every request.
const MAX_DESCRIPTION: usize = 1_024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// The instructions; files that they refer to are in the same directory.
    pub file: PathBuf,
}

/// Lists the skills in a directory, by name. Invalid ones are skipped with a reason in `warnings`.
pub fn load(place: &Path, whose: DefinitionSource, warnings: &mut Vec<String>) -> Vec<Skill> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut directories: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| match whose {
            DefinitionSource::User => entry.path().is_dir(),
            DefinitionSource::Project => entry.file_type().is_ok_and(|kind| kind.is_dir()),
        })
        .map(|entry| entry.path())
        .filter(|path| path.join(FILE).symlink_metadata().is_ok())
        .collect();
    directories.sort();
    if directories.len() > MAX_SKILLS {
        warnings.push(format!("{}: only the first {MAX_SKILLS} skills are used", place.display()));
        directories.truncate(MAX_SKILLS);
    }
    let mut found: Vec<Skill> = Vec::new();
    for directory in directories {
        let shown = directory.join(FILE);
        match read(&directory, whose) {
            Ok(skill) if found.iter().any(|known| known.name == skill.name) => warnings.push(format!(
                "{}: there is another skill '{}' here; this one is left out",
                shown.display(),
                skill.name
            )),
            Ok(skill) => found.push(skill),
            Err(problem) => {
                warnings.push(format!(
                    "{}: this is not a valid skill and is left out: {problem}",
                    shown.display()
                ));
            }
        }
    }
    found
}

fn read(directory: &Path, whose: DefinitionSource) -> Result<Skill, String> {
    let file = whose.real(directory.join(FILE));
    let text = front_matter::read_file(&file, MAX_BYTES)?;
    let (front, _) =
        front_matter::split(&text).ok_or("it must start with front matter between two lines of ---")?;
    let name = match front.text("name") {
        Some(name) => name,
        None => directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    if !is_name(&name) {
        return Err(format!(
            "'{}' is not a valid name: use letters, digits, '-' and '_'",
            name.escape_debug()
        ));
    }
    let description = front.text("description").ok_or("its front matter has no description")?;
    let description: String = description.chars().take(MAX_DESCRIPTION).collect();
    Ok(Skill { name: name.into(), description: description.into(), file })
}

impl Skill {
    /// The instructions without the front matter.
    fn body(&self) -> Result<String, String> {
        let text = front_matter::read_file(&self.file, MAX_BYTES)?;
        Ok(front_matter::split(&text).map_or(text.as_str(), |(_, body)| body).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_listed_by_name_and_what_is_none_is_left_out_with_a_reason() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "---\nname: s\ndescription: d\n---\nsecret").unwrap();
        for (name, text) in [
            (
                "release",
                Some("---\nname: release\ndescription: Makes a release.\nallowed-tools: Bash\n---\nTag it."),
            ),
            ("unnamed", Some("---\ndescription: Takes its directory's name.\n---\nx")),
            ("broken", Some("no front matter")),
            ("mute", Some("---\nname: mute\n---\nx")),
            ("empty", None),
            ("linked", None),
        ] {
            let directory = place.path().join(name);
            std::fs::create_dir(&directory).unwrap();
            if let Some(text) = text {
                std::fs::write(directory.join(FILE), text).unwrap();
            }
        }
        std::os::unix::fs::symlink(outside.path().join("secret"), place.path().join("linked").join(FILE))
            .unwrap();
        let mut warnings = Vec::new();
        let skills = load(place.path(), DefinitionSource::Project, &mut warnings);
        let names: Vec<&str> = skills.iter().map(|skill| &*skill.name).collect();
        assert_eq!(names, ["release", "unnamed"]);
        assert_eq!(skills[0].body().unwrap(), "Tag it.");
        for (warning, pieces) in warnings.iter().zip([
            ["broken", "front matter"],
            ["linked", "cannot be read"],
            ["mute", "no description"],
        ]) {
            assert!(pieces.iter().all(|piece| warning.contains(piece)), "{warning}");
        }
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        let at_home = load(place.path(), DefinitionSource::User, &mut Vec::new());
        assert!(at_home.iter().any(|skill| skill.body().is_ok_and(|body| body == "secret")), "{at_home:?}");
    }
}
