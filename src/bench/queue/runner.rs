//! The two hot loops: one end of a queue, a measurer and a waiter, each a type, so that every combination is compiled
//! as if written by hand.
//!
//! In the time of an enqueue: building the element around its stamp, which is done anew for each attempt, and
//! enqueueing it; where a queue hands over in batches and the sender pauses, handing over as well. In the time of a
//! dequeue: dequeueing. Outside of both: the check that the element is whole, noting it, and the pause. Nothing here
//! allocates, locks, formats or makes a system call; every [`ATTEMPTS_PER_LOOK`] failed attempts in a row there is one
//! look at the time, so that a queue that loses an element hangs nobody. Between two attempts there is what
//! [`Retry`] says, and nothing that a queue does by itself.

use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use super::control::{Control, Ending};
use super::measurer::{Carried, Measurer};
use super::patience::{ATTEMPTS_PER_LOOK, ELEMENTS_PER_LOOK, Patience};
use super::retry::{Retry, pause};
use crate::pacing::{Idle, Pacing};
use crate::queues::element::Element;
use crate::queues::interface::{Receiver, Sender};
use crate::time::{Clock, Ticks};

/// One end of a queue `Q` at work, measured by `M` and paced by `W`.
///
/// The loops take it by value and give it back, so that its parts can live in registers.
#[derive(Debug)]
pub struct Runner<'a, Q, M, W, C> {
    pub(super) queue: Q,
    pub(super) measurer: M,
    pub(super) waiter: W,
    pub(super) clock: C,
    pub(super) waiting: Waiting<'a>,
    pub(super) failed: u64,
    pub(super) damaged: u64,
    /// See [`Tally::unanswered`].
    pub(super) unanswered: bool,
    pub(super) ending: Ending,
}

/// What only attempts that fail, pauses, and the look after many elements need. As its address is passed on, it stays
/// in memory, and the registers are the loop's.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    pub(super) control: &'a Control,
    pub(super) patience: Patience,
    pub(super) most_pauses: u32,
}

impl Waiting<'_> {
    /// The same for a loop that begins.
    pub(super) fn anew(&self) -> Self {
        Waiting {
            patience: self.patience.anew(),
            ..*self
        }
    }

    /// See [`Patience::end_of_sender`].
    #[inline(always)]
    pub(super) fn end_of_sender(&mut self, done: usize) -> Option<Ending> {
        self.patience.end_of_sender(self.control, done as u64)
    }

    /// See [`Patience::end_of_receiver`].
    #[inline(always)]
    pub(super) fn end_of_receiver(&mut self, done: usize) -> Option<Ending> {
        self.patience.end_of_receiver(self.control, done as u64)
    }
}

impl<'a, Q, M: Measurer, W: Pacing, C: Clock> Runner<'a, Q, M, W, C> {
    /// Puts the parts together.
    pub fn new(
        queue: Q,
        measurer: M,
        waiter: W,
        clock: C,
        control: &'a Control,
        patience: Patience,
        retry: Retry,
    ) -> Self {
        Runner {
            queue,
            measurer,
            waiter,
            clock,
            waiting: Waiting {
                control,
                patience,
                most_pauses: retry.most_pauses(),
            },
            failed: 0,
            damaged: 0,
            unanswered: false,
            ending: Ending::Complete,
        }
    }

    /// Begins the schedule of the waiter, and returns when that was.
    #[inline(always)]
    pub fn start(&mut self) -> Ticks {
        let now = self.clock.now();
        self.waiter.start_at(now);
        now
    }

