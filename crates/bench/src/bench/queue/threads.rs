//! The threads of one run: placed, their memory touched, started together, and reported on.
//!
//! The first sender's thread makes the queues, so that their memory is near it. Page faults are counted while the
//! elements that count go through, and in nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::batches;
use super::by_time::{AFTER_SENDERS, let_through_by_time};
use super::config::Measure;
use super::control::Ending;
use super::counters::{Counters, LoopCounters};
use super::ends::EndsMaker;
use super::error::ThreadError;
use super::floor::{self, OperationFloors, QueueFloor};
use super::loops::{LoopParts, UnstartedLoop};
use super::notes::{EndReport, Notes};
use super::passage::{let_through, take_leftovers};
use super::patience::Patience;
use super::result::EndResult;
use super::roles::RECEIVER;
use super::stage::{Stage, ThreadPosition};
use super::task::{PREPARATION, Task};
use crate::host::{Needs, memory_lock, pinning};
use crate::rig::error::RigError;
use crate::rig::role::Role;
use crate::rig::workers::{Crew, WorkerPlacement};
use crate::time::{AnyClock, Clock, ClockUser, StampCost, measure_stamp_cost};

/// Elements that a queue gives out beyond those put in are looked at up to this number. Where an end gave up, those
/// that are still in the queue are taken out as well, to tell whether any is lost.
const MOST_LEFTOVERS: usize = 64;
/// How often a thread looks whether all have begun.
const BEGINNING: Duration = Duration::from_micros(50);

/// Makes the loop of one end, in the thread that will run it, once its memory is there.
type LoopMaker<'a> = &'a mut dyn FnMut() -> Result<UnstartedLoop, ThreadError>;

