//! What is noted of each operation while the loops run. One file holds both ways: with time stamps, and without.
//!
//! A measurer also decides what the payload carries, because that is what a run is checked by: the time stamp taken
//! before the first attempt to enqueue it, or its number where no time is taken.

use std::num::NonZeroU64;

use crate::time::{Clock, Ticks};

/// Takes note of the operations of one end.
pub trait Measurer {
    /// Whether the time of failed attempts belongs to the operation that succeeded at last, as it does where the clock
    /// is not read anyway. Asked after one that failed.
    #[inline(always)]
    fn measures_failed(&self) -> bool {
        true
    }

    /// An attempt is about to be made. Called again it replaces what was noted before.
    #[inline(always)]
    fn pre<C: Clock>(&mut self, _clock: &C) {}

    /// The same behind an attempt that failed and is not measured.
    #[inline(always)]
    fn again<C: Clock>(&mut self, clock: &C) {
        self.pre(clock);
    }

    /// What an element carries that is enqueued now; asked between [`pre`](Self::pre) and [`post`](Self::post).
    #[inline(always)]
    fn stamp(&self) -> NonZeroU64 {
        NonZeroU64::MIN
    }

    /// The attempt succeeded; `stamp` is what the element carries.
    fn post<C: Clock>(&mut self, clock: &C, stamp: u64);

    /// Does what belongs to the operation noted last, but comes behind it.
    #[inline(always)]
    fn beside<C: Clock>(&mut self, _clock: &C, work: impl FnOnce()) {
        work();
    }

    /// Operations noted since the beginning, or since they were forgotten.
    fn noted(&self) -> usize;

    /// Forgets what was noted, to note from the beginning again; returns what elements carried.
    fn forget(&mut self) -> CarriedElements;

    /// Batches of operations that were timed, where they are timed in batches.
    fn batches(&self) -> usize {
        0
    }

    /// Operations so far of which something came [behind](Self::beside), and was timed.
    fn extended(&self) -> usize {
        0
    }
}

/// What elements of a warm-up carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CarriedElements {
    /// How many they were.
    pub elements: u64,
    /// Of all of them, modulo 2^64.
    pub sum: u64,
    /// Not more than the one before it.
    pub out_of_order: u64,
}

impl CarriedElements {
    fn of(stamps: impl Iterator<Item = u64>) -> Self {
        let (mut carried, mut last) = (CarriedElements::default(), 0);
        for stamp in stamps {
            carried.elements += 1;
            carried.sum = carried.sum.wrapping_add(stamp);
            carried.out_of_order += u64::from(stamp <= last);
            last = stamp;
        }
        carried
    }
}

impl std::ops::AddAssign for CarriedElements {
    fn add_assign(&mut self, other: Self) {
        self.elements += other.elements;
        self.sum = self.sum.wrapping_add(other.sum);
        self.out_of_order += other.out_of_order;
    }
}

/// One operation: what the element carries, and the time before and after the attempt that succeeded. What came behind
/// it has moved the time after it by as much as that took.
pub type Record = [Ticks; 3];

/// The clock before and after each operation. Where failed attempts are measured, the time before is that of the first
/// attempt and not of the one that succeeded, and the clock is not read in between.
#[derive(Debug, Default)]
pub struct TimedMeasurer<'a> {
    records: &'a mut [Record],
    measures_failed: bool,
    noted: usize,
    extended: usize,
    before: Ticks,
}

impl<'a> TimedMeasurer<'a> {
    /// Notes into `records`, one after the other.
    pub fn new(records: &'a mut [Record], measures_failed: bool) -> Self {
        TimedMeasurer {
            records,
            measures_failed,
            noted: 0,
            extended: 0,
            before: Ticks(0),
        }
    }
}

