//! The jumps of a run, in bounded memory.

use std::collections::TryReserveError;

use crate::host::counters::Deltas;

use super::cause::{Cause, NAMED, Tally};

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

/// Samples that are kept whole, those of the longest jumps; of others only the cause is.
pub const SAMPLES: usize = 1 << 14;

/// Causes that are told apart; later ones are taken together by their kind.
pub const CAUSES: usize = 256;

/// Causes without rows, and the two with rows when those are taken together.
const KINDS: usize = 16;

/// Jumps in the order of time. When there are more than fit, the shorter half is given up: what stays is all jumps above
/// a length that is known. It is the same with their samples. Counts, totals and the largest of each cause are those of
/// all jumps.
#[derive(Debug)]
pub struct JumpStore {
    jumps: Vec<Jump>,
    lengths: Vec<u64>,
    room: usize,
    kept_above: u64,
    given_up: u64,
    samples: Vec<Sample>,
    samples_kept_above: u64,
    samples_given_up: u64,
    causes: Vec<(Cause, Tally)>,
}

impl JumpStore {
    /// The memory that room for so many jumps takes, in bytes.
    pub const fn bytes(room: usize) -> u64 {
        let samples = if room < SAMPLES { room } else { SAMPLES };
        let each = (size_of::<Jump>() + size_of::<u64>()) as u64;
        (room as u64).saturating_mul(each) + (samples * size_of::<Sample>()) as u64
    }

    /// Room for so many jumps, at least two. The memory is touched.
    ///
    /// # Errors
    /// When the memory is refused.
    pub fn new(room: usize) -> Result<Self, TryReserveError> {
        let room = room.max(2);
        let nothing = Jump {
            begin: 0,
            length: 0,
            cause: Cause::NotSampled,
            sample: None,
        };
        let sample = Sample {
            deltas: Deltas {
                smis: 1,
                ..Deltas::default()
            },
            window: 1,
            others: 1,
        };
        Ok(JumpStore {
            jumps: touched(nothing, room)?,
            lengths: touched(1, room)?,
            room,
            kept_above: 0,
            given_up: 0,
            samples: touched(sample, SAMPLES.min(room))?,
            samples_kept_above: 0,
            samples_given_up: 0,
            // A place beyond for each kind of those that are not told apart any more.
            causes: touched((Cause::NotSampled, Tally::default()), CAUSES + KINDS)?,
        })
    }

