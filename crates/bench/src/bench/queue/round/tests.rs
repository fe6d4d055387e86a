//! Whole runs, over an honest queue and over broken ones.

use crate::testing::Has as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::*;
use crate::bench::queue::error::ThreadError;
use crate::bench::queue::faulty::{
    self, APPENDS, BELATED, BELATES, COUNT, DAMAGES, DROPS, DUPLICATES, INVENTS, MOVES, NOTHING,
    REORDERS, STALL, STALLS, WITHHOLDS, clock, point,
};
use crate::bench::queue::result::ElementRow;
use crate::bench::queue::roles::{RECEIVER, SENDER};
use crate::rig::ledger::Tally;
use crate::stats::Summary;

fn config(measure: Measure) -> Config {
    Config {
        measure,
        ..faulty::config()
    }
}

fn task(point: &Point, config: &Config) -> Task {
    Task::new(clock(), false, point, config, COUNT as u64)
}

fn run<const FAULT: u8>(point: &Point, config: &Config) -> RunResult {
    let _turn = faulty::turn();
    measure_run(faulty::make_of::<FAULT>(), task(point, config), 0, None).unwrap()
}

/// The run of a queue with a fault, without and with time stamps.
fn verdicts<const FAULT: u8>() -> [Verdict; 2] {
    [Measure::Time, Measure::Throughput].map(|measure| {
        let run = run::<FAULT>(&point(), &config(measure));
        assert_eq!(run.outcome, Outcome::Wrong, "{measure:?}: {run:?}");
        // No figures of what is wrong: a queue that is broken looks fastest.
        assert!(run.times.is_none() && run.rows.is_empty());
        assert_eq!(run.throughput_per_s, None);
        run.verdict
    })
}

