//! A model-based property test of the router and the worker pool: thousands of schedules in simulated time,
//! with the production code and without a process. Workers are simulated by what they write; the store is the
//! in-memory one, shared by two kernels.
#![expect(clippy::unwrap_used, reason = "what the test does may fail as it does")]

mod simulation;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use qwen_events::SessionId;
use qwen_kernel::store::{Events, MemoryEvents, Read, SessionLog};
use serde_json::Value;

use self::simulation::{Kernel, Step, limits};

#[derive(Debug, Clone)]
enum Op {
    Prompt { session: u8, safe: bool },
    Cancel { session: u8 },
    Close { session: u8 },
    Worker { which: usize, step: Step },
    Wait { ms: u64 },
    LoseAcknowledgements { count: u32 },
}

fn op() -> impl Strategy<Value = Op> {
    let step = prop_oneof![8 => Just(Step::Advance), 2 => Just(Step::Ask), 1 => Just(Step::Stall), 2 => Just(Step::Crash), 1 => Just(Step::CrashBetween)];
    prop_oneof![
        5 => (0_u8..5, any::<bool>()).prop_map(|(session, safe)| Op::Prompt { session, safe }),
        1 => (0_u8..5).prop_map(|session| Op::Cancel { session }),
        1 => (0_u8..5).prop_map(|session| Op::Close { session }),
        12 => (0_usize..4, step).prop_map(|(which, step)| Op::Worker { which, step }),
        3 => (1_u64..4000).prop_map(|ms| Op::Wait { ms }),
        1 => (1_u32..4).prop_map(|count| Op::LoseAcknowledgements { count }),
    ]
}

