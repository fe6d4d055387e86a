//! From the name of a node-type to its ends, and a thread for each of them.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::{Config, TimerKind};
use super::error::{NodeThreadError, RunError};
use super::point::Point;
use super::result::Report;
use super::sample::Epoch;
use super::shared::SharedState;
use super::task::{LogRoom, NodeTask};
use super::timer::{BusyTimer, KernelTimer, Schedule};
use crate::buffer::SharedMemory;
use crate::host::placement::RoleSpec;
use crate::host::{HostError, Placement, Topology, Wakeable};
use crate::node::kind::{MakerInputs, MakerUser};
use crate::node::settings::BrokerAddress;
use crate::node::{Ends, Maker, Node, NodeError, Settings, Side};
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;
use crate::rig::role::Role;
use crate::rig::workers::{Cause, Crew, CrewOutcome, WorkerPlacement};
use crate::sorting::sort_by_key;
use crate::time::Clock;

pub(super) const PUBLISHER: Role = Role::new("publisher", "hcabench-pub");
pub(super) const SUBSCRIBER: Role = Role::new("subscriber", "hcabench-sub");

/// What all ends of a run have in common, in whichever process they are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Common {
    pub(super) point: Point,
    pub(super) config: Config,
    pub(super) epoch: Epoch,
    /// Who distributes the samples, where a broker does.
    pub(super) broker: Option<BrokerAddress>,
    /// A name that no other run has.
    pub(super) name: String,
    /// Whether some ends have the same CPU.
    pub(super) shares_cpu: bool,
    /// The address of this host that ends are reached by.
    pub(super) address: IpAddr,
}

/// What all ends of a process are made with.
#[derive(Debug)]
pub(super) struct Setup<'a> {
    pub(super) common: &'a Common,
    pub(super) shared: &'a Arc<SharedState>,
    /// What the node-type has all ends share.
    pub(super) type_memory: Option<&'a SharedMemory>,
    #[cfg(feature = "rdma")]
    pub(super) fabric: Option<&'a crate::node::infiniband::Fabric>,
    /// Threads that sleep in the kernel.
    pub(super) wakeable: &'a Wakeable,
}

/// The threads of the ends, or those that wait for their processes.
pub(super) type Workers = Crew<Report, NodeThreadError>;

impl Setup<'_> {
    /// Hands the point's node-type to `user` as its own type.
    pub(super) fn visit<U: MakerUser<Error = RunError>>(
        &self,
        user: U,
    ) -> Result<U::Output, RunError> {
        let Common {
            point,
            config,
            broker,
            ..
        } = self.common;
        let settings = &Settings {
            broker: broker.clone(),
            address: self.common.address,
            ..point.settings(config)
        };
        let made_with = MakerInputs {
            wiring: &point.wiring,
            settings,
            name: &self.common.name,
            memory: self.type_memory,
            #[cfg(feature = "rdma")]
            fabric: self.fabric,
        };
        point.node_type.visit(&made_with, user)
    }

    /// What the end of that number is told.
    pub(super) fn task<C: Clock>(&self, clock: C, number: u32, log: LogRoom) -> NodeTask<C> {
        let common = self.common;
        NodeTask {
            number,
            clock,
            epoch: common.epoch,
            config: common.config.clone(),
            shared: Arc::clone(self.shared),
            rate_per_s: common.point.rate_per_s,
            words: common.point.words(),
            yields: common.shares_cpu,
            log,
        }
    }

    /// Starts the thread of a publisher.
    pub(super) fn start_publisher<C: Clock>(
        &self,
        cpu: usize,
        task: NodeTask<C>,
        node: impl Node,
        workers: &mut Workers,
    ) -> Result<(), RunError> {
        let schedule = Schedule::of_rate(&task.clock, task.rate_per_s);
        let (after_miss, seat) = (task.config.after_miss, seat(PUBLISHER, cpu));
        match task.config.timer {
            TimerKind::Counter => {
                let timer = BusyTimer::new(schedule, after_miss);
                let publish = move || task.run_publisher(node, timer).map(Report::Publisher);
                self.start(seat, publish, workers)
            }
            TimerKind::Timerfd => {
                let timer = KernelTimer::new(schedule, after_miss)?;
                let publish = move || task.run_publisher(node, timer).map(Report::Publisher);
                self.start(seat, publish, workers)
            }
        }
    }

    /// Starts the thread of a subscriber.
    pub(super) fn start_subscriber<C: Clock>(
        &self,
        cpu: usize,
        task: NodeTask<C>,
        node: impl Node,
        workers: &mut Workers,
    ) -> Result<(), RunError> {
        let subscribe = move || task.run_subscriber(node).map(Report::Subscriber);
        self.start(seat(SUBSCRIBER, cpu), subscribe, workers)
    }

    fn start(
        &self,
        seat: WorkerPlacement,
        work: impl FnOnce() -> Result<Report, NodeThreadError> + Send + 'static,
        workers: &mut Workers,
    ) -> Result<(), RunError> {
        let wakeable = self.wakeable.clone();
        workers.start(seat, move |reporter| {
            reporter.send(wakeable.during(work)?);
            Ok(())
        })?;
        Ok(())
    }
}

