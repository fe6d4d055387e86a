//! From a configuration to results, point by point, on real verbs.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::choice::{ChoiceError, ChosenPort, Pair, choose};
use super::config::{Config, Poll, Service, Timestamp};
use super::endpoints::{EndpointError, GLOBAL_ROUTE_HEADER, queue_pair_lengths};
use super::floor::{FloorError, measure_floor};
use super::plan::{Limits, Plan, Point};
use super::result::{InstrumentCosts, Message, PointResult};
use super::session::{GRACE, Session, Tally};
use super::threads::ThreadError;
use super::uc_route::{RouteRefused, choose_route};
use crate::buffer::{Arrival, Bytes, HugePagePolicy, PayloadBuffer};
use crate::host::{
    Compromise, HostError, HugePages, MemoryLock, Placement, PlacementRequest, Role, RoleRequest,
    Topology, Waiting, Wakeable, memory_lock, pinning, priority,
};
use crate::rdma::cm::{CmError, EventChannel, UcRoute};
use crate::rdma::verbs::{
    Capabilities, Context, ServiceType, VerbsError, devices, granted_inline, try_queue_pair,
};
use crate::rig::named::Named;
use crate::time::{AnyClock, Clock, ClockError, ClockKind, ClockUser, Ticks, measure_stamp_cost};

/// Bytes that a message takes in memory until its point is written: the judged message and its latencies, sorted.
const BYTES_PER_RESULT: u64 = (size_of::<Message>() + 4 * size_of::<i64>()) as u64;

/// Bytes of a huge page.
const HUGE_PAGE: u64 = 2 << 20;

/// A run cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The devices do not suit the configuration.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// A clock cannot be used.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The machine refuses.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The ends could not be connected.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The connection manager is not there.
    #[error(transparent)]
    Connection(#[from] CmError),
    /// The route to UC that was asked for does not work.
    #[error(transparent)]
    UcRoute(#[from] RouteRefused),
    /// The devices cannot be asked.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// The floor could not be measured.
    #[error(transparent)]
    Floor(#[from] FloorError),
    /// Huge pages are required, and there are too few.
    #[error(
        "--hugepages required: {point} needs {needed} huge pages of 2 MiB, {free} are free: reserve them (sysctl \
         vm.nr_hugepages={pool}), or use --hugepages try"
    )]
    TooFewHugePages {
        /// The point that needs the most.
        point: String,
        /// Pages that it needs.
        needed: u64,
        /// Pages that are free.
        free: u64,
        /// The size of the pool that would do.
        pool: u64,
    },
    /// The results of a point would not fit into memory.
    #[error(
        "--burst {burst} with --repeat {repeat} is impossible here: the {messages} messages of that point take {needed} \
         of memory, this machine has {total}: use a smaller --repeat, and several runs"
    )]
    TooManyMessages {
        /// Messages of a burst.
        burst: u32,
        /// Bursts.
        repeat: u32,
        /// Their product.
        messages: u64,
        /// What it takes.
        needed: Bytes,
        /// What there is.
        total: Bytes,
    },
    /// Real-time threads on all CPUs, and nothing that keeps them in check.
    #[error(
        "--priority {priority} is impossible here: the measuring threads would spin on every CPU, and \
         kernel.sched_rt_runtime_us is -1, so nothing else would ever run: set that to 950000, or leave out --priority"
    )]
    PriorityLeavesNothing {
        /// The priority asked for.
        priority: u8,
    },
    /// A thread could not be started.
    #[error("the {0} could not be started: {1}")]
    Spawn(Role, std::io::Error),
    /// A thread could not do its work.
    #[error("{0}: {1}")]
    Thread(Role, ThreadError),
    /// Two threads with a real-time priority on one CPU.
    #[error(
        "--priority {priority} is impossible where measuring threads share a CPU: one would keep the other from ever \
         running; give each its own (--sender-cpu, --receiver-cpu, --completion-cpu, --stamp-cpu) or leave it out"
    )]
    PriorityOnSharedCpu {
        /// The priority asked for.
        priority: u8,
    },
    /// A thread does not answer.
    #[error("a measuring thread did not leave its loop within {} s after it was told to", GRACE.as_secs())]
    Stuck,
    /// A signal came before there was anything to keep.
    #[error("interrupted")]
    Interrupted,
}

