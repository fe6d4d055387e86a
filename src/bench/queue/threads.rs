//! The two threads of one run: placed, their memory touched, started together, and reported on.
//!
//! The sender's thread makes the queue, so that its memory is near the sender. Nothing but the loops, the start and the
//! flush at the end runs between the two readings of the page fault counter.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::config::{EndLoad, Measure, Paced};
use super::control::{Control, Ending, Patience};
use super::counters::{CounterError, Counters, Counts};
use super::element::Element;
use super::interface::{self, Queue, QueueError};
use super::measurer::{Measurer, Numbered, Record, Timed};
use super::runner::{Runner, Tally};
use crate::buffer::{BufferError, HugePagePolicy, PageKind, StampBuffer};
use crate::host::{HostError, PageFaults, Role, pinning};
use crate::pacing::{AfterMiss, NoPause, Pacing};
use crate::time::{Clock, StampCost, Ticks, measure_stamp_cost};

/// How long an end may take to make its queue and touch its memory.
pub(super) const PREPARATION: Duration = Duration::from_secs(120);
/// Elements that a queue gives out beyond those put in are looked at up to this number.
const MOST_LEFTOVERS: usize = 64;

/// A run to be made.
#[derive(Debug, Clone)]
pub(super) struct Task<C> {
    pub(super) clock: C,
    pub(super) sender_cpu: usize,
    pub(super) receiver_cpu: usize,
    pub(super) sender: EndLoad,
    pub(super) receiver: EndLoad,
    pub(super) capacity: usize,
    pub(super) warmup: usize,
    pub(super) count: usize,
    pub(super) measure: Measure,
    pub(super) measure_failed: bool,
    pub(super) huge_pages: HugePagePolicy,
    /// How long nothing may go through.
    pub(super) patience: Duration,
    /// How long all of it may take.
    pub(super) limit: Duration,
}

impl<C> Task<C> {
    pub(super) fn elements(&self) -> usize {
        self.warmup + self.count
    }
}

/// A thread cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// It cannot be placed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// It has no memory.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// There is no such queue.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// There are no counters.
    #[error(transparent)]
    Counters(#[from] CounterError),
    /// The other thread did not get ready; its own error says more.
    #[error("the other end of the queue did not get ready")]
    Alone,
}

/// What an end noted.
#[derive(Debug)]
pub(super) enum Notes {
    /// The clock.
    Times(StampBuffer<Record>),
    /// What elements carried.
    Numbers(StampBuffer<u64>),
}

impl Notes {
    fn new(measure: Measure, room: usize, policy: HugePagePolicy) -> Result<Self, BufferError> {
        Ok(match measure {
            Measure::Time => Notes::Times(StampBuffer::new(room, policy)?),
            Measure::Throughput | Measure::Counters => {
                Notes::Numbers(StampBuffer::new(room, policy)?)
            }
        })
    }

    fn pages(&self) -> PageKind {
        match self {
            Notes::Times(buffer) => buffer.page_kind(),
            Notes::Numbers(buffer) => buffer.page_kind(),
        }
    }
}

/// What a thread tells of its end.
#[derive(Debug)]
pub(super) struct EndReport {
    pub(super) tally: Tally,
    pub(super) notes: Notes,
    /// When its schedule began.
    pub(super) started: Ticks,
    /// When the elements that count began, and ended.
    pub(super) span: [Ticks; 2],
    pub(super) stamp: StampCost,
    pub(super) faults: PageFaults,
    pub(super) pages: PageKind,
    pub(super) counts: Option<Counts>,
    /// What the queue gave out beyond the last element.
    pub(super) leftovers: Vec<u64>,
}

/// What each thread sends, once.
pub(super) type Report = (Role, Result<EndReport, ThreadError>);

/// Starts both threads of a run.
pub(super) fn start<Q: Queue<T>, T: Element, C: Clock>(
    task: &Task<C>,
    control: &Arc<Control>,
    reports: &Sender<Report>,
) -> std::io::Result<[JoinHandle<()>; 2]> {
    let (give, take) = channel::<Q::Receiver>();
    let spawn =
        |role, name: &str, work: Box<dyn FnOnce() -> Result<EndReport, ThreadError> + Send>| {
            let (reports, control) = (reports.clone(), Arc::clone(control));
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || {
                    let other_end = StopUnlessDone(Some(control));
                    let report = work();
                    if report.is_ok() {
                        other_end.keep();
                    }
                    // Nobody listens once the supervisor has given up.
                    let _ = reports.send((role, report));
                })
        };
    let (of_sender, of_receiver) = (task.clone(), task.clone());
    let (with_sender, with_receiver) = (Arc::clone(control), Arc::clone(control));
    Ok([
        spawn(
            Role::Sender,
            "hcabench-send",
            Box::new(move || run_sender::<Q, T, C>(&of_sender, &with_sender, &give)),
        )?,
        spawn(
            Role::Receiver,
            "hcabench-recv",
            Box::new(move || {
                run_receiver::<Q::Receiver, T, C>(&of_receiver, &with_receiver, &take)
            }),
        )?,
    ])
}

