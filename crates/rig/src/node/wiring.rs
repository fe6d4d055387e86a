//! The subscribers of each publisher.

use serde::{Deserialize, Serialize};

use crate::rig::named::named;

named! {
    /// How publishers and subscribers are wired.
    Scenario {
        /// Each publisher has one subscriber, and each subscriber one publisher.
        StraightRun = "straight-run",
        /// The publishers are divided among the subscribers; each sample goes to one.
        FanIn = "fan-in",
        /// Each sample goes to all subscribers.
        FanOut = "fan-out",
        /// Each sample goes to one subscriber, in turn.
        RoundRobin = "round-robin",
    }
}

/// A scenario with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wiring {
    /// How they are wired.
    pub scenario: Scenario,
    /// How many publish.
    pub publishers: u32,
    /// How many subscribe.
    pub subscribers: u32,
}

impl Wiring {
    /// A scenario with numbers of publishers and subscribers.
    pub const fn new(scenario: Scenario, publishers: u32, subscribers: u32) -> Self {
        Wiring {
            scenario,
            publishers,
            subscribers,
        }
    }

    /// Why these numbers are impossible, if they are.
    pub fn refusal(&self) -> Option<String> {
        self.refusal_by(["publishers", "subscribers"])
    }

    /// The same where the two kinds of ends, and the options of their numbers, have these names.
    pub fn refusal_by(&self, [publishers, subscribers]: [&str; 2]) -> Option<String> {
        let refused = |rule: &str| {
            Some(format!(
                "--scenario {} is impossible with --{publishers} {} and --{subscribers} {}: {rule}",
                self.scenario.name(),
                self.publishers,
                self.subscribers
            ))
        };
        match self.scenario {
            Scenario::StraightRun if self.publishers != self.subscribers => {
                refused("both numbers must be equal")
            }
            Scenario::FanIn if self.publishers < self.subscribers => refused(&format!(
                "it needs at least as many {publishers} as {subscribers}"
            )),
            _ => None,
        }
    }

    /// Whether samples of that publisher can come to that subscriber.
    pub fn receives_from(&self, subscriber: u32, publisher: u32) -> bool {
        match self.scenario {
            Scenario::StraightRun => subscriber == publisher,
            Scenario::FanIn => publisher % self.subscribers == subscriber,
            Scenario::FanOut | Scenario::RoundRobin => true,
        }
    }

    /// The subscribers that samples of that publisher can come to.
    pub fn subscribers_of(&self, publisher: u32) -> impl Iterator<Item = u32> + '_ {
        (0..self.subscribers).filter(move |&subscriber| self.receives_from(subscriber, publisher))
    }

    /// The publishers of that subscriber.
    pub fn publishers_of(&self, subscriber: u32) -> impl Iterator<Item = u32> + '_ {
        (0..self.publishers).filter(move |&publisher| self.receives_from(subscriber, publisher))
    }

    /// Copies of each sample that are to arrive.
    pub fn copies(&self) -> u64 {
        match self.scenario {
            Scenario::FanOut => u64::from(self.subscribers),
            _ => 1,
        }
    }

    /// Whether a sample goes to one of the subscribers of its publisher, in turn.
    pub fn takes_turns(&self) -> bool {
        self.scenario == Scenario::RoundRobin
    }

    /// The most samples that a subscriber gets where each publisher sends this many. Who distributes them in turn may
    /// be unfair: then one may get them all.
    pub fn most_at(&self, subscriber: u32, sent_by_each: u64) -> u64 {
        (self.publishers_of(subscriber).count() as u64).saturating_mul(sent_by_each)
    }
}

/// Where a publisher that distributes samples itself sends the next one: to all of its targets, or to one in turn.
#[derive(Debug, Clone, Copy)]
pub struct Distribution {
    targets: usize,
    in_turn: bool,
    next: usize,
}

impl Distribution {
    /// Of that publisher.
    pub fn new(wiring: &Wiring, publisher: u32) -> Self {
        Distribution {
            targets: wiring.subscribers_of(publisher).count(),
            in_turn: wiring.takes_turns(),
            next: 0,
        }
    }

    /// Of a publisher that has one target.
    pub const fn to_one() -> Self {
        Distribution {
            targets: 1,
            in_turn: false,
            next: 0,
        }
    }

    /// The targets of the next sample.
    #[inline(always)]
    pub fn next_targets(&mut self) -> std::ops::Range<usize> {
        if !self.in_turn {
            return 0..self.targets;
        }
        let target = self.next;
        self.next += 1;
        if self.next == self.targets {
            self.next = 0;
        }
        target..target + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_scenario_cannot_have_are_refused() {
        assert_eq!(Wiring::new(Scenario::StraightRun, 2, 2).refusal(), None);
        assert_eq!(Wiring::new(Scenario::FanOut, 1, 4).refusal(), None);
        assert_eq!(Wiring::new(Scenario::FanIn, 4, 2).refusal(), None);
        for bad in [
            Wiring::new(Scenario::StraightRun, 2, 3),
            Wiring::new(Scenario::FanIn, 1, 2),
        ] {
            let refusal = bad.refusal().unwrap();
            assert!(refusal.contains("--publishers") && refusal.contains(bad.scenario.name()));
        }
    }

    #[test]
    fn each_sample_has_the_copies_that_its_scenario_names() {
        for scenario in Scenario::ALL.iter().copied() {
            let wiring = Wiring::new(
                scenario,
                4,
                if scenario == Scenario::StraightRun {
                    4
                } else {
                    2
                },
            );
            for publisher in 0..4 {
                let hearing = wiring.subscribers_of(publisher).count() as u64;
                let mut distribution = Distribution::new(&wiring, publisher);
                let sent: Vec<usize> = (0..4).flat_map(|_| distribution.next_targets()).collect();
                assert_eq!(sent.len() as u64, 4 * wiring.copies(), "{scenario:?}");
                assert!(sent.iter().all(|&target| (target as u64) < hearing));
                if scenario == Scenario::RoundRobin {
                    assert_eq!(sent, [0, 1, 0, 1]);
                }
            }
        }
        let fan_in = Wiring::new(Scenario::FanIn, 5, 2);
        assert_eq!(fan_in.publishers_of(0).collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(fan_in.most_at(1, 10), 20);
    }
}