/// What the observer of a run is told while a point is measured.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Messages received so far, warm-up included.
    pub messages: u64,
    /// Of so many.
    pub of: u64,
}

/// Measures points on one pair of ports.
pub struct Runner {
    pub(super) config: Config,
    pub(super) pair: Pair,
    topology: Topology,
    pub(super) channel: Arc<EventChannel>,
    pub(super) wakeable: Wakeable,
    /// The route that UC takes; chosen by [`Runner::within_devices`] if there is a point that needs one.
    pub(super) uc_route: Option<UcRoute>,
    clocks: HashMap<ClockKind, AnyClock>,
    costs: HashMap<(ClockKind, usize, usize), InstrumentCosts>,
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
        Ok(Runner {
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
            let depth = point.burst.max(self.config.warmup);
            let inline = if point.inline.is_on() { point.size } else { 0 };
            let key = (point.service, depth, inline);
            let reason: &Option<String> = tried.entry(key).or_insert_with(|| {
                let refused = try_ends(&contexts, point.service.into(), depth, inline).err()?;
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
        let total = memory_lock::physical_memory();
        for point in &plan.points {
            let messages = u64::from(point.burst) * u64::from(self.config.repeat);
            let needed = messages * BYTES_PER_RESULT;
            if let Some(total) = total.filter(|total| needed > total / 2) {
                return Err(RunError::TooManyMessages {
                    burst: point.burst,
                    repeat: self.config.repeat,
                    messages,
                    needed: Bytes(needed),
                    total: Bytes(total),
                });
            }
            let placement = self.placement(point)?;
            let no_cpu_left = placement
                .warnings
                .iter()
                .any(|warning| warning.compromise == Compromise::SupervisorShares);
            if let Some(priority) = self.config.priority
                && no_cpu_left
                && !priority::is_throttled()
            {
                return Err(RunError::PriorityLeavesNothing { priority });
            }
            if let Some(priority) = self.config.priority.filter(|_| placement.shares_cpu()) {
                return Err(RunError::PriorityOnSharedCpu { priority });
            }
            if let Entry::Vacant(vacant) = self.clocks.entry(point.clock) {
                vacant.insert(AnyClock::prepare_with(point.clock, self.config.tsc_khz)?);
            }
        }
        if self.config.huge_pages == HugePagePolicy::Required {
            self.require_huge_pages(plan)?;
        }
        let buffers = plan
            .points
            .iter()
            .map(|point| {
                let messages = u64::from(point.burst) * u64::from(self.config.repeat);
                self.bytes_needed(point).0 + messages * BYTES_PER_RESULT
            })
            .max()
            .unwrap_or(0);
        // mlockall counts the whole address space, with the stacks of the threads to come.
        let stacks = 4 * (2 << 20);
        let already = memory_lock::address_space_size().unwrap_or(0);
        let limit = match MemoryLock::raise() {
            Ok(limit) => limit,
            Err(_) => MemoryLock::read()?,
        };
        limit.require(already + stacks + buffers)?;
        memory_lock::lock_all()?;
        Ok(())
    }

    /// Bytes of each buffer of a point.
    fn buffers(&self, point: &Point) -> [Bytes; 6] {
        let depth = point.burst.max(self.config.warmup) as usize;
        let size = point.size as usize;
        let header = match point.service {
            Service::Ud => GLOBAL_ROUTE_HEADER,
            Service::Rc | Service::Uc => 0,
        };
        let stamps = Bytes((depth * size_of::<Ticks>()) as u64);
        [
            PayloadBuffer::bytes_needed(depth, size, 0),
            PayloadBuffer::bytes_needed(depth, size, header),
            // t_subm, t_comp in the sender, t_comp in a completion thread.
            stamps,
            stamps,
            stamps,
            Bytes((depth * size_of::<Arrival>()) as u64),
        ]
    }

    /// Bytes of all buffers of a point: each in whole 2 MiB pages, with one more for its alignment.
    fn bytes_needed(&self, point: &Point) -> Bytes {
        let rounded = |bytes: Bytes| bytes.0.next_multiple_of(HUGE_PAGE) + HUGE_PAGE;
        Bytes(self.buffers(point).map(rounded).iter().sum())
    }

    /// Huge pages for all buffers of a point.
    fn huge_pages_needed(&self, point: &Point, placement: &Placement) -> u64 {
        let [from, to, submitted, completed, by_thread, arrivals] = self
            .buffers(point)
            .map(|bytes| bytes.0.div_ceil(HUGE_PAGE).max(1));
        let by_thread = placement.completion.map_or(0, |_| by_thread);
        from + to + submitted + completed + by_thread + arrivals
    }

    /// Checks that there are enough huge pages for the point that needs the most of them.
    fn require_huge_pages(&self, plan: &Plan) -> Result<(), RunError> {
        let mut most: Option<(u64, &Point)> = None;
        for point in &plan.points {
            let needed = self.huge_pages_needed(point, &self.placement(point)?);
            if most.is_none_or(|(pages, _)| needed > pages) {
                most = Some((needed, point));
            }
        }
        let Some((needed, point)) = most else {
            return Ok(());
        };
        let pool = HugePages::read();
        let free = pool.map_or(0, |pool| pool.available());
        if needed <= free + pool.map_or(0, |pool| pool.overcommit) {
            return Ok(());
        }
        Err(RunError::TooFewHugePages {
            point: point.to_string(),
            needed,
            free,
            pool: pool.map_or(0, |pool| pool.total) + needed - free,
        })
    }

    fn placement(&self, point: &Point) -> Result<Placement, RunError> {
        let waiting = |poll| {
            if poll == Poll::Busy {
                Waiting::Spin
            } else {
                Waiting::Sleep
            }
        };
        let role = |cpu, numa_node, waiting| RoleRequest {
            cpu,
            numa_node,
            waiting,
        };
        let (from, to) = (
            self.pair.sender.device.numa_node,
            self.pair.receiver.device.numa_node,
        );
        let cpus = self.config.cpus;
        let request = PlacementRequest {
            sender: role(cpus.sender, from, Waiting::Spin),
            receiver: role(cpus.receiver, to, waiting(point.poll_recv)),
            completion: Some(role(cpus.completion, from, waiting(point.poll_comp))),
            stamp: (point.timestamp == Timestamp::Send)
                .then(|| role(cpus.stamp, from, Waiting::Spin)),
        };
        Ok(Placement::plan(&self.topology, &request)?)
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

    fn costs<C: Clock>(
        &mut self,
        clock: &C,
        any_clock: AnyClock,
        placement: &Placement,
    ) -> Result<InstrumentCosts, RunError> {
        let key = (clock.kind(), placement.sender, placement.receiver);
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
    service: ServiceType,
    depth: u32,
    inline_bytes: u32,
) -> Result<(), VerbsError> {
    let (sending, receiving) = queue_pair_lengths(depth, inline_bytes);
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
        let mut session = Session::start(runner, point, placement, clock)?;
        let config = &runner.config;
        let total = u64::from(config.warmup) + u64::from(config.repeat) * u64::from(point.burst);
        let mut done = 0;
        let mut tally = Tally::default();
        let bursts = std::iter::once(None)
            .filter(|_| config.warmup > 0)
            .chain((0..config.repeat).map(Some));
        for repeat in bursts {
            let count = if repeat.is_some() {
                point.burst
            } else {
                config.warmup
            };
            let base = done;
            let mut report = |received: u32| {
                progress(Progress {
                    messages: base + u64::from(received),
                    of: total,
                });
            };
            let burst = session.run_burst(count as usize, &mut report)?;
            done += u64::from(count);
            let failure = burst.failure.clone();
            if let Some(repeat) = repeat {
                session.judge(&clock, repeat, burst, &mut tally);
            }
            if failure.is_some() {
                tally.failure = failure;
                break;
            }
        }
        Ok(session.finish(tally, costs))
    }
}
