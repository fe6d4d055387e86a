//! The two hot loops: one end of a queue, a measurer, a waiter and a clock, each a type, so that every combination is
//! compiled as if written by hand. `loops` says which combinations there are.
//!
//! In the time of an enqueue: building the element around its stamp, which is done anew for each attempt, and
//! enqueueing it; where a queue hands over in batches and the sender pauses, handing over as well. In the time of a
//! dequeue: dequeueing. Outside of both: the check that the element is whole, noting it, and the pause. Nothing here
//! allocates, locks, formats or makes a system call; every [`ATTEMPTS_PER_LOOK`] failed attempts in a row there is one
//! look at the time, so that a queue that loses an element hangs nobody. Between two attempts there is what
//! [`Retry`] says, and nothing that a queue does by itself.

use std::hint::black_box;
use std::mem::ManuallyDrop;

use super::control::{Ending, QueueControl};
use super::measurer::Measurer;
use super::patience::{ATTEMPTS_PER_LOOK, ELEMENTS_PER_LOOK, Patience};
use super::retry::{Retry, pause};
use crate::pacing::{Pacing, wait_until};
use crate::queues::element::Element;
use crate::queues::interface::{Receiver, Sender};
use crate::time::Clock;

/// One end of a queue `Q` at work, measured by `M` and paced by `W`.
///
/// The loops move the queue and the measurer to variables of their own and back, so that their parts can live in
/// registers. What only attempts that fail, pauses, and the look after many elements need stays in memory.
#[derive(Debug)]
pub struct Runner<'r, 'a, Q, M, W, C> {
    /// The end of the queue; there while no loop runs.
    pub queue: &'r mut Option<Q>,
    /// What takes notes.
    pub measurer: &'r mut M,
    /// What is between two elements.
    pub waiter: &'r mut W,
    /// What time is taken by.
    pub clock: &'r C,
    /// What attempts that fail need.
    pub waiting: &'r mut Waiting<'a>,
    /// What the loops count.
    pub counted: &'r mut LoopCounts,
}

/// What a loop counts, and how it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoopCounts {
    /// Attempts that failed, the queue being full or empty.
    pub failed: u64,
    /// Elements that came out with other words than their stamp's.
    pub damaged: u64,
    /// Whether the element noted last went in, or came out, of which no answer came back or could be given.
    pub unanswered: bool,
    /// How it ended.
    pub ending: Ending,
}

/// What an end does while it waits for the other one.
#[derive(Debug)]
pub struct Waiting<'a> {
    pub(super) control: &'a QueueControl,
    pub(super) patience: Patience,
    pub(super) most_pauses: u32,
}

impl<'a> Waiting<'a> {
    /// Of an end that has not waited yet.
    pub fn new(control: &'a QueueControl, patience: Patience, retry: Retry) -> Self {
        Waiting {
            control,
            patience,
            most_pauses: retry.most_pauses(),
        }
    }

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

impl<Q, M: Measurer + Default, W: Pacing, C: Clock> Runner<'_, '_, Q, M, W, C> {
    /// Enqueues `count` elements, unless it has to leave before.
    #[inline(never)]
    pub fn send<T: Element>(self, count: usize)
    where
        Q: Sender<T>,
    {
        let (mut queue, mut measurer) = (taken(self.queue), std::mem::take(self.measurer));
        // A copy too: a pointer to it would take a register.
        let mut waiting = self.waiting.anew();
        let (waiter, clock) = (self.waiter, *self.clock);
        let LoopCounts {
            mut failed,
            mut ending,
            ..
        } = *self.counted;
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
                    measurer.again(&clock);
                    // One word is its stamp and needs no building.
                    if T::BYTES > size_of::<u64>() {
                        // The compiler would build it once.
                        element = T::with_stamp(black_box(stamp));
                    }
                }
            }
            measurer.post(&clock, stamp.get());
            if let Some(due) = waiter.next_due(self.clock) {
                // First of all it hands over what it holds back.
                if Q::HOLDS_BACK {
                    measurer.beside(&clock, || queue.flush());
                } else {
                    queue.flush();
                }
                let control = waiting.control;
                control.sender.beat();
                wait_until(due, &clock, || !control.sender_is_over());
            }
            if done.is_multiple_of(ELEMENTS_PER_LOOK)
                && let Some(reason) = waiting.control.look_of_sender()
            {
                ending = reason;
                break;
            }
        }
        (self.counted.failed, self.counted.ending) = (failed, ending);
        *self.waiting = waiting;
        *self.measurer = measurer;
        give_back(self.queue, queue);
    }

    /// Dequeues `count` elements, unless it has to leave before.
    #[inline(never)]
    pub fn receive<T: Element>(self, count: usize)
    where
        Q: Receiver<T>,
    {
        let (mut queue, mut measurer) = (taken(self.queue), std::mem::take(self.measurer));
        let mut waiting = self.waiting.anew();
        let (waiter, clock) = (self.waiter, *self.clock);
        let LoopCounts {
            mut failed,
            mut damaged,
            mut ending,
            ..
        } = *self.counted;
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
                    measurer.again(&clock);
                }
            };
            measurer.post(&clock, element.stamp());
            damaged += u64::from(!element.is_intact());
            if let Some(due) = waiter.next_due(self.clock) {
                let control = waiting.control;
                control.receiver.beat();
                wait_until(due, &clock, || !control.stopped());
            }
            if done.is_multiple_of(ELEMENTS_PER_LOOK)
                && let Some(reason) = waiting.control.look_of_receiver()
            {
                ending = reason;
                break;
            }
        }
        (self.counted.failed, self.counted.damaged) = (failed, damaged);
        self.counted.ending = ending;
        *self.waiting = waiting;
        *self.measurer = measurer;
        give_back(self.queue, queue);
    }
}

