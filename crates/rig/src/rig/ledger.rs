//! What was sent against what arrived, by publisher and sequence number.

use serde::{Deserialize, Serialize};

/// What an arrival is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The first of that publisher and number.
    First,
    /// One of a publisher and number that had arrived.
    Again,
    /// Of a publisher that there is not, or with a number that was never sent.
    NeverSent,
}

/// What became of all that was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub sent: u64,
    /// Arrived at least once.
    pub received: u64,
    pub lost: u64,
    pub duplicated: u64,
    /// Arrived for the first time after a later one of the same publisher at the same receiver.
    pub reordered: u64,
    pub never_sent: u64,
    /// Arrived, first or again, after the end of what they belong to.
    pub late: u64,
    /// Received, with other content than was sent.
    pub damaged: u64,
}

impl Tally {
    /// Both together.
    pub fn plus(self, other: &Tally) -> Tally {
        Tally {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            lost: self.lost + other.lost,
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            never_sent: self.never_sent + other.never_sent,
            late: self.late + other.late,
            damaged: self.damaged + other.damaged,
        }
    }
}

/// The books of one run.
#[derive(Debug, Clone)]
pub struct Ledger {
    arrived: Vec<Vec<bool>>,
    /// By receiver and publisher: the number behind the last one that arrived.
    next: Vec<Vec<usize>>,
    tally: Tally,
}

impl Ledger {
    /// `sent`: how many each publisher sent, numbered from 0.
    pub fn new(sent: &[usize]) -> Self {
        Self::shared(sent, 1)
    }

    /// The same where each of these is to arrive at any one of several receivers.
    pub fn shared(sent: &[usize], receivers: usize) -> Self {
        Ledger {
            arrived: sent.iter().map(|&count| vec![false; count]).collect(),
            next: vec![vec![0; sent.len()]; receivers],
            tally: Tally {
                sent: sent.iter().map(|&count| count as u64).sum(),
                ..Tally::default()
            },
        }
    }

    /// Books an arrival, in the order in which they came.
    pub fn arrived(&mut self, publisher: usize, sequence: usize) -> Arrival {
        self.arrived_at(0, publisher, sequence)
    }

    /// Books an arrival at a receiver, in the order in which they came there.
    pub fn arrived_at(&mut self, receiver: usize, publisher: usize, sequence: usize) -> Arrival {
        let known = self.arrived.get_mut(publisher);
        let Some(arrived) = known.and_then(|all| all.get_mut(sequence)) else {
            self.tally.never_sent += 1;
            return Arrival::NeverSent;
        };
        if std::mem::replace(arrived, true) {
            self.tally.duplicated += 1;
            return Arrival::Again;
        }
        self.tally.received += 1;
        let next = &mut self.next[receiver][publisher];
        if sequence < *next {
            self.tally.reordered += 1;
        } else {
            *next = sequence + 1;
        }
        Arrival::First
    }

    /// Something arrived after its end.
    pub fn late(&mut self) {
        self.tally.late += 1;
    }

    /// What arrived, for the first time, has other content than was sent.
    pub fn damaged(&mut self) {
        self.tally.damaged += 1;
    }

    /// What has not arrived by now, by publisher and number.
    pub fn missing(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let publishers = self.arrived.iter().enumerate();
        publishers.flat_map(|(publisher, arrived)| {
            let missing = arrived.iter().enumerate().filter(|(_, arrived)| !**arrived);
            missing.map(move |(sequence, _)| (publisher, sequence))
        })
    }

    /// What became of all.
    pub fn close(mut self) -> Tally {
        self.tally.lost = self.tally.sent - self.tally.received;
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_one_of_several_is_in_order_at_each_of_them() {
        let mut ledger = Ledger::shared(&[5], 2);
        for (receiver, sequence) in [(0, 1), (0, 3), (1, 0), (1, 4), (1, 0)] {
            ledger.arrived_at(receiver, 0, sequence);
        }
        assert_eq!(ledger.missing().collect::<Vec<_>>(), [(0, 2)]);
        ledger.arrived_at(1, 0, 2);
        assert_eq!(ledger.missing().count(), 0);
        let tally = ledger.close();
        assert_eq!(tally.received, 5);
        assert_eq!(tally.duplicated, 1);
        assert_eq!(tally.reordered, 1);
    }

    #[test]
    fn each_fault_has_its_count() {
        let mut ledger = Ledger::new(&[4, 2]);
        assert_eq!(ledger.arrived(0, 0), Arrival::First);
        assert_eq!(ledger.arrived(0, 2), Arrival::First);
        assert_eq!(ledger.arrived(0, 1), Arrival::First);
        // Another publisher's numbers are its own.
        assert_eq!(ledger.arrived(1, 0), Arrival::First);
        assert_eq!(ledger.arrived(0, 2), Arrival::Again);
        ledger.late();
        ledger.damaged();
        assert_eq!(ledger.arrived(0, 4), Arrival::NeverSent);
        assert_eq!(ledger.arrived(2, 0), Arrival::NeverSent);
        assert_eq!(ledger.arrived(1, 1), Arrival::First);
        let tally = ledger.close();
        let expected = Tally {
            sent: 6,
            received: 5,
            lost: 1,
            duplicated: 1,
            reordered: 1,
            never_sent: 2,
            late: 1,
            damaged: 1,
        };
        assert_eq!(tally, expected);
    }
}
