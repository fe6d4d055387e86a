//! The queues against each other: throughput of two threads that do nothing else, and the median time that an element
//! stays in a queue that is hardly used.
//!
//! All queues take turns, and each figure is the median of the runs, so that what disturbs the machine disturbs all. Where
//! the linker puts a loop decides about as much as the queue does (which end waits for the other in a large queue, for one), so
//! `ci/compare-queues` builds this program several times, aligned in other ways: each queue counts with its fastest place, and
//! its slowest is shown beside.
//! Ends with exit code 1 when our own queue is not the best of them in every column, and says by how much, or when an idea
//! that was published as faster than Lamport's queue is not.

use std::hint::{black_box, spin_loop};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hcabench::cli::table::{Column, Table};
use hcabench::host::{pinning, priority};
use hcabench::queues::element::{Element, Words};
use hcabench::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use hcabench::queues::registry::{self, AllPayloads, QueueUser};
use hcabench::stats::{median_of, percentile_of_sorted};
use hcabench::time::{AnyClock, Clock, ClockKind, ClockUser, Nanos, Ticks};

const USAGE: &str = "\
Usage: cargo bench --bench queues -- [--capacity N,...] [--queue NAME,...] [--runs N]
    [--programs A,B,... | --figures | --check]
Compares the queues in throughput and latency, with elements of 8 bytes, in half a minute a program.
  --capacity N,...   elements each queue can hold [default: 64,1024,65536]
  --queue NAME,...   only these, and our own [default: all]
  --runs N           of which the median is taken [default: 9]
  --programs A,B,... this one built with other alignments, each of which measures; ci/compare-queues
                     does that
  --figures          print nothing but the figures, for a program that compares
  --check            only judge the options
Runs on the first and the last of the CPUs it may use; choose them with taskset. The exit code is 1
when our own queue is not the best, or an idea is slower than it promises, and 2 when an option is wrong.";

const OWN: &str = "baton";
const BASELINE: &str = "lamport";
/// What was published as faster than Lamport's under load.
const FASTER_THAN_BASELINE: [&str; 3] = ["b-queue", "fastforward", "mcringbuffer"];

/// How long a run for throughput should take.
const THROUGHPUT_TIME: Duration = Duration::from_millis(15);
const FEWEST: usize = 20_000;
const MOST: usize = 4_000_000;
/// How often a run goes round the queue, at least.
const LAPS: usize = 8;
/// Elements of a run for latency, and the time from one to the next.
const PACED: usize = 10_000;
const PACE: Nanos = Nanos(1_000);
/// The first of them are left out.
const WARMUP: usize = 1_000;
/// Real-time, for the length of a run: what a thread that was put off its CPU shows is not the queue.
const PRIORITY: i32 = 1;
/// Whether that was not permitted.
static WITHOUT_PRIORITY: AtomicBool = AtomicBool::new(false);
/// How a program that only prints its figures says so.
const NO_PRIORITY: &str = "without-priority";
/// For one run. A run that takes so long is not slow, it hangs.
const TIME_LIMIT: Duration = Duration::from_secs(10);

type Failed = Box<dyn std::error::Error>;
type Payload = Words<1>;

struct Options {
    capacities: Vec<usize>,
    names: Vec<&'static str>,
    runs: usize,
    programs: Vec<String>,
    figures: bool,
    check: bool,
}

impl Options {
    /// `None` when help is wanted.
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = Options {
            capacities: vec![64, 1024, 65536],
            names: registry::names().collect(),
            runs: 9,
            programs: Vec::new(),
            figures: false,
            check: false,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let missing = || format!("{argument} needs a value");
                arguments.next().ok_or_else(missing)
            };
            match argument.as_str() {
                "-h" | "--help" => return Ok(None),
                // Cargo passes it.
                "--bench" => {}
                "--capacity" => {
                    options.capacities = (value()?.split(','))
                        .map(|one| whole_number("--capacity", one, 1, 1 << 24))
                        .collect::<Result<_, _>>()?;
                }
                "--programs" => {
                    options.programs = value()?.split(',').map(str::to_owned).collect();
                }
                "--figures" => options.figures = true,
                "--check" => options.check = true,
                "--runs" => options.runs = whole_number("--runs", &value()?, 1, 1000)?,
                "--queue" => {
                    let value = value()?;
                    let wanted: Vec<&str> = value.split(',').collect();
                    for one in &wanted {
                        if !options.names.contains(one) {
                            return Err(format!(
                                "--queue: there is no '{one}', only {}",
                                options.names.join(", ")
                            ));
                        }
                    }
                    options
                        .names
                        .retain(|name| wanted.contains(name) || *name == OWN);
                }
                other => return Err(format!("unknown argument '{other}'")),
            }
        }
        if options.figures && !options.programs.is_empty() {
            return Err("--figures and --programs exclude each other".to_owned());
        }
        Ok(Some(options))
    }
}

