//! The fault matrix: at several moments of a session something fails, and every prompt still has exactly one end.
//!
//! All moments of a fault that need no held link are tested together: each has its own session on the node that fails.
//! Afterwards the recordings of hubs, nodes, tools and streams are checked with `qwen check --history`.

mod faults;
pub mod fleet;

use self::fleet::{Fleet, Moment};

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    WorkerKill,
    NodeKill,
    NodeStop,
    /// The connections of the node are closed, and opened again.
    NodeCut,
    /// The network of the node drops everything for a while.
    NodeHeld,
    HubKill,
    HubCut,
    HubHeld,
    LeaderKill,
    LeaderTerm,
    FollowerKill,
    MajorityKill,
    BusFull,
    NodeDiskFull,
    ClientStops,
    ClockAhead,
    ClockBehind,
}

impl Fault {
    /// True if the turns on the node cannot continue.
    fn ends_turns(self) -> bool {
        matches!(self, Self::WorkerKill | Self::NodeKill | Self::NodeStop | Self::NodeCut | Self::NodeHeld)
    }

    /// True if the fault is one of the bus servers.
    fn needs_cluster(self) -> bool {
        matches!(self, Self::LeaderKill | Self::LeaderTerm | Self::FollowerKill | Self::MajorityKill)
    }
}

/// Lets a fault happen while sessions are at these moments.
fn check(fault: Fault, moments: &[Moment]) {
    let Some(mut fleet) = Fleet::start(fault) else { return };
    for moment in moments {
        fleet.bring_to(*moment);
    }
    fleet.fail_and_recover();
    for moment in moments {
        let status = fleet.end_of(*moment);
        let allowed: &[&str] = match fault {
            // What could not be written decides.
            Fault::NodeDiskFull => continue,
            // The node was stopped on its way to the bus, which is a fault too. A prompt that had not started runs
            // elsewhere, and an end that was stored stays.
            _ if !Moment::HELD.contains(moment) => &["done", "interrupted"],
            _ if fault.ends_turns() && *moment != Moment::Idle => &["interrupted"],
            _ => &["done"],
        };
        assert!(allowed.contains(&status.as_str()), "{fault:?} at {moment:?}: {status}");
    }
    for moment in moments {
        let status = fleet.continue_session(*moment);
        assert_eq!(status, "done", "{fault:?} at {moment:?}: the session continues");
    }
    fleet.check_history();
}

macro_rules! cells {
    ($($name:ident: $fault:ident,)*) => {$(
        #[test]
        #[ignore = "needs nats-server: make test-fleet"]
        fn $name() {
            check(Fault::$fault, &Moment::HELD);
        }
    )*};
}

cells! {
    a_killed_worker_at_every_moment: WorkerKill,
    a_killed_node_at_every_moment: NodeKill,
    a_stopped_node_at_every_moment: NodeStop,
    a_node_without_connections_at_every_moment: NodeCut,
    a_node_whose_network_drops_everything_at_every_moment: NodeHeld,
    a_killed_hub_at_every_moment: HubKill,
    a_hub_without_connections_at_every_moment: HubCut,
    a_hub_whose_network_drops_everything_at_every_moment: HubHeld,
    a_killed_leading_bus_server_at_every_moment: LeaderKill,
    a_terminated_leading_bus_server_at_every_moment: LeaderTerm,
    a_killed_following_bus_server_at_every_moment: FollowerKill,
    a_killed_majority_of_bus_servers_at_every_moment: MajorityKill,
    a_full_bus_store_at_every_moment: BusFull,
    a_full_disk_of_a_node_at_every_moment: NodeDiskFull,
    a_client_that_stops_reading_at_every_moment: ClientStops,
    a_node_whose_clock_is_an_hour_ahead_at_every_moment: ClockAhead,
    a_node_whose_clock_is_an_hour_behind_at_every_moment: ClockBehind,
}

/// The faults at a moment at which the node is stopped on its way to the bus.
macro_rules! cells_at {
    ($moment:ident: $($name:ident: $fault:ident,)*) => {$(
        #[test]
        #[ignore = "needs nats-server: make test-fleet"]
        fn $name() {
            super::check(super::Fault::$fault, &[super::Moment::$moment]);
        }
    )*};
    ($moment:ident) => {
        cells_at! { $moment:
            a_killed_node: NodeKill,
            a_stopped_node: NodeStop,
            a_node_without_connections: NodeCut,
            a_node_whose_network_drops_everything: NodeHeld,
            a_killed_hub: HubKill,
            a_hub_without_connections: HubCut,
            a_hub_whose_network_drops_everything: HubHeld,
            a_killed_leading_bus_server: LeaderKill,
            a_terminated_leading_bus_server: LeaderTerm,
            a_killed_following_bus_server: FollowerKill,
            a_killed_majority_of_bus_servers: MajorityKill,
            a_full_bus_store: BusFull,
            a_full_disk_of_a_node: NodeDiskFull,
            a_client_that_stops_reading: ClientStops,
            a_node_whose_clock_is_an_hour_ahead: ClockAhead,
            a_node_whose_clock_is_an_hour_behind: ClockBehind,
        }
    };
}

mod claim {
    cells_at!(Claim);
}

mod resume {
    cells_at!(Resume);
}

mod before_the_commit_of_a_tool {
    cells_at!(BeforeCommit);
    cells_at! { BeforeCommit: a_killed_worker: WorkerKill, }
}

mod between_the_end_of_the_log_and_that_of_the_lines {
    cells_at!(BetweenEnds);
    cells_at! { BetweenEnds: a_killed_worker: WorkerKill, }
}

mod draining {
    cells_at!(Draining);
    cells_at! { Draining: a_killed_worker: WorkerKill, }
}
