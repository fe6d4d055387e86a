//! What is noted of each operation where several threads share queues, as in [`measurer`](super::measurer): elements
//! carry their producer and their number among its own, and whether they belong to the warm-up.

use std::cell::Cell;
use std::num::NonZeroU64;

use super::measurer::{CarriedElements, Measurer, Record};
use crate::time::{Clock, Ticks};

/// What an element carries: the warm-up's mark, the producer counted from 1, and a number counted from 0. So it is never
/// zero. All other words of the element follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElementTag(pub(super) u64);

const WARM_UP: u64 = 1 << 63;
const OF_NUMBER: u32 = 40;

impl ElementTag {
    pub(super) fn new(producer: usize, number: u64) -> Self {
        ElementTag((producer as u64 + 1) << OF_NUMBER | number)
    }

    pub(super) fn is_warm_up(self) -> bool {
        self.0 & WARM_UP != 0
    }

    /// The producer and the number; of what no producer made, a producer that there is not.
    pub(super) fn parts(self) -> (usize, usize) {
        let producer = ((self.0 & !WARM_UP) >> OF_NUMBER) as usize;
        let number = self.0 & ((1 << OF_NUMBER) - 1);
        (producer.wrapping_sub(1), number as usize)
    }
}

/// What a producer puts in next, and what of it belonged to the warm-up.
#[derive(Debug, Default)]
struct Tags {
    next: u64,
    /// Of the elements that count.
    noted: usize,
    carried: CarriedElements,
}

impl Tags {
    /// Of a producer that begins to warm up.
    fn of(producer: usize) -> Self {
        Tags {
            next: ElementTag::new(producer, 0).0 | WARM_UP,
            noted: 0,
            carried: CarriedElements::default(),
        }
    }

    #[inline(always)]
    fn stamp(&self) -> NonZeroU64 {
        NonZeroU64::new(self.next).unwrap_or(NonZeroU64::MIN)
    }

    /// It was put in. Whether it counts.
    #[inline(always)]
    fn post(&mut self, stamp: u64) -> bool {
        self.next += 1;
        let counts = !ElementTag(stamp).is_warm_up();
        if counts {
            self.noted += 1;
        } else {
            add(&mut self.carried, stamp);
        }
        counts
    }

    /// The warm-up is over: elements count from now on.
    fn begin(&mut self) -> CarriedElements {
        let (producer, _) = ElementTag(self.next).parts();
        self.next = ElementTag::new(producer, 0).0;
        self.carried
    }
}

#[inline(always)]
fn add(carried: &mut CarriedElements, stamp: u64) {
    carried.elements += 1;
    carried.sum = carried.sum.wrapping_add(stamp);
}

/// A producer without time stamps. [`forget`](Measurer::forget) ends the warm-up.
#[derive(Default)]
pub(super) struct Tagging(Tags);

impl Tagging {
    pub(super) fn of(producer: usize) -> Self {
        Tagging(Tags::of(producer))
    }
}

impl Measurer for Tagging {
    #[inline(always)]
    fn stamp(&self) -> NonZeroU64 {
        self.0.stamp()
    }

    #[inline(always)]
    fn post<C: Clock>(&mut self, _clock: &C, stamp: u64) {
        self.0.post(stamp);
    }

    fn noted(&self) -> usize {
        self.0.noted
    }

    fn forget(&mut self) -> CarriedElements {
        self.0.begin()
    }
}

/// A producer with time stamps: it notes when it first tried, and the time around the attempt that succeeded.
#[derive(Default)]
pub(super) struct TimedTagging<'a> {
    tags: Tags,
    records: &'a mut [Record],
    measures_failed: bool,
    first: Cell<Ticks>,
    before: Ticks,
}

impl<'a> TimedTagging<'a> {
    pub(super) fn new(producer: usize, records: &'a mut [Record], measures_failed: bool) -> Self {
        TimedTagging {
            tags: Tags::of(producer),
            records,
            measures_failed,
            first: Cell::new(Ticks(0)),
            before: Ticks(0),
        }
    }
}

impl Measurer for TimedTagging<'_> {
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
        self.first.set(self.before);
        self.tags.stamp()
    }

    #[inline(always)]
    fn post<C: Clock>(&mut self, clock: &C, stamp: u64) {
        let after = clock.now();
        let at = self.tags.noted;
        if self.tags.post(stamp)
            && let Some(record) = self.records.get_mut(at)
        {
            *record = [self.first.get(), self.before, after];
        }
        // Kept until the next operation it would take a register from the loop.
        self.before = Ticks(0);
    }

    fn noted(&self) -> usize {
        self.tags.noted
    }

    fn forget(&mut self) -> CarriedElements {
        self.tags.begin()
    }
}