fn whole_number(option: &str, value: &str, least: usize, most: usize) -> Result<usize, String> {
    (value.parse().ok())
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            format!(
                "{option}: '{value}' is not allowed, must be a whole number from {least} to {most}"
            )
        })
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("queues: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("queues: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether our own queue is the best everywhere.
fn run(options: &Options) -> Result<bool, Failed> {
    let start = Instant::now();
    let cpus: Vec<usize> = pinning::current_affinity()?.iter().collect();
    let (&first, &last) = (cpus.first().ok_or("no CPU")?, cpus.last().ok_or("no CPU")?);
    if first == last {
        return Err("two threads cannot be measured on one CPU: allow this process two".into());
    }
    let kind = match AnyClock::prepare(ClockKind::Tsc) {
        Ok(_) => ClockKind::Tsc,
        Err(_) => ClockKind::Monotonic,
    };
    let clock = AnyClock::prepare(kind)?;
    if options.check {
        return Ok(true);
    }
    if options.figures {
        for &capacity in &options.capacities {
            let setting = Setting {
                capacity,
                cpus: (first, last),
                clock,
            };
            for figures in measure(options, setting)? {
                println!("{}", figures.to_line());
            }
        }
        if WITHOUT_PRIORITY.load(Ordering::Relaxed) {
            println!("{NO_PRIORITY}");
        }
        return Ok(true);
    }
    println!(
        "Elements of 8 bytes from CPU {first} to CPU {last}; medians of {} runs; latency with clock {}, one element in {} ns\n",
        options.runs,
        kind.name(),
        PACE.0,
    );
    let mut met = true;
    for &capacity in &options.capacities {
        let setting = Setting {
            capacity,
            cpus: (first, last),
            clock,
        };
        let mut queues: Vec<Places> = Vec::new();
        if options.programs.is_empty() {
            queues.extend(measure(options, setting)?.into_iter().map(Places::new));
        }
        for program in &options.programs {
            for figures in measured_by(program, options, capacity)? {
                match queues.iter_mut().find(|known| known.name == figures.name) {
                    Some(known) => known.places.push(figures),
                    None => queues.push(Places::new(figures)),
                }
            }
        }
        met &= judge(capacity, &queues)?;
    }
    if !options.programs.is_empty() {
        println!(
            "each queue in the fastest of {} places of the code; slowest: in the slowest of them",
            options.programs.len()
        );
    }
    if WITHOUT_PRIORITY.load(Ordering::Relaxed) {
        println!(
            "without real-time priority, which takes root: on a busy machine these figures say little"
        );
    }
    println!("took {:.1} s", start.elapsed().as_secs_f64());
    Ok(met)
}

/// All queues that come in this capacity, in turns.
fn measure(options: &Options, setting: Setting) -> Result<Vec<Figures>, Failed> {
    let mut rows = Vec::new();
    for &name in &options.names {
        match Row::new(name, setting) {
            Ok(row) => rows.push(row),
            Err(NotMeasured::Queue(reason)) => eprintln!("left out: {reason}"),
            Err(NotMeasured::Failed(reason)) => return Err(reason),
        }
    }
    // What is allocated between the runs has the queues lie elsewhere in each of them: the way to a cache line depends
    // on its address by as much as queues differ.
    let mut in_the_way = Vec::new();
    for _ in 0..options.runs {
        for row in &mut rows {
            in_the_way.push(vec![1_u8; 520]);
            in_the_way.push(vec![1_u8; 8 * setting.capacity.min(8192) + 8]);
            row.measure()?;
        }
    }
    black_box(in_the_way);
    Ok(rows.iter().map(Row::figures).collect())
}

/// What that program measures.
fn measured_by(program: &str, options: &Options, capacity: usize) -> Result<Vec<Figures>, Failed> {
    let output = Command::new(program)
        .args(["--figures", "--queue", &options.names.join(",")])
        .args(["--capacity", &capacity.to_string()])
        .args(["--runs", &options.runs.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} failed").into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut measured = Vec::new();
    for line in text.lines() {
        if line == NO_PRIORITY {
            WITHOUT_PRIORITY.store(true, Ordering::Relaxed);
        } else {
            measured.push(Figures::of_line(line)?);
        }
    }
    Ok(measured)
}

/// Medians and quartiles of the runs of a queue.
#[derive(Debug, Clone, Copy)]
struct Figures {
    name: &'static str,
    /// Millions of elements in a second: the median, and the quartiles.
    rate: [f64; 3],
    /// Medians in nanoseconds: their median, and the quartiles.
    latency: [f64; 3],
}

impl Figures {
    fn to_line(self) -> String {
        let [rate, rate_low, rate_high] = self.rate;
        let [latency, latency_low, latency_high] = self.latency;
        format!(
            "{} {rate} {rate_low} {rate_high} {latency} {latency_low} {latency_high}",
            self.name
        )
    }

    fn of_line(line: &str) -> Result<Self, Failed> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let known = registry::names().find(|known| *known == name);
        let numbers = words.map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        match (known, numbers.as_slice()) {
            (Some(name), &[a, b, c, d, e, f]) => Ok(Figures {
                name,
                rate: [a, b, c],
                latency: [d, e, f],
            }),
            _ => Err(format!("no figures: '{line}'").into()),
        }
    }
}

/// A queue in each place of the code.
struct Places {
    name: &'static str,
    ends: Ends,
    places: Vec<Figures>,
}

impl Places {
    fn new(figures: Figures) -> Self {
        let entry = registry::entries()
            .iter()
            .find(|entry| entry.name == figures.name);
        Places {
            name: figures.name,
            ends: entry.expect("names are those of entries").ends,
            places: vec![figures],
        }
    }

    fn in_order(&self, figure: impl Fn(&Figures) -> [f64; 3]) -> Vec<[f64; 3]> {
        let mut all: Vec<[f64; 3]> = self.places.iter().map(figure).collect();
        all.sort_by(|a, b| a[0].total_cmp(&b[0]));
        all
    }

    /// From the lowest to the highest.
    fn rates(&self) -> Vec<[f64; 3]> {
        self.in_order(|figures| figures.rate)
    }

    /// From the lowest to the highest.
    fn latencies(&self) -> Vec<[f64; 3]> {
        self.in_order(|figures| figures.latency)
    }

    fn highest_rate(&self) -> f64 {
        self.rates()[self.places.len() - 1][0]
    }

    fn lowest_latency(&self) -> f64 {
        self.latencies()[0][0]
    }
}

enum NotMeasured {
    Queue(QueueError),
    Failed(Failed),
}

#[derive(Clone, Copy)]
struct Setting {
    capacity: usize,
    cpus: (usize, usize),
    clock: AnyClock,
}

struct Row {
    name: &'static str,
    setting: Setting,
    /// Elements of a run for throughput.
    count: usize,
    /// Millions of elements in a second, run by run.
    rates: Vec<f64>,
    /// Medians in nanoseconds, run by run.
    latencies: Vec<f64>,
}

impl Row {
    /// A queue, and how many elements it needs to be measured.
    fn new(name: &'static str, setting: Setting) -> Result<Self, NotMeasured> {
        let mut row = Row {
            name,
            setting,
            count: FEWEST,
            rates: Vec::new(),
            latencies: Vec::new(),
        };
        for _ in 0..3 {
            let rate = row.visit(Throughput(row.count, setting))?;
            let count = rate * 1e6 * THROUGHPUT_TIME.as_secs_f64();
            // A queue that is not gone round several times is only memory that is written once.
            row.count = (count as usize).clamp(
                FEWEST.max(LAPS * setting.capacity),
                MOST.max(LAPS * setting.capacity),
            );
        }
        Ok(row)
    }

    fn visit<O>(
        &self,
        user: impl QueueUser<Output = Result<O, NotMeasured>>,
    ) -> Result<O, NotMeasured> {
        registry::visit(self.name, user).expect("names are those of the registry")
    }

    fn measure(&mut self) -> Result<(), Failed> {
        let measured = self
            .visit(Throughput(self.count, self.setting))
            .and_then(|rate| Ok((rate, self.visit(Latency(self.setting))?)));
        let (rate, latency) = measured.map_err(|error| match error {
            NotMeasured::Queue(error) => Failed::from(error),
            NotMeasured::Failed(error) => format!("{}: {error}", self.name).into(),
        })?;
        self.rates.push(rate);
        self.latencies.push(latency);
        Ok(())
    }

    fn figures(&self) -> Figures {
        let spread = |values: &[f64]| [50.0, 25.0, 75.0].map(|percent| quantile(values, percent));
        Figures {
            name: self.name,
            rate: spread(&self.rates),
            latency: spread(&self.latencies),
        }
    }
}

fn quantile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // In tenths, which is more than is shown.
    let tenths: Vec<i64> = sorted
        .iter()
        .map(|value| (value * 10.0).round() as i64)
        .collect();
    percentile_of_sorted(&tenths, percent).unwrap_or(f64::NAN) / 10.0
}

