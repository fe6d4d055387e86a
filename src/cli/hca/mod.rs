//! `hcabench` without a command: the host channel adapter benchmark.

mod path;
pub(super) mod peer;
mod present;
mod resources;
mod saving;
pub(super) mod values;

#[cfg(feature = "rdma")]
pub(super) use self::peer::VIEW as VIEW_BETWEEN;
pub(super) use self::present::VIEW;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use self::path::PathArguments;
use self::peer::PeerArguments;
use self::resources::ResourceArguments;
use super::cores::fastest_pair;
use crate::arguments::UsageError;
use crate::arguments::values::{
    List, count, cpu, memory_loads, named, one, port_request, seed, timeout,
};
#[cfg(feature = "rdma")]
use crate::bench::Assignment;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::settings::background::Background;
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::bench::hca::settings::config::{
    Arrivals, Config, CpuRequest, Operation, Poll, PortRequest, Rate, Service, Sweep, Switch,
    Timestamp, UcRouteRequest,
};
use crate::bench::hca::settings::path::Connect;
use crate::bench::hca::settings::warmup::Warmup;
use crate::buffer::HugePagePolicy;
use crate::cli::schedule::ScheduleArguments;
#[cfg(feature = "rdma")]
use crate::driver;
#[cfg(feature = "rdma")]
use crate::driver::Request;
use crate::driver::arguments::{FindRateArguments, RoundSize, SweepArguments};
use crate::generators::MemoryLoad;
#[cfg(feature = "rdma")]
use crate::host::readiness::Needs;
use crate::results::text::printable_path;
#[cfg(feature = "rdma")]
use crate::results::{Record, schema::hca as columns};
use crate::terminal::output::OutputArguments;
use crate::time::{COUNTER_IN_WORDS, ClockKind, Nanos, TscKilohertz};

/// Arguments of the benchmark. LIST: one value, or several with commas between them.
#[derive(Debug, Clone, Args)]
pub(crate) struct HcaArguments {
    /// Use these service types: rc, uc, ud
    #[arg(long, value_name = "LIST", default_value = "rc", value_parser = named::<Service>)]
    pub service: List<Service>,

    /// Use these operations: send, write (both with immediate data), write-polled (found by polling memory), read,
    /// compare-swap, fetch-add (8 B); UC has send and write, UD send
    #[arg(long, value_name = "LIST", default_value = "send", value_parser = named::<Operation>)]
    pub operation: List<Operation>,

    /// Send messages of these sizes in bytes, from 8 to the device's maximum, as in 4k or 1MiB; the range 8..32768
    /// doubles
    #[arg(long, value_name = "LIST", default_value = "8", value_parser = values::sizes)]
    pub size: List<u32>,

    /// Post this many messages in a row, 1 to 8192; a range A..B doubles
    #[arg(long, value_name = "LIST", default_value = "1000", value_parser = values::bursts)]
    pub burst: List<u32>,

