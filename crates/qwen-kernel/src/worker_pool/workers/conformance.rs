//! Tests that all workers must pass.

use std::sync::Arc;
use std::time::Duration;

use qwen_events::SessionId;

use super::{Granted, Lease, LocalWorkers, MemoryWorkers, WorkerControl, Workers};
use crate::worker_pool::{Pool, PoolLimits, WorkerKey};

fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

fn lease(granted: Granted) -> Lease {
    match granted {
        Granted::Lease(lease) => lease,
        other => panic!("{other:?}"),
    }
}

/// Two slots, claimed, used and given back.
fn check<W: Workers>(workers: &mut W, profile: &W::Profile) {
    let (a, b, c) = (id("a"), id("b"), id("c"));
    assert_eq!((workers.offer().free, workers.offer().warm), (2, 0));
    let first = lease(workers.claim(&a, profile));
    assert_eq!(lease(workers.claim(&a, profile)), first, "a claim may be repeated");
    assert_eq!(workers.offer().free, 1);
    let second = lease(workers.claim(&b, profile));
    assert_ne!(first, second);
    assert_eq!(workers.claim(&c, profile), Granted::Busy);
    assert!(workers.input(&a, first, b"{}\n".to_vec()));
    assert!(!workers.input(&b, first, b"{}\n".to_vec()), "a lease of another session");
    let stale = Lease { epoch: first.epoch, incarnation: first.incarnation + 1 };
    assert!(!workers.input(&a, stale, b"{}\n".to_vec()), "a lease of another incarnation");
    assert!(workers.control(&a, first, WorkerControl::EndInput));
    assert!(workers.release(&a, first));
    assert!(!workers.release(&a, first), "it is given back once");
    assert!(!workers.input(&a, first, b"{}\n".to_vec()));
    assert!(!workers.control(&a, first, WorkerControl::EndInput));
    assert!(workers.control(&b, second, WorkerControl::Terminate));
    assert!(!workers.input(&b, second, b"{}\n".to_vec()), "nobody reads it any more");
}

#[test]
fn a_lease_is_valid_until_it_is_given_back() {
    check(&mut MemoryWorkers::new(2, 7), &"profile".to_owned());
    let limits = PoolLimits { min_workers: 0, max_workers: 2, ..PoolLimits::default() };
    let key: Arc<WorkerKey> = WorkerKey::default().into();
    let mut pool = Pool::new(limits, key.clone(), 7);
    check(&mut LocalWorkers::new(&mut pool, Duration::from_secs(1), &mut Vec::new()), &key);
}

#[test]
fn the_next_lease_of_a_session_has_a_higher_epoch() {
    let mut workers = MemoryWorkers::new(1, 7);
    let first = lease(workers.claim(&id("a"), &String::new()));
    assert!(workers.release(&id("a"), first));
    let next = lease(workers.claim(&id("a"), &String::new()));
    assert!(next.epoch > first.epoch && next.incarnation == first.incarnation);
    assert_eq!(workers.lines(&id("a")), Some(&b""[..]));
}
