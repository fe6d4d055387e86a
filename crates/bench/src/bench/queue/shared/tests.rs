//! Queues with a fault, and whether a run of several threads finds it.

use crate::testing::Refused as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::bench::queue::benchmark::QueueBenchmark;
use crate::bench::queue::config::{Config, Measure, RoundLength};
use crate::bench::queue::ends::{EndsMaker, make_of};
use crate::bench::queue::error::RunError;
use crate::bench::queue::faulty::{
    self, BLOCKS, DAMAGES, DROPS, DUPLICATES, FORGETS_THE_FIRST, INVENTS, LONG, NOTHING, REORDERS,
    STARVES_A_RECEIVER, STARVES_A_SENDER, STOPS, clock, turn,
};
use crate::bench::queue::judge::Outcome;
use crate::bench::queue::plan::{self, Point, Sweep};
use crate::bench::queue::result::{RunResult, made_up};
use crate::bench::queue::round::measure_run;
use crate::bench::queue::seats::Seats;
use crate::bench::queue::shares::Shares;
use crate::bench::queue::supervisor::supervise;
use crate::bench::queue::task::Task;
use crate::host::Topology;
use crate::node::wiring::{Scenario, Wiring};
use crate::pacing::Load;
use crate::results::finding::kinds::STARVED;
use crate::results::schema::{Column, queue as columns};
use crate::rig::benchmark::{Benchmark, RowOutcome, SampleFolders};
use crate::rig::error::RigError;

fn point(queue: &str, wiring: Wiring) -> Point {
    Point {
        // Where threads share CPUs, no more than this goes through in a time slice.
        capacity: 8192,
        payload: 64,
        wiring: Some(wiring),
        ..made_up::point(queue)
    }
}

fn config(measure: Measure) -> Config {
    Config {
        measure,
        warmup: Duration::from_millis(5),
        // Whoever is starved does not give up.
        timeout: LONG,
        ..made_up::config()
    }
}

fn task(point: &Point, config: &Config) -> Task {
    let config = Config {
        length: RoundLength::Time(Duration::from_millis(50)),
        ..config.clone()
    };
    let seats = Seats::of(&Topology::read().unwrap(), point).unwrap();
    Task {
        cpus: seats.cpus,
        ..Task::new(clock(), false, point, &config, 100_000)
    }
}

fn judged(make: EndsMaker, point: &Point, config: &Config) -> (RunResult, Shares) {
    let _turn = turn();
    let run = measure_run(make, task(point, config), 0, None).unwrap();
    let shares = run.shares.clone().unwrap();
    (run, shares)
}

fn shared_by_all() -> Point {
    point("faulty", Wiring::new(Scenario::RoundRobin, 2, 2))
}

fn judged_with<const FAULT: u8>() -> (RunResult, Shares) {
    let make = faulty::make_of::<FAULT>();
    judged(make, &shared_by_all(), &config(Measure::Throughput))
}

#[test]
fn a_right_queue_is_found_right_in_each_scenario() {
    let scenarios = [
        Wiring::new(Scenario::StraightRun, 2, 2),
        Wiring::new(Scenario::FanIn, 3, 2),
        Wiring::new(Scenario::FanOut, 2, 2),
        Wiring::new(Scenario::RoundRobin, 2, 2),
        Wiring::new(Scenario::RoundRobin, 1, 3),
    ];
    for wiring in scenarios {
        for measure in [Measure::Time, Measure::Throughput] {
            let point = point("sharded", wiring);
            let (run, shares) = judged(make_of(&point), &point, &config(measure));
            assert_eq!(
                run.outcome,
                Outcome::Clean,
                "{point}: {}",
                run.verdict.in_words(run.elements)
            );
            let [put_in, taken] = [&shares.producers, &shares.consumers].map(|it| it.iter().sum());
            let copies: u64 = wiring.copies();
            assert!(
                run.elements > 0 && (copies * put_in, taken) == (run.elements, run.elements),
                "{point}: {shares:?} of {}",
                run.elements
            );
            assert!(run.throughput_per_s > Some(0.0) && run.sent_per_s > Some(0.0));
            let times = run.times.as_ref();
            assert_eq!(times.is_some(), measure == Measure::Time);
            let latency = times.and_then(|times| times.figures.latency.as_ref());
            assert!(
                latency.is_none_or(|latency| latency.count == run.elements && latency.min_ns > 0)
            );
            // All of a fan-out's consumers have all.
            assert!(copies == 1 || shares.consumers.iter().all(|count| *count == put_in));
        }
    }
}

#[test]
fn rates_are_over_whole_groups_whatever_a_part_is() {
    for (wait_ns, group) in [(1e3, 30), (1e5, 700), (1e6, 7)] {
        let mut point = point("sharded", Wiring::new(Scenario::FanIn, 2, 1));
        point.sender.load = Load::Bursty { wait_ns, group };
        let (run, _) = judged(make_of(&point), &point, &config(Measure::Throughput));
        let words = run.verdict.in_words(run.elements);
        assert_eq!(run.outcome, Outcome::Clean, "{words}");
        let intervals = run.ends.sender.passed.intervals;
        assert!(intervals > 0 && intervals <= run.elements, "{intervals}");
        assert!(intervals.is_multiple_of(group.into()), "{intervals}");
        // What comes out is what goes in.
        assert!(run.throughput_per_s > Some(0.0) && run.throughput_per_s <= run.sent_per_s);
    }
}

