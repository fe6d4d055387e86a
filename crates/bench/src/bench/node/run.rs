//! One run of a point: its ends, and what they report.

use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::analysis::Judge;
use super::between::message::LOOK;
use super::between::remote::{FarEnd, FarRun, Remote};
use super::broker::{BrokerUsage, RunBroker};
use super::config::{Config, RunsAs};
use super::ends::{Common, InThreads, OneSide, Setup, finished, placement};
use super::error::RunError;
use super::point::Point;
use super::process::{self, Processes};
use super::result::{Reports, RunOutcome};
use super::running_latency::RunningLatency;
use super::sample::Epoch;
use super::shared::SharedState;
use super::task::LogRoom;
use crate::host::throttling::{ThrottleCounters, ThrottlingRecord};
use crate::host::{Placement, Topology, Wakeable, interrupt, pinning};
use crate::node::{NodeError, Side};
use crate::rig::benchmark::Progress;
use crate::rig::error::RigError;
use crate::rig::workers::{Crew, SupervisorTimeouts};
use crate::time::{AnyClock, Clock, ClockUser};

/// Beside warm-up, measurement and drain: memory, threads, and what the end takes.
const BESIDE: Duration = Duration::from_secs(30);

/// What a run came to.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) outcome: RunOutcome,
    pub(super) reports: Reports,
    pub(super) epoch: Epoch,
    pub(super) placement: Placement,
    /// The other host's part, if there is one.
    pub(super) far: Option<FarEnd>,
    /// What the broker took, if its process is known.
    pub(super) broker: Option<BrokerUsage>,
    /// What CPU quotas did behind the warm-up.
    pub(super) throttled: ThrottlingRecord,
}

/// Makes runs on this machine.
#[derive(Debug)]
pub(super) struct NodeMachine {
    pub(super) topology: Topology,
    pub(super) clock: AnyClock,
    wakeable: Wakeable,
    /// Whether a broker that was named has carried a run.
    broker_has_served: Cell<bool>,
    /// The other host, if there is one.
    pub(super) remote: Option<RefCell<Remote>>,
    /// There if a point needs it.
    #[cfg(feature = "rdma")]
    pub(super) fabric: Option<crate::node::infiniband::Fabric>,
}

impl NodeMachine {
    pub(super) fn new(config: &Config) -> Result<Self, RunError> {
        Ok(NodeMachine {
            #[cfg(feature = "rdma")]
            fabric: None,
            topology: Topology::read()?,
            clock: AnyClock::prepare(config.timer.clock()).map_err(RigError::Clock)?,
            wakeable: Wakeable::new()?,
            broker_has_served: Cell::new(false),
            remote: (config.peer.as_ref())
                .map(|asked| Remote::connect(asked).map(RefCell::new))
                .transpose()?,
        })
    }

    /// Where the threads of a point go.
    pub(super) fn placement(&self, point: &Point) -> Result<Placement, RunError> {
        let sides: &[Side] = match self.remote {
            None => &[Side::Publishers, Side::Subscribers],
            Some(_) => &[Side::Publishers],
        };
        Ok(placement(&self.topology, point, sides)?)
    }

    pub(super) fn run(
        &self,
        point: &Point,
        config: &Config,
        folder: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Run, RunError> {
        process::needs(point, config).require("its ends")?;
        if self.remote.is_some() {
            point.node_type.needs(2, 2).require("its probes")?;
        }
        let placement = self.placement(point)?;
        // The rest of the process stays off the CPUs of the ends, where there are others.
        pinning::pin_current_thread_to(&placement.supervisor)?;
        self.clock.visit(NodeRun {
            machine: self,
            point,
            config,
            folder,
            placement,
            progress,
        })
    }
}

struct NodeRun<'a> {
    machine: &'a NodeMachine,
    point: &'a Point,
    config: &'a Config,
    folder: &'a Path,
    placement: Placement,
    progress: &'a mut dyn FnMut(Progress),
}