impl Measurer for TimedMeasurer<'_> {
    #[inline(always)]
    fn measures_failed(&self) -> bool {
        self.measures_failed
    }

    #[inline(always)]
    fn pre<C: Clock>(&mut self, clock: &C) {
        self.before = clock.now();
    }

    #[inline(always)]
    fn stamp(&self) -> NonZeroU64 {
        NonZeroU64::new(self.before.0).unwrap_or(NonZeroU64::MIN)
    }

    #[inline(always)]
    fn post<C: Clock>(&mut self, clock: &C, stamp: u64) {
        let after = clock.now();
        if let Some(record) = self.records.get_mut(self.noted) {
            *record = [Ticks(stamp), self.before, after];
            self.noted += 1;
        }
        // Kept until the next operation it would take a register from the loop.
        self.before = Ticks(0);
    }

    #[inline(always)]
    fn beside<C: Clock>(&mut self, clock: &C, work: impl FnOnce()) {
        let before = clock.now();
        work();
        let after = clock.now();
        let last = self.noted.checked_sub(1);
        if let Some([_, _, end]) = last.and_then(|last| self.records.get_mut(last)) {
            end.0 = (end.0).wrapping_add(after.0.wrapping_sub(before.0));
            self.extended += 1;
        }
    }

    fn noted(&self) -> usize {
        self.noted
    }

    fn forget(&mut self) -> CarriedElements {
        let noted = std::mem::take(&mut self.noted);
        CarriedElements::of(self.records[..noted].iter().map(|[stamp, ..]| stamp.0))
    }

    fn extended(&self) -> usize {
        self.extended
    }
}

/// No time, at the sender: elements carry their number, counted from 1, so that nothing need be noted.
#[derive(Debug)]
pub struct Numbering {
    next: NonZeroU64,
}

impl Default for Numbering {
    fn default() -> Self {
        Numbering {
            next: NonZeroU64::MIN,
        }
    }
}

impl Measurer for Numbering {
    #[inline(always)]
    fn stamp(&self) -> NonZeroU64 {
        self.next
    }

    #[inline(always)]
    fn post<C: Clock>(&mut self, _clock: &C, _stamp: u64) {
        self.next = self.next.saturating_add(1);
    }

    fn noted(&self) -> usize {
        self.next.get() as usize - 1
    }

    fn forget(&mut self) -> CarriedElements {
        let numbers = 1..self.next.get();
        self.next = NonZeroU64::MIN;
        CarriedElements::of(numbers)
    }
}

/// No time, at the receiver: what elements carry is noted.
#[derive(Debug, Default)]
pub struct Numbers<'a> {
    numbers: &'a mut [u64],
    noted: usize,
}

impl<'a> Numbers<'a> {
    /// Notes into `numbers`, one after the other.
    pub fn new(numbers: &'a mut [u64]) -> Self {
        Numbers { numbers, noted: 0 }
    }
}

impl Measurer for Numbers<'_> {
    #[inline(always)]
    fn post<C: Clock>(&mut self, _clock: &C, stamp: u64) {
        if let Some(number) = self.numbers.get_mut(self.noted) {
            *number = stamp;
            self.noted += 1;
        }
    }

    fn noted(&self) -> usize {
        self.noted
    }

    fn forget(&mut self) -> CarriedElements {
        let noted = std::mem::take(&mut self.noted);
        CarriedElements::of(self.numbers[..noted].iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::scripted;

    #[test]
    fn a_second_pre_replaces_the_first_but_not_what_the_element_carries() {
        let clock = scripted::set(0, 1);
        let mut records = [[Ticks(0); 3]; 1];
        let mut measurer = TimedMeasurer::new(&mut records, false);
        measurer.pre(&clock);
        let stamp = measurer.stamp().get();
        measurer.pre(&clock);
        measurer.pre(&clock);
        measurer.post(&clock, stamp);
        assert_eq!(measurer.noted(), 1);
        // One more than there is room for is not noted.
        measurer.post(&clock, stamp);
        assert_eq!(measurer.noted(), 1);
        assert_eq!(records, [[Ticks(1), Ticks(3), Ticks(4)]]);
    }

    #[test]
    fn a_stamp_is_never_zero() {
        let measurer = TimedMeasurer::new(&mut [], true);
        assert_eq!(measurer.stamp().get(), 1);
    }

    #[test]
    fn numbers_take_no_time() {
        let clock = scripted::set(0, 1);
        let mut numbers = [0; 2];
        let (mut sender, mut receiver) = (Numbering::default(), Numbers::new(&mut numbers));
        for expected in 1..=3 {
            sender.pre(&clock);
            let stamp = sender.stamp().get();
            assert_eq!(stamp, expected);
            sender.post(&clock, stamp);
            receiver.pre(&clock);
            receiver.post(&clock, stamp);
        }
        assert_eq!(sender.noted(), 3);
        assert_eq!(receiver.noted(), 2);
        assert_eq!(scripted::time(), 0);
        assert_eq!(numbers, [1, 2]);
    }
}
