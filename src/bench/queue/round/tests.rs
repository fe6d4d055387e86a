//! Whole runs, over an honest queue and over broken ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::*;
use crate::bench::queue::cpus::Cpus;
use crate::bench::queue::error::ThreadError;
use crate::bench::queue::result::{ElementRow, made_up};
use crate::bench::queue::task::{RECEIVER, SENDER};
use crate::host::pinning;
use crate::queues::element::Element;
use crate::queues::interface::{Ends as QueueEnds, Queue, QueueError, Receiver, Sender};
use crate::time::{AnyClock, ClockKind};

/// Held by each test with a run: two at a time would wait for each other's CPUs.
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What a test queue does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// Takes each hundredth element and forgets it.
    Drops,
    /// Gives each hundredth element before the one in front of it.
    Reorders,
    /// Always has an element; where there is none it makes one up.
    Invents,
    /// Gives each hundredth element twice.
    Duplicates,
    /// Never gives the last element.
    Withholds,
    /// Changes a word of each hundredth element.
    Damages,
    /// Does not return from the first enqueue for longer than anyone waits.
    Blocks,
    /// Panics at the tenth element.
    Panics,
    /// Gives out more at the end than was put in.
    Appends,
    /// Hands the last elements over only when its sender is dropped.
    Belates,
    /// Stalls once in an enqueue, for [`STALL`].
    Stalls,
    /// Lets its sender run on all CPUs from the tenth element on, as `taskset -a -p` does from outside.
    Moves,
}

/// A queue with a fault, which is its type.
struct Faulty<const FAULT: usize>;

const FAULTS: [Fault; 13] = [
    Fault::Nothing,
    Fault::Drops,
    Fault::Reorders,
    Fault::Invents,
    Fault::Duplicates,
    Fault::Withholds,
    Fault::Damages,
    Fault::Blocks,
    Fault::Panics,
    Fault::Appends,
    Fault::Belates,
    Fault::Stalls,
    Fault::Moves,
];

struct End {
    fault: Fault,
    queue: Arc<Mutex<VecDeque<Words<8>>>>,
    capacity: usize,
    count: usize,
    last: Option<Words<8>>,
    held: Vec<Words<8>>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.queue.lock().unwrap().extend(self.held.drain(..));
    }
}

/// Of all the runs here.
const COUNT: usize = 5_000;
/// Elements that are handed over too late.
const BELATED: usize = 10;
/// Before the element in the middle.
const STALL: Duration = Duration::from_millis(5);

impl Sender<Words<8>> for End {
    fn enqueue(&mut self, element: Words<8>) -> bool {
        if self.fault == Fault::Blocks {
            std::thread::sleep(Duration::from_secs(10));
        }
        if self.fault == Fault::Panics && self.count == 10 {
            // Without the message of the panic hook in the output of a test that passes.
            std::panic::resume_unwind(Box::new("a broken queue"));
        }
        if self.fault == Fault::Moves && self.count == 10 {
            pinning::pin_current_thread_to(&pinning::reachable_cpus().unwrap()).unwrap();
        }
        if self.fault == Fault::Stalls && self.count == COUNT / 2 {
            std::thread::sleep(STALL);
        }
        let mut queue = self.queue.lock().unwrap();
        if queue.len() >= self.capacity {
            return false;
        }
        self.count += 1;
        if self.fault == Fault::Belates && self.count > COUNT - BELATED {
            self.held.push(element);
            return true;
        }
        if self.fault == Fault::Drops && self.count.is_multiple_of(100) {
            return true;
        }
        queue.push_back(element);
        if self.fault == Fault::Reorders && self.count.is_multiple_of(100) && queue.len() > 1 {
            let last = queue.len() - 1;
            queue.swap(last, last - 1);
        }
        true
    }
}

impl Receiver<Words<8>> for End {
    fn dequeue(&mut self) -> Option<Words<8>> {
        if self.fault == Fault::Duplicates
            && self.count % 100 == 99
            && let Some(last) = self.last.take()
        {
            return Some(last);
        }
        if self.fault == Fault::Withholds && self.count == COUNT - 1 {
            return None;
        }
        let taken = self.queue.lock().unwrap().pop_front();
        match taken {
            Some(element) => {
                self.count += 1;
                self.last = Some(element);
                let damaged = self.fault == Fault::Damages && self.count.is_multiple_of(100);
                Some(if damaged {
                    other_words(element)
                } else {
                    element
                })
            }
            None if self.fault == Fault::Invents => {
                Some(Words::with_stamp(std::num::NonZeroU64::new(77).unwrap()))
            }
            None if self.fault == Fault::Appends && self.count >= COUNT => self.last,
            None => None,
        }
    }
}

