//! The loops of [`runner`](crate::bench::queue::runner) for several threads at each end: elements carry their producer
//! and their number among its own, and whether they belong to the warm-up.

use std::cell::Cell;
use std::num::NonZeroU64;

use crate::bench::queue::error::ThreadError;
use crate::bench::queue::loops::{In, Loop, Out, Parts, boxed};
use crate::bench::queue::measurer::{Carried, Measurer, Record};
use crate::bench::queue::notes::Notes;
use crate::bench::queue::plan::Point;
use crate::bench::queue::task::Task;
use crate::node::wiring::Wiring;
use crate::pacing::Paced;
use crate::queues::element::{Element, Words};
use crate::queues::interface::{Queue, Receiver, Sender};
use crate::queues::many::ToAll;
use crate::queues::registry::{self, AllPayloads, QueueUser};
use crate::time::{Clock, Ticks};

use super::plan::lines;

/// What an element carries: the warm-up's mark, the producer counted from 1, and a number counted from 0. So it is never
/// zero. All other words of the element follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(pub(super) u64);

const WARM_UP: u64 = 1 << 63;
const OF_NUMBER: u32 = 40;

impl Tag {
    pub(super) fn new(producer: usize, number: u64) -> Self {
        Tag((producer as u64 + 1) << OF_NUMBER | number)
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
#[derive(Debug)]
struct Tags {
    next: u64,
    /// Of the elements that count.
    noted: usize,
    carried: Carried,
}

impl Tags {
    /// Of a producer that begins to warm up.
    fn of(producer: usize) -> Self {
        Tags {
            next: Tag::new(producer, 0).0 | WARM_UP,
            noted: 0,
            carried: Carried::default(),
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
        let counts = !Tag(stamp).is_warm_up();
        if counts {
            self.noted += 1;
        } else {
            add(&mut self.carried, stamp);
        }
        counts
    }

    /// The warm-up is over: elements count from now on.
    fn begin(&mut self) -> Carried {
        let (producer, _) = Tag(self.next).parts();
        self.next = Tag::new(producer, 0).0;
        self.carried
    }
}

#[inline(always)]
fn add(carried: &mut Carried, stamp: u64) {
    carried.elements += 1;
    carried.sum = carried.sum.wrapping_add(stamp);
}

/// A producer without time stamps. [`forget`](Measurer::forget) ends the warm-up.
struct Tagging(Tags);

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

    fn forget(&mut self) -> Carried {
        self.0.begin()
    }
}

/// A producer with time stamps: it notes when it first tried, and the time around the attempt that succeeded.
struct TimedTagging<'a> {
    tags: Tags,
    records: &'a mut [Record],
    measures_failed: bool,
    first: Cell<Ticks>,
    before: Ticks,
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

    fn forget(&mut self) -> Carried {
        self.tags.begin()
    }
}

/// A consumer, with time stamps or without: what elements carried is noted, but of the warm-up only added up, which
/// [`forget`](Measurer::forget) tells.
struct Taking<'a, N> {
    notes: &'a mut [N],
    noted: usize,
    carried: Carried,
    before: Ticks,
    measures_failed: bool,
}

/// What a consumer notes of an element.
trait Note: Copy {
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

impl<N: Note> Measurer for Taking<'_, N> {
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
        if Tag(stamp).is_warm_up() {
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

    fn forget(&mut self) -> Carried {
        self.carried
    }
}

/// Makes the loop of an end in the thread that will run it.
pub(super) type MakeLoop = Box<dyn for<'a> FnOnce(Parts<'a>) -> Box<dyn Loop + 'a> + Send>;

/// Makes all queues of a run, in one thread, and the loops of all of their ends: those of the producers, then those of
/// the consumers.
pub(super) type MakeAll = fn(&Task, &Wiring) -> Result<Vec<MakeLoop>, ThreadError>;

/// [`MakeAll`] for queues of one kind and elements of one size.
pub(super) fn make<Q: Queue<T>, T: Element>(
    task: &Task,
    wiring: &Wiring,
) -> Result<Vec<MakeLoop>, ThreadError> {
    let point = &task.point;
    // A plan has no others.
    let given = registry::given(&point.queue).unwrap_or_default();
    let none = || None::<Q::Receiver>;
    let mut senders: Vec<Vec<Q::Sender>> = (0..wiring.publishers).map(|_| Vec::new()).collect();
    let mut receivers: Vec<_> = (0..wiring.subscribers).map(|_| none()).collect();
    for line in lines(wiring) {
        let ends = [line.producers.len(), line.consumers.len()];
        let make = || Q::shared(point.capacity, &given, ends[0], ends[1]);
        let made = match &task.arena {
            Some(arena) => arena.within(make),
            None => make(),
        };
        let (of_line, to_line) =
            made.map_err(|error| ThreadError::Queue(point.queue.clone(), error))?;
        for (producer, sender) in line.producers.into_iter().zip(of_line) {
            senders[producer].push(sender);
        }
        for (consumer, receiver) in line.consumers.into_iter().zip(to_line) {
            receivers[consumer] = Some(receiver);
        }
    }
    let senders = senders.into_iter().enumerate().map(|(number, mut all)| {
        let make: MakeLoop = match all.len() {
            1 => {
                let sender = all.remove(0);
                Box::new(move |parts| sending::<T, _>(sender, number, parts))
            }
            _ => Box::new(move |parts| sending_to_all::<T, _>(ToAll::new(all), number, parts)),
        };
        make
    });
    let receivers = receivers.into_iter().flatten().map(|receiver| {
        let make: MakeLoop = Box::new(move |parts| receiving::<T, _>(receiver, parts));
        make
    });
    Ok(senders.chain(receivers).collect())
}

