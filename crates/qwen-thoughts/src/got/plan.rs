//! Parses and validates a plan that the model wrote: named operations and their dependencies.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// The operation of a thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Op {
    /// Makes k attempts.
    Generate,
    /// Scores the results of another thought.
    Score,
    /// Keeps the n best.
    KeepBest,
    /// Combines several results into one, k times.
    Aggregate,
    /// Tries n times to improve a result.
    Improve,
}

impl Op {
    pub fn name(self) -> &'static str {
        match self {
            Self::Generate => "generate",
            Self::Score => "score",
            Self::KeepBest => "keep_best",
            Self::Aggregate => "aggregate",
            Self::Improve => "improve",
        }
    }

    fn read(word: &str) -> Option<Self> {
        let all = [Self::Generate, Self::Score, Self::KeepBest, Self::Aggregate, Self::Improve];
        all.into_iter().find(|op| op.name() == word)
    }

    /// True if it produces new results, and so forms a layer.
    pub fn makes(self) -> bool {
        matches!(self, Self::Generate | Self::Aggregate | Self::Improve)
    }
}

/// One thought of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    pub id: String,
    pub op: Op,
    pub instruction: String,
    pub count: usize,
    /// The indexes of the thoughts that it depends on.
    pub inputs: Vec<usize>,
}

/// The limits of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub nodes: usize,
    /// The maximum number of layers, and of thoughts per layer.
    pub layers: Option<(usize, usize)>,
}

/// The maximum length of a thought's name.
const LONGEST_ID: usize = 64;
/// The maximum number of attempts of one thought.
pub(crate) const MOST_TRIES: usize = 32;

#[derive(Deserialize)]
struct PlanForm {
    nodes: Vec<NodeForm>,
}

#[derive(Deserialize)]
struct NodeForm {
    id: String,
    op: String,
    #[serde(default)]
    instruction: String,
    #[serde(default, alias = "n")]
    k: Option<u64>,
    #[serde(default, alias = "depends_on")]
    inputs: Vec<String>,
}

/// Parses a plan from an answer, which may contain other text or a code fence around it. The error message is
/// suitable for the model.
pub(crate) fn read(answer: &str, bounds: Bounds) -> Result<Vec<Planned>, String> {
    let json = answer.find('{').zip(answer.rfind('}')).and_then(|(from, to)| answer.get(from..=to));
    let json = json.ok_or("there is no JSON object in it")?;
    let form: PlanForm =
        serde_json::from_str(json).map_err(|error| format!("it is not in the right form: {error}"))?;
    let plan = resolve(form.nodes, bounds)?;
    check_order(&plan)?;
    if let Some((layers, wide)) = bounds.layers {
        check_layers(&plan, layers, wide)?;
    }
    Ok(plan)
}

fn resolve(nodes: Vec<NodeForm>, bounds: Bounds) -> Result<Vec<Planned>, String> {
    if nodes.is_empty() {
        return Err("it has no thoughts".to_owned());
    }
    if nodes.len() > bounds.nodes {
        return Err(format!("it has {} thoughts; {} are allowed", nodes.len(), bounds.nodes));
    }
    let mut places = HashMap::new();
    for (place, node) in nodes.iter().enumerate() {
        let sound = (1..=LONGEST_ID).contains(&node.id.len())
            && !node.id.contains(|c: char| c.is_control() || c == '/');
        if !sound {
            return Err(format!("'{}' is not a valid name of a thought", crate::thinking::summary(&node.id)));
        }
        if places.insert(node.id.clone(), place).is_some() {
            return Err(format!("two thoughts are called '{}'", node.id));
        }
    }
    nodes.into_iter().map(|node| planned(node, &places)).collect()
}

fn planned(node: NodeForm, places: &HashMap<String, usize>) -> Result<Planned, String> {
    let NodeForm { id, op, instruction, k, inputs } = node;
    let op = Op::read(&op).ok_or_else(|| {
        let op = crate::thinking::summary(&op);
        format!("'{id}' has the operation '{op}'; the operations are generate, score, keep_best, aggregate and improve")
    })?;
    let mut found: Vec<usize> = Vec::with_capacity(inputs.len());
    for input in inputs {
        let place = *places.get(&input).ok_or_else(|| {
            format!("'{id}' needs '{}', which is not in it", crate::thinking::summary(&input))
        })?;
        if !found.contains(&place) {
            found.push(place);
        }
    }
    if found.is_empty() && op != Op::Generate {
        return Err(format!("'{id}' is to {} and has no inputs", op.name()));
    }
    let count = k.map_or(1, |k| usize::try_from(k).unwrap_or(usize::MAX));
    if !(1..=MOST_TRIES).contains(&count) {
        return Err(format!("'{id}' has {count} tries; 1 to {MOST_TRIES} are allowed"));
    }
    Ok(Planned { id, op, instruction, count, inputs: found })
}

/// The layer of each thought; `None` if the dependencies have a cycle.
fn layers(plan: &[Planned]) -> Option<Vec<usize>> {
    let order = order(plan, |node| &node.inputs)?;
    let mut layer: Vec<usize> = vec![0; plan.len()];
    for place in order {
        let below = plan[place].inputs.iter().map(|input| layer[*input]).max().unwrap_or_default();
        layer[place] = below + usize::from(plan[place].op.makes());
    }
    Some(layer)
}