/// The element with its last word changed.
fn other_words(element: Words<8>) -> Words<8> {
    let mut words = *element.words();
    words[7] ^= 1;
    Words::from_words(words)
}

impl<const FAULT: usize> Queue<Words<8>> for Faulty<FAULT> {
    type Sender = End;
    type Receiver = End;
    const NAME: &'static str = "faulty";
    const SOURCE: &'static str = "these tests";
    const ENDS: QueueEnds = QueueEnds::Mpmc;

    fn with_capacity(capacity: usize) -> Result<(End, End), QueueError> {
        let queue = Arc::new(Mutex::new(VecDeque::with_capacity(capacity)));
        let end = || End {
            fault: FAULTS[FAULT],
            queue: Arc::clone(&queue),
            capacity,
            count: 0,
            last: None,
            held: Vec::new(),
        };
        Ok((end(), end()))
    }
}

fn config(measure: Measure) -> Config {
    Config {
        count: COUNT as u64 - 500,
        warmup: 500,
        measure,
        timeout: Duration::from_millis(500),
        keep_elements: true,
        ..made_up::config()
    }
}

fn point() -> Point {
    let allowed: Vec<usize> = pinning::reachable_cpus().unwrap().iter().collect();
    Point {
        payload: 64,
        cpus: Cpus {
            sender: allowed[0],
            receiver: *allowed.last().unwrap(),
            cores: None,
        },
        ..made_up::point("faulty")
    }
}

fn clock() -> AnyClock {
    AnyClock::prepare(ClockKind::Monotonic).unwrap()
}

fn start_of<const FAULT: usize>() -> Start {
    threads::start::<Faulty<FAULT>, Words<8>>
}

fn run<const FAULT: usize>(measure: Measure) -> Round {
    run_at::<FAULT>(&point(), &config(measure))
}

fn run_at<const FAULT: usize>(point: &Point, config: &Config) -> Round {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let task = Task::new(clock(), point, config);
    measure_run(start_of::<FAULT>(), task, point, config, 0).unwrap()
}

/// The name of a queue that panics, where [`start_of_one_that_panics`] starts it.
pub(crate) const PANICS: &str = "panics";

/// A queue more than those of the registry, for elements of 64 bytes.
pub(crate) fn start_of_one_that_panics(point: &Point) -> Result<Start, RunError> {
    match point.queue.as_str() {
        PANICS => Ok(start_of::<8>()),
        _ => super::start_of(point),
    }
}

/// The run of a queue with a fault, without and with time stamps.
fn verdicts<const FAULT: usize>() -> [Verdict; 2] {
    [Measure::Time, Measure::Throughput].map(|measure| {
        let Round { run, elements, .. } = run::<FAULT>(measure);
        assert_eq!(run.outcome, Outcome::Wrong, "{measure:?}: {run:?}");
        // No figures of what is wrong: a queue that is broken looks fastest.
        assert!(run.times.is_none() && elements.is_empty());
        assert_eq!(run.throughput_per_s, None);
        run.verdict
    })
}

#[test]
fn an_honest_queue_is_clean_and_has_all_figures() {
    let Round {
        run,
        elements,
        histograms,
    } = run::<0>(Measure::Time);
    assert!(run.outcome == Outcome::Clean, "{:?}", run.verdict);
    let times = run.times.unwrap();
    for summary in [&times.enqueue, &times.dequeue, &times.latency] {
        assert_eq!(summary.count, COUNT as u64 - 500);
        assert!(summary.min_ns > 0, "{summary:?}");
    }
    assert!(times.intended.is_none());
    assert!(times.latency.p50_ns >= times.dequeue.min_ns as f64);
    assert!((1..=65).contains(&times.depth.max), "{:?}", times.depth);
    assert!(run.throughput_per_s.unwrap() > 0.0 && run.stamp.sender.cost_ns > 0.0);
    let floors = run.floors.unwrap();
    assert!(floors.enqueue.min_ns > 0 && floors.dequeue.min_ns > 0);
    let (latency, intended) = (floors.latency.unwrap(), floors.intended.unwrap());
    assert!(latency.min_ns > 0 && latency.p50_ns <= intended.p50_ns);
    assert_eq!(elements.len(), COUNT - 500);
    assert_eq!(histograms.latency.count(), COUNT as u64 - 500);
    let row = elements[7];
    assert_eq!(row.latency_ns, (row.t_dequeued_ns - row.t_stamp_ns) as i64);
    assert!(row.t_enqueue_ns >= row.t_stamp_ns && row.t_enqueued_ns > row.t_enqueue_ns);
}

#[test]
fn throughput_alone_has_no_times_and_is_checked_as_well() {
    let run = run::<0>(Measure::Throughput).run;
    assert!(run.outcome == Outcome::Clean, "{:?}", run.verdict);
    assert!(run.times.is_none() && run.throughput_per_s.unwrap() > 0.0);
}