/// Prints the table of a capacity and the verdicts; whether our own queue is the best.
fn judge(capacity: usize, rows: &[Places]) -> Result<bool, Failed> {
    let own = (rows.iter().find(|row| row.name == OWN))
        .ok_or("our own queue does not come in this capacity")?;
    let others = || rows.iter().filter(|row| row.name != OWN);
    let mut table = Table::new(vec![
        Column::text("queue"),
        Column::text("ends"),
        Column::number("throughput", "million/s"),
        Column::number("p25", ""),
        Column::number("p75", ""),
        Column::number("slowest", ""),
        Column::number("own", "times"),
        Column::number("latency", "p50 ns"),
        Column::number("p25", "of runs"),
        Column::number("p75", "of runs"),
        Column::number("slowest", ""),
        Column::number("own", "times"),
    ]);
    for row in rows {
        let (rates, latencies) = (row.rates(), row.latencies());
        let (rate, latency) = (rates[rates.len() - 1], latencies[0]);
        table.row([
            row.name.to_owned(),
            format!("{:?}", row.ends).to_lowercase(),
            format!("{:.1}", rate[0]),
            format!("{:.1}", rate[1]),
            format!("{:.1}", rate[2]),
            format!("{:.1}", rates[0][0]),
            format!("{:.2}", own.highest_rate() / rate[0]),
            format!("{:.0}", latency[0]),
            format!("{:.0}", latency[1]),
            format!("{:.0}", latency[2]),
            format!("{:.0}", latencies[latencies.len() - 1][0]),
            format!("{:.2}", own.lowest_latency() / latency[0]),
        ]);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "capacity {capacity}")?;
    write!(out, "{}", table.render(None))?;
    let fastest = others().max_by(|a, b| a.highest_rate().total_cmp(&b.highest_rate()));
    let quickest = others().min_by(|a, b| a.lowest_latency().total_cmp(&b.lowest_latency()));
    let (Some(fastest), Some(quickest)) = (fastest, quickest) else {
        return Err("there is no other queue to compare with".into());
    };
    let throughput = own.highest_rate() / fastest.highest_rate();
    let latency = own.lowest_latency() / quickest.lowest_latency();
    let word = |met| if met { "met" } else { "NOT MET" };
    // Of each place, so that nothing is chosen.
    let in_places = |ratio: &dyn Fn(usize) -> f64| {
        let mut ratios: Vec<f64> = (0..own.places.len()).map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = median_of(&ratios).unwrap_or(f64::NAN);
        let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
        format!("place by place {low:.3} to {high:.3}, median {middle:.3}")
    };
    let rate_in = |place: usize| {
        let best = others()
            .filter_map(|row| row.places.get(place))
            .map(|figures| figures.rate[0]);
        own.places[place].rate[0] / best.fold(f64::NAN, f64::max)
    };
    let latency_in = |place: usize| {
        let best = others()
            .filter_map(|row| row.places.get(place))
            .map(|figures| figures.latency[0]);
        own.places[place].latency[0] / best.fold(f64::NAN, f64::min)
    };
    writeln!(
        out,
        "{}: {OWN} has {throughput:.3} times the throughput of the fastest other, {}; at least 1 is required ({})",
        word(throughput >= 1.0),
        fastest.name,
        in_places(&rate_in),
    )?;
    writeln!(
        out,
        "{}: {OWN} has {latency:.3} times the median latency of the quickest other, {}; at most 1 is required ({})",
        word(latency <= 1.0),
        quickest.name,
        in_places(&latency_in),
    )?;
    let mut promises_kept = true;
    if let Some(baseline) = rows.iter().find(|row| row.name == BASELINE) {
        for row in rows
            .iter()
            .filter(|row| FASTER_THAN_BASELINE.contains(&row.name))
        {
            let ratio = row.highest_rate() / baseline.highest_rate();
            promises_kept &= ratio >= 1.0;
            writeln!(
                out,
                "{}: {} has {ratio:.2} times the throughput of {BASELINE}",
                if ratio >= 1.0 {
                    "as promised"
                } else {
                    "SLOWER THAN PROMISED"
                },
                row.name,
            )?;
        }
    }
    writeln!(out)?;
    Ok(throughput >= 1.0 && latency <= 1.0 && promises_kept)
}

