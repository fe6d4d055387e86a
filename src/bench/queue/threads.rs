//! The two threads of one run: placed, their memory touched, started together, and reported on.
//!
//! The sender's thread makes the queue, so that its memory is near the sender. Page faults are counted while
//! the elements that count go through, and in nothing else.
//!
//! Only the loops are compiled for each queue, element, clock and waiter; all else is behind [`Start`] and `dyn Loop`,
//! which is called a few times a run. Otherwise the compiler would be busy for ten minutes.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::config::{EndLoad, Measure, Paced};
use super::control::{Control, ELEMENTS_PER_LOOK, Ending, Patience};
use super::counters::{CounterError, Counters, Counting, Counts};
use super::element::Element;
use super::floor::{self, OperationFloors};
use super::interface::{self, Queue, QueueError};
use super::measurer::{Measurer, Numbering, Numbers, Record, Timed};
use super::runner::{Runner, Tally};
use crate::buffer::{BufferError, Bytes, HugePagePolicy, PageKind, StampBuffer};
use crate::host::{HostError, PageFaults, Role, memory_lock, pinning};
use crate::pacing::{AfterMiss, Pacing};
use crate::time::{AnyClock, Clock, ClockUser, StampCost, Ticks, measure_stamp_cost};

/// How long an end may take to make its queue and touch its memory.
pub(super) const PREPARATION: Duration = Duration::from_secs(120);
/// Elements that a queue gives out beyond those put in are looked at up to this number. Where an end gave up, those that
/// are still in the queue are taken out as well, to tell whether any is lost.
const MOST_LEFTOVERS: usize = 64;

/// A run to be made.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) clock: AnyClock,
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
    /// Whether all memory is to be locked, for that of the queue.
    pub(super) locks_memory: bool,
    /// How long nothing may go through.
    pub(super) patience: Duration,
    /// How long all of it may take.
    pub(super) limit: Duration,
}

impl Task {
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
    #[error("stamps of --count and --warmup elements: {0}")]
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
    /// How many an end takes.
    pub(super) fn room(role: Role, measure: Measure, elements: usize) -> usize {
        // Numbers that were sent are known without notes.
        if role == Role::Sender && measure != Measure::Time {
            0
        } else {
            elements
        }
    }

    /// The memory of so many.
    pub(super) fn length(measure: Measure, room: usize, policy: HugePagePolicy) -> Bytes {
        match measure {
            Measure::Time => StampBuffer::<Record>::length_for(room, policy),
            Measure::Throughput | Measure::Counters => StampBuffer::<u64>::length_for(room, policy),
        }
    }

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
    /// What the measurer of this end measures without a queue.
    pub(super) floors: OperationFloors,
    pub(super) faults: PageFaults,
    pub(super) pages: PageKind,
    /// Whether the memory of the queue is locked, as the sender knows.
    pub(super) queue_locked: bool,
    pub(super) counts: Option<Counts>,
    /// What the queue gave out beyond the last element.
    pub(super) leftovers: Vec<u64>,
}

/// What each thread sends, once.
pub(super) type Report = (Role, Result<EndReport, ThreadError>);

/// What a loop is made of beside the queue.
struct Parts<'a> {
    clock: AnyClock,
    control: &'a Control,
    patience: Patience,
    waiter: Paced,
    measures_failed: bool,
    notes: &'a mut Notes,
}

/// Makes the loop of an end, in the thread that will run it.
type Make =
    Box<dyn for<'a> FnOnce(&Task, Parts<'a>) -> Result<Box<dyn Loop + 'a>, ThreadError> + Send>;

/// Starts both threads of a run: a queue of one kind and elements of one size. Everything behind it knows neither, so
/// that only the loops are compiled for each.
pub(super) type Start =
    fn(&Task, &Arc<Control>, &Sender<Report>) -> std::io::Result<[JoinHandle<()>; 2]>;

/// [`Start`] for a kind of queue and element.
pub(super) fn start<Q: Queue<T>, T: Element>(
    task: &Task,
    control: &Arc<Control>,
    reports: &Sender<Report>,
) -> std::io::Result<[JoinHandle<()>; 2]> {
    let (give, take) = channel::<Q::Receiver>();
    let sender: Make = Box::new(move |task, parts| {
        let (sender, receiver) = Q::with_capacity(task.capacity)?;
        if give.send(receiver).is_err() {
            return Err(ThreadError::Alone);
        }
        Ok(loop_of::<In, T, _>(sender, parts))
    });
    let receiver: Make = Box::new(move |_, parts| {
        let receiver = take
            .recv_timeout(PREPARATION)
            .map_err(|_| ThreadError::Alone)?;
        Ok(loop_of::<Out, T, _>(receiver, parts))
    });
    Ok([
        spawn(Role::Sender, task, control, reports, sender)?,
        spawn(Role::Receiver, task, control, reports, receiver)?,
    ])
}