/// The loop that the thread sends which makes the queues. A thread that panicked keeps its end of the channel, so this
/// one looks whether the run was given up.
fn received(
    take: &Receiver<UnstartedLoop>,
    stopped: &dyn Fn() -> bool,
) -> Result<UnstartedLoop, ThreadError> {
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

/// Starts all threads of a run; returns which they are.
pub(super) fn start(
    make: EndsMaker,
    task: &Task,
    stage: &Arc<Stage>,
    crew: &mut Crew<EndReport, ThreadError>,
) -> Result<Vec<ThreadPosition>, RigError> {
    let [senders, receivers] = &task.cpus;
    let senders =
        (senders.iter().enumerate()).map(|(number, cpu)| (ThreadPosition::Sender(number), *cpu));
    let receivers = receivers.iter().enumerate();
    let receivers = receivers.map(|(number, cpu)| (ThreadPosition::Receiver(number), *cpu));
    let threads: Vec<_> = senders.chain(receivers).collect();
    let (give, take): (Vec<_>, Vec<_>) = threads.iter().map(|_| channel::<UnstartedLoop>()).unzip();
    let mut give = Some(give);
    let count = threads.len() as u64;
    let needs = Needs {
        files: count,
        ..Needs::of_threads(count)
    };
    needs.require("the threads of a run")?;
    let begun = Arc::new(AtomicU64::new(0));
    for (&(place, cpu), take) in threads.iter().zip(take) {
        let seat = WorkerPlacement {
            role: place.role(task),
            cpu,
            priority: task.config.priority,
        };
        let (task, stage) = (task.clone(), Arc::clone(stage));
        let begun = Arc::clone(&begun);
        // The first one makes all queues.
        let give = give.take();
        crew.start(seat, move |reporter| {
            // A thread that finds no room for its signal stack ends the process: none maps memory before all are there.
            begun.fetch_add(1, Ordering::AcqRel);
            while begun.load(Ordering::Acquire) < count && !stage.run.stopped() {
                std::thread::sleep(BEGINNING);
            }
            let mut made = || {
                if let Some(give) = &give {
                    for (give, made) in give.iter().zip(make(&task)?) {
                        give.send(made).map_err(|_| ThreadError::Alone)?;
                    }
                }
                received(&take, &|| stage.run.stopped())
            };
            let report = run_end(seat, place, &task, &stage, &mut made)?;
            // Nobody listens once the supervisor has given up.
            reporter.send(report);
            Ok(())
        })?;
    }
    Ok(threads.into_iter().map(|(place, _)| place).collect())
}

/// What a thread does on its CPU, up to its report.
fn run_end(
    seat: WorkerPlacement,
    place: ThreadPosition,
    task: &Task,
    stage: &Stage,
    made: LoopMaker<'_>,
) -> Result<EndReport, ThreadError> {
    let control = stage.control(place);
    let pulse = place.pulse(control);
    let config = &task.config;
    let is_shared = task.point.wiring.is_some();
    let elements = task.count as usize;
    let mut notes = Notes::new(place.end(), config, place.room(task), elements)?;
    let mut counters = match config.measure {
        Measure::Counters => Some(Counters::open()?),
        Measure::Time | Measure::RoundTrip | Measure::Throughput => None,
    };
    let costs = StampCosts {
        per_stamp: config.per_stamp,
        role: place.end(),
        payload: task.point.payload,
    };
    let (stamp, floors, batch_floor) = match task.clock {
        AnyClock::Counter(clock) if config.unfenced => costs.with(clock.unfenced()),
        // Loops of batches ask for the clock at each reading, and so does their floor.
        clock if config.per_stamp > 1 => costs.with(clock),
        clock => clock.visit(costs),
    };
    let mut patience = Patience::new(task.patience);
    if is_shared && place.end() == RECEIVER {
        let after = AFTER_SENDERS.saturating_add(task.point.receiver.longest_pause());
        patience = patience.after_sender(after);
    }
    let parts = LoopParts {
        clock: task.clock,
        control,
        patience,
        waiter: place.waiter(task),
        config,
        notes: &mut notes,
    };
    let mut end = made()?.of(parts);
    touch_stack();
    // The first sender has made the queues; what others need beside that locks itself.
    let queue_pages = task.arena.as_ref().and_then(|arena| arena.pages());
    let is_first = place == ThreadPosition::Sender(0);
    let queue_locked =
        queue_pages.is_some() || is_first && task.locks_memory && memory_lock::lock_present();
    // Ready: from here on the supervisor expects signs of life.
    pulse.beat();

    let (passed, tally) = if is_shared {
        let_through_by_time(&mut *end, place, task, stage)?
    } else {
        let counters = counters
            .as_mut()
            .map(|counters| counters as &mut dyn LoopCounters);
        let passage = let_through(&mut *end, place.end(), task, control, counters)?;
        match place {
            ThreadPosition::Sender(_) => stage.sender_is_done(),
            ThreadPosition::Receiver(_) => {
                stage.end_sending();
                stage.receiver_is_done();
            }
        }
        passage
    };
    pinning::check_still_on(seat.cpu)?;
    // What is handed over only when a sender is dropped comes too late: the receivers have left by then.
    // A queue that is still full takes a slow receiver as long as it takes; the supervisor listens to that one, and has
    // a limit as well.
    stage.wait_for_all(pulse);
    let is_usual = match tally.ending {
        Ending::Complete => true,
        Ending::GaveUp => false,
        Ending::OtherDone | Ending::Stopped => is_shared,
    };
    let most = if is_usual { 0 } else { task.point.capacity };
    // Of a sender's end these are answers.
    let most = most.saturating_add(MOST_LEFTOVERS);
    let leftovers = take_leftovers(&mut *end, most, pulse, control);
    pulse.end();
    drop(end);
    let end = EndResult {
        tally,
        passed,
        stamp,
        floors,
        batch_floor,
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

/// The price of a stamp on the CPU that asks, and what an end measures without a queue, also of batches.
struct StampCosts {
    per_stamp: u32,
    role: Role,
    payload: usize,
}

impl ClockUser for StampCosts {
    type Output = (StampCost, OperationFloors, Option<QueueFloor>);

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        let of_batch = (self.per_stamp > 1)
            .then(|| batches::floor(&clock, self.per_stamp, self.role, self.payload));
        (
            measure_stamp_cost(&clock),
            floor::of_operations(&clock),
            of_batch,
        )
    }
}

/// Touches the part of the stack that the loops will use, so that their first call causes no page fault.
#[inline(never)]
fn touch_stack() {
    std::hint::black_box(&mut [1_u8; 64 << 10]);
}
