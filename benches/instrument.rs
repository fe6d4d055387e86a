//! What the instrument itself costs, as ratios to the plainest code that does the same, measured in the same run.
//!
//! | requirement | against |
//! | --- | --- |
//! | a stamp taken and stored, by the sending and by the receiving loop | the bare reading of the same clock |
//! | the floor: the loops over shared memory | a cache line handed from one thread to another, spelled out |
//!
//! Both sides of a ratio take turns, so that what disturbs the machine disturbs both; each figure is the median of the
//! rounds. Ends with exit code 1 when a requirement is not met or cannot be measured.

#![expect(clippy::disallowed_methods, reason = "a test may panic")]

use std::hint::black_box;
use std::io::Write;
use std::mem::MaybeUninit;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hcabench::bench::hca::loops::floor::measure_floor;
use hcabench::buffer::{Arrival, HugePagePolicy, StampBuffer};
use hcabench::host::pinning;
use hcabench::stats::percentile_of_sorted;
use hcabench::terminal::table::{Column, Table};
use hcabench::time::{AnyClock, Clock, ClockKind, ClockUser, Nanos, Ticks};
use shared::{Counter, Failed};

mod shared;

const USAGE: &str = "\
Usage: cargo bench --bench instrument
Measures what the instrument costs, in half a minute at the most. Exit code 1 when a requirement is not met.
Runs on the first and the last of the CPUs it may use; choose them with taskset.";

/// At most so many times the bare reading of the clock.
const STAMP_LIMIT: f64 = 1.25;
/// At most so many times the bare handoff of a cache line.
const FLOOR_LIMIT: f64 = 1.5;

const STAMPS: usize = 8192;
const STAMP_ROUNDS: usize = 301;
const HANDOFFS: usize = 2000;
const HANDOFF_WARMUP: usize = 200;
const HANDOFF_ROUNDS: usize = 61;
const FEWEST_ROUNDS: usize = 15;
/// For the rounds of one requirement and clock.
const TIME_LIMIT: Duration = Duration::from_secs(8);
/// Between two messages, as the floor has it.
const PAUSE: Nanos = Nanos(5_000);

fn main() -> ExitCode {
    shared::main("instrument", USAGE, |words| words.is_empty().then(run))
}

fn run() -> Result<bool, Failed> {
    let start = Instant::now();
    let cpus: Vec<usize> = pinning::current_affinity()?.iter().collect();
    let (&first, &last) = (cpus.first().ok_or("no CPU")?, cpus.last().ok_or("no CPU")?);
    if first == last {
        return Err(
            "a handoff between two CPUs cannot be measured on one: allow this process two".into(),
        );
    }
    println!(
        "What the instrument costs, on CPU {first} (stamps, sender) and CPU {last} (receiver), {}\n",
        take_precedence()
    );
    let mut findings = Vec::new();
    let mut left_out = Vec::new();
    for kind in [
        ClockKind::Monotonic,
        ClockKind::MonotonicRaw,
        ClockKind::Counter,
    ] {
        match AnyClock::prepare(kind) {
            Ok(clock) => findings.extend(clock.visit(Requirements {
                kind,
                cpus: (first, last),
            })?),
            Err(reason) => left_out.push(format!("{}: {reason}", kind.name())),
        }
    }
    findings.sort_by_key(|finding| finding.requirement);
    let mut out = std::io::stdout().lock();
    write!(out, "{}", table(&findings).render(None))?;
    writeln!(out)?;
    for clock in &left_out {
        writeln!(
            out,
            "not measured, because no run can use it here: clock {clock}"
        )?;
    }
    let mut all_met = true;
    for requirement in Requirement::ALL {
        let of_it = || {
            findings
                .iter()
                .filter(|finding| finding.requirement == requirement)
        };
        let worst = of_it().map(Finding::ratio).fold(0.0, f64::max);
        let met = of_it().next().is_some() && of_it().all(Finding::is_met);
        all_met &= met;
        writeln!(
            out,
            "{}: {}: {worst:.2} times at the most, {} allowed",
            if met { "met" } else { "NOT MET" },
            requirement.name(),
            requirement.limit(),
        )?;
    }
    writeln!(out, "took {:.1} s", start.elapsed().as_secs_f64())?;
    Ok(all_met)
}

/// No real-time priority: with it, a spinning thread would keep one that has yet to leave its CPU there for ever.
fn take_precedence() -> &'static str {
    // SAFETY: takes and returns integers. Threads that are started later inherit it.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } {
        0 => "nice -20",
        _ => "nice 0 (-20 is not permitted)",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Requirement {
    SenderStamp,
    ReceiverStamp,
    Floor,
}

impl Requirement {
    const ALL: [Requirement; 3] = [
        Requirement::SenderStamp,
        Requirement::ReceiverStamp,
        Requirement::Floor,
    ];

    fn name(self) -> &'static str {
        match self {
            Requirement::SenderStamp => "a stamp taken and stored as the sender does",
            Requirement::ReceiverStamp => "a stamp taken and stored as the receiver does",
            Requirement::Floor => "the floor over shared memory",
        }
    }

    fn limit(self) -> f64 {
        match self {
            Requirement::SenderStamp | Requirement::ReceiverStamp => STAMP_LIMIT,
            Requirement::Floor => FLOOR_LIMIT,
        }
    }
}