/// Stops the other end when this one fails, or panics in a queue.
struct StopUnlessDone(Option<Arc<Control>>);

impl StopUnlessDone {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for StopUnlessDone {
    fn drop(&mut self) {
        if let Some(control) = &self.0 {
            control.stop();
        }
    }
}

fn run_sender<Q: Queue<T>, T: Element, C: Clock>(
    task: &Task<C>,
    control: &Control,
    give: &Sender<Q::Receiver>,
) -> Result<EndReport, ThreadError> {
    pinning::pin_current_thread(task.sender_cpu)?;
    let (sender, receiver) = Q::with_capacity(task.capacity)?;
    if give.send(receiver).is_err() {
        return Err(ThreadError::Alone);
    }
    // Numbers are known beforehand.
    let room = match task.measure {
        Measure::Time => task.elements(),
        Measure::Throughput | Measure::Counters => 0,
    };
    let mut end = End::prepare(task, control)?;
    let waiter = task.sender.waiter(&task.clock, AfterMiss::CatchUp);
    let mut notes = Notes::new(task.measure, room, task.huge_pages)?;
    match &mut notes {
        Notes::Times(records) if task.measure_failed => {
            end.send::<T, _, _>(sender, Timed::<true>::new(records), waiter)?;
        }
        Notes::Times(records) => {
            end.send::<T, _, _>(sender, Timed::<false>::new(records), waiter)?
        }
        Notes::Numbers(numbers) => end.send::<T, _, _>(sender, Numbered::new(numbers), waiter)?,
    }
    end.report(notes)
}

fn run_receiver<R: interface::Receiver<T>, T: Element, C: Clock>(
    task: &Task<C>,
    control: &Control,
    take: &Receiver<R>,
) -> Result<EndReport, ThreadError> {
    pinning::pin_current_thread(task.receiver_cpu)?;
    let receiver = take
        .recv_timeout(PREPARATION)
        .map_err(|_| ThreadError::Alone)?;
    let mut end = End::prepare(task, control)?;
    let waiter = task.receiver.waiter(&task.clock, AfterMiss::StartOver);
    let mut notes = Notes::new(task.measure, task.elements(), task.huge_pages)?;
    match &mut notes {
        Notes::Times(records) if task.measure_failed => {
            end.receive::<T, _, _>(receiver, Timed::<true>::new(records), waiter)?;
        }
        Notes::Times(records) => {
            end.receive::<T, _, _>(receiver, Timed::<false>::new(records), waiter)?;
        }
        Notes::Numbers(numbers) => {
            end.receive::<T, _, _>(receiver, Numbered::new(numbers), waiter)?;
        }
    }
    end.report(notes)
}

/// A thread's end of a run: what goes into the loops, and what came of them.
struct End<'a, C> {
    task: &'a Task<C>,
    control: &'a Control,
    stamp: StampCost,
    counters: Option<Counters>,
    outcome: Option<Outcome>,
}

struct Outcome {
    tally: Tally,
    started: Ticks,
    span: [Ticks; 2],
    faults: PageFaults,
    counts: Option<Counts>,
    leftovers: Vec<u64>,
}

impl<'a, C: Clock> End<'a, C> {
    fn prepare(task: &'a Task<C>, control: &'a Control) -> Result<Self, ThreadError> {
        let counters = match task.measure {
            Measure::Counters => Some(Counters::open()?),
            Measure::Time | Measure::Throughput => None,
        };
        Ok(End {
            task,
            control,
            stamp: measure_stamp_cost(&task.clock),
            counters,
            outcome: None,
        })
    }

    fn patience(&self) -> Patience {
        Patience::new(self.task.patience)
    }

    /// The sending loop, with the waiter as a type of its own.
    fn send<T: Element, S, M>(
        &mut self,
        queue: S,
        measurer: M,
        waiter: Option<Paced>,
    ) -> Result<(), ThreadError>
    where
        S: interface::Sender<T>,
        M: Measurer,
    {
        match waiter {
            None => self.send_with::<T, _, _, _>(queue, measurer, NoPause),
            Some(paced) => self.send_with::<T, _, _, _>(queue, measurer, paced),
        }
    }

