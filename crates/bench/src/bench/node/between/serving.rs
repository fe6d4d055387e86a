//! The process that is asked: it makes the subscribers of each point, and answers probes before and after.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::message::{
    HostName, LOOK, NodeMessage, NotedSamples, Order, PreparedHost, PreparedPoint, RunOver,
};
use super::probing::{MakeReceiver, MakeSender, ProbeEnds, of_probes};
use crate::bench::node::config::{Config, LogPlace, MOST_ENDS, PublishingLength, RunsAs};
use crate::bench::node::ends::{Common, OneSide, Setup, Workers, finished, placement};
use crate::bench::node::error::RunError;
use crate::bench::node::log::Log;
use crate::bench::node::point::Point;
use crate::bench::node::result::{ReceivedSample, Report, SubscriberReport};
use crate::bench::node::shared::{FarState, SharedState};
use crate::bench::node::task::LogRoom;
#[cfg(feature = "rdma")]
use crate::bench::node::verbs::ServedPort;
use crate::bench::node::{plan, process, rows, subscriber};
use crate::between::error::PeerError;
use crate::between::listening::Served;
use crate::between::message::{next, only, send_message, take};
use crate::between::peer::Hello;
use crate::between::time_of_day::TimeOfDayOffset;
use crate::host::machine_name::machine_name;
use crate::host::pinning::{self, on_cpu};
use crate::host::throttling::ThrottleCounters;
use crate::host::{MemoryLock, Topology, Wakeable, interrupt};
use crate::launch::wire::{Wire, WireError};
use crate::node::{NodeType, Side};
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;
use crate::rig::findings::of_placement;
use crate::rig::memory::{Allowance, MemoryNeed};
use crate::rig::named::Named as _;
#[cfg(feature = "rdma")]
use crate::rig::ports::PortRequest;
use crate::rig::workers::{Crew, SupervisorTimeouts};
use crate::time::{AnyClock, Clock, ClockKind, ClockUser};

/// How often the other host is told how far the subscribers are, where nothing has changed but their count.
const TELL: Duration = Duration::from_millis(100);
/// How long the other host may be silent while something runs here for it.
const SILENCE: Duration = Duration::from_secs(15);
/// How long probes may take.
const PROBING: Duration = Duration::from_secs(30);
/// How often the connection is looked at while probes are answered: it costs a system call.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// The most values of a sample: those of `--values`.
const MOST_VALUES: u32 = 4096;
/// The same of `--send-queue` and `--receive-queue`, and of `--vectorize`.
const MOST_QUEUED: u32 = 1_000_000;
const MOST_AT_ONCE: usize = 4096;
/// The longest `--timeout`.
const DAY: Duration = Duration::from_secs(86_400);
/// The most probes of a run, in two phases: those of `--probes`.
const MOST_PROBES: u32 = 2 * 100_000;

/// Has subscribers for other hosts.
#[derive(Debug)]
pub struct NodeService {
    /// The port of infiniband, unless the other host names one.
    #[cfg(feature = "rdma")]
    pub receiver: Option<PortRequest>,
}

impl Served for NodeService {
    fn check(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn refusal(&self, _hello: &Hello) -> Option<Failure> {
        None
    }

    fn serve(&self, wire: &mut Wire, _hello: &Hello) -> Result<(), Failure> {
        let serving = |topology| Serving {
            topology,
            clock: None,
            #[cfg(feature = "rdma")]
            port: ServedPort::new(self.receiver.clone()),
        };
        let topology = Topology::read().map_err(RunError::from);
        match topology.and_then(|topology| serving(topology).until_closed(wire)) {
            Err(RunError::Peer(PeerError::Wire(WireError::Closed(_)))) | Ok(()) => Ok(()),
            Err(error) => {
                let failure = Failure::from(error);
                // Who has gone cannot be told.
                let _ = send_message(wire, &NodeMessage::Failed(failure.clone()));
                Err(failure)
            }
        }
    }
}

/// A connection that is served.
struct Serving {
    /// Of the CPUs that this thread may use, before it left those of a point.
    topology: Topology,
    clock: Option<AnyClock>,
    #[cfg(feature = "rdma")]
    port: ServedPort,
}

impl Serving {
    /// Does what the other host asks.
    fn until_closed(&mut self, wire: &mut Wire) -> Result<(), RunError> {
        let (host, boot_id) = machine_name();
        let types = NodeType::ALL.iter().filter(|it| is_served(**it));
        let types = types.map(|it| it.name().to_owned()).collect();
        let welcome = NodeMessage::Welcome(HostName { host, boot_id }, wire.is_exposed(), types);
        send_message(wire, &welcome)?;
        loop {
            let message = next(wire)?;
            self.respond(wire, message)?;
        }
    }

