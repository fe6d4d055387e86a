//! The two threads of one run: placed, their memory touched, started together, and reported on.
//!
//! The sender's thread makes the queue, so that its memory is near the sender. Page faults are counted while
//! the elements that count go through, and in nothing else.
//!
//! Only the loops are compiled for each queue and element; all else is behind [`MakeEnds`] and `dyn Loop`, which is
//! called a few times a run. Otherwise the compiler would be busy for ten minutes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::config::Measure;
use super::control::{Control, Ending};
use super::counters::{Counters, Counting};
use super::error::ThreadError;
use super::floor::{self, OperationFloors};
use super::loops::{Answering, Asking, In, MakeLoop, Out, Parts, Side, loop_of};
use super::notes::{EndReport, Notes};
use super::passage::{let_through, take_leftovers};
use super::patience::Patience;
use super::result::End;
use super::round_trip::Both;
use super::task::{PREPARATION, RECEIVER, SENDER, Task};
use crate::host::{memory_lock, pinning};
use crate::pacing::AfterMiss;
use crate::queues::element::Element;
use crate::queues::interface::Queue;
use crate::queues::registry;
use crate::rig::error::RigError;
use crate::rig::workers::{Crew, Seat};
use crate::time::{Clock, ClockUser, StampCost, measure_stamp_cost};

/// Elements that a queue gives out beyond those put in are looked at up to this number. Where an end gave up, those
/// that are still in the queue are taken out as well, to tell whether any is lost.
pub(super) const MOST_LEFTOVERS: usize = 64;

/// Makes a queue of one kind and elements of one size, and the loops of its two ends, in the sender's thread. Everything
/// behind it knows neither, so that only the loops are compiled for each.
pub(super) type MakeEnds = fn(&Task) -> Result<[MakeLoop; 2], ThreadError>;

/// [`MakeEnds`] for a kind of queue and element.
pub(super) fn make<Q: Queue<T>, T: Element>(task: &Task) -> Result<[MakeLoop; 2], ThreadError> {
    if task.config.measure == Measure::RoundTrip {
        return make_round_trip::<Q, Q, T>(task);
    }
    let (sender, receiver) = queue_of::<Q, T>(task)?;
    Ok([
        loop_of::<In, T, _>(Side::Sends, sender),
        loop_of::<Out, T, _>(Side::Receives, receiver),
    ])
}

/// The same with a queue there and another one back.
pub(super) fn make_round_trip<There: Queue<T>, Back: Queue<T>, T: Element>(
    task: &Task,
) -> Result<[MakeLoop; 2], ThreadError> {
    let (there, arrives) = queue_of::<There, T>(task)?;
    let (back, returns) = queue_of::<Back, T>(task)?;
    let asking = Both {
        sender: there,
        receiver: returns,
    };
    let answering = Both {
        sender: back,
        receiver: arrives,
    };
    Ok([
        loop_of::<Asking, T, _>(Side::Asks, asking),
        loop_of::<Answering, T, _>(Side::Answers, answering),
    ])
}

/// A queue in the memory of the run.
fn queue_of<Q: Queue<T>, T: Element>(task: &Task) -> Result<(Q::Sender, Q::Receiver), ThreadError> {
    // A plan has no others.
    let given = registry::given(&task.point.queue).unwrap_or_default();
    let make = || Q::with_parameters(task.point.capacity, &given);
    let made = match &task.arena {
        Some(arena) => arena.within(make),
        None => make(),
    };
    made.map_err(|error| ThreadError::Queue(task.point.queue.clone(), error))
}

/// Makes the loop of one end, in the thread that will run it, once its memory is there.
type MadeInThread<'a> = &'a mut dyn FnMut() -> Result<MakeLoop, ThreadError>;

