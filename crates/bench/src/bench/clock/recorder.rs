//! What the loop stores of each difference.

use crate::buffer::StampBuffer;
use crate::stats::LatencyHistogram;

/// Takes each difference, in ticks.
pub trait Recorder {
    /// What a pass of the loop gives its differences to, each at most [`direct_limit`](Self::direct_limit) and no jump.
    /// It holds all that the loop needs in registers; the pass says how many there were by
    /// [`recorded`](Self::recorded).
    fn recording(&mut self) -> impl FnMut(u64);

    /// So many differences were given to the last recording.
    fn recorded(&mut self, _count: u64) {}

    /// Takes a single difference of any length, outside of the loop.
    fn record(&mut self, difference: u64);

    /// The largest difference that the loop can give.
    fn direct_limit(&self) -> u64;
}

/// A closure takes each: `|_: u64| ()` where the jumps alone are wanted.
impl<F: FnMut(u64)> Recorder for F {
    #[inline(always)]
    fn recording(&mut self) -> impl FnMut(u64) {
        move |difference| (*self)(difference)
    }

    fn record(&mut self, difference: u64) {
        self(difference);
    }

    fn direct_limit(&self) -> u64 {
        u64::MAX >> 1
    }
}

/// Differences with a counter of their own: all below this many ticks.
pub const DIRECT: usize = 4096;

/// Counts differences in constant memory: each value below [`DIRECT`] ticks exactly, the others in a histogram to three
/// digits. Where the baseline is higher than that, the counters in front are of steps of a power of two ticks each.
#[derive(Debug)]
pub struct CountingRecorder {
    direct: Box<[u64; DIRECT]>,
    shift: u32,
    above: LatencyHistogram,
}

impl Default for CountingRecorder {
    fn default() -> Self {
        // Written with something else than zero first: pages of zeros need not be there yet.
        let mut direct = Box::new([1; DIRECT]);
        std::hint::black_box(&mut direct).fill(0);
        Self {
            direct,
            shift: 0,
            above: LatencyHistogram::presized(),
        }
    }
}

impl CountingRecorder {
    /// For a clock whose jumps are above so many ticks: all other differences stay in the loop.
    pub fn for_baseline(baseline: u64) -> Self {
        let mut counted = Self::default();
        while counted.direct_limit() < baseline && counted.shift < 40 {
            counted.shift += 1;
        }
        counted
    }

    /// The ticks of a step of the counters in front: 1 if they are exact.
    pub fn step(&self) -> u64 {
        1 << self.shift
    }

    /// The counters of the small values, by value in steps of [`step`](Self::step), and the histogram of the others.
    pub fn parts(&self) -> (&[u64; DIRECT], &LatencyHistogram) {
        (&self.direct, &self.above)
    }
}

impl Recorder for CountingRecorder {
    #[inline(always)]
    fn recording(&mut self) -> impl FnMut(u64) {
        let (direct, shift) = (&mut *self.direct, self.shift);
        // The limit of the loop is below `DIRECT` steps; written so that no check is left.
        move |difference| direct[(difference >> shift) as usize % DIRECT] += 1
    }

    fn record(&mut self, difference: u64) {
        if difference <= self.direct_limit() {
            self.recording()(difference);
        } else {
            self.above
                .record(i64::try_from(difference).unwrap_or(i64::MAX));
        }
    }

    fn direct_limit(&self) -> u64 {
        ((DIRECT as u64) << self.shift) - 1
    }
}

/// Keeps every difference in the order of time, in memory that was mapped, touched and locked before.
#[derive(Debug)]
pub struct KeepingRecorder {
    slots: StampBuffer<u32>,
    /// Differences so far, those that did not fit among them.
    offered: usize,
    /// Where a slot says [`TOO_LONG`], in order.
    long: Vec<u64>,
}

/// Stands for a difference that does not fit a slot.
const TOO_LONG: u32 = u32::MAX;

impl KeepingRecorder {
    /// Differences that do not fit a slot, each more than a second of any clock: room for as many before the list
    /// grows.
    const LONG: usize = 1024;