/// A stamp more or less is little where several threads share a line, so that what takes time is compiled once, for each
/// clock and pace as it comes.
fn sending<'a, T: Element, S: Sender<T> + 'a>(
    sender: S,
    producer: usize,
    parts: Parts<'a>,
) -> Box<dyn Loop + 'a> {
    let ends = (sender, parts.control, parts.patience, parts.retry);
    let tags = Tags::of(producer);
    match (parts.notes, parts.waiter) {
        (Notes::Times(records), waiter) => {
            let measurer = timed(tags, records, parts.measures_failed);
            boxed::<In, T, _, _, _, _>(ends, measurer, waiter, parts.clock)
        }
        (Notes::Numbers(_), Paced::Not(waiter)) => {
            boxed::<In, T, _, _, _, _>(ends, Tagging(tags), waiter, parts.clock)
        }
        (Notes::Numbers(_), waiter) => {
            boxed::<In, T, _, _, _, _>(ends, Tagging(tags), waiter, parts.clock)
        }
    }
}

/// The same to several queues.
fn sending_to_all<'a, T: Element, S: Sender<T> + 'a>(
    senders: ToAll<S>,
    producer: usize,
    parts: Parts<'a>,
) -> Box<dyn Loop + 'a> {
    let ends = (senders, parts.control, parts.patience, parts.retry);
    let tags = Tags::of(producer);
    match parts.notes {
        Notes::Times(records) => {
            let measurer = timed(tags, records, parts.measures_failed);
            boxed::<In, T, _, _, _, _>(ends, measurer, parts.waiter, parts.clock)
        }
        Notes::Numbers(_) => {
            boxed::<In, T, _, _, _, _>(ends, Tagging(tags), parts.waiter, parts.clock)
        }
    }
}

fn timed(tags: Tags, records: &mut [Record], measures_failed: bool) -> TimedTagging<'_> {
    TimedTagging {
        tags,
        records,
        measures_failed,
        first: Cell::new(Ticks(0)),
        before: Ticks(0),
    }
}

fn receiving<'a, T: Element, R: Receiver<T> + 'a>(
    receiver: R,
    parts: Parts<'a>,
) -> Box<dyn Loop + 'a> {
    let ends = (receiver, parts.control, parts.patience, parts.retry);
    match (parts.notes, parts.waiter) {
        (Notes::Times(notes), waiter) => {
            let measurer = taking(notes, parts.measures_failed);
            boxed::<Out, T, _, _, _, _>(ends, measurer, waiter, parts.clock)
        }
        (Notes::Numbers(notes), Paced::Not(waiter)) => {
            boxed::<Out, T, _, _, _, _>(ends, taking(notes, true), waiter, parts.clock)
        }
        (Notes::Numbers(notes), waiter) => {
            boxed::<Out, T, _, _, _, _>(ends, taking(notes, true), waiter, parts.clock)
        }
    }
}

fn taking<N>(notes: &mut [N], measures_failed: bool) -> Taking<'_, N> {
    Taking {
        notes,
        noted: 0,
        carried: Carried::default(),
        before: Ticks(0),
        measures_failed,
    }
}

/// Makes runs with elements of so many bytes.
struct MakeOf(usize);

impl QueueUser for MakeOf {
    type Output = Option<MakeAll>;

    fn with<Q: AllPayloads>(self) -> Self::Output {
        match self.0 {
            8 => Some(make::<Q, Words<1>>),
            64 => Some(make::<Q, Words<8>>),
            256 => Some(make::<Q, Words<32>>),
            _ => None,
        }
    }
}

/// Makes runs of this queue and this size of an element.
pub(super) fn make_of(point: &Point) -> MakeAll {
    let make = registry::visit(&point.queue, point.capacity, MakeOf(point.payload));
    make.flatten()
        .expect("a plan has queues of the registry, for elements that they are made for")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::scripted;

    #[test]
    fn an_element_tells_its_producer_and_its_number_and_the_warm_up_counts_apart() {
        let clock = scripted::set(100, 1);
        let mut producer = Tagging(Tags::of(6));
        let mut consumed = [0_u64; 2];
        let mut consumer = taking(&mut consumed, false);
        let pass = |producer: &mut Tagging, consumer: &mut Taking<u64>| {
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
        assert_eq!(consumed.map(|stamp| Tag(stamp).parts()), [(6, 0), (6, 1)]);
        assert_eq!(Tag(77).parts().0, usize::MAX);
    }

    #[test]
    fn the_time_is_from_the_first_attempt_and_around_the_last() {
        let clock = scripted::set(100, 1);
        let mut records = [[Ticks(0); 3]; 4];
        let mut measurer = timed(Tags::of(0), &mut records, false);
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
