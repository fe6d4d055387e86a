//! A run of several threads at each end: they begin together, warm up and are measured by one clock of the wall, and end
//! together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::loops::MakeAll;
use super::plan::Seats;
use crate::bench::queue::control::{Control, Ending};
use crate::bench::queue::error::{RunError, ThreadError};
use crate::bench::queue::loops::{Loop, MakeLoop, Parts};
use crate::bench::queue::notes::{EndReport, Notes};
use crate::bench::queue::passage::{Passed, take_leftovers};
use crate::bench::queue::patience::Patience;
use crate::bench::queue::result::End;
use crate::bench::queue::runner::Tally;
use crate::bench::queue::supervisor::{self, Watch};
use crate::bench::queue::task::{RECEIVER, SENDER, Task};
use crate::bench::queue::threads::{CostOf, MOST_LEFTOVERS, received, touch_stack};
use crate::bench::queue::warm_up::part_of;
use crate::host::counters::ThreadUsage;
use crate::host::{interrupt, memory_lock, pinning};
use crate::node::wiring::Wiring;
use crate::pacing::{AfterMiss, EndLoad, SplitMix64};
use crate::rig::control;
use crate::rig::control::Pulse;
use crate::rig::error::RigError;
use crate::rig::role::Role;
use crate::rig::workers::{Crew, Seat};
use crate::time::{Clock, Ticks};

const PRODUCER: Role = Role::new("producer", "hcabench-prod");
const CONSUMER: Role = Role::new("consumer", "hcabench-cons");

/// Elements between two looks at the time.
pub(super) const PART: usize = 256;
/// How long a consumer goes on when all producers are done: what they put in is there at once or never.
const AFTER_PRODUCERS: Duration = Duration::from_millis(10);

/// What all threads are told to do.
#[derive(Debug, Clone)]
pub(super) struct ManyTask {
    pub(super) task: Task,
    pub(super) wiring: Wiring,
    /// How long elements count.
    pub(super) duration: Duration,
    /// The run ends when one thread has noted so many elements.
    pub(super) room: usize,
}

impl ManyTask {
    /// What a consumer can note: it goes on until the producers have seen that the run is over, and then takes what is
    /// left in its queue.
    pub(super) fn room_of_consumer(room: usize, producers: usize, capacity: usize) -> usize {
        room + (producers + 1) * PART + capacity
    }
}

/// What the threads of a run share.
#[derive(Debug)]
struct Stage {
    run: Arc<control::Control>,
    /// Of each thread, with its signs of life. That its other end is done is told to all of an end at once.
    producers: Vec<Control>,
    consumers: Vec<Control>,
    producing: AtomicUsize,
    consuming: AtomicUsize,
    began: OnceLock<Instant>,
}

impl Stage {
    fn new(producers: usize, consumers: usize) -> Self {
        let run = Arc::default();
        let controls = |count| (0..count).map(|_| Control::of(&run)).collect();
        Stage {
            producers: controls(producers),
            consumers: controls(consumers),
            producing: AtomicUsize::new(producers),
            consuming: AtomicUsize::new(consumers),
            began: OnceLock::new(),
            run,
        }
    }

    fn control(&self, seat: Place) -> &Control {
        match seat {
            Place::Producer(number) => &self.producers[number],
            Place::Consumer(number) => &self.consumers[number],
        }
    }

    /// The run is over: no producer goes on, not even one whose queue is full.
    fn end_producing(&self) {
        self.producers.iter().for_each(Control::set_receiver_done);
    }

    /// A producer has put in all it will.
    fn producer_is_done(&self) {
        // Of the last one, whoever sees it sees all that any of them put in.
        if self.producing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.consumers.iter().for_each(Control::set_sender_done);
        }
    }

    fn consumer_is_done(&self) {
        self.consuming.fetch_sub(1, Ordering::AcqRel);
    }

    /// Waits until no consumer takes anything any more.
    fn wait_for_consumers(&self, pulse: &Pulse) {
        while self.consuming.load(Ordering::Acquire) > 0 && !self.run.stopped() {
            pulse.beat();
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Which thread it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Producer(usize),
    Consumer(usize),
}

impl Place {
    fn pulse(self, control: &Control) -> &Pulse {
        match self {
            Place::Producer(_) => &control.sender,
            Place::Consumer(_) => &control.receiver,
        }
    }
}

/// What a thread tells at the end.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) end: EndReport,
    /// Elements that went through in the span of its passage.
    pub(super) in_span: usize,
}

/// The reports of all threads.
#[derive(Debug)]
pub(super) struct Reports {
    pub(super) producers: Vec<Report>,
    pub(super) consumers: Vec<Report>,
}

