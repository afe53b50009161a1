//! Agents, skills and commands from the user's home and the project.

use std::path::{Path, PathBuf};

use qwen_engine::DefinitionSource;
use qwen_engine::skill::{self, Skill};
use qwen_engine::subagent::{self, AgentDefinition};

use crate::settings::Invocation;
use crate::settings::layers::Layered;

/// The definitions that were found. The project's come after the user's and win if both have the same name.
pub(crate) struct ProjectConfig {
    pub agents: Vec<AgentDefinition>,
    pub skills: Vec<Skill>,
    /// Where skills are read from.
    pub skill_places: Vec<(DefinitionSource, PathBuf)>,
    /// Directories of slash commands.
    pub user_commands: Vec<PathBuf>,
    pub project_commands: Vec<PathBuf>,
}

/// Finds the directories and reads the definitions. A project's definitions need folder trust, which is
/// decided only if there are any.
pub(crate) fn load(invocation: &Invocation, layered: &Layered, warnings: &mut Vec<String>) -> ProjectConfig {
    let directories = Directories::resolve(invocation, layered);
    let mut places = |name: &str, needs_trust_always: bool| -> Vec<(DefinitionSource, PathBuf)> {
        let of_user = directories.user.iter().map(|place| (DefinitionSource::User, place.join(name)));
        let mut found: Vec<_> = of_user.collect();
        for place in &directories.project {
            let directory = place.path.join(name);
            let is_text_only = place.requested_by_host && !needs_trust_always;
            // One that appears later is read when the host asks for it.
            if !directory.is_dir() && !is_text_only {
                continue;
            }
            if is_text_only || layered.trust.decision().is_trusted() {
                found.push((DefinitionSource::Project, directory));
            } else {
                warnings.push(ignored(&directory));
            }
        }
        found
    };
    let (agent_places, skill_places) = (places("agents", false), places("skills", false));
    let commands = places("commands", true);
    let commands_of = |whose: DefinitionSource| {
        commands.iter().filter(|(source, _)| *source == whose).map(|(_, place)| place.clone()).collect()
    };
    warnings.extend(layered.trust.warning());
    ProjectConfig {
        agents: agent_places
            .iter()
            .flat_map(|(whose, place)| subagent::load(place, *whose, warnings))
            .collect(),
        skills: load_skills(&skill_places, warnings),
        skill_places,
        user_commands: commands_of(DefinitionSource::User),
        project_commands: commands_of(DefinitionSource::Project),
    }
}

/// Reads the skills of some directories.
pub fn load_skills(places: &[(DefinitionSource, PathBuf)], warnings: &mut Vec<String>) -> Vec<Skill> {
    places.iter().flat_map(|(whose, place)| skill::load(place, *whose, warnings)).collect()
}

fn ignored(directory: &Path) -> String {
    format!(
        "{} is ignored, because this folder is not trusted; trust it with 'qwen trust', or for one run with \
         --trust-workspace",
        directory.display()
    )
}

/// Directories that may hold definitions, in ascending precedence.
struct Directories {
    user: Vec<PathBuf>,
    project: Vec<ProjectDirectory>,
}

struct ProjectDirectory {
    path: PathBuf,
    /// True if the host named the project as a source of Claude's configuration.
    requested_by_host: bool,
}

impl Directories {
    fn resolve(invocation: &Invocation, layered: &Layered) -> Self {
        let home = invocation.qwen_home().map(|home| invocation.cwd.join(home));
        let own_user = home.clone().filter(|_| layered.wanted.user);
        let user: Vec<PathBuf> = layered.claude.user.iter().cloned().chain(own_user).collect();
        let own = Some(invocation.cwd.join(".qwen"))
            .filter(|place| layered.wanted.workspace && Some(place) != home.as_ref());
        let claude = layered.claude.project.clone().filter(|_| layered.wanted.workspace);
        let requested_by_host = layered.claude.project_requested;
        let claude = claude.map(|path| ProjectDirectory { path, requested_by_host });
        let own = own.map(|path| ProjectDirectory { path, requested_by_host: false });
        Self { user, project: claude.into_iter().chain(own).collect() }
    }
}
