//! `hcabench queue`: the queue benchmark.

mod list;
mod present;
mod values;

pub(super) use self::present::VIEW;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use self::values::StampClock;
use super::cores::fastest_pair;
use crate::arguments::UsageError;
use crate::arguments::values::{List, count, cpu, memory_loads, named, number, one, seed, timeout};
use crate::bench::Assignment;
use crate::bench::queue::config::{Config, MOST_ELEMENTS, MOST_PER_STAMP, Measure, RoundLength};
use crate::bench::queue::cpus::CpuChoice;
use crate::bench::queue::plan::Sweep;
use crate::bench::queue::retry::Retry;
use crate::bench::queue::sharing::MOST_THREADS;
use crate::buffer::HugePagePolicy;
use crate::cli::intervals::IntervalArguments;
use crate::driver;
use crate::driver::Request;
use crate::driver::arguments::{FindRateArguments, RoundSize, SweepArguments};
use crate::generators::MemoryLoad;
use crate::host::readiness::Needs;
use crate::node::wiring::{Scenario, Wiring};
use crate::pacing::{EndLoad, Load};
use crate::results::Record;
use crate::results::schema::queue as columns;
use crate::terminal::output::OutputArguments;
use crate::time::{ClockKind, UnfencedCounter};

/// What an end does between two operations, as it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadKind {
    /// No wait
    #[value(alias = "max")]
    None,
    /// The same time from the end of one operation to the start of the next
    ConstantWait,
    /// The same time from start to start; nothing is left out after a stall
    ConstantRate,
    /// Groups without a wait, and all waits of a group after it
    Bursty,
}

/// Arguments of `hcabench queue`. LIST: one value, or several with commas between them.
#[derive(Debug, Clone, Args)]
pub(crate) struct QueueArguments {
    /// List the queues and measure nothing
    #[arg(long)]
    pub list: bool,

