//! From a configuration to results, point by point, on real verbs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::background::placed::placed;
use super::background::running::Running;
use super::background::traffic::Copies;
use super::background::{Background, Traffic};
use super::bursts::Bursts;
use super::config::{Config, Connect, Operation, Poll, Service, Switch, UcRouteRequest};
use super::crowded::leave_out_crowded;
use super::endpoints::{EndPort, EndpointSettings, Endpoints, Receives, receive_requests};
use super::ends::SendingEnd;
use super::error::RunError;
use super::floor::measure_floor;
use super::needs::{Needs, require_huge_pages};
use super::path::PathLimits;
use super::path_proof::Path;
use super::placement::Placement;
use super::plan::{Limits, Plan, Point};
use super::polled_end::PolledReceiver;
use super::requesting_end::{Here, Requester};
use super::result::{Circumstances, InstrumentCosts, PointResult};
use super::two_ports::{OnePort, TwoPorts};
use super::uc_route::{choose_route, uses_route};
use super::verbs_link::queue_pair_lengths;
use super::worker::Frame;
use crate::buffer::HugePagePolicy;
use crate::generators::Beside;
use crate::host::pinning::on_cpu;
use crate::host::{CpuSet, Topology, Wakeable, interrupt, memory_lock, pinning};
use crate::pacing::SplitMix64;
use crate::rdma::cm::{CmError, EventChannel, UcRoute};
use crate::rdma::verbs::{
    Capabilities, Context, ServiceType, VerbsError, devices, gid_table, granted_inline,
    partition_keys, try_queue_pairs,
};
use crate::rig::benchmark::Progress;
use crate::rig::clock_offset::measure_offset;
use crate::rig::port_choice::{ChosenPort, Pair, choose, without_immediate_data};
use crate::sorting::distinct;
use crate::time::{AnyClock, Clock, ClockKind, ClockUser, measure_stamp_cost};

/// Measures points on one pair of ports.
pub struct Runner {
    config: Config,
    pair: Pair,
    topology: Topology,
    /// There if a point is connected by the connection manager.
    channel: Option<Arc<EventChannel>>,
    wakeable: Wakeable,
    /// The CPUs of generators of memory load; none where no point is under load.
    generators: CpuSet,
    beside: Option<Beside>,
    /// The route that UC takes; chosen by [`Runner::within_devices`] if there is a point that needs one.
    uc_route: Option<UcRoute>,
    clocks: HashMap<ClockKind, AnyClock>,
    /// By clock, the two CPUs, and whether there is a receiving loop.
    costs: HashMap<(ClockKind, usize, usize, bool), InstrumentCosts>,
}

impl Runner {
    /// Chooses the ports and makes the machine ready: memory is locked from here on.
    pub fn new(config: Config) -> Result<Self, RunError> {
        let (sender, receiver) = (config.sender.as_ref(), config.receiver.as_ref());
        let pair = choose(&devices()?, sender, receiver)?;
        config.comp_vectors.unwrap_or_default().check(&pair)?;
        Ok(Runner {
            pair,
            topology: Topology::read()?,
            channel: None,
            wakeable: Wakeable::new()?,
            generators: CpuSet::new(),
            beside: None,
            uc_route: None,
            clocks: HashMap::new(),
            costs: HashMap::new(),
            config,
        })
    }

    /// The route that UC takes in this run, once it is chosen; `None` where no point is UC.
    pub fn uc_route(&self) -> Option<UcRoute> {
        self.uc_route
    }

    /// The ports of the run.
    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// The generators of memory load, once the machine is ready, if a point is under load.
    pub fn beside(&self) -> Option<&Beside> {
        self.beside.as_ref()
    }