    /// Keeps as many differences as there are slots.
    pub fn new(slots: StampBuffer<u32>) -> Self {
        KeepingRecorder {
            slots,
            offered: 0,
            long: Vec::with_capacity(Self::LONG),
        }
    }

    /// All differences so far, in the order of time.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let mut long = self.long.iter();
        let used = self.offered.min(self.slots.len());
        self.slots[..used].iter().map(move |&slot| match slot {
            TOO_LONG => *long.next().expect("each has an entry"),
            slot => u64::from(slot),
        })
    }

    /// The memory, used or not.
    pub fn slots(&self) -> &StampBuffer<u32> {
        &self.slots
    }

    /// Differences for which there was no slot left.
    pub fn missed(&self) -> u64 {
        self.offered.saturating_sub(self.slots.len()) as u64
    }
}

impl Recorder for KeepingRecorder {
    #[inline(always)]
    fn recording(&mut self) -> impl FnMut(u64) {
        let used = self.offered.min(self.slots.len());
        let mut slots = self.slots[used..].iter_mut();
        move |difference| {
            if let Some(slot) = slots.next() {
                *slot = difference as u32;
            }
        }
    }

    fn recorded(&mut self, count: u64) {
        self.offered += count as usize;
    }

    fn record(&mut self, difference: u64) {
        if difference >= u64::from(TOO_LONG) && self.offered < self.slots.len() {
            self.long.push(difference);
        }
        self.recording()(difference.min(u64::from(TOO_LONG)));
        self.recorded(1);
    }

    fn direct_limit(&self) -> u64 {
        u64::from(TOO_LONG) - 1
    }
}

/// Both.
impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    #[inline(always)]
    fn recording(&mut self) -> impl FnMut(u64) {
        let (mut first, mut second) = (self.0.recording(), self.1.recording());
        move |difference| {
            first(difference);
            second(difference);
        }
    }

    fn recorded(&mut self, count: u64) {
        self.0.recorded(count);
        self.1.recorded(count);
    }

    fn record(&mut self, difference: u64) {
        self.0.record(difference);
        self.1.record(difference);
    }

    fn direct_limit(&self) -> u64 {
        self.0.direct_limit().min(self.1.direct_limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::HugePagePolicy;

    #[test]
    fn kept_differences_come_back_in_order_whatever_their_size() {
        let mut kept = KeepingRecorder::new(StampBuffer::new(5, HugePagePolicy::Off).unwrap());
        let differences = [40, 0, 1 << 40, u64::from(u32::MAX), 41];
        let more = differences.into_iter().chain([1 << 41, 3]);
        more.for_each(|difference| kept.record(difference));
        assert!(kept.iter().eq(differences));
        assert_eq!(kept.missed(), 2);
    }

    #[test]
    fn the_counters_reach_to_the_baseline_and_what_is_above_is_counted_as_well() {
        for (baseline, step) in [
            (40, 1),
            (4095, 1),
            (4096, 2),
            (40_000, 16),
            (u64::MAX, 1 << 40),
        ] {
            let mut counted = CountingRecorder::for_baseline(baseline);
            assert_eq!(counted.step(), step, "{baseline}");
            let limit = counted.direct_limit();
            counted.record(limit);
            counted.record(40 * step);
            counted.record(limit + 1);
            let (direct, above) = counted.parts();
            assert_eq!((direct[40], direct[DIRECT - 1]), (1, 1));
            assert_eq!((direct.iter().sum::<u64>(), above.count()), (2, 1));
        }
    }

    #[test]
    fn two_recorders_take_all_that_both_can() {
        let mut sum = 0;
        let mut both = (CountingRecorder::default(), |difference| sum += difference);
        assert_eq!(both.direct_limit(), 4095);
        both.record(40);
        both.record(5000);
        assert_eq!((both.0.parts().0[40], both.0.parts().1.count()), (1, 1));
        assert_eq!(sum, 5040);
    }
}
