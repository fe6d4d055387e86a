//! What the queue benchmark's runner costs, against the same loops written by hand with the queue's code pasted in.
//!
//! | requirement | measured by |
//! | --- | --- |
//! | instructions an element within 2 % | callgrind, which counts exactly: the difference of a long and a short run |
//! | time an element within 3 % in two of six places | the thread's time, the median of rounds that take turns |
//!
//! Two nanoseconds an element are decided by where code and memory lie as much as by what is in a loop: the same loop
//! takes up to 40 % longer in another place, and in another process of the same program. So `ci/measure compare-runner`
//! builds this program several times, with the code aligned in other ways, and runs each in several processes, whose
//! median counts. The runner is too slow where it is above the limit in at least five of six places. Of equals that is
//! so by chance in one row of a hundred. Their fastest places are above it in one of three, the median of their ratios
//! in one of four. With one place, of this program alone, that place decides.
//!
//! Where the runner takes fewer instructions than that, the row says so: the loops written by hand are not the best
//! there. The runner is put together as `hcabench queue` does it for no pause, with and without time stamps of the TSC.
//!
//! Both are taken with one thread that fills the queue and drains it in turn, so that no attempt fails and nothing but
//! the loops is compared: between two threads the time is that of cache lines changing hands. Two queues, with and
//! without time stamps. Ends with exit code 1 when a requirement is not met or cannot be measured.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use hcabench::bench::queue::control::QueueControl;
use hcabench::bench::queue::measurer::{Measurer, Numbering, Numbers, Record, TimedMeasurer};
use hcabench::bench::queue::patience::Patience;
use hcabench::bench::queue::retry::Retry;
use hcabench::bench::queue::runner::{LoopCounts, Runner, Waiting};
use hcabench::host::pinning;
use hcabench::pacing::NoPause;
use hcabench::queues::element::{Element, Words};
use hcabench::queues::interface::Queue;
use hcabench::queues::{FastForward, Lamport};
use hcabench::stats::median_of;
use hcabench::terminal::table::{Column, Table};
use hcabench::time::Ticks;
use shared::{Counter, Failed, callgrind, thread_time};

#[path = "queue_runner/by_hand.rs"]
mod by_hand;
mod shared;

const USAGE: &str = "\
Usage: cargo bench --bench queue_runner [-- PROGRAM...]
Compares the runner of hcabench queue with loops written by hand, in half a minute. Exit code 1 when
it costs more than it may. Needs valgrind. Runs on one of the CPUs it may use; choose it with taskset.
This program, or each PROGRAM, which is this one built with another alignment, is run five times for
the times; the verdict is that over all programs: ci/measure compare-runner does that.";

/// At most so many times the instructions of the loops written by hand, and they at most so many times the runner's.
const INSTRUCTION_LIMIT: f64 = 1.02;
const TIME_LIMIT: f64 = 1.03;
const SHARE_ABOVE: f64 = 0.7;

/// Elements that are in the queue at once, at most.
const BATCH: usize = 1000;
const CAPACITY: usize = 1024;
/// Batches of the short and of the long run below callgrind.
const SHORT: usize = 10;
const LONG: usize = 60;
const PROCESSES: usize = 5;
/// So that a process takes a twentieth of a second against the clock, with and without time stamps.
const ROUNDS: usize = 9;
const BATCHES_WITH_STAMPS: usize = 500;
const BATCHES_WITHOUT: usize = 20_000;

type Payload = Words<1>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    queue: &'static str,
    measurer: &'static str,
}

impl Case {
    const fn of(queue: &'static str, measurer: &'static str) -> Self {
        Case { queue, measurer }
    }
}

const CASES: [Case; 4] = [
    Case::of("lamport", "numbered"),
    Case::of("lamport", "timed"),
    Case::of("fastforward", "numbered"),
    Case::of("fastforward", "timed"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    ByHand,
    Runner,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Side::ByHand => "by-hand",
            Side::Runner => "runner",
        }
    }
}

fn main() -> ExitCode {
    shared::main("queue_runner", USAGE, |words| match words {
        // What callgrind runs.
        ["once", queue, measurer, side, batches] => Some(once(queue, measurer, side, batches)),
        // What is run of each program.
        ["times", queue, measurer] => Some(print_times(queue, measurer)),
        programs => {
            let are_there = programs.iter().all(|name| Path::new(name).is_file());
            are_there.then(|| compare(programs))
        }
    })
}

fn case_of(queue: &str, measurer: &str) -> Result<Case, Failed> {
    let mut cases = CASES.into_iter();
    let found = cases.find(|case| (case.queue, case.measurer) == (queue, measurer));
    Ok(found.ok_or("no such case")?)
}

fn once(queue: &str, measurer: &str, side: &str, batches: &str) -> Result<bool, Failed> {
    let mut sides = [Side::ByHand, Side::Runner].into_iter();
    let side = sides.find(|known| known.name() == side);
    let side = side.ok_or("no such side")?;
    work(case_of(queue, measurer)?, side, batches.parse()?, 0);
    Ok(true)
}

