//! Draws thoughts as terminal lines.

use std::fmt::Write;

use super::super::ViewOptions;
use super::super::paint::{Painter, Style, fit, harmless};
use super::{ThoughtGraph, ThoughtStatus};

/// A thought in drawing order.
struct Row {
    at: usize,
    /// The branches in front of it.
    branches: String,
}

impl ThoughtGraph {
    /// The thoughts as at most `height` styled lines, truncated to the terminal width. If there is no room
    /// for all, the most important ones are drawn.
    pub fn draw(&self, options: ViewOptions, height: usize) -> Vec<String> {
        let paint = Painter::new(options);
        let rows = self.rows();
        let room = height.max(2) - 1;
        let mut kept = vec![true; self.thoughts.len()];
        if rows.len() > room {
            let mut ranked: Vec<usize> = (0..self.thoughts.len()).collect();
            ranked.sort_by_key(|at| (std::cmp::Reverse(self.weight(*at)), std::cmp::Reverse(*at)));
            for at in &ranked[room.min(ranked.len())..] {
                kept[*at] = false;
            }
        }
        let mut lines: Vec<String> =
            rows.iter().filter(|row| kept[row.at]).map(|row| self.line(row, paint)).collect();
        lines.push(self.summary(kept.iter().filter(|kept| !**kept).count(), paint));
        lines
    }

    /// The importance of a thought to the viewer.
    fn weight(&self, at: usize) -> u8 {
        match self.thoughts[at].standing {
            ThoughtStatus::Running | ThoughtStatus::Found => 5,
            ThoughtStatus::Kept => 4,
            ThoughtStatus::Failed => 3,
            ThoughtStatus::Done => 2,
            ThoughtStatus::Waiting | ThoughtStatus::Skipped => 1,
            ThoughtStatus::Dropped => 0,
        }
    }

