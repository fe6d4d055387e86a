//! The ends of queues with their loops, behind one trait that hides the types of the queue and its elements.
//!
//! | what is noted | compiled for |
//! | --- | --- |
//! | time stamps | no pause by the processor's counter; any pace by the counter; any pace by a POSIX clock |
//! | time stamps, of round trips and of several threads | any pace by any clock: a stamp more or less is little of such an operation |
//! | time stamps, by the counter without fences | any pace |
//! | time stamps of batches | no pause by any clock |
//! | numbers | no pause; any pace by any clock (to several queues, and of round trips, the second alone) |
//!
//! All that is asked a few times a run and not for each element is in [`State`], and compiled once.

use std::marker::PhantomData;

use super::batches::BatchMeasurer;
use super::config::Config;
use super::control::QueueControl;
use super::measurer::{CarriedElements, Measurer, Numbering, Numbers, Record, TimedMeasurer};
use super::notes::Notes;
use super::patience::Patience;
use super::round_trip::EndPair;
use super::runner::{AT_REST, EndTally, LoopCounts, Runner, Waiting};
use super::tagging::{TaggedReceiver, Tagging, TimedTagging};
use crate::pacing::{AnyPacing, NoPause, Pacing};
use crate::queues::element::Element;
use crate::queues::interface::{Receiver, Sender};
use crate::time::{AnyClock, Clock, Ticks};

/// What a loop is made of beside the queue.
pub(super) struct LoopParts<'a> {
    pub(super) clock: AnyClock,
    pub(super) control: &'a QueueControl,
    pub(super) patience: Patience,
    pub(super) waiter: AnyPacing,
    pub(super) config: &'a Config,
    pub(super) notes: &'a mut Notes,
}

/// An end with its loop, whose types are hidden: it is called a few times a run.
pub(super) trait Loop {
    /// Begins the schedule, or begins it anew, and returns when that was.
    fn start(&mut self) -> Ticks;
    fn run(&mut self, count: usize);
    /// Forgets what was noted, and returns what elements carried.
    fn forget(&mut self) -> CarriedElements;
    fn flush(&mut self);
    fn tally(&self) -> EndTally;
    /// What is left in the queue, at most so many.
    fn leftovers(&mut self, most: usize) -> Vec<u64>;
}

/// An end of a queue, on its way to the thread that will run its loop.
pub(super) struct UnstartedLoop {
    side: LoopKind,
    end: Box<dyn QueueEnd>,
}