/// The loop that the thread sends which makes the queue. A thread that panicked keeps its end of the channel, so this one
/// looks whether the run was given up.
pub(super) fn received(
    take: &Receiver<MakeLoop>,
    stopped: &dyn Fn() -> bool,
) -> Result<MakeLoop, ThreadError> {
    const LOOK: Duration = Duration::from_millis(20);
    let began = Instant::now();
    while !stopped() && began.elapsed() < PREPARATION {
        match take.recv_timeout(LOOK) {
            Ok(made) => return Ok(made),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Err(ThreadError::Alone)
}

/// Starts both threads of a run.
pub(super) fn start(
    make: MakeEnds,
    task: &Task,
    control: &Arc<Control>,
    crew: &mut Crew<EndReport, ThreadError>,
) -> Result<(), RigError> {
    let (give, take) = channel::<MakeLoop>();
    let seat = |role, cpu| Seat {
        role,
        cpu,
        priority: task.config.priority,
    };
    let (sends, of_sender, of_run) = (
        seat(SENDER, task.point.cpus.sender),
        task.clone(),
        Arc::clone(control),
    );
    crew.start(sends, move |reporter| {
        let mut made = || {
            let [sender, receiver] = make(&of_sender)?;
            give.send(receiver).map_err(|_| ThreadError::Alone)?;
            Ok(sender)
        };
        let report = run_end(sends, &of_sender, &of_run, &mut made)?;
        // Nobody listens once the supervisor has given up.
        reporter.send(report);
        Ok(())
    })?;
    let (receives, of_receiver, of_run) = (
        seat(RECEIVER, task.point.cpus.receiver),
        task.clone(),
        Arc::clone(control),
    );
    crew.start(receives, move |reporter| {
        let mut made = || received(&take, &|| of_run.stopped());
        let report = run_end(receives, &of_receiver, &of_run, &mut made)?;
        reporter.send(report);
        Ok(())
    })
}

/// What a thread does on its CPU, up to its report.
fn run_end(
    seat: Seat,
    task: &Task,
    control: &Control,
    made: MadeInThread<'_>,
) -> Result<EndReport, ThreadError> {
    let is_sender = seat.role == SENDER;
    let (load, after_miss, pulse) = if is_sender {
        (task.point.sender, AfterMiss::CatchUp, &control.sender)
    } else {
        (task.point.receiver, AfterMiss::StartOver, &control.receiver)
    };
    let config = &task.config;
    let room = Notes::room(seat.role, config.measure, task.count as usize);
    let mut notes = Notes::new(seat.role, config.measure, room, config.huge_pages)?;
    let mut counters = match config.measure {
        Measure::Counters => Some(Counters::open()?),
        Measure::Time | Measure::RoundTrip | Measure::Throughput => None,
    };
    let (stamp, floors) = task.clock.visit(CostOf);
    let parts = Parts {
        clock: task.clock,
        control,
        patience: Patience::new(task.patience),
        waiter: load.waiter(&task.clock, after_miss),
        measures_failed: config.measure_failed,
        retry: config.retry,
        notes: &mut notes,
    };
    let mut end = made()?.of(parts);
    touch_stack();
    // The sender has made the queue; what the receiver needs beside that locks itself.
    let queue_pages = task.arena.as_ref().and_then(|arena| arena.pages());
    let queue_locked =
        queue_pages.is_some() || is_sender && task.locks_memory && memory_lock::lock_present();
    // Ready: from here on the supervisor expects signs of life.
    pulse.beat();

    let counters = counters
        .as_mut()
        .map(|counters| counters as &mut dyn Counting);
    let (passed, tally) = let_through(&mut *end, seat.role, task, control, counters)?;
    pinning::check_still_on(seat.cpu)?;

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
    }
    let most = match tally.ending {
        Ending::Complete => MOST_LEFTOVERS,
        _ => task.point.capacity.saturating_add(MOST_LEFTOVERS),
    };
    // Of the sender's end these are answers.
    let leftovers = take_leftovers(&mut *end, most, pulse, control);
    pulse.end();
    drop(end);
    let end = End {
        tally,
        passed,
        stamp,
        floors,
        pages: notes.pages(),
        queue_pages,
        queue_locked,
    };
    Ok(EndReport {
        end,
        notes,
        leftovers,
    })
}

/// The price of a stamp on the CPU that asks, and what is measured without a queue.
pub(super) struct CostOf;

impl ClockUser for CostOf {
    type Output = (StampCost, OperationFloors);

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        (measure_stamp_cost(&clock), floor::of_operations(&clock))
    }
}

/// Touches the part of the stack that the loops will use, so that their first call causes no page fault.
#[inline(never)]
pub(super) fn touch_stack() {
    std::hint::black_box(&mut [1_u8; 64 << 10]);
}