#[test]
fn what_a_queue_does_wrong_is_found() {
    let found = |(run, _): (RunResult, Shares)| {
        assert_eq!(run.outcome, Outcome::Wrong);
        assert!(run.times.is_none() && run.throughput_per_s.is_none());
        run.verdict.elements
    };
    assert!(found(judged_with::<DROPS>()).lost > 0);
    assert!(found(judged_with::<DUPLICATES>()).duplicated > 0);
    assert!(found(judged_with::<REORDERS>()).reordered > 0);
    assert!(found(judged_with::<DAMAGES>()).damaged > 0);
    assert!(found(judged_with::<INVENTS>()).never_sent > 0);
    // What is only wrong before the elements that count: a warm-up that no time slice of others outlasts.
    let config = Config {
        warmup: Duration::from_secs(1),
        ..config(Measure::Throughput)
    };
    let make = faulty::make_of::<FORGETS_THE_FIRST>();
    let (run, _) = judged(make, &shared_by_all(), &config);
    assert_eq!(run.outcome, Outcome::Wrong);
    assert!(run.verdict.is_warm_up_wrong && run.verdict.elements.lost == 0);
    let right = judged_with::<NOTHING>().0;
    assert_eq!(
        right.outcome,
        Outcome::Clean,
        "{}",
        right.verdict.in_words(right.elements)
    );
}

#[test]
fn who_is_starved_is_found() {
    for (judged, end) in [
        (judged_with::<STARVES_A_SENDER> as fn() -> _, "producer"),
        (judged_with::<STARVES_A_RECEIVER>, "consumer"),
    ] {
        let (run, shares): (RunResult, Shares) = judged();
        let words = run.verdict.in_words(run.elements);
        assert_eq!(run.outcome, Outcome::Clean, "{words}");
        // On a loaded machine others may be as well.
        assert!(shares.starved().contains(&end), "{shares:?}");
    }
}

#[test]
fn a_tenth_of_an_equal_share_is_enough() {
    let starved = |producers: [u64; 3], consumers: [u64; 2]| {
        let shares = Shares {
            producers: producers.into(),
            consumers: consumers.into(),
        };
        shares.starved()
    };
    assert_eq!(starved([10, 145, 145], [150, 150]), Vec::<&str>::new());
    assert_eq!(starved([9, 146, 145], [150, 150]), ["producer"]);
    let expected = ["producer", "producer", "consumer"];
    assert_eq!(starved([9, 9, 282], [14, 286]), expected);
}

#[test]
fn a_queue_that_stops_is_given_up_and_what_is_in_it_is_not_lost() {
    let config = Config {
        timeout: Duration::from_millis(500),
        ..config(Measure::Throughput)
    };
    let (run, _) = judged(faulty::make_of::<STOPS>(), &shared_by_all(), &config);
    assert_eq!(run.outcome, Outcome::GaveUp);
    let found = run.verdict.elements;
    assert_eq!((found.lost, found.late), (0, 0), "{found:?}");
}

#[test]
fn a_signal_ends_a_run_whatever_its_threads_do() {
    let delay = Duration::from_millis(200);
    let mut task = task(&shared_by_all(), &config(Measure::Time));
    task.config.length = RoundLength::Time(LONG);
    task.count = 1 << 24;
    let makes = [faulty::make_of::<STOPS>(), faulty::make_of::<BLOCKS>()];
    for make in makes {
        let _turn = turn();
        let begun = std::time::Instant::now();
        let requested = || (begun.elapsed() >= delay).then_some(Signal::SIGTERM);
        let ended = supervise(make, &task, &requested, None).map(|(reports, _)| reports);
        let is_expected = matches!(ended, Err(RunError::Rig(RigError::Interrupted(_))));
        assert!(is_expected, "{ended:?}");
        // It waited for none of them.
        assert!(begun.elapsed() < LONG / 2);
    }
}

#[test]
fn a_row_tells_what_is_wrong_and_who_was_starved() {
    let _turn = turn();
    let wiring = Wiring::new(Scenario::RoundRobin, 2, 1);
    let sweep = Sweep {
        capacities: vec![8192],
        payloads: vec![64],
        wirings: vec![wiring],
        ..plan::tests::sweep(&["sharded"])
    };
    let config = Config {
        // Longer than any time slice: threads may share CPUs.
        length: RoundLength::Time(Duration::from_millis(150)),
        ..config(Measure::Throughput)
    };
    let measured = |make_of: fn(&Point) -> EndsMaker| {
        let mut benchmark = QueueBenchmark::new(config.clone(), sweep.clone());
        benchmark.make_of = make_of;
        let plan = benchmark.plan().unwrap();
        benchmark.prepare(plan).unwrap();
        let place = SampleFolders {
            round: 0,
            folders: Vec::new(),
        };
        let mut outcome = benchmark.measure(0, &place, &mut |_| {}).unwrap();
        outcome.rows.remove(0)
    };
    let is_told = |row: &RowOutcome| row.findings.iter().any(|it| it.kind == STARVED.id);
    let row = measured(make_of);
    assert_eq!(row.failure, None);
    let number = |row: &RowOutcome, column: &Column| row.figures.number(column.name);
    assert!(number(&row, &columns::FAIRNESS_PRODUCERS) >= Some(0.5));
    // There is only one.
    assert_eq!(number(&row, &columns::LEAST_CONSUMER), Some(100.0));

    let row = measured(|_| faulty::make_of::<STARVES_A_SENDER>());
    assert_eq!(row.failure, None);
    assert_eq!(number(&row, &columns::STARVED), Some(1.0));
    assert_eq!(number(&row, &columns::LEAST_PRODUCER), Some(0.0));
    assert!(is_told(&row), "{:?}", row.findings);

    let row = measured(|_| faulty::make_of::<DROPS>());
    assert!(row.figures.get(columns::LEAST_PRODUCER.name).is_none() && !is_told(&row));
    row.failure.map_or(Ok(()), Err).refused(&["broken", "lost"]);
    assert_eq!(row.figures.text(&columns::OUTCOME), Outcome::Wrong.name());
}