    /// Leaves out of a plan what these devices cannot do. The queue pairs of each remaining point are tried: on many
    /// HCAs their length and the inline size bound each other. So is the route to UC.
    ///
    /// # Errors
    /// When the devices cannot be asked, or refuse the route to UC that the configuration names.
    pub fn within_devices(&mut self, plan: Plan) -> Result<Plan, RunError> {
        let reason = without_immediate_data(&self.pair);
        let plan = plan.without(|point| {
            let needs_it = point.operation.has_immediate_data();
            reason.clone().filter(|_| needs_it)
        });
        let open = |end: &ChosenPort| Context::open_by_name(&end.device.name).map(Arc::new);
        let contexts = [open(&self.pair.sender)?, open(&self.pair.receiver)?];
        let services = distinct(plan.points.iter().map(|point| point.service));
        let without_address = self.pair.without_address();
        let mut open_ones = plan.points.iter();
        if without_address.is_none() && open_ones.any(|point| point.connect != Connect::Direct) {
            self.channel = Some(EventChannel::create()?);
        }
        // A route that was named is tried below, and its failure told.
        let named = self.config.uc_route != UcRouteRequest::Auto;
        let has_route = |route: UcRoute| self.probe(route).is_ok();
        let uc = plan.points.iter().any(|point| point.service == Service::Uc);
        let can_uc = !uc || named || UcRoute::ALL.into_iter().any(has_route);
        let has_addresses = without_address.is_none();
        let plan = plan.connected(|service| has_addresses && (service != Service::Uc || can_uc));
        let by_manager = |point: &Point| point.connect == Connect::Manager;
        let plan = plan.without(|point| without_address.clone().filter(|_| by_manager(point)));
        let plan = plan.within(&self.limits(&contexts, &services));
        let path = self.path_limits();
        let plan = plan.without(|point| path.impossible(point.connect, &point.path));
        let mut tried = HashMap::new();
        let plan = plan.without(|point| {
            let (burst, depth) = (point.burst, point.depth);
            let inline = point.inline_bytes();
            let reason: &Option<String> = tried
                .entry((point.service, burst, depth, point.queue_pairs, inline))
                .or_insert_with(|| self.refusal(&contexts, point, inline));
            reason.clone()
        });
        let mut tried = HashMap::new();
        let plan = plan.without(|point| {
            let background = point.background?;
            let refusal = || self.refusal_of_background(&contexts, &background);
            tried.entry(background).or_insert_with(refusal).clone()
        });
        let (plan, route) = choose_route(plan, self.config.uc_route, |route| self.probe(route))
            .map_err(RunError::Usage)?;
        self.uc_route = route;
        let plan = placed(plan, |point| {
            Ok::<_, RunError>(self.placement(point)?.background_shares_cpu())
        })?;
        let placement = |point: &Point| self.placement(point);
        let (plan, generators) = leave_out_crowded(plan, &self.topology, placement)?;
        self.generators = generators;
        Ok(plan)
    }

    /// Tries a route to UC at both ends; without the connection manager there is none to try.
    fn probe(&self, route: UcRoute) -> Result<(), CmError> {
        let ends = [self.pair.sender.address, self.pair.receiver.address];
        let Some(channel) = &self.channel else {
            return Ok(());
        };
        ends.into_iter()
            .flatten()
            .try_for_each(|address| route.probe(channel, address))
    }

    /// Tries queue pairs as long and with as much inline data as a point needs, on both devices; tells why they are
    /// refused.
    fn refusal(&self, contexts: &[Arc<Context>; 2], point: &Point, inline: u32) -> Option<String> {
        let service = ServiceType::from(point.service);
        let requests = self.receives(point).requests;
        let (sending, receiving) = queue_pair_lengths(point.sends(), requests, inline);
        let count = point.queue_pairs;
        let refused = refused(contexts, service, [sending, receiving], count)?;
        Some(refusal_in_words(point, &refused.to_string()))
    }

