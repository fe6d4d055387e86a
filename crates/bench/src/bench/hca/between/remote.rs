//! A peer on another host: this process sends the bursts, and the probes before, between and after them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::far::{FarReceiver, FarTarget, SharedWire, lock};
use super::half::receives_of;
use super::message::{Order, PreparedPoint, WireMessage};
use super::probe_end::{ProbeEnd, ProbeRole, of_probes};
use super::prober::Prober;
use crate::bench::hca::ends::endpoints::{EndpointSettings, Receives};
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::ends::open_port::OpenPort;
use crate::bench::hca::ends::requesting_end::Requester;
use crate::bench::hca::ends::sending_end::Sender;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::placement::{Placement, RunThreads};
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::result::Tally;
use crate::bench::hca::run::peer::{ConnectedEnds, Peer, RunContext};
use crate::bench::hca::session::bursts::Bursts;
use crate::bench::hca::settings::config::{Config, CpuRequest, Operation, PortRequest, Service};
use crate::bench::hca::settings::path::Connect;
use crate::between::message::{ANSWER, WORK, only, receive_message, send_message};
use crate::between::peer::{PeerConfig, ServedBenchmark};
use crate::between::probe::NumberedProbe;
use crate::between::time_of_day::TimeOfDayOffset;
use crate::buffer::PageKind;
use crate::host::pinning::on_cpu;
use crate::host::{HostError, Topology};
use crate::launch::message::DirectionReport;
use crate::rdma::cm::{CmError, UcRoute};
use crate::rdma::verbs::{EndPlan, Transport, devices};
use crate::results::finding::Finding;
use crate::rig::findings::of_throttling;
use crate::rig::port_choice::choose_one;
use crate::sorting::distinct;
use crate::time::Clock;

/// How much longer than its limit the other direction may take to tell what came of it.
const LEAVING: Duration = Duration::from_secs(2);

/// What is known of the other host's end of a point.
#[derive(Debug)]
pub struct FarEnd {
    pub(super) made: PreparedPoint,
    pub(super) probes: Vec<NumberedProbe>,
    pub(super) unanswered: u64,
    /// How far the time of day is ahead of this host's clock.
    pub(super) time_of_day: TimeOfDayOffset,
    /// What CPU quotas did there during the bursts.
    pub(super) throttled: Vec<Finding>,
}

/// The other host, greeted.
pub struct Remote {
    /// Probes of each phase.
    probes: u32,
    port: OpenPort,
    pub(super) here: Facts,
    pub(super) there: Facts,
    wire: SharedWire,
}

impl Remote {
    /// Opens the port of this host and greets the other one.
    ///
    /// # Errors
    /// When there is no port, the other host is not reached, or serves somebody else, or is another version.
    pub(super) fn connect(config: &Config, asked: &PeerConfig) -> Result<Self, RunError> {
        let port = choose_one(&devices()?, "--sender", config.sender.as_ref())?;
        let port = OpenPort::open(port)?;
        let here = port.facts();
        Self::greet(config.receiver.as_ref(), asked, port, here)
    }

    /// Greets the other host, with a port of this one that is open; `receiver` is that of the other one, if it is named.
    ///
    /// # Errors
    /// When the other host is not reached, or serves somebody else, or is another version.
    pub(super) fn greet(
        receiver: Option<&PortRequest>,
        asked: &PeerConfig,
        port: OpenPort,
        here: Facts,
    ) -> Result<Self, RunError> {
        let names = (here.host.as_str(), here.boot_id.as_str());
        let mut wire = asked.reach(ServedBenchmark::Hca, receiver, names)?;
        let (there, is_open) = receive_message(
            &mut wire,
            ANSWER,
            only!(WireMessage::Welcome(facts, is_open) => (*facts, is_open)),
        )?;
        if is_open {
            wire.set_open();
        }
        let welcome = WireMessage::Welcome(Box::new(here.clone()), wire.is_exposed());
        send_message(&mut wire, &welcome)?;
        Ok(Remote {
            probes: asked.probes,
            port,
            here,
            there,
            wire: Arc::new(Mutex::new(wire)),
        })
    }

    /// Whether strangers could take part in what is sent.
    pub(super) fn is_exposed(&self) -> bool {
        lock(&self.wire).is_exposed()
    }

