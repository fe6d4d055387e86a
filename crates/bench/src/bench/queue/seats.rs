//! Where the threads of a run run.

use super::error::RunError;
use super::plan::Point;
use crate::host::{HostError, Placement, RoleSpec, Topology};
use crate::node::wiring::Wiring;
use crate::results::finding::{Finding, kinds};
use crate::rig::findings;

/// Where the threads run.
#[derive(Debug, Clone)]
pub(super) struct Seats {
    /// The CPUs of the senders and of the receivers.
    pub(super) cpus: [Vec<usize>; 2],
    pub(super) placement: Placement,
}

impl Seats {
    /// Those of a point.
    pub(super) fn of(topology: &Topology, point: &Point) -> Result<Self, RunError> {
        match &point.wiring {
            Some(wiring) => Ok(Seats::new(topology, wiring)?),
            None => Ok(Seats {
                cpus: [vec![point.cpus.sender], vec![point.cpus.receiver]],
                placement: point.cpus.placement(topology)?,
            }),
        }
    }

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
            cpus: [of(0), of(1)],
            placement,
        })
    }

    pub(super) fn threads(&self) -> usize {
        self.cpus.iter().map(Vec::len).sum()
    }

    /// What the threads have less than they should: that they share CPUs is one finding, however many do.
    pub(super) fn findings(&self, allowed: usize) -> Vec<Finding> {
        let threads = self.threads();
        if threads > allowed {
            let found = Finding::of(&kinds::THREADS_SHARE_CPUS).measure("threads", threads as f64);
            return vec![found.measure("cpus", allowed as f64)];
        }
        findings::of_placement(&self.placement.warnings).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;
    use crate::node::wiring::Scenario;

    #[test]
    fn producers_and_consumers_have_cpus_in_turn_and_who_shares_one_is_told_once() {
        let topology = Machine::new(1, 5, 1).topology();
        let seats = Seats::new(&topology, &Wiring::new(Scenario::RoundRobin, 1, 3)).unwrap();
        // Not CPU 0, as long as there are others.
        assert_eq!(seats.cpus, [vec![1], vec![2, 3, 4]]);
        assert_eq!(seats.findings(5), []);
        let topology = Machine::new(1, 2, 1).topology();
        let seats = Seats::new(&topology, &Wiring::new(Scenario::StraightRun, 2, 2)).unwrap();
        let [producers, consumers] = &seats.cpus;
        let mut pairs = producers.iter().zip(consumers);
        assert!(pairs.all(|(one, other)| one != other));
        let found = seats.findings(2);
        assert!(found.len() == 1, "{found:?}");
        assert_eq!(found[0].problem, "4 threads share 2 CPUs");
    }
}