/// Gives up when something takes longer than a run can.
struct Patience {
    spins: u32,
    since: Instant,
}

impl Patience {
    fn new() -> Self {
        Patience {
            spins: 0,
            since: Instant::now(),
        }
    }

    /// Whether to go on.
    #[inline(always)]
    fn lasts(&mut self) -> bool {
        self.spins = self.spins.wrapping_add(1);
        !self.spins.is_multiple_of(1 << 20) || Self::in_time(self.since)
    }

    /// Out of the way: what is done here would take the registers of the loop.
    #[cold]
    #[inline(never)]
    fn in_time(since: Instant) -> bool {
        since.elapsed() < TIME_LIMIT
    }
}

/// Two pinned threads that begin at the same time.
fn two_threads<A: Send, B: Send>(
    cpus: (usize, usize),
    sending: impl FnOnce() -> Option<A> + Send,
    receiving: impl FnOnce() -> Option<B> + Send,
) -> Result<(A, B), Failed> {
    let ready = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let begin = |cpu| {
        if pinning::pin_current_thread(cpu).is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        // A thread that spins with priority must not stand in the way of the other: first both reach their CPUs.
        let since = Instant::now();
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < 2 && since.elapsed() < TIME_LIMIT {
            std::thread::yield_now();
        }
        if priority::set_fifo(PRIORITY).is_err() {
            WITHOUT_PRIORITY.store(true, Ordering::Relaxed);
        }
        ready.fetch_add(1, Ordering::AcqRel);
        let mut patience = Patience::new();
        while ready.load(Ordering::Acquire) < 4 && patience.lasts() {
            spin_loop();
        }
        !failed.load(Ordering::Relaxed) && ready.load(Ordering::Acquire) == 4
    };
    let both = std::thread::scope(|scope| {
        let sender = scope.spawn(|| begin(cpus.0).then(sending).flatten());
        let receiver = scope.spawn(|| begin(cpus.1).then(receiving).flatten());
        sender
            .join()
            .ok()
            .flatten()
            .zip(receiver.join().ok().flatten())
    });
    both.ok_or_else(|| {
        format!(
            "could not be pinned, lost or reordered elements, or took longer than {} s",
            TIME_LIMIT.as_secs()
        )
        .into()
    })
}

