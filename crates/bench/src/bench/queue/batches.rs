//! Batches: one time for several operations, where one of them takes less than reading the clock.
//!
//! The clock is read before the first operation of a batch and behind its last one. So its time holds what a loop does
//! for each of them as well: building the element or checking it, and noting its number. The floor is the same at each
//! end, with elements that stay in memory of its core. A batch is of operations that succeeded one after the other: a
//! failed attempt begins it anew with the operation that failed, unless failed attempts are measured. Elements carry
//! their numbers.

use std::hint::black_box;
use std::num::NonZeroU64;

use super::floor::QueueFloor;
use super::measurer::{CarriedElements, Measurer, Numbering, Numbers};
use super::result::{PerOperation, Times};
use super::roles::SENDER;
use crate::queues::element::{Element, Words};
use crate::rig::role::Role;
use crate::stats::Summary;
use crate::time::{Clock, Ticks};

/// The clock before the first operation of a batch, and behind the last.
pub(super) type BatchRecord = [Ticks; 2];

/// Times batches of `size` operations, of which `M` takes note.
#[derive(Debug, Default)]
pub(super) struct BatchMeasurer<'a, M> {
    inner: M,
    records: &'a mut [BatchRecord],
    size: u32,
    measures_failed: bool,
    /// Operations that are still to come in this batch; none before it begins.
    left: u32,
    before: Ticks,
    batches: usize,
}

impl<'a, M> BatchMeasurer<'a, M> {
    /// Notes times into `records`, one after the other.
    pub(super) fn new(
        inner: M,
        records: &'a mut [BatchRecord],
        size: u32,
        measures_failed: bool,
    ) -> Self {
        BatchMeasurer {
            inner,
            records,
            size,
            measures_failed,
            left: 0,
            before: Ticks(0),
            batches: 0,
        }
    }

    /// Gives up the batch that has begun: something else comes between its operations.
    pub(super) fn interrupt(&mut self) {
        self.left = 0;
    }

    #[inline(always)]
    fn begin(&mut self, clock: &impl Clock) {
        self.left = self.size;
        self.before = clock.now();
    }
}

impl<M: Measurer> Measurer for BatchMeasurer<'_, M> {
    #[inline(always)]
    fn measures_failed(&self) -> bool {
        self.measures_failed
    }

    #[inline(always)]
    fn pre<C: Clock>(&mut self, clock: &C) {
        if self.left == 0 {
            self.begin(clock);
        }
    }

    #[inline(always)]
    fn again<C: Clock>(&mut self, clock: &C) {
        self.begin(clock);
    }

    #[inline(always)]
    fn stamp(&self) -> NonZeroU64 {
        self.inner.stamp()
    }

    #[inline(always)]
    fn post<C: Clock>(&mut self, clock: &C, stamp: u64) {
        self.inner.post(clock, stamp);
        self.left -= 1;
        if self.left == 0 {
            let after = clock.now();
            if let Some(record) = self.records.get_mut(self.batches) {
                *record = [self.before, after];
                self.batches += 1;
            }
        }
    }

    fn noted(&self) -> usize {
        self.inner.noted()
    }

    fn forget(&mut self) -> CarriedElements {
        (self.left, self.batches) = (0, 0);
        self.inner.forget()
    }

    fn batches(&self) -> usize {
        self.batches
    }
}

/// Batches that the floor is of.
const BATCHES: usize = 200;

/// What is measured of a batch at an end without a queue, on the CPU that runs this, with elements of `payload` bytes.
pub(super) fn floor<C: Clock>(clock: &C, size: u32, role: Role, payload: usize) -> QueueFloor {
    match payload {
        64 => floor_of::<C, Words<8>>(clock, size, role),
        256 => floor_of::<C, Words<32>>(clock, size, role),
        _ => floor_of::<C, Words<1>>(clock, size, role),
    }
}

#[inline(never)]
fn floor_of<C: Clock, T: Element>(clock: &C, size: u32, role: Role) -> QueueFloor {
    let mut records = vec![[Ticks(0); 2]; BATCHES];
    let passes = BATCHES * size as usize;
    if role == SENDER {
        let mut measurer = BatchMeasurer::new(Numbering::default(), &mut records, size, false);
        for _ in 0..passes {
            measurer.pre(clock);
            let stamp = measurer.stamp();
            black_box(T::with_stamp(stamp));
            measurer.post(clock, stamp.get());
        }
    } else {
        // Written, so that no page comes while they are noted.
        let mut numbers = vec![1; passes];
        let inner = Numbers::new(&mut numbers);
        let mut measurer = BatchMeasurer::new(inner, &mut records, size, false);
        let element = T::with_stamp(NonZeroU64::MIN);
        let mut damaged = 0;
        for _ in 0..passes {
            measurer.pre(clock);
            let element = black_box(&element);
            measurer.post(clock, element.stamp());
            damaged += u64::from(!element.is_intact());
        }
        black_box(damaged);
    }
    let summary = Summary::of(&lengths(clock, &records)).expect("there are batches");
    QueueFloor::of(&summary)
}

