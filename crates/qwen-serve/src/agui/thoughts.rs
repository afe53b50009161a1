//! The tree or graph of thoughts of a run, as an activity of the page.

use serde_json::{Value, json};

/// The thoughts so far, from the texts of their steps.
#[derive(Debug, Default)]
pub struct ThoughtActivity {
    /// Each `{id, text, state}`; a thought of a tree also has `level` and may have `score`.
    nodes: Vec<Value>,
    /// Each `{from, to}`.
    edges: Vec<Value>,
    /// The levels of a tree, as indexes of thoughts.
    levels: Vec<Vec<usize>>,
    /// The thought of a graph that was expanded last.
    expanded: Option<String>,
    is_shown: bool,
}

impl ThoughtActivity {
    /// True if this is the subject of a step, and not of a thought in words.
    pub fn is_step(subject: &str) -> bool {
        Self::default().step(subject, "")
    }

    /// Takes a step and returns its event; none if nothing changed that is shown.
    pub fn take(&mut self, message_id: &str, subject: &str, description: &str) -> Option<Value> {
        let before = (self.nodes.clone(), self.edges.clone());
        if !self.step(subject, description) {
            return None;
        }
        let content = json!({"nodes": self.nodes, "edges": self.edges});
        if !std::mem::replace(&mut self.is_shown, true) {
            return Some(
                json!({"type": "ACTIVITY_SNAPSHOT", "messageId": message_id, "activityType": "QWEN_THOUGHTS", "content": content}),
            );
        }
        let (nodes, edges) = before;
        let mut patch = Vec::new();
        push_changes("/nodes", &nodes, &self.nodes, &mut patch);
        push_changes("/edges", &edges, &self.edges, &mut patch);
        (!patch.is_empty()).then(|| {
            json!({"type": "ACTIVITY_DELTA", "messageId": message_id, "activityType": "QWEN_THOUGHTS", "patch": patch})
        })
    }

    /// True if the text is a step of a search.
    fn step(&mut self, subject: &str, description: &str) -> bool {
        let words: Vec<&str> = subject.split(' ').collect();
        match words.as_slice() {
            ["Expanding", _, "candidate" | "candidates"] => self.expand(description),
            ["Evaluating", _, "candidate" | "candidates"] => self.evaluate(description),
            ["Backtracking", "to", "depth", depth] => {
                self.levels.truncate(depth.parse().unwrap_or(0));
            }
            ["Planning", _, "thought" | "thoughts"] => {
                let names = description.split(';').next().unwrap_or_default();
                for name in names.split(", ") {
                    self.node(name, "planned", "");
                }
            }
            [verb @ ("Starting" | "Completed" | "Failed" | "Expanding"), "thought", id @ ..]
                if !id.is_empty() =>
            {
                self.progress(verb, &id.join(" "), description);
            }
            _ => return false,
        }
        true
    }

    /// A further level of a tree, below the thought that was chosen last.
    fn expand(&mut self, description: &str) {
        let level = self.levels.len() + 1;
        let parent = self.levels.last().map(|last| {
            let chosen = last.iter().find(|index| self.nodes[**index]["state"] == "chosen");
            chosen.or(last.first()).copied().unwrap_or(0)
        });
        let mut indexes = Vec::new();
        for text in description.split('\n') {
            let index = self.nodes.len();
            let id = format!("t{}", index + 1);
            self.nodes.push(json!({"id": id, "text": text, "state": "open", "level": level}));
            if let Some(parent) = parent {
                self.edges.push(json!({"from": self.nodes[parent]["id"], "to": id}));
            }
            indexes.push(index);
        }
        self.levels.push(indexes);
    }

    fn evaluate(&mut self, description: &str) {
        let Some(level) = self.levels.last() else { return };
        let rest = description.strip_prefix("Chose candidate ").unwrap_or_default();
        let (chosen, scores) = rest.split_once("; scores: ").unwrap_or_default();
        for (index, score) in level.iter().zip(scores.split(", ")) {
            if let Ok(score) = score.parse::<f64>() {
                self.nodes[*index]["score"] = score.into();
            }
        }
        if let Some(index) = chosen.parse::<usize>().ok().and_then(|chosen| level.get(chosen)) {
            self.nodes[*index]["state"] = "chosen".into();
        }
    }

    fn progress(&mut self, verb: &str, id: &str, description: &str) {
        let is_new = !self.nodes.iter().any(|node| node["id"] == id);
        match verb {
            "Starting" => {
                self.node(id, "running", "");
                if let Some(from) = self.expanded.clone().filter(|_| is_new) {
                    self.edges.push(json!({"from": from, "to": id}));
                }
            }
            "Completed" => self.node(id, "done", description),
            "Failed" => self.node(id, "failed", description),
            _ => self.expanded = Some(id.to_owned()),
        }
    }

    fn node(&mut self, id: &str, state: &str, text: &str) {
        let known = self.nodes.iter_mut().find(|node| node["id"] == id);
        let Some(node) = known else {
            return self.nodes.push(json!({"id": id, "text": text, "state": state}));
        };
        node["state"] = state.into();
        if !text.is_empty() {
            node["text"] = text.into();
        }
    }
}

/// Appends the changes of a list that only grows or changes in place, as a JSON Patch.
fn push_changes(path: &str, before: &[Value], after: &[Value], patch: &mut Vec<Value>) {
    for (index, value) in after.iter().enumerate() {
        match before.get(index) {
            Some(known) if known == value => {}
            Some(_) => {
                patch.push(json!({"op": "replace", "path": format!("{path}/{index}"), "value": value}));
            }
            None => patch.push(json!({"op": "add", "path": format!("{path}/-"), "value": value})),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_grows_by_patches() {
        let mut thoughts = ThoughtActivity::default();
        let first = thoughts.take("m", "Expanding 2 candidates", "a\nb").unwrap();
        assert_eq!(
            (&first["type"], &first["content"]["nodes"][1]["text"]),
            (&json!("ACTIVITY_SNAPSHOT"), &json!("b"))
        );
        let scored =
            thoughts.take("m", "Evaluating 2 candidates", "Chose candidate 1; scores: 0.2, 0.9").unwrap();
        assert_eq!(
            scored["patch"][1]["value"],
            json!({"id": "t2", "text": "b", "state": "chosen", "level": 1, "score": 0.9})
        );
        let grown = thoughts.take("m", "Expanding 1 candidate", "c").unwrap();
        assert_eq!(
            grown["patch"][1],
            json!({"op": "add", "path": "/edges/-", "value": {"from": "t2", "to": "t3"}})
        );
        assert_eq!(thoughts.take("m", "A plain thought", "of a model"), None);
    }

    #[test]
    fn a_graph_has_states_and_edges() {
        let mut thoughts = ThoughtActivity::default();
        thoughts.take("m", "Planning 2 thoughts", "a, b; 1 edges").unwrap();
        thoughts.take("m", "Starting thought a", "").unwrap();
        let done = thoughts.take("m", "Completed thought a", "found").unwrap();
        assert_eq!(done["patch"][0]["value"], json!({"id": "a", "text": "found", "state": "done"}));
    }
}
