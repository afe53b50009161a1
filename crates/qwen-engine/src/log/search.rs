//! Finds sessions by their text.

use std::io;
use std::path::Path;

use qwen_events::Body;

use super::entry::{EntryBody, is_main};
use super::{LogError, Store, Summary};

/// How many characters around a match are shown.
const SNIPPET_CHARS: usize = 60;

/// A session with the details that identify it to a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSession {
    pub summary: Summary,
    /// The place that matches; empty without a search text, or if the title or the id matches.
    pub excerpt: String,
    pub last_prompt: String,
    pub last_answer: String,
}

impl Store {
    /// The sessions whose id, title, prompts, answers or tool results contain `text` in any case, latest
    /// first, at most `limit` of them; restricted to those started in `cwd` if given. An empty text finds
    /// all.
    pub fn search(&self, cwd: Option<&Path>, text: &str, limit: usize) -> io::Result<Vec<FoundSession>> {
        let wanted = text.trim().to_lowercase();
        let mut found = Vec::new();
        for summary in self.list(cwd)? {
            if found.len() == limit {
                break;
            }
            // A session that cannot be read cannot be resumed either.
            if let Ok(Some(session)) = self.matching(summary, &wanted) {
                found.push(session);
            }
        }
        Ok(found)
    }

    fn matching(&self, summary: Summary, wanted: &str) -> Result<Option<FoundSession>, LogError> {
        let header = &summary.header;
        let is_named = header.title.to_lowercase().contains(wanted)
            || header.session_id.as_str().to_lowercase().contains(wanted);
        let mut excerpt = None;
        let (mut last_prompt, mut last_answer) = (String::new(), String::new());
        let mut reader = self.read(&header.session_id)?;
        while let Some(entry) = reader.next_entry()? {
            let EntryBody::Event(body) = entry.what else { continue };
            let text = match &body {
                Body::TurnStart(start) => &start.message,
                Body::MessageEnd(end) => &end.text,
                Body::ToolEnd(end) => &end.text,
                _ => continue,
            };
            if excerpt.is_none() && !is_named {
                excerpt = snippet(text, wanted);
            }
            match &body {
                Body::TurnStart(_) if is_main(&entry.scope) => last_prompt = text.to_string(),
                Body::MessageEnd(_) if is_main(&entry.scope) && !text.trim().is_empty() => {
                    last_answer = text.to_string();
                }
                _ => {}
            }
        }
        let excerpt = match excerpt {
            None if !is_named => return Ok(None),
            excerpt => excerpt.unwrap_or_default(),
        };
        Ok(Some(FoundSession { summary, excerpt, last_prompt, last_answer }))
    }
}

/// The line that contains `wanted`, which is in lower case, shortened around it.
fn snippet(text: &str, wanted: &str) -> Option<String> {
    let line = text.lines().find(|line| line.to_lowercase().contains(wanted))?;
    let before = line.to_lowercase().find(wanted).map_or(0, |at| line.to_lowercase()[..at].chars().count());
    let from = before.saturating_sub(SNIPPET_CHARS / 2);
    let shown: String = line.chars().skip(from).take(SNIPPET_CHARS + wanted.chars().count()).collect();
    Some(if from > 0 { format!("…{shown}") } else { shown })
}
