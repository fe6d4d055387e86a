//! Queues with a fault, and whether a run of several threads finds it.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::benchmark::ManyBenchmark;
use super::judge::{Shares, judged as judge};
use super::loops::{MakeAll, make, make_of};
use super::plan::Seats;
use super::run::{ManyTask, Reports, supervise};
use crate::bench::queue::config::{Config, Length, Measure};
use crate::bench::queue::cpus::CpuChoice;
use crate::bench::queue::error::RunError;
use crate::bench::queue::faulty::{clock, turn};
use crate::bench::queue::judge::Outcome;
use crate::bench::queue::plan::{Point, Sweep};
use crate::bench::queue::result::{RunResult, made_up};
use crate::bench::queue::tagging::Tag;
use crate::bench::queue::task::Task;
use crate::generators::MemoryLoad;
use crate::host::Topology;
use crate::node::wiring::{Scenario, Wiring};
use crate::pacing::EndLoad;
use crate::queues::element::{Element, Words};
use crate::queues::interface::{Made, Queue, Receiver, Sender, Shared, alone};
use crate::queues::parameters::Given;
use crate::refused::refused;
use crate::results::schema::{Column, queue as columns};
use crate::rig::benchmark::{Benchmark, Place, RowOutcome};
use crate::rig::error::RigError;

const NOTHING: u8 = 0;
/// Takes each hundredth element and forgets it.
const DROPS: u8 = 1;
/// Gives each hundredth element twice.
const DUPLICATES: u8 = 2;
/// Gives each hundredth element before the one in front of it.
const REORDERS: u8 = 3;
/// Changes a word of each hundredth element.
const DAMAGES: u8 = 4;
/// Makes an element up where there is none.
const INVENTS: u8 = 5;
/// Is always full for its first sender.
const STARVES_A_PRODUCER: u8 = 6;
/// Is always empty for its first receiver.
const STARVES_A_CONSUMER: u8 = 7;
/// Takes no more after some elements, and gives none.
const STOPS: u8 = 8;
/// Does not come back from an operation for long.
const BLOCKS: u8 = 9;
/// Takes the very first element, of the warm-up, and forgets it.
const FORGETS_THE_FIRST: u8 = 10;

const LONG: Duration = Duration::from_secs(20);
const EACH: usize = 100;

struct Faulty<const FAULT: u8>;

#[derive(Default)]
struct Inner {
    elements: VecDeque<Words<8>>,
    put_in: usize,
    taken: usize,
    again: Option<Words<8>>,
}

struct End {
    fault: u8,
    is_first: bool,
    capacity: usize,
    queue: Arc<Mutex<Inner>>,
}

impl End {
    /// Whether this end has its turn.
    fn has_turn(&self, starving: u8) -> bool {
        self.fault != starving || !self.is_first
    }
}

impl Sender<Words<8>> for End {
    fn enqueue(&mut self, element: Words<8>) -> bool {
        if !self.has_turn(STARVES_A_PRODUCER) {
            return false;
        }
        let mut queue = self.queue.lock().unwrap();
        let Inner {
            elements, put_in, ..
        } = &mut *queue;
        let is_stopped = self.fault == STOPS && *put_in > 10 * EACH;
        if elements.len() >= self.capacity || is_stopped {
            return false;
        }
        *put_in += 1;
        let is_wrong = put_in.is_multiple_of(EACH);
        match self.fault {
            BLOCKS if is_wrong => sleep(LONG),
            DROPS if is_wrong => {}
            FORGETS_THE_FIRST if *put_in == 1 && Tag(element.stamp()).is_warm_up() => {}
            REORDERS => {
                // Two of one sender change places, wherever they are.
                let before = elements.iter_mut().rev();
                let mut before = before.filter(|it| it.stamp() >> 40 == element.stamp() >> 40);
                match before.next().filter(|_| is_wrong) {
                    Some(last) => {
                        let first = std::mem::replace(last, element);
                        elements.push_back(first);
                    }
                    None => elements.push_back(element),
                }
            }
            _ => elements.push_back(element),
        }
        true
    }
}