#[test]
fn each_fault_is_caught_and_hangs_nobody() {
    const HUNDREDTHS: u64 = COUNT as u64 / 100;
    type Case = (fn() -> [Verdict; 2], fn(&Verdict) -> bool);
    let cases: [Case; 8] = [
        (verdicts::<DROPS>, |of| of.elements.lost == HUNDREDTHS),
        (verdicts::<REORDERS>, |of| {
            (1..=HUNDREDTHS).contains(&of.elements.reordered) && of.elements.lost == 0
        }),
        // By numbers, what it invents is a number that is there as well.
        (verdicts::<INVENTS>, |of| {
            of.elements.never_sent + of.elements.duplicated > 0
        }),
        (verdicts::<DUPLICATES>, |of| of.elements.duplicated > 0),
        (verdicts::<WITHHOLDS>, |of| {
            (of.elements.lost, of.in_time) == (1, COUNT as u64 - 1)
        }),
        (verdicts::<DAMAGES>, |of| {
            (of.elements.damaged, of.elements.lost) == (HUNDREDTHS, 0)
        }),
        (verdicts::<APPENDS>, |of| of.elements.duplicated > 0),
        // Whether the elements were found depends on who was quicker.
        (verdicts::<BELATES>, |of| {
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
fn what_a_queue_loses_while_it_warms_up_is_caught() {
    let warming_up = |measure| Config {
        warmup: Duration::from_millis(2),
        ..config(measure)
    };
    let mut slow = point();
    slow.sender.load = Load::ConstantRate {
        rate_per_s: 100_000.0,
    };
    for measure in [Measure::Time, Measure::Throughput] {
        let config = warming_up(measure);
        for point in [&point(), &slow] {
            let clean = run::<NOTHING>(point, &config);
            assert_eq!(clean.outcome, Outcome::Clean, "{clean:?}");
            let PerEnd { sender, receiver } = clean.ends.map(|end| end.passed.warmed_up);
            assert_eq!(sender, receiver);
            assert!(sender.elements > 0 && clean.verdict.elements.received == COUNT as u64);
        }
        let wrong = run::<DROPS>(&point(), &config);
        assert_eq!(wrong.outcome, Outcome::Wrong, "{wrong:?}");
        assert!(wrong.verdict.is_warm_up_wrong, "{wrong:?}");
        let wrong = run::<REORDERS>(&point(), &config);
        assert_eq!(wrong.outcome, Outcome::Wrong, "{wrong:?}");
    }
}

#[test]
fn batches_are_timed_and_each_element_is_judged() {
    let config = Config {
        per_stamp: 7,
        warmup: Duration::from_millis(2),
        ..config(Measure::Time)
    };
    let run = run::<NOTHING>(&point(), &config);
    assert_eq!(run.outcome, Outcome::Clean, "{run:?}");
    assert_eq!(run.verdict.elements.received, COUNT as u64);
    let times = run.times.unwrap();
    assert_eq!((times.per_stamp, times.depth), (7, None));
    // Those that were broken off by a failed attempt, or at the first or last element, have no time.
    let batches = run.ends.map(|end| end.tally.batches);
    let figures = &times.figures;
    for (summary, batches) in [
        (&figures.enqueue_batch, batches.sender),
        (&figures.dequeue_batch, batches.receiver),
    ] {
        assert!(batches <= COUNT / 7, "{batches}");
        let count = summary.as_ref().map_or(0, |summary| summary.count);
        assert_eq!(count, batches as u64);
    }
    assert!(figures.enqueue.is_none() && figures.latency.is_none());
    // No attempt breaks one off where those that fail are measured: the sender's last element is in none.
    let all = Config {
        measure_failed: true,
        ..config.clone()
    };
    let whole = self::run::<NOTHING>(&point(), &all);
    let batches = whole.ends.map(|end| end.tally.batches);
    assert_eq!([batches.sender, batches.receiver], [(COUNT - 1) / 7; 2]);
    let floors = run.floors.unwrap();
    assert!(floors.enqueue_batch.is_some() && floors.latency.is_none());
    for wrong in [verdict_in_batches::<DROPS>, verdict_in_batches::<DAMAGES>] {
        assert_eq!(wrong(&config), Outcome::Wrong);
    }
}

fn verdict_in_batches<const FAULT: u8>(config: &Config) -> Outcome {
    run::<FAULT>(&point(), config).outcome
}

#[test]
fn a_round_trip_goes_there_and_back_and_is_timed_at_one_end() {
    let config = Config {
        warmup: Duration::from_millis(1),
        ..config(Measure::RoundTrip)
    };
    let clean = run::<NOTHING>(&point(), &config);
    assert_eq!(clean.outcome, Outcome::Clean, "{clean:?}");
    let figures = &clean.times.as_ref().unwrap().figures;
    let round_trip = figures.round_trip.as_ref().unwrap();
    assert_eq!((round_trip.count, round_trip.negative), (COUNT as u64, 0));
    assert!(round_trip.min_ns > 0 && figures.latency.is_none());
    let floor = clean.floors.unwrap().round_trip.unwrap();
    assert!(floor.min_ns > 0);
}

/// What is found where a queue there and another one back have these faults.
fn there_and_back<const THERE: u8, const BACK: u8>() -> Verdict {
    let _turn = faulty::turn();
    let config = config(Measure::RoundTrip);
    let task = task(&point(), &config);
    let run = measure_run(faulty::make_of_round_trip::<THERE, BACK>(), task, 0, None).unwrap();
    assert_eq!(run.outcome, Outcome::Wrong, "{run:?}");
    assert!(run.times.is_none() && run.throughput_per_s.is_none());
    run.verdict
}

#[test]
fn a_queue_that_is_broken_only_there_or_only_on_the_way_back_is_caught() {
    type Case = ([fn() -> Verdict; 2], fn(&Tally) -> bool);
    let cases: [Case; 5] = [
        // Each hundredth.
        (
            [
                there_and_back::<DAMAGES, NOTHING>,
                there_and_back::<NOTHING, DAMAGES>,
            ],
            |of| of.damaged == COUNT as u64 / 100,
        ),
        // The first that is lost is waited for.
        (
            [
                there_and_back::<DROPS, NOTHING>,
                there_and_back::<NOTHING, DROPS>,
            ],
            |of| (of.lost, of.never_sent) == (1, 0),
        ),
        (
            [
                there_and_back::<WITHHOLDS, NOTHING>,
                there_and_back::<NOTHING, WITHHOLDS>,
            ],
            |of| of.lost == 1,
        ),
        // Whoever gets an element again takes it for the next one.
        (
            [
                there_and_back::<DUPLICATES, NOTHING>,
                there_and_back::<NOTHING, DUPLICATES>,
            ],
            |of| of.duplicated + of.damaged > 0,
        ),
        (
            [
                there_and_back::<APPENDS, NOTHING>,
                there_and_back::<NOTHING, APPENDS>,
            ],
            |of| of.duplicated > 0,
        ),
    ];
    for (place, (verdicts, is_caught)) in cases.into_iter().enumerate() {
        for verdict in verdicts.map(|verdict| verdict()) {
            assert!(is_caught(&verdict.elements), "{place}: {verdict:?}");
        }
    }
}

#[test]
fn a_stall_beyond_the_timeout_is_given_up_and_no_fault_of_the_queue() {
    let mut config = config(Measure::Time);
    config.timeout = Duration::from_millis(1);
    let run = run::<STALLS>(&point(), &config);
    assert_eq!(run.outcome, Outcome::GaveUp, "{run:?}");
    assert_eq!((run.verdict.elements.lost, run.throughput_per_s), (0, None));
    let words = run.failure(&config).unwrap();
    words.has(&["given up", "--timeout"]);
}

#[test]
fn at_saturation_the_sender_is_always_late_and_never_waits() {
    let fastest = point().at_saturation();
    let config = config(Measure::Time);
    let run = run::<NOTHING>(&fastest, &config);
    assert_eq!(run.outcome, Outcome::Clean, "{run:?}");
    assert_eq!(run.ends.sender.tally.missed, COUNT as u64);
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
    let run = run::<STALLS>(&point, &config);
    let elements = &run.rows;
    assert_eq!(run.outcome, Outcome::Clean, "{:?}", run.verdict);
    let between = |from: u64, to: u64| to as i64 - from as i64;
    let from_intended = |row: &ElementRow| between(row.t_intended_ns.unwrap(), row.t_dequeued_ns);
    let from_stamp = |row: &ElementRow| between(row.t_stamp_ns, row.t_dequeued_ns);
    // The element in whose enqueue it was, and those that were due meanwhile.
    let (stalled, behind) = elements[COUNT / 2..].split_first().unwrap();
    assert_eq!(stalled.seq as usize, COUNT / 2);
    assert!(between(stalled.t_enqueue_ns, stalled.t_enqueued_ns) >= stall);
    for (place, row) in behind.iter().take(200).enumerate() {
        let overdue = stall - (place as i64 + 1) * 10_000;
        assert!(from_intended(row) >= overdue, "{place}: {row:?}");
        // The latency begins behind the stall, and so holds nothing of it, however loaded the machine is.
        assert!(row.t_stamp_ns >= stalled.t_enqueued_ns, "{place}: {row:?}");
        assert_eq!(row.latency_ns, from_stamp(row));
    }
    // The figures are those of the elements.
    let figures = &run.times.unwrap().figures;
    let check = |figure: &Option<Summary>, of: &dyn Fn(&ElementRow) -> i64| {
        let (figure, all) = (figure.as_ref().unwrap(), || elements.iter().map(of));
        assert_eq!(Some(figure.min_ns), all().min());
        assert_eq!(Some(figure.max_ns), all().max());
    };
    check(&figures.intended, &from_intended);
    check(&figures.latency, &from_stamp);
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
        "the receiver made no progress for 5.4 s: an operation took that long, or another thread has its CPU; \
         allow more by --timeout"
    );
}

#[test]
fn a_thread_that_does_not_stay_on_its_cpu_fails_its_point() {
    let _turn = faulty::turn();
    let task = task(&point(), &config(Measure::Time));
    let error = make_run(faulty::make_of::<MOVES>(), &task, None).unwrap_err();
    let is_moved = matches!(error, RunError::Rig(RigError::Moved { role: SENDER, .. }));
    assert!(is_moved, "{error}");
    assert!(error.fails_its_point() && !error.leaves_thread_behind());
}

#[test]
fn a_cpu_that_does_not_exist_is_the_error_and_not_that_the_other_end_waits() {
    let mut task = task(&point(), &config(Measure::Time));
    task.cpus[1] = vec![60_000];
    let error = make_run(faulty::make_of::<NOTHING>(), &task, None).unwrap_err();
    let is_expected = matches!(error, RunError::Thread(RECEIVER, ThreadError::Host(_)));
    assert!(is_expected, "{error}");
}