/// Alone on its cache lines. The two ends are made one after the other; if they came to lie on one line, each step of one
/// thread would take it from the other, whatever the queue.
#[repr(align(128))]
struct Apart<E>(E);

/// Sends as many elements as it can; millions in a second.
struct Throughput(usize, Setting);

impl QueueUser for Throughput {
    type Output = Result<f64, NotMeasured>;

    fn with<Q: AllPayloads>(self) -> Self::Output {
        let Throughput(count, setting) = self;
        let (sender, receiver) =
            <Q as Queue<Payload>>::with_capacity(setting.capacity).map_err(NotMeasured::Queue)?;
        let (sender, receiver) = (Apart(sender), Apart(receiver));
        let (start, end) = two_threads(
            setting.cpus,
            || send_all(sender, count),
            || receive_all(receiver, count),
        )
        .map_err(NotMeasured::Failed)?;
        Ok(count as f64 / (end - start).as_secs_f64() / 1e6)
    }
}

/// An end that its loop can keep in registers, as the runner of `hcabench queue` does: one that had to be dropped when
/// something panics, or whose drop is called by its address, would stay in memory as long as the loop runs. When a loop
/// gives up, it is not dropped at all; the program ends then.
#[inline(always)]
fn in_registers<E>(end: Apart<E>) -> ManuallyDrop<E> {
    ManuallyDrop::new(end.0)
}