    /// Measure these queues: all (without those that baton can be), or names (see --list)
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = values::queues)]
    pub queue: List<String>,

    /// Use elements of these sizes in bytes: 8, 64, 256
    #[arg(long, value_name = "LIST", default_value = "8", value_parser = values::payloads)]
    pub payload: List<usize>,

    /// Use queues of these capacities in elements; a queue that is not available in one is left out with the reason
    #[arg(long, value_name = "LIST", default_value = "1024", value_parser = values::capacities)]
    pub capacity: List<usize>,

    /// Pace the sender's enqueues [default: none; with --find-rate constant-rate]
    #[arg(long, value_name = "LOAD")]
    pub load: Option<LoadKind>,

    /// Enqueue this many elements a second with --load constant-rate, as in 250k or 1M [default: 1M; with --find-rate
    /// 100k,100M]
    #[arg(long, value_name = "LIST", value_parser = values::rates)]
    pub rate: Option<List<f64>>,

    /// Whether the highest rate is searched.
    #[command(flatten)]
    pub search: FindRateArguments,

    /// Offer rates from 1 % to 100 % of the saturation of the queue, which is measured first
    #[arg(long, conflicts_with_all = ["load", "rate", "wait", "group"])]
    pub load_curve: bool,

    /// Measure by: time (the clock around each operation), round-trip (an element there and its answer back, free of
    /// clock offsets), throughput (without a clock), counters (of the processor, over the loops)
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "time",
        hide_possible_values = true
    )]
    pub measure: Measure,

    /// Measure a round for this time, and at least 10 elements [default: 20ms; with several threads 200ms]
    #[arg(long, value_name = "TIME", value_parser = values::run_length)]
    pub duration: Option<Duration>,

    /// Measure this many elements in a round, instead of --duration
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = |text: &str| count::<u64>(text, 1..=MOST_ELEMENTS))]
    pub count: Option<u64>,

    /// Enqueue from this many threads. With several threads at an end, only queues made for them are measured, with the
    /// share of each thread
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = |text: &str| count::<u32>(text, 1..=u64::from(MOST_THREADS)))]
    pub producers: u32,

    /// Dequeue from this many threads
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = |text: &str| count::<u32>(text, 1..=u64::from(MOST_THREADS)))]
    pub consumers: u32,

    /// Share queues between several threads: straight-run (one for each pair), fan-in (one for each consumer and its
    /// share of the producers), fan-out (one for each consumer, which gets all elements), round-robin (one for all, and
    /// each element goes to one consumer) [default: round-robin]
    #[arg(long, value_name = "LIST", value_parser = named::<Scenario>)]
    pub scenario: Option<List<Scenario>>,

    /// Measure on a pair of cores of each kind: SMT siblings, same cluster, same cache, other cache, other node, other
    /// socket
    #[arg(long, conflicts_with_all = ["sender_cpu", "receiver_cpu"])]
    pub topology: bool,

    /// Wait between two enqueues with --load constant-wait or bursty, in ns, us, ms or s [default: 100ns]
    #[arg(long, value_name = "TIME", help_heading = "Load", value_parser = values::wait)]
    pub wait: Option<f64>,

    /// Enqueue groups of this many elements with --load bursty; all waits of a group follow it [default: 20]
    #[arg(long, alias = "burst", value_name = "N", help_heading = "Load",
          value_parser = |text: &str| count::<u32>(text, 1..=1_000_000))]
    pub group: Option<u32>,

    /// Lengthen or shorten each wait at random by up to this share, as in 10% [default: 0%]
    #[arg(long, value_name = "SHARE", help_heading = "Load", value_parser = values::share)]
    pub jitter: Option<f64>,

    /// Set the seed of --jitter, from which the receiver's seed follows
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, help_heading = "Load")]
    pub seed: u64,

    /// Pace the receiver's dequeues
    #[arg(
        long,
        value_name = "LOAD",
        default_value = "none",
        help_heading = "Load"
    )]
    pub receiver_load: LoadKind,

    /// Dequeue this many elements a second; the schedule starts over after a stall
    #[arg(long, value_name = "RATE", help_heading = "Load", value_parser = crate::arguments::values::rate)]
    pub receiver_rate: Option<f64>,

    /// Wait between two dequeues
    #[arg(long, value_name = "TIME", help_heading = "Load", value_parser = values::wait)]
    pub receiver_wait: Option<f64>,

    /// Dequeue groups of this many elements
    #[arg(long, alias = "receiver-burst", value_name = "N", help_heading = "Load",
          value_parser = |text: &str| count::<u32>(text, 1..=1_000_000))]
    pub receiver_group: Option<u32>,

    /// Lengthen or shorten each wait of the receiver at random by up to this share
    #[arg(long, value_name = "SHARE", help_heading = "Load", value_parser = values::share)]
    pub receiver_jitter: Option<f64>,

    /// Draw memory bandwidth on other CPUs while queues are measured: off, or per cent of the maximum of their
    /// generators, as in off,50%,100%
    #[arg(long, value_name = "LIST", default_value = "off", help_heading = "Load", value_parser = memory_loads)]
    pub memory_load: List<MemoryLoad>,

    /// Pass elements for this time before the measured ones; 0 for none
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = values::warm_up, help_heading = "Sweep")]
    pub warmup: Duration,

    /// Set --rounds by its other name; its default is 9 here
    #[arg(long, value_name = "N", overrides_with = "rounds",
          value_parser = |text: &str| count::<u32>(text, 1..=10_000), help_heading = "Sweep")]
    pub repeat: Option<u32>,

    /// Include the time of failed attempts in the operation that succeeds at last
    #[arg(long, help_heading = "Sweep")]
    pub measure_failed: bool,

    /// Act after a failed attempt: none, pause (the processor's hint, once) or backoff (1, 2, 4 to 64 times)
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "pause",
        hide_possible_values = true,
        help_heading = "Sweep"
    )]
    pub retry: Retry,

    /// Take stamps and time waits by this clock: monotonic, monotonic-raw, tsc (counter on aarch64), tsc-unfenced
    /// (counter-unfenced), which costs less, but lets the processor move instructions across a stamp: a time may be too
    /// short or too long by as much as a cache line takes to come, and elements have no latency [default: tsc or
    /// counter where it can be trusted, else monotonic]
    #[arg(long, value_name = "CLOCK", value_parser = values::clock, help_heading = "Sweep")]
    pub clock: Option<StampClock>,

    /// Time this many operations together, from 1 to 1024, and record the time of the batch and its mean: for
    /// operations that take less than a stamp. Elements carry no stamps then, and have no latency
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Sweep",
          value_parser = |text: &str| count::<u32>(text, 1..=u64::from(MOST_PER_STAMP)))]
    pub per_stamp: u32,

    /// Give up a queue after this time without progress, not counting the pauses of the load; at least 1ms
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = timeout, help_heading = "Sweep")]
    pub timeout: Duration,

    /// Pin the sending thread to this CPU [default: a separate core, isolated ones first]
    #[arg(long, value_name = "CPU", value_parser = cpu, help_heading = "Machine")]
    pub sender_cpu: Option<usize>,

    /// Pin the receiving thread to this CPU [default: as for the sender]
    #[arg(long, value_name = "CPU", value_parser = cpu, help_heading = "Machine")]
    pub receiver_cpu: Option<usize>,

    /// Pin both threads to the fastest pair of CPUs that shares no core, by the results of hcabench cores in DIR
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sender_cpu", "receiver_cpu", "topology"], help_heading = "Machine")]
    pub cores_from: Option<PathBuf>,

    /// Run both ends at this SCHED_FIFO priority, 1 to 99 [default: none]
    #[arg(long, value_name = "N", value_parser = |text: &str| number::<u8>(text, 1..=99), help_heading = "Machine")]
    pub priority: Option<u8>,

    /// Use huge pages for the stamps and the queues: required, try, off
    #[arg(long, value_name = "POLICY", default_value = "try", help_heading = "Machine", value_parser = one::<HugePagePolicy>)]
    pub hugepages: HugePagePolicy,

    /// Write the stamps of each element to elements.csv as well, some 100 bytes each
    #[arg(long, help_heading = "Output")]
    pub elements: bool,

    /// How runs are divided.
    #[command(flatten)]
    pub intervals: IntervalArguments,

    /// Where results go, and how they are shown.
    #[command(flatten)]
    pub output: OutputArguments,

    /// How often, how long and from where the sweep is run.
    #[command(flatten)]
    pub sweep: SweepArguments,
}

