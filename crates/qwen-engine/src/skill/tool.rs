//! `skill`: returns the instructions of a skill.

use std::sync::Arc;

use qwen_events::{Json, ToolCall, ToolDeclaration, ToolSpec};
use qwen_tools::{Arguments, CallContext, Outcome, Tool, ToolFuture};
use serde_json::json;

use super::Skill;
use crate::commands::filled;

pub struct SkillTool {
    spec: ToolSpec,
    skills: Vec<Skill>,
}

impl SkillTool {
    /// The tool for these skills; `None` if there are none. Of two with the same name the later one is used.
    pub fn new(given: impl IntoIterator<Item = Skill>) -> Option<Self> {
        let mut skills: Vec<Skill> = Vec::new();
        for skill in given {
            skills.retain(|known| known.name != skill.name);
            skills.push(skill);
        }
        skills.sort_by(|a, b| a.name.cmp(&b.name));
        (!skills.is_empty()).then(|| Self { spec: spec(&skills), skills })
    }

    pub fn names(&self) -> Vec<Arc<str>> {
        self.skills.iter().map(|skill| skill.name.clone()).collect()
    }

    /// The skills, by name.
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    fn open(&self, call: &ToolCall) -> Outcome {
        let wish = Arguments::parse(call).and_then(|arguments| {
            let name = arguments.nonempty_text("skill")?.trim_start_matches('/').to_owned();
            Ok((name, arguments.optional_text("args")?.unwrap_or_default().to_owned()))
        });
        let (name, args) = match wish {
            Ok(wish) => wish,
            Err(error) => return Outcome::failure("invalid_arguments", error.to_string()),
        };
        let Some(skill) = self.skills.iter().find(|skill| *skill.name == *name) else {
            let names: Vec<&str> = self.skills.iter().map(|skill| &*skill.name).collect();
            let text =
                format!("There is no skill '{}'. There are: {}.", name.escape_debug(), names.join(", "));
            return Outcome::failure("unknown_skill", text);
        };
        match skill.body() {
            Ok(body) => Outcome::success(format!(
                "The skill {}, whose files are in {}:\n\n{}",
                skill.name,
                skill.file.parent().unwrap_or(&skill.file).display(),
                filled(&body, args.trim())
            )),
            Err(problem) => {
                let text = format!("The skill {} cannot be used now: {problem}.", skill.name);
                Outcome::failure("skill_unreadable", text)
            }
        }
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        Some(&super::DECLARATION)
    }

    fn only_reads(&self, _: &ToolCall) -> bool {
        true
    }

    fn run<'a>(&'a self, call: &'a ToolCall, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { self.open(call) })
    }
}

fn spec(skills: &[Skill]) -> ToolSpec {
    let list: Vec<String> =
        skills.iter().map(|skill| format!("{}: {}", skill.name, skill.description)).collect();
    let names: Vec<&str> = skills.iter().map(|skill| &*skill.name).collect();
    let parameters = json!({
        "type": "object",
        "properties": {
            "skill": {"type": "string", "enum": names, "description": "Which skill."},
            "args": {"type": "string", "description": "What it is to be applied to, if it takes that."},
        },
        "required": ["skill"],
    });
    ToolSpec {
        name: super::TOOL.into(),
        description: format!(
            "Gives back the instructions of a skill. Call it before you start on a task that one of them is for, and \
             follow what it says. The skills:\n{}",
            list.join("\n")
        )
        .into(),
        parameters: Json::trusted(parameters.to_string()),
    }
}