    /// Tries a queue pair as the background has them on both devices; tells why it is refused.
    fn refusal_of_background(
        &self,
        contexts: &[Arc<Context>; 2],
        background: &Background,
    ) -> Option<String> {
        let (sending, receiving) = queue_pair_lengths(background.in_flight(), 1, 0);
        let (service, count) = (ServiceType::ReliableConnection, background.queue_pairs);
        let refused = refused(contexts, service, [sending, receiving], count)?;
        Some(format!(
            "--background {background} is impossible on these devices, it takes RC queue pairs: {refused}"
        ))
    }

    fn limits(&self, contexts: &[Arc<Context>; 2], services: &BTreeSet<Service>) -> Limits {
        let inline_of = |&service: &Service| {
            let granted = granted_inline(&contexts[0], service.into()).ok()?;
            let (_, smallest) = queue_pair_lengths(1, 1, 0);
            try_queue_pairs(&contexts[1], service.into(), smallest, 1).ok()?;
            Some((service, granted))
        };
        self.ports()
            .limits(services.iter().filter_map(inline_of).collect())
    }

    fn ports(&self) -> TwoPorts<'_> {
        let ends = [&self.pair.sender, &self.pair.receiver];
        TwoPorts(ends.map(|end| OnePort {
            limits: &end.device.limits,
            mtu: end.port.mtu,
            max_message: end.port.max_message,
            link_layer: end.port.link_layer,
        }))
    }

    fn path_limits(&self) -> PathLimits {
        let ends = [&self.pair.sender, &self.pair.receiver];
        let [here, there] = ends.map(|end| gid_table(&end.device.name, end.port.number));
        let [own, others] = ends.map(|end| partition_keys(&end.device.name, end.port.number));
        self.ports().path_limits([&here, &there], [&own, &others])
    }

    /// Checks, before anything is measured, what every point needs of the machine: the clocks, the places of the
    /// threads, and memory that can be locked for the largest point. Then locks all memory.
    pub fn prepare(&mut self, plan: &Plan) -> Result<(), RunError> {
        let mut needs = Vec::new();
        for point in &plan.points {
            let needed = Needs::of(point, &self.config, self.receives(point).slots);
            needed.require(point, &self.config)?;
            let placement = self.placement(point)?;
            placement.places().permit(self.config.priority)?;
            self.clock(point.clock)?;
            needs.push((needed.bytes(), needed.huge_pages(&placement), point));
        }
        if self.config.huge_pages == HugePagePolicy::Required
            && let Some((_, pages, point)) = needs.iter().max_by_key(|(_, pages, _)| *pages)
        {
            require_huge_pages(*pages, point)?;
        }
        let most = needs.iter().map(|(bytes, ..)| *bytes).max().unwrap_or(0);
        let loads = plan.points.iter().map(|point| point.memory_load);
        self.beside = Beside::new(std::mem::take(&mut self.generators), loads, most)?;
        let of_generators = self.beside.as_ref().map_or(0, Beside::bytes);
        Ok(memory_lock::lock_with(most + of_generators)?)
    }

    fn clock(&mut self, kind: ClockKind) -> Result<AnyClock, RunError> {
        if let Some(known) = self.clocks.get(&kind) {
            return Ok(*known);
        }
        let clock = AnyClock::prepare_with(kind, self.config.tsc_khz)?;
        self.clocks.insert(kind, clock);
        Ok(clock)
    }

    /// Receive requests of each queue pair of a point.
    fn receives(&self, point: &Point) -> Receives {
        receive_requests(point, self.ports().longest_queue(point.queue_pairs))
    }

    fn placement(&self, point: &Point) -> Result<Placement, RunError> {
        let numa_nodes = [&self.pair.sender, &self.pair.receiver].map(|end| end.device.numa_node);
        let (topology, cpus) = (&self.topology, self.config.cpus);
        let background = self.config.has_background();
        Ok(Placement::of_point(
            topology, point, background, cpus, numa_nodes,
        )?)
    }

    /// Measures one point in a round. A failure after the first message is told in the result, with what was measured until then.
    ///
    /// # Errors
    /// When there is nothing to show.
    pub fn measure(
        &mut self,
        point: &Point,
        round: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PointResult, RunError> {
        let clock = self.clock(point.clock)?;
        clock.visit(Measurement {
            runner: self,
            any_clock: clock,
            point,
            round,
            progress,
        })
    }

    fn connect(
        &self,
        point: &Point,
        placement: &Placement,
    ) -> Result<(Endpoints, UcRoute), RunError> {
        // Those of the other service types have no use for it.
        let uc_route = self.uc_route.unwrap_or(UcRoute::Endpoint);
        let settings = EndpointSettings {
            point: *point,
            uc_route,
            receives: self.receives(point),
            reads: self.ports().reads_of(point),
            comp_vectors: self.config.comp_vectors.unwrap_or_default(),
            huge_pages: self.config.huge_pages,
            sender_cpu: placement.sender,
            receiver_cpu: placement.receiver,
        };
        Ok((self.endpoints(&settings)?, uc_route))
    }

    fn endpoints(&self, settings: &EndpointSettings) -> Result<Endpoints, RunError> {
        let end = |chosen: &ChosenPort| EndPort {
            device: chosen.device.name.clone(),
            port: chosen.port.number,
            address: chosen.address,
        };
        let (from, to) = (end(&self.pair.sender), end(&self.pair.receiver));
        let by_manager = settings.point.connect == Connect::Manager;
        let channel = self.channel.as_ref().filter(|_| by_manager);
        Endpoints::connect(channel, &from, &to, settings)
    }

    /// Starts what a point has in its background, with the endpoints that must outlive it.
    fn start_background<C: Clock>(
        &self,
        clock: C,
        point: &Point,
        placement: &Placement,
    ) -> Result<Option<(Running, Vec<Endpoints>)>, RunError> {
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
                ..*point
            },
            uc_route: UcRoute::Endpoint,
            receives: Receives {
                requests: 1,
                slots: in_flight,
            },
            reads: 0,
            comp_vectors: self.config.comp_vectors.unwrap_or_default(),
            huge_pages: self.config.huge_pages,
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
            Running::start(clock, &background, cpu, || channels, requested)
        } else {
            let copies = move || vec![Copies::new(size, in_flight)];
            Running::start(clock, &background, cpu, copies, requested)
        };
        Ok(Some((running?, pairs)))
    }

    fn costs<C: Clock>(
        &mut self,
        clock: &C,
        any_clock: AnyClock,
        placement: &Placement,
        arrives: bool,
    ) -> Result<InstrumentCosts, RunError> {
        let (sender, receiver) = (placement.sender, placement.receiver);
        let key = (any_clock.kind(), sender, receiver, arrives);
        if let Some(costs) = self.costs.get(&key) {
            return Ok(*costs);
        }
        let floor = |from, to| arrives.then(|| measure_floor(clock, from, to)).transpose();
        let offset = || measure_offset(clock, sender, receiver);
        let costs = InstrumentCosts {
            stamp: on_cpu(sender, || measure_stamp_cost(clock))?,
            floor: floor(sender, receiver)?,
            floor_back: floor(receiver, sender)?,
            offset: arrives.then(offset).transpose()?.flatten(),
            tsc: any_clock.tsc_facts(),
        };
        self.costs.insert(key, costs);
        Ok(costs)
    }
}