    /// Enqueues `count` elements, unless it has to leave before.
    #[inline(never)]
    pub fn send<T: Element>(self, count: usize) -> Self
    where
        Q: Sender<T>,
    {
        // Each part on its own: one that is passed on by reference would keep all of them out of registers.
        let Runner {
            queue,
            mut measurer,
            mut waiter,
            clock,
            mut waiting,
            mut failed,
            damaged,
            unanswered,
            mut ending,
        } = self;
        let mut queue = kept_on_panic(queue);
        waiting.patience.begin();
        'elements: for done in 0..count {
            measurer.pre(&clock);
            let stamp = measurer.stamp();
            let mut element = T::with_stamp(stamp);
            let mut pauses = 1;
            while !queue.enqueue(element) {
                failed += 1;
                if failed.is_multiple_of(ATTEMPTS_PER_LOOK)
                    && let Some(reason) = waiting.end_of_sender(done)
                {
                    ending = reason;
                    break 'elements;
                }
                pause(&mut pauses, waiting.most_pauses);
                if !measurer.measures_failed() {
                    measurer.pre(&clock);
                    // One word is its stamp and needs no building.
                    if T::BYTES > size_of::<u64>() {
                        // The compiler would build it once.
                        element = T::with_stamp(black_box(stamp));
                    }
                }
            }
            measurer.post(&clock, stamp.get());
            let idle = WhileSending {
                queue: &mut *queue,
                measurer: &mut measurer,
                clock: &clock,
                control: waiting.control,
                element: PhantomData::<T>,
            };
            waiter.pause(&clock, idle);
            if done.is_multiple_of(ELEMENTS_PER_LOOK)
                && let Some(reason) = waiting.control.look_of_sender()
            {
                ending = reason;
                break;
            }
        }
        Runner {
            queue: ManuallyDrop::into_inner(queue),
            measurer,
            waiter,
            clock,
            waiting,
            failed,
            damaged,
            unanswered,
            ending,
        }
    }

    /// Dequeues `count` elements, unless it has to leave before.
    #[inline(never)]
    pub fn receive<T: Element>(self, count: usize) -> Self
    where
        Q: Receiver<T>,
    {
        let Runner {
            queue,
            mut measurer,
            mut waiter,
            clock,
            mut waiting,
            mut failed,
            mut damaged,
            unanswered,
            mut ending,
        } = self;
        let mut queue = kept_on_panic(queue);
        waiting.patience.begin();
        'elements: for done in 0..count {
            measurer.pre(&clock);
            let mut pauses = 1;
            let element = loop {
                if let Some(element) = queue.dequeue() {
                    break element;
                }
                failed += 1;
                if failed.is_multiple_of(ATTEMPTS_PER_LOOK)
                    && let Some(reason) = waiting.end_of_receiver(done)
                {
                    ending = reason;
                    break 'elements;
                }
                pause(&mut pauses, waiting.most_pauses);
                if !measurer.measures_failed() {
                    measurer.pre(&clock);
                }
            };
            measurer.post(&clock, element.stamp());
            damaged += u64::from(!element.is_intact());
            waiter.pause(
                &clock,
                WhileReceiving {
                    control: waiting.control,
                },
            );
            if done.is_multiple_of(ELEMENTS_PER_LOOK)
                && let Some(reason) = waiting.control.look_of_receiver()
            {
                ending = reason;
                break;
            }
        }
        Runner {
            queue: ManuallyDrop::into_inner(queue),
            measurer,
            waiter,
            clock,
            waiting,
            failed,
            damaged,
            unanswered,
            ending,
        }
    }

    /// Hands over what the queue holds back.
    pub fn flush<T: Element>(&mut self)
    where
        Q: Sender<T>,
    {
        self.queue.flush();
    }

    /// What the queue still gives out, which must be nothing; at most `most` elements, by their stamps.
    pub fn leftovers<T: Element>(&mut self, most: usize) -> Vec<u64>
    where
        Q: Receiver<T>,
    {
        // So many that fail one after the other: elements that become visible late, one by one, are found as well.
        const ATTEMPTS: usize = 1000;
        let next = || (0..ATTEMPTS).find_map(|_| self.queue.dequeue());
        let found = std::iter::from_fn(next).take(most);
        found.map(|element| element.stamp()).collect()
    }

    /// Forgets what was noted, as [`Measurer::forget`] does.
    pub fn forget(&mut self) -> Carried {
        self.measurer.forget()
    }

    /// The end of the queue, to go on with.
    pub fn into_queue(self) -> Q {
        self.queue
    }

    /// What the loops have counted.
    pub fn tally(&self) -> Tally {
        Tally {
            noted: self.measurer.noted(),
            extended: self.measurer.extended(),
            failed: self.failed,
            damaged: self.damaged,
            unanswered: self.unanswered,
            missed: self.waiter.missed(),
            ending: self.ending,
        }
    }
}

/// A queue that is not dropped when its loop panics, which would keep it out of registers as long as the loop runs. The
/// process does not go on for long after that.
fn kept_on_panic<Q>(queue: Q) -> ManuallyDrop<Q> {
    ManuallyDrop::new(queue)
}

/// What an end has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that succeeded, without those of the warm-up.
    pub noted: usize,
    /// Those of them whose time holds handing over what the queue had held back.
    pub extended: usize,
    /// Attempts that failed, the queue being full or empty.
    pub failed: u64,
    /// Elements that came out with other words than their stamp's.
    pub damaged: u64,
    /// Whether the element noted last went in, or came out, of which no answer came back or could be given.
    pub unanswered: bool,
    /// Operations that were due before the one before them had ended.
    pub missed: u64,
    /// How it ended.
    pub ending: Ending,
}

impl Tally {
    /// The same, but with only the failed attempts and the misses that came after `earlier`: those of a warm-up do not
    /// count. Elements are checked from the first one on.
    pub fn since(self, earlier: &Tally) -> Self {
        Tally {
            failed: self.failed - earlier.failed,
            missed: self.missed - earlier.missed,
            extended: self.extended - earlier.extended,
            ..self
        }
    }
}

/// What the sender does while it pauses: first of all it hands over what it holds back.
struct WhileSending<'a, Q, M, C, T> {
    queue: &'a mut Q,
    measurer: &'a mut M,
    clock: &'a C,
    control: &'a Control,
    element: PhantomData<T>,
}

impl<T: Element, Q: Sender<T>, M: Measurer, C: Clock> Idle for WhileSending<'_, Q, M, C, T> {
    #[inline(always)]
    fn begin(&mut self) {
        if Q::HOLDS_BACK {
            self.measurer.beside(self.clock, || self.queue.flush());
        } else {
            self.queue.flush();
        }
        self.control.sender.beat();
    }

    #[inline(always)]
    fn tick(&mut self) -> bool {
        !self.control.sender_is_over()
    }
}