    /// Send this many bursts of each point in a round, each with fresh stamps
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = |text: &str| count::<u32>(text, 1..=65_535))]
    pub repeat: u32,

    /// Copy the data into the work request: off, on; without a value: on [default: off]
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_value = "off", default_missing_value = "on",
          hide_default_value = true, value_parser = named::<Switch>)]
    pub inline: List<Switch>,

    /// Wait for completions on both sides by: busy, event
    #[arg(long, value_name = "LIST", default_value = "busy", value_parser = named::<Poll>)]
    pub poll: List<Poll>,

    /// Wait between posts, in ns, us, ms or s
    #[arg(long, value_name = "LIST", default_value = "0", value_parser = values::pauses)]
    pub pause: List<Nanos>,

    /// Post this many messages a second at fixed times, as in 5k,20k,100k; instead of --pause [default with
    /// --find-rate: 1k,1M]
    #[arg(long, value_name = "LIST", conflicts_with = "pause", value_parser = values::rates)]
    pub rate: Option<List<u32>>,

    /// Whether the highest rate is searched.
    #[command(flatten)]
    pub search: FindRateArguments,

    /// Send other traffic while latency is measured, as RDMA writes over RC between the same ports: 0 (none), or
    /// messages a second @ bytes of each, x queue pairs (1 to 64), as in 0,200@4KiB,4k@4KiBx2
    #[arg(long, value_name = "LIST", default_value = "0", value_parser = values::backgrounds)]
    pub background: List<Option<Background>>,

    /// Draw memory bandwidth on other CPUs while latency is measured: off, or per cent of the maximum of their
    /// generators, as in off,50%,100%
    #[arg(long, value_name = "LIST", default_value = "off", value_parser = memory_loads)]
    pub memory_load: List<MemoryLoad>,

    /// Send from this port [default: the first active port, of those with an IP address if there are two]
    #[arg(long, value_name = "DEVICE[:PORT][@ADDRESS]", value_parser = port_request)]
    pub sender: Option<PortRequest>,

    /// Receive at this port [default: the next one, on another device if there is one]
    #[arg(long, value_name = "DEVICE[:PORT][@ADDRESS]", value_parser = port_request)]
    pub receiver: Option<PortRequest>,

    /// Request a completion only for the last message of a queue length: off, on; without a value: on [default: off]
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_value = "off", default_missing_value = "on",
          hide_default_value = true, help_heading = "Sweep", value_parser = named::<Switch>)]
    pub unsignaled: List<Switch>,

    /// Wait for messages at the receiver by: busy, event [default: --poll]
    #[arg(long, value_name = "LIST", help_heading = "Sweep", value_parser = named::<Poll>)]
    pub poll_recv: Option<List<Poll>>,

    /// Wait for send completions by: busy, event [default: --poll]
    #[arg(long, value_name = "LIST", help_heading = "Sweep", value_parser = named::<Poll>)]
    pub poll_comp: Option<List<Poll>>,

    /// Spread the posts of --rate over time: constant, poisson (random, drawn before the burst)
    #[arg(long, value_name = "LIST", default_value = "constant", requires = "rate", help_heading = "Sweep",
          value_parser = named::<Arrivals>)]
    pub arrivals: List<Arrivals>,

    /// Set the seed of --arrivals poisson
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, help_heading = "Sweep")]
    pub seed: u64,

    /// Make the receiver wait before each poll of its completion queue, in ns, us, ms or s, less than --timeout
    #[arg(long, value_name = "LIST", default_value = "0", help_heading = "Sweep", value_parser = values::pauses)]
    pub receiver_pause: List<Nanos>,

    /// Put this moment into each message: submit (before posting), send (rewritten until the HCA reads it)
    #[arg(long, value_name = "LIST", default_value = "submit", help_heading = "Sweep", value_parser = named::<Timestamp>)]
    pub timestamp: List<Timestamp>,

    /// Take stamps by these clocks: monotonic, monotonic-raw, tsc (counter on aarch64)
    #[arg(long, value_name = "LIST", default_value = "monotonic", help_heading = "Sweep", value_parser = named::<ClockKind>)]
    pub clock: List<ClockKind>,

    /// Set the rate of the processor's counter in kHz, 100000 to 10000000 (on aarch64 from 1000), for --clock tsc or
    /// counter [default: measured against CLOCK_MONOTONIC_RAW; on aarch64 CNTFRQ_EL0]
    #[arg(long, value_name = "KHZ", help_heading = "Machine")]
    pub tsc_khz: Option<TscKilohertz>,

    /// Spread a burst over this many queue pairs in turn, all with one completion queue; 1 to 1024
    #[arg(long, value_name = "LIST", default_value = "1", help_heading = "Sweep", value_parser = values::queue_pairs)]
    pub queue_pairs: List<u32>,

    /// Keep at most this many messages in flight, 1 to 8192, which is the length of the queues, and post receive
    /// requests again as they complete [default: the burst, all posted first]
    #[arg(long, value_name = "LIST", help_heading = "Sweep", value_parser = values::depths)]
    pub depth: Option<List<u32>>,

    /// Discard whole bursts before the measured messages of each point: at least this many messages, 0 to 8192, or this
    /// time, as in 1s
    #[arg(long, value_name = "N|TIME", default_value = "100", help_heading = "Sweep", value_parser = values::warmup)]
    pub warmup: Warmup,

    /// Pin the sending thread to this CPU [default: chosen near the device, isolated CPUs first]
    #[arg(long, value_name = "CPU", value_parser = cpu, help_heading = "Machine")]
    pub sender_cpu: Option<usize>,

    /// Pin the receiving thread to this CPU [default: as for the sender]
    #[arg(long, value_name = "CPU", value_parser = cpu, help_heading = "Machine")]
    pub receiver_cpu: Option<usize>,

    /// Pin both threads to the fastest pair of CPUs that shares no core, by the results of hcabench cores in DIR
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sender_cpu", "receiver_cpu"], help_heading = "Machine")]
    pub cores_from: Option<PathBuf>,

    /// Pin the completion thread to this CPU [default: a separate core if one is left, else the sender polls]
    #[arg(long, value_name = "CPU", value_parser = cpu, help_heading = "Machine")]
    pub completion_cpu: Option<usize>,

    /// Pin the thread that rewrites the stamps of --timestamp send to this CPU [default: as for the sender]
    #[arg(long, value_name = "CPU", value_parser = cpu, help_heading = "Machine")]
    pub stamp_cpu: Option<usize>,

    /// Pin the thread of --background to this CPU [default: a separate CPU if one is left, else the sender's]
    #[arg(long, value_name = "CPU", value_parser = cpu, help_heading = "Machine")]
    pub background_cpu: Option<usize>,

    /// How the kernel treats the measuring threads.
    #[command(flatten)]
    pub schedule: ScheduleArguments,

    /// Connect UC by: endpoint (rdma_create_ep), patched (rdma_create_id2 of rdma-cm-patch), auto (the first that
    /// works)
    #[arg(long, value_name = "ROUTE", default_value = "auto", help_heading = "Machine", value_parser = one::<UcRouteRequest>)]
    pub uc_route: UcRouteRequest,

    /// Set the interrupt vector of the completion queues of both ends, or of sender and receiver, for --poll event
    /// [default: 0; 0,1 where both ends are of one device]
    #[arg(long, value_name = "N|N,M", help_heading = "Machine", value_parser = values::comp_vectors)]
    pub comp_vector: Option<CompletionVectors>,

    /// Record the adapters' own stamps of completions beside t_recv and t_comp, converted to --clock; on one host
    #[arg(long, help_heading = "Machine")]
    pub hw_timestamps: bool,

    /// Use huge pages: required, try, off
    #[arg(long, value_name = "POLICY", default_value = "try", help_heading = "Machine", value_parser = one::<HugePagePolicy>)]
    pub hugepages: HugePagePolicy,

    /// Count missing messages as lost after this time without an arrival, at least 1ms
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Sweep", value_parser = timeout)]
    pub timeout: Duration,

    /// How the two queue pairs are connected.
    #[command(flatten)]
    pub path: PathArguments,

    /// What the two ends are made with.
    #[command(flatten)]
    pub resources: ResourceArguments,

    /// The other host, if there are two.
    #[command(flatten)]
    pub between: PeerArguments,

    /// Where results go, and how they are shown.
    #[command(flatten)]
    pub output: OutputArguments,

    /// How often, how long and from where the sweep is run.
    #[command(flatten)]
    pub sweep: SweepArguments,
}