/// Both sides of a ratio, in nanoseconds, round by round.
struct Finding {
    requirement: Requirement,
    clock: ClockKind,
    bare: Vec<f64>,
    ours: Vec<f64>,
    /// Rounds that were left out because of the bare side, and because of ours; some because of both.
    disturbed: (usize, usize),
}

impl Finding {
    /// In turns, each first in every other round; a round in which one side was `None` is repeated while there is time.
    fn alternate(
        requirement: Requirement,
        clock: ClockKind,
        rounds: usize,
        mut bare: impl FnMut() -> Result<Option<f64>, Failed>,
        mut ours: impl FnMut() -> Result<Option<f64>, Failed>,
    ) -> Result<Self, Failed> {
        let mut finding = Finding {
            requirement,
            clock,
            bare: Vec::with_capacity(rounds),
            ours: Vec::with_capacity(rounds),
            disturbed: (0, 0),
        };
        let mut left_out = 0_usize;
        let start = Instant::now();
        while finding.bare.len() < rounds && start.elapsed() < TIME_LIMIT {
            let (bare, ours) = if (finding.bare.len() + left_out).is_multiple_of(2) {
                (bare()?, ours()?)
            } else {
                let ours = ours()?;
                (bare()?, ours)
            };
            match (bare, ours) {
                (Some(bare), Some(ours)) => {
                    finding.bare.push(bare);
                    finding.ours.push(ours);
                }
                (bare, ours) => {
                    finding.disturbed.0 += usize::from(bare.is_none());
                    finding.disturbed.1 += usize::from(ours.is_none());
                    left_out += 1;
                }
            }
        }
        if finding.bare.len() < FEWEST_ROUNDS {
            return Err(format!(
                "{} with clock {} cannot be measured: the machine is so busy that {} of {} rounds were disturbed",
                requirement.name(),
                clock.name(),
                left_out,
                left_out + finding.bare.len(),
            )
            .into());
        }
        Ok(finding)
    }

    fn ratio(&self) -> f64 {
        quantile(&self.ours, 50) / quantile(&self.bare, 50)
    }

    fn is_met(&self) -> bool {
        self.ratio() <= self.requirement.limit()
    }

    fn ratio_of_rounds(&self, percent: usize) -> f64 {
        let ratios: Vec<f64> = self
            .ours
            .iter()
            .zip(&self.bare)
            .map(|(ours, bare)| ours / bare)
            .collect();
        quantile(&ratios, percent)
    }
}

fn quantile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) * percent / 100]
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new(vec![
        Column::text("requirement"),
        Column::text("clock"),
        Column::number("bare", "ns"),
        Column::number("ours", "ns"),
        Column::number("ratio", ""),
        Column::number("allowed", ""),
        Column::number("p25", "of rounds"),
        Column::number("p75", "of rounds"),
        Column::number("rounds", ""),
        Column::number("left out", "for bare"),
        Column::number("left out", "for ours"),
        Column::text("verdict"),
    ]);
    let mut before = None;
    for finding in findings {
        if before.is_some_and(|before| before != finding.requirement) {
            table.separator();
        }
        before = Some(finding.requirement);
        table.row([
            finding.requirement.name().to_owned(),
            finding.clock.name().to_owned(),
            format!("{:.2}", quantile(&finding.bare, 50)),
            format!("{:.2}", quantile(&finding.ours, 50)),
            format!("{:.3}", finding.ratio()),
            format!("{:.2}", finding.requirement.limit()),
            format!("{:.3}", finding.ratio_of_rounds(25)),
            format!("{:.3}", finding.ratio_of_rounds(75)),
            finding.bare.len().to_string(),
            finding.disturbed.0.to_string(),
            finding.disturbed.1.to_string(),
            if finding.is_met() { "met" } else { "NOT MET" }.to_owned(),
        ]);
    }
    table
}

struct Requirements {
    kind: ClockKind,
    cpus: (usize, usize),
}

impl ClockUser for Requirements {
    type Output = Result<Vec<Finding>, Failed>;

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        let (kind, (sender, receiver)) = (self.kind, self.cpus);
        let everywhere = pinning::current_affinity()?;
        pinning::pin_current_thread(sender)?;
        let mut stamps = StampBuffer::<Ticks>::new(STAMPS, HugePagePolicy::Try)?;
        let mut arrivals = StampBuffer::<Arrival>::new(STAMPS, HugePagePolicy::Try)?;
        let bare = || Ok(Some(per_stamp(|| bare_readings(kind))));
        let mut findings = vec![
            Finding::alternate(Requirement::SenderStamp, kind, STAMP_ROUNDS, bare, || {
                Ok(Some(per_stamp(|| stamps_of_sender(&clock, &mut stamps))))
            })?,
            Finding::alternate(Requirement::ReceiverStamp, kind, STAMP_ROUNDS, bare, || {
                Ok(Some(per_stamp(|| {
                    stamps_of_receiver(&clock, &mut arrivals)
                })))
            })?,
        ];
        pinning::pin_current_thread_to(&everywhere)?;
        let lines = Line::scattered(HANDOFF_ROUNDS);
        let mut lines = lines.iter().step_by(Line::PER_PAGE).cycle();
        findings.push(Finding::alternate(
            Requirement::Floor,
            kind,
            HANDOFF_ROUNDS,
            || {
                bare_handoff(
                    &clock,
                    sender,
                    receiver,
                    lines.next().expect("there are some"),
                )
            },
            || Ok(undisturbed(measure_floor(&clock, sender, receiver)?.p50_ns)),
        )?);
        Ok(findings)
    }
}