    fn respond(&mut self, wire: &mut Wire, message: NodeMessage) -> Result<(), RunError> {
        match message {
            NodeMessage::Prepare(config, point) => {
                check(&point)?;
                check_config(&config)?;
                self.clock(config.timer.clock())?;
                let raised = MemoryLock::raise().or_else(|_| MemoryLock::read());
                raised.map_err(RunError::from)?;
                placement(&self.topology, &point, &[Side::Subscribers])?;
                let prepared = self.host_for(&point, &config)?;
                Ok(send_message(
                    wire,
                    &NodeMessage::Prepared(Box::new(prepared)),
                )?)
            }
            NodeMessage::Point(order) => {
                let Common {
                    point,
                    config,
                    broker,
                    ..
                } = &order.common;
                check(point)?;
                if point.node_type.broker().is_some() && broker.is_none() {
                    return Err(refused(&format!("the point {point} without a broker")));
                }
                check_config(config)?;
                let clock = self.clock(config.timer.clock())?;
                #[cfg(feature = "rdma")]
                if point.node_type == NodeType::InfiniBand
                    && let Some(reason) = self.port.refusal(point, config)?
                {
                    return Err(Failure::Run(reason).into());
                }
                clock.visit(ServedRun {
                    serving: self,
                    wire,
                    order: *order,
                })
            }
            other => Ok(take(wire, other, only!(NodeMessage::PointOver => ()))?),
        }
    }

    /// What this host has for a point beside its clock and its CPUs. Where no port was named, it may lack one.
    fn host_for(&mut self, point: &Point, config: &Config) -> Result<PreparedHost, RunError> {
        #[cfg(feature = "rdma")]
        if point.node_type == NodeType::InfiniBand {
            let may_lack = config.verbs.receiver.is_none();
            let refusal = match self.port.refusal(point, config) {
                Err(error) if may_lack && !error.is_shortage() => Some(error.to_string()),
                found => found?,
            };
            let fabric = self.port.fabric();
            return Ok(PreparedHost {
                device: fabric.map(|fabric| fabric.pair().receiver.details()),
                refusal,
            });
        }
        let _ = (point, config);
        Ok(PreparedHost::default())
    }