impl Receiver<Words<8>> for End {
    fn dequeue(&mut self) -> Option<Words<8>> {
        if !self.has_turn(STARVES_A_CONSUMER) {
            return None;
        }
        let mut queue = self.queue.lock().unwrap();
        if let Some(again) = queue.again.take() {
            return Some(again);
        }
        let element = match queue.elements.pop_front() {
            Some(element) => element,
            None if self.fault == INVENTS => return Some(Words::with_stamp(NonZeroU64::MIN)),
            None => return None,
        };
        queue.taken += 1;
        let is_wrong = queue.taken.is_multiple_of(EACH);
        match self.fault {
            DUPLICATES if is_wrong => queue.again = Some(element),
            DAMAGES if is_wrong => {
                let mut words = *element.words();
                words[7] ^= 1;
                return Some(Words::from_words(words));
            }
            _ => {}
        }
        Some(element)
    }
}

impl<const FAULT: u8> Queue<Words<8>> for Faulty<FAULT> {
    type Sender = End;
    type Receiver = End;

    fn starting_at(capacity: usize, _start: usize) -> Made<Self, Words<8>> {
        Self::shared(capacity, &Given::default(), 1, 1).map(alone)
    }

    fn shared(
        capacity: usize,
        _given: &Given,
        senders: usize,
        receivers: usize,
    ) -> Shared<Self, Words<8>> {
        let queue = Arc::new(Mutex::new(Inner::default()));
        let end = |number| End {
            fault: FAULT,
            is_first: number == 0,
            capacity,
            queue: Arc::clone(&queue),
        };
        Ok((
            (0..senders).map(end).collect(),
            (0..receivers).map(end).collect(),
        ))
    }
}

fn wiring(scenario: Scenario, publishers: u32, subscribers: u32) -> Wiring {
    Wiring {
        scenario,
        publishers,
        subscribers,
    }
}

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

fn task(point: &Point, config: &Config) -> ManyTask {
    let room = 100_000;
    ManyTask {
        task: Task::new(clock(), false, point, config, room as u64),
        wiring: point.wiring.unwrap(),
        duration: Duration::from_millis(50),
        room,
    }
}

fn run(make: MakeAll, many: &ManyTask) -> Result<Reports, RunError> {
    let _turn = turn();
    let seats = Seats::new(&Topology::read().unwrap(), &many.wiring).unwrap();
    supervise(make, many, &seats, &|| None)
}

fn judged(make: MakeAll, point: &Point, measure: Measure) -> (RunResult, Shares) {
    let many = task(point, &config(measure));
    judge(&many, run(make, &many).unwrap())
}

fn judged_with<const FAULT: u8>() -> (RunResult, Shares) {
    let point = point("faulty", wiring(Scenario::RoundRobin, 2, 2));
    judged(make::<Faulty<FAULT>, Words<8>>, &point, Measure::Throughput)
}

