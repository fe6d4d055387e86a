//! The jumps of a run, in bounded memory.

use std::collections::TryReserveError;

use crate::host::counters::Deltas;

use super::cause::{Cause, CauseTally, NAMED};

/// One jump, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jump {
    /// The reading before it, since the start of the run.
    pub begin: u64,
    /// From the reading before it to the one behind it.
    pub length: u64,
    pub cause: Cause,
    /// Other CPUs that jumped at the same time, once that is known.
    pub other_cpus: u32,
}

impl Jump {
    pub(super) fn new(begin: u64, length: u64, cause: Cause) -> Self {
        Jump {
            begin,
            length,
            cause,
            other_cpus: 0,
        }
    }
}

/// Counters that were read behind a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub deltas: Deltas,
    /// Over how many ticks: since the counters were read before.
    pub window: u64,
    /// Other jumps in that time without a sample.
    pub others: u64,
}

/// Samples that are kept whole, those of the longest jumps; of others only the cause is.
pub(super) const SAMPLES: usize = 1 << 14;

/// Causes that are told apart; later ones are taken together by their kind.
pub(super) const CAUSES: usize = 256;

/// Causes without rows, and the two with rows when those are taken together.
const KINDS: usize = 16;

/// The jumps that each part of tidying goes through.
pub(super) const PART: usize = 128;

/// Jumps, or what belongs to them, in the order of time. When there are more than fit, about half of them is given up,
/// the shorter ones: what stays is all that are longer than a length that is known.
#[derive(Debug)]
pub(super) struct Longest<T> {
    kept: Vec<(Jump, T)>,
    room: usize,
    /// All longer than this are kept.
    above: u64,
}

impl<T: Copy> Longest<T> {
    /// The memory for so many, in bytes.
    pub(super) const fn bytes(room: usize) -> u64 {
        (room as u64).saturating_mul(size_of::<(Jump, T)>() as u64)
    }

    /// The memory is touched, by writing `something` to it.
    pub(super) fn new(room: usize, something: T) -> Result<Self, TryReserveError> {
        let jump = Jump::new(1, 1, Cause::NotSampled);
        Ok(Longest {
            kept: touched((jump, something), room)?,
            room,
            above: 0,
        })
    }

    /// Returns whether memory had to be tidied for it, which takes long: `look` is called behind each part of that.
    pub(super) fn push(&mut self, jump: Jump, what: T, look: &mut impl FnMut()) -> bool {
        if jump.length <= self.above {
            return false;
        }
        let full = self.kept.len() == self.room;
        if full {
            self.give_up_shorter(look);
        }
        if jump.length > self.above {
            self.kept.push((jump, what));
        }
        full
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(Jump, T)> {
        self.kept.iter()
    }

    /// All longer than this are kept.
    pub(super) fn above(&self) -> u64 {
        self.above
    }

    fn give_up_shorter(&mut self, look: &mut impl FnMut()) {
        // The median of a sample: choosing it takes no longer than another part.
        let step = self.kept.len().div_ceil(PART);
        let mut lengths = [0; PART];
        let mut sampled = 0;
        for (jump, _) in self.kept.iter().step_by(step) {
            lengths[sampled] = jump.length;
            sampled += 1;
        }
        let (_, median, _) = lengths[..sampled].select_nth_unstable(sampled / 2);
        self.above = *median;
        look();
        let mut stay = 0;
        for first in (0..self.kept.len()).step_by(PART) {
            for at in first..self.kept.len().min(first + PART) {
                let one = self.kept[at];
                if one.0.length > self.above {
                    self.kept[stay] = one;
                    stay += 1;
                }
            }
            look();
        }
        self.kept.truncate(stay);
    }
}

/// The longest jumps and, of these, the longest that have a sample. Counts, totals and the largest of each cause are
/// those of all jumps.
#[derive(Debug)]
pub(super) struct JumpStore {
    jumps: Longest<()>,
    samples: Longest<Sample>,
    causes: Vec<(Cause, CauseTally)>,
}

impl JumpStore {
    /// The memory that room for so many jumps takes, in bytes.
    pub(super) const fn bytes(room: usize) -> u64 {
        let samples = if room < SAMPLES { room } else { SAMPLES };
        Longest::<()>::bytes(room).saturating_add(Longest::<Sample>::bytes(samples))
    }

    #[cfg(test)]
    pub(crate) fn new(room: usize) -> Result<Self, TryReserveError> {
        Self::with_samples(room, SAMPLES)
    }

