//! A property: however readers and servers are cut, the joined stream equals the uncut one.

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, gate, sse};

use crate::harness::*;

/// Pseudorandom numbers that a failure can be repeated with.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// True for turns that never end by themselves: the server is killed in them.
fn is_held(turn: u64) -> bool {
    turn % 3 == 2
}

#[test]
fn readers_cut_anywhere_and_servers_restarted_or_killed_give_the_uncut_stream() {
    const TURNS: u64 = 8;
    for seed in [1, 2, 3] {
        let mut random = Random(seed);
        let pieces = |turn: u64| {
            let texts = (0..20).map(move |at| sse::text(&format!("{turn}.{at} ")));
            let held = is_held(turn).then(|| gate("never"));
            let end = [sse::finish("stop"), sse::done()];
            Reply::new([sse::role()].into_iter().chain(texts).chain(held).chain(end))
        };
        let mock = MockModel::with((0..TURNS).map(pieces));
        let program = program(&mock);
        let mut server = start(&program);
        let id = server.session();
        let mut joined: Vec<Event> = Vec::new();
        for turn in 0..TURNS {
            let (_, after) = server.prompt(&id, &format!("turn {turn}"));
            // Some readers are cut within the turn, and continue with their last number.
            for _ in 0..random.below(4) {
                let mut reader = server.follow(&id, joined.last().map_or(0, Event::number));
                // A turn that is held has fewer events to wait for.
                for _ in 0..random.below(if is_held(turn) { 6 } else { 12 }) {
                    let event = reader.next().unwrap();
                    let is_end = event.number() > after && is_end(&event);
                    joined.push(event);
                    if is_end {
                        break;
                    }
                }
            }
            if is_held(turn) {
                server.run.signal(Signal::KILL);
                server.run.wait();
                server = start(&program);
            }
            let has_ended = joined.last().is_some_and(|event| event.number() > after && is_end(event));
            if !has_ended {
                let mut reader = server.follow(&id, joined.last().map_or(0, Event::number));
                joined.extend(reader.until(|event| event.number() > after && is_end(event)));
            }
            match random.below(3) {
                0 => {
                    server.run.signal(Signal::TERM);
                    server.run.wait();
                    server = start(&program);
                }
                1 => {
                    server.run.signal(Signal::KILL);
                    server.run.wait();
                    server = start(&program);
                }
                _ => {}
            }
        }
        let last = joined.last().unwrap().number();
        let uncut = server.follow(&id, 0).until(|event| event.number() == last);
        assert_eq!(joined, uncut, "seed {seed}");
        let numbers = joined.iter().map(Event::number);
        assert!(numbers.eq(1..=last), "seed {seed}");
        let ends: Vec<String> = joined
            .iter()
            .filter(|event| is_end(event))
            .map(|end| status(std::slice::from_ref(end)))
            .collect();
        let expected = (0..TURNS).map(|turn| if is_held(turn) { "interrupted" } else { "done" });
        assert!(ends.iter().eq(expected), "seed {seed}: {ends:?}");
    }
}