/// The least and the greatest rate of a search.
const SEARCHED_RATES: [u32; 2] = [1_000, 1_000_000];

impl HcaArguments {
    /// The rates at which messages are posted; none if there are pauses between them.
    ///
    /// # Errors
    /// When a search has nothing to choose from.
    fn rates(&self) -> Result<Option<Vec<u32>>, UsageError> {
        let given = self.rate.as_ref().map(|rates| &rates.0[..]);
        if self.search.find_rate.is_none() {
            return Ok(given.map(<[u32]>::to_vec));
        }
        let given = given.unwrap_or(&SEARCHED_RATES).iter();
        let given: Vec<f64> = given.map(|&rate| f64::from(rate)).collect();
        let least = self.burst.0.iter().min().copied().unwrap_or(0);
        let round = RoundSize {
            at: &|_| f64::from(least) * f64::from(self.repeat),
            what: "messages",
            longer: "--burst or --repeat",
        };
        let found = self.search.rates(&given, &round)?.into_iter();
        let mut whole: Vec<u32> = found.map(|rate| rate.round() as u32).collect();
        whole.dedup();
        Ok(Some(whole))
    }

    /// The configuration that the arguments describe; without rates where a search has none.
    pub(crate) fn config(&self) -> Config {
        let polls = if self.poll_recv.is_none() && self.poll_comp.is_none() {
            self.poll.0.iter().map(|&mode| (mode, mode)).collect()
        } else {
            let receiving = self.poll_recv.as_ref().unwrap_or(&self.poll);
            let completing = self.poll_comp.as_ref().unwrap_or(&self.poll);
            let pairs = |&of: &Poll| completing.0.iter().map(move |&comp| (of, comp));
            receiving.0.iter().flat_map(pairs).collect()
        };
        let rates = self.rates().ok().flatten();
        let rates = rates.map_or(vec![None], |rates| {
            let spread = |&per_second: &u32| {
                (self.arrivals.0.iter()).map(move |&arrivals| {
                    Some(Rate {
                        per_second,
                        arrivals,
                    })
                })
            };
            rates.iter().flat_map(spread).collect()
        });
        Config {
            sweep: Sweep {
                services: self.service.0.clone(),
                operations: self.operation.0.clone(),
                inline: self.inline.0.clone(),
                unsignaled: self.unsignaled.0.clone(),
                polls,
                timestamps: self.timestamp.0.clone(),
                clocks: self.clock.0.clone(),
                pauses: self.pause.0.clone(),
                rates,
                receiver_pauses: self.receiver_pause.0.clone(),
                bursts: self.burst.0.clone(),
                depths: self.depth.as_ref().map_or(vec![None], |depths| {
                    depths.0.iter().copied().map(Some).collect()
                }),
                sizes: self.size.0.clone(),
                connects: self.path.connect.0.clone(),
                paths: self.path.paths(),
                resources: self.resources.resources(),
                queue_pairs: self.queue_pairs.0.clone(),
                backgrounds: self.background.0.clone(),
                memory_loads: self.memory_load.0.clone(),
            },
            warmup: self.warmup,
            repeat: self.repeat,
            seed: self.seed,
            timeout: self.timeout,
            priority: self.schedule.priority,
            huge_pages: self.hugepages,
            hw_timestamps: self.hw_timestamps,
            comp_vectors: self.comp_vector,
            allow_idle_states: self.schedule.allow_idle_states,
            uc_route: self.uc_route,
            direct_services: None,
            sender: self.sender.clone(),
            receiver: self.receiver.clone(),
            cpus: CpuRequest {
                sender: self.sender_cpu,
                receiver: self.receiver_cpu,
                completion: self.completion_cpu,
                stamp: self.stamp_cpu,
                background: self.background_cpu,
            },
            tsc_khz: self.tsc_khz,
        }
    }
}