    fn ask<T>(
        &self,
        message: &WireMessage,
        limit: Duration,
        wanted: impl FnOnce(WireMessage) -> Result<T, Box<WireMessage>>,
    ) -> Result<T, RunError> {
        let mut wire = lock(&self.wire);
        send_message(&mut wire, message)?;
        Ok(receive_message(&mut wire, limit, wanted)?)
    }

    /// Asks the other end, a rank of a fabric as this one, to measure towards this one.
    ///
    /// # Errors
    /// When it cannot, or not in time.
    pub(super) fn ask_back(
        &self,
        serves: SocketAddr,
        (round, samples): (u32, bool),
        limit: Duration,
    ) -> Result<DirectionReport, RunError> {
        let message = WireMessage::Back {
            serves,
            round,
            samples,
            limit_ms: limit.as_millis() as u64,
        };
        self.ask(
            &message,
            limit + LEAVING,
            only!(WireMessage::BackOver(report) => *report),
        )
    }
}

impl Peer for Remote {
    const IS_LOCAL: bool = false;

    type FarEnd = FarEnd;

    type Ends<C: Clock> = RemoteEnds<C>;

    fn facts(&self) -> [&Facts; 2] {
        [&self.here, &self.there]
    }

    fn unsupported(&self, point: &Point) -> Option<String> {
        let option = if let Some(background) = point.background {
            format!("--background {background}")
        } else if point.memory_load.is_on() {
            "--memory-load".to_owned()
        } else if self
            .facts()
            .iter()
            .any(|end| end.transport == Transport::Iwarp)
        {
            return Some(
                "between two hosts messages and probes are identified by immediate data, which iWARP does not have: \
                 use an adapter for InfiniBand or RoCE, or measure between two ports of one host"
                    .to_owned(),
            );
        } else {
            return None;
        };
        Some(format!(
            "{option} is not measured between two hosts: leave it out, or measure between two ports of one host"
        ))
    }

    fn refuses(&self, [sending, receiving]: &[EndPlan; 2]) -> Result<Option<String>, RunError> {
        if let Some(refused) = self.port.refuses(sending) {
            return Ok(Some(refused));
        }
        self.ask(
            &WireMessage::Try(*receiving),
            WORK,
            only!(WireMessage::Tried(refusal) => refusal),
        )
    }

    fn probe(&self, route: UcRoute) -> Result<Result<(), CmError>, RunError> {
        self.port.open_channel()?;
        if let Err(error) = self.port.probe(route) {
            return Ok(Err(error));
        }
        let tried = only!(WireMessage::Tried(refusal) => refusal);
        let refusal = self.ask(&WireMessage::Route(route), WORK, tried)?;
        Ok(refusal.map_or(Ok(()), |refusal| Err(CmError::Far(refusal))))
    }

    /// How the two hosts are connected does not depend on what one of them lacks.
    fn lacks_manager(&self) -> Result<Option<String>, RunError> {
        Ok(None)
    }

    /// Two hosts have their routes to each other from their network.
    fn try_manager(
        &self,
        _point: &Point,
        _uc_route: UcRoute,
        _until: Instant,
    ) -> Result<Option<String>, RunError> {
        Ok(None)
    }

    fn placement(
        &self,
        topology: &Topology,
        config: &Config,
        point: &Point,
    ) -> Result<Placement, HostError> {
        let named = CpuRequest {
            receiver: None,
            ..config.cpus
        };
        let numa_node = self.port.port.device.numa_node;
        Placement::of_sending_side(topology, point, RunThreads::of(config), named, numa_node)
    }

    fn receives(&self, point: &Point) -> Receives {
        receives_of(point, self.facts())
    }

    fn prepare(
        &mut self,
        config: &Config,
        plan: &Plan,
        bytes: u64,
    ) -> Result<Vec<Finding>, RunError> {
        if (plan.points.iter()).any(|point| point.connect == Connect::Manager) {
            self.port.open_channel()?;
        }
        let clocks = distinct(plan.points.iter().map(|point| point.clock));
        let Some(point) = plan.points.first() else {
            return Ok(Vec::new());
        };
        let there = WireMessage::Prepare {
            clocks: clocks.into_iter().collect(),
            bytes,
            cpu: config.cpus.receiver,
            allow_idle_states: config.allow_idle_states,
            point: Box::new(*point),
        };
        let found = self.ask(&there, WORK, only!(WireMessage::Prepared(found) => found))?;
        let of_host = |found: Finding| found.on(&*self.there.host);
        Ok(found.into_iter().map(of_host).collect())
    }