fn spawn(
    role: Role,
    task: &Task,
    control: &Arc<Control>,
    reports: &Sender<Report>,
    make: Make,
) -> std::io::Result<JoinHandle<()>> {
    let name = if role == Role::Sender {
        "hcabench-send"
    } else {
        "hcabench-recv"
    };
    let (task, control, reports) = (task.clone(), Arc::clone(control), reports.clone());
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let other_end = StopUnlessDone(Some(Arc::clone(&control)));
            let report = run_end(role, &task, &control, make);
            if report.is_ok() {
                other_end.keep();
            }
            // Nobody listens once the supervisor has given up.
            let _ = reports.send((role, report));
        })
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

/// An end with its loop, whose types are hidden: it is called a few times a run.
trait Loop {
    /// Begins the schedule, and returns when that was.
    fn start(&mut self) -> Ticks;
    /// Lets so many elements through.
    fn run(&mut self, count: usize);
    /// Hands over what is held back.
    fn flush(&mut self);
    /// What was counted.
    fn tally(&self) -> Tally;
    /// What is left in the queue, at most so many.
    fn leftovers(&mut self, most: usize) -> Vec<u64>;
}

/// Which of the two loops an end `Q` runs.
trait Direction<T, Q> {
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
struct In;

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
struct Out;

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

/// A runner between two calls.
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

/// The loop for these notes: with time stamps compiled for each clock, without them for the clock of the pauses as it
/// comes, and once more for no pause at all, without time stamps and with those of the TSC.
fn loop_of<'a, D, T, Q>(queue: Q, parts: Parts<'a>) -> Box<dyn Loop + 'a>
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
        notes,
    } = parts;
    match notes {
        Notes::Times(records) => {
            let measurer = Timed::new(records, measures_failed);
            match (waiter, clock) {
                // Where a stamp is a few instructions, asking for the waiter after each element would show.
                #[cfg(target_arch = "x86_64")]
                (Paced::Not(waiter), AnyClock::Tsc(clock)) => boxed::<D, T, _, _, _, _>(
                    Runner::new(queue, measurer, waiter, clock, control, patience),
                ),
                (waiter, clock) => clock.visit(ForClock::<D, T, Q> {
                    queue,
                    measurer,
                    waiter,
                    control,
                    patience,
                    types: PhantomData,
                }),
            }
        }
        Notes::Numbers(numbers) => {
            let measurer = D::untimed(numbers);
            match waiter {
                Paced::Not(waiter) => boxed::<D, T, _, _, _, _>(Runner::new(
                    queue, measurer, waiter, clock, control, patience,
                )),
                waiter => boxed::<D, T, _, _, _, _>(Runner::new(
                    queue, measurer, waiter, clock, control, patience,
                )),
            }
        }
    }
}

fn boxed<'a, D, T, Q, M, W, C>(runner: Runner<'a, Q, M, W, C>) -> Box<dyn Loop + 'a>
where
    D: Direction<T, Q> + 'a,
    T: 'a,
    Q: 'a,
    M: Measurer + 'a,
    W: Pacing + 'a,
    C: Clock,
{
    Box::new(Running {
        runner: Some(runner),
        types: PhantomData::<(D, T)>,
    })
}

/// What waits for the type of the clock.
struct ForClock<'a, D, T, Q> {
    queue: Q,
    measurer: Timed<'a>,
    waiter: Paced,
    control: &'a Control,
    patience: Patience,
    types: PhantomData<(D, T)>,
}

impl<'a, D, T, Q> ClockUser for ForClock<'a, D, T, Q>
where
    D: Direction<T, Q> + 'a,
    T: 'a,
    Q: 'a,
{
    type Output = Box<dyn Loop + 'a>;

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        boxed::<D, T, _, _, _, _>(Runner::new(
            self.queue,
            self.measurer,
            self.waiter,
            clock,
            self.control,
            self.patience,
        ))
    }
}