#[inline(never)]
fn dispose<E>(end: ManuallyDrop<E>) {
    drop(ManuallyDrop::into_inner(end));
}

#[inline(never)]
fn send_all<S: Sender<Payload>>(sender: Apart<S>, count: usize) -> Option<Instant> {
    let mut sender = in_registers(sender);
    let mut patience = Patience::new();
    let start = Instant::now();
    for number in 1..=count as u64 {
        let element = Payload::with_stamp(NonZeroU64::new(number)?);
        while !sender.enqueue(element) {
            if !patience.lasts() {
                return None;
            }
        }
    }
    sender.flush();
    dispose(sender);
    Some(start)
}

#[inline(never)]
fn receive_all<R: Receiver<Payload>>(receiver: Apart<R>, count: usize) -> Option<Instant> {
    let mut receiver = in_registers(receiver);
    let mut patience = Patience::new();
    let mut differences = 0;
    for number in 1..=count as u64 {
        let element = loop {
            if let Some(element) = receiver.dequeue() {
                break element;
            }
            if !patience.lasts() {
                return None;
            }
        };
        differences |= element.stamp() ^ number;
    }
    let end = Instant::now();
    dispose(receiver);
    (differences == 0).then_some(end)
}

/// Sends an element now and then; the median time it takes, in nanoseconds.
struct Latency(Setting);

impl QueueUser for Latency {
    type Output = Result<f64, NotMeasured>;

    fn with<Q: AllPayloads>(self) -> Self::Output {
        struct WithClock<Q>(Setting, std::marker::PhantomData<Q>);
        impl<Q: AllPayloads> ClockUser for WithClock<Q> {
            type Output = Result<f64, NotMeasured>;
            fn with<C: Clock>(self, clock: C) -> Self::Output {
                let (sender, receiver) = <Q as Queue<Payload>>::with_capacity(self.0.capacity)
                    .map_err(NotMeasured::Queue)?;
                let (sender, receiver) = (Apart(sender), Apart(receiver));
                let (_, mut latencies) = two_threads(
                    self.0.cpus,
                    || send_paced(sender, clock),
                    || receive_paced(receiver, clock),
                )
                .map_err(NotMeasured::Failed)?;
                latencies.sort_unstable();
                percentile_of_sorted(&latencies, 50.0)
                    .ok_or_else(|| NotMeasured::Failed("no element arrived".into()))
            }
        }
        let clock = self.0.clock;
        clock.visit(WithClock::<Q>(self.0, std::marker::PhantomData))
    }
}

#[inline(never)]
fn send_paced<C: Clock>(sender: Apart<impl Sender<Payload>>, clock: C) -> Option<()> {
    let mut sender = in_registers(sender);
    let mut patience = Patience::new();
    let pace = clock.ticks_in(PACE).0;
    let mut next = clock.now().0;
    for _ in 0..PACED {
        loop {
            let now = clock.now().0;
            if now >= next {
                // From here: whoever was kept from his CPU does not catch up.
                next = now + pace;
                break;
            }
        }
        let mut element = Payload::with_stamp(NonZeroU64::new(clock.now().0)?);
        while !sender.enqueue(element) {
            if !patience.lasts() {
                return None;
            }
            element = Payload::with_stamp(NonZeroU64::new(clock.now().0)?);
        }
        sender.flush();
    }
    dispose(sender);
    Some(())
}

#[inline(never)]
fn receive_paced<C: Clock>(receiver: Apart<impl Receiver<Payload>>, clock: C) -> Option<Vec<i64>> {
    let mut receiver = in_registers(receiver);
    let mut patience = Patience::new();
    let mut latencies = vec![0; PACED];
    black_box(&mut latencies);
    for latency in &mut latencies {
        let element = loop {
            if let Some(element) = receiver.dequeue() {
                break element;
            }
            if !patience.lasts() {
                return None;
            }
        };
        let arrived = clock.now();
        *latency =
            clock.to_nanos(arrived).0 as i64 - clock.to_nanos(Ticks(element.stamp())).0 as i64;
    }
    dispose(receiver);
    Some(latencies.split_off(WARMUP))
}
