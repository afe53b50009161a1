//! The format of the prompts: a first line that names the task, a description, then sections under headings.
//! Models read this format well, and the `oracle:` models can parse it.

use std::fmt::Display;

pub(crate) struct Prompt(String);

impl Prompt {
    /// A prompt for the task that `title` names.
    pub fn new(title: &str, words: &str) -> Self {
        Self(format!("{title}\n\n{words}\n"))
    }

    /// Adds a section, unless it is empty.
    pub fn section(mut self, name: &str, text: impl Display) -> Self {
        let text = text.to_string();
        let text = text.trim();
        if !text.is_empty() {
            self.0.extend(["\n## ", name, "\n", text, "\n"]);
        }
        self
    }

    /// Adds a section of numbered lines, or the text `none`.
    pub fn list<T: AsRef<str>>(self, name: &str, lines: impl IntoIterator<Item = T>) -> Self {
        let lines: Vec<String> =
            lines.into_iter().enumerate().map(|(n, line)| format!("{}. {}", n + 1, line.as_ref())).collect();
        let text = if lines.is_empty() { "none".to_owned() } else { lines.join("\n") };
        self.section(name, text)
    }

    /// Adds a section of texts, each under a separate heading, unless there are none.
    pub fn entries<N: Display, T: Display>(
        self,
        name: &str,
        entries: impl IntoIterator<Item = (N, T)>,
    ) -> Self {
        let texts: Vec<String> =
            entries.into_iter().map(|(name, text)| format!("### {name}\n{text}\n")).collect();
        self.section(name, texts.join("\n"))
    }

    pub fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_names_its_task_first_and_leaves_out_what_is_empty() {
        let prompt = Prompt::new("Do it.", "Well.")
            .section("Problem", " p ")
            .section("Empty", "")
            .list("Steps", ["a", "b"])
            .list("None", Vec::<String>::new())
            .entries("Inputs", [("x", "1"), ("y", "2")]);
        assert_eq!(
            prompt.text(),
            "Do it.\n\nWell.\n\n## Problem\np\n\n## Steps\n1. a\n2. b\n\n## None\nnone\n\n\
             ## Inputs\n### x\n1\n\n### y\n2\n"
        );
    }
}