    fn send_with<T: Element, S, M, W>(
        &mut self,
        queue: S,
        measurer: M,
        waiter: W,
    ) -> Result<(), ThreadError>
    where
        S: interface::Sender<T>,
        M: Measurer,
        W: Pacing,
    {
        let (clock, patience) = (self.task.clock, self.patience());
        let runner = Runner::new(queue, measurer, waiter, clock, self.control, patience);
        let (warmup, count) = (self.task.warmup, self.task.count);
        let runner = self.run(
            runner,
            |runner| runner.send::<T>(warmup),
            |runner| {
                let mut runner = runner.send::<T>(count);
                runner.flush::<T>();
                runner
            },
        )?;
        // The queue lives until the receiver has what is in it.
        self.control.set_sender_done();
        drop(runner);
        Ok(())
    }

    /// The receiving loop, with the waiter as a type of its own.
    fn receive<T: Element, R, M>(
        &mut self,
        queue: R,
        measurer: M,
        waiter: Option<Paced>,
    ) -> Result<(), ThreadError>
    where
        R: interface::Receiver<T>,
        M: Measurer,
    {
        match waiter {
            None => self.receive_with::<T, _, _, _>(queue, measurer, NoPause),
            Some(paced) => self.receive_with::<T, _, _, _>(queue, measurer, paced),
        }
    }

    fn receive_with<T: Element, R, M, W>(
        &mut self,
        queue: R,
        measurer: M,
        waiter: W,
    ) -> Result<(), ThreadError>
    where
        R: interface::Receiver<T>,
        M: Measurer,
        W: Pacing,
    {
        let (clock, patience) = (self.task.clock, self.patience());
        let runner = Runner::new(queue, measurer, waiter, clock, self.control, patience);
        let (warmup, count) = (self.task.warmup, self.task.count);
        let mut runner = self.run(
            runner,
            |runner| runner.receive::<T>(warmup),
            |runner| runner.receive::<T>(count),
        )?;
        self.control.set_receiver_done();
        // The sender leaves as soon as it sees that, or was done before; the supervisor has a limit as well.
        while !self.control.sender_done() && !self.control.stopped() {
            std::thread::yield_now();
        }
        if let Some(outcome) = &mut self.outcome {
            outcome.leftovers = runner.leftovers::<T>(MOST_LEFTOVERS);
        }
        Ok(())
    }

    /// Starts with the other end, warms up, and measures.
    fn run<Q, M: Measurer, W: Pacing>(
        &mut self,
        mut runner: Runner<'a, Q, M, W, C>,
        warm_up: impl FnOnce(Runner<'a, Q, M, W, C>) -> Runner<'a, Q, M, W, C>,
        measured: impl FnOnce(Runner<'a, Q, M, W, C>) -> Runner<'a, Q, M, W, C>,
    ) -> Result<Runner<'a, Q, M, W, C>, ThreadError> {
        let clock = self.task.clock;
        let control = self.control;
        let before = PageFaults::of_current_thread()?;
        let work = || {
            if !control.start_together() {
                return None;
            }
            let started = runner.start();
            let runner = warm_up(runner);
            let began = clock.now();
            // Who gave up while warming up does not wait a second time.
            let runner = if runner.tally().ending == Ending::Complete {
                measured(runner)
            } else {
                runner
            };
            Some((runner, started, [began, clock.now()]))
        };
        let (done, counts) = match &mut self.counters {
            None => (work(), None),
            Some(counters) => {
                let (done, counts) = counters.during(work)?;
                (done, Some(counts))
            }
        };
        let faults = PageFaults::of_current_thread()?.since(&before);
        let (runner, started, span) = done.ok_or(ThreadError::Alone)?;
        self.outcome = Some(Outcome {
            tally: runner.tally(),
            started,
            span,
            faults,
            counts,
            leftovers: Vec::new(),
        });
        Ok(runner)
    }

    fn report(self, notes: Notes) -> Result<EndReport, ThreadError> {
        let outcome = self.outcome.ok_or(ThreadError::Alone)?;
        Ok(EndReport {
            tally: outcome.tally,
            started: outcome.started,
            span: outcome.span,
            stamp: self.stamp,
            faults: outcome.faults,
            pages: notes.pages(),
            counts: outcome.counts,
            leftovers: outcome.leftovers,
            notes,
        })
    }
}
