//! From a configuration to results, point by point, on real verbs.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::choice::{ChosenPort, Pair, choose};
use super::config::{Config, Poll, Service};
use super::endpoints::{EndpointSettings, Endpoints, queue_pair_lengths, receive_requests};
use super::error::RunError;
use super::floor::measure_floor;
use super::needs::{Needs, require_huge_pages};
use super::placement::Placement;
use super::plan::{Limits, Plan, Point};
use super::result::{Circumstances, InstrumentCosts, PointResult};
use super::session::{Session, SessionSettings, Tally};
use super::uc_route::choose_route;
use crate::buffer::HugePagePolicy;
use crate::host::{
    Compromise, MemoryLock, Topology, Wakeable, interrupt, memory_lock, pinning, priority,
};
use crate::rdma::cm::{EventChannel, UcRoute};
use crate::rdma::verbs::{
    Capabilities, Context, ServiceType, VerbsError, devices, granted_inline, try_queue_pair,
};
use crate::rig::benchmark::Progress;
use crate::rig::named::Named;
use crate::time::{AnyClock, Clock, ClockKind, ClockUser, measure_stamp_cost};

/// Measures points on one pair of ports.
pub struct Runner {
    config: Config,
    pair: Pair,
    topology: Topology,
    channel: Arc<EventChannel>,
    wakeable: Wakeable,
    /// The route that UC takes; chosen by [`Runner::within_devices`] if there is a point that needs one.
    uc_route: Option<UcRoute>,
    clocks: HashMap<ClockKind, AnyClock>,
    costs: HashMap<(ClockKind, usize, usize), InstrumentCosts>,
    /// Requests that a queue of both devices holds.
    longest_queue: u32,
}