/// Why the queue pairs of a point are refused, in words.
pub(super) fn refusal_in_words(point: &Point, refused: &str) -> String {
    let mut with = match point.queue_pairs {
        1 => String::new(),
        several => format!(" over {several} queue pairs"),
    };
    let inline = point.inline_bytes();
    if inline > 0 {
        with += &format!(" with {inline} bytes inline");
    }
    if point.is_limited() {
        with += &format!(" with --depth {}", point.depth);
    }
    let (burst, service) = (point.burst, point.service.name());
    format!(
        "--burst {burst}{with} is impossible with --service {service} on these devices: {refused}"
    )
}

/// How the queue pairs of a point are connected: function and port space.
pub(super) fn connection_of(point: &Point, uc_route: UcRoute) -> String {
    match point.service {
        _ if point.connect == Connect::Direct => "ibv_modify_qp".to_owned(),
        Service::Rc => "rdma_create_id, RDMA_PS_TCP".to_owned(),
        Service::Uc => format!("{}, RDMA_PS_IB", uc_route.function()),
        Service::Ud => "rdma_create_id, RDMA_PS_UDP".to_owned(),
    }
}

/// Tries so many queue pairs at both ends; tells why they are refused.
fn refused(
    contexts: &[Arc<Context>; 2],
    service: ServiceType,
    capabilities: [Capabilities; 2],
    count: u32,
) -> Option<VerbsError> {
    let mut ends = contexts.iter().zip(capabilities);
    ends.find_map(|(context, needed)| try_queue_pairs(context, service, needed, count).err())
}

