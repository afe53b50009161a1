//! The agents' prompts, as far as an oracle reads them: a first line that names the task, then sections under
//! headings.

/// What a prompt asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Next steps of a tree.
    Propose,
    /// Values of a tree's candidates.
    Value,
    /// A graph of thoughts.
    Plan,
    /// A nested graph for one thought.
    Expand,
    /// Whether a thought is worth a nested graph.
    Complex,
    /// A thought.
    Generate,
    /// Scores of thoughts.
    Score,
    /// One thought out of several.
    Aggregate,
    /// A better thought.
    Improve,
    /// The result of a nested graph.
    Combine,
    /// The reply.
    Answer,
    /// No prompt of an agent: the problem itself.
    Plain,
}

/// The first lines by which the prompts are known. `qwen-engine` writes them and has a test that they are
/// read.
const TITLES: [(&str, Task); 11] = [
    ("Propose next steps.", Task::Propose),
    ("Value the candidates.", Task::Value),
    ("Plan a graph of thoughts.", Task::Plan),
    ("Expand a thought into a graph of thoughts.", Task::Expand),
    ("Is this thought complex?", Task::Complex),
    ("Generate a thought.", Task::Generate),
    ("Score the thoughts.", Task::Score),
    ("Aggregate thoughts.", Task::Aggregate),
    ("Improve a thought.", Task::Improve),
    ("Combine the results.", Task::Combine),
    ("Write the answer.", Task::Answer),
];

pub(super) struct Prompt<'a> {
    /// What it asks for.
    pub task: Task,
    text: &'a str,
}

impl<'a> Prompt<'a> {
    pub fn read(text: &'a str) -> Self {
        let first = text.lines().next().unwrap_or_default().trim();
        let task = TITLES.iter().find(|(title, _)| *title == first).map_or(Task::Plain, |(_, task)| *task);
        Self { task, text }
    }

    /// The text under the heading `name`; empty where there is none.
    pub fn section(&self, name: &str) -> &'a str {
        let heading = format!("\n## {name}\n");
        let Some(at) = self.text.find(&heading) else { return "" };
        let rest = &self.text[at + heading.len()..];
        rest[..rest.find("\n## ").unwrap_or(rest.len())].trim()
    }

    pub fn problem(&self) -> &'a str {
        if self.task == Task::Plain { self.text.trim() } else { self.section("Problem") }
    }

    /// The steps of a tree so far, without their numbers.
    pub fn steps(&self, section: &str) -> Vec<&'a str> {
        self.section(section).lines().filter_map(|line| Some(numbered(line)?.1)).collect()
    }

    /// The last number in a section, such as the 8 of "up to 8".
    pub fn number(&self, section: &str) -> Option<usize> {
        self.section(section)
            .rsplit(|c: char| !c.is_ascii_digit())
            .find(|word| !word.is_empty())?
            .parse()
            .ok()
    }

    /// The entries of a section, each under its own heading: name and text.
    pub fn entries(&self, section: &str) -> Vec<(&'a str, &'a str)> {
        let text = self.section(section);
        let blocks = text.strip_prefix("### ").into_iter().flat_map(|text| text.split("\n### "));
        blocks
            .map(|block| block.split_once('\n').unwrap_or((block, "")))
            .map(|(n, t)| (n, t.trim()))
            .collect()
    }
}

/// A line such as `2. text` or `2: text`, taken apart.
pub(super) fn numbered(line: &str) -> Option<(usize, &str)> {
    let (number, text) = line.trim().split_once(['.', ':'])?;
    Some((number.parse().ok()?, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Score the thoughts.\n\nWords.\n\n## Problem\nSort: 2 1\n\n## Candidates\n### 1\n1 2\n\n### 2\n2 1\n\n\
                        ## How many\nup to 8 of them\n\n## Steps so far\n1. a\n2. b: c\n";

    #[test]
    fn a_prompt_falls_into_its_sections() {
        let prompt = Prompt::read(TEXT);
        assert_eq!(prompt.task, Task::Score);
        assert_eq!(prompt.problem(), "Sort: 2 1");
        assert_eq!(prompt.entries("Candidates"), [("1", "1 2"), ("2", "2 1")]);
        assert_eq!(prompt.number("How many"), Some(8));
        assert_eq!(prompt.steps("Steps so far"), ["a", "b: c"]);
        assert_eq!(prompt.section("Absent"), "");
        assert_eq!(prompt.number("Absent"), None);
        assert!(prompt.entries("Absent").is_empty());
    }

    #[test]
    fn anything_else_is_the_problem_itself() {
        let prompt = Prompt::read(" 4 9 10 13\n");
        assert_eq!((prompt.task, prompt.problem()), (Task::Plain, "4 9 10 13"));
    }
}
