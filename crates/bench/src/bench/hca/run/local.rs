//! A peer in this process: both ports are of this machine.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::peer::{ConnectedEnds, Peer, RunContext};
use crate::bench::hca::ends::SendingEnd;
use crate::bench::hca::ends::endpoints::{
    EndPort, EndpointSettings, Endpoints, Receives, STEP_LIMIT, StepLimit, receive_requests,
};
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::ends::numbered_end::NumberedReceiver;
use crate::bench::hca::ends::open_port::OpenPort;
use crate::bench::hca::ends::polled_end::PolledReceiver;
use crate::bench::hca::ends::requesting_end::{LocalMemory, Requester};
use crate::bench::hca::ends::sending_end::Sender;
use crate::bench::hca::ends::stamped_ends::{StampedReceiver, StampedSender};
use crate::bench::hca::ends::two_ports::TwoPorts;
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::background::Copies;
use crate::bench::hca::plan::placement::{Placement, RunThreads};
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::result::Tally;
use crate::bench::hca::run::direct_services::TRIAL_LIMIT;
use crate::bench::hca::session::background::RunningBackground;
use crate::bench::hca::session::bursts::Bursts;
use crate::bench::hca::settings::background::Traffic;
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::bench::hca::settings::config::{Config, Operation, Poll, Service, Switch};
use crate::bench::hca::settings::limits::SMALLEST_SIZE;
use crate::bench::hca::settings::path::Connect;
use crate::bench::hca::settings::resources::ResourceSettings;
use crate::buffer::{HugePagePolicy, PageKind};
use crate::host::pinning::current_affinity;
use crate::host::{HostError, Topology, interrupt};
use crate::rdma::cm::{CmError, EventChannel, UcRoute};
use crate::rdma::verbs::{EndPlan, devices};
use crate::results::finding::Finding;
use crate::rig::port_choice::{ChosenPort, PortPair, choose};
use crate::time::Clock;

/// Whether the kernel's connection manager is not there, or not for this user: the channel is the first that is asked
/// of it.
fn is_missing(error: &CmError) -> bool {
    let shortage = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];
    match error {
        CmError::Call { source, .. } => {
            (source.raw_os_error()).is_some_and(|errno| !shortage.contains(&errno))
        }
        _ => false,
    }
}

/// Why a trial failed that is no fault of the program's environment; the deadline is that of all steps.
fn reason_of_trial(error: CmError) -> Result<String, CmError> {
    match error {
        interrupted @ CmError::Interrupted { .. } => Err(interrupted),
        CmError::TimedOut {
            step,
            object,
            awaited,
            ..
        } => {
            let limit = TRIAL_LIMIT;
            let whole = CmError::TimedOut {
                step,
                object,
                awaited,
                limit,
            };
            Ok(whole.to_string())
        }
        error => Ok(error.to_string()),
    }
}

/// The other port of this machine, or the same one.
pub struct Local {
    pair: PortPair,
    facts: [Facts; 2],
    /// Open as long as they are asked what they can do: between two points nothing keeps a device from being removed.
    ports: Option<[OpenPort; 2]>,
    /// There if a point is connected by the connection manager.
    channel: Option<Arc<EventChannel>>,
}

impl Local {
    /// Chooses the ports.
    pub(crate) fn choose(config: &Config) -> Result<Self, RunError> {
        let (sender, receiver) = (config.sender.as_ref(), config.receiver.as_ref());
        let pair = choose(&devices()?, sender, receiver)?;
        config.comp_vectors.unwrap_or_default().check(&pair)?;
        let ports = [
            OpenPort::open(pair.sender.clone())?,
            OpenPort::open(pair.receiver.clone())?,
        ];
        if config.hw_timestamps {
            // Where nothing is received, or memory is polled, the receiver's adapter has nothing to stamp.
            let operations = &config.sweep.operations;
            let both = operations.iter().any(|it| it.has_immediate_data());
            let stamping = ports.iter().take(if both { 2 } else { 1 });
            stamping
                .into_iter()
                .try_for_each(OpenPort::require_hardware_stamps)?;
        }
        Ok(Local {
            facts: [0, 1].map(|end: usize| ports[end].facts_for(&config.sweep.services)),
            ports: Some(ports),
            pair,
            channel: None,
        })
    }