/// A consumer, with time stamps or without: what elements carried is noted, but of the warm-up only added up, which
/// [`forget`](Measurer::forget) tells.
#[derive(Default)]
pub(super) struct TaggedReceiver<'a, N> {
    notes: &'a mut [N],
    noted: usize,
    carried: CarriedElements,
    before: Ticks,
    measures_failed: bool,
}

/// What a consumer notes of an element.
pub(super) trait Note: Copy {
    const IS_TIMED: bool;

    fn of(stamp: u64, before: Ticks, after: Ticks) -> Self;
}

impl Note for u64 {
    const IS_TIMED: bool = false;

    #[inline(always)]
    fn of(stamp: u64, _before: Ticks, _after: Ticks) -> Self {
        stamp
    }
}

impl Note for Record {
    const IS_TIMED: bool = true;

    #[inline(always)]
    fn of(stamp: u64, before: Ticks, after: Ticks) -> Self {
        [Ticks(stamp), before, after]
    }
}

impl<'a, N> TaggedReceiver<'a, N> {
    pub(super) fn new(notes: &'a mut [N], measures_failed: bool) -> Self {
        TaggedReceiver {
            notes,
            noted: 0,
            carried: CarriedElements::default(),
            before: Ticks(0),
            measures_failed,
        }
    }
}

impl<N: Note> Measurer for TaggedReceiver<'_, N> {
    #[inline(always)]
    fn measures_failed(&self) -> bool {
        !N::IS_TIMED || self.measures_failed
    }

    #[inline(always)]
    fn pre<C: Clock>(&mut self, clock: &C) {
        if N::IS_TIMED {
            self.before = clock.now();
        }
    }

    #[inline(always)]
    fn post<C: Clock>(&mut self, clock: &C, stamp: u64) {
        let after = if N::IS_TIMED { clock.now() } else { Ticks(0) };
        if ElementTag(stamp).is_warm_up() {
            add(&mut self.carried, stamp);
        } else if let Some(note) = self.notes.get_mut(self.noted) {
            *note = N::of(stamp, self.before, after);
            self.noted += 1;
        }
        self.before = Ticks(0);
    }

    fn noted(&self) -> usize {
        self.noted
    }

    fn forget(&mut self) -> CarriedElements {
        self.carried
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::scripted;

    #[test]
    fn an_element_tells_its_producer_and_its_number_and_the_warm_up_counts_apart() {
        let clock = scripted::set(100, 1);
        let mut producer = Tagging::of(6);
        let mut consumed = [0_u64; 2];
        let mut consumer = TaggedReceiver::new(&mut consumed, false);
        let pass = |producer: &mut Tagging, consumer: &mut TaggedReceiver<u64>| {
            let stamp = producer.stamp().get();
            producer.post(&clock, stamp);
            consumer.post(&clock, stamp);
        };
        (0..3).for_each(|_| pass(&mut producer, &mut consumer));
        assert_eq!(producer.noted(), 0);
        let put_in = producer.forget();
        (0..2).for_each(|_| pass(&mut producer, &mut consumer));
        assert_eq!((producer.noted(), consumer.noted()), (2, 2));
        assert_eq!((put_in, put_in.elements), (consumer.forget(), 3));
        // What there is no room for is not noted.
        pass(&mut producer, &mut consumer);
        assert_eq!(
            consumed.map(|stamp| ElementTag(stamp).parts()),
            [(6, 0), (6, 1)]
        );
        assert_eq!(ElementTag(77).parts().0, usize::MAX);
    }

    #[test]
    fn the_time_is_from_the_first_attempt_and_around_the_last() {
        let clock = scripted::set(100, 1);
        let mut records = [[Ticks(0); 3]; 4];
        let mut measurer = TimedTagging::new(0, &mut records, false);
        measurer.forget();
        measurer.pre(&clock);
        let stamp = measurer.stamp();
        scripted::advance(50);
        measurer.pre(&clock);
        measurer.post(&clock, stamp.get());
        assert_eq!(measurer.noted(), 1);
        let [first, before, after] = records[0].map(|ticks| ticks.0);
        assert!(before - first >= 50 && after > before, "{records:?}");
    }
}
