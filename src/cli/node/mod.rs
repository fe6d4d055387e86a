//! `hcabench node`: the node benchmark.

mod between;
mod layers;
mod present;
mod values;

pub(super) use self::between::VIEW as VIEW_BETWEEN;
pub(super) use self::present::VIEW;
use std::time::Duration;

use clap::Args;

use crate::arguments::UsageError;
use crate::arguments::values::{
    DAY, List, count, duration, named, number, one, port_request, seed, time, timeout,
};
use crate::bench::Assignment;
use crate::bench::node::broker::refusal_of_process;
use crate::bench::node::config::{
    BrokerChoice, Config, Format, LogPlace, MOST_ENDS, MissPolicy, PublishingLength, RunsAs,
    TimerKind, VerbsConfig,
};
use crate::bench::node::plan::{self, Sweep};
use crate::buffer::{Bytes, HugePagePolicy};
use crate::cli::hca::peer::PeerArguments;
use crate::cli::intervals::IntervalArguments;
use crate::driver;
use crate::driver::Request;
use crate::driver::arguments::{FindRateArguments, RoundSize, SweepArguments};
use crate::host::readiness::Needs;
use crate::node::fallback::Fallback;
use crate::node::multicast::index as interface_index;
use crate::node::settings::{LOOPBACK, Poll, Qos, RedisKind, SocketSettings, UnixSocket};
use crate::node::{NodeType, Scenario, Wiring};
use crate::results::Record;
use crate::results::schema::between::{PEER, PROBES_ASKED};
use crate::results::schema::node as columns;
use crate::rig::named::{Named as _, named};
use crate::rig::ports::{PortRequest, Service, UcRouteRequest};
use crate::terminal::output::OutputArguments;
use crate::terminal::progress;
use crate::time::ClockKind;

/// The help of `--type`, with all node-types that there are.
fn types() -> String {
    let names: Vec<&str> = NodeType::ALL.iter().map(|it| it.name()).collect();
    let names = names.join(", ");
    format!(
        "Node-types: {names}, or all (what this machine can run, in {ROUNDS_OF_ALL} rounds unless --rounds, --budget or \
         --find-rate is given); shmem is shared memory, loopback threads of one process: the floor"
    )
}