/// The configuration that arguments describe, and its plan, once both are known to make sense.
pub(super) fn checked(arguments: &HcaArguments) -> anyhow::Result<(Config, Plan)> {
    check_search(arguments)?;
    let config = arguments.config();
    if let Some(folder) = &arguments.cores_from {
        return Err(UsageError(format!(
            "--cores-from {}: sender and receiver are on two hosts: name a CPU of each with --sender-cpu and \
             --receiver-cpu",
            printable_path(folder)
        ))
        .into());
    }
    check_tsc_khz(&config)?;
    check_receiver_pause(&config)?;
    check_comp_vectors(&config)?;
    check_background_cpu(&config)?;
    let plan = Plan::new(&config.sweep);
    plan.check().map_err(UsageError)?;
    check_uc_route(&config, &plan)?;
    arguments.between.check_clocks(&config.sweep.clocks)?;
    check_hw_timestamps(arguments)?;
    Ok((config, plan))
}

/// Runs the benchmark. Returns the exit code.
pub(crate) fn run(arguments: &HcaArguments) -> anyhow::Result<u8> {
    let mut arguments = arguments.clone();
    let has_both_ends = arguments.between.peer.is_none();
    if let Some(folder) = arguments.cores_from.take_if(|_| has_both_ends) {
        let [sender, receiver] = fastest_pair(&folder)?;
        (arguments.sender_cpu, arguments.receiver_cpu) = (Some(sender), Some(receiver));
    }
    let arguments = &arguments;
    let (config, _) = checked(arguments)?;
    arguments.between.check_peer()?;
    #[cfg(feature = "rdma")]
    {
        if arguments.between.peer.is_some() {
            return peer::run(arguments, config);
        }
        driver::run(Request {
            sweep: &arguments.sweep,
            output: &arguments.output,
            run: settings_of_run(&config),
            needs: Needs::between_devices().with_priority(config.priority),
            assignment: Assignment::OneHost(config),
            find_rate: arguments.search.find_rate.as_ref(),
            default_rounds: 1,
            view: present::VIEW,
        })
    }
    #[cfg(not(feature = "rdma"))]
    {
        let _ = config;
        Err(UsageError(super::WITHOUT_RDMA.to_owned()).into())
    }
}

