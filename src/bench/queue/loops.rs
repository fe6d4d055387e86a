//! The loops of the two ends, each compiled for its queue, element, clock and waiter, behind one trait that hides
//! these.

use std::marker::PhantomData;

use super::control::Control;
use super::measurer::{Carried, Measurer, Numbering, Numbers, Timed};
use super::notes::Notes;
use super::patience::Patience;
use super::retry::Retry;
use super::round_trip::Both;
use super::runner::{Runner, Tally};
use crate::pacing::{Paced, Pacing};
use crate::queues::element::Element;
use crate::queues::interface;
use crate::time::{AnyClock, Clock, Ticks};

/// What a loop is made of beside the queue.
pub(super) struct Parts<'a> {
    pub(super) clock: AnyClock,
    pub(super) control: &'a Control,
    pub(super) patience: Patience,
    pub(super) waiter: Paced,
    pub(super) measures_failed: bool,
    pub(super) retry: Retry,
    pub(super) notes: &'a mut Notes,
}

/// An end with its loop, whose types are hidden: it is called a few times a run.
pub(super) trait Loop {
    /// Begins the schedule, and returns when that was.
    fn start(&mut self) -> Ticks;
    fn run(&mut self, count: usize);
    /// Forgets what was noted, and returns what elements carried.
    fn forget(&mut self) -> Carried;
    fn flush(&mut self);
    fn tally(&self) -> Tally;
    /// What is left in the queue, at most so many.
    fn leftovers(&mut self, most: usize) -> Vec<u64>;
}

/// Which of the two loops an end `Q` runs.
pub(super) trait Direction<T, Q> {
    /// Takes note of operations without the time.
    type Untimed<'a>: Measurer;

    fn untimed(notes: &mut [u64]) -> Self::Untimed<'_>;

    fn run<M: Measurer, W: Pacing, C: Clock>(
        runner: Runner<'_, Q, M, W, C>,
        count: usize,
    ) -> Runner<'_, Q, M, W, C>;

    fn flush<M: Measurer, W: Pacing, C: Clock>(_runner: &mut Runner<'_, Q, M, W, C>) {}

    fn leftovers<M: Measurer, W: Pacing, C: Clock>(
        _runner: &mut Runner<'_, Q, M, W, C>,
        _most: usize,
    ) -> Vec<u64> {
        Vec::new()
    }
}

/// Into the queue.
pub(super) struct In;

impl<T: Element, S: interface::Sender<T>> Direction<T, S> for In {
    type Untimed<'a> = Numbering;

    fn untimed(_notes: &mut [u64]) -> Numbering {
        Numbering::default()
    }

    fn run<M: Measurer, W: Pacing, C: Clock>(
        runner: Runner<'_, S, M, W, C>,
        count: usize,
    ) -> Runner<'_, S, M, W, C> {
        runner.send::<T>(count)
    }

    fn flush<M: Measurer, W: Pacing, C: Clock>(runner: &mut Runner<'_, S, M, W, C>) {
        runner.flush::<T>();
    }
}

/// Out of the queue.
pub(super) struct Out;

impl<T: Element, R: interface::Receiver<T>> Direction<T, R> for Out {
    type Untimed<'a> = Numbers<'a>;

    fn untimed(notes: &mut [u64]) -> Numbers<'_> {
        Numbers::new(notes)
    }

    fn run<M: Measurer, W: Pacing, C: Clock>(
        runner: Runner<'_, R, M, W, C>,
        count: usize,
    ) -> Runner<'_, R, M, W, C> {
        runner.receive::<T>(count)
    }

    fn leftovers<M: Measurer, W: Pacing, C: Clock>(
        runner: &mut Runner<'_, R, M, W, C>,
        most: usize,
    ) -> Vec<u64> {
        runner.leftovers::<T>(most)
    }
}

struct Running<'a, D, T, Q, M, W, C> {
    runner: Option<Runner<'a, Q, M, W, C>>,
    types: PhantomData<(D, T)>,
}

const AT_REST: &str = "the runner is given back by its loop";

impl<D: Direction<T, Q>, T, Q, M: Measurer, W: Pacing, C: Clock> Loop
    for Running<'_, D, T, Q, M, W, C>
{
    fn start(&mut self) -> Ticks {
        self.runner.as_mut().expect(AT_REST).start()
    }

    fn run(&mut self, count: usize) {
        let runner = self.runner.take().expect(AT_REST);
        self.runner = Some(D::run(runner, count));
    }

    fn forget(&mut self) -> Carried {
        self.runner.as_mut().expect(AT_REST).forget()
    }

    fn flush(&mut self) {
        D::flush(self.runner.as_mut().expect(AT_REST));
    }

    fn tally(&self) -> Tally {
        self.runner.as_ref().expect(AT_REST).tally()
    }

    fn leftovers(&mut self, most: usize) -> Vec<u64> {
        D::leftovers(self.runner.as_mut().expect(AT_REST), most)
    }
}

/// Puts elements in, and waits for the answer to each.
pub(super) struct Asking;

