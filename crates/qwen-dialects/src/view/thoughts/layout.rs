//! The layout of a graph of thoughts: in layers, each thought after all that it builds on.

use super::ThoughtGraph;

/// An edge between two thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if it leads into a nested graph.
    pub(super) nested: bool,
}

/// The number of passes that improve the order within layers.
const SWEEPS: usize = 4;

impl ThoughtGraph {
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for (to, thought) in self.thoughts.iter().enumerate() {
            lines.extend(thought.inputs.iter().map(|from| Line { from: *from, to, nested: false }));
            if let (Some(from), true) = (thought.parent, thought.inputs.is_empty()) {
                lines.push(Line { from, to, nested: true });
            }
        }
        lines
    }

    /// The thoughts by layer, in an order that makes edges short. Thoughts in a cycle, which only an
    /// invalid stream has, are in the first layer.
    pub(super) fn layers(&self) -> Vec<Vec<usize>> {
        let count = self.thoughts.len();
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
        for line in self.lines() {
            before[line.to].push(line.from);
        }
        // A thought comes after the complete nested graph of the thought it builds on.
        for (at, thought) in self.thoughts.iter().enumerate() {
            if let Some(parent) = thought.parent {
                let users = (0..count).filter(|user| self.thoughts[*user].inputs.contains(&parent));
                for user in users.collect::<Vec<_>>() {
                    before[user].push(at);
                }
            }
        }
        let mut layers: Vec<Vec<usize>> = Vec::new();
        for (at, layer) in depths(&before).into_iter().enumerate() {
            if layers.len() <= layer {
                layers.resize_with(layer + 1, Vec::new);
            }
            layers[layer].push(at);
        }
        let mut place = vec![0.0; count];
        for _ in 0..SWEEPS {
            for layer in &mut layers {
                let wish = |at: &usize| match before[*at].as_slice() {
                    [] => place[*at],
                    from => from.iter().map(|from| place[*from]).sum::<f64>() / count_of(from),
                };
                let mut wishes: Vec<(f64, usize)> = layer.iter().map(|at| (wish(at), *at)).collect();
                wishes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let middle = count_of(&wishes) / 2.0;
                for (row, (_, at)) in (0_u32..).zip(&wishes) {
                    place[*at] = f64::from(row) - middle;
                }
                *layer = wishes.into_iter().map(|(_, at)| at).collect();
            }
        }
        layers
    }
}

/// The length of a list as a float.
fn count_of<T>(list: &[T]) -> f64 {
    f64::from(u32::try_from(list.len()).unwrap_or(u32::MAX))
}

/// The longest chain of predecessors of each thought.
fn depths(before: &[Vec<usize>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for (at, others) in before.iter().enumerate() {
        for other in others {
            behind[*other].push(at);
        }
    }
    let mut depth = vec![0; before.len()];
    let mut ready: Vec<usize> = (0..before.len()).filter(|at| waiting[*at] == 0).collect();
    while let Some(at) = ready.pop() {
        for &next in &behind[at] {
            depth[next] = depth[next].max(depth[at] + 1);
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(next);
            }
        }
    }
    depth.iter().zip(waiting).map(|(depth, waiting)| if waiting == 0 { *depth } else { 0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Thought;
    use super::*;

    fn graph(inputs: &[(&[usize], Option<usize>)]) -> ThoughtGraph {
        let thought = |(inputs, parent): &(&[usize], Option<usize>)| Thought {
            inputs: inputs.to_vec(),
            parent: *parent,
            ..Thought::default()
        };
        ThoughtGraph { thoughts: inputs.iter().map(thought).collect(), ..ThoughtGraph::default() }
    }

    #[test]
    fn a_thought_stands_behind_all_that_it_builds_on() {
        let diamond = graph(&[(&[], None), (&[0], None), (&[0], None), (&[1, 2], None)]);
        assert_eq!(diamond.layers(), [vec![0], vec![1, 2], vec![3]]);
        let nested = graph(&[(&[], None), (&[0], None), (&[], Some(0)), (&[2], Some(0))]);
        assert_eq!(nested.layers(), [vec![0], vec![2], vec![3], vec![1]]);
    }

    #[test]
    fn a_circle_ends_too() {
        let circle = graph(&[(&[1], None), (&[0], None)]);
        assert_eq!(circle.layers().concat().len(), 2);
    }
}