impl UnstartedLoop {
    pub(super) fn of(self, parts: LoopParts<'_>) -> Box<dyn Loop + '_> {
        Box::new(EndLoop {
            end: self.end,
            state: State::new(self.side, parts),
        })
    }
}

/// What an end does, of which it depends what is noted.
#[derive(Debug, Clone, Copy)]
pub(super) enum LoopKind {
    Sends,
    Receives,
    /// Puts elements in, and waits for the answer to each.
    Asks,
    /// Answers each element with itself.
    Answers,
    /// As one of several threads, by its number.
    Produces(usize),
    Consumes,
}

/// Any of the measurers.
pub(super) enum AnyMeasurer<'a> {
    Timed(TimedMeasurer<'a>),
    Numbering(Numbering),
    Numbers(Numbers<'a>),
    NumberingBatches(BatchMeasurer<'a, Numbering>),
    NumbersOfBatches(BatchMeasurer<'a, Numbers<'a>>),
    TimedTagging(TimedTagging<'a>),
    Tagging(Tagging),
    TakingTimes(TaggedReceiver<'a, Record>),
    TakingNumbers(TaggedReceiver<'a, u64>),
}

impl<'a> AnyMeasurer<'a> {
    fn of(side: LoopKind, notes: &'a mut Notes, config: &Config) -> Self {
        use AnyMeasurer as Any;
        let (measures_failed, size) = (config.measure_failed, config.per_stamp);
        match (side, notes) {
            (LoopKind::Sends | LoopKind::Receives, Notes::Times(records)) => {
                Any::Timed(TimedMeasurer::new(records, measures_failed))
            }
            (LoopKind::Asks | LoopKind::Answers, Notes::Times(records)) => {
                Any::Timed(TimedMeasurer::new(records, true))
            }
            (LoopKind::Sends | LoopKind::Asks, Notes::Numbers(_)) => {
                Any::Numbering(Numbering::default())
            }
            (LoopKind::Receives | LoopKind::Answers, Notes::Numbers(numbers)) => {
                Any::Numbers(Numbers::new(numbers))
            }
            (LoopKind::Sends, Notes::Batches(_, records)) => Any::NumberingBatches(
                BatchMeasurer::new(Numbering::default(), records, size, measures_failed),
            ),
            (LoopKind::Receives, Notes::Batches(numbers, records)) => Any::NumbersOfBatches(
                BatchMeasurer::new(Numbers::new(numbers), records, size, measures_failed),
            ),
            // The options refuse it.
            (_, Notes::Batches(..)) => misplaced(),
            (LoopKind::Produces(number), Notes::Times(records)) => {
                Any::TimedTagging(TimedTagging::new(number, records, measures_failed))
            }
            (LoopKind::Produces(number), Notes::Numbers(_)) => Any::Tagging(Tagging::of(number)),
            (LoopKind::Consumes, Notes::Times(records)) => {
                Any::TakingTimes(TaggedReceiver::new(records, measures_failed))
            }
            (LoopKind::Consumes, Notes::Numbers(numbers)) => {
                Any::TakingNumbers(TaggedReceiver::new(numbers, true))
            }
        }
    }
}

/// One for all loops: what it says need not be made in each of them.
#[cold]
#[inline(never)]
fn misplaced() -> ! {
    panic!("the other end notes this")
}

/// What the measurer that it is does.
macro_rules! of_each {
    ($any:expr, $measurer:ident => $does:expr) => {
        match $any {
            AnyMeasurer::Timed($measurer) => $does,
            AnyMeasurer::Numbering($measurer) => $does,
            AnyMeasurer::Numbers($measurer) => $does,
            AnyMeasurer::NumberingBatches($measurer) => $does,
            AnyMeasurer::NumbersOfBatches($measurer) => $does,
            AnyMeasurer::TimedTagging($measurer) => $does,
            AnyMeasurer::Tagging($measurer) => $does,
            AnyMeasurer::TakingTimes($measurer) => $does,
            AnyMeasurer::TakingNumbers($measurer) => $does,
        }
    };
}

/// An end but for its queue, between two runs of its loop.
pub(super) struct State<'a> {
    clock: AnyClock,
    unfenced: bool,
    waiter: AnyPacing,
    measurer: AnyMeasurer<'a>,
    waiting: Waiting<'a>,
    counted: LoopCounts,
}

impl<'a> State<'a> {
    fn new(side: LoopKind, parts: LoopParts<'a>) -> Self {
        State {
            clock: parts.clock,
            unfenced: parts.config.unfenced,
            waiter: parts.waiter,
            measurer: AnyMeasurer::of(side, parts.notes, parts.config),
            waiting: Waiting::new(parts.control, parts.patience, parts.config.retry),
            counted: LoopCounts::default(),
        }
    }

    fn start(&mut self) -> Ticks {
        let now = self.clock.now();
        self.waiter.start_at(now);
        now
    }

    fn forget(&mut self) -> CarriedElements {
        of_each!(&mut self.measurer, measurer => measurer.forget())
    }

    fn tally(&self) -> EndTally {
        of_each!(&self.measurer, measurer => EndTally::of(measurer, &self.waiter, &self.counted))
    }
}

/// What the loops of an end are lent, but for the measurer.
pub(super) struct LoopResources<'r, 'a, Q> {
    queue: &'r mut Option<Q>,
    waiter: &'r mut AnyPacing,
    clock: &'r AnyClock,
    /// Whether the counter is read without fences.
    unfenced: bool,
    waiting: &'r mut Waiting<'a>,
    counted: &'r mut LoopCounts,
    count: usize,
}

impl<Q> LoopResources<'_, '_, Q> {
    /// Runs the loop that is compiled for this clock and, where a stamp is a few instructions, for no pause.
    fn by_clock<D: Direction<T, Q>, T>(self, measurer: &mut (impl Measurer + Default)) {
        match (self.clock, &*self.waiter) {
            (AnyClock::Counter(clock), _) if self.unfenced => {
                self.paced::<D, T>(measurer, &clock.unfenced());
            }
            (AnyClock::Counter(clock), AnyPacing::Not(_)) => self.unpaced::<D, T>(measurer, clock),
            (AnyClock::Counter(clock), _) => self.paced::<D, T>(measurer, clock),
            (AnyClock::Posix(clock), _) => self.paced::<D, T>(measurer, clock),
        }
    }

    /// Runs the loop that is compiled for no pause, if there is none: where no time is taken, asking for it would show.
    fn by_pace<D: Direction<T, Q>, T>(self, measurer: &mut (impl Measurer + Default)) {
        let clock = self.clock;
        match self.waiter {
            AnyPacing::Not(_) => self.unpaced::<D, T>(measurer, clock),
            _ => self.paced::<D, T>(measurer, clock),
        }
    }

    /// Runs the loop that is compiled for batches, between which nothing waits. None goes on from the run before.
    fn by_batch<D: Direction<T, Q>, T>(
        self,
        measurer: &mut BatchMeasurer<'_, impl Measurer + Default>,
    ) {
        let clock = self.clock;
        measurer.interrupt();
        self.unpaced::<D, T>(measurer, clock);
    }

    /// Runs the loop that is compiled for any pace and any clock.
    fn by_any_clock<D: Direction<T, Q>, T>(self, measurer: &mut (impl Measurer + Default)) {
        let clock = self.clock;
        self.paced::<D, T>(measurer, clock);
    }

    fn unpaced<D: Direction<T, Q>, T>(
        self,
        measurer: &mut (impl Measurer + Default),
        clock: &impl Clock,
    ) {
        let runner = Runner {
            queue: self.queue,
            measurer,
            waiter: &mut NoPause,
            clock,
            waiting: self.waiting,
            counted: self.counted,
        };
        D::hot_loop(runner, self.count);
    }

    fn paced<D: Direction<T, Q>, T>(
        self,
        measurer: &mut (impl Measurer + Default),
        clock: &impl Clock,
    ) {
        let runner = Runner {
            queue: self.queue,
            measurer,
            waiter: self.waiter,
            clock,
            waiting: self.waiting,
            counted: self.counted,
        };
        D::hot_loop(runner, self.count);
    }
}

/// What an end `Q` does.
pub(super) trait Direction<T, Q>: Sized {
    /// The loop of [`Runner`] for it.
    fn hot_loop<M: Measurer + Default, W: Pacing, C: Clock>(
        runner: Runner<'_, '_, Q, M, W, C>,
        count: usize,
    );

    /// Runs the loop that is compiled for what this end notes.
    fn run(lent: LoopResources<'_, '_, Q>, measurer: &mut AnyMeasurer<'_>);

    fn flush(_queue: &mut Q) {}

    /// What comes out next at an end of this direction, by its stamp.
    fn take_one(_queue: &mut Q) -> Option<u64> {
        None
    }
}

/// Into a queue.
pub(super) struct Enqueueing;

impl<T: Element, S: Sender<T>> Direction<T, S> for Enqueueing {
    fn hot_loop<M: Measurer + Default, W: Pacing, C: Clock>(
        runner: Runner<'_, '_, S, M, W, C>,
        count: usize,
    ) {
        runner.send::<T>(count);
    }

    fn run(lent: LoopResources<'_, '_, S>, measurer: &mut AnyMeasurer<'_>) {
        match measurer {
            AnyMeasurer::Timed(it) => lent.by_clock::<Self, T>(it),
            AnyMeasurer::Numbering(it) => lent.by_pace::<Self, T>(it),
            AnyMeasurer::NumberingBatches(it) => lent.by_batch::<Self, T>(it),
            AnyMeasurer::TimedTagging(it) => lent.by_any_clock::<Self, T>(it),
            AnyMeasurer::Tagging(it) => lent.by_pace::<Self, T>(it),
            _ => misplaced(),
        }
    }

    fn flush(queue: &mut S) {
        queue.flush();
    }
}

/// Into several queues.
pub(super) struct FanOutEnqueueing;

impl<T: Element, S: Sender<T>> Direction<T, S> for FanOutEnqueueing {
    fn hot_loop<M: Measurer + Default, W: Pacing, C: Clock>(
        runner: Runner<'_, '_, S, M, W, C>,
        count: usize,
    ) {
        runner.send::<T>(count);
    }

    fn run(lent: LoopResources<'_, '_, S>, measurer: &mut AnyMeasurer<'_>) {
        match measurer {
            AnyMeasurer::TimedTagging(it) => lent.by_any_clock::<Self, T>(it),
            AnyMeasurer::Tagging(it) => lent.by_any_clock::<Self, T>(it),
            _ => misplaced(),
        }
    }

    fn flush(queue: &mut S) {
        queue.flush();
    }
}

/// Out of a queue.
pub(super) struct Dequeueing;

impl<T: Element, R: Receiver<T>> Direction<T, R> for Dequeueing {
    fn hot_loop<M: Measurer + Default, W: Pacing, C: Clock>(
        runner: Runner<'_, '_, R, M, W, C>,
        count: usize,
    ) {
        runner.receive::<T>(count);
    }

    fn run(lent: LoopResources<'_, '_, R>, measurer: &mut AnyMeasurer<'_>) {
        match measurer {
            AnyMeasurer::Timed(it) => lent.by_clock::<Self, T>(it),
            AnyMeasurer::Numbers(it) => lent.by_pace::<Self, T>(it),
            AnyMeasurer::NumbersOfBatches(it) => lent.by_batch::<Self, T>(it),
            AnyMeasurer::TakingTimes(it) => lent.by_any_clock::<Self, T>(it),
            AnyMeasurer::TakingNumbers(it) => lent.by_pace::<Self, T>(it),
            _ => misplaced(),
        }
    }

    fn take_one(queue: &mut R) -> Option<u64> {
        queue.dequeue().map(|element| element.stamp())
    }
}

/// Puts elements in, and waits for the answer to each.
pub(super) struct Asking;

impl<T: Element, S: Sender<T>, R: Receiver<T>> Direction<T, EndPair<S, R>> for Asking {
    fn hot_loop<M: Measurer + Default, W: Pacing, C: Clock>(
        runner: Runner<'_, '_, EndPair<S, R>, M, W, C>,
        count: usize,
    ) {
        runner.ask::<T>(count);
    }

    fn run(lent: LoopResources<'_, '_, EndPair<S, R>>, measurer: &mut AnyMeasurer<'_>) {
        match measurer {
            AnyMeasurer::Timed(it) => lent.by_any_clock::<Self, T>(it),
            _ => misplaced(),
        }
    }

    fn take_one(queue: &mut EndPair<S, R>) -> Option<u64> {
        queue.receiver.dequeue().map(|element| element.stamp())
    }
}

/// Answers each element with itself.
pub(super) struct Answering;

impl<T: Element, S: Sender<T>, R: Receiver<T>> Direction<T, EndPair<S, R>> for Answering {
    fn hot_loop<M: Measurer + Default, W: Pacing, C: Clock>(
        runner: Runner<'_, '_, EndPair<S, R>, M, W, C>,
        count: usize,
    ) {
        runner.answer::<T>(count);
    }

    fn run(lent: LoopResources<'_, '_, EndPair<S, R>>, measurer: &mut AnyMeasurer<'_>) {
        match measurer {
            AnyMeasurer::Numbers(it) => lent.by_any_clock::<Self, T>(it),
            _ => misplaced(),
        }
    }

    fn take_one(queue: &mut EndPair<S, R>) -> Option<u64> {
        queue.receiver.dequeue().map(|element| element.stamp())
    }
}

/// An end of a queue, whose type and that of its elements are hidden.
trait QueueEnd: Send {
    /// Runs the loop for so many elements.
    fn run(&mut self, state: &mut State<'_>, count: usize);
    fn flush(&mut self);
    fn take_one(&mut self) -> Option<u64>;
}

/// An end `Q` that does what `D` says.
struct DirectedEnd<D, T, Q> {
    queue: Option<Q>,
    types: PhantomData<fn() -> (D, T)>,
}

impl<D: Direction<T, Q>, T, Q: Send> QueueEnd for DirectedEnd<D, T, Q> {
    fn run(&mut self, state: &mut State<'_>, count: usize) {
        let State {
            clock,
            unfenced,
            waiter,
            measurer,
            waiting,
            counted,
        } = state;
        let lent = LoopResources {
            queue: &mut self.queue,
            waiter,
            clock,
            unfenced: *unfenced,
            waiting,
            counted,
            count,
        };
        D::run(lent, measurer);
    }

    fn flush(&mut self) {
        D::flush(self.queue.as_mut().expect(AT_REST));
    }

    fn take_one(&mut self) -> Option<u64> {
        D::take_one(self.queue.as_mut().expect(AT_REST))
    }
}

struct EndLoop<'a> {
    end: Box<dyn QueueEnd>,
    state: State<'a>,
}

impl Loop for EndLoop<'_> {
    fn start(&mut self) -> Ticks {
        self.state.start()
    }

    fn run(&mut self, count: usize) {
        self.end.run(&mut self.state, count);
    }

    fn forget(&mut self) -> CarriedElements {
        self.state.forget()
    }

    fn flush(&mut self) {
        self.end.flush();
    }

    fn tally(&self) -> EndTally {
        self.state.tally()
    }

    fn leftovers(&mut self, most: usize) -> Vec<u64> {
        // So many that fail one after the other: elements that become visible late, one by one, are found as well.
        const ATTEMPTS: usize = 1000;
        let next = || (0..ATTEMPTS).find_map(|_| self.end.take_one());
        std::iter::from_fn(next).take(most).collect()
    }
}

/// Makes the loop of an end of a queue.
pub(super) fn loop_of<D, T, Q>(side: LoopKind, queue: Q) -> UnstartedLoop
where
    D: Direction<T, Q> + 'static,
    T: 'static,
    Q: Send + 'static,
{
    let end = Box::new(DirectedEnd {
        queue: Some(queue),
        types: PhantomData::<fn() -> (D, T)>,
    });
    UnstartedLoop { side, end }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::bench::queue::measurer::Numbering;
    use crate::bench::queue::retry::Retry;
    use crate::pacing::{EndLoad, Load, MissPolicy};
    use crate::time::{Counter, Posix};

    thread_local! {
        static CLOCK: Cell<&'static str> = const { Cell::new("") };
    }

    /// Writes down which clock its loop is compiled for.
    struct Named;

    impl Direction<(), ()> for Named {
        fn hot_loop<M: Measurer + Default, W: Pacing, C: Clock>(
            _runner: Runner<'_, '_, (), M, W, C>,
            _count: usize,
        ) {
            CLOCK.set(std::any::type_name::<C>());
        }

        fn run(_lent: LoopResources<'_, '_, ()>, _measurer: &mut AnyMeasurer<'_>) {}
    }

    fn clock_of_loop(clock: AnyClock, unfenced: bool, load: Load) -> &'static str {
        let load = EndLoad {
            load,
            ..EndLoad::NONE
        };
        let control = QueueControl::default();
        let patience = Patience::new(Duration::from_secs(1));
        let lent = LoopResources {
            queue: &mut Some(()),
            waiter: &mut load.waiter(&clock, MissPolicy::CatchUp),
            clock: &clock,
            unfenced,
            waiting: &mut Waiting::new(&control, patience, Retry::None),
            counted: &mut LoopCounts::default(),
            count: 1,
        };
        lent.by_clock::<Named, ()>(&mut Numbering::default());
        CLOCK.get()
    }

    #[test]
    fn the_loop_reads_the_counter_without_fences_where_that_is_asked() {
        let counter = AnyClock::Counter(Counter::of_made_up_rate(2.5e9));
        for load in [Load::None, Load::ConstantRate { rate_per_s: 1e6 }] {
            for (clock, unfenced, expected) in [
                (counter, false, "::Counter"),
                (counter, true, "::UnfencedCounter"),
                (AnyClock::Posix(Posix::MONOTONIC), false, "::Posix"),
            ] {
                let found = clock_of_loop(clock, unfenced, load);
                assert!(found.ends_with(expected), "{found}, not {expected}");
            }
        }
    }
}