/// What the receiver does while it pauses.
pub(super) struct WhileReceiving<'a> {
    pub(super) control: &'a Control,
}

impl Idle for WhileReceiving<'_> {
    #[inline(always)]
    fn begin(&mut self) {
        self.control.receiver.beat();
    }

    #[inline(always)]
    fn tick(&mut self) -> bool {
        !self.control.stopped()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::num::NonZeroU64;
    use std::time::Duration;

    use super::*;
    use crate::bench::queue::measurer::{Record, Timed};
    use crate::pacing::{AfterMiss, BackToBack, ConstantRate, Interval, scripted};
    use crate::queues::McRingBuffer;
    use crate::queues::element::Words;
    use crate::queues::interface::Queue;
    use crate::time::Nanos;

    thread_local! {
        static BUILT: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts how often it is built.
    #[derive(Clone, Copy)]
    struct Built([u64; 2]);

    impl Element for Built {
        fn with_stamp(stamp: NonZeroU64) -> Self {
            BUILT.set(BUILT.get() + 1);
            Built([stamp.get(); 2])
        }
        fn stamp(&self) -> u64 {
            self.0[0]
        }
        fn is_intact(&self) -> bool {
            true
        }
    }

    /// Takes every third attempt; each takes 5.
    struct Third(u64);

    impl Sender<Built> for Third {
        fn enqueue(&mut self, _element: Built) -> bool {
            scripted::advance(5);
            self.0 += 1;
            self.0.is_multiple_of(3)
        }
    }

    #[test]
    fn each_attempt_has_the_element_built_in_its_time() {
        let clock = scripted::set(100, 1);
        let mut records: [Record; 2] = [[Ticks(0); 3]; 2];
        let (control, patience) = (Control::default(), Patience::new(Duration::from_secs(1)));
        BUILT.set(0);
        let measurer = Timed::new(&mut records, false);
        let (queue, retry) = (Third(0), Retry::None);
        let runner = Runner::new(
            queue, measurer, BackToBack, clock, &control, patience, retry,
        );
        let tally = runner.send::<Built>(2).tally();
        assert_eq!((tally.noted, tally.failed, BUILT.get()), (2, 4, 6));
        let lengths = records.map(|[_, before, after]| after.0 - before.0);
        assert_eq!(lengths, [6, 6]);
    }

    /// A queue that hands over in batches, and the element that its receiver sees after each flush, which takes 30.
    struct Watched<S, R> {
        sender: S,
        receiver: R,
        seen: Vec<Option<u64>>,
    }

    impl<S: Sender<Words<1>>, R: Receiver<Words<1>>> Sender<Words<1>> for Watched<S, R> {
        const HOLDS_BACK: bool = S::HOLDS_BACK;

        fn enqueue(&mut self, element: Words<1>) -> bool {
            scripted::advance(10);
            self.sender.enqueue(element)
        }

        fn flush(&mut self) {
            scripted::advance(30);
            self.sender.flush();
            let next = self.receiver.dequeue();
            self.seen.push(next.map(|element| element.stamp()));
        }
    }

    /// Three elements at an interval of so many nanoseconds: what was counted, noted, and seen after each flush.
    fn sent_every(interval: u64) -> (Tally, [Record; 3], Vec<Option<u64>>) {
        let clock = scripted::set(100, 1);
        let (sender, receiver) = <McRingBuffer as Queue<Words<1>>>::with_capacity(64).unwrap();
        let watched = Watched {
            sender,
            receiver,
            seen: Vec::new(),
        };
        let mut records: [Record; 3] = [[Ticks(0); 3]; 3];
        let (control, patience) = (Control::default(), Patience::new(Duration::from_secs(1)));
        let interval = Interval::new(&clock, Nanos(interval));
        let rate = ConstantRate::new(interval, AfterMiss::CatchUp);
        let measurer = Timed::new(&mut records, false);
        let retry = Retry::Backoff;
        let mut runner = Runner::new(watched, measurer, rate, clock, &control, patience, retry);
        runner.start();
        let runner = runner.send::<Words<1>>(3);
        let (tally, seen) = (runner.tally(), runner.into_queue().seen);
        (tally, records, seen)
    }

    #[test]
    fn before_a_pause_all_is_handed_over_and_its_time_is_the_enqueues() {
        let (tally, records, seen) = sent_every(1000);
        assert_eq!((tally.noted, tally.extended, tally.missed), (3, 3, 0));
        // None stays in the sender while it waits for the next.
        assert_eq!(seen, records.map(|[stamp, _, _]| Some(stamp.0)));
        // 10 and 30 and a reading each.
        let lengths = records.map(|[_, before, after]| after.0 - before.0);
        assert_eq!(lengths, [42; 3]);
    }

    #[test]
    fn a_sender_that_is_late_does_not_hand_over_each_element() {
        let (tally, ..) = sent_every(5);
        assert_eq!((tally.extended, tally.missed), (0, 3));
    }
}