/// Arguments of `hcabench node`. LIST: one value, or several with commas between them.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeArguments {
    #[arg(long = "type", value_name = "LIST", default_value = "udp", value_parser = values::node_types, help = types())]
    pub node_type: values::NodeTypes,

    /// Use these service types of infiniband: rc, uc, ud
    #[arg(long, value_name = "LIST", default_value = "rc", value_parser = named::<Service>)]
    pub service: List<Service>,

    /// Send this many samples a second from each publisher, as in 250 or 10k; 100..100k is 100 and each tenfold
    /// [default: 1k; with --find-rate 100..100k]
    #[arg(long, value_name = "LIST", value_parser = values::rates)]
    pub rate: Option<List<f64>>,

    /// Whether the highest rate is searched.
    #[command(flatten)]
    pub search: FindRateArguments,

    /// Send samples of this many values of 8 B, after a stamp and a number of 8 B each; 1..64 doubles
    #[arg(long, value_name = "LIST", default_value = "8", value_parser = values::values)]
    pub values: List<u32>,

    /// Measure this many steps of each publisher in a round [default: those of --duration]
    #[arg(long, value_name = "N",
          value_parser = |text: &str| count::<u64>(text, 1..=1_000_000_000), conflicts_with = "duration")]
    pub count: Option<u64>,

    /// Measure for this time in a round, with unit
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub duration: Duration,

    /// Connect publishers and subscribers by: straight-run, fan-in, fan-out, round-robin [default: straight-run]
    #[arg(long, value_name = "LIST", value_parser = named::<Scenario>)]
    pub scenario: Option<List<Scenario>>,

    /// Start this many publishers
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = |text: &str| count::<u32>(text, 1..=u64::from(MOST_ENDS)))]
    pub publishers: u32,

    /// Start this many subscribers
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = |text: &str| count::<u32>(text, 1..=u64::from(MOST_ENDS)))]
    pub subscribers: u32,

    /// Run each publisher and subscriber in: threads (of one process), processes (one for each; not for loopback)
    #[arg(long, value_name = "LIST", default_value = "threads", value_parser = named::<RunsAs>)]
    pub ends: List<RunsAs>,

    /// Time the steps of publishers by: tsc (the counter, polled; counter on aarch64), timerfd (the kernel wakes them)
    #[arg(long, value_name = "TIMER", default_value = ClockKind::Counter.name(), value_parser = one::<TimerKind>)]
    pub timer: TimerKind,

    /// Wait for samples at subscribers by: busy, event
    #[arg(long, value_name = "MODE", default_value = "busy", value_parser = one::<Poll>)]
    pub poll: Poll,

    /// Treat steps that were due while a publisher was busy: skip (they are missed), catch-up (they follow at once)
    /// [default: skip; with --scenario or --find-rate catch-up]
    #[arg(long, value_name = "WAY", value_parser = one::<MissPolicy>, help_heading = "Load")]
    pub after_miss: Option<MissPolicy>,

    /// Send for this time before the measurement, at the same rate
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = zero_or_duration, help_heading = "Load")]
    pub warmup: Duration,

    /// Wait at most this long for samples under way after all publishers have ended
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = zero_or_duration, help_heading = "Load")]
    pub drain: Duration,

    /// Set the seed of the values of samples
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, help_heading = "Load")]
    pub seed: u64,

    /// Take at most this many samples in one call of a subscriber
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = |text: &str| count::<u16>(text, 1..=4096), help_heading = "Nodes")]
    pub vectorize: u16,

    /// Queue at most this many samples for sending
    #[arg(long, value_name = "N", default_value_t = 512,
          value_parser = |text: &str| count::<u32>(text, 1..=1_000_000), help_heading = "Nodes")]
    pub send_queue: u32,

    /// Queue at most this many samples before they are read
    #[arg(long, value_name = "N", default_value_t = 512,
          value_parser = |text: &str| count::<u32>(text, 1..=1_000_000), help_heading = "Nodes")]
    pub receive_queue: u32,

    /// Copy samples of infiniband up to this size in bytes into the work request
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 128,
        value_parser = values::inline,
        help_heading = "Nodes"
    )]
    pub max_inline: u32,

    /// Signal one of this many inline samples of infiniband, which is sent without inline [default: half of
    /// --send-queue]
    #[arg(long, value_name = "N",
          value_parser = |text: &str| count::<u32>(text, 1..=u64::from(u32::MAX)), help_heading = "Nodes")]
    pub signal_every: Option<u32>,

    /// Post this many receive requests at a subscriber of infiniband before it looks for samples [default:
    /// --receive-queue - 2 * --vectorize]
    #[arg(long, value_name = "N",
          value_parser = |text: &str| count::<u32>(text, 1..=u64::from(u32::MAX)), help_heading = "Nodes")]
    pub receive_threshold: Option<u32>,

    /// Handle a publisher of infiniband that cannot connect: listen (its subscriber connects to it), fatal (the run
    /// ends) [default: listen; with --service ud or --peer fatal]
    #[arg(long, value_name = "WAY", value_parser = one::<Fallback>, help_heading = "Nodes")]
    pub fallback: Option<Fallback>,

    /// Send from this port with infiniband [default: as without a command; with --peer the first active port, of those
    /// with an IP address if there is one]
    #[arg(long, value_name = "DEVICE[:PORT][@ADDRESS]", value_parser = port_request, help_heading = "Nodes")]
    pub sender: Option<PortRequest>,

    /// Receive at this port with infiniband, with --peer of the other host [default: as --sender]
    #[arg(long, value_name = "DEVICE[:PORT][@ADDRESS]", value_parser = port_request, help_heading = "Nodes")]
    pub receiver: Option<PortRequest>,

    /// Connect UC by: endpoint (rdma_create_ep), patched (rdma_create_id2 of rdma-cm-patch), auto (the first that
    /// works)
    #[arg(long, value_name = "ROUTE", default_value = "auto", help_heading = "Nodes", value_parser = one::<UcRouteRequest>)]
    pub uc_route: UcRouteRequest,

    /// Set the quality of service of mqtt: 0 (at most once), 1 (at least once), 2 (exactly once)
    #[arg(long, value_name = "LEVEL", default_value = "0", value_parser = one::<Qos>, help_heading = "Nodes")]
    pub qos: Qos,

    /// Pass samples on with redis by: pubsub (channels), streams
    #[arg(long, value_name = "KIND", default_value = "pubsub", value_parser = one::<RedisKind>, help_heading = "Nodes")]
    pub redis_kind: RedisKind,

    /// Use this broker of mqtt, nats or redis: HOST:PORT, or spawn, which starts mosquitto, nats-server or redis-server
    /// on the loopback for each run
    #[arg(long, value_name = "BROKER", default_value = "spawn", value_parser = values::broker, help_heading = "Nodes")]
    pub broker: BrokerChoice,

    /// Measure processor time and memory of the broker of --broker HOST:PORT in this process, which may be in a container
    #[arg(long, value_name = "PID",
          value_parser = |text: &str| number::<u32>(text, 1..=u64::from(u32::MAX >> 1)), help_heading = "Nodes")]
    pub broker_process: Option<u32>,

    /// Listen at this TCP port and the next ones with zeromq, where other programs can connect: one for each
    /// publisher in fan-out and round-robin, else for each subscriber [default: free ports]
    #[arg(long, value_name = "PORT",
          value_parser = |text: &str| number::<u16>(text, 1..=65_535), help_heading = "Nodes")]
    pub zeromq_port: Option<u16>,

    /// Set TCP_NODELAY with tcp: on, off (a small sample waits for the acknowledgement of the one before it)
    #[arg(long, value_name = "SWITCH", default_value = "on", value_parser = one::<Switch>, help_heading = "Nodes")]
    pub tcp_nodelay: Switch,

    /// Poll the queue of the device for this time in a read of tcp (SO_BUSY_POLL); the loopback interface has none
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = busy_poll, help_heading = "Nodes")]
    pub tcp_busy_poll: Duration,

    /// Use these sockets with unix: stream, seqpacket (each sample is a message)
    #[arg(long, value_name = "KIND", default_value = "stream", value_parser = one::<UnixSocket>, help_heading = "Nodes")]
    pub unix_socket: UnixSocket,

    /// Send over this interface with multicast; over others than lo, samples leave the host as well
    #[arg(long, value_name = "INTERFACE", default_value = LOOPBACK, help_heading = "Nodes")]
    pub multicast_interface: String,

    /// The other host, if there is one.
    #[command(flatten)]
    pub between: PeerArguments,

    /// Connect within this time; for infiniband, to each subscriber
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = timeout, help_heading = "Nodes")]
    pub timeout: Duration,

    /// Use huge pages for samples and stamps: required, try, off
    #[arg(long, value_name = "POLICY", default_value = "try", help_heading = "Machine", value_parser = one::<HugePagePolicy>)]
    pub hugepages: HugePagePolicy,

    /// Record sent and received samples in: memory, file (in the results folder; each write can delay a sample)
    #[arg(long, value_name = "PLACE", default_value = "memory", value_parser = one::<LogChoice>, help_heading = "Output")]
    pub log: LogChoice,

    /// Write the records of --log file in blocks of this size; k is 1024
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = values::buffer, help_heading = "Output")]
    pub log_buffer: Bytes,

    /// Write each sample to in.csv and out.csv as well, some 160 bytes each
    #[arg(long, help_heading = "Output")]
    pub samples: bool,

    /// How runs are divided.
    #[command(flatten)]
    pub intervals: IntervalArguments,

    /// Write samples as: hcabench, villas (in.villas and out.villas, as villas.human of VILLASnode) [default: hcabench]
    #[arg(long, value_name = "LIST", requires = "samples", value_parser = named::<Format>, help_heading = "Output")]
    pub format: Option<List<Format>>,

    /// Where results go, and how they are shown.
    #[command(flatten)]
    pub output: OutputArguments,

    /// How often, how long and from where the sweep is run.
    #[command(flatten)]
    pub sweep: SweepArguments,
}