#[test]
fn each_fault_is_caught_and_hangs_nobody() {
    const HUNDREDTHS: u64 = COUNT as u64 / 100;
    type Case = (fn() -> [Verdict; 2], fn(&Verdict) -> bool);
    let cases: [Case; 8] = [
        (verdicts::<1>, |of| of.elements.lost == HUNDREDTHS),
        (verdicts::<2>, |of| {
            (1..=HUNDREDTHS).contains(&of.elements.reordered) && of.elements.lost == 0
        }),
        // By numbers, what it invents is a number that is there as well.
        (verdicts::<3>, |of| {
            of.elements.never_sent + of.elements.duplicated > 0
        }),
        (verdicts::<4>, |of| of.elements.duplicated > 0),
        (verdicts::<5>, |of| {
            (of.elements.lost, of.in_time) == (1, COUNT as u64 - 1)
        }),
        (verdicts::<6>, |of| {
            (of.elements.damaged, of.elements.lost) == (HUNDREDTHS, 0)
        }),
        (verdicts::<9>, |of| of.elements.duplicated > 0),
        // Whether the elements were found depends on who was quicker.
        (verdicts::<10>, |of| {
            let belated = BELATED as u64;
            of.in_time == COUNT as u64 - belated && of.elements.lost + of.elements.late == belated
        }),
    ];
    for (place, (verdicts, is_caught)) in cases.into_iter().enumerate() {
        for verdict in verdicts() {
            assert!(is_caught(&verdict), "{place}: {verdict:?}");
        }
    }
}

#[test]
fn a_stall_beyond_the_timeout_is_given_up_and_no_fault_of_the_queue() {
    let mut config = config(Measure::Time);
    config.timeout = Duration::from_millis(1);
    let Round { run, .. } = run_at::<11>(&point(), &config);
    assert_eq!(run.outcome, Outcome::GaveUp, "{run:?}");
    assert_eq!((run.verdict.elements.lost, run.throughput_per_s), (0, None));
    let words = run.failure(&config).unwrap();
    assert!(
        words.contains("given up") && words.contains("--timeout"),
        "{words}"
    );
}

#[test]
fn at_saturation_the_sender_is_always_late_and_never_waits() {
    let fastest = point().at_saturation();
    let config = config(Measure::Time);
    let Round { run, .. } = run_at::<0>(&fastest, &config);
    assert_eq!(run.outcome, Outcome::Clean, "{run:?}");
    assert_eq!(run.missed.sender, config.count);
}

#[test]
fn what_a_stall_causes_is_in_the_latency_from_the_intended_time_only() {
    let mut point = point();
    point.sender.load = Load::ConstantRate {
        rate_per_s: 100_000.0,
    };
    let mut config = config(Measure::Time);
    // Other stalls, on a loaded machine, do no harm here.
    config.timeout = Duration::from_secs(20);
    let stall = STALL.as_nanos() as i64;
    let Round { run, elements, .. } = run_at::<11>(&point, &config);
    assert_eq!(run.outcome, Outcome::Clean, "{:?}", run.verdict);
    let between = |from: u64, to: u64| to as i64 - from as i64;
    let from_intended = |row: &ElementRow| between(row.t_intended_ns.unwrap(), row.t_dequeued_ns);
    let from_stamp = |row: &ElementRow| between(row.t_stamp_ns, row.t_dequeued_ns);
    // The element in whose enqueue it was, and those that were due meanwhile.
    let (stalled, behind) = elements[COUNT / 2 - 500..].split_first().unwrap();
    assert_eq!(stalled.seq as usize, COUNT / 2 - 500);
    assert!(between(stalled.t_enqueue_ns, stalled.t_enqueued_ns) >= stall);
    for (place, row) in behind.iter().take(200).enumerate() {
        let overdue = stall - (place as i64 + 1) * 10_000;
        assert!(from_intended(row) >= overdue, "{place}: {row:?}");
        // The latency begins behind the stall, and so holds nothing of it, however loaded the machine is.
        assert!(row.t_stamp_ns >= stalled.t_enqueued_ns, "{place}: {row:?}");
        assert_eq!(row.latency_ns, from_stamp(row));
    }
    // The figures are those of the elements.
    let times = run.times.unwrap();
    let ends = |of: &dyn Fn(&ElementRow) -> i64| {
        let all = || elements.iter().map(of);
        (all().min().unwrap(), all().max().unwrap())
    };
    let intended = times.intended.unwrap();
    assert_eq!((intended.min_ns, intended.max_ns), ends(&from_intended));
    let latency = &times.latency;
    assert_eq!((latency.min_ns, latency.max_ns), ends(&from_stamp));
}