pub(super) fn seat(role: Role, cpu: usize) -> WorkerPlacement {
    WorkerPlacement {
        role,
        cpu,
        priority: None,
    }
}

/// Where the threads of these sides of a point go.
pub(super) fn placement(
    topology: &Topology,
    point: &Point,
    sides: &[Side],
) -> Result<Placement, HostError> {
    let roles = |side: &Side| {
        let (count, role) = match side {
            Side::Publishers => (point.wiring.publishers, PUBLISHER),
            Side::Subscribers => (point.wiring.subscribers, SUBSCRIBER),
        };
        (0..count).map(move |_| RoleSpec::new(role.name, "--cpus", None))
    };
    let all: Vec<RoleSpec> = sides.iter().flat_map(roles).collect();
    Placement::plan(topology, &all)
}

/// Makes all ends in this process, and starts a thread for each.
pub(super) struct InThreads<'a, C> {
    pub(super) setup: &'a Setup<'a>,
    pub(super) clock: C,
    /// The CPUs of the publishers, then those of the subscribers.
    pub(super) cpus: &'a [usize],
    /// Where logs in files go.
    pub(super) folder: &'a Path,
    pub(super) workers: &'a mut Workers,
}

impl<C: Clock> MakerUser for InThreads<'_, C> {
    type Output = ();
    type Error = RunError;

    fn with<M: Maker>(self, maker: &M) -> Result<(), RunError> {
        let (setup, workers) = (self.setup, self.workers);
        let ends = Ends::of(maker, &setup.common.point.wiring)?;
        let task = |number| {
            let log = LogRoom::Own(self.folder.to_path_buf());
            setup.task(self.clock, number, log)
        };
        let (publishers, subscribers) = self.cpus.split_at(ends.publishers.len());
        for ((number, node), &cpu) in (0..).zip(ends.publishers).zip(publishers) {
            setup.start_publisher(cpu, task(number), node, workers)?;
        }
        for ((number, node), &cpu) in (0..).zip(ends.subscribers).zip(subscribers) {
            setup.start_subscriber(cpu, task(number), node, workers)?;
        }
        Ok(())
    }
}

/// Makes ends of one side, and starts a thread for each; those of the other side are elsewhere.
pub(super) struct OneSide<'a, C, L, F> {
    pub(super) setup: &'a Setup<'a>,
    pub(super) clock: C,
    pub(super) side: Side,
    /// Their numbers, and the CPU of each.
    pub(super) ends: &'a [(u32, usize)],
    /// The addresses of all subscribers, for publishers.
    pub(super) subscribers: &'a [Value],
    /// Where an end notes what it sends or receives.
    pub(super) log: L,
    /// Reports the addresses of subscribers, once the ends are made, and returns the crew to which their threads belong.
    pub(super) made: F,
}