/// Makes a run.
pub(super) fn make_run(make: MakeAll, task: &ManyTask, seats: &Seats) -> Result<Reports, RunError> {
    supervise(make, task, seats, &interrupt::requested)
}

/// The same with signals from elsewhere.
pub(super) fn supervise(
    make: MakeAll,
    task: &ManyTask,
    seats: &Seats,
    requested: &dyn Fn() -> Option<Signal>,
) -> Result<Reports, RunError> {
    if let Some(signal) = requested() {
        return Err(RunError::Rig(RigError::Interrupted(signal)));
    }
    let stage = Arc::new(Stage::new(seats.producers.len(), seats.consumers.len()));
    let mut crew = Crew::new(&stage.run)?;
    let producers = seats.producers.iter().enumerate();
    let producers = producers.map(|(number, cpu)| (Place::Producer(number), PRODUCER, *cpu));
    let consumers = seats.consumers.iter().enumerate();
    let consumers = consumers.map(|(number, cpu)| (Place::Consumer(number), CONSUMER, *cpu));
    let threads: Vec<_> = producers.chain(consumers).collect();
    let (give, take): (Vec<_>, Vec<_>) = threads.iter().map(|_| channel::<MakeLoop>()).unzip();
    let mut give = Some(give);
    for (&(place, role, cpu), take) in threads.iter().zip(take) {
        let priority = task.task.config.priority;
        let seat = Seat {
            role,
            cpu,
            priority,
        };
        let (task, stage) = (task.clone(), Arc::clone(&stage));
        // The first one makes all queues.
        let give = give.take();
        crew.start(seat, move |reporter| {
            let made = || made(make, &task, &stage, give, &take);
            let report = run_end(seat, place, &task, &stage, made)?;
            // Nobody listens once the supervisor has given up.
            reporter.send(report);
            Ok(())
        })?;
    }
    let pulses = threads
        .iter()
        .map(|&(place, role, _)| (role, place.pulse(stage.control(place))));
    let watch = Watch::new(&task.task, &stage.run, pulses.collect(), None);
    let mut producers = supervisor::reports(crew, watch, requested)?;
    let consumers = producers.split_off(seats.producers.len());
    Ok(Reports {
        producers,
        consumers,
    })
}

/// The loop of a thread: the first one makes those of all, and gives the others theirs.
fn made(
    make: MakeAll,
    task: &ManyTask,
    stage: &Stage,
    give: Option<Vec<Sender<MakeLoop>>>,
    take: &Receiver<MakeLoop>,
) -> Result<MakeLoop, ThreadError> {
    if let Some(give) = give {
        for (give, made) in give.into_iter().zip(make(&task.task, &task.wiring)?) {
            give.send(made).map_err(|_| ThreadError::Alone)?;
        }
    }
    received(take, &|| stage.run.stopped())
}

/// The load of a thread: those of an end differ in what is random.
pub(super) fn load_of(load: &EndLoad, number: usize) -> EndLoad {
    let seed = SplitMix64::new(load.seed.wrapping_add(number as u64)).draw();
    EndLoad {
        seed: if number == 0 { load.seed } else { seed },
        ..*load
    }
}

/// What a thread does on its CPU, up to its report.
fn run_end(
    seat: Seat,
    place: Place,
    many: &ManyTask,
    stage: &Stage,
    made: impl FnOnce() -> Result<MakeLoop, ThreadError>,
) -> Result<Report, ThreadError> {
    let ManyTask {
        task, wiring, room, ..
    } = many;
    let config = &task.config;
    let control = stage.control(place);
    let pulse = place.pulse(control);
    let producers = wiring.publishers as usize;
    let patience = Patience::new(task.patience);
    let (role, room, waiter, patience) = match place {
        Place::Producer(number) => {
            let load = load_of(&task.point.sender, number);
            let room = if config.measure.has_times() { *room } else { 0 };
            let waiter = load.waiter(&task.clock, AfterMiss::CatchUp);
            (SENDER, room, waiter, patience)
        }
        Place::Consumer(number) => {
            let load = load_of(&task.point.receiver, number);
            let room = ManyTask::room_of_consumer(*room, producers, task.point.capacity);
            let waiter = load.waiter(&task.clock, AfterMiss::StartOver);
            let after = AFTER_PRODUCERS.saturating_add(task.point.receiver.longest_pause());
            (RECEIVER, room, waiter, patience.after_sender(after))
        }
    };
    let mut notes = Notes::new(role, config.measure, room, config.huge_pages)?;
    let (stamp, floors) = task.clock.visit(CostOf);
    let made = made()?;
    let mut end = made.of(Parts {
        clock: task.clock,
        control,
        patience,
        waiter,
        measures_failed: config.measure_failed,
        retry: config.retry,
        notes: &mut notes,
    });
    touch_stack();
    let queue_pages = task.arena.as_ref().and_then(|arena| arena.pages());
    let is_first = place == Place::Producer(0);
    let queue_locked =
        queue_pages.is_some() || is_first && task.locks_memory && memory_lock::lock_present();
    // Ready: from here on the supervisor expects signs of life.
    pulse.beat();
    if !stage
        .run
        .start_together(wiring.publishers + wiring.subscribers)
    {
        return Err(ThreadError::Alone);
    }
    let began = *stage.began.get_or_init(Instant::now);
    let (passed, tally, in_span) = match place {
        Place::Producer(_) => produce(&mut *end, many, stage, began),
        Place::Consumer(_) => consume(&mut *end, many, stage, began, room),
    };
    pinning::check_still_on(seat.cpu)?;
    stage.wait_for_consumers(pulse);
    let most = match tally.ending {
        Ending::GaveUp => task.point.capacity.saturating_add(MOST_LEFTOVERS),
        _ => MOST_LEFTOVERS,
    };
    // Only a consumer's end gives out any.
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
    let end = EndReport {
        end,
        notes,
        leftovers,
    };
    Ok(Report { end, in_span })
}