#[test]
fn a_floor_that_was_disturbed_is_none_and_fails_no_queue() {
    let stalled = || {
        RunError::Rig(RigError::Silent {
            role: RECEIVER,
            silence: Duration::from_millis(5400),
        })
    };
    let limit = Duration::from_secs(1);
    for error in [stalled(), RunError::TooSlow { limit }] {
        assert!(matches!(unless_disturbed(Err(error)), Ok(None)));
    }
    for error in [
        RigError::Interrupted(Signal::SIGINT),
        RigError::Stuck {
            role: SENDER,
            grace: Duration::from_secs(2),
        },
        RigError::Panicked { role: SENDER },
    ] {
        let expected = error.to_string();
        assert_eq!(
            unless_disturbed(Err(error.into())).unwrap_err().to_string(),
            expected
        );
    }
    assert_eq!(
        stalled().to_string(),
        "nothing was heard of the receiver for 5.4 s: an operation took so long, or something else has its CPU: a longer \
         --timeout allows more"
    );
}

#[test]
fn an_operation_that_blocks_ends_the_run_with_an_error() {
    let (point, config) = (point(), config(Measure::Time));
    let task = Task {
        limit: Duration::from_millis(100),
        ..Task::new(clock(), &point, &config)
    };
    let error = make_run(start_of::<7>(), &task).unwrap_err();
    assert!(
        matches!(error, RunError::Rig(RigError::Stuck { role: SENDER, .. })),
        "{error}"
    );
}

#[test]
fn a_thread_that_does_not_stay_on_its_cpu_fails_its_point() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let task = Task::new(clock(), &point(), &config(Measure::Time));
    let error = make_run(start_of::<12>(), &task).unwrap_err();
    let is_moved = matches!(error, RunError::Rig(RigError::Moved { role: SENDER, .. }));
    assert!(is_moved, "{error}");
    assert!(error.fails_its_point() && !error.leaves_thread_behind());
}

#[test]
fn a_queue_that_panics_is_an_error() {
    let task = Task::new(clock(), &point(), &config(Measure::Time));
    let error = make_run(start_of::<8>(), &task).unwrap_err();
    assert!(
        matches!(error, RunError::Rig(RigError::Panicked { role: SENDER })),
        "{error}"
    );
}

#[test]
fn a_cpu_that_does_not_exist_is_the_error_and_not_that_the_other_end_waits() {
    let mut task = Task::new(clock(), &point(), &config(Measure::Time));
    task.receiver_cpu = 60_000;
    let error = make_run(start_of::<0>(), &task).unwrap_err();
    assert!(
        matches!(error, RunError::Thread(RECEIVER, ThreadError::Host(_))),
        "{error}"
    );
}

#[test]
fn a_schedule_gives_the_latency_from_the_intended_time() {
    let mut point = point();
    let rate = Load::ConstantRate {
        rate_per_s: 500_000.0,
    };
    point.sender = EndLoad {
        load: rate,
        jitter: 0.5,
        seed: 1,
    };
    let config = config(Measure::Time);
    let Round { run, elements, .. } = run_at::<0>(&point, &config);
    let times = run.times.unwrap();
    let intended = times.intended.unwrap();
    assert_eq!(intended.count, config.count);
    // Nothing starts before its time, so the latency from there is never the smaller one.
    for row in &elements {
        assert!(row.t_intended_ns.unwrap() <= row.t_stamp_ns, "{row:?}");
    }
    // Nothing is lost of the schedule: all elements take as long as it lasts.
    let first = elements[0].t_intended_ns.unwrap();
    let last = elements.last().unwrap().t_intended_ns.unwrap();
    let mean = (last - first) as f64 / (config.count - 1) as f64;
    assert!((mean - 2000.0).abs() < 60.0, "{mean}");
}

#[test]
fn a_slow_receiver_fills_the_queue_and_the_attempts_that_fail_are_counted() {
    let mut point = point();
    point.capacity = 4;
    point.receiver.load = Load::ConstantWait { wait_ns: 20_000.0 };
    let mut config = config(Measure::Time);
    (config.count, config.warmup) = (900, 100);
    let without = run_at::<0>(&point, &config).run;
    config.measure_failed = true;
    let with = run_at::<0>(&point, &config).run;
    assert!(without.failed.sender > 0 && with.failed.sender > 0);
    let high = |run: &RunResult| run.times.as_ref().unwrap().enqueue.p90_ns;
    // An enqueue waits for the receiver, which is in its time only if asked for.
    assert!(high(&with) >= 10_000.0, "{}", high(&with));
    assert!(high(&without) < high(&with) / 2.0, "{}", high(&without));
    let depth = without.times.unwrap().depth;
    assert!(
        (4..=5).contains(&depth.max) && depth.mean > 0.0,
        "{depth:?}"
    );
}