fn print_times(queue: &str, measurer: &str) -> Result<bool, Failed> {
    let [by_hand, runner] = times(case_of(queue, measurer)?)?;
    println!("{by_hand} {runner}");
    Ok(true)
}

/// The medians of each program's processes. The programs take turns.
fn in_places(programs: &[PathBuf], case: Case) -> Result<Vec<[f64; 3]>, Failed> {
    let mut places = vec![Vec::new(); programs.len()];
    for _ in 0..PROCESSES {
        for (place, program) in places.iter_mut().zip(programs) {
            place.push(times_of(program, case)?);
        }
    }
    let medians = places.iter().map(|processes: &Vec<[f64; 3]>| {
        [0, 1, 2].map(|figure| {
            let figures: Vec<f64> = processes.iter().map(|of| of[figure]).collect();
            median_of(&figures).expect("there is a process")
        })
    });
    Ok(medians.collect())
}

fn times_of(program: &Path, case: Case) -> Result<[f64; 3], Failed> {
    let output = Command::new(program)
        .args(["times", case.queue, case.measurer])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let text = String::from_utf8(output.stdout)?;
    let numbers = text
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<Vec<f64>, _>>()?;
    match (output.status.success(), numbers.as_slice()) {
        (true, &[by_hand, runner]) => Ok([by_hand, runner, runner / by_hand]),
        _ => Err(format!("{} said {text:?}", program.display()).into()),
    }
}

fn compare(programs: &[&str]) -> Result<bool, Failed> {
    let mut programs: Vec<PathBuf> = programs.iter().map(PathBuf::from).collect();
    if programs.is_empty() {
        programs.push(std::env::current_exe()?);
    }
    let cpus = pinning::current_affinity()?;
    let cpu = cpus.iter().last().ok_or("no CPU")?;
    pinning::pin_current_thread(cpu)?;
    let mut table = Table::new(vec![
        Column::text("queue"),
        Column::text("measurer"),
        Column::number("instructions", "by hand"),
        Column::number("", "runner"),
        Column::number("ratio", ""),
        Column::number("time [ns]", "by hand"),
        Column::number("", "runner"),
        Column::number("ratio", ""),
        Column::text("in all places"),
        Column::number("above", ""),
        Column::text("verdict"),
    ]);
    let mut all_met = true;
    for case in CASES {
        let instructions = [Side::ByHand, Side::Runner].map(|side| instructions(case, side));
        let [by_hand, runner] = instructions;
        let (by_hand, runner) = (by_hand?, runner?);
        let ratio = runner / by_hand;
        let places = in_places(&programs, case)?;
        let fastest = |side: usize| {
            let all = places.iter().map(|place| place[side]);
            all.fold(f64::INFINITY, f64::min)
        };
        let times = [fastest(0), fastest(1)];
        let mut ratios: Vec<f64> = places.iter().map(|[.., ratio]| *ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = median_of(&ratios).expect("there is a place");
        let above = ratios
            .iter()
            .filter(|ratio| **ratio > TIME_LIMIT || ratio.is_nan())
            .count();
        let is_mostly_above = above as f64 > SHARE_ABOVE * ratios.len() as f64;
        let met = ratio <= INSTRUCTION_LIMIT && !is_mostly_above;
        let verdict = match (met, ratio * INSTRUCTION_LIMIT < 1.0) {
            (false, _) => "NOT MET",
            (true, false) => "met",
            (true, true) => "met, more by hand",
        };
        all_met &= met;
        table.row([
            case.queue.to_owned(),
            case.measurer.to_owned(),
            format!("{by_hand:.2}"),
            format!("{runner:.2}"),
            format!("{ratio:.3}"),
            format!("{:.2}", times[0]),
            format!("{:.2}", times[1]),
            format!("{middle:.3}"),
            format!("{:.2} to {:.2}", ratios[0], ratios[ratios.len() - 1]),
            format!("{above} of {}", ratios.len()),
            verdict.to_owned(),
        ]);
    }
    println!(
        "What the queue benchmark's runner costs for an enqueue and a dequeue of {} bytes, on CPU {cpu}\n\n{}\n\
         times: of each side in its fastest place, the median of {PROCESSES} processes; their ratio: the median of\n\
         {} places, and in how many it is above the limit; instructions: in the first place\n\
         {}: the runner takes at most {INSTRUCTION_LIMIT} times the instructions, and more than {TIME_LIMIT} times\n\
         the time in at most {:.0} % of the places",
        Payload::BYTES,
        table.render(None),
        programs.len(),
        if all_met { "met" } else { "NOT MET" },
        100.0 * SHARE_ABOVE
    );
    Ok(all_met)
}

/// Nanoseconds for an element, by hand and by the runner: the medians of rounds in which they take turns.
fn times(case: Case) -> Result<[f64; 2], Failed> {
    let batches = if case.measurer == "timed" {
        BATCHES_WITH_STAMPS
    } else {
        BATCHES_WITHOUT
    };
    let mut rounds = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        let mut order = [(0, Side::ByHand), (1, Side::Runner)];
        if round % 2 == 1 {
            order.reverse();
        }
        for (place, side) in order {
            let start = thread_time()?;
            work(case, side, batches, 37 * (round + 1));
            let elements = (batches * BATCH) as f64;
            rounds[place].push((thread_time()? - start).as_secs_f64() * 1e9 / elements);
        }
    }
    Ok(rounds.map(|times| median_of(&times).expect("there were rounds")))
}