/// The waits of one end, as they were given.
struct EndOptions<'a> {
    /// What its options begin with.
    prefix: &'a str,
    load: LoadKind,
    rate: Option<f64>,
    wait: Option<f64>,
    group: Option<u32>,
    jitter: Option<f64>,
    seed: u64,
}

/// How long a round is measured of one thread at each end, and of several.
const USUAL: Duration = Duration::from_millis(20);
const USUAL_OF_MANY: Duration = Duration::from_millis(200);
const DEFAULT_RATE: f64 = 1e6;
/// The least and the greatest rate of a search.
const SEARCHED_RATES: [f64; 2] = [1e5, 1e8];
const DEFAULT_WAIT_NS: f64 = 100.0;
const DEFAULT_GROUP: u32 = 20;

impl EndOptions<'_> {
    /// The load, or why an option has no meaning with it.
    fn load(&self) -> Result<EndLoad, UsageError> {
        let wait_ns = self.wait.unwrap_or(DEFAULT_WAIT_NS);
        let load = match self.load {
            LoadKind::None => Load::None,
            LoadKind::ConstantWait => Load::ConstantWait { wait_ns },
            LoadKind::ConstantRate => Load::ConstantRate {
                rate_per_s: self.rate.unwrap_or(DEFAULT_RATE),
            },
            LoadKind::Bursty => Load::Bursty {
                wait_ns,
                group: self.group.unwrap_or(DEFAULT_GROUP),
            },
        };
        let has_jitter = self.jitter.is_some_and(|share| share > 0.0);
        for (option, is_given, loads) in [
            ("rate", self.rate.is_some(), &["constant-rate"][..]),
            ("wait", self.wait.is_some(), &["constant-wait", "bursty"]),
            ("group", self.group.is_some(), &["bursty"]),
            (
                "jitter",
                has_jitter,
                &["constant-wait", "constant-rate", "bursty"],
            ),
        ] {
            if is_given && !loads.contains(&load.name()) {
                return Err(UsageError(format!(
                    "--{prefix}{option} has no meaning with --{prefix}load {}: it is allowed with {}",
                    load.name(),
                    loads.join(", "),
                    prefix = self.prefix
                )));
            }
        }
        Ok(EndLoad {
            load,
            jitter: self.jitter.unwrap_or(0.0),
            seed: self.seed,
        })
    }
}