fn undisturbed(median: f64) -> Option<f64> {
    (median < PAUSE.0 as f64).then_some(median)
}

fn per_stamp(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e9 / STAMPS as f64
}

fn bare_readings(kind: ClockKind) {
    match kind {
        ClockKind::Monotonic => bare_posix::<{ libc::CLOCK_MONOTONIC }>(),
        ClockKind::MonotonicRaw => bare_posix::<{ libc::CLOCK_MONOTONIC_RAW }>(),
        ClockKind::Counter => bare_counter(),
    }
}

#[inline(never)]
fn bare_posix<const ID: libc::clockid_t>() {
    for _ in 0..STAMPS {
        let mut reading = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the pointer is to writable memory of the right type.
        unsafe { libc::clock_gettime(ID, reading.as_mut_ptr()) };
        black_box(&reading);
    }
}

#[inline(never)]
fn bare_counter() {
    for _ in 0..STAMPS {
        black_box(Counter.now());
    }
}

#[inline(never)]
fn stamps_of_sender<C: Clock>(clock: &C, stamps: &mut StampBuffer<Ticks>) {
    for slot in &mut stamps[..] {
        let stamp = clock.now();
        *slot = stamp;
    }
    black_box(&mut stamps[..]);
}

#[inline(never)]
fn stamps_of_receiver<C: Clock>(clock: &C, arrivals: &mut StampBuffer<Arrival>) {
    let arrivals = &mut arrivals[..];
    let mut received = 0;
    while received < arrivals.len() {
        let stamp = clock.now();
        arrivals[received] = Arrival {
            stamp,
            label: received as u32,
            slot: received as u32,
            bytes: 8,
        };
        received += 1;
    }
    black_box(arrivals);
}

/// A cache line of its own (two, as processors fetch them in pairs).
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

impl Line {
    /// Lines from one to the next on another page, and not at the same place of it.
    const PER_PAGE: usize = 4096 / 128 + 1;

    /// Each [`Line::PER_PAGE`]-th on a page of its own: where its address is kept decides how far a line is away.
    fn scattered(pages: usize) -> Vec<Line> {
        (0..pages * Self::PER_PAGE)
            .map(|_| Line::default())
            .collect()
    }
}

/// A thread writes the time to a cache line, another sees it change and reads the clock. Median in nanoseconds.
fn bare_handoff<C: Clock>(
    clock: &C,
    sender: usize,
    receiver: usize,
    line: &Line,
) -> Result<Option<f64>, Failed> {
    const END: u64 = u64::MAX;
    line.0.store(0, Ordering::Relaxed);
    let ready = AtomicBool::new(false);
    let pause = clock.ticks_in(PAUSE);
    let latencies = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let placed = pinning::pin_current_thread(receiver);
            let mut latencies = vec![(0, 0); HANDOFFS];
            let mut seen = 0;
            let mut count = 0;
            ready.store(true, Ordering::Release);
            loop {
                let sent = line.0.load(Ordering::Acquire);
                if sent == seen {
                    continue;
                }
                let now = clock.now();
                if sent == END || count == HANDOFFS {
                    break;
                }
                latencies[count] = (sent, now.0);
                count += 1;
                seen = sent;
            }
            latencies.truncate(count);
            placed.map(|()| latencies)
        });
        let sending = scope.spawn(|| {
            let placed = pinning::pin_current_thread(sender);
            while !ready.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            for _ in 0..HANDOFFS {
                line.0.store(clock.now().0, Ordering::Release);
                let start = clock.now();
                while clock.now().0 - start.0 < pause.0 {}
            }
            line.0.store(END, Ordering::Release);
            placed
        });
        sending.join().expect("the sender does not panic")?;
        receiving.join().expect("the receiver does not panic")
    })?;
    let mut latencies: Vec<i64> = latencies
        .iter()
        .skip(HANDOFF_WARMUP)
        .map(|&(sent, seen)| {
            clock.to_nanos(Ticks(seen)).0 as i64 - clock.to_nanos(Ticks(sent)).0 as i64
        })
        .collect();
    latencies.sort_unstable();
    // A message that is overwritten before it was seen is missing: half of them may be.
    let enough = latencies.len() >= (HANDOFFS - HANDOFF_WARMUP) / 2;
    let median = percentile_of_sorted(&latencies, 50.0);
    Ok(median.filter(|_| enough).and_then(undisturbed))
}