named! {
    /// Where ends note what they send and receive.
    LogChoice {
        /// In memory.
        Memory = "memory",
        /// In a file.
        File = "file",
    }
}

named! {
    /// Whether something is set.
    Switch {
        /// It is.
        On = "on",
        /// It is not.
        Off = "off",
    }
}

/// Rounds of `--type all`: with fewer than seven, the 78 pairs of thirteen node-types cannot share an error of 5 %.
const ROUNDS_OF_ALL: u32 = 8;

/// Samples a second, where none are given; the least and the greatest of a search.
const DEFAULT_RATE: f64 = 1e3;
const SEARCHED_RATES: [f64; 2] = [100.0, 1e5];

fn zero_or_duration(text: &str) -> Result<Duration, String> {
    zero_or_time(text, DAY)
}

fn busy_poll(text: &str) -> Result<Duration, String> {
    zero_or_time(text, Duration::from_secs(1))
}

fn zero_or_time(text: &str, longest: Duration) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        _ => time(text, Duration::ZERO..=longest),
    }
}

impl NodeArguments {
    /// Rounds where none are asked for. All types are measured to be ranked, which one round cannot.
    fn default_rounds(&self) -> u32 {
        match self.node_type.all {
            true => ROUNDS_OF_ALL,
            false => 1,
        }
    }