impl<T: Element, S: interface::Sender<T>, R: interface::Receiver<T>> Direction<T, Both<S, R>>
    for Asking
{
    type Untimed<'a> = Numbering;

    fn untimed(_notes: &mut [u64]) -> Numbering {
        Numbering::default()
    }

    fn run<M: Measurer, W: Pacing, C: Clock>(
        runner: Runner<'_, Both<S, R>, M, W, C>,
        count: usize,
    ) -> Runner<'_, Both<S, R>, M, W, C> {
        runner.ask::<T>(count)
    }

    fn leftovers<M: Measurer, W: Pacing, C: Clock>(
        runner: &mut Runner<'_, Both<S, R>, M, W, C>,
        most: usize,
    ) -> Vec<u64> {
        runner.leftovers::<T>(most)
    }
}

/// Answers each element with itself.
pub(super) struct Answering;

impl<T: Element, S: interface::Sender<T>, R: interface::Receiver<T>> Direction<T, Both<S, R>>
    for Answering
{
    type Untimed<'a> = Numbers<'a>;

    fn untimed(notes: &mut [u64]) -> Numbers<'_> {
        Numbers::new(notes)
    }

    fn run<M: Measurer, W: Pacing, C: Clock>(
        runner: Runner<'_, Both<S, R>, M, W, C>,
        count: usize,
    ) -> Runner<'_, Both<S, R>, M, W, C> {
        runner.answer::<T>(count)
    }

    fn leftovers<M: Measurer, W: Pacing, C: Clock>(
        runner: &mut Runner<'_, Both<S, R>, M, W, C>,
        most: usize,
    ) -> Vec<u64> {
        runner.leftovers::<T>(most)
    }
}

/// The loop of a round trip. A stamp more or less is little of one, so that it is compiled once, for each clock and
/// pace as it comes.
pub(super) fn loop_there_and_back<'a, D, T, Q>(queue: Q, parts: Parts<'a>) -> Box<dyn Loop + 'a>
where
    D: Direction<T, Q> + 'a,
    T: 'a,
    Q: 'a,
{
    let ends = (queue, parts.control, parts.patience, parts.retry);
    match parts.notes {
        Notes::Times(records) => {
            let measurer = Timed::new(records, true);
            boxed::<D, T, _, _, _, _>(ends, measurer, parts.waiter, parts.clock)
        }
        Notes::Numbers(numbers) => {
            boxed::<D, T, _, _, _, _>(ends, D::untimed(numbers), parts.waiter, parts.clock)
        }
    }
}

/// The loop for these notes: with time stamps compiled for each clock, without them for the clock of the pauses as it
/// comes, and once more for no pause at all, without time stamps and with those of the processor's counter.
pub(super) fn loop_of<'a, D, T, Q>(queue: Q, parts: Parts<'a>) -> Box<dyn Loop + 'a>
where
    D: Direction<T, Q> + 'a,
    T: 'a,
    Q: 'a,
{
    let Parts {
        clock,
        control,
        patience,
        waiter,
        measures_failed,
        retry,
        notes,
    } = parts;
    let ends = (queue, control, patience, retry);
    match notes {
        Notes::Times(records) => {
            let measurer = Timed::new(records, measures_failed);
            match (waiter, clock) {
                // Where a stamp is a few instructions, asking for the waiter after each element would show.
                (Paced::Not(waiter), AnyClock::Counter(clock)) => {
                    boxed::<D, T, _, _, _, _>(ends, measurer, waiter, clock)
                }
                (waiter, AnyClock::Counter(clock)) => {
                    boxed::<D, T, _, _, _, _>(ends, measurer, waiter, clock)
                }
                (waiter, AnyClock::Monotonic(clock)) => {
                    boxed::<D, T, _, _, _, _>(ends, measurer, waiter, clock)
                }
                (waiter, AnyClock::MonotonicRaw(clock)) => {
                    boxed::<D, T, _, _, _, _>(ends, measurer, waiter, clock)
                }
            }
        }
        Notes::Numbers(numbers) => {
            let measurer = D::untimed(numbers);
            match waiter {
                Paced::Not(waiter) => boxed::<D, T, _, _, _, _>(ends, measurer, waiter, clock),
                waiter => boxed::<D, T, _, _, _, _>(ends, measurer, waiter, clock),
            }
        }
    }
}

pub(super) fn boxed<'a, D, T, Q, M, W, C>(
    (queue, control, patience, retry): (Q, &'a Control, Patience, Retry),
    measurer: M,
    waiter: W,
    clock: C,
) -> Box<dyn Loop + 'a>
where
    D: Direction<T, Q> + 'a,
    T: 'a,
    Q: 'a,
    M: Measurer + 'a,
    W: Pacing + 'a,
    C: Clock,
{
    let runner = Runner::new(queue, measurer, waiter, clock, control, patience, retry);
    Box::new(Running {
        runner: Some(runner),
        types: PhantomData::<(D, T)>,
    })
}