    /// The ports of the run.
    pub(crate) fn pair(&self) -> &PortPair {
        &self.pair
    }

    fn ports(&self) -> &[OpenPort; 2] {
        let ports = self.ports.as_ref();
        ports.expect("devices are asked before the peer is prepared")
    }

    fn endpoints(&self, settings: &EndpointSettings) -> Result<Endpoints, RunError> {
        let by_manager = settings.point.connect == Connect::Manager;
        self.endpoints_by(self.channel.as_ref().filter(|_| by_manager), settings)
    }

    fn endpoints_by(
        &self,
        channel: Option<&Arc<EventChannel>>,
        settings: &EndpointSettings,
    ) -> Result<Endpoints, RunError> {
        let end = |chosen: &ChosenPort| EndPort {
            device: chosen.device.name.clone(),
            port: chosen.port.number,
            address: chosen.address,
        };
        let (from, to) = (end(&self.pair.sender), end(&self.pair.receiver));
        Endpoints::connect(channel, &from, &to, settings)
    }

    /// Starts what a point has in its background, with the endpoints that must outlive it.
    fn start_background<C: Clock>(
        &self,
        clock: C,
        point: &Point,
        site: &RunContext<'_>,
    ) -> Result<Option<(RunningBackground, Vec<Endpoints>)>, RunError> {
        let RunContext {
            config, placement, ..
        } = site;
        let (Some(background), Some(cpu)) = (point.background, placement.background) else {
            return Ok(None);
        };
        let (size, in_flight) = (background.size, background.in_flight());
        let settings = EndpointSettings {
            point: Point {
                service: Service::Rc,
                operation: Operation::WritePolled,
                size,
                burst: in_flight,
                depth: in_flight,
                queue_pairs: 1,
                inline: Switch::Off,
                poll_recv: Poll::Busy,
                poll_comp: Poll::Busy,
                resources: ResourceSettings::default(),
                ..*point
            },
            uc_route: UcRoute::Endpoint,
            receives: Receives {
                requests: 1,
                slots: in_flight,
            },
            reads: 0,
            comp_vectors: config.comp_vectors.unwrap_or_default(),
            limit: StepLimit::Each(STEP_LIMIT),
            huge_pages: config.huge_pages,
            hw_timestamps: false,
            sender_cpu: cpu,
            receiver_cpu: placement.receiver,
        };
        let sent = background.traffic == Traffic::Sent;
        let count = if sent { background.queue_pairs } else { 0 };
        let pairs = (0..count).map(|_| self.endpoints(&settings));
        let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
        let requested = interrupt::requested;
        let running = if sent {
            let channel = |pair: &Endpoints| (pair.sender.port(), pair.sender.completions());
            let channels: Vec<_> = pairs.iter().map(channel).collect();
            RunningBackground::start(clock, &background, cpu, || channels, requested)
        } else {
            let copies = move || vec![Copies::new(size, in_flight)];
            RunningBackground::start(clock, &background, cpu, copies, requested)
        };
        Ok(Some((running?, pairs)))
    }
}

impl Peer for Local {
    const IS_LOCAL: bool = true;

    type FarEnd = ();

    type Ends<C: Clock> = LocalEnds;

    fn facts(&self) -> [&Facts; 2] {
        self.facts.each_ref()
    }

    fn unsupported(&self, _point: &Point) -> Option<String> {
        None
    }

    fn refuses(&self, [sending, receiving]: &[EndPlan; 2]) -> Result<Option<String>, RunError> {
        let [sender, receiver] = self.ports();
        let refused = sender.refuses(sending);
        Ok(refused.or_else(|| receiver.refuses(receiving)))
    }

