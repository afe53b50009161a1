//! Renders thoughts as a stand-alone SVG file.

use std::fmt::Write;

use super::super::paint::{columns, fit, harmless};
use super::layout::Line;
use super::{Thought, ThoughtGraph, ThoughtStatus};

/// The size of a thought's box, and of the gaps between boxes.
const WIDTH: u32 = 220;
const HEIGHT: u32 = 40;
const GAP_X: u32 = 70;
const GAP_Y: u32 = 14;
const MARGIN: u32 = 24;
/// The height of the heading.
const HEAD: u32 = 36;
/// The number of text columns in a box.
const COLUMNS: usize = 32;
/// The maximum number of thoughts in a picture.
const MOST: usize = 3_000;

impl ThoughtStatus {
    /// The colours of a box: fill and border.
    fn colours(self) -> (&'static str, &'static str) {
        match self {
            Self::Waiting => ("#f6f8fa", "#8c959f"),
            Self::Running => ("#ddf4ff", "#0969da"),
            Self::Done => ("#ffffff", "#57606a"),
            Self::Failed => ("#ffebe9", "#cf222e"),
            Self::Skipped => ("#fff8c5", "#9a6700"),
            Self::Kept => ("#ffffff", "#1a7f37"),
            Self::Dropped => ("#f6f8fa", "#d0d7de"),
            Self::Found => ("#dafbe1", "#1a7f37"),
        }
    }
}