/// A queue that is not dropped when its loop panics, which would keep it out of registers as long as the loop runs.
pub(super) fn taken<Q>(queue: &mut Option<Q>) -> ManuallyDrop<Q> {
    ManuallyDrop::new(queue.take().expect(AT_REST))
}

pub(super) fn give_back<Q>(place: &mut Option<Q>, queue: ManuallyDrop<Q>) {
    // What was there was taken.
    std::mem::forget(place.replace(ManuallyDrop::into_inner(queue)));
}

pub(super) const AT_REST: &str = "a loop gives the queue back";

/// What an end has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndTally {
    /// Operations that succeeded, without those of the warm-up.
    pub noted: usize,
    /// Batches of them that were timed.
    pub batches: usize,
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

impl EndTally {
    pub(super) fn of(measurer: &impl Measurer, waiter: &impl Pacing, counted: &LoopCounts) -> Self {
        EndTally {
            noted: measurer.noted(),
            batches: measurer.batches(),
            extended: measurer.extended(),
            failed: counted.failed,
            damaged: counted.damaged,
            unanswered: counted.unanswered,
            missed: waiter.missed(),
            ending: counted.ending,
        }
    }

    /// The same, but with only the failed attempts and the misses that came after `earlier`: those of a warm-up do not
    /// count. Elements are checked from the first one on.
    pub fn since(self, earlier: &EndTally) -> Self {
        EndTally {
            failed: self.failed - earlier.failed,
            missed: self.missed - earlier.missed,
            extended: self.extended - earlier.extended,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::num::NonZeroU64;
    use std::time::Duration;

    use super::*;
    use crate::bench::queue::measurer::{Record, TimedMeasurer};
    use crate::pacing::{ConstantRate, Interval, MissPolicy, NoPause, scripted};
    use crate::queues::McRingBuffer;
    use crate::queues::element::Words;
    use crate::queues::interface::Queue;
    use crate::time::{Nanos, Ticks};

    thread_local! {
        static BUILT: Cell<u64> = const { Cell::new(0) };
    }

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
        let (control, patience) = (
            QueueControl::default(),
            Patience::new(Duration::from_secs(1)),
        );
        BUILT.set(0);
        let mut measurer = TimedMeasurer::new(&mut records, false);
        let mut counted = LoopCounts::default();
        let runner = Runner {
            queue: &mut Some(Third(0)),
            measurer: &mut measurer,
            waiter: &mut NoPause,
            clock: &clock,
            waiting: &mut Waiting::new(&control, patience, Retry::None),
            counted: &mut counted,
        };
        runner.send::<Built>(2);
        let tally = EndTally::of(&measurer, &NoPause, &counted);
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
    fn sent_every(interval: u64) -> (EndTally, [Record; 3], Vec<Option<u64>>) {
        let clock = scripted::set(100, 1);
        let (sender, receiver) = <McRingBuffer as Queue<Words<1>>>::with_capacity(64).unwrap();
        let mut watched = Some(Watched {
            sender,
            receiver,
            seen: Vec::new(),
        });
        let mut records: [Record; 3] = [[Ticks(0); 3]; 3];
        let (control, patience) = (
            QueueControl::default(),
            Patience::new(Duration::from_secs(1)),
        );
        let interval = Interval::new(&clock, Nanos(interval));
        let mut rate = ConstantRate::new(interval, MissPolicy::CatchUp);
        rate.start_at(clock.now());
        let mut measurer = TimedMeasurer::new(&mut records, false);
        let mut counted = LoopCounts::default();
        let runner = Runner {
            queue: &mut watched,
            measurer: &mut measurer,
            waiter: &mut rate,
            clock: &clock,
            waiting: &mut Waiting::new(&control, patience, Retry::Backoff),
            counted: &mut counted,
        };
        runner.send::<Words<1>>(3);
        let tally = EndTally::of(&measurer, &rate, &counted);
        (tally, records, watched.unwrap().seen)
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
