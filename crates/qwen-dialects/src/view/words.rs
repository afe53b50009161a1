//! Parses the steps of a search from prose, for dialects that have no events for them.

use super::event::Step;

/// The step in a sentence, as `claude` and `claude-lite` write it.
pub(super) fn of_sentence(text: &str) -> Option<Step> {
    let text = text.trim_end_matches('\n');
    if let Some(rest) = text.strip_prefix("Proposed ") {
        let (_, list) = rest.split_once(" candidates: ")?;
        return Some(Step::Expand(list.split(" | ").map(str::to_owned).collect()));
    }
    if let Some(rest) = text.strip_prefix("Scored the candidates (") {
        let (scores, rest) = rest.split_once("); candidate ")?;
        let chosen = rest.strip_suffix(" is the best")?.parse().ok()?;
        return Some(Step::Evaluate { chosen, scores: numbers(scores)? });
    }
    if let Some(rest) = text.strip_prefix("Went back to depth ") {
        let (depth, reason) = rest.split_once(": ")?;
        return Some(Step::Backtrack { reason: reason.to_owned(), to_depth: depth.parse().ok()? });
    }
    if let Some(rest) = text.strip_prefix("Planned ") {
        let (counts, ids) = rest.split_once(" edges: ")?;
        let edges = counts.rsplit_once(' ')?.1.parse().ok()?;
        return Some(Step::Plan { ids: ids.split(", ").map(str::to_owned).collect(), edges });
    }
    if let Some(id) = text.strip_prefix("Started thought ") {
        return Some(Step::Start(id.to_owned()));
    }
    if let Some(rest) = text.strip_prefix("Finished thought ") {
        let (id, summary) = rest.split_once(": ")?;
        return Some(Step::Done(id.to_owned(), summary.to_owned()));
    }
    let rest = text.strip_prefix("Thought ")?;
    if let Some((id, error)) = rest.split_once(" failed: ") {
        return Some(Step::Failed(id.to_owned(), error.to_owned()));
    }
    let (id, grown) = rest.split_once(" opened a graph of ")?;
    Some(Step::Grow(id.to_owned(), grown.split_once(' ')?.0.parse().ok()?))
}

/// The step in a thought, as `qwen` and `core` write it.
pub(super) fn of_thought(subject: &str, description: &str) -> Option<Step> {
    if let Some(id) = subject.strip_prefix("Starting thought ") {
        return Some(Step::Start(id.to_owned()));
    }
    if let Some(id) = subject.strip_prefix("Completed thought ") {
        return Some(Step::Done(id.to_owned(), description.to_owned()));
    }
    if let Some(id) = subject.strip_prefix("Failed thought ") {
        return Some(Step::Failed(id.to_owned(), description.to_owned()));
    }
    if let Some(id) = subject.strip_prefix("Expanding thought ") {
        let added = description.strip_prefix("Added ")?.split_once(' ')?.0;
        return Some(Step::Grow(id.to_owned(), added.parse().ok()?));
    }
    if let Some(depth) = subject.strip_prefix("Backtracking to depth ") {
        return Some(Step::Backtrack { reason: description.to_owned(), to_depth: depth.parse().ok()? });
    }
    if subject.starts_with("Evaluating ") {
        let (chosen, scores) = description.strip_prefix("Chose candidate ")?.split_once("; scores: ")?;
        return Some(Step::Evaluate { chosen: chosen.parse().ok()?, scores: numbers(scores)? });
    }
    if subject.starts_with("Planning ") {
        let (ids, edges) = description.rsplit_once("; ")?;
        let edges = edges.strip_suffix(" edges")?.parse().ok()?;
        return Some(Step::Plan { ids: ids.split(", ").map(str::to_owned).collect(), edges });
    }
    let counted = subject.strip_prefix("Expanding ")?.split_once(' ')?;
    let is_count = counted.0.parse::<u64>().is_ok() && counted.1.starts_with("candidate");
    is_count.then(|| Step::Expand(description.lines().map(str::to_owned).collect()))
}

fn numbers(list: &str) -> Option<Vec<f64>> {
    list.split(", ").filter(|number| !number.is_empty()).map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use qwen_events::Thinking;

    use super::*;
    use crate::claude::sentence;
    use crate::qwen::thought::Thought;

    #[test]
    fn formatted_values_can_be_parsed_again() {
        let steps = [
            Thinking::TotExpand { candidates: vec!["4 + 9 = 13".into(), "10 - 4: 6".into()] },
            Thinking::TotEvaluate { chosen: 1, scores: vec![0.25, 0.5] },
            Thinking::TotBacktrack { reason: "below: the threshold".into(), to_depth: 2 },
            Thinking::GotPlan { node_ids: vec!["a".into(), "b c".into()], edge_count: 1 },
            Thinking::GotNodeStart { id: "a/b".into() },
            Thinking::GotNodeComplete { id: "a".into(), result_summary: "x: y [0.50]".into() },
            Thinking::GotNodeFailed { id: "a".into(), error: "it failed: badly".into() },
            Thinking::GotExpand { id: "a".into(), nodes_added: 3, edges_added: 4 },
        ];
        for step in &steps {
            let expected = Some(Step::from(step));
            assert_eq!(of_sentence(&sentence(step)), expected, "{step:?}");
            let thought = Thought::of_step(step);
            assert_eq!(of_thought(&thought.subject, &thought.description), expected, "{step:?}");
        }
        for words in ["Thinking about it", "Planned nothing", "Expanding on this", ""] {
            assert_eq!((of_sentence(words), of_thought(words, "x")), (None, None), "{words}");
        }
    }
}
