//! The jumps of a run, in bounded memory.

use crate::host::counters::Deltas;

use super::cause::{Cause, Tally};

/// One jump, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// The reading before it, since the start of the run.
    pub begin: u64,
    /// From the reading before it to the one behind it.
    pub length: u64,
    /// What is known of its cause.
    pub cause: Cause,
    /// Its sample, if one was taken and is kept.
    pub sample: Option<u32>,
}

/// Counters that were read behind a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// What was added.
    pub deltas: Deltas,
    /// Over how many ticks: since the counters were read before.
    pub window: u64,
    /// Other jumps in that time without a sample.
    pub others: u64,
}

/// Samples that are kept whole; of later ones only the cause is.
pub const SAMPLES: usize = 1 << 14;

/// Jumps in the order of time. When there are more than fit, the shorter half is given up: what stays is all jumps above
/// a length that is known. Counts, totals and the largest of each cause are those of all jumps.
#[derive(Debug)]
pub struct JumpStore {
    jumps: Vec<Jump>,
    lengths: Vec<u64>,
    room: usize,
    kept_above: u64,
    given_up: u64,
    samples: Vec<Sample>,
    samples_given_up: u64,
    causes: Vec<(Cause, Tally)>,
}

impl JumpStore {
    /// Room for so many jumps, at least two. The memory is touched.
    pub fn new(room: usize) -> Self {
        let room = room.max(2);
        let nothing = Jump {
            begin: 0,
            length: 0,
            cause: Cause::NotSampled,
            sample: None,
        };
        let mut store = JumpStore {
            jumps: vec![nothing; room],
            lengths: vec![1; room],
            room,
            kept_above: 0,
            given_up: 0,
            samples: vec![
                Sample {
                    deltas: Deltas {
                        smis: 1,
                        ..Deltas::default()
                    },
                    window: 1,
                    others: 1,
                };
                SAMPLES.min(room)
            ],
            samples_given_up: 0,
            causes: Vec::with_capacity(64),
        };
        store.jumps.clear();
        store.lengths.clear();
        store.samples.clear();
        store
    }

    /// Adds a jump.
    pub fn push(&mut self, begin: u64, length: u64, cause: Cause, sample: Option<Sample>) {
        let alone = sample.is_some_and(|sample| sample.others == 0);
        self.tally(cause).add(length, alone);
        if length <= self.kept_above {
            self.given_up += 1;
            return;
        }
        if self.jumps.len() == self.room {
            self.give_up_half();
            if length <= self.kept_above {
                self.given_up += 1;
                return;
            }
        }
        let sample = sample.and_then(|sample| {
            if self.samples.len() == self.samples.capacity() {
                self.samples_given_up += 1;
                return None;
            }
            self.samples.push(sample);
            Some(self.samples.len() as u32 - 1)
        });
        self.jumps.push(Jump {
            begin,
            length,
            cause,
            sample,
        });
    }

    fn tally(&mut self, cause: Cause) -> &mut Tally {
        let at = self.causes.iter().position(|(of, _)| *of == cause);
        let at = at.unwrap_or_else(|| {
            self.causes.push((cause, Tally::default()));
            self.causes.len() - 1
        });
        &mut self.causes[at].1
    }

    fn give_up_half(&mut self) {
        self.lengths.clear();
        self.lengths
            .extend(self.jumps.iter().map(|jump| jump.length));
        let middle = self.lengths.len() / 2;
        let (_, &mut median, _) = self.lengths.select_nth_unstable(middle);
        self.kept_above = median;
        self.jumps.retain(|jump| jump.length > median);
        self.given_up += (self.lengths.len() - self.jumps.len()) as u64;
    }

    /// Counts the times from `first` on.
    pub fn shift(&mut self, first: u64) {
        self.jumps.iter_mut().for_each(|jump| jump.begin -= first);
    }

    /// The jumps that are kept, in the order of time.
    pub fn jumps(&self) -> &[Jump] {
        &self.jumps
    }

    /// The sample of a jump.
    pub fn sample(&self, jump: &Jump) -> Option<&Sample> {
        self.samples.get(jump.sample? as usize)
    }

    /// Jumps that were not kept, each no longer than [`kept_above`](Self::kept_above).
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Samples of which only the cause was kept.
    pub fn samples_given_up(&self) -> u64 {
        self.samples_given_up
    }

    /// All jumps longer than this are kept, in ticks.
    pub fn kept_above(&self) -> u64 {
        self.kept_above
    }

    /// The causes of all jumps.
    pub fn causes(&self) -> &[(Cause, Tally)] {
        &self.causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_jumps_above_a_known_length_are_kept_and_all_are_counted(
            lengths in prop::collection::vec(1_u64..1000, 0..200), room in 2_usize..40,
        ) {
            let mut store = JumpStore::new(room);
            for (begin, &length) in lengths.iter().enumerate() {
                store.push(begin as u64, length, Cause::Unexplained, None);
            }
            let expected: Vec<(u64, u64)> = lengths.iter().enumerate()
                .filter(|&(_, &length)| length > store.kept_above())
                .map(|(begin, &length)| (begin as u64, length)).collect();
            let found: Vec<(u64, u64)> = store.jumps().iter().map(|jump| (jump.begin, jump.length)).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(store.given_up() as usize + store.jumps().len(), lengths.len());
            prop_assert!(lengths.len() > room || store.given_up() == 0);
            if let Some((_, tally)) = store.causes().first() {
                prop_assert_eq!(tally.count as usize, lengths.len());
                prop_assert_eq!(tally.total, lengths.iter().sum::<u64>());
                prop_assert_eq!(Some(&tally.largest), lengths.iter().max());
            }
        }
    }

    #[test]
    fn a_sample_stays_with_its_jump() {
        let mut store = JumpStore::new(4);
        let sample = Sample {
            deltas: Deltas::default(),
            window: 70,
            others: 0,
        };
        store.push(5, 50, Cause::NotSampled, None);
        store.push(9, 60, Cause::Unexplained, Some(sample));
        assert_eq!(store.sample(&store.jumps()[0]), None);
        assert_eq!(store.sample(&store.jumps()[1]), Some(&sample));
        let tallies = store.causes();
        assert_eq!((tallies[0].1.alone, tallies[1].1.alone), (0, 1));
    }
}