    fn connect<C: Clock>(
        &self,
        clock: C,
        settings: &EndpointSettings,
        site: &RunContext<'_>,
    ) -> Result<RemoteEnds<C>, RunError> {
        let (config, placement) = (site.config, site.placement);
        let point = &settings.point;
        let probes = of_probes(settings);
        let order = Order {
            point: *point,
            uc_route: settings.uc_route,
            comp_vectors: settings.comp_vectors,
            huge_pages: config.huge_pages,
            priority: config.priority,
            cpu: config.cpus.receiver,
        };
        let (port, peer) = (&self.port, &self.there);
        let (sender, asking, answered, made) = {
            let mut wire = lock(&self.wire);
            send_message(&mut wire, &WireMessage::Point(Box::new(order)))?;
            on_cpu(placement.sender, || -> Result<_, RunError> {
                let sender = port.sending(&mut wire, peer, settings)?;
                let asking = port.sending(&mut wire, peer, &probes)?;
                let answered = port.receiving(&mut wire, peer, &probes)?;
                let made =
                    receive_message(&mut wire, WORK, only!(WireMessage::Made(made) => *made))?;
                Ok((sender, asking, answered, made))
            })??
        };
        let supervisors = placement.supervisor.iter().next();
        let far = Arc::new(FarReceiver::new(
            Arc::clone(&self.wire),
            made.pages,
            supervisors.unwrap_or(placement.sender),
        ));
        let end = ProbeEnd::new(
            clock,
            ProbeRole::Asks,
            (asking, answered),
            point,
            (placement.sender, config.priority),
            site.wakeable.clone(),
        )?;
        let prober = Prober::new(
            clock,
            (Arc::clone(&self.wire), Arc::clone(&far)),
            end,
            self.probes,
            (point.service == Service::Rc, config.timeout),
        );
        Ok(RemoteEnds {
            clock,
            operation: point.operation,
            wire: Arc::clone(&self.wire),
            sender: Arc::new(sender),
            far,
            prober,
            made,
            host: self.there.host.clone(),
            priority: config.priority,
        })
    }
}

/// This host's end of a point, and what stands for the other one.
pub struct RemoteEnds<C> {
    clock: C,
    operation: Operation,
    wire: SharedWire,
    sender: Arc<Sender>,
    far: Arc<FarReceiver>,
    prober: Prober<C>,
    made: PreparedPoint,
    /// The name of the other host.
    host: String,
    priority: Option<u8>,
}

impl<C: Clock> ConnectedEnds<C> for RemoteEnds<C> {
    type FarEnd = FarEnd;

    fn sender(&self) -> &Arc<Sender> {
        &self.sender
    }

    fn path_of_peer(&self) -> Value {
        self.made.path.clone()
    }

    fn measure(&mut self, bursts: Bursts<'_, C>) -> Result<(Tally, [PageKind; 3]), RunError> {
        let (sender, far) = (&self.sender, &self.far);
        if self.operation.is_one_way() {
            return bursts.measure(sender, far, None, &mut self.prober);
        }
        let requester = Requester::new(sender, FarTarget(Arc::clone(far)), self.operation);
        bursts.measure(&Arc::new(requester), far, None, &mut self.prober)
    }

    fn finish(self) -> FarEnd {
        let throttled = of_throttling(&self.far.throttled(), self.priority).into_iter();
        let throttled = throttled.map(|found| found.on(&*self.host)).collect();
        // Where the other end has gone, that is told already.
        let _ = send_message(&mut lock(&self.wire), &WireMessage::PointOver);
        FarEnd {
            made: self.made,
            probes: self.prober.probes,
            unanswered: self.prober.unanswered,
            time_of_day: TimeOfDayOffset::of(&self.clock),
            throttled,
        }
    }
}