    /// Room for so many jumps, at least two, and of their samples. The memory is touched.
    pub(super) fn with_samples(room: usize, samples: usize) -> Result<Self, TryReserveError> {
        let room = room.max(2);
        let sample = Sample {
            deltas: Deltas {
                smis: 1,
                ..Deltas::default()
            },
            window: 1,
            others: 1,
        };
        Ok(JumpStore {
            jumps: Longest::new(room, ())?,
            samples: Longest::new(samples.min(room), sample)?,
            // A place beyond for each kind of those that are not told apart any more.
            causes: touched((Cause::NotSampled, CauseTally::default()), CAUSES + KINDS)?,
        })
    }

    /// Adds a jump. Returns whether memory had to be tidied for it, which takes long.
    pub(super) fn push(&mut self, jump: Jump, sample: Option<Sample>) -> bool {
        self.push_in_parts(jump, sample, &mut || ())
    }

    /// The same; `look` is called behind each part of tidying.
    pub(super) fn push_in_parts(
        &mut self,
        jump: Jump,
        sample: Option<Sample>,
        look: &mut impl FnMut(),
    ) -> bool {
        let alone = sample.is_some_and(|sample| sample.others == 0);
        self.tally(jump.cause).add(jump.length, alone);
        let tidied = self.jumps.push(jump, (), look);
        sample.is_some_and(|sample| self.samples.push(jump, sample, look)) || tidied
    }

    fn tally(&mut self, cause: Cause) -> &mut CauseTally {
        let at = self.causes.iter().position(|(of, _)| *of == cause);
        if at.is_none() && self.causes.len() >= CAUSES {
            let together = match cause {
                Cause::Interrupts(_) => Cause::Interrupts([None; NAMED]),
                Cause::Softirqs(_) => Cause::Softirqs([None; NAMED]),
                Cause::Thread(_) => Cause::InvoluntarySwitch,
                other => other,
            };
            if together != cause {
                return self.tally(together);
            }
        }
        let at = at.unwrap_or_else(|| {
            self.causes.push((cause, CauseTally::default()));
            self.causes.len() - 1
        });
        &mut self.causes[at].1
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Jump> + Clone + use<'_> {
        self.jumps.kept.iter().map(|(jump, ())| jump)
    }

