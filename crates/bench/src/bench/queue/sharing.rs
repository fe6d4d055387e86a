//! Which of several threads has which end of which queue.

use crate::node::wiring::{Scenario, Wiring};
use crate::queues::registry;
use crate::results::Record;
use crate::results::schema::queue as columns;

/// The most threads at each end.
pub const MOST_THREADS: u32 = 64;

/// A queue, and the numbers of those who share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SharedQueue {
    pub(super) producers: Vec<usize>,
    pub(super) consumers: Vec<usize>,
}

/// The queues of a wiring. With round-robin one is shared by all, and whoever comes takes an element; else each consumer
/// has one, shared by the producers that it hears.
pub(super) fn lines(wiring: &Wiring) -> Vec<SharedQueue> {
    let numbers = |all: &mut dyn Iterator<Item = u32>| all.map(|number| number as usize).collect();
    match wiring.scenario {
        Scenario::RoundRobin => vec![SharedQueue {
            producers: numbers(&mut (0..wiring.publishers)),
            consumers: numbers(&mut (0..wiring.subscribers)),
        }],
        Scenario::StraightRun | Scenario::FanIn | Scenario::FanOut => (0..wiring.subscribers)
            .map(|consumer| SharedQueue {
                producers: numbers(&mut wiring.publishers_of(consumer)),
                consumers: vec![consumer as usize],
            })
            .collect(),
    }
}

/// Why a queue cannot be had for a wiring; `None` if it can. It is made to find out.
pub(super) fn refusal(queue: &str, capacity: usize, wiring: &Wiring) -> Option<String> {
    let ends = lines(wiring).into_iter();
    let mut ends: Vec<_> = ends
        .map(|line| [line.producers.len(), line.consumers.len()])
        .collect();
    ends.dedup();
    ends.into_iter()
        .find_map(|ends| registry::refusal_of_shared(queue, capacity, ends))
}

/// The columns of how several threads share queues; nothing of one and one.
pub(super) fn set_columns(record: &mut Record, wiring: Option<&Wiring>) {
    record
        .set(&columns::SCENARIO, wiring.map(|it| it.scenario.name()))
        .set(&columns::PRODUCERS, wiring.map(|it| it.publishers))
        .set(&columns::CONSUMERS, wiring.map(|it| it.subscribers));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn a_scenario_says_who_shares_which_queue() {
        let found = |scenario, producers, consumers| -> Vec<_> {
            let lines = lines(&Wiring::new(scenario, producers, consumers)).into_iter();
            lines.map(|line| (line.producers, line.consumers)).collect()
        };
        let expected = [(vec![0], vec![0]), (vec![1], vec![1])];
        assert_eq!(found(Scenario::StraightRun, 2, 2), expected);
        let expected = [(vec![0, 2], vec![0]), (vec![1], vec![1])];
        assert_eq!(found(Scenario::FanIn, 3, 2), expected);
        let expected = [(vec![0], vec![0]), (vec![0], vec![1])];
        assert_eq!(found(Scenario::FanOut, 1, 2), expected);
        let expected = [(vec![0, 1], vec![0, 1, 2])];
        assert_eq!(found(Scenario::RoundRobin, 2, 3), expected);
    }

    #[test]
    fn a_queue_is_refused_where_more_threads_share_it_than_it_is_made_for() {
        let refused = |queue, scenario, ends: [u32; 2]| {
            refusal(queue, 64, &Wiring::new(scenario, ends[0], ends[1]))
        };
        assert_eq!(refused("lamport", Scenario::StraightRun, [4, 4]), None);
        assert_eq!(refused("lamport", Scenario::FanOut, [1, 4]), None);
        let text = refused("lamport", Scenario::FanIn, [2, 1]).unwrap();
        text.has(&["spsc", "2 senders and 1 receiver"]);
        assert_eq!(refused("sharded", Scenario::RoundRobin, [8, 8]), None);
        let text = refused("sharded", Scenario::RoundRobin, [9, 8]).unwrap();
        assert!(text.contains("cannot hold 64 elements"), "{text}");
    }
}