    fn clock(&mut self, kind: ClockKind) -> Result<AnyClock, RunError> {
        let clock = match self.clock {
            Some(clock) if clock.kind() == kind => clock,
            _ => AnyClock::prepare(kind).map_err(RigError::Clock)?,
        };
        self.clock = Some(clock);
        Ok(clock)
    }
}

/// Whether this host can have subscribers of a node-type for another one.
fn is_served(node_type: NodeType) -> bool {
    node_type.refusal_between_hosts().is_none()
        && node_type.refusal_of_library().is_none()
        && (node_type != NodeType::InfiniBand || plan::has_devices())
}

/// Refuses a point that no command line has: what is asked comes over the network.
fn check(point: &Point) -> Result<(), RunError> {
    let (wiring, ends) = (&point.wiring, 1..=MOST_ENDS);
    let possible = ends.contains(&wiring.publishers)
        && ends.contains(&wiring.subscribers)
        && wiring.refusal().is_none()
        && (1..=MOST_VALUES).contains(&point.values)
        && point.rate_per_s > 0.0
        && point.ends == RunsAs::Threads
        && is_served(point.node_type);
    match possible {
        true => Ok(()),
        false => Err(refused(&format!("the point {point}"))),
    }
}

/// The same of its queues, which take memory, and of its time limit.
fn check_config(config: &Config) -> Result<(), RunError> {
    let possible = (1..=MOST_QUEUED).contains(&config.receive_queue)
        && (1..=MOST_QUEUED).contains(&config.send_queue)
        && (1..=MOST_AT_ONCE).contains(&config.vectorize)
        && (Duration::from_millis(1)..=DAY).contains(&config.timeout);
    match possible {
        true => Ok(()),
        false => Err(refused(&format!(
            "--receive-queue {}, --send-queue {}, --vectorize {} (1 to {MOST_QUEUED}, {MOST_QUEUED} and {MOST_AT_ONCE}) and \
             --timeout {:?} (1 ms to a day)",
            config.receive_queue, config.send_queue, config.vectorize, config.timeout
        ))),
    }
}

/// The same of probes.
fn check_probes(first: u32, count: u32) -> Result<(), RunError> {
    match first.checked_add(count) {
        Some(..=MOST_PROBES) => Ok(()),
        _ => Err(refused(&format!(
            "{count} probes from number {first} on (up to {MOST_PROBES} of a run)"
        ))),
    }
}

/// That something was asked for over the network which no command line asks for.
fn refused(what: &str) -> RunError {
    Failure::Usage(format!(
        "the other host asked for {what}, which `hcabench node --peer` does not: it is another program or another \
         build: start the same build of hcabench on both hosts"
    ))
    .into()
}

/// The settings of the subscribers: they note the warm-up as well, in memory.
fn of_subscribers(config: &Config, rate_per_s: f64) -> Config {
    let steps = config.steps(rate_per_s);
    let all = steps.saturating_add(config.warmup_steps(rate_per_s));
    Config {
        length: PublishingLength::Count(all),
        log: LogPlace::Memory,
        ..config.clone()
    }
}

/// What the subscribers of a point take.
fn needs(common: &Common) -> [MemoryNeed; 2] {
    let Common { point, config, .. } = common;
    let steps = config.steps(point.rate_per_s);
    let log = |number| {
        let entries = subscriber::entries(&point.wiring, steps, number);
        Log::<{ ReceivedSample::WORDS }>::memory(config.log, entries, config.huge_pages).0
    };
    let bytes = (0..point.wiring.subscribers).map(log);
    let slots = u64::from(point.wiring.subscribers) * subscriber::slots(config) as u64;
    [
        MemoryNeed {
            what: "logs of subscribers",
            bytes: bytes.fold(0, u64::saturating_add),
        },
        MemoryNeed {
            what: "samples",
            bytes: slots.saturating_mul(rows::slot_bytes(point)),
        },
    ]
}

/// Refuses subscribers that take more memory than there is.
fn check_memory(common: &Common) -> Result<(), RunError> {
    let Common { point, config, .. } = common;
    let steps = config.steps(point.rate_per_s);
    let options = format!("--rate {} for {steps} steps", point.rate_per_s);
    let advice = "lower --count, --duration, --warmup, --rate, --receive-queue, --publishers or --subscribers";
    let allowed = Allowance::of_this_process();
    let checked = allowed.map_or(Ok(()), |it| it.require(&needs(common), &options, advice));
    Ok(checked.map_err(RigError::Memory)?)
}

/// A point that is served, on a clock.
struct ServedRun<'a> {
    serving: &'a Serving,
    wire: &'a mut Wire,
    order: Order,
}