    /// The formats of files of samples; none without them.
    fn formats(&self) -> Vec<Format> {
        match &self.format {
            _ if !self.samples => Vec::new(),
            Some(formats) => formats.0.clone(),
            None => vec![Format::Hcabench],
        }
    }

    /// What is the same for all points.
    fn config(&self) -> Config {
        let default = match self.scenario.is_some() || self.search.find_rate.is_some() {
            true => MissPolicy::CatchUp,
            false => MissPolicy::Skip,
        };
        Config {
            length: match self.count {
                Some(count) => PublishingLength::Count(count),
                None => PublishingLength::Duration(self.duration),
            },
            warmup: self.warmup,
            drain: self.drain,
            timeout: self.timeout,
            timer: self.timer,
            poll: self.poll,
            after_miss: self.after_miss.unwrap_or(default),
            vectorize: usize::from(self.vectorize),
            send_queue: self.send_queue,
            receive_queue: self.receive_queue,
            verbs: VerbsConfig {
                sender: self.sender.clone(),
                receiver: self.receiver.clone(),
                uc_route: self.uc_route,
                max_inline: self.max_inline,
                signal_every: self.signal_every.unwrap_or((self.send_queue / 2).max(1)),
                receive_threshold: self.receive_threshold,
                fallback: self.fallback,
            },
            qos: self.qos,
            redis_kind: self.redis_kind,
            broker: self.broker.clone(),
            broker_process: self.broker_process,
            zeromq_port: self.zeromq_port,
            sockets: SocketSettings {
                tcp_no_delay: self.tcp_nodelay == Switch::On,
                tcp_busy_poll: self.tcp_busy_poll,
                unix_socket: self.unix_socket,
                multicast_interface: self.multicast_interface.clone(),
            },
            peer: (self.between.peer.as_ref()).map(|_| self.between.config()),
            huge_pages: self.hugepages,
            seed: self.seed,
            log: match self.log {
                LogChoice::Memory => LogPlace::Memory,
                LogChoice::File => LogPlace::File {
                    buffer: self.log_buffer,
                },
            },
            tells_progress: progress::is_shown(),
            keep_samples: self.formats(),
            hlog_interval: self.intervals.hlog_interval,
        }
    }

    /// The rates that may be measured.
    ///
    /// # Errors
    /// When a search has nothing to choose from, or steps that are missed would be in no latency.
    fn rates(&self) -> Result<Vec<f64>, UsageError> {
        let Some(conditions) = &self.search.find_rate else {
            return Ok(self
                .rate
                .as_ref()
                .map_or(vec![DEFAULT_RATE], |it| it.0.clone()));
        };
        if self.after_miss == Some(MissPolicy::Skip) {
            return Err(UsageError(format!(
                "--after-miss skip has no meaning with --find-rate {conditions}: a step that is left out has no latency; \
                 use catch-up, or leave it out"
            )));
        }
        let given = self.rate.as_ref().map_or(&SEARCHED_RATES[..], |it| &it.0);
        let config = self.config();
        let publishers = f64::from(self.publishers);
        let round = RoundSize {
            at: &|rate| config.steps(rate) as f64 * publishers,
            what: "samples",
            longer: "--duration or --count",
        };
        self.search.rates(given, &round)
    }

    /// What is multiplied.
    fn points(&self) -> Result<Sweep, UsageError> {
        let scenarios = match &self.scenario {
            Some(scenarios) => scenarios.0.clone(),
            None => vec![Scenario::StraightRun],
        };
        let wiring = |scenario| Wiring {
            scenario,
            publishers: self.publishers,
            subscribers: self.subscribers,
        };
        Ok(Sweep {
            node_types: self.node_type.types.clone(),
            all_types: self.node_type.all,
            services: self.service.0.clone(),
            rates: self.rates()?,
            values: self.values.0.clone(),
            wirings: scenarios.into_iter().map(wiring).collect(),
            ends: self.ends.0.clone(),
        })
    }

