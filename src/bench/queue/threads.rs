//! The two threads of one run: placed, their memory touched, started together, and reported on.
//!
//! The sender's thread makes the queue, so that its memory is near the sender. Page faults are counted while
//! the elements that count go through, and in nothing else.
//!
//! Only the loops are compiled for each queue, element, clock and waiter; all else is behind [`Start`] and `dyn Loop`,
//! which is called a few times a run. Otherwise the compiler would be busy for ten minutes.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::config::Measure;
use super::control::{Control, Ending};
use super::counters::{Counters, Counting};
use super::error::ThreadError;
use super::floor::{self, OperationFloors};
use super::loops::{Answering, Asking, In, Loop, Out, Parts, loop_of, loop_there_and_back};
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
use crate::queues::parameters::Given;
use crate::queues::registry;
use crate::rig::error::RigError;
use crate::rig::workers::{Crew, Seat};
use crate::time::{Clock, ClockUser, StampCost, measure_stamp_cost};

/// Elements that a queue gives out beyond those put in are looked at up to this number. Where an end gave up, those
/// that are still in the queue are taken out as well, to tell whether any is lost.
pub(super) const MOST_LEFTOVERS: usize = 64;

/// Makes the loop of an end, in the thread that will run it.
type Make =
    Box<dyn for<'a> FnOnce(&Task, Parts<'a>) -> Result<Box<dyn Loop + 'a>, ThreadError> + Send>;

/// Starts both threads of a run: a queue of one kind and elements of one size. Everything behind it knows neither, so
/// that only the loops are compiled for each.
pub(super) type Start =
    fn(&Task, &Arc<Control>, &mut Crew<EndReport, ThreadError>) -> Result<(), RigError>;

/// [`Start`] for a kind of queue and element.
pub(super) fn start<Q: Queue<T>, T: Element>(
    task: &Task,
    control: &Arc<Control>,
    crew: &mut Crew<EndReport, ThreadError>,
) -> Result<(), RigError> {
    if task.config.measure == Measure::RoundTrip {
        return start_round_trip::<Q, Q, T>(task, control, crew);
    }
    let (give, take) = channel::<Q::Receiver>();
    // A plan has no others.
    let given = registry::given(&task.point.queue).unwrap_or_default();
    let sender: Make = Box::new(move |task, parts| {
        let (sender, receiver) = made::<Q, T>(task, &given)?;
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
    start_ends(task, control, crew, [sender, receiver])
}

/// The same with a queue there and another one back.
pub(super) fn start_round_trip<There: Queue<T>, Back: Queue<T>, T: Element>(
    task: &Task,
    control: &Arc<Control>,
    crew: &mut Crew<EndReport, ThreadError>,
) -> Result<(), RigError> {
    let (give, take) = channel::<Both<Back::Sender, There::Receiver>>();
    let given = registry::given(&task.point.queue).unwrap_or_default();
    let asking: Make = Box::new(move |task, parts| {
        let (there, arrives) = made::<There, T>(task, &given)?;
        let (back, returns) = made::<Back, T>(task, &given)?;
        let answering = Both {
            sender: back,
            receiver: arrives,
        };
        if give.send(answering).is_err() {
            return Err(ThreadError::Alone);
        }
        let asking = Both {
            sender: there,
            receiver: returns,
        };
        Ok(loop_there_and_back::<Asking, T, _>(asking, parts))
    });
    let answering: Make = Box::new(move |_, parts| {
        let answering = take
            .recv_timeout(PREPARATION)
            .map_err(|_| ThreadError::Alone)?;
        Ok(loop_there_and_back::<Answering, T, _>(answering, parts))
    });
    start_ends(task, control, crew, [asking, answering])
}

/// A queue in the memory of the run.
fn made<Q: Queue<T>, T: Element>(
    task: &Task,
    given: &Given,
) -> Result<(Q::Sender, Q::Receiver), ThreadError> {
    let make = || Q::with_parameters(task.point.capacity, given);
    let made = match &task.arena {
        Some(arena) => arena.within(make),
        None => make(),
    };
    made.map_err(|error| ThreadError::Queue(task.point.queue.clone(), error))
}

fn start_ends(
    task: &Task,
    control: &Arc<Control>,
    crew: &mut Crew<EndReport, ThreadError>,
    [sender, receiver]: [Make; 2],
) -> Result<(), RigError> {
    for (role, cpu, make) in [
        (SENDER, task.point.cpus.sender, sender),
        (RECEIVER, task.point.cpus.receiver, receiver),
    ] {
        let seat = Seat {
            role,
            cpu,
            priority: task.config.priority,
        };
        let (task, control) = (task.clone(), Arc::clone(control));
        crew.start(seat, move |reporter| {
            let report = run_end(seat, &task, &control, make)?;
            // Nobody listens once the supervisor has given up.
            reporter.send(report);
            Ok(())
        })?;
    }
    Ok(())
}

/// What a thread does on its CPU, up to its report.
fn run_end(
    seat: Seat,
    task: &Task,
    control: &Control,
    make: Make,
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
    let mut end = make(task, parts)?;
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