impl ClockUser for NodeRun<'_> {
    type Output = Result<Run, RunError>;

    fn with<C: Clock>(self, clock: C) -> Result<Run, RunError> {
        let (point, config, folder) = (self.point, self.config, self.folder);
        let memory = SharedState::memory(&point.wiring)?;
        let shared = Arc::new(SharedState::new(point.wiring, &memory)?);
        let in_processes = point.ends == RunsAs::Processes;
        let settings = point.settings(config);
        let type_memory =
            (point.node_type).shared_memory(&point.wiring, &settings, in_processes)?;
        let mut broker = RunBroker::start(point, config)?;
        let common = Common {
            point: *point,
            config: config.clone(),
            epoch: Epoch::of(&clock),
            broker: broker.address().cloned(),
            name: unique_name(),
            shares_cpu: self.placement.shares_cpu(),
            address: match &self.machine.remote {
                None => Ipv4Addr::LOCALHOST.into(),
                Some(remote) => remote.borrow_mut().address()?,
            },
        };
        // Dropped last, when all ends have gone.
        #[cfg(feature = "iceoryx2")]
        let _files = (point.node_type == crate::node::NodeType::Iceoryx2)
            .then(|| crate::node::iceoryx2::RunFiles::new(&common.name))
            .transpose()?;
        let epoch = common.epoch;
        let cpus: Vec<usize> = self.placement.cpus.iter().copied().flatten().collect();
        let setup = Setup {
            common: &common,
            shared: &shared,
            type_memory: type_memory.as_ref(),
            #[cfg(feature = "rdma")]
            fabric: self.machine.fabric.as_ref(),
            wakeable: &self.machine.wakeable,
        };
        let far = self.machine.remote.as_ref();
        let mut far = far
            .map(|remote| FarRun::make(remote.borrow_mut(), &setup, clock, cpus[0]))
            .transpose()?;
        // Before signals are held back, which children would inherit.
        let made = match point.ends {
            RunsAs::Threads => None,
            RunsAs::Processes => {
                let clock = &self.machine.clock;
                Some(Processes::start(&setup, clock, &memory, &cpus, folder)?)
            }
        };
        let mut workers = Crew::new(&shared)?;
        let processes = match (made, &mut far) {
            (None, Some(far)) => {
                let ends: Vec<(u32, usize)> = (0..).zip(cpus.iter().copied()).collect();
                workers = setup.visit(OneSide {
                    setup: &setup,
                    clock,
                    side: Side::Publishers,
                    ends: &ends,
                    subscribers: far.subscribers(),
                    log: |_| Ok(LogRoom::Own(folder.to_path_buf())),
                    made: |_| Ok(workers),
                })?;
                far.begin()?;
                None
            }
            (None, None) => {
                setup.visit(InThreads {
                    setup: &setup,
                    clock,
                    cpus: &cpus,
                    folder,
                    workers: &mut workers,
                })?;
                None
            }
            (Some(made), _) => {
                let cpu = self.placement.supervisor.first();
                Some(made.follow(cpu.unwrap_or(cpus[0]), &mut workers)?)
            }
        };
        let limit = longest_silence(point, config);
        let (mut received, mut since) = (0, Instant::now());
        let expected = (config.steps(point.rate_per_s))
            .saturating_mul(u64::from(point.wiring.publishers))
            .saturating_mul(point.wiring.copies());
        // Ends that are processes are in the same groups.
        let mut throttling = ThrottleCounters::open();
        let mut running = RunningLatency::new(clock, epoch, point.wiring.subscribers);
        let watch = || {
            if !shared.all_count() {
                // Of the warm-up at most what lies between two looks counts.
                throttling.begin();
            }
            let done = shared.received().min(expected);
            let figures = config.tells_progress.then(|| {
                processes.iter().for_each(|it| it.show_logs(&shared));
                running.look(&shared)
            });
            (self.progress)(Progress {
                done,
                of: expected,
                text: (figures.flatten())
                    .map(|figures| format!("{figures}, {done} of {expected} messages")),
            });
            let is_measured = shared.received() > 0 && !shared.publishers_ended();
            let gone = broker.look(is_measured).map(RunError::BrokerGone);
            let gone = gone.or_else(|| far.as_mut()?.look(&shared));
            let come = (far.as_ref()).map_or_else(|| shared.received(), FarRun::received);
            if come != received {
                (received, since) = (come, Instant::now());
            }
            gone.or_else(|| (since.elapsed() >= limit).then_some(RunError::Silent { limit }))
        };
        let told = || {
            self.machine.wakeable.wake();
            processes.iter().for_each(Processes::pass_on_signal);
        };
        let usual = SupervisorTimeouts::default();
        let patience = SupervisorTimeouts {
            look: match self.machine.remote {
                None => usual.look,
                Some(_) => LOOK,
            },
            ..usual
        };
        let collected = workers.collect_under(&interrupt::requested, &patience, watch, told)?;
        let throttled = throttling.record();
        let served = &self.machine.broker_has_served;
        let has_answered = served.get() || shared.run.ready() > 0;
        let reports = finished(collected).map_err(|error| match error {
            // It is no wrong one.
            RunError::Node(NodeError::NoBroker(reason)) if broker.is_ours() || has_answered => {
                RunError::BrokerGone(reason)
            }
            error @ RunError::Thread(..) => {
                let cause = far.as_mut().and_then(|far| far.root_cause(&shared));
                cause.unwrap_or(error)
            }
            error => error,
        })?;
        served.set(served.get() || broker.address().is_some());
        workers.dismiss(SupervisorTimeouts::default().grace);
        // Signals are no longer held back: waits for the other host see them.
        drop(workers);
        let mut reports = Reports::of(reports);
        if let Some(processes) = &processes {
            processes.add_logs(&mut reports, &shared)?;
        }
        let far = match far {
            None => None,
            Some(far) => {
                let (received, far) = far.finish(&setup, clock, &reports.publishers, folder)?;
                reports.subscribers = received;
                Some(far)
            }
        };
        let judge = Judge {
            clock,
            epoch,
            wiring: point.wiring,
            is_far: far.is_some(),
            is_timed: config.interval(point.rate_per_s).is_some(),
        };
        Ok(Run {
            outcome: judge.outcome(&reports)?,
            reports,
            epoch,
            placement: self.placement,
            far,
            broker: broker.spent(),
            throttled,
        })
    }
}

/// A name for topics and clients that no other run has.
fn unique_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_nanos());
    format!("hcabench-{:x}-{since:x}", std::process::id())
}

/// How long a run takes, if nothing has to be waited for.
pub(super) fn usual(point: &Point, config: &Config) -> Duration {
    let warmup = config.warmup_steps(point.rate_per_s) as f64 / point.rate_per_s;
    let warmup = Duration::try_from_secs_f64(warmup).unwrap_or(Duration::MAX);
    config.lasts(point.rate_per_s).saturating_add(warmup)
}

/// How long nothing may arrive: connecting, whoever does it in the end, the warm-up, a period of a low rate, and what is
/// under way at the end. A run that makes up for missed steps may take as long as it takes.
fn longest_silence(point: &Point, config: &Config) -> Duration {
    let period = Duration::try_from_secs_f64(1.0 / point.rate_per_s).unwrap_or(Duration::MAX);
    let connecting = match point.node_type.connects_ends() {
        true => point.settings(config).patience(&point.wiring),
        false => config.timeout,
    };
    (config.warmup.saturating_add(period))
        .saturating_mul(2)
        .saturating_add(connecting)
        .saturating_add(config.drain)
        .saturating_add(BESIDE)
}
