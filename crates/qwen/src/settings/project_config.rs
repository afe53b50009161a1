//! What the user's home and the project bring along besides settings: sub-agents and skills.

use std::path::PathBuf;

use qwen_engine::DefinitionSource;
use qwen_engine::skill::{self, Skill};
use qwen_engine::subagent::{self, AgentDefinition};

use super::Invocation;
use super::layers::Layered;

/// What was found, the project's behind the user's, so that it counts where both have the same name.
pub(super) struct ProjectConfig {
    pub agents: Vec<AgentDefinition>,
    pub skills: Vec<Skill>,
}

/// Looks for it. What a project brings counts only where its folder is trusted; trust is decided only where there is
/// something to trust.
pub(super) fn load(invocation: &Invocation, layered: &Layered, warnings: &mut Vec<String>) -> ProjectConfig {
    let home = invocation.qwen_home().map(|home| invocation.cwd.join(home)).filter(|_| layered.wanted.user);
    let project = Some(invocation.cwd.join(".qwen"))
        .filter(|place| layered.wanted.workspace && Some(place) != home.as_ref());
    let mut places = |name: &str| -> Vec<(DefinitionSource, PathBuf)> {
        let of_project = project.as_ref().map(|place| place.join(name)).filter(|place| place.is_dir());
        let of_project = of_project.filter(|place| {
            let trusted = layered.trust.decision().is_trusted();
            if !trusted {
                warnings.push(format!(
                    "{} is ignored, because this folder is not trusted; trust it with 'qwen trust', or for one run with \
                     --trust-workspace",
                    place.display()
                ));
            }
            trusted
        });
        let of_user = home.iter().map(|place| (DefinitionSource::User, place.join(name)));
        of_user.chain(of_project.map(|place| (DefinitionSource::Project, place))).collect()
    };
    let (agent_places, skill_places) = (places("agents"), places("skills"));
    ProjectConfig {
        agents: agent_places
            .iter()
            .flat_map(|(whose, place)| subagent::load(place, *whose, warnings))
            .collect(),
        skills: skill_places.iter().flat_map(|(whose, place)| skill::load(place, *whose, warnings)).collect(),
    }
}
