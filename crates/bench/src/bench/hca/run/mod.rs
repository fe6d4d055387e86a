//! From a configuration to results, point by point, on real verbs.

#[allow(missing_docs)]
pub mod benchmark;
pub(crate) mod clocks;
mod direct_services;
mod local;
pub(crate) mod mode;
mod needs;
#[allow(missing_docs)]
pub mod one_host;
pub(crate) mod peer;
mod resources;
mod within_devices;

use std::collections::HashMap;
use std::sync::Arc;

use crate::bench::hca::ends::endpoints::{EndpointSettings, STEP_LIMIT, StepLimit};
use crate::bench::hca::ends::path_proof::Path;
use crate::bench::hca::ends::two_ports::TwoPorts;
use crate::bench::hca::ends::uc_route::uses_route;
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::floor::measure_floor;
use crate::bench::hca::plan::crowded::leave_out_crowded;
use crate::bench::hca::plan::placed::placed;
use crate::bench::hca::plan::placement::Placement;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::result::{Circumstances, InstrumentCosts, PointResult};
use crate::bench::hca::run::clocks::Clocks;
use crate::bench::hca::run::needs::{PointNeeds, require_huge_pages};
use crate::bench::hca::run::peer::{ConnectedEnds, Peer, RunContext};
use crate::bench::hca::run::within_devices::within_devices;
use crate::bench::hca::session::bursts::Bursts;
use crate::bench::hca::session::worker::Frame;
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::bench::hca::settings::config::{Config, Service};
use crate::bench::hca::settings::path::Connect;
use crate::buffer::HugePagePolicy;
use crate::generators::RunGenerators;
use crate::host::pinning::on_cpu;
use crate::host::{CpuSet, HostError, Topology, Wakeable, memory_lock, pinning};
use crate::pacing::SplitMix64;
use crate::rdma::cm::UcRoute;
use crate::results::finding::Finding;
use crate::rig::benchmark::{Progress, ShowWait};
use crate::rig::clock_offset::measure_offset;
use crate::time::{AnyClock, Clock, ClockKind, ClockUser, measure_stamp_cost};

/// Measures points between this process and its peer.
pub struct PointRunner<P> {
    config: Config,
    pub(super) peer: P,
    topology: Topology,
    wakeable: Wakeable,
    /// The CPUs of generators of memory load; none where no point is under load.
    generators: CpuSet,
    beside: Option<RunGenerators>,
    /// The route that UC takes; chosen by [`PointRunner::within_devices`] if there is a point that needs one.
    uc_route: Option<UcRoute>,
    /// The service types that are connected directly where a point leaves the way open, once it is known.
    direct_services: Option<Vec<Service>>,
    /// What was found of the devices.
    found: Vec<Finding>,
    clocks: Arc<Clocks>,
    /// By clock, the two CPUs, and whether there is a receiving loop here.
    costs: HashMap<(ClockKind, usize, usize, bool), InstrumentCosts>,
}

impl<P: Peer> PointRunner<P> {
    pub(super) fn new(config: Config, peer: P, clocks: Arc<Clocks>) -> Result<Self, RunError> {
        Ok(PointRunner {
            config,
            peer,
            topology: Topology::read()?,
            wakeable: Wakeable::new()?,
            generators: CpuSet::new(),
            beside: None,
            uc_route: None,
            direct_services: None,
            found: Vec::new(),
            clocks,
            costs: HashMap::new(),
        })
    }

    /// The route that UC takes in this run, once it is chosen; `None` where no point is UC.
    pub(super) fn uc_route(&self) -> Option<UcRoute> {
        self.uc_route
    }

    /// The service types that are connected directly, once it is known.
    pub(super) fn direct_services(&self) -> Option<&[Service]> {
        self.direct_services.as_deref()
    }

    /// The generators of memory load, once the machine is ready, if a point is under load.
    pub(super) fn beside(&self) -> Option<&RunGenerators> {
        self.beside.as_ref()
    }

    /// Leaves out of a plan what these devices and CPUs cannot do, and adds what a background is compared with. What
    /// takes long is shown.
    ///
    /// # Errors
    /// When a device cannot be asked, or refuses the route to UC that the configuration names.
    pub(super) fn within_devices(
        &mut self,
        plan: Plan,
        show: Option<ShowWait>,
    ) -> Result<Plan, RunError> {
        let known = self.config.direct_services.as_deref();
        let feasible = within_devices(&self.peer, plan, self.config.uc_route, known, show)?;
        self.uc_route = feasible.uc_route;
        self.direct_services = Some(feasible.direct_services);
        self.found = feasible.findings;
        let plan = placed(feasible.plan, |point| {
            Ok::<_, RunError>(self.placement(point)?.background_shares_cpu())
        })?;
        let placement = |point: &Point| self.placement(point);
        let (plan, generators) = leave_out_crowded(plan, &self.topology, placement)?;
        self.generators = generators;
        Ok(plan)
    }

    /// Checks, before anything is measured, what every point needs of the machine, or of both: the clocks, the
    /// places of the threads, and memory that can be locked for the largest point. Then locks all memory. Returns what
    /// was found of the devices, and what the peer warns of.
    ///
    /// # Errors
    /// When a machine does not have it.
    pub(super) fn prepare(&mut self, plan: &Plan) -> Result<Vec<Finding>, RunError> {
        let mut needs = Vec::new();
        for point in &plan.points {
            let needed = PointNeeds::of(point, &self.config, self.peer.receives(point).slots);
            needed.require(point, &self.config)?;
            let placement = self.placement(point)?;
            placement.places().permit(self.config.priority)?;
            self.clocks.get(point.clock)?;
            needs.push((needed.bytes(), needed.huge_pages(&placement), point));
        }
        if self.config.huge_pages == HugePagePolicy::Required
            && let Some((_, pages, point)) = needs.iter().max_by_key(|(_, pages, _)| *pages)
        {
            require_huge_pages(*pages, point)?;
        }
        let most = needs.iter().map(|(bytes, ..)| *bytes).max().unwrap_or(0);
        let loads = plan.points.iter().map(|point| point.memory_load);
        self.beside = RunGenerators::new(std::mem::take(&mut self.generators), loads, most)?;
        let of_generators = self.beside.as_ref().map_or(0, RunGenerators::bytes);
        let mut found = std::mem::take(&mut self.found);
        found.extend(self.peer.prepare(&self.config, plan, most)?);
        memory_lock::lock_with(most + of_generators)?;
        Ok(found)
    }