    /// Refuses one broker for node-types that take different ones.
    fn check_broker(&self) -> Result<(), UsageError> {
        let types = self.node_type.types.iter();
        let types: Vec<&str> = (types.filter(|it| it.broker().is_some()))
            .map(|it| it.name())
            .collect();
        match &self.broker {
            BrokerChoice::At(address) if types.len() > 1 && self.node_type.all => {
                Err(UsageError(format!(
                    "--broker {address} is impossible with --type all: --type all has several types with a broker: \
                     name one, or use --broker spawn"
                )))
            }
            BrokerChoice::At(address) if types.len() > 1 => Err(UsageError(format!(
                "--broker {address} is impossible with --type {}: each of these takes a different broker; measure one \
                 of them, or use --broker spawn",
                types.join(",")
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses what two hosts cannot measure, and options of two hosts where there is one.
    fn check_hosts(&self) -> Result<(), UsageError> {
        self.between.check_peer()?;
        let others = "the counter is not: use --timer timerfd";
        self.between.check_clock_of(&[self.timer.clock()], others)?;
        let Some(peer) = &self.between.peer else {
            return Ok(());
        };
        let villas = self.formats().contains(&Format::Villas);
        let refusals = [
            (
                self.search.find_rate.is_some(),
                "--find-rate",
                "it goes by latencies, and between two hosts these are bounds: leave it out, or measure on one host",
            ),
            (
                self.log == LogChoice::File,
                "--log file",
                "the other host has no results folder: use --log memory",
            ),
            (
                villas,
                "--format villas",
                "its offsets would be differences of two clocks: use --format hcabench",
            ),
        ];
        let refused = refusals.into_iter().find(|(is_set, ..)| *is_set);
        refused.map_or(Ok(()), |(_, option, why)| {
            Err(UsageError(format!(
                "{option} is impossible with --peer {peer}: {why}"
            )))
        })
    }

    /// Whether there is nothing to measure with without RDMA devices.
    fn needs_devices(&self) -> bool {
        let named = self.node_type.types.contains(&NodeType::InfiniBand);
        named && (!self.node_type.all || plan::has_devices())
    }

    /// What is to be measured.
    pub(crate) fn assignment(&self) -> Result<Assignment, UsageError> {
        self.check_broker()?;
        self.check_hosts()?;
        Ok(Assignment::Node(Box::new(self.config()), self.points()?))
    }
}

/// Checks values of options that are wrong whatever else is measured.
fn check(arguments: &NodeArguments) -> Result<(), UsageError> {
    let mut refusal = refusal_of_process(&arguments.config());
    if arguments.node_type.types.contains(&NodeType::Multicast) {
        refusal = refusal.or(interface_index(&arguments.multicast_interface).err());
    }
    refusal.map_or(Ok(()), |reason| Err(UsageError(reason)))
}

/// Runs the benchmark. Returns the exit code.
pub(crate) fn run(arguments: &NodeArguments) -> anyhow::Result<u8> {
    check(arguments)?;
    let port = |port: &Option<PortRequest>| port.as_ref().map(PortRequest::to_string);
    let mut run = Record::new();
    arguments.intervals.record(&mut run);
    run.set(&columns::SEED, arguments.seed)
        .set(&columns::DRAIN, arguments.drain.as_nanos() as u64)
        .set(
            &columns::BROKER_CHOICE,
            values::broker_text(&arguments.broker),
        )
        .set(&columns::BROKER_PROCESS, arguments.broker_process)
        .set(&columns::TIMEOUT, arguments.timeout.as_nanos() as u64)
        .set(&columns::HUGE_PAGES, arguments.hugepages.name())
        .set(&columns::FALLBACK, arguments.fallback.map(Fallback::name))
        .set(&columns::MAX_INLINE, arguments.max_inline)
        .set(&columns::UC_ROUTE, arguments.uc_route.name())
        .set(&columns::SENDER, port(&arguments.sender))
        .set(&columns::RECEIVER, port(&arguments.receiver))
        .set(&columns::LOG, arguments.log.name())
        .set(
            &columns::LOG_BUFFER,
            (arguments.log == LogChoice::File).then_some(arguments.log_buffer.0),
        )
        .set(&columns::KEEPS_SAMPLES, arguments.samples)
        .set(
            &columns::FORMAT,
            arguments.samples.then(|| {
                let formats = arguments.formats();
                let names: Vec<&str> = formats.into_iter().map(Format::name).collect();
                names.join(",")
            }),
        );
    let is_far = arguments.between.peer.is_some();
    if let Some(peer) = &arguments.between.peer {
        run.set(&PEER, peer.as_str())
            .set(&PROBES_ASKED, arguments.between.probes());
    }
    driver::run(Request {
        sweep: &arguments.sweep,
        output: &arguments.output,
        find_rate: arguments.search.find_rate.as_ref(),
        assignment: arguments.assignment()?,
        default_rounds: arguments.default_rounds(),
        run,
        needs: match arguments.needs_devices() {
            true => Needs::between_devices(),
            false => Needs::between_threads(),
        },
        view: match is_far {
            false => present::VIEW,
            true => between::VIEW,
        },
    })
}