    fn probe(&self, route: UcRoute) -> Result<Result<(), CmError>, RunError> {
        // A connection manager that cannot be used at all is no route that does not work.
        self.ports().iter().try_for_each(OpenPort::open_channel)?;
        Ok(self.ports().iter().try_for_each(|port| port.probe(route)))
    }

    fn lacks_manager(&self) -> Result<Option<String>, RunError> {
        match self.ports().iter().try_for_each(OpenPort::open_channel) {
            Ok(()) => Ok(None),
            Err(error) if is_missing(&error) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn try_manager(
        &self,
        point: &Point,
        uc_route: UcRoute,
        until: Instant,
    ) -> Result<Option<String>, RunError> {
        let here = current_affinity()?.first().unwrap_or(0);
        let settings = EndpointSettings {
            point: Point {
                operation: Operation::Send,
                size: SMALLEST_SIZE,
                burst: 1,
                depth: 1,
                queue_pairs: 1,
                inline: Switch::Off,
                poll_recv: Poll::Busy,
                poll_comp: Poll::Busy,
                connect: Connect::Manager,
                resources: ResourceSettings::default(),
                ..*point
            },
            uc_route,
            receives: Receives {
                requests: 1,
                slots: 1,
            },
            reads: 0,
            comp_vectors: CompletionVectors::default(),
            limit: StepLimit::AllUntil(until),
            huge_pages: HugePagePolicy::Off,
            hw_timestamps: false,
            sender_cpu: here,
            receiver_cpu: here,
        };
        let channel = self.ports()[0].channel()?;
        match self.endpoints_by(Some(channel), &settings) {
            Ok(_) => Ok(None),
            Err(RunError::Connection(error)) => Ok(Some(reason_of_trial(error)?)),
            Err(error) => Err(error),
        }
    }

    fn placement(
        &self,
        topology: &Topology,
        config: &Config,
        point: &Point,
    ) -> Result<Placement, HostError> {
        let numa_nodes = [&self.pair.sender, &self.pair.receiver].map(|end| end.device.numa_node);
        Placement::of_point(
            topology,
            point,
            RunThreads::of(config),
            config.cpus,
            numa_nodes,
        )
    }

    fn receives(&self, point: &Point) -> Receives {
        let most = TwoPorts(self.facts()).longest_receive_queue(point);
        receive_requests(point, most)
    }

    fn prepare(
        &mut self,
        _config: &Config,
        plan: &Plan,
        _bytes: u64,
    ) -> Result<Vec<Finding>, RunError> {
        let mut points = plan.points.iter();
        if points.any(|point| point.connect == Connect::Manager) {
            self.channel = Some(Arc::clone(self.ports()[0].channel()?));
        }
        self.ports = None;
        Ok(Vec::new())
    }

    fn connect<C: Clock>(
        &self,
        clock: C,
        settings: &EndpointSettings,
        site: &RunContext<'_>,
    ) -> Result<LocalEnds, RunError> {
        let endpoints = self.endpoints(settings)?;
        let background = self.start_background(clock, &settings.point, site)?;
        let (background, kept) = background.unzip();
        Ok(LocalEnds {
            service: settings.point.service,
            operation: settings.point.operation,
            burst: settings.point.burst,
            background,
            endpoints,
            _kept: kept,
        })
    }
}

/// Both ends of a point in this process.
pub struct LocalEnds {
    service: Service,
    operation: Operation,
    burst: u32,
    background: Option<RunningBackground>,
    endpoints: Endpoints,
    _kept: Option<Vec<Endpoints>>,
}

impl LocalEnds {
    /// The same where adapters stamp the completions.
    fn measure_stamped<C: Clock>(
        &self,
        bursts: Bursts<'_, C>,
        background: Option<RunningBackground>,
    ) -> Result<(Tally, [PageKind; 3]), RunError> {
        let Endpoints {
            sender, receiver, ..
        } = &self.endpoints;
        let stamped = StampedSender::new(sender, sender);
        match self.operation {
            Operation::Send | Operation::Write => {
                let receiver = Arc::new(StampedReceiver(Arc::clone(receiver)));
                bursts.measure(&stamped, &receiver, background, &mut ())
            }
            Operation::WritePolled if self.service == Service::Uc => {
                let receiver = Arc::new(PolledReceiver::<true>(Arc::clone(receiver)));
                bursts.measure(&stamped, &receiver, background, &mut ())
            }
            Operation::WritePolled => {
                let receiver = Arc::new(PolledReceiver::<false>(Arc::clone(receiver)));
                bursts.measure(&stamped, &receiver, background, &mut ())
            }
            operation @ (Operation::Read | Operation::CompareSwap | Operation::FetchAdd) => {
                let target = LocalMemory::new(receiver, operation);
                let requester = Arc::new(Requester::new(sender, target, operation));
                let stamped = StampedSender::new(&requester, sender);
                bursts.measure(&stamped, receiver, background, &mut ())
            }
        }
    }
}

impl<C: Clock> ConnectedEnds<C> for LocalEnds {
    type FarEnd = ();

    fn sender(&self) -> &Arc<Sender> {
        &self.endpoints.sender
    }

    fn path_of_peer(&self) -> Value {
        serde_json::to_value(self.endpoints.receiver.path_end()).unwrap_or_default()
    }

    fn measure(&mut self, bursts: Bursts<'_, C>) -> Result<(Tally, [PageKind; 3]), RunError> {
        let Endpoints {
            sender, receiver, ..
        } = &self.endpoints;
        let background = self.background.take();
        if sender.hardware().is_some() {
            return self.measure_stamped(bursts, background);
        }
        match self.operation {
            Operation::Send if !receiver.has_immediate_data() => {
                let receiver = NumberedReceiver::new(Arc::clone(receiver), self.burst);
                bursts.measure(sender, &Arc::new(receiver), background, &mut ())
            }
            Operation::Send | Operation::Write => {
                bursts.measure(sender, receiver, background, &mut ())
            }
            Operation::WritePolled if self.service == Service::Uc => {
                let receiver = Arc::new(PolledReceiver::<true>(Arc::clone(receiver)));
                bursts.measure(sender, &receiver, background, &mut ())
            }
            Operation::WritePolled => {
                let receiver = Arc::new(PolledReceiver::<false>(Arc::clone(receiver)));
                bursts.measure(sender, &receiver, background, &mut ())
            }
            operation @ (Operation::Read | Operation::CompareSwap | Operation::FetchAdd) => {
                let target = LocalMemory::new(receiver, operation);
                let requester = Arc::new(Requester::new(sender, target, operation));
                bursts.measure(&requester, receiver, background, &mut ())
            }
        }
    }

    fn finish(self) {}
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;
    use crate::rdma::cm::EventKind;

    #[test]
    fn a_manager_that_is_not_there_is_missing_and_a_shortage_is_not() {
        let failed = |errno| {
            is_missing(&CmError::Call {
                operation: "rdma_create_event_channel",
                object: "/dev/infiniband/rdma_cm".to_owned(),
                source: io::Error::from_raw_os_error(errno),
                advice: "",
            })
        };
        for errno in [libc::ENOENT, libc::ENODEV, libc::EACCES, libc::EPERM] {
            assert!(failed(errno), "{errno}");
        }
        for errno in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            assert!(!failed(errno), "{errno}");
        }
        assert!(!is_missing(&CmError::Far("no".to_owned())));
    }

    #[test]
    fn a_trial_that_ends_by_its_deadline_has_its_whole_length_as_the_reason() {
        let reason = reason_of_trial(CmError::TimedOut {
            step: "waiting for a request",
            object: "id 1".to_owned(),
            awaited: EventKind::ConnectRequest,
            limit: Duration::from_millis(11_998),
        });
        let reason = reason.unwrap();
        assert!(reason.contains("no answer within 12 s"), "{reason}");
        let step = "connecting";
        assert!(reason_of_trial(CmError::Interrupted { step }).is_err());
    }
}