/// What a thread does, from its place to its report.
fn run_end(
    role: Role,
    task: &Task,
    control: &Control,
    make: Make,
) -> Result<EndReport, ThreadError> {
    let is_sender = role == Role::Sender;
    let (cpu, load, after_miss) = if is_sender {
        (task.sender_cpu, task.sender, AfterMiss::CatchUp)
    } else {
        (task.receiver_cpu, task.receiver, AfterMiss::StartOver)
    };
    pinning::pin_current_thread(cpu)?;
    let room = Notes::room(role, task.measure, task.elements());
    let mut notes = Notes::new(task.measure, room, task.huge_pages)?;
    let mut counters = match task.measure {
        Measure::Counters => Some(Counters::open()?),
        Measure::Time | Measure::Throughput => None,
    };
    let (stamp, floors) = task.clock.visit(CostOf);
    let parts = Parts {
        clock: task.clock,
        control,
        patience: Patience::new(task.patience),
        waiter: load.waiter(&task.clock, after_miss),
        measures_failed: task.measure_failed,
        notes: &mut notes,
    };
    let mut end = make(task, parts)?;
    touch_stack();
    // The sender has made the queue; what the receiver needs beside that locks itself.
    let queue_locked = is_sender && task.locks_memory && memory_lock::lock_present();
    // Ready: from here on the supervisor expects signs of life.
    let pulse = if is_sender {
        &control.sender
    } else {
        &control.receiver
    };
    pulse.beat();

    let counters = counters
        .as_mut()
        .map(|counters| counters as &mut dyn Counting);
    let passed = let_through(&mut *end, task, control, counters)?;

    let mut leftovers = Vec::new();
    if is_sender {
        control.set_sender_done();
        // What is handed over only when the sender is dropped comes too late: the receiver has left by then.
        // A queue that is still full takes a slow receiver as long as it takes; the supervisor listens to that one.
        while !control.receiver_done() && !control.stopped() {
            pulse.beat();
            std::thread::sleep(Duration::from_micros(100));
        }
    } else {
        control.set_receiver_done();
        // The sender leaves as soon as it sees that, or was done before; the supervisor has a limit as well.
        while !control.sender_done() && !control.stopped() {
            pulse.beat();
            std::thread::yield_now();
        }
        let most = match end.tally().ending {
            Ending::Complete => MOST_LEFTOVERS,
            _ => task.capacity.saturating_add(MOST_LEFTOVERS),
        };
        leftovers = take_leftovers(&mut *end, most, control);
    }
    let tally = end.tally().since(&passed.warmed_up);
    pulse.end();
    drop(end);
    Ok(EndReport {
        tally,
        started: passed.started,
        span: passed.span,
        stamp,
        floors,
        faults: passed.faults,
        pages: notes.pages(),
        queue_locked,
        counts: passed.counts,
        leftovers,
        notes,
    })
}

/// What the queue still gives out to the receiver, at most so many. A large queue takes a while to be emptied.
fn take_leftovers(end: &mut dyn Loop, most: usize, control: &Control) -> Vec<u64> {
    let mut taken = Vec::new();
    // Nobody asks what was left where a run was told to stop.
    while taken.len() < most && !control.stopped() {
        control.receiver.beat();
        let asked = ELEMENTS_PER_LOOK.min(most - taken.len());
        let found = end.leftovers(asked);
        let is_empty = found.len() < asked;
        taken.extend(found);
        if is_empty {
            break;
        }
    }
    taken
}

/// What is known of an end when all elements went through.
struct Passed {
    /// When its schedule began.
    started: Ticks,
    /// What it had counted when the warm-up was over.
    warmed_up: Tally,
    /// When the elements that count began, and ended.
    span: [Ticks; 2],
    faults: PageFaults,
    counts: Option<Counts>,
}

/// Waits for the other end and lets all elements through. Page faults and counters are those of the elements that count:
/// not the wait, which would be charged to the queue, nor the warm-up. They are read between the warm-up and the first element
/// that counts, by one to three system calls, while the schedule of the load goes on: the first elements that count may
/// begin late by as much, in the latency from the intended time, and the sender catches up.
fn let_through(
    end: &mut dyn Loop,
    task: &Task,
    control: &Control,
    mut counters: Option<&mut dyn Counting>,
) -> Result<Passed, ThreadError> {
    if !control.start_together() {
        return Err(ThreadError::Alone);
    }
    let started = end.start();
    end.run(task.warmup);
    let warmed_up = end.tally();
    // Here and not before: the first elements bring the loop's own code into memory.
    let before = PageFaults::of_current_thread()?;
    if let Some(counters) = &mut counters {
        counters.start()?;
    }
    let began = task.clock.now();
    // Who gave up while warming up does not wait a second time.
    if warmed_up.ending == Ending::Complete {
        end.run(task.count);
    }
    let counts = counters.map(|counters| counters.stop()).transpose()?;
    end.flush();
    let ended = task.clock.now();
    Ok(Passed {
        started,
        warmed_up,
        span: [began, ended],
        faults: PageFaults::of_current_thread()?.since(&before),
        counts,
    })
}