impl ClockUser for ServedRun<'_> {
    type Output = Result<(), RunError>;

    fn with<C: Clock>(self, clock: C) -> Result<(), RunError> {
        let ServedRun {
            serving,
            wire,
            order,
        } = self;
        let mut common = order.common;
        let point = common.point;
        common.config = of_subscribers(&common.config, point.rate_per_s);
        common.address = wire.local()?.ip().to_canonical();
        check_memory(&common)?;
        process::needs(&point, &common.config).require("its subscribers")?;
        point.node_type.needs(2, 2).require("its probes")?;
        let placement = placement(&serving.topology, &point, &[Side::Subscribers])?;
        common.shares_cpu = placement.shares_cpu();
        pinning::pin_current_thread_to(&placement.supervisor)?;
        let memory = SharedState::memory(&point.wiring)?;
        let shared = Arc::new(SharedState::new(point.wiring, &memory)?);
        shared.count_all();
        let wakeable = Wakeable::new()?;
        let setup = Setup {
            common: &common,
            shared: &shared,
            type_memory: None,
            #[cfg(feature = "rdma")]
            fabric: serving.port.fabric(),
            wakeable: &wakeable,
        };
        let cpus = placement.cpus.iter().copied().flatten();
        let ends: Vec<(u32, usize)> = (0..).zip(cpus).collect();
        let mut probes = AnsweredProbes::make(&setup, clock, order.answer_to, ends[0].1)?;
        let made = |subscribers: Vec<Value>| -> Result<Workers, RunError> {
            let made = PreparedPoint {
                subscribers,
                probes: probes.address.take().unwrap_or_default(),
                cpus: placement.cpus.clone(),
                time_of_day: TimeOfDayOffset::of(&clock),
                findings: of_placement(&placement.warnings).collect(),
            };
            send_message(wire, &NodeMessage::Made(Box::new(made)))?;
            loop {
                match next(wire)? {
                    NodeMessage::Probe { first, count } => {
                        check_probes(first, count)?;
                        probes.answer(wire)?;
                    }
                    other => {
                        take(wire, other, only!(NodeMessage::Begin => ()))?;
                        return Ok(Crew::new(&shared)?);
                    }
                }
            }
        };
        let mut workers = setup.visit(OneSide {
            setup: &setup,
            clock,
            side: Side::Subscribers,
            ends: &ends,
            subscribers: &[],
            log: |_| Ok(LogRoom::Own(PathBuf::new())),
            made,
        })?;
        let mut throttling = ThrottleCounters::open();
        throttling.begin();
        let mut relay = Relay {
            wire: &mut *wire,
            probes: &mut probes.ends,
            shared: &shared,
            told: (FarState::default(), Instant::now()),
            untold: shared.untold(),
            heard: Instant::now(),
        };
        let patience = SupervisorTimeouts {
            look: LOOK,
            ..SupervisorTimeouts::default()
        };
        let watch = || relay.pass_on().err().map(RunError::from);
        let collected = workers.collect_under(&interrupt::requested, &patience, watch, || {
            wakeable.wake();
        })?;
        let reports = finished(collected)?;
        workers.dismiss(patience.grace);
        // Signals are no longer held back: waits for the other host see them.
        drop(workers);
        let subscribers: Vec<SubscriberReport> =
            reports.into_iter().filter_map(of_report).collect();
        let noted = |report: &SubscriberReport| NotedSamples {
            count: report.log.len(),
            overflown: report.overflown,
            pool_is_whole: report.pool_is_whole,
            pages: report.log.page_kind(),
        };
        let over = RunOver {
            subscribers: subscribers.iter().map(noted).collect(),
            throttled: throttling.record(),
        };
        let far = shared.far_state(&mut relay.untold);
        send_message(wire, &NodeMessage::Far(far))?;
        send_message(wire, &NodeMessage::Over(Box::new(over)))?;
        loop {
            match next(wire)? {
                NodeMessage::Probe { first, count } => {
                    check_probes(first, count)?;
                    probes.answer(wire)?;
                }
                NodeMessage::Fetch { subscriber, from } => {
                    let entries = match subscribers.get(subscriber as usize) {
                        Some(report) => entries(report, from, &clock)?,
                        None => Vec::new(),
                    };
                    send_message(wire, &NodeMessage::Noted(entries))?;
                }
                // Of the run that is over.
                NodeMessage::Waiting | NodeMessage::Published(_) => {}
                other => return Ok(take(wire, other, only!(NodeMessage::PointOver => ()))?),
            }
        }
    }
}

fn of_report(report: Report) -> Option<SubscriberReport> {
    match report {
        Report::Subscriber(report) => Some(report),
        Report::Publisher(_) => None,
    }
}

/// Entries of a log, with their stamps in nanoseconds.
fn entries<C: Clock>(
    report: &SubscriberReport,
    from: usize,
    clock: &C,
) -> Result<Vec<[u64; ReceivedSample::WORDS]>, RunError> {
    let mut entries = report.log.read(from)?;
    for entry in &mut entries {
        let mut sample = ReceivedSample::of_words(*entry);
        sample.stamp.0 = clock.to_nanos(sample.stamp).0;
        *entry = sample.to_words();
    }
    Ok(entries)
}

