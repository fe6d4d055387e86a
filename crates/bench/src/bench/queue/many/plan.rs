//! Which thread has which end of which queue, and where it runs.

use crate::host::RoleSpec;
use crate::host::{HostError, Placement, PlacementWarning, Topology};
use crate::node::wiring::{Scenario, Wiring};
use crate::queues::registry;
use crate::results::Record;
use crate::results::schema::queue as columns;

/// The most threads at each end.
pub const MOST_THREADS: u32 = 64;

/// A queue, and the numbers of those who share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) producers: Vec<usize>,
    pub(super) consumers: Vec<usize>,
}

/// The queues of a wiring. With round-robin one is shared by all, and whoever comes takes an element; else each consumer
/// has one, shared by the producers that it hears.
pub(super) fn lines(wiring: &Wiring) -> Vec<Line> {
    let numbers = |all: &mut dyn Iterator<Item = u32>| all.map(|number| number as usize).collect();
    match wiring.scenario {
        Scenario::RoundRobin => vec![Line {
            producers: numbers(&mut (0..wiring.publishers)),
            consumers: numbers(&mut (0..wiring.subscribers)),
        }],
        Scenario::StraightRun | Scenario::FanIn | Scenario::FanOut => (0..wiring.subscribers)
            .map(|consumer| Line {
                producers: numbers(&mut wiring.publishers_of(consumer)),
                consumers: vec![consumer as usize],
            })
            .collect(),
    }
}

/// Why a queue cannot be had for a wiring; `None` if it can. It is made to find out.
pub(in crate::bench::queue) fn refusal(
    queue: &str,
    capacity: usize,
    wiring: &Wiring,
) -> Option<String> {
    let ends = lines(wiring).into_iter();
    let mut ends: Vec<_> = ends
        .map(|line| [line.producers.len(), line.consumers.len()])
        .collect();
    ends.dedup();
    ends.into_iter()
        .find_map(|ends| registry::refusal_of_shared(queue, capacity, ends))
}

/// The columns of how several threads share queues; nothing of one and one.
pub(in crate::bench::queue) fn set_columns(record: &mut Record, wiring: Option<&Wiring>) {
    record
        .set(&columns::SCENARIO, wiring.map(|it| it.scenario.name()))
        .set(&columns::PRODUCERS, wiring.map(|it| it.publishers))
        .set(&columns::CONSUMERS, wiring.map(|it| it.subscribers));
}

/// Where the threads run.
#[derive(Debug, Clone)]
pub(super) struct Seats {
    pub(super) producers: Vec<usize>,
    pub(super) consumers: Vec<usize>,
    pub(super) placement: Placement,
}

impl Seats {
    /// A CPU for each thread, as far as there are any. A producer and a consumer in turn, so that two who share a queue
    /// do not share a CPU where there are two.
    pub(super) fn new(topology: &Topology, wiring: &Wiring) -> Result<Self, HostError> {
        let ends = [wiring.publishers, wiring.subscribers];
        let turns = (0..ends[0].max(ends[1])).flat_map(|number| [(0, number), (1, number)]);
        let turns: Vec<_> = turns.filter(|(end, number)| *number < ends[*end]).collect();
        let specs = turns.iter().map(|(end, _)| {
            let (name, option) = [("producer", "--producers"), ("consumer", "--consumers")][*end];
            RoleSpec::new(name, option, None)
        });
        let placement = Placement::plan(topology, &specs.collect::<Vec<_>>())?;
        let of = |wanted: usize| {
            let places = turns.iter().enumerate();
            let places = places.filter(|(_, (end, _))| *end == wanted);
            places.map(|(place, _)| placement.cpu(place)).collect()
        };
        Ok(Seats {
            producers: of(0),
            consumers: of(1),
            placement,
        })
    }

    pub(super) fn threads(&self) -> usize {
        self.producers.len() + self.consumers.len()
    }

    /// What the threads have less than they should: that they share CPUs is said once, however many do.
    pub(super) fn warnings(&self, allowed: usize) -> Vec<String> {
        let threads = self.threads();
        if threads > allowed {
            return vec![format!(
                "{threads} threads share {allowed} CPUs: who waits and who runs is up to the scheduler, and its time slices, \
                 milliseconds each, are in rates, shares and latencies; use fewer --producers and --consumers, or a machine \
                 with more cores"
            )];
        }
        let mut texts: Vec<_> = self
            .placement
            .warnings
            .iter()
            .map(PlacementWarning::to_string)
            .collect();
        texts.sort();
        texts.dedup();
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    fn wiring(scenario: Scenario, publishers: u32, subscribers: u32) -> Wiring {
        Wiring {
            scenario,
            publishers,
            subscribers,
        }
    }

    #[test]
    fn a_scenario_says_who_shares_which_queue() {
        let found = |scenario, producers, consumers| -> Vec<_> {
            let lines = lines(&wiring(scenario, producers, consumers)).into_iter();
            lines.map(|line| (line.producers, line.consumers)).collect()
        };
        assert_eq!(
            found(Scenario::StraightRun, 2, 2),
            [(vec![0], vec![0]), (vec![1], vec![1])]
        );
        assert_eq!(
            found(Scenario::FanIn, 3, 2),
            [(vec![0, 2], vec![0]), (vec![1], vec![1])]
        );
        assert_eq!(
            found(Scenario::FanOut, 1, 2),
            [(vec![0], vec![0]), (vec![0], vec![1])]
        );
        assert_eq!(
            found(Scenario::RoundRobin, 2, 3),
            [(vec![0, 1], vec![0, 1, 2])]
        );
    }

    #[test]
    fn a_queue_is_refused_where_more_threads_share_it_than_it_is_made_for() {
        let refused = |queue, scenario, ends: [u32; 2]| {
            refusal(queue, 64, &wiring(scenario, ends[0], ends[1]))
        };
        assert_eq!(refused("lamport", Scenario::StraightRun, [4, 4]), None);
        assert_eq!(refused("lamport", Scenario::FanOut, [1, 4]), None);
        let text = refused("lamport", Scenario::FanIn, [2, 1]).unwrap();
        assert!(
            text.contains("spsc") && text.contains("2 senders and 1 receiver"),
            "{text}"
        );
        assert_eq!(refused("sharded", Scenario::RoundRobin, [8, 8]), None);
        let text = refused("sharded", Scenario::RoundRobin, [9, 8]).unwrap();
        assert!(text.contains("cannot hold 64 elements"), "{text}");
    }

    #[test]
    fn producers_and_consumers_have_cpus_in_turn_and_who_shares_one_is_told_once() {
        let topology = Machine::new(1, 5, 1).topology();
        let seats = Seats::new(&topology, &wiring(Scenario::RoundRobin, 1, 3)).unwrap();
        // Not CPU 0, as long as there are others.
        assert_eq!(
            (seats.producers.as_slice(), seats.consumers.as_slice()),
            (&[1][..], &[2, 3, 4][..])
        );
        assert_eq!(seats.warnings(5), Vec::<String>::new());
        let topology = Machine::new(1, 2, 1).topology();
        let seats = Seats::new(&topology, &wiring(Scenario::StraightRun, 2, 2)).unwrap();
        assert!(
            seats
                .producers
                .iter()
                .zip(&seats.consumers)
                .all(|(one, other)| one != other)
        );
        let told = seats.warnings(2);
        assert!(
            told.len() == 1 && told[0].contains("4 threads share 2 CPUs"),
            "{told:?}"
        );
    }
}