    pub(super) fn sample(&self, jump: &Jump) -> Option<&Sample> {
        let samples = &self.samples.kept;
        let at = samples.binary_search_by_key(&jump.begin, |(of, _)| of.begin);
        let (_, sample) = &samples[at.ok()?];
        // A step of the clock backwards begins where the next jump may.
        jump.cause.is_of_a_sample().then_some(sample)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Jump> {
        self.jumps.kept.iter_mut().map(|(jump, ())| jump)
    }

    /// Jumps that were not kept, each no longer than [`kept_above`](Self::kept_above).
    pub(super) fn given_up(&self) -> u64 {
        let all: u64 = self.causes.iter().map(|(_, tally)| tally.count).sum();
        all - self.jumps.kept.len() as u64
    }

    /// All jumps longer than this are kept, in ticks.
    pub(super) fn kept_above(&self) -> u64 {
        self.jumps.above
    }

    /// Jumps that are kept with their cause, but without the sample that it was told from.
    pub(super) fn samples_given_up(&self) -> u64 {
        // A trace takes none.
        if self.samples.above == 0 {
            return 0;
        }
        let sampled = self.iter().filter(|jump| jump.cause.is_of_a_sample());
        sampled.filter(|jump| self.sample(jump).is_none()).count() as u64
    }

    /// All samples of jumps longer than this are kept, in ticks.
    pub(super) fn samples_kept_above(&self) -> u64 {
        self.samples.above
    }

    /// Tells the causes of the kept jumps again, and which of them have but one; steps of the clock are left alone.
    pub(super) fn reassign_causes(&mut self, mut cause_of: impl FnMut(&Jump) -> (Cause, bool)) {
        let above = self.kept_above();
        let mut kept = std::mem::take(&mut self.jumps.kept);
        for (jump, ()) in kept
            .iter()
            .filter(|(jump, ())| jump.cause != Cause::Backward)
        {
            let old = self.tally(jump.cause);
            // Those that are not kept are no longer than this.
            (old.count, old.total) = (old.count - 1, old.total - jump.length);
            old.largest = old.largest.min(above);
        }
        self.causes.retain(|(_, tally)| tally.count > 0);
        let stops = kept
            .iter_mut()
            .filter(|(jump, ())| jump.cause != Cause::Backward);
        for (jump, ()) in stops {
            let (cause, alone) = cause_of(jump);
            jump.cause = cause;
            self.tally(cause).add(jump.length, alone);
        }
        self.jumps.kept = kept;
    }

    pub(super) fn causes(&self) -> &[(Cause, CauseTally)] {
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

    fn window(window: u64) -> Option<Sample> {
        Some(Sample {
            deltas: Deltas::default(),
            window,
            others: 0,
        })
    }

    proptest! {
        #[test]
        fn all_jumps_above_a_known_length_are_kept_with_their_samples_and_all_are_counted(
            jumps in prop::collection::vec((1_u64..1000, any::<bool>()), 0..1000),
            room in prop_oneof![2_usize..40, 200_usize..300],
        ) {
            let mut store = JumpStore::new(room).unwrap();
            for (begin, &(length, sampled)) in jumps.iter().enumerate() {
                let sample = window(length * 10).filter(|_| sampled);
                let cause = if sampled { Cause::Unexplained } else { Cause::NotSampled };
                store.push(Jump::new(begin as u64, length, cause), sample);
            }
            let expected: Vec<(u64, u64)> = jumps.iter().enumerate()
                .filter(|(_, (length, _))| *length > store.kept_above())
                .map(|(begin, (length, _))| (begin as u64, *length)).collect();
            let found: Vec<(u64, u64)> = store.iter().map(|jump| (jump.begin, jump.length)).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(store.given_up() as usize + store.iter().len(), jumps.len());
            prop_assert!(jumps.len() > room || store.given_up() == 0);
            for jump in store.iter() {
                let sampled = jumps[jump.begin as usize].1 && jump.length > store.samples_kept_above();
                prop_assert_eq!(store.sample(jump).copied(), window(jump.length * 10).filter(|_| sampled));
            }
            let tally = store.causes().iter().fold(CauseTally::default(), |all, (_, tally)| all.and(tally));
            prop_assert_eq!(tally.count as usize, jumps.len());
            prop_assert_eq!(tally.alone as usize, jumps.iter().filter(|jump| jump.1).count());
            prop_assert_eq!(tally.total, jumps.iter().map(|jump| jump.0).sum::<u64>());
            prop_assert_eq!(tally.largest, jumps.iter().map(|jump| jump.0).max().unwrap_or(0));
        }
    }

    #[test]
    fn samples_are_given_up_by_length_when_there_are_too_many() {
        let mut store = JumpStore::new(4 * SAMPLES).unwrap();
        let all = 3 * SAMPLES as u64;
        let tidied = (1..=all)
            .filter(|&it| store.push(Jump::new(it, it, Cause::Unexplained), window(it)))
            .count();
        assert!((1..10).contains(&tidied), "{tidied}");
        let kept = store.iter().filter_map(|jump| store.sample(jump)).count() as u64;
        assert!(kept >= SAMPLES as u64 / 2);
        assert_eq!((store.iter().len() as u64, store.given_up()), (all, 0));
        assert_eq!(kept + store.samples_given_up(), all);
    }

    #[test]
    fn causes_told_again_count_each_kept_jump_once_and_the_others_as_before() {
        let mut store = JumpStore::new(4).unwrap();
        for length in [10, 20, 30, 40, 50] {
            store.push(Jump::new(length, length, Cause::NotSampled), None);
        }
        store.push(Jump::new(60, 60, Cause::Backward), None);
        let kept = store.iter().len() as u64 - 1;
        store.reassign_causes(|jump| match jump.length {
            50 => (Cause::Thread(1), true),
            _ => (Cause::NotSampled, false),
        });
        let of = |cause| {
            store
                .causes()
                .iter()
                .find(|(it, _)| *it == cause)
                .unwrap()
                .1
        };
        let thread = of(Cause::Thread(1));
        assert_eq!(
            (thread.count, thread.total, thread.largest, thread.alone),
            (1, 50, 50, 1)
        );
        let rest = of(Cause::NotSampled);
        assert_eq!((rest.count, rest.total, rest.largest), (4, 100, 40));
        assert_eq!(of(Cause::Backward).count, 1);
        assert!((1..5).contains(&kept), "{store:?}");
        assert!(store.given_up() == 5 - kept, "{store:?}");
    }

    #[test]
    fn causes_are_bounded_and_none_is_lost() {
        let mut store = JumpStore::new(2).unwrap();
        let memory = store.causes.capacity();
        for row in 0..1000 {
            let rows = [Some(row), None, None, None];
            for cause in [Cause::Interrupts(rows), Cause::Softirqs(rows)] {
                store.push(Jump::new(1, 5, cause), None);
            }
        }
        store.push(Jump::new(1, 5, Cause::Smi), None);
        assert!(store.causes.len() <= CAUSES + 3 && store.causes.capacity() == memory);
        let counted: u64 = store.causes().iter().map(|(_, tally)| tally.count).sum();
        assert_eq!(counted, 2001);
    }

    #[test]
    fn memory_that_there_is_not_is_refused_and_no_abort() {
        assert!(JumpStore::new(usize::MAX / 1024).is_err());
        assert!(JumpStore::bytes(100_000_000) > 4_000_000_000);
    }
}
