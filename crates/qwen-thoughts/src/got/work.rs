//! Scheduling of thoughts: which are ready, which are settled, and which can no longer run.

use std::collections::VecDeque;

use super::operate::{Task, select_results};
use super::plan::{Op, Planned};
use super::state::{GotState, Standing, Thought, ThoughtResult};

/// The running graph. Each thought has counters that determine when it is ready, so that settling one does
/// not require a scan of all.
pub(super) struct Work {
    /// The graph, with the current states of the thoughts.
    pub state: GotState,
    scheduling: Vec<Scheduling>,
    ready: VecDeque<usize>,
}

/// The scheduling state of a thought.
#[derive(Default)]
struct Scheduling {
    /// How many thoughts it waits for: its inputs, or those of its nested graph.
    waiting: usize,
    dependants: Vec<usize>,
    children: Vec<usize>,
    /// There was no room for its nested graph.
    stays_whole: bool,
}

impl Work {
    /// Starts from a plan. Thoughts that are already done, because the state was edited, stay done.
    pub fn new(state: &GotState) -> Self {
        let mut work = Self { state: state.clone(), scheduling: Vec::new(), ready: VecDeque::new() };
        for thought in &mut work.state.thoughts {
            if matches!(thought.standing, Standing::Running | Standing::Expanded) {
                thought.standing = Standing::Waiting;
            }
        }
        work.schedule(0);
        work
    }

    /// Computes the scheduling state of the thoughts from `first` on.
    fn schedule(&mut self, first: usize) {
        self.scheduling.resize_with(self.state.thoughts.len(), Scheduling::default);
        for at in first..self.state.thoughts.len() {
            let inputs = self.thought(at).inputs.clone();
            for input in inputs {
                self.scheduling[at].waiting += usize::from(self.thought(input).standing != Standing::Done);
                self.scheduling[input].dependants.push(at);
            }
            if self.scheduling[at].waiting == 0 && self.thought(at).standing == Standing::Waiting {
                self.ready.push_back(at);
            }
        }
    }

    pub fn thought(&self, at: usize) -> &Thought {
        &self.state.thoughts[at]
    }

    /// The first `most` thoughts that are ready. They count as running from here on.
    pub fn take_ready(&mut self, most: usize) -> Vec<Task> {
        let ready: Vec<usize> = self.ready.drain(..most.min(self.ready.len())).collect();
        let tasks = ready.iter().map(|at| self.task(*at)).collect();
        for at in ready {
            self.state.thoughts[at].standing = Standing::Running;
        }
        tasks
    }

    fn task(&self, at: usize) -> Task {
        let thought = self.thought(at).clone();
        let of = |list: &[usize]| list.iter().map(|input| self.thought(*input).clone()).collect::<Vec<_>>();
        let mut inputs = of(&thought.inputs);
        // The first thoughts of a nested graph get the inputs of the thought that was expanded.
        let mut outer = thought.parent;
        while let Some(parent) = outer.filter(|_| inputs.is_empty()) {
            inputs = of(&self.thought(parent).inputs);
            outer = self.thought(parent).parent;
        }
        let maker = (thought.op == Op::Score).then(|| self.maker(at));
        let made_from = maker
            .iter()
            .flat_map(|maker| &maker.inputs)
            .flat_map(|input| select_results(self.thought(*input)));
        Task {
            at,
            made_from: made_from.collect(),
            maker: maker.cloned(),
            parts: (thought.standing == Standing::Expanded).then(|| self.parts(at)),
            may_expand: self.may_expand(at),
            restarted: self.scheduling[at].stays_whole,
            inputs,
            thought,
        }
    }

    /// The thought that made what `at` judges, skipping thoughts that only score or select.
    fn maker(&self, at: usize) -> &Thought {
        let mut maker = self.thought(at);
        while let (false, Some(input)) = (maker.op.makes(), maker.inputs.first()) {
            maker = self.thought(*input);
        }
        maker
    }

    /// The results of a nested graph: those of the thoughts that nothing in it depends on.
    fn parts(&self, at: usize) -> Vec<(String, String)> {
        let last = |child: &&usize| self.scheduling[**child].dependants.is_empty();
        self.scheduling[at]
            .children
            .iter()
            .filter(last)
            .flat_map(|child| select_results(self.thought(*child)))
            .collect()
    }