fn instructions(case: Case, side: Side) -> Result<f64, Failed> {
    let count = |batches: usize| {
        let batches = batches.to_string();
        let (_, count) = callgrind(&["once", case.queue, case.measurer, side.name(), &batches])?;
        Ok::<f64, Failed>(count)
    };
    let (short, long) = (count(SHORT)?, count(LONG)?);
    let elements = ((LONG - SHORT) * BATCH) as f64;
    Ok((long - short) / elements)
}

/// The notes lie `shift` entries further on: where they lie to the queue's slots makes a difference of no interest.
fn work(case: Case, side: Side, batches: usize, shift: usize) {
    let taken = match (case.queue, case.measurer, side) {
        ("lamport", "numbered", Side::Runner) => by_runner::<Lamport, Without>(batches, shift),
        ("lamport", "timed", Side::Runner) => by_runner::<Lamport, With>(batches, shift),
        ("fastforward", "numbered", Side::Runner) => {
            by_runner::<FastForward, Without>(batches, shift)
        }
        ("fastforward", "timed", Side::Runner) => by_runner::<FastForward, With>(batches, shift),
        ("lamport", "numbered", Side::ByHand) => by_hand::lamport::numbered(batches, shift),
        ("lamport", "timed", Side::ByHand) => by_hand::lamport::timed(batches, shift),
        ("fastforward", "numbered", Side::ByHand) => {
            by_hand::fast_forward::numbered(batches, shift)
        }
        ("fastforward", "timed", Side::ByHand) => by_hand::fast_forward::timed(batches, shift),
        other => unreachable!("{other:?} is no case"),
    };
    assert_eq!(black_box(taken), BATCH, "elements of the last batch");
}

trait Measuring {
    type Notes: Clone;
    type Sender<'a>: Measurer + Default;
    type Receiver<'a>: Measurer + Default;
    const EMPTY: Self::Notes;
    fn sender(notes: &mut [Self::Notes]) -> Self::Sender<'_>;
    fn receiver(notes: &mut [Self::Notes]) -> Self::Receiver<'_>;
}

struct Without;

impl Measuring for Without {
    type Notes = u64;
    type Sender<'a> = Numbering;
    type Receiver<'a> = Numbers<'a>;
    const EMPTY: u64 = 0;

    fn sender(_notes: &mut [u64]) -> Numbering {
        Numbering::default()
    }

    fn receiver(notes: &mut [u64]) -> Numbers<'_> {
        Numbers::new(notes)
    }
}

struct With;

impl Measuring for With {
    type Notes = Record;
    type Sender<'a> = TimedMeasurer<'a>;
    type Receiver<'a> = TimedMeasurer<'a>;
    const EMPTY: Record = [Ticks(0); 3];

    fn sender(notes: &mut [Record]) -> TimedMeasurer<'_> {
        TimedMeasurer::new(notes, false)
    }

    fn receiver(notes: &mut [Record]) -> TimedMeasurer<'_> {
        TimedMeasurer::new(notes, false)
    }
}

fn by_runner<Q: Queue<Payload>, M: Measuring>(batches: usize, shift: usize) -> usize {
    let (sender, receiver) = Q::with_capacity(CAPACITY).expect("both come in this capacity");
    let (mut sent, mut received) = (vec![M::EMPTY; BATCH + shift], vec![M::EMPTY; BATCH + shift]);
    let (mut sender, mut receiver) = (Some(sender), Some(receiver));
    let control = QueueControl::default();
    let waiting = || {
        let patience = Patience::new(Duration::from_secs(1));
        Waiting::new(&control, patience, black_box(Retry::Pause))
    };
    let mut taken = 0;
    for _ in 0..batches {
        let mut measurer = M::sender(black_box(&mut sent[shift..]));
        let runner = Runner {
            queue: &mut sender,
            measurer: &mut measurer,
            waiter: &mut NoPause,
            clock: &Counter,
            waiting: &mut waiting(),
            counted: &mut LoopCounts::default(),
        };
        runner.send::<Payload>(black_box(BATCH));
        assert_eq!(measurer.noted(), BATCH);
        let mut measurer = M::receiver(black_box(&mut received[shift..]));
        let mut counted = LoopCounts::default();
        let runner = Runner {
            queue: &mut receiver,
            measurer: &mut measurer,
            waiter: &mut NoPause,
            clock: &Counter,
            waiting: &mut waiting(),
            counted: &mut counted,
        };
        runner.receive::<Payload>(black_box(BATCH));
        assert_eq!(counted.damaged, 0);
        taken = measurer.noted();
    }
    black_box((&sent, &received));
    taken
}