/// The settings that are no point's.
#[cfg(feature = "rdma")]
pub(super) fn settings_of_run(config: &Config) -> Record {
    let port = |port: &Option<PortRequest>| port.as_ref().map(PortRequest::to_string);
    let mut settings = Record::new();
    settings
        .set(&columns::TIMEOUT, config.timeout.as_nanos() as u64)
        .set(
            &columns::WARMUP_TIME,
            config.warmup.time().map(|time| time.as_nanos() as u64),
        )
        .set(&columns::SEED, config.seed)
        .set(&columns::PRIORITY, config.priority.map(u32::from))
        .set(&columns::HUGE_PAGES, config.huge_pages.name())
        .set(
            &columns::COMP_VECTOR,
            config.comp_vectors.map(|vectors| vectors.to_string()),
        )
        .set(&columns::HW_TIMESTAMPS, config.hw_timestamps)
        .set(&columns::ALLOW_IDLE_STATES, config.allow_idle_states)
        .set(&columns::UC_ROUTE, config.uc_route.name())
        .set(&columns::SENDER, port(&config.sender))
        .set(&columns::RECEIVER, port(&config.receiver))
        .set(&columns::SENDER_CPU, config.cpus.sender)
        .set(&columns::RECEIVER_CPU, config.cpus.receiver)
        .set(&columns::COMPLETION_CPU, config.cpus.completion)
        .set(&columns::STAMP_CPU, config.cpus.stamp)
        .set(&columns::BACKGROUND_CPU, config.cpus.background)
        .set(
            &columns::TSC_RATE,
            config.tsc_khz.map(TscKilohertz::kilohertz),
        );
    settings
}