    /// The thoughts that were started and neither run nor have ended: their nested graphs are unfinished, or
    /// did not fit.
    pub fn open_thoughts(&self) -> Vec<usize> {
        let is_open = |at: &usize| match self.thought(*at).standing {
            Standing::Expanded => true,
            Standing::Waiting => self.scheduling[*at].stays_whole,
            Standing::Running | Standing::Done | Standing::Failed | Standing::Skipped => false,
        };
        (0..self.state.thoughts.len()).filter(is_open).collect()
    }

    /// The maximum size of a nested graph for this thought; `None` if it may not be expanded.
    fn may_expand(&self, at: usize) -> Option<usize> {
        let (options, thought) = (&self.state.options, self.thought(at));
        let mut depth = 0;
        let mut outer = thought.parent;
        while let Some(parent) = outer {
            depth += 1;
            outer = self.thought(parent).parent;
        }
        let room = options.max_nodes.saturating_sub(self.state.thoughts.len());
        let whole = thought.standing == Standing::Waiting && !self.scheduling[at].stays_whole;
        let allowed = options.adaptive && thought.op == Op::Generate && whole && depth <= options.max_depth;
        (allowed && room > 0).then_some(room)
    }

    /// Adds a nested graph and returns its numbers of thoughts and edges. `None` if other thoughts used up
    /// the room in the meantime; then the thought runs unexpanded.
    pub fn expand(&mut self, at: usize, planned: Vec<Planned>) -> Option<(u64, u64)> {
        let offset = self.state.thoughts.len();
        if offset + planned.len() > self.state.options.max_nodes {
            self.state.thoughts[at].standing = Standing::Waiting;
            self.scheduling[at].stays_whole = true;
            self.ready.push_back(at);
            return None;
        }
        let name = self.thought(at).id.clone();
        let nodes = planned.len();
        // Thoughts without inputs depend on the expanded thought.
        let edges = planned.iter().map(|node| node.inputs.len().max(1) as u64).sum();
        let children = planned.into_iter().map(|node| Thought::from_plan(node, offset, Some((at, &name))));
        self.state.thoughts.extend(children);
        self.state.thoughts[at].standing = Standing::Expanded;
        self.scheduling[at].waiting = nodes;
        self.scheduling[at].children = (offset..offset + nodes).collect();
        self.schedule(offset);
        Some((nodes as u64, edges))
    }

    pub fn done(&mut self, at: usize, results: Vec<ThoughtResult>) {
        let thought = &mut self.state.thoughts[at];
        thought.standing = Standing::Done;
        thought.results = results;
        let outer = thought.parent.filter(|parent| self.thought(*parent).standing == Standing::Expanded);
        let waiting = self.scheduling[at].dependants.clone();
        let waiting = waiting.into_iter().filter(|place| self.thought(*place).standing == Standing::Waiting);
        for place in waiting.chain(outer).collect::<Vec<_>>() {
            self.scheduling[place].waiting -= 1;
            if self.scheduling[place].waiting == 0 {
                self.ready.push_back(place);
            }
        }
    }

    /// Marks a thought as failed, and returns the thoughts that cannot run because of it, with the reason.
    pub fn fail(&mut self, at: usize, error: String) -> Vec<(usize, String)> {
        self.state.thoughts[at].error = Some(error);
        self.state.thoughts[at].standing = Standing::Failed;
        let mut skipped = Vec::new();
        let mut broken = vec![at];
        while let Some(cause) = broken.pop() {
            let why = format!("skipped: it needs '{}'", self.thought(cause).id);
            // The thoughts that depend on it, and the thought whose nested graph contains it.
            let outer = self.thought(cause).parent;
            for place in self.scheduling[cause].dependants.clone().into_iter().chain(outer) {
                let thought = &mut self.state.thoughts[place];
                if matches!(thought.standing, Standing::Waiting | Standing::Expanded) {
                    thought.standing = Standing::Skipped;
                    thought.error = Some(why.clone());
                    skipped.push((place, why.clone()));
                    broken.push(place);
                }
            }
        }
        skipped
    }
}