/// What a running point passes on to the other host, and from there.
struct Relay<'a> {
    wire: &'a mut Wire,
    probes: &'a mut ProbeEnds,
    shared: &'a SharedState,
    /// What the other host was told, and when.
    told: (FarState, Instant),
    /// The greetings that it was not told of.
    untold: Vec<usize>,
    heard: Instant,
}

impl Relay<'_> {
    fn pass_on(&mut self) -> Result<(), PeerError> {
        while let Some(message) = self.wire.poll(Duration::ZERO)? {
            self.heard = Instant::now();
            match message {
                NodeMessage::Waiting => {}
                other => {
                    let published = only!(NodeMessage::Published(sent) => sent);
                    let sent = take(self.wire, other, published)?;
                    self.shared.end_all(&sent);
                }
            }
        }
        if self.heard.elapsed() > SILENCE {
            return Err(self.wire.unanswered(SILENCE).into());
        }
        let kept = self.probes.keep();
        kept.map_err(|error| PeerError::Here(format!("the probes: {error}")))?;
        let far = self.shared.far_state(&mut self.untold);
        let since = self.told.1.elapsed();
        if since >= TELL || far.has_news(&self.told.0) {
            send_message(self.wire, &NodeMessage::Far(far.clone()))?;
            self.told = (far, Instant::now());
        }
        Ok(())
    }
}

/// The probes, at the end that answers.
struct AnsweredProbes {
    ends: ProbeEnds,
    /// The address to which they are sent, until that was told.
    address: Option<Value>,
    cpu: usize,
}

impl AnsweredProbes {
    fn make<C: Clock>(
        setup: &Setup<'_>,
        clock: C,
        answer_to: Value,
        cpu: usize,
    ) -> Result<Self, RunError> {
        let [there, back] = ["there", "back"].map(|way| of_probes(setup.common, way));
        let (receives, address) = Setup {
            common: &there,
            ..*setup
        }
        .visit(MakeReceiver {
            clock,
            probes: &there,
        })?;
        let sends = Setup {
            common: &back,
            ..*setup
        }
        .visit(MakeSender {
            clock,
            probes: &back,
            to: answer_to,
        })?;
        Ok(AnsweredProbes {
            ends: ProbeEnds::new(sends, receives),
            address: Some(address),
            cpu,
        })
    }

    /// Answers until the other host says that probes are over.
    fn answer(&mut self, wire: &mut Wire) -> Result<(), RunError> {
        send_message(wire, &NodeMessage::Answering)?;
        let (begun, mut looked) = (Instant::now(), Instant::now());
        let mut over = None;
        let ends = &mut self.ends;
        let answered = on_cpu(self.cpu, || {
            ends.answer(&mut || {
                if over.is_none() && looked.elapsed() >= BETWEEN_LOOKS {
                    looked = Instant::now();
                    over = match wire.poll::<NodeMessage>(Duration::ZERO) {
                        Ok(None) if begun.elapsed() > PROBING => {
                            Some(Err(wire.unanswered(PROBING).into()))
                        }
                        Ok(None) => None,
                        Ok(Some(message)) => {
                            Some(take(wire, message, only!(NodeMessage::ProbesOver => ())))
                        }
                        Err(error) => Some(Err(error.into())),
                    };
                }
                over.is_none()
            })
        })?;
        over.unwrap_or(Ok(()))?;
        Ok(send_message(wire, &NodeMessage::Probed(answered?))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_beyond_those_of_a_run_are_refused() {
        for (first, count) in [(0, 10), (100_000, 100_000)] {
            check_probes(first, count).unwrap();
        }
        for (first, count) in [(100_000, 100_001), (u32::MAX, 1), (1, u32::MAX)] {
            let told = check_probes(first, count).unwrap_err().to_string();
            assert!(
                told.contains(&format!("{count} probes from number {first}")),
                "{told}"
            );
        }
    }
}