impl Runner {
    /// Chooses the ports and makes the machine ready: memory is locked from here on.
    ///
    /// # Errors
    /// When no pair of ports suits, or the machine refuses.
    pub fn new(config: Config) -> Result<Self, RunError> {
        let pair = choose(
            &devices()?,
            config.sender.as_ref(),
            config.receiver.as_ref(),
        )?;
        let longest = |end: &ChosenPort| {
            let limits = &end.device.limits;
            (limits.max_queue_pair_work_requests).min(limits.max_completion_queue_entries)
        };
        Ok(Runner {
            longest_queue: longest(&pair.sender).min(longest(&pair.receiver)),
            pair,
            topology: Topology::read()?,
            channel: EventChannel::create()?,
            wakeable: Wakeable::new()?,
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

    /// Leaves out of a plan what these devices cannot do. The queue pairs of each remaining point are tried: on many HCAs
    /// their length and the inline size bound each other. So is the route to UC.
    ///
    /// # Errors
    /// When the devices cannot be asked, or refuse the route to UC that the configuration names.
    pub fn within_devices(&mut self, plan: Plan) -> Result<Plan, RunError> {
        let open = |end: &ChosenPort| Context::open_by_name(&end.device.name).map(Arc::new);
        let contexts = [open(&self.pair.sender)?, open(&self.pair.receiver)?];
        let services: BTreeSet<Service> = plan.points.iter().map(|point| point.service).collect();
        let plan = plan.within(&self.limits(&contexts, &services), self.config.warmup);
        let mut tried = HashMap::new();
        let plan = plan.admitted(|point| {
            let depth = self.config.depth_of(point.burst);
            let inline = if point.inline.is_on() { point.size } else { 0 };
            let key = (point.service, depth, inline);
            let reason: &Option<String> = tried.entry(key).or_insert_with(|| {
                let refused = try_ends(
                    &contexts,
                    point.service,
                    depth,
                    self.receives(point),
                    inline,
                )
                .err()?;
                Some(format!(
                    "--burst {}{} is impossible with --service {} on these devices: {refused}",
                    point.burst,
                    if inline > 0 {
                        format!(" with {inline} bytes inline")
                    } else {
                        String::new()
                    },
                    point.service.name(),
                ))
            });
            Ok::<_, RunError>(reason.clone())
        })?;
        let ends = [self.pair.sender.address, self.pair.receiver.address];
        let works = |route: UcRoute| {
            ends.into_iter()
                .try_for_each(|address| route.probe(&self.channel, address))
        };
        let (plan, route) = choose_route(plan, self.config.uc_route, works)?;
        self.uc_route = route;
        Ok(plan)
    }

    fn limits(&self, contexts: &[Arc<Context>; 2], services: &BTreeSet<Service>) -> Limits {
        let (sender, receiver) = (&self.pair.sender, &self.pair.receiver);
        let inline_of = |&service: &Service| {
            let granted = granted_inline(&contexts[0], service.into()).ok()?;
            let nothing = Capabilities {
                send_requests: 1,
                receive_requests: 1,
                inline_bytes: 0,
            };
            try_queue_pair(&contexts[1], service.into(), nothing).ok()?;
            Some((service, granted))
        };
        let smaller = |of: fn(&ChosenPort) -> u32| of(sender).min(of(receiver));
        Limits {
            queue_pair_work_requests: smaller(|end| end.device.limits.max_queue_pair_work_requests),
            completion_queue_entries: smaller(|end| end.device.limits.max_completion_queue_entries),
            path_mtu: smaller(|end| end.port.mtu),
            message: smaller(|end| end.port.max_message),
            inline: services.iter().filter_map(inline_of).collect(),
        }
    }

    /// Checks, before anything is measured, what every point needs of the machine: the clocks, the places of the threads,
    /// and memory that can be locked for the largest point. Then locks all memory.
    ///
    /// # Errors
    /// With what is missing and how to get it.
    pub fn prepare(&mut self, plan: &Plan) -> Result<(), RunError> {
        let mut needs = Vec::new();
        for point in &plan.points {
            let needed = Needs::of(point, &self.config, self.receives(point));
            needed.require(point, &self.config)?;
            let placement = self.placement(point)?;
            self.check_priority(&placement)?;
            if let Entry::Vacant(vacant) = self.clocks.entry(point.clock) {
                vacant.insert(AnyClock::prepare_with(point.clock, self.config.tsc_khz)?);
            }
            needs.push((point, needed, placement));
        }
        if self.config.huge_pages == HugePagePolicy::Required {
            let points = needs.iter();
            require_huge_pages(points.map(|(point, needs, placement)| (*point, needs, placement)))?;
        }
        let most = needs.iter().map(|(_, needs, _)| needs.bytes()).max();
        // mlockall counts the whole address space, with the stacks of the threads to come.
        let stacks = 4 * (2 << 20);
        let already = memory_lock::address_space_size().unwrap_or(0);
        let limit = match MemoryLock::raise() {
            Ok(limit) => limit,
            Err(_) => MemoryLock::read()?,
        };
        limit.require(already + stacks + most.unwrap_or(0))?;
        memory_lock::lock_all()?;
        Ok(())
    }

    fn check_priority(&self, placement: &Placement) -> Result<(), RunError> {
        let Some(priority) = self.config.priority else {
            return Ok(());
        };
        let mut warnings = placement.warnings.iter();
        let no_cpu_left = warnings.any(|one| one.compromise == Compromise::SupervisorShares);
        if no_cpu_left && !priority::is_throttled() {
            return Err(RunError::PriorityLeavesNothing { priority });
        }
        if placement.shares_cpu {
            return Err(RunError::PriorityOnSharedCpu { priority });
        }
        Ok(())
    }

    /// Receive requests of a point.
    fn receives(&self, point: &Point) -> u32 {
        receive_requests(
            point.service,
            self.config.depth_of(point.burst),
            self.longest_queue,
        )
    }

    fn placement(&self, point: &Point) -> Result<Placement, RunError> {
        let numa_nodes = [&self.pair.sender, &self.pair.receiver].map(|end| end.device.numa_node);
        Ok(Placement::of_point(
            &self.topology,
            point,
            self.config.cpus,
            numa_nodes,
        )?)
    }

    /// Measures one point. A failure after the first message is told in the result, with what was measured until then.
    ///
    /// # Errors
    /// When there is nothing to show.
    pub fn measure(
        &mut self,
        point: &Point,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PointResult, RunError> {
        let clock = match self.clocks.entry(point.clock) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                *vacant.insert(AnyClock::prepare_with(point.clock, self.config.tsc_khz)?)
            }
        };
        clock.visit(Measurement {
            runner: self,
            any_clock: clock,
            point,
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
            service: point.service,
            uc_route,
            operation: point.operation,
            size: point.size as usize,
            depth: self.config.depth_of(point.burst),
            receives: self.receives(point),
            inline: point.inline.is_on(),
            receive_events: point.poll_recv == Poll::Event,
            completion_events: point.poll_comp == Poll::Event,
            huge_pages: self.config.huge_pages,
            sender_cpu: placement.sender,
            receiver_cpu: placement.receiver,
        };
        let (from, to) = (self.pair.sender.end(), self.pair.receiver.end());
        let endpoints = Endpoints::connect(&self.channel, &from, &to, &settings)?;
        Ok((endpoints, uc_route))
    }

    fn costs<C: Clock>(
        &mut self,
        clock: &C,
        any_clock: AnyClock,
        placement: &Placement,
    ) -> Result<InstrumentCosts, RunError> {
        let key = (any_clock.kind(), placement.sender, placement.receiver);
        if let Some(costs) = self.costs.get(&key) {
            return Ok(*costs);
        }
        let before = pinning::current_affinity()?;
        pinning::pin_current_thread(placement.sender)?;
        let stamp = measure_stamp_cost(clock);
        pinning::pin_current_thread_to(&before)?;
        let costs = InstrumentCosts {
            stamp,
            floor: measure_floor(clock, placement.sender, placement.receiver)?,
            tsc: any_clock.tsc_facts(),
        };
        self.costs.insert(key, costs);
        Ok(costs)
    }
}

/// Tries queue pairs as long and with as much inline data as a point needs, on both devices.
fn try_ends(
    contexts: &[Arc<Context>; 2],
    service: Service,
    depth: u32,
    receives: u32,
    inline_bytes: u32,
) -> Result<(), VerbsError> {
    let service = ServiceType::from(service);
    let (sending, receiving) = queue_pair_lengths(depth, receives, inline_bytes);
    try_queue_pair(&contexts[0], service, sending)?;
    try_queue_pair(&contexts[1], service, receiving)?;
    Ok(())
}

/// A point about to be measured on one clock.
struct Measurement<'a> {
    runner: &'a mut Runner,
    any_clock: AnyClock,
    point: &'a Point,
    progress: &'a mut dyn FnMut(Progress),
}

impl ClockUser for Measurement<'_> {
    type Output = Result<PointResult, RunError>;

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        let Measurement {
            runner,
            any_clock,
            point,
            progress,
        } = self;
        let placement = runner.placement(point)?;
        let costs = runner.costs(&clock, any_clock, &placement)?;
        pinning::pin_current_thread_to(&placement.supervisor)?;
        let (endpoints, uc_route) = runner.connect(point, &placement)?;
        let config = &runner.config;
        let depth = config.depth_of(point.burst);
        let settings = SessionSettings {
            service: point.service,
            operation: point.operation,
            timestamp: point.timestamp,
            poll_recv: point.poll_recv,
            poll_comp: point.poll_comp,
            pause: point.pause_ns,
            receiver_pause: point.receiver_pause_ns,
            depth,
            signal_every: if point.unsignaled.is_on() { depth } else { 1 },
            timeout: config.timeout,
            priority: config.priority,
            huge_pages: config.huge_pages,
        };
        let mut session = Session::start(
            clock,
            &endpoints.sender,
            &endpoints.receiver,
            settings,
            &placement,
            &runner.wakeable,
            interrupt::requested,
        )?;
        let mut tally = Tally::default();
        let total = u64::from(config.warmup) + u64::from(config.repeat) * u64::from(point.burst);
        let mut done = 0;
        let warmup = (config.warmup > 0).then_some(None);
        for repeat in warmup.into_iter().chain((0..config.repeat).map(Some)) {
            let count = repeat.map_or(config.warmup, |_| point.burst);
            let mut report = |received: u32| {
                progress(Progress {
                    done: done + u64::from(received),
                    of: total,
                    text: None,
                });
            };
            let burst = session.run_burst(count as usize, &mut report)?;
            done += u64::from(count);
            tally.failure = burst.failure.clone();
            if let Some(repeat) = repeat {
                session.judge(&clock, repeat, burst, &mut tally);
            }
            if tally.failure.is_some() {
                break;
            }
        }
        let pages = session.pages();
        drop(session);
        let circumstances = Circumstances {
            completion_by: placement.completion_by,
            placement,
            pages,
            priority: config.priority,
            granted_inline: endpoints.sender.queue_pair().granted().inline_bytes,
            loop_faults: tally.faults,
            stamp_refresh_ns: tally.stamp_refresh_ns(),
            connection: match point.service {
                Service::Rc => "rdma_create_id, RDMA_PS_TCP".to_owned(),
                Service::Uc => format!("{}, RDMA_PS_IB", uc_route.function()),
                Service::Ud => "rdma_create_id, RDMA_PS_UDP".to_owned(),
            },
            uc_route: (point.service == Service::Uc).then(|| uc_route.name()),
        };
        Ok(PointResult::new(point.clone(), tally, circumstances, costs))
    }
}