fn run(ops: &[Op], numbered: bool, ends_with_drain: bool) -> Result<(), TestCaseError> {
    let store = MemoryEvents::new(1 << 20);
    let mut now = Duration::from_secs(1);
    let mut kernel = Kernel::new(&store, &Default::default(), numbered, now);
    let mut prompts: BTreeSet<String> = BTreeSet::new();
    for (n, op) in ops.iter().enumerate() {
        now += Duration::from_millis(7);
        match op {
            Op::Prompt { session, safe } => {
                let id = format!("p{n}");
                let retry = if *safe { r#","retry":"safe""# } else { "" };
                let tenant = session % 2;
                kernel.line(&format!(r#"{{"session_id":"s{session}","prompt_id":"{id}","tenant":"t{tenant}"{retry},"input":{{"parts":[]}}}}"#), now);
                prompts.insert(id);
            }
            Op::Cancel { session } => {
                kernel.line(&format!(r#"{{"type":"control/cancel","session_id":"s{session}"}}"#), now);
            }
            Op::Close { session } => {
                kernel.line(&format!(r#"{{"type":"control_request","request_id":"c{n}","subtype":"close","session_id":"s{session}"}}"#), now);
                kernel.line(&format!(r#"{{"type":"control_request","request_id":"o{n}","subtype":"open","session_id":"s{session}","tenant":"t{}"}}"#, session % 2), now);
            }
            Op::Worker { which, step } => kernel.step(*which, *step, now),
            Op::Wait { ms } => {
                // Lost acknowledgements are asked about again in time; a store that seems to fail for seconds
                // costs the numbers, on purpose.
                let steps = if *kernel.lossy.borrow() > 0 { ms.div_ceil(250) } else { 1 };
                for _ in 0..steps {
                    now += Duration::from_millis(ms / steps);
                    kernel.router.tick(now);
                    kernel.apply();
                }
            }
            Op::LoseAcknowledgements { count } => *kernel.lossy.borrow_mut() = *count,
        }
        prop_assert!(kernel.router.pool().workers().count() <= limits().max_workers, "too many workers");
    }
    if ends_with_drain {
        kernel.router.drain(now, 143);
    } else {
        kernel.router.client_eof(now);
    }
    kernel.apply();
    kernel.settle(&mut now);
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    for line in &kernel.seen {
        if line["metadata"]["turn"].is_object() {
            *ends.entry(line["prompt_id"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    let refused: usize = kernel
        .seen
        .iter()
        .filter(|line| line["metadata"]["error"].is_object() && line["metadata"]["turn"].is_null())
        .count();
    for prompt in &prompts {
        let count = ends.get(prompt).copied().unwrap_or(0);
        prop_assert!(count <= 1, "{prompt} ended {count} times: {:#?}", kernel.seen);
    }
    let missing = prompts.iter().filter(|prompt| !ends.contains_key(*prompt)).count();
    prop_assert!(
        missing <= refused,
        "{missing} prompts have no end and {refused} were refused: {:#?}",
        kernel.seen
    );
    let left: Vec<_> = kernel
        .router
        .pool()
        .workers()
        .map(|worker| {
            (worker.id, worker.stage, worker.bound, worker.busy, kernel.router.session_of(worker.id))
        })
        .collect();
    prop_assert!(kernel.exit.is_some(), "the kernel never ended: {left:?} {}", kernel.router.status());
    prop_assert_eq!(kernel.router.pool().workers().count(), 0, "a slot leaked");
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    for line in &kernel.seen {
        if let (Some(session), Some(seq)) = (line["session_id"].as_str(), line["seq"].as_u64()) {
            let last = numbers.entry(session).or_default();
            prop_assert_eq!(seq, *last + 1, "a gap or a repeat in {}", session);
            *last = seq;
        }
    }
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for line in &kernel.seen {
        let id = line["request_id"].as_str().unwrap_or_default();
        match line["type"].as_str() {
            Some("control_request") => prop_assert!(open.insert(id), "{} was asked twice", id),
            Some("control_cancel_request") => {
                prop_assert!(open.remove(id), "{} was withdrawn and never asked", id);
            }
            _ => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_prompt_ends_once_and_nothing_leaks(ops in prop::collection::vec(op(), 1..60), drain in any::<bool>()) {
        run(&ops, false, drain)?;
    }

    #[test]
    fn numbers_have_no_gap_and_no_repeat(ops in prop::collection::vec(op(), 1..60), drain in any::<bool>()) {
        run(&ops, true, drain)?;
    }

    /// Two kernels on one store: whatever the order, a line that a client saw under a number is what the
    /// store has there, and numbers are given out once.
    #[test]
    fn two_owners_never_give_out_the_same_number(turns in prop::collection::vec((0_usize..2, 0_u8..3, 1_u32..3, 0_u32..3, any::<bool>()), 1..30)) {
        let store = MemoryEvents::new(1 << 20);
        let mut now = Duration::from_secs(1);
        let logs = Default::default();
        let mut kernels = [Kernel::new(&store, &logs, true, now), Kernel::new(&store, &logs, true, now)];
        for (n, (which, lost, steps, delays, deliver)) in turns.iter().enumerate() {
            now += Duration::from_millis(60);
            let kernel = &mut kernels[*which];
            *kernel.lossy.borrow_mut() = u32::from(*lost);
            kernel.delays = *delays;
            kernel.line(&format!(r#"{{"session_id":"s","prompt_id":"p{n}","input":{{"parts":[]}}}}"#), now);
            for kernel in &mut kernels {
                kernel.router.tick(now);
                kernel.apply();
                for worker in 0..*steps {
                    kernel.step(worker as usize, Step::Advance, now);
                }
                if *deliver {
                    kernel.deliver_late();
                }
            }
        }
        for kernel in &mut kernels {
            kernel.deliver_late();
        }
        let written = logs.1.borrow().get("s").cloned().unwrap_or_default();
        let committed = logs.0.read(&SessionId::parse("s").unwrap(), 0).unwrap_or_default();
        prop_assert!(written.starts_with(&committed), "the store has what no worker wrote");
        let Read::Lines { lines, .. } = store.read(&SessionId::parse("s").unwrap(), 0, usize::MAX) else { panic!("nothing was dropped") };
        let stored: Vec<Value> = lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        let mut given: BTreeMap<u64, String> = BTreeMap::new();
        for kernel in &kernels {
            for line in kernel.seen.iter().filter(|line| line["session_id"] == "s" && line["seq"].is_u64()) {
                let mut bare = line.clone();
                bare.as_object_mut().unwrap().remove("seq");
                let text = bare.to_string();
                let number = usize::try_from(line["seq"].as_u64().unwrap()).unwrap();
                prop_assert_eq!(&stored[number - 1], &bare, "the store has another line under a number that was seen");
                if let Some(before) = given.insert(line["seq"].as_u64().unwrap(), text.clone()) {
                    prop_assert_eq!(before, text, "one number, two lines");
                }
            }
        }
    }
}