/// A topological order of the thoughts; `None` if the dependencies have a cycle.
pub(super) fn order<T>(thoughts: &[T], inputs: impl Fn(&T) -> &[usize]) -> Option<Vec<usize>> {
    let mut waiting: Vec<usize> = thoughts.iter().map(|thought| inputs(thought).len()).collect();
    let mut dependants = vec![Vec::new(); thoughts.len()];
    for (place, thought) in thoughts.iter().enumerate() {
        for input in inputs(thought) {
            dependants[*input].push(place);
        }
    }
    let mut ready: Vec<usize> = (0..thoughts.len()).filter(|place| waiting[*place] == 0).collect();
    let mut next = 0;
    while next < ready.len() {
        for &dependant in &dependants[ready[next]] {
            waiting[dependant] -= 1;
            if waiting[dependant] == 0 {
                ready.push(dependant);
            }
        }
        next += 1;
    }
    (ready.len() == thoughts.len()).then_some(ready)
}

fn check_order(plan: &[Planned]) -> Result<(), String> {
    match order(plan, |node| &node.inputs) {
        Some(_) => Ok(()),
        None => Err("some of its thoughts depend on each other in a cycle".to_owned()),
    }
}

fn check_layers(plan: &[Planned], most: usize, wide: usize) -> Result<(), String> {
    let layer = layers(plan).unwrap_or_default();
    let deepest = layer.iter().copied().max().unwrap_or_default();
    if deepest > most {
        return Err(format!("it has {deepest} layers; {most} are allowed"));
    }
    for n in 1..=deepest {
        let count = layer.iter().zip(plan).filter(|(at, node)| **at == n && node.op.makes()).count();
        if count > wide {
            return Err(format!("a layer has {count} thoughts; {wide} are allowed"));
        }
    }
    Ok(())
}

/// A plan with a single thought.
pub(crate) fn single(id: &str, instruction: &str) -> Vec<Planned> {
    let (id, instruction) = (id.to_owned(), instruction.to_owned());
    vec![Planned { id, op: Op::Generate, instruction, count: 1, inputs: Vec::new() }]
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { nodes: 10, layers: None };

    fn error(nodes: &str) -> String {
        read(&format!("{{\"nodes\":[{nodes}]}}"), BOUNDS).unwrap_err()
    }

    #[test]
    fn a_plan_is_read_through_words_and_fences() {
        let answer = "Here it is:\n```json\n{\"nodes\":[{\"id\":\"a\",\"op\":\"generate\",\"k\":3},\
                      {\"id\":\"b\",\"op\":\"keep_best\",\"n\":1,\"inputs\":[\"a\",\"a\"],\"why\":1}]}\n```\nDone.";
        let plan = read(answer, BOUNDS).unwrap();
        assert_eq!((plan[0].count, plan[1].op, plan[1].inputs.as_slice()), (3, Op::KeepBest, &[0][..]));
    }

    #[test]
    fn a_plan_that_cannot_work_is_refused_with_the_reason() {
        for (nodes, why) in [
            ("", "no thoughts"),
            (r#"{"id":"a","op":"guess"}"#, "'a' has the operation 'guess'"),
            (r#"{"id":"a","op":"generate","inputs":["b"]}"#, "'a' needs 'b', which is not in it"),
            (r#"{"id":"a","op":"generate"},{"id":"a","op":"generate"}"#, "two thoughts are called 'a'"),
            (r#"{"id":"a","op":"score"}"#, "'a' is to score and has no inputs"),
            (r#"{"id":"","op":"generate"}"#, "is not a valid name of a thought"),
            (r#"{"id":"a","op":"generate","k":0}"#, "has 0 tries"),
            (r#"{"id":"a","op":"generate","k":1000000}"#, "has 1000000 tries"),
            (r#"{"id":"a","op":"improve","inputs":["a"]}"#, "in a cycle"),
            (
                r#"{"id":"a","op":"improve","inputs":["b"]},{"id":"b","op":"improve","inputs":["a"]}"#,
                "in a cycle",
            ),
        ] {
            assert!(error(nodes).contains(why), "{nodes}: {}", error(nodes));
        }
        assert!(read("I would rather not.", BOUNDS).unwrap_err().contains("no JSON object"));
        assert!(read("{\"nodes\": 7}", BOUNDS).unwrap_err().contains("not in the right form"));
    }

    #[test]
    fn ten_thousand_thoughts_are_too_many() {
        let nodes: Vec<String> = (0..10_000).map(|n| format!(r#"{{"id":"n{n}","op":"generate"}}"#)).collect();
        assert_eq!(error(&nodes.join(",")), "it has 10000 thoughts; 10 are allowed");
    }

    #[test]
    fn a_nested_plan_is_held_to_its_layers() {
        let read = |nodes: &str| {
            read(&format!("{{\"nodes\":[{nodes}]}}"), Bounds { nodes: 10, layers: Some((2, 2)) })
        };
        let a = r#"{"id":"a","op":"generate"},{"id":"b","op":"generate"}"#;
        let c = r#"{"id":"c","op":"aggregate","inputs":["a","b"]}"#;
        let scored = r#"{"id":"s","op":"score","inputs":["c"]},{"id":"k","op":"keep_best","inputs":["s"]}"#;
        assert!(read(&format!("{a},{c},{scored}")).is_ok());
        let more = r#"{"id":"i","op":"improve","inputs":["k"]}"#;
        assert!(read(&format!("{a},{c},{scored},{more}")).unwrap_err().contains("3 layers"));
        assert!(
            read(&format!("{a},{{\"id\":\"x\",\"op\":\"generate\"}}")).unwrap_err().contains("3 thoughts")
        );
    }
}