/// The price of a stamp on the CPU that asks, and what is measured without a queue.
struct CostOf;

impl ClockUser for CostOf {
    type Output = (StampCost, OperationFloors);

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        (measure_stamp_cost(&clock), floor::of_operations(&clock))
    }
}

/// Touches the part of the stack that the loops will use, so that their first call causes no page fault.
#[inline(never)]
fn touch_stack() {
    std::hint::black_box(&mut [1_u8; 64 << 10]);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::time::ClockKind;

    type Log = Rc<RefCell<Vec<String>>>;

    /// Counts a failed attempt and a miss for each element, and writes down what it is told.
    struct Written(Log, u64);

    /// More elements than this are not left over.
    const LEFT: usize = 2 * ELEMENTS_PER_LOOK + 7;

    impl Loop for Written {
        fn start(&mut self) -> Ticks {
            self.0.borrow_mut().push("begin".to_owned());
            Ticks(0)
        }
        fn run(&mut self, count: usize) {
            self.0.borrow_mut().push(format!("run {count}"));
            self.1 += count as u64;
        }
        fn flush(&mut self) {
            self.0.borrow_mut().push("flush".to_owned());
        }
        fn tally(&self) -> Tally {
            Tally {
                noted: self.1 as usize,
                extended: 0,
                failed: self.1,
                damaged: 0,
                missed: self.1,
                ending: Ending::Complete,
            }
        }
        fn leftovers(&mut self, most: usize) -> Vec<u64> {
            let from = self.1;
            self.1 = (LEFT as u64).min(from + most as u64);
            (from..self.1).collect()
        }
    }

    #[test]
    fn a_large_queue_is_emptied_with_signs_of_life() {
        let all: Vec<u64> = (0..LEFT as u64).collect();
        for (most, signs) in [(1 << 40, 3), (LEFT, 3), (ELEMENTS_PER_LOOK, 1), (64, 1)] {
            let control = Control::default();
            let mut end = Written(Log::default(), 0);
            let taken = take_leftovers(&mut end, most, &control);
            assert_eq!(taken, all[..most.min(LEFT)]);
            assert_eq!(control.receiver.beats(), Some(signs), "{most}");
        }
    }

    struct Counted(Log);

    impl Counting for Counted {
        fn start(&mut self) -> Result<(), CounterError> {
            self.0.borrow_mut().push("count".to_owned());
            Ok(())
        }
        fn stop(&mut self) -> Result<Counts, CounterError> {
            self.0.borrow_mut().push("count no more".to_owned());
            Ok(Counts::default())
        }
    }

    #[test]
    fn neither_the_wait_for_the_other_end_nor_the_warm_up_is_counted() {
        let task = Task {
            clock: AnyClock::prepare(ClockKind::Monotonic).unwrap(),
            sender_cpu: 0,
            receiver_cpu: 0,
            sender: EndLoad::NONE,
            receiver: EndLoad::NONE,
            capacity: 1,
            warmup: 5,
            count: 10,
            measure: Measure::Counters,
            measure_failed: false,
            huge_pages: HugePagePolicy::Off,
            locks_memory: false,
            patience: Duration::from_secs(1),
            limit: Duration::from_secs(1),
        };
        let control = Control::default();
        let log = Log::default();
        let mut end = Written(Rc::clone(&log), 0);
        let passed = std::thread::scope(|scope| {
            scope.spawn(|| {
                // The other end is late.
                std::thread::sleep(Duration::from_millis(20));
                control.start_together()
            });
            let mut counters = Counted(Rc::clone(&log));
            let_through(&mut end, &task, &control, Some(&mut counters)).unwrap()
        });
        assert_eq!(
            *log.borrow(),
            [
                "begin",
                "run 5",
                "count",
                "run 10",
                "count no more",
                "flush"
            ]
        );
        let tally = end.tally().since(&passed.warmed_up);
        assert_eq!((tally.noted, tally.failed, tally.missed), (15, 10, 10));
    }
}