    /// Adds a jump. Returns whether memory had to be tidied for it, which takes long.
    pub fn push(&mut self, begin: u64, length: u64, cause: Cause, sample: Option<Sample>) -> bool {
        let alone = sample.is_some_and(|sample| sample.others == 0);
        self.tally(cause).add(length, alone);
        if length <= self.kept_above {
            self.given_up += 1;
            return false;
        }
        let mut tidied = false;
        if self.jumps.len() == self.room {
            tidied = true;
            self.give_up_half();
            if length <= self.kept_above {
                self.given_up += 1;
                return true;
            }
        }
        let sample = sample.and_then(|sample| {
            if length > self.samples_kept_above && self.samples.len() == SAMPLES.min(self.room) {
                tidied = true;
                self.give_up_half_of_the_samples();
            }
            if length <= self.samples_kept_above {
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
        tidied
    }

    fn tally(&mut self, cause: Cause) -> &mut Tally {
        let at = self.causes.iter().position(|(of, _)| *of == cause);
        if at.is_none() && self.causes.len() >= CAUSES {
            let together = match cause {
                Cause::Interrupts(_) => Cause::Interrupts([None; NAMED]),
                Cause::Softirqs(_) => Cause::Softirqs([None; NAMED]),
                other => other,
            };
            if together != cause {
                return self.tally(together);
            }
        }
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
        self.close_ranks();
    }

    fn give_up_half_of_the_samples(&mut self) {
        self.lengths.clear();
        let sampled = self.jumps.iter().filter(|jump| jump.sample.is_some());
        self.lengths.extend(sampled.map(|jump| jump.length));
        let middle = self.lengths.len() / 2;
        let (_, &mut median, _) = self.lengths.select_nth_unstable(middle);
        self.samples_kept_above = median;
        for jump in &mut self.jumps {
            if jump.length <= median && jump.sample.take().is_some() {
                self.samples_given_up += 1;
            }
        }
        self.close_ranks();
    }

    /// Moves the samples of jumps that are kept to the front. They stand in the order of the jumps.
    fn close_ranks(&mut self) {
        let mut used = 0;
        for place in self
            .jumps
            .iter_mut()
            .filter_map(|jump| jump.sample.as_mut())
        {
            self.samples[used] = self.samples[*place as usize];
            *place = used as u32;
            used += 1;
        }
        self.samples.truncate(used);
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

    /// Samples of jumps of which only the cause is kept.
    pub fn samples_given_up(&self) -> u64 {
        self.samples_given_up
    }

    /// All samples of jumps longer than this are kept, in ticks.
    pub fn samples_kept_above(&self) -> u64 {
        self.samples_kept_above
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

/// An empty list with room for so many, all of which was written to once.
fn touched<T: Clone>(what: T, room: usize) -> Result<Vec<T>, TryReserveError> {
    let mut list = Vec::new();
    list.try_reserve_exact(room)?;
    list.resize(room, what);
    list.clear();
    Ok(list)
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
            let mut store = JumpStore::new(room).unwrap();
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

    fn window(window: u64) -> Option<Sample> {
        Some(Sample {
            deltas: Deltas::default(),
            window,
            others: 0,
        })
    }

    #[test]
    fn the_longest_keep_their_samples_however_late_they_come() {
        let room = 8;
        let mut store = JumpStore::new(room).unwrap();
        let lengths = [
            3, 90, 4, 1, 5, 2, 6, 80, 7, 70, 8, 9, 60, 10, 95, 11, 50, 12,
        ];
        for &length in &lengths {
            store.push(length, length, Cause::Unexplained, window(length * 10));
        }
        let kept = store.jumps();
        assert!(kept.len() > 3 && kept.iter().any(|jump| jump.length == 95));
        for jump in kept {
            assert_eq!(store.sample(jump).unwrap().window, jump.length * 10);
        }
        assert_eq!(kept.len() as u64 + store.given_up(), lengths.len() as u64);
    }

    #[test]
    fn samples_are_given_up_by_length_when_there_are_too_many() {
        let mut store = JumpStore::new(4 * SAMPLES).unwrap();
        let all = 3 * SAMPLES as u64;
        let mut tidied = 0;
        for length in 1..=all {
            tidied += u64::from(store.push(length, length, Cause::Unexplained, window(length)));
        }
        assert_eq!(store.jumps().len() as u64, all);
        assert!((1..10).contains(&tidied), "{tidied}");
        let mut kept = 0;
        for jump in store.jumps() {
            let sample = store.sample(jump);
            assert_eq!(sample.is_some(), jump.length > store.samples_kept_above());
            assert!(sample.is_none_or(|sample| sample.window == jump.length));
            kept += u64::from(sample.is_some());
        }
        assert!(kept >= SAMPLES as u64 / 2);
        assert_eq!(kept + store.samples_given_up(), all);
    }

    #[test]
    fn causes_are_bounded_and_none_is_lost() {
        let mut store = JumpStore::new(2).unwrap();
        let memory = store.causes.capacity();
        for row in 0..1000 {
            store.push(1, 5, Cause::Interrupts([Some(row), None, None, None]), None);
            store.push(1, 5, Cause::Softirqs([Some(row), None, None, None]), None);
        }
        store.push(1, 5, Cause::Smi, None);
        assert!(store.causes.len() <= CAUSES + 3 && store.causes.capacity() == memory);
        let counted: u64 = store.causes().iter().map(|(_, tally)| tally.count).sum();
        assert_eq!(counted, 2001);
    }

    #[test]
    fn a_sample_stays_with_its_jump() {
        let mut store = JumpStore::new(4).unwrap();
        let sample = window(70);
        store.push(5, 50, Cause::NotSampled, None);
        store.push(9, 60, Cause::Unexplained, sample);
        assert_eq!(store.sample(&store.jumps()[0]), None);
        assert_eq!(store.sample(&store.jumps()[1]), sample.as_ref());
        let tallies = store.causes();
        assert_eq!((tallies[0].1.alone, tallies[1].1.alone), (0, 1));
    }

    #[test]
    fn memory_that_there_is_not_is_refused_and_no_abort() {
        assert!(JumpStore::new(usize::MAX / 1024).is_err());
        assert!(JumpStore::bytes(100_000_000) > 5_000_000_000);
    }
}
