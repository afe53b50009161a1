//! Collects thinking blocks, and converts finished ones to thoughts.

use std::borrow::Cow;

use qwen_events::{CallId, Thinking};

/// The longest subject that is taken from a thought's first line, in characters.
const LONGEST_SUBJECT: usize = 80;

/// The thinking so far: of the main agent, and of each sub-agent by the call that started it.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    main: String,
    nested: Vec<(CallId, String)>,
}

impl Thoughts {
    pub(crate) fn add(&mut self, parent: Option<&CallId>, text: &str) {
        let Some(parent) = parent else {
            self.main.push_str(text);
            return;
        };
        match self.nested.iter_mut().find(|(call, _)| call == parent) {
            Some((_, block)) => block.push_str(text),
            None => self.nested.push((parent.clone(), text.to_owned())),
        }
    }

    /// True if there is no pending thinking of the main agent.
    pub(crate) fn main_is_empty(&self) -> bool {
        self.main.is_empty()
    }

    /// Removes and returns the finished block of `parent`'s agent, if there is one.
    pub(crate) fn take(&mut self, parent: Option<&CallId>) -> Option<String> {
        let block = match parent {
            None => std::mem::take(&mut self.main),
            Some(parent) => {
                let at = self.nested.iter().position(|(call, _)| call == parent)?;
                self.nested.swap_remove(at).1
            }
        };
        (!block.trim().is_empty()).then_some(block)
    }
}

/// The subject and the description of a thought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Thought<'a> {
    pub subject: Cow<'a, str>,
    pub description: Cow<'a, str>,
}

impl<'a> Thought<'a> {
    /// A heading in bold is the subject and the rest the description; else the first line, shortened, is the
    /// subject and the whole the description.
    pub(crate) fn of_block(block: &'a str) -> Self {
        let block = block.trim();
        if let Some((subject, rest)) = block.strip_prefix("**").and_then(|rest| rest.split_once("**"))
            && !subject.trim().is_empty()
            && !subject.contains('\n')
        {
            return Self { subject: subject.trim().into(), description: rest.trim().into() };
        }
        let line = block.lines().next().unwrap_or_default().trim_end();
        let subject = match line.char_indices().nth(LONGEST_SUBJECT) {
            Some((end, _)) => format!("{}…", line[..end].trim_end()).into(),
            None => line.into(),
        };
        Self { subject, description: block.into() }
    }

    /// A description of a step of a tree or graph of thoughts.
    pub(crate) fn of_step(step: &'a Thinking) -> Self {
        let (subject, description): (String, Cow<'a, str>) = match step {
            Thinking::TotExpand { candidates } => (
                format!("Expanding {}", counted(candidates.len(), "candidate")),
                candidates.join("\n").into(),
            ),
            Thinking::TotEvaluate { chosen, scores } => {
                let scores: Vec<String> = scores.iter().map(f64::to_string).collect();
                (
                    format!("Evaluating {}", counted(scores.len(), "candidate")),
                    format!("Chose candidate {chosen}; scores: {}", scores.join(", ")).into(),
                )
            }
            Thinking::TotBacktrack { reason, to_depth } => {
                (format!("Backtracking to depth {to_depth}"), (&**reason).into())
            }
            Thinking::GotPlan { node_ids, edge_count } => (
                format!("Planning {}", counted(node_ids.len(), "thought")),
                format!("{}; {edge_count} edges", node_ids.join(", ")).into(),
            ),
            Thinking::GotNodeStart { id } => (format!("Starting thought {id}"), "".into()),
            Thinking::GotNodeComplete { id, result_summary } => {
                (format!("Completed thought {id}"), (&**result_summary).into())
            }
            Thinking::GotNodeFailed { id, error } => (format!("Failed thought {id}"), (&**error).into()),
            Thinking::GotExpand { id, nodes_added, edges_added } => (
                format!("Expanding thought {id}"),
                format!("Added {nodes_added} thoughts and {edges_added} edges").into(),
            ),
        };
        Self { subject: subject.into(), description }
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_gives_subject_and_description() {
        let long = "x".repeat(100);
        let short = format!("{}…", "x".repeat(80));
        for (block, subject, description) in [
            ("**Analyzing repo**\nListing files.", "Analyzing repo", "Listing files."),
            ("\n **Title** ", "Title", ""),
            ("First line.\nSecond.", "First line.", "First line.\nSecond."),
            ("** not bold", "** not bold", "** not bold"),
            ("****", "****", "****"),
            (&long, &short, &long),
        ] {
            let thought = Thought::of_block(block);
            assert_eq!((&*thought.subject, &*thought.description), (subject, description), "{block:?}");
        }
    }

    #[test]
    fn blocks_of_different_agents_do_not_mix() {
        let mut thoughts = Thoughts::default();
        let (a, b) = (CallId::new("a"), CallId::new("b"));
        thoughts.add(None, "main ");
        thoughts.add(Some(&a), "first ");
        thoughts.add(Some(&b), "second");
        thoughts.add(Some(&a), "agent");
        thoughts.add(None, "agent");
        assert_eq!(thoughts.take(Some(&a)).as_deref(), Some("first agent"));
        assert_eq!(thoughts.take(Some(&a)), None);
        assert_eq!(thoughts.take(None).as_deref(), Some("main agent"));
        assert_eq!(thoughts.take(Some(&b)).as_deref(), Some("second"));
    }

    #[test]
    fn steps_of_a_search_read_well() {
        let step = Thinking::TotExpand { candidates: vec!["4 + 9".into(), "10 - 4".into(), "13 - 9".into()] };
        let thought = Thought::of_step(&step);
        assert_eq!(thought.subject, "Expanding 3 candidates");
        assert_eq!(thought.description, "4 + 9\n10 - 4\n13 - 9");
        let step = Thinking::TotBacktrack { reason: "below the threshold".into(), to_depth: 1 };
        assert_eq!(Thought::of_step(&step).subject, "Backtracking to depth 1");
    }
}
