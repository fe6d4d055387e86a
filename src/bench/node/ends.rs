//! From the name of a node-type to its ends, and a thread for each of them.

use std::path::Path;
use std::sync::Arc;

use super::config::{Config, TimerKind};
use super::error::{RunError, ThreadError};
use super::plan::Point;
use super::result::Report;
use super::sample::Epoch;
use super::shared::Shared;
use super::timer::{BusyTimer, KernelTimer, Schedule, Timer};
use super::{publisher, subscriber};
use crate::host::Wakeable;
#[cfg(feature = "mqtt")]
use crate::node::mqtt;
use crate::node::settings::BrokerAddress;
#[cfg(feature = "zeromq")]
use crate::node::zeromq;
use crate::node::{Ends, Node, NodeType, Settings, rings, udp};
use crate::rig::error::RigError;
use crate::rig::role::Role;
use crate::rig::workers::{Crew, Seat};
use crate::time::Clock;

pub(super) const PUBLISHER: Role = Role::new("publisher", "hcabench-pub");
pub(super) const SUBSCRIBER: Role = Role::new("subscriber", "hcabench-sub");

/// What all threads of a run are started with.
pub(super) struct Launch<'a> {
    pub(super) point: &'a Point,
    pub(super) config: &'a Config,
    /// Where logs in files go.
    pub(super) folder: &'a Path,
    pub(super) shared: &'a Arc<Shared>,
    /// Who distributes the samples, where a broker does.
    pub(super) broker: Option<&'a BrokerAddress>,
    /// The CPUs of the publishers, then those of the subscribers.
    pub(super) cpus: &'a [usize],
    /// Whether some of these are the same.
    pub(super) shares_cpu: bool,
    /// Those that sleep in the kernel.
    pub(super) wakeable: &'a Wakeable,
    #[cfg(feature = "rdma")]
    pub(super) fabric: Option<&'a crate::node::infiniband::Fabric>,
}

type Threads = Crew<Report, ThreadError>;

impl Launch<'_> {
    /// Makes the ends of the point's node-type and starts a thread for each.
    pub(super) fn start<C: Clock>(
        &self,
        clock: C,
        epoch: Epoch,
        threads: &mut Threads,
    ) -> Result<(), RunError> {
        let wiring = &self.point.wiring;
        let settings = Settings {
            broker: self.broker.cloned(),
            ..self.point.settings(self.config)
        };
        match self.point.node_type {
            NodeType::Loopback => {
                self.start_ends(clock, epoch, rings::loopback(wiring, &settings)?, threads)
            }
            NodeType::Shmem => {
                self.start_ends(clock, epoch, rings::shmem(wiring, &settings)?, threads)
            }
            #[cfg(feature = "rdma")]
            NodeType::InfiniBand => {
                let fabric = self.fabric.expect("the ports were chosen before");
                let ends = crate::node::infiniband::ends(fabric, wiring, &settings)?;
                self.start_ends(clock, epoch, ends, threads)
            }
            #[cfg(not(feature = "rdma"))]
            NodeType::InfiniBand => unreachable!("it is refused without the feature rdma"),
            NodeType::Udp => self.start_ends(clock, epoch, udp::ends(wiring, &settings)?, threads),
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => {
                self.start_ends(clock, epoch, mqtt::ends(wiring, &settings)?, threads)
            }
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => {
                self.start_ends(clock, epoch, zeromq::ends(wiring, &settings)?, threads)
            }
        }
    }

    fn start_ends<C: Clock, P: Node, S: Node>(
        &self,
        clock: C,
        epoch: Epoch,
        ends: Ends<P, S>,
        threads: &mut Threads,
    ) -> Result<(), RunError> {
        let mut cpus = self.cpus.iter();
        let mut seat = |role| Seat {
            role,
            cpu: *cpus.next().expect("there is a CPU for each end"),
            priority: None,
        };
        for (number, node) in (0..).zip(ends.publishers) {
            let task = publisher::Task {
                number,
                clock,
                epoch,
                config: self.config.clone(),
                folder: self.folder.to_path_buf(),
                shared: Arc::clone(self.shared),
                rate_per_s: self.point.rate_per_s,
                words: self.point.words(),
                yields: self.shares_cpu,
            };
            let schedule = Schedule::of_rate(&clock, self.point.rate_per_s);
            let after_miss = self.config.after_miss;
            match self.config.timer {
                TimerKind::Tsc => {
                    let timer = BusyTimer::new(schedule, after_miss);
                    self.start_publisher(seat(PUBLISHER), task, node, timer, threads)?;
                }
                TimerKind::Timerfd => {
                    let timer = KernelTimer::new(schedule, after_miss)?;
                    self.start_publisher(seat(PUBLISHER), task, node, timer, threads)?;
                }
            }
        }
        for (number, node) in (0..).zip(ends.subscribers) {
            let task = subscriber::Task {
                number,
                clock,
                config: self.config.clone(),
                folder: self.folder.to_path_buf(),
                shared: Arc::clone(self.shared),
                rate_per_s: self.point.rate_per_s,
                words: self.point.words(),
                yields: self.shares_cpu,
            };
            let wakeable = self.wakeable.clone();
            threads.start(seat(SUBSCRIBER), move |reporter| {
                let report = wakeable.during(|| task.run(node))?;
                reporter.send(Report::Subscriber(report));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn start_publisher<C: Clock>(
        &self,
        seat: Seat,
        task: publisher::Task<C>,
        node: impl Node,
        timer: impl Timer<C> + 'static,
        threads: &mut Threads,
    ) -> Result<(), RigError> {
        let wakeable = self.wakeable.clone();
        threads.start(seat, move |reporter| {
            let report = wakeable.during(|| task.run(node, timer))?;
            reporter.send(Report::Publisher(report));
            Ok(())
        })
    }
}