    fn placement(&self, point: &Point) -> Result<Placement, HostError> {
        self.peer.placement(&self.topology, &self.config, point)
    }

    /// Measures one point in a round. A failure after the first message is told in the result, with what was measured until
    /// then. Returns what is known of the peer's end, too.
    ///
    /// # Errors
    /// When there is nothing to show.
    pub(super) fn measure(
        &mut self,
        point: &Point,
        round: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(PointResult, P::FarEnd), RunError> {
        let clock = self.clocks.get(point.clock)?;
        clock.visit(Measurement {
            runner: self,
            any_clock: clock,
            point,
            round,
            progress,
        })
    }

    fn costs<C: Clock>(
        &mut self,
        clock: &C,
        any_clock: AnyClock,
        placement: &Placement,
        arrives_here: bool,
    ) -> Result<InstrumentCosts, RunError> {
        let (sender, receiver) = (placement.sender, placement.receiver);
        let key = (any_clock.kind(), sender, receiver, arrives_here);
        if let Some(costs) = self.costs.get(&key) {
            return Ok(*costs);
        }
        let floor = |from, to| {
            arrives_here
                .then(|| measure_floor(clock, from, to))
                .transpose()
        };
        let offset = || measure_offset(clock, sender, receiver);
        let costs = InstrumentCosts {
            stamp: on_cpu(sender, || measure_stamp_cost(clock))?,
            floor: floor(sender, receiver)?,
            floor_back: floor(receiver, sender)?,
            offset: arrives_here.then(offset).transpose()?.flatten(),
            tsc: any_clock.tsc_facts(),
        };
        self.costs.insert(key, costs);
        Ok(costs)
    }
}

/// How the queue pairs of a point are connected: function and port space.
fn connection_of(point: &Point, uc_route: UcRoute) -> String {
    match point.service {
        _ if point.connect == Connect::Direct => "ibv_modify_qp".to_owned(),
        Service::Rc => "rdma_create_id, RDMA_PS_TCP".to_owned(),
        Service::Uc => format!("{}, RDMA_PS_IB", uc_route.function()),
        Service::Ud => "rdma_create_id, RDMA_PS_UDP".to_owned(),
    }
}

/// A point about to be measured on one clock.
struct Measurement<'a, P> {
    runner: &'a mut PointRunner<P>,
    any_clock: AnyClock,
    point: &'a Point,
    round: u32,
    progress: &'a mut dyn FnMut(Progress),
}

impl<P: Peer> ClockUser for Measurement<'_, P> {
    type Output = Result<(PointResult, P::FarEnd), RunError>;

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
        let arrives_here = P::IS_LOCAL && point.operation.is_one_way();
        // While generators rest: it is what the instrument costs.
        let costs = runner.costs(&clock, any_clock, &placement, arrives_here)?;
        pinning::pin_current_thread_to(&placement.supervisor)?;
        let PointRunner {
            config,
            peer,
            wakeable,
            ..
        } = &*runner;
        // Those of the other service types have no use for it.
        let uc_route = runner.uc_route.unwrap_or(UcRoute::Endpoint);
        let settings = EndpointSettings {
            point: *point,
            uc_route,
            receives: peer.receives(point),
            reads: TwoPorts(peer.facts()).reads_of(point),
            comp_vectors: CompletionVectors::of_run(config.comp_vectors, peer.facts()),
            limit: StepLimit::Each(STEP_LIMIT),
            huge_pages: config.huge_pages,
            hw_timestamps: config.hw_timestamps,
            sender_cpu: placement.sender,
            receiver_cpu: placement.receiver,
        };
        let site = RunContext {
            config,
            placement: &placement,
            wakeable,
        };
        let mut ends = peer.connect(clock, &settings, &site)?;
        let path = Path {
            sender: ends.sender().path_end(),
            receiver: ends.path_of_peer(),
        };
        let frame = Frame {
            point: *point,
            priority: config.priority,
            seed: SplitMix64::new(config.seed ^ u64::from(round)).draw(),
            huge_pages: config.huge_pages,
            wakeable: wakeable.clone(),
            far: !P::IS_LOCAL,
        };
        let bursts = Bursts {
            clock,
            config,
            frame,
            placement: &placement,
            load: (runner.beside.as_ref()).and_then(|beside| beside.load(point.memory_load)),
            progress,
        };
        let (tally, pages) = ends.measure(bursts)?;
        let circumstances = Circumstances {
            completion_by: placement.completion_by,
            placement,
            pages,
            priority: config.priority,
            granted_inline: ends.sender().queue_pair().granted().inline_bytes,
            loop_faults: tally.faults,
            warmup_messages: tally.warmed_up,
            stamp_refresh_ns: tally.stamp_refresh_ns(),
            connection: connection_of(point, uc_route),
            uc_route: uses_route(point).then(|| uc_route.name()),
            path,
        };
        let result = PointResult::new(*point, tally, circumstances, costs, P::IS_LOCAL);
        Ok((result, ends.finish()))
    }
}