#[cfg(test)]
mod tests {
    use super::super::GotOptions;
    use super::super::plan::{Bounds, read};
    use super::*;

    fn work(nodes: &str, options: GotOptions) -> Work {
        let plan = read(&format!("{{\"nodes\":[{nodes}]}}"), Bounds { nodes: 100, layers: None }).unwrap();
        let thoughts = plan.into_iter().map(|node| Thought::from_plan(node, 0, None)).collect();
        Work::new(&GotState { options, thoughts, ..GotState::default() })
    }

    fn ids(tasks: &[Task]) -> Vec<&str> {
        tasks.iter().map(|task| task.thought.id.as_str()).collect()
    }

    fn made(text: &str) -> Vec<ThoughtResult> {
        vec![ThoughtResult { text: text.into(), score: None }]
    }

    const DIAMOND: &str = r#"{"id":"a","op":"generate"},{"id":"b","op":"generate","inputs":["a"]},
        {"id":"c","op":"generate","inputs":["a"]},{"id":"d","op":"aggregate","inputs":["b","c"]},{"id":"e","op":"generate"}"#;

    #[test]
    fn a_thought_is_ready_when_all_that_it_needs_is_done() {
        let mut work = work(DIAMOND, GotOptions::default());
        assert_eq!(ids(&work.take_ready(1)), ["a"]);
        assert_eq!(ids(&work.take_ready(usize::MAX)), ["e"]);
        assert!(work.take_ready(usize::MAX).is_empty());
        work.done(0, made("x"));
        assert_eq!(ids(&work.take_ready(usize::MAX)), ["b", "c"]);
        work.done(2, made("C"));
        assert!(work.take_ready(usize::MAX).is_empty());
        work.done(1, made("B"));
        let last = work.take_ready(usize::MAX);
        assert_eq!(ids(&last), ["d"]);
        let seen: Vec<&str> = last[0].inputs.iter().map(|input| &*input.results[0].text).collect();
        assert_eq!(seen, ["B", "C"]);
    }

    #[test]
    fn a_failure_skips_what_depends_on_it_and_nothing_else() {
        let mut work = work(DIAMOND, GotOptions::default());
        work.take_ready(usize::MAX);
        work.done(0, made("x"));
        work.take_ready(usize::MAX);
        let skipped = work.fail(1, "broken".into());
        assert_eq!(skipped, [(3, "skipped: it needs 'b'".to_owned())]);
        assert_eq!(work.thought(2).standing, Standing::Running);
        assert_eq!(work.thought(4).standing, Standing::Running);
        work.done(2, made("C"));
        assert!(work.take_ready(usize::MAX).is_empty());
    }

    #[test]
    fn a_nested_graph_comes_back_to_its_thought_and_heeds_the_room() {
        let options = GotOptions { adaptive: true, max_nodes: 4, ..GotOptions::default() };
        let mut work = work(r#"{"id":"r","op":"generate"}"#, options);
        assert_eq!(work.take_ready(usize::MAX)[0].may_expand, Some(3));
        let nested = || {
            let plan = r#"{"nodes":[{"id":"x","op":"generate"},{"id":"y","op":"generate"}]}"#;
            read(plan, Bounds { nodes: 9, layers: None }).unwrap()
        };
        assert_eq!(work.expand(0, nested()), Some((2, 2)));
        let children = work.take_ready(usize::MAX);
        assert_eq!(ids(&children), ["r/x", "r/y"]);
        assert_eq!(children[0].may_expand, Some(1));
        assert_eq!(work.expand(1, nested()), None);
        let again = work.take_ready(usize::MAX);
        assert_eq!((ids(&again), again[0].may_expand), (vec!["r/x"], None));
        work.done(1, made("X"));
        work.done(2, made("Y"));
        let back = work.take_ready(usize::MAX);
        let parts = vec![("r/x".to_owned(), "X".to_owned()), ("r/y".to_owned(), "Y".to_owned())];
        assert_eq!((ids(&back), &back[0].parts), (vec!["r"], &Some(parts)));
    }
}