/// A point about to be measured on one clock.
struct Measurement<'a> {
    runner: &'a mut Runner,
    any_clock: AnyClock,
    point: &'a Point,
    round: u32,
    progress: &'a mut dyn FnMut(Progress),
}

impl ClockUser for Measurement<'_> {
    type Output = Result<PointResult, RunError>;

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        let Measurement {
            runner,
            any_clock,
            point,
            round,
            progress,
        } = self;
        let mut placement = runner.placement(point)?;
        if let Some(beside) = &mut runner.beside {
            placement.supervisor = beside.without_generators(&placement.supervisor);
            if point.memory_load.is_on() {
                beside.prepare()?;
            }
        }
        let arrives = point.operation.is_one_way();
        // While generators rest: it is what the instrument costs.
        let costs = runner.costs(&clock, any_clock, &placement, arrives)?;
        pinning::pin_current_thread_to(&placement.supervisor)?;
        let (endpoints, uc_route) = runner.connect(point, &placement)?;
        let path = Path {
            sender: endpoints.sender.path_end(),
            receiver: endpoints.receiver.path_end(),
        };
        let (background, _kept) = runner.start_background(clock, point, &placement)?.unzip();
        let config = &runner.config;
        let frame = Frame {
            point: *point,
            priority: config.priority,
            seed: SplitMix64::new(config.seed ^ u64::from(round)).draw(),
            huge_pages: config.huge_pages,
            wakeable: runner.wakeable.clone(),
            far: false,
        };
        let bursts = Bursts {
            clock,
            config,
            frame,
            placement: &placement,
            background,
            load: (runner.beside.as_ref()).and_then(|beside| beside.load(point.memory_load)),
            progress,
            between: &mut (),
        };
        let Endpoints {
            sender, receiver, ..
        } = &endpoints;
        let (tally, pages) = match point.operation {
            Operation::Send | Operation::Write => bursts.measure(sender, receiver),
            Operation::WritePolled => {
                bursts.measure(sender, &Arc::new(PolledReceiver(Arc::clone(receiver))))
            }
            Operation::Read | Operation::CompareSwap | Operation::FetchAdd => {
                let target = Here::new(receiver, point.operation);
                let requester = Requester::new(sender, target, point.operation);
                bursts.measure(&Arc::new(requester), receiver)
            }
        }?;
        let circumstances = Circumstances {
            completion_by: placement.completion_by,
            placement,
            pages,
            priority: config.priority,
            granted_inline: endpoints.sender.queue_pair().granted().inline_bytes,
            loop_faults: tally.faults,
            warmup_messages: tally.warmed_up,
            stamp_refresh_ns: tally.stamp_refresh_ns(),
            connection: connection_of(point, uc_route),
            uc_route: uses_route(point).then(|| uc_route.name()),
            path,
        };
        Ok(PointResult::new(*point, tally, circumstances, costs))
    }
}