/// The times of a run from the batches of both ends.
pub(super) fn times<C: Clock>(
    clock: &C,
    size: u32,
    [sent, received]: [&[BatchRecord]; 2],
) -> Times {
    let samples = PerOperation {
        enqueue_batch: lengths(clock, sent),
        dequeue_batch: lengths(clock, received),
        ..PerOperation::default()
    };
    Times {
        per_stamp: size,
        ..Times::of(&samples, None)
    }
}

/// In nanoseconds, in ascending order.
fn lengths<C: Clock>(clock: &C, records: &[BatchRecord]) -> Vec<i64> {
    let length = |[before, after]: &BatchRecord| {
        let length = Ticks(after.0.saturating_sub(before.0));
        i64::try_from(clock.to_nanos(length).0).unwrap_or(i64::MAX)
    };
    let mut lengths: Vec<i64> = records.iter().map(length).collect();
    lengths.sort_unstable();
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::queue::roles::RECEIVER;
    use crate::pacing::scripted;
    use crate::time::Posix;

    /// An operation that takes 10, with attempts before it that fail and take as long.
    fn operation(measurer: &mut impl Measurer, clock: &scripted::Scripted, failures: usize) {
        measurer.pre(clock);
        for _ in 0..failures {
            scripted::advance(10);
            if !measurer.measures_failed() {
                measurer.again(clock);
            }
        }
        scripted::advance(10);
        let stamp = measurer.stamp().get();
        measurer.post(clock, stamp);
    }

    #[test]
    fn the_clock_is_read_twice_a_batch() {
        let clock = scripted::set(100, 1);
        let mut records = [[Ticks(0); 2]; 2];
        let mut measurer = BatchMeasurer::new(Numbering::default(), &mut records, 3, false);
        for _ in 0..7 {
            operation(&mut measurer, &clock, 0);
        }
        assert_eq!((measurer.noted(), measurer.batches()), (7, 2));
        // The reading behind a batch, and that before the next.
        assert_eq!(records, [[101, 132], [133, 164]].map(|of| of.map(Ticks)));
        let times = times(&Posix::MONOTONIC, 3, [&records, &[]]);
        let summary = times.figures.enqueue_batch.unwrap();
        assert_eq!((summary.count, summary.min_ns, summary.max_ns), (2, 31, 31));
        assert_eq!((times.per_stamp, times.figures.dequeue_batch), (3, None));
        assert_eq!(times.figures.enqueue, None);
    }

    #[test]
    fn a_failed_attempt_begins_a_batch_anew_unless_it_is_measured() {
        for (measures_failed, batches, lengths) in [(false, 1, [31, 0]), (true, 2, [51, 31])] {
            let clock = scripted::set(100, 1);
            let mut records = [[Ticks(0); 2]; 2];
            let mut measurer =
                BatchMeasurer::new(Numbering::default(), &mut records, 3, measures_failed);
            for failures in [0, 2, 0, 0, 0, 0] {
                operation(&mut measurer, &clock, failures);
            }
            assert_eq!((measurer.noted(), measurer.batches()), (6, batches));
            assert_eq!(records.map(|[before, after]| after.0 - before.0), lengths);
        }
    }

    #[test]
    fn what_comes_between_two_loops_is_in_no_batch_and_numbers_are_noted() {
        let clock = scripted::set(100, 1);
        let (mut records, mut numbers) = ([[Ticks(0); 2]; 4], [0; 8]);
        let inner = Numbers::new(&mut numbers);
        let mut measurer = BatchMeasurer::new(inner, &mut records, 2, false);
        let post = |measurer: &mut BatchMeasurer<'_, Numbers<'_>>, number| {
            measurer.pre(&clock);
            measurer.post(&clock, number);
        };
        post(&mut measurer, 5);
        measurer.interrupt();
        scripted::advance(1000);
        (6..=8).for_each(|number| post(&mut measurer, number));
        assert_eq!((measurer.noted(), measurer.batches()), (4, 1));
        let carried = measurer.forget();
        assert_eq!((carried.elements, carried.sum), (4, 26));
        assert_eq!((measurer.noted(), measurer.batches()), (0, 0));
        assert_eq!(records[0][1].0 - records[0][0].0, 1);
    }

    /// Takes 3 to build and 5 to check.
    #[derive(Clone, Copy)]
    struct Slow(NonZeroU64);

    impl Element for Slow {
        fn with_stamp(stamp: NonZeroU64) -> Self {
            scripted::advance(3);
            Slow(stamp)
        }
        fn stamp(&self) -> u64 {
            self.0.get()
        }
        fn is_intact(&self) -> bool {
            scripted::advance(5);
            true
        }
    }

    #[test]
    fn the_floor_of_a_batch_builds_or_checks_each_of_its_elements() {
        for size in [2, 64] {
            for payload in [8, 64, 256] {
                for role in [SENDER, RECEIVER] {
                    let found = floor(&scripted::set(1, 7), size, role, payload);
                    assert_eq!((found.min_ns, found.p50_ns), (7, 7.0));
                }
            }
            let found = |role| floor_of::<_, Slow>(&scripted::set(1, 7), size, role).min_ns as u32;
            assert_eq!(found(SENDER), 7 + 3 * size);
            // The clock is read before the last one is checked.
            assert_eq!(found(RECEIVER), 7 + 5 * (size - 1));
        }
    }
}