impl QueueArguments {
    /// The kind of the sender's load.
    fn sender_load(&self) -> LoadKind {
        let default = match self.search.find_rate {
            Some(_) => LoadKind::ConstantRate,
            None => LoadKind::None,
        };
        self.load.unwrap_or(default)
    }

    /// Whether several threads share queues, or are asked how they would.
    fn is_many(&self) -> bool {
        self.producers > 1 || self.consumers > 1 || self.scenario.is_some()
    }

    /// How several threads share queues; none of one and one.
    ///
    /// # Errors
    /// If a scenario is impossible with their numbers, or an option has no meaning with several threads.
    fn wirings(&self) -> Result<Vec<Wiring>, UsageError> {
        if !self.is_many() {
            return Ok(Vec::new());
        }
        let measure = format!("--measure {}", self.measure.name());
        for (option, is_given) in [
            ("--load-curve", self.load_curve),
            ("--count", self.count.is_some()),
            ("--topology", self.topology),
            ("--sender-cpu", self.sender_cpu.is_some()),
            ("--receiver-cpu", self.receiver_cpu.is_some()),
            ("--cores-from", self.cores_from.is_some()),
            (
                "--memory-load",
                self.memory_load.0.iter().any(|load| load.is_on()),
            ),
            ("--elements", self.elements),
            (
                measure.as_str(),
                matches!(self.measure, Measure::RoundTrip | Measure::Counters),
            ),
        ] {
            if is_given {
                return Err(UsageError(format!(
                    "{option} has no meaning with several threads: it is allowed with --producers 1 and --consumers 1, and \
                     without --scenario"
                )));
            }
        }
        let scenarios = self
            .scenario
            .as_ref()
            .map_or(&[Scenario::RoundRobin][..], |it| &it.0);
        let wirings = scenarios.iter().map(|&scenario| {
            let wiring = Wiring {
                scenario,
                publishers: self.producers,
                subscribers: self.consumers,
            };
            let refusal = wiring.refusal_by(["producers", "consumers"]);
            refusal.map_or(Ok(wiring), |reason| Err(UsageError(reason)))
        });
        wirings.collect()
    }