impl ThoughtGraph {
    /// The thoughts as an SVG document.
    pub fn svg(&self) -> String {
        let shown = ThoughtGraph { thoughts: self.first(), ..ThoughtGraph::default() };
        let hidden = self.thoughts.len() - shown.thoughts.len() + self.beyond;
        let layers = shown.layers();
        let rows = layers.iter().map(Vec::len).max().unwrap_or_default();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let width =
            (2 * MARGIN + number(layers.len()).saturating_mul(WIDTH + GAP_X)).saturating_sub(GAP_X).max(360);
        let height = 2 * MARGIN + HEAD + number(rows).saturating_mul(HEIGHT + GAP_Y);
        let mut places = vec![(0, 0); shown.thoughts.len()];
        for (column, layer) in layers.iter().enumerate() {
            // Each layer is centred.
            let top = MARGIN + HEAD + number(rows - layer.len()).saturating_mul(HEIGHT + GAP_Y) / 2;
            for (row, at) in layer.iter().enumerate() {
                places[*at] =
                    (MARGIN + number(column) * (WIDTH + GAP_X), top + number(row) * (HEIGHT + GAP_Y));
            }
        }
        let mut svg = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"ui-sans-serif, system-ui, sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{MARGIN}\" y=\"{}\" font-size=\"14\" fill=\"#24292f\">{}</text>\n",
            MARGIN + 8,
            escaped(&self.heading(hidden)),
        );
        for line in shown.lines() {
            shown.push_line(line, &places, &mut svg);
        }
        for (thought, place) in shown.thoughts.iter().zip(&places) {
            push_box(thought, *place, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// The thoughts that fit into a picture.
    fn first(&self) -> Vec<Thought> {
        let mut thoughts: Vec<Thought> = self.thoughts.iter().take(MOST).cloned().collect();
        let count = thoughts.len();
        for thought in &mut thoughts {
            thought.inputs.retain(|input| *input < count);
        }
        thoughts
    }

    fn heading(&self, hidden: usize) -> String {
        let mut text = format!("{} thoughts", self.thoughts.len() + self.beyond);
        let all = [
            ThoughtStatus::Found,
            ThoughtStatus::Kept,
            ThoughtStatus::Done,
            ThoughtStatus::Running,
            ThoughtStatus::Waiting,
            ThoughtStatus::Failed,
            ThoughtStatus::Skipped,
            ThoughtStatus::Dropped,
        ];
        for standing in all {
            match self.thoughts.iter().filter(|thought| thought.standing == standing).count() {
                0 => {}
                n => {
                    let _ = write!(text, " · {n} {}", standing.word());
                }
            }
        }
        if hidden > 0 {
            let _ = write!(text, " · {hidden} not shown");
        }
        text
    }

    fn push_line(&self, line: Line, places: &[(u32, u32)], svg: &mut String) {
        let ((x1, y1), (x2, y2)) = (places[line.from], places[line.to]);
        let (x1, y1, y2) = (x1 + WIDTH, y1 + HEIGHT / 2, y2 + HEIGHT / 2);
        let bend = GAP_X / 2;
        let dropped = self.thoughts[line.to].standing == ThoughtStatus::Dropped;
        let colour = if dropped { "#d0d7de" } else { "#8c959f" };
        let dash = if line.nested { " stroke-dasharray=\"4 3\"" } else { "" };
        let _ = writeln!(
            svg,
            "<path d=\"M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}\" fill=\"none\" stroke=\"{colour}\"{dash}/>",
            x1 + bend,
            x2.saturating_sub(bend),
        );
    }
}

fn push_box(thought: &Thought, (x, y): (u32, u32), svg: &mut String) {
    let (inside, border) = thought.standing.colours();
    let stroke = if thought.standing == ThoughtStatus::Found { 2 } else { 1 };
    let score = thought.score.map(|score| format!("{score:.2}")).unwrap_or_default();
    let (first, second) = if thought.name.is_empty() {
        let text = harmless(&thought.text).replace(['\n', '\t'], " ");
        let first = fit(&text, COLUMNS);
        // The rest continues below.
        let taken = if columns(&text) > COLUMNS {
            first.chars().count().saturating_sub(1)
        } else {
            text.chars().count()
        };
        (text.chars().take(taken).collect(), fit(&text.chars().skip(taken).collect::<String>(), COLUMNS - 5))
    } else {
        (
            fit(&harmless(&thought.name), COLUMNS),
            fit(&harmless(&thought.text).replace(['\n', '\t'], " "), COLUMNS - 5),
        )
    };
    let weight = if thought.name.is_empty() { "" } else { " font-weight=\"600\"" };
    let _ = writeln!(
        svg,
        "<g><title>{}</title>\
         <rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" fill=\"{inside}\" stroke=\"{border}\" stroke-width=\"{stroke}\"/>\
         <text x=\"{}\" y=\"{}\" fill=\"#24292f\"{weight}>{}</text>\
         <text x=\"{}\" y=\"{}\" fill=\"#57606a\">{}</text>\
         <text x=\"{}\" y=\"{}\" fill=\"#57606a\" text-anchor=\"end\">{score}</text></g>",
        escaped(&format!("{} {} ({})", thought.name, thought.text, thought.standing.word())),
        x + 8,
        y + 16,
        escaped(&first),
        x + 8,
        y + 32,
        escaped(&second),
        x + WIDTH - 8,
        y + 32,
    );
}

/// Escapes a text for XML; characters that XML does not allow are dropped.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c => safe.push(c),
        }
    }
    safe.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::super::event::Step;
    use super::*;

    #[test]
    fn the_text_of_a_thought_is_escaped_in_svg() {
        let mut graph = ThoughtGraph::default();
        graph.step(&Step::Expand(vec!["</text><script>alert('x')</script> & \"more\" \u{0}\u{ffff}".into()]));
        let svg = graph.svg();
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"), "{svg}");
        assert!(!svg.contains(['\u{0}', '\u{ffff}']));
        assert_eq!(svg.matches("<g>").count(), 1);
    }

    #[test]
    fn no_two_boxes_lie_on_each_other() {
        let mut graph = ThoughtGraph::default();
        for level in 0..3 {
            graph.step(&Step::Expand((0..100).map(|n| format!("step {level} {n}")).collect()));
            graph.step(&Step::Evaluate { chosen: 7, scores: vec![0.5; 100] });
        }
        let svg = graph.svg();
        let places: std::collections::HashSet<&str> = svg
            .match_indices("<rect x=")
            .map(|(at, _)| svg[at..].split(" width").next().unwrap_or_default())
            .collect();
        assert_eq!((places.len(), svg.matches("<g>").count()), (300, 300));
    }

    #[test]
    fn nothing_at_all_is_a_picture_too() {
        let svg = ThoughtGraph::default().svg();
        assert!(svg.contains("0 thoughts") && svg.ends_with("</svg>\n"));
    }
}