impl<C, L, F> MakerUser for OneSide<'_, C, L, F>
where
    C: Clock,
    L: Fn(u32) -> Result<LogRoom, RunError>,
    F: FnOnce(Vec<Value>) -> Result<Workers, RunError>,
{
    type Output = Workers;
    type Error = RunError;

    fn with<M: Maker>(self, maker: &M) -> Result<Workers, RunError> {
        let (setup, clock, ends) = (self.setup, self.clock, self.ends);
        let task = |number| Ok::<_, RunError>(setup.task(clock, number, (self.log)(number)?));
        match self.side {
            Side::Publishers => {
                let subscribers = addresses::<M>(self.subscribers)?;
                let made = ends
                    .iter()
                    .map(|&(number, _)| maker.publisher(number, &subscribers));
                let nodes: Vec<_> = made.collect::<Result<_, NodeError>>()?;
                let mut workers = (self.made)(Vec::new())?;
                for (node, &(number, cpu)) in nodes.into_iter().zip(ends) {
                    setup.start_publisher(cpu, task(number)?, node, &mut workers)?;
                }
                Ok(workers)
            }
            Side::Subscribers => {
                let (mut nodes, mut addresses) = (Vec::new(), Vec::new());
                for &(number, _) in ends {
                    let (node, address) = maker.subscriber(number)?;
                    nodes.push(node);
                    addresses.push(serde_json::to_value(address).map_err(misunderstood)?);
                }
                let mut workers = (self.made)(addresses)?;
                for (node, &(number, cpu)) in nodes.into_iter().zip(ends) {
                    setup.start_subscriber(cpu, task(number)?, node, &mut workers)?;
                }
                Ok(workers)
            }
        }
    }
}

/// The addresses of subscribers, as their processes have reported them.
pub(super) fn addresses<M: Maker>(reported: &[Value]) -> Result<Vec<M::Address>, Failure> {
    let all = reported.iter().cloned().map(serde_json::from_value);
    all.collect::<Result<_, _>>().map_err(misunderstood)
}

/// What came from another process has another form than expected.
pub(super) fn misunderstood(error: serde_json::Error) -> Failure {
    Failure::Run(format!(
        "the process of an end got an invalid message: {error}: where it comes from another host, use the same build of \
         hcabench on both"
    ))
}

/// The reports of all workers, in the order in which they were started, or why there are none.
pub(super) fn finished(
    collected: CrewOutcome<Report, NodeThreadError, RunError>,
) -> Result<Vec<Report>, RunError> {
    match collected.cause {
        Some(Cause::Signal(signal)) => return Err(RigError::Interrupted(signal).into()),
        Some(Cause::Watch(reason)) => return Err(reason),
        Some(Cause::Worker) | None => {}
    }
    // Of several failures, some are only that another end has failed.
    let (stopped, others): (Vec<_>, Vec<_>) =
        (collected.failures.into_iter()).partition(|(_, error)| {
            matches!(
                error,
                NodeThreadError::Stopped
                    | NodeThreadError::Node(NodeError::GivenUp | NodeError::PeerEnded(_))
            )
        });
    if let Some((role, error)) = others.into_iter().chain(stopped).next() {
        return Err(match error {
            NodeThreadError::Node(error @ (NodeError::Setting(_) | NodeError::NoBroker(_))) => {
                RunError::Node(error)
            }
            NodeThreadError::Process(Failure::Usage(text)) => {
                RunError::Node(NodeError::Setting(text))
            }
            error => RunError::Thread(role, error),
        });
    }
    let mut reports = collected.reports;
    sort_by_key(&mut reports, |(place, _)| *place);
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}