    /// Checks that what is asked of stamps has a meaning: both ways are for operations of two threads, one by one.
    fn check_stamps(&self, clock: StampClock) -> Result<(), UsageError> {
        let batches = format!("--per-stamp {}", self.per_stamp);
        let unfenced = format!("--clock {}", UnfencedCounter::NAME);
        let (has_batches, measure) = (self.per_stamp > 1, self.measure.name());
        let refused = |option: &str, with: &str, allowed: &str| {
            let text = format!("{option} has no meaning with {with}: it is allowed with {allowed}");
            Err(UsageError(text))
        };
        for (option, is_given) in [(&batches, has_batches), (&unfenced, clock.unfenced)] {
            if is_given && self.measure != Measure::Time {
                return refused(option, &format!("--measure {measure}"), "time");
            }
            if is_given && self.is_many() {
                let alone = "--producers 1 and --consumers 1, and without --scenario";
                return refused(option, "several threads", alone);
            }
        }
        for (with, is_given) in [
            ("--elements", self.elements),
            ("--load-curve", self.load_curve),
        ] {
            if clock.unfenced && is_given {
                return refused(with, &unfenced, "clocks with fences");
            }
        }
        if !has_batches {
            return Ok(());
        }
        // Something would come between two operations of a batch, or each would need a separate time.
        let load = |option: &str, kind: LoadKind| {
            let value = kind.to_possible_value();
            format!("{option} {}", value.as_ref().map_or("", |it| it.get_name()))
        };
        for (with, is_given) in [
            (unfenced, clock.unfenced),
            (
                load("--load", self.sender_load()),
                self.sender_load() != LoadKind::None,
            ),
            (
                load("--receiver-load", self.receiver_load),
                self.receiver_load != LoadKind::None,
            ),
            ("--load-curve".to_owned(), self.load_curve),
            ("--elements".to_owned(), self.elements),
        ] {
            if is_given {
                let allowed = "--load none, --receiver-load none and a clock with fences, and without --load-curve and \
                               --elements";
                return refused(&batches, &with, allowed);
            }
        }
        match self.count {
            // The first or the last element, at which the rate begins or ends, is in no batch with the others.
            Some(count) if count <= u64::from(self.per_stamp) => Err(UsageError(format!(
                "{batches} needs a --count of more than {}: with --count {count} no batch would be timed; use a \
                 --per-stamp of at most {}, or a greater --count",
                self.per_stamp,
                (count - 1).max(1)
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that elements have a latency from the intended time where the highest rate is searched.
    fn check_search(&self, clock: StampClock) -> Result<(), UsageError> {
        let Some(conditions) = &self.search.find_rate else {
            return Ok(());
        };
        let unfenced = format!("--clock {}", UnfencedCounter::NAME);
        let measure = format!("--measure {}", self.measure.name());
        for (option, is_given, allowed) in [
            ("--load-curve", self.load_curve, "--load constant-rate"),
            (&measure, self.measure != Measure::Time, "--measure time"),
            (&unfenced, clock.unfenced, "clocks with fences"),
        ] {
            if is_given {
                return Err(UsageError(format!(
                    "{option} has no meaning with --find-rate {conditions}: it is allowed with {allowed}"
                )));
            }
        }
        match self.sender_load() {
            LoadKind::ConstantRate => Ok(()),
            other => Err(UsageError(format!(
                "--load {} has no meaning with --find-rate {conditions}, which searches a rate: it is allowed with \
                 constant-rate",
                other
                    .to_possible_value()
                    .map_or(String::new(), |it| it.get_name().to_owned())
            ))),
        }
    }

    /// What is the same for all points.
    pub(crate) fn config(&self) -> Result<Config, UsageError> {
        let usual = if self.is_many() { USUAL_OF_MANY } else { USUAL };
        let clock = self.clock.unwrap_or_else(|| StampClock {
            kind: ClockKind::finest(),
            unfenced: false,
        });
        self.check_stamps(clock)?;
        self.check_search(clock)?;
        if self.measure != Measure::Time {
            let measure = self.measure.name();
            for (option, is_given) in [
                ("--measure-failed", self.measure_failed),
                ("--elements", self.elements),
                ("--load-curve", self.load_curve),
            ] {
                if is_given {
                    return Err(UsageError(format!(
                        "{option} has no meaning with --measure {measure}: it is allowed with time"
                    )));
                }
            }
        }
        Ok(Config {
            length: self.count.map_or(
                RoundLength::Time(self.duration.unwrap_or(usual)),
                RoundLength::Elements,
            ),
            warmup: self.warmup,
            measure: self.measure,
            measure_failed: self.measure_failed,
            retry: self.retry,
            clock: clock.kind,
            unfenced: clock.unfenced,
            per_stamp: self.per_stamp,
            timeout: self.timeout,
            priority: self.priority,
            huge_pages: self.hugepages,
            keep_elements: self.elements,
            hlog_interval: self.intervals.hlog_interval,
            has_memory_load: self.memory_load.0.iter().any(|load| load.is_on()),
        })
    }

    /// The loads of the sender, one for each rate; for a load curve one, whose jitter counts.
    fn senders(&self) -> Result<Vec<EndLoad>, UsageError> {
        let load = |rate| {
            EndOptions {
                prefix: "",
                load: if self.load_curve {
                    LoadKind::ConstantRate
                } else {
                    self.sender_load()
                },
                rate,
                wait: self.wait,
                group: self.group,
                jitter: self.jitter,
                seed: self.seed,
            }
            .load()
        };
        if self.search.find_rate.is_some() {
            let given = self.rate.as_ref().map_or(&SEARCHED_RATES[..], |it| &it.0);
            let length = self.config()?.length;
            let round = RoundSize {
                at: &|rate| match length {
                    RoundLength::Elements(count) => count as f64,
                    RoundLength::Time(time) => {
                        time.as_secs_f64() * rate * f64::from(self.producers)
                    }
                },
                what: "elements",
                longer: "--duration or --count",
            };
            let rates = self.search.rates(given, &round)?.into_iter();
            return rates.map(|rate| load(Some(rate))).collect();
        }
        match &self.rate {
            None => Ok(vec![load(None)?]),
            Some(rates) => rates.0.iter().copied().map(Some).map(load).collect(),
        }
    }

    /// The load of the receiver.
    fn receiver(&self) -> Result<EndLoad, UsageError> {
        EndOptions {
            prefix: "receiver-",
            load: self.receiver_load,
            rate: self.receiver_rate,
            wait: self.receiver_wait,
            group: self.receiver_group,
            jitter: self.receiver_jitter,
            // Another one than the sender's, so that the two do not wait in step.
            seed: crate::pacing::SplitMix64::new(self.seed).draw(),
        }
        .load()
    }

    /// Rounds where none are asked for: from six on a median has bounds.
    pub(crate) const DEFAULT_ROUNDS: u32 = 9;

    /// What is to be measured.
    pub(crate) fn assignment(&self) -> Result<Assignment, UsageError> {
        let config = self.config()?;
        let senders = self.senders()?;
        let sweep = Sweep {
            queues: self.queue.0.clone(),
            capacities: self.capacity.0.clone(),
            payloads: self.payload.0.clone(),
            curve: self.load_curve.then(|| senders[0]),
            senders,
            receiver: self.receiver()?,
            cpus: if self.topology {
                CpuChoice::EachRelation
            } else {
                CpuChoice::Pair {
                    sender: self.sender_cpu,
                    receiver: self.receiver_cpu,
                }
            },
            memory_loads: self.memory_load.0.clone(),
            wirings: self.wirings()?,
        };
        Ok(Assignment::Queue(config, sweep))
    }
}

/// Runs the benchmark. Returns the exit code.
pub(crate) fn run(arguments: &QueueArguments) -> anyhow::Result<u8> {
    if arguments.list {
        return list::run(arguments.output.json);
    }
    let mut arguments = arguments.clone();
    let waits_for_none = arguments.wirings()?.is_empty();
    if let Some(folder) = arguments.cores_from.take_if(|_| waits_for_none) {
        let [sender, receiver] = fastest_pair(&folder)?;
        (arguments.sender_cpu, arguments.receiver_cpu) = (Some(sender), Some(receiver));
    }
    let sweep = SweepArguments {
        rounds: arguments.sweep.rounds.or(arguments.repeat),
        ..arguments.sweep.clone()
    };
    let mut run = Record::new();
    arguments.intervals.record(&mut run);
    run.set(&columns::SEED, arguments.seed)
        .set(&columns::TIMEOUT, arguments.timeout.as_nanos() as u64)
        .set(&columns::HUGE_PAGES, arguments.hugepages.name())
        .set(&columns::ROWS_OF_ELEMENTS, arguments.elements);
    driver::run(Request {
        sweep: &sweep,
        output: &arguments.output,
        find_rate: arguments.search.find_rate.as_ref(),
        assignment: arguments.assignment()?,
        default_rounds: QueueArguments::DEFAULT_ROUNDS,
        run,
        needs: Needs::between_threads().with_priority(arguments.priority),
        view: present::VIEW,
    })
}

#[cfg(test)]
mod tests;