fn is_going(end: &dyn Loop) -> bool {
    end.tally().ending == Ending::Complete
}

/// A producer: it warms up and is measured until the time is over, or until a thread has no more room for notes.
fn produce(
    end: &mut dyn Loop,
    many: &ManyTask,
    stage: &Stage,
    began: Instant,
) -> (Passed, Tally, usize) {
    let task = &many.task;
    let part = part_of(&task.point).min(PART);
    let started = end.start();
    let measured_from = began + task.config.warmup;
    let over = measured_from + many.duration;
    while is_going(end) && Instant::now() < measured_from {
        end.run(part);
    }
    let warmed_up = end.forget();
    let before = end.tally();
    let usage = ThreadUsage::now();
    let first = task.clock.now();
    let mut left = many.room;
    // A part in any case: who had no CPU for all of the time has little, but a run without an element says nothing.
    while is_going(end) && left > 0 && (left == many.room || Instant::now() < over) {
        end.run(part.min(left));
        left = many.room - end.tally().noted;
    }
    let last = task.clock.now();
    let faults = ThreadUsage::now().since(usage).faults();
    stage.end_producing();
    end.flush();
    stage.producer_is_done();
    let passed = Passed {
        started,
        warmed_up,
        span: [first, last],
        faults,
        counts: None,
    };
    let tally = end.tally().since(&before);
    (passed, tally, tally.noted)
}

/// A consumer: it takes elements until the producers are done and nothing more comes.
fn consume(
    end: &mut dyn Loop,
    many: &ManyTask,
    stage: &Stage,
    began: Instant,
    room: usize,
) -> (Passed, Tally, usize) {
    let task = &many.task;
    let part = part_of(&task.point).min(PART);
    let started = end.start();
    // Later than this nothing comes any more, unless the queue makes it up.
    let drained = task
        .point
        .receiver
        .longest_pause()
        .saturating_mul(task.point.capacity as u32);
    let latest = (task.config.warmup + many.duration).saturating_add(task.patience);
    let latest = latest.saturating_add(drained);
    let (mut usage, mut before) = (ThreadUsage::now(), end.tally());
    let (mut span, mut in_span) = ([Ticks(0); 2], 0);
    let mut tally = before;
    while is_going(end) && tally.noted < room && began.elapsed() < latest {
        let is_warming_up = tally.noted == 0;
        if is_warming_up {
            (usage, before) = (ThreadUsage::now(), tally);
            span[0] = task.clock.now();
        }
        end.run(part.min(room - tally.noted));
        tally = end.tally();
        // What comes behind the last whole part is mostly a wait.
        if tally.ending == Ending::Complete && tally.noted > 0 {
            (span[1], in_span) = (task.clock.now(), tally.noted);
        }
        if tally.noted >= many.room {
            stage.end_producing();
        }
    }
    let faults = ThreadUsage::now().since(usage).faults();
    if in_span == 0 {
        (span[1], in_span) = (task.clock.now(), tally.noted);
    }
    tally = tally.since(&before);
    if tally.ending == Ending::Complete {
        // Neither the end of the producers nor that of the patience was seen.
        tally.ending = Ending::GaveUp;
        stage.end_producing();
    }
    stage.consumer_is_done();
    let passed = Passed {
        started,
        warmed_up: end.forget(),
        span,
        faults,
        counts: None,
    };
    (passed, tally, in_span)
}