#[test]
fn a_right_queue_is_found_right_in_each_scenario() {
    let scenarios = [
        wiring(Scenario::StraightRun, 2, 2),
        wiring(Scenario::FanIn, 3, 2),
        wiring(Scenario::FanOut, 2, 2),
        wiring(Scenario::RoundRobin, 2, 2),
        wiring(Scenario::RoundRobin, 1, 3),
    ];
    for wiring in scenarios {
        for measure in [Measure::Time, Measure::Throughput] {
            let point = point("sharded", wiring);
            let (run, shares) = judged(make_of(&point), &point, measure);
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
    let point = point("faulty", wiring(Scenario::RoundRobin, 2, 2));
    let config = Config {
        warmup: Duration::from_secs(1),
        ..config(Measure::Throughput)
    };
    let many = task(&point, &config);
    let (run, _) = judge(
        &many,
        run(make::<Faulty<FORGETS_THE_FIRST>, Words<8>>, &many).unwrap(),
    );
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
        (judged_with::<STARVES_A_PRODUCER> as fn() -> _, "producer"),
        (judged_with::<STARVES_A_CONSUMER>, "consumer"),
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
    assert_eq!(
        starved([9, 9, 282], [14, 286]),
        ["producer", "producer", "consumer"]
    );
}

#[test]
fn a_queue_that_stops_is_given_up_and_what_is_in_it_is_not_lost() {
    let point = point("faulty", wiring(Scenario::RoundRobin, 2, 2));
    let config = Config {
        timeout: Duration::from_millis(500),
        ..config(Measure::Throughput)
    };
    let many = task(&point, &config);
    let reports = run(make::<Faulty<STOPS>, Words<8>>, &many).unwrap();
    let (run, _) = judge(&many, reports);
    assert_eq!(run.outcome, Outcome::GaveUp);
    let found = run.verdict.elements;
    assert_eq!((found.lost, found.late), (0, 0), "{found:?}");
}

#[test]
fn a_signal_ends_a_run_whatever_its_threads_do() {
    let delay = Duration::from_millis(200);
    let point = point("faulty", wiring(Scenario::RoundRobin, 2, 2));
    let config = Config {
        timeout: LONG,
        ..config(Measure::Time)
    };
    let many = ManyTask {
        duration: LONG,
        room: 1 << 24,
        ..task(&point, &config)
    };
    let seats = Seats::new(&Topology::read().unwrap(), &many.wiring).unwrap();
    let makes: [MakeAll; 2] = [
        make::<Faulty<STOPS>, Words<8>>,
        make::<Faulty<BLOCKS>, Words<8>>,
    ];
    for make in makes {
        let _turn = turn();
        let begun = std::time::Instant::now();
        let requested = || (begun.elapsed() >= delay).then_some(Signal::SIGTERM);
        let ended = supervise(make, &many, &seats, &requested);
        assert!(
            matches!(ended, Err(RunError::Rig(RigError::Interrupted(_)))),
            "{ended:?}"
        );
        // It waited for none of them.
        assert!(begun.elapsed() < LONG / 2);
    }
}

#[test]
fn a_row_tells_what_is_wrong_and_who_was_starved() {
    let _turn = turn();
    let wiring = wiring(Scenario::RoundRobin, 2, 1);
    let sweep = Sweep {
        queues: vec!["sharded".to_owned()],
        capacities: vec![8192],
        payloads: vec![64],
        senders: vec![EndLoad::NONE],
        receiver: EndLoad::NONE,
        curve: None,
        cpus: CpuChoice::EachRelation,
        memory_loads: vec![MemoryLoad::OFF],
        wirings: vec![wiring],
    };
    let config = Config {
        // Longer than any time slice: threads may share CPUs.
        length: Length::Time(Duration::from_millis(150)),
        ..config(Measure::Throughput)
    };
    let measured = |make_of: fn(&Point) -> MakeAll| {
        let mut benchmark = ManyBenchmark::new(config.clone(), sweep.clone());
        benchmark.make_of = make_of;
        let plan = benchmark.plan().unwrap();
        benchmark.prepare(plan).unwrap();
        let place = Place {
            round: 0,
            folders: Vec::new(),
        };
        let mut outcome = benchmark.measure(0, &place, &mut |_| {}).unwrap();
        (outcome.rows.remove(0), outcome.warnings.join("\n"))
    };
    let is_told = |warnings: &str| warnings.contains("marked UNFAIR");
    let (row, _) = measured(make_of);
    assert_eq!(row.failure, None);
    let number = |row: &RowOutcome, column: &Column| row.figures.number(column.name);
    assert!(number(&row, &columns::FAIRNESS_PRODUCERS) >= Some(0.5));
    // There is only one.
    assert_eq!(number(&row, &columns::LEAST_CONSUMER), Some(100.0));

    let (row, warnings) = measured(|_| make::<Faulty<STARVES_A_PRODUCER>, Words<8>>);
    assert_eq!(row.failure, None);
    assert_eq!(number(&row, &columns::STARVED), Some(1.0));
    assert_eq!(number(&row, &columns::LEAST_PRODUCER), Some(0.0));
    assert!(is_told(&warnings), "{warnings}");

    let (row, warnings) = measured(|_| make::<Faulty<DROPS>, Words<8>>);
    refused(row.failure.map_or(Ok(()), Err), &["broken", "lost"]);
    assert!(row.figures.get(columns::LEAST_PRODUCER.name).is_none() && !is_told(&warnings));
    assert_eq!(row.figures.text(&columns::OUTCOME), Outcome::Wrong.name());
}