/// Checks that messages have a latency from the intended time where the highest rate is searched.
fn check_search(arguments: &HcaArguments) -> Result<(), UsageError> {
    let Some(conditions) = &arguments.search.find_rate else {
        return Ok(());
    };
    let peer = arguments.between.peer.as_ref();
    let mut operations = arguments.operation.0.iter();
    let brings_back = operations.find(|operation| !operation.is_one_way());
    let has_pause = arguments.pause.0.iter().any(|pause| pause.0 > 0);
    let is_random = arguments.arrivals.0.contains(&Arrivals::Poisson);
    let refusals = [
        peer.map(|peer| {
            (
                format!("--peer {peer}"),
                "two clocks have an offset, which is in a latency from the intended time: it is allowed on one host",
            )
        }),
        brings_back.map(|operation| {
            (
                format!("--operation {}", operation.name()),
                "nothing of it arrives, so that it has no latency from the intended time: it is allowed with send, write \
                 and write-polled",
            )
        }),
        has_pause.then(|| {
            (
                "--pause".to_owned(),
                "messages are posted at rates: leave it out",
            )
        }),
        is_random.then(|| {
            (
                format!("--arrivals {}", Arrivals::Poisson.name()),
                "the rate of a round is random as well, and cannot be kept: it is allowed with constant",
            )
        }),
    ];
    if let Some((option, why)) = refusals.into_iter().flatten().next() {
        return Err(UsageError(format!(
            "{option}: --find-rate {conditions} has no meaning with it: {why}"
        )));
    }
    arguments.rates().map(drop)
}

/// A receiver that is away for as long as messages may take would lose them.
fn check_receiver_pause(config: &Config) -> Result<(), UsageError> {
    let longest = config.sweep.receiver_pauses.iter().max();
    let pause = Duration::from_nanos(longest.map_or(0, |pause| pause.0));
    if pause < config.timeout {
        return Ok(());
    }
    Err(UsageError(format!(
        "--receiver-pause {}: must be below --timeout, which is {}",
        humantime::format_duration(pause),
        humantime::format_duration(config.timeout)
    )))
}

/// A vector that brings no events is a mistake.
fn check_comp_vectors(config: &Config) -> Result<(), UsageError> {
    let mut polls = config.sweep.polls.iter();
    let has_events = polls.any(|&(recv, comp)| [recv, comp].contains(&Poll::Event));
    match config.comp_vectors {
        Some(vectors) if !has_events => Err(UsageError(format!(
            "--comp-vector {vectors}: no side of this run waits for events: add --poll event, or leave it out"
        ))),
        _ => Ok(()),
    }
}

/// A CPU for a thread that there is not is a mistake.
fn check_background_cpu(config: &Config) -> Result<(), UsageError> {
    match config.cpus.background {
        Some(cpu) if !config.has_background() => Err(UsageError(format!(
            "--background-cpu {cpu}: nothing is sent in the background of this run: add --background, or leave it out"
        ))),
        _ => Ok(()),
    }
}

/// Stamps are converted to the clock of this host.
fn check_hw_timestamps(arguments: &HcaArguments) -> Result<(), UsageError> {
    match &arguments.between.peer {
        Some(peer) if arguments.hw_timestamps => Err(UsageError(format!(
            "--hw-timestamps: with --peer {peer} there are two hosts, and stamps of adapters are converted to the clock \
             of one: leave out one of the two"
        ))),
        _ => Ok(()),
    }
}

/// A rate that no clock would use is a mistake.
fn check_tsc_khz(config: &Config) -> Result<(), UsageError> {
    match config.tsc_khz {
        Some(rate) if !config.sweep.clocks.contains(&ClockKind::Counter) => {
            Err(UsageError(format!(
                "--tsc-khz {rate}: no clock of this run is the {COUNTER_IN_WORDS}: add --clock {}, or leave it out",
                ClockKind::Counter.name()
            )))
        }
        _ => Ok(()),
    }
}

/// A route that was asked for by name must be of use.
fn check_uc_route(config: &Config, plan: &Plan) -> Result<(), UsageError> {
    let may_use = |point: &Point| point.service == Service::Uc && point.connect != Connect::Direct;
    if plan.points.iter().any(may_use) || config.uc_route == UcRouteRequest::Auto {
        return Ok(());
    }
    Err(UsageError(format!(
        "--uc-route {}: no point of this run is UC by the connection manager: add --service uc, or leave it out",
        config.uc_route.name()
    )))
}

#[cfg(test)]
mod tests;