    /// The thoughts as a tree: each below the first that it builds on, or below the one that it is nested
    /// in.
    fn rows(&self) -> Vec<Row> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.thoughts.len()];
        let mut roots = Vec::new();
        for (at, thought) in self.thoughts.iter().enumerate() {
            // Named thoughts are planned; their inputs are written after them.
            let above =
                if thought.name.is_empty() { thought.inputs.first().copied() } else { thought.parent };
            match above.filter(|above| *above < at) {
                Some(above) => children[above].push(at),
                None => roots.push(at),
            }
        }
        let mut rows = Vec::with_capacity(self.thoughts.len());
        let last = |list: &[usize]| list.last().copied();
        let mut waiting: Vec<(usize, String, bool)> =
            roots.iter().rev().map(|at| (*at, String::new(), Some(*at) == last(&roots))).collect();
        while let Some((at, indent, is_last)) = waiting.pop() {
            rows.push(Row { at, branches: format!("{indent}{}", if is_last { "└─" } else { "├─" }) });
            let indent = format!("{indent}{}", if is_last { "  " } else { "│ " });
            let below = &children[at];
            waiting.extend(
                below.iter().rev().map(|child| (*child, indent.clone(), Some(*child) == last(below))),
            );
        }
        rows
    }

    fn line(&self, row: &Row, paint: Painter) -> String {
        let thought = &self.thoughts[row.at];
        let (mark, look) = match thought.standing {
            ThoughtStatus::Waiting => ("·", Style::Dim),
            ThoughtStatus::Running => ("○", Style::Cyan),
            ThoughtStatus::Done => ("●", Style::Plain),
            ThoughtStatus::Failed => ("✗", Style::Red),
            ThoughtStatus::Skipped => ("⊘", Style::Yellow),
            ThoughtStatus::Kept => ("●", Style::Plain),
            ThoughtStatus::Dropped => ("◌", Style::Dim),
            ThoughtStatus::Found => ("★", Style::Green),
        };
        let mut text = format!("{} {mark} ", row.branches);
        if let Some(score) = thought.score {
            let _ = write!(text, "{score:.2} ");
        }
        if !thought.name.is_empty() {
            let short = thought.name.rsplit('/').next().unwrap_or_default();
            let _ = write!(text, "{short} ");
        }
        let needs: Vec<&str> =
            thought.inputs.iter().map(|input| self.thoughts[*input].name.as_str()).collect();
        if !thought.name.is_empty() && !needs.is_empty() {
            let _ = write!(text, "← {} ", needs.join(", "));
        }
        if !thought.name.is_empty() && !thought.text.is_empty() {
            text.push_str("— ");
        }
        text.push_str(&thought.text);
        let mut line = Vec::new();
        paint.push(&mut line, look, &fit(&harmless(text.trim_end()), paint.width().saturating_sub(1)));
        String::from_utf8_lossy(&line).into_owned()
    }

    /// A one-line summary of all thoughts.
    fn summary(&self, hidden: usize, paint: Painter) -> String {
        let count = |standing: ThoughtStatus| {
            self.thoughts.iter().filter(|thought| thought.standing == standing).count()
        };
        let all = self.thoughts.len() + self.beyond;
        let mut text = format!("{all} thought{}", if all == 1 { "" } else { "s" });
        for standing in [
            ThoughtStatus::Running,
            ThoughtStatus::Done,
            ThoughtStatus::Kept,
            ThoughtStatus::Failed,
            ThoughtStatus::Skipped,
        ] {
            match count(standing) {
                0 => {}
                n => {
                    let _ = write!(text, " · {n} {}", standing.word());
                }
            }
        }
        if hidden + self.beyond > 0 {
            let _ = write!(text, " · {} not shown", hidden + self.beyond);
        }
        let mut line = Vec::new();
        paint.push(&mut line, Style::Dim, &fit(&text, paint.width().saturating_sub(1)));
        String::from_utf8_lossy(&line).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(width: usize) -> ViewOptions {
        ViewOptions { color: false, width, height: None }
    }

    #[test]
    fn a_tree_shows_branches_scores_and_states() {
        let mut graph = ThoughtGraph::default();
        graph.state(
            r#"{"thoughts":[{"parent":null,"text":"4 + 9","score":0.7,"standing":"kept"},
            {"parent":0,"text":"13 - 9","score":0.9,"standing":"kept"},{"parent":0,"text":"13 + 9","score":0.1,"standing":"dropped"},
            {"parent":null,"text":"10 - 4","score":0.2,"standing":"dropped"}],"found":1}"#,
        );
        let expected =
            "├─ ● 0.70 4 + 9\n│ ├─ ★ 0.90 13 - 9\n│ └─ ◌ 0.10 13 + 9\n└─ ◌ 0.20 10 - 4\n4 thoughts · 1 kept";
        assert_eq!(graph.draw(options(80), 20).join("\n"), expected);
        assert_eq!(
            graph.draw(options(80), 3).join("\n"),
            "├─ ● 0.70 4 + 9\n│ ├─ ★ 0.90 13 - 9\n4 thoughts · 1 kept · 2 not shown"
        );
    }

    #[test]
    fn a_graph_shows_what_each_thought_needs_and_what_is_nested() {
        let mut graph = ThoughtGraph::default();
        graph.state(
            r#"{"thoughts":[{"id":"a","op":"generate","standing":"done","results":[{"text":"x","score":0.5}]},
            {"id":"b","op":"generate","instruction":"the rest","standing":"running"},
            {"id":"m","op":"aggregate","inputs":[0,1],"standing":"waiting"},{"id":"b/c","op":"generate","parent":1,"standing":"failed","error":"no"}]}"#,
        );
        let expected = "├─ ● 0.50 a — x\n├─ ○ b — the rest\n│ └─ ✗ c — no\n└─ · m ← a, b — aggregate\n\
                        4 thoughts · 1 running · 1 done · 1 failed";
        assert_eq!(graph.draw(options(80), 20).join("\n"), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_or_drives_it() {
        let mut graph = ThoughtGraph::default();
        let wide = "日本語\\u001b[2J\\nno".repeat(30);
        graph.state(&format!(r#"{{"thoughts":[{{"parent":null,"text":"{wide}","standing":"kept"}}]}}"#));
        let lines = graph.draw(options(40), 5);
        assert!(!lines[0].contains(['\u{1b}', '\n']), "{lines:?}");
        assert!(super::super::super::paint::columns(&lines[0]) < 40, "{lines:?}");
    }
}
