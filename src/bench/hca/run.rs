//! From a configuration to results, point by point, on real verbs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::analysis::{Burst, PayloadDelivery, judge};
use super::completion::CompletionOutcome;
use super::config::{Config, Operation, Poll, Service, Timestamp};
use super::control::Control;
use super::endpoints::{EndPort, EndpointError, EndpointSettings, Endpoints};
use super::floor::{FloorError, measure_floor};
use super::plan::{Limits, Plan, Point};
use super::port::Failure;
use super::receiver::ReceiveOutcome;
use super::result::{Circumstances, Counts, InstrumentCosts, LoopFaults, Message, PointResult};
use super::sender::SendOutcome;
use super::stamper::StampOutcome;
use super::threads::{self, Frame, Report, SenderSettings, Task, ThreadError, Worker};
use crate::buffer::{Arrival, Bytes, PageKind, PayloadBuffer};
use crate::cm::{CmError, EventChannel};
use crate::host::{
    CompletionBy, HostError, MemoryLock, Placement, PlacementRequest, Role, RoleRequest, Topology,
    Waiting, Wakeable, interrupt, memory_lock, pinning,
};
use crate::stats::{LatencyHistogram, MedianInterval, Summary};
use crate::time::{
    AnyClock, Clock, ClockError, ClockKind, ClockUser, Nanos, Ticks, measure_stamp_cost,
};
use crate::verbs::{Context, Device, Port, ServiceType, VerbsError, devices, granted_inline};

/// How often the running burst is looked at. Each look costs a hot thread a few microseconds where no CPU is left.
const LOOK: Duration = Duration::from_millis(200);
/// How long a thread may take to leave its loop after it was told to.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for late arrivals once something has failed.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

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
    /// The devices cannot be asked.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// The floor could not be measured.
    #[error(transparent)]
    Floor(#[from] FloorError),
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

/// Why no pair of ports can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// There is no device at all.
    #[error(
        "no RDMA device on this host (libibverbs finds none): load the driver, check with `hcabench devices`, or run on \
         SoftRoCE in a virtual machine with ci/hcabench"
    )]
    NoDevice,
    /// No active port with an address.
    #[error(
        "no RDMA port is active and has an IP address: {found}; bring a port up (ip link set DEV up, ip address add)"
    )]
    NoUsablePort {
        /// What there is.
        found: String,
    },
    /// Only one port where two are needed.
    #[error(
        "only one usable RDMA port ({found}): two are needed; name both by --sender and --receiver, also if they are to \
         be the same one"
    )]
    OnlyOne {
        /// The port.
        found: String,
    },
    /// A device that was named does not exist.
    #[error("{option} {value}: there is no device of that name; the devices are {devices}")]
    UnknownDevice {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What there is.
        devices: String,
    },
    /// A port that was named does not exist or is not active.
    #[error("{option} {value}: {reason}")]
    UnusablePort {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// Why not.
        reason: String,
    },
}

/// The two ports of a run, with their devices.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The sending end.
    pub sender: ChosenPort,
    /// The receiving end.
    pub receiver: ChosenPort,
}

/// A port of a device with the address to be used.
#[derive(Debug, Clone)]
pub struct ChosenPort {
    /// The device.
    pub device: Device,
    /// The port.
    pub port: Port,
    /// The address.
    pub address: std::net::IpAddr,
}

impl ChosenPort {
    fn end(&self) -> EndPort {
        EndPort {
            device: self.device.name.clone(),
            port: self.port.number,
            address: self.address,
        }
    }
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
    config: Config,
    pair: Pair,
    topology: Topology,
    channel: Arc<EventChannel>,
    wakeable: Wakeable,
    clocks: HashMap<ClockKind, AnyClock>,
    costs: HashMap<(ClockKind, usize, usize), InstrumentCosts>,
}

impl Runner {
    /// Chooses the ports and makes the machine ready: memory is locked from here on.
    ///
    /// # Errors
    /// When no pair of ports suits, or the machine refuses.
    pub fn new(config: Config) -> Result<Self, RunError> {
        let pair = super::choice::choose(
            &devices()?,
            config.sender.as_ref(),
            config.receiver.as_ref(),
        )?;
        Ok(Runner {
            pair,
            topology: Topology::read()?,
            channel: EventChannel::create()?,
            wakeable: Wakeable::new()?,
            clocks: HashMap::new(),
            costs: HashMap::new(),
            config,
        })
    }

    /// The ports of the run.
    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// What the devices allow.
    ///
    /// # Errors
    /// When they cannot be asked.
    pub fn limits(&self) -> Result<Limits, RunError> {
        let (sender, receiver) = (&self.pair.sender, &self.pair.receiver);
        let context = Arc::new(Context::open_by_name(&sender.device.name)?);
        let mut inline = Vec::new();
        for service in [Service::Rc, Service::Uc, Service::Ud] {
            inline.push((
                service,
                granted_inline(&context, ServiceType::from(service))?,
            ));
        }
        let smaller = |of: fn(&ChosenPort) -> u32| of(sender).min(of(receiver));
        Ok(Limits {
            queue_pair_work_requests: smaller(|end| end.device.limits.max_queue_pair_work_requests),
            completion_queue_entries: smaller(|end| end.device.limits.max_completion_queue_entries),
            path_mtu: smaller(|end| end.port.mtu),
            message: smaller(|end| end.port.max_message),
            inline,
        })
    }

    /// Checks, before anything is measured, what every point needs of the machine: the clocks, the places of the threads,
    /// and memory that can be locked for the largest point. Then locks all memory.
    ///
    /// # Errors
    /// With what is missing and how to get it.
    pub fn prepare(&mut self, plan: &Plan) -> Result<(), RunError> {
        for point in &plan.points {
            let placement = self.placement(point)?;
            if let Some(priority) = self.config.priority.filter(|_| placement.shares_cpu()) {
                return Err(RunError::PriorityOnSharedCpu { priority });
            }
            if let Entry::Vacant(vacant) = self.clocks.entry(point.clock) {
                vacant.insert(AnyClock::prepare(point.clock)?);
            }
        }
        let buffers = plan
            .points
            .iter()
            .map(|point| self.bytes_needed(point).0)
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

    /// Bytes of all buffers of a point.
    pub fn bytes_needed(&self, point: &Point) -> Bytes {
        let depth = point.burst.max(self.config.warmup) as usize;
        let size = point.size as usize;
        let payload = PayloadBuffer::bytes_needed(depth, size, 0).0
            + PayloadBuffer::bytes_needed(depth, size, 40).0;
        let stamps = (depth * (3 * size_of::<Ticks>() + size_of::<Arrival>())) as u64;
        // Six buffers, each rounded up to whole 2 MiB pages and one more for their alignment.
        Bytes(payload + stamps + 6 * (4 << 20))
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
        let clock = match self.clocks.get(&point.clock) {
            Some(clock) => *clock,
            None => AnyClock::prepare(point.clock)?,
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
            calibration: any_clock.calibration(),
        };
        self.costs.insert(key, costs);
        Ok(costs)
    }
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
            let mut failure = burst.failure.clone();
            if let Some(repeat) = repeat {
                session.judge(&clock, repeat, burst, &mut tally);
                if failure.is_none() && point.service == Service::Rc && tally.counts.lost > 0 {
                    failure = Some(format!(
                        "{} messages of a reliable connection did not arrive within --timeout: raise it, or mend the link",
                        tally.counts.lost
                    ));
                }
            }
            if failure.is_some() {
                tally.failure = failure;
                break;
            }
        }
        Ok(session.finish(tally, costs))
    }
}

/// What the bursts of a point add up to.
#[derive(Default)]
struct Tally {
    messages: Vec<Message>,
    counts: Counts,
    faults: LoopFaults,
    posting_ns: u64,
    posted: u64,
    rewritten: u64,
    rewriting_ns: u64,
    failure: Option<String>,
}

/// What the threads brought back from one burst.
#[derive(Default)]
struct BurstRecord {
    number: u32,
    submitted: Vec<Ticks>,
    completed: Vec<Ticks>,
    arrivals: Vec<Arrival>,
    send: Option<SendOutcome>,
    receive: Option<ReceiveOutcome>,
    completion: Option<CompletionOutcome>,
    stamp: Option<StampOutcome>,
    faults: LoopFaults,
    failure: Option<String>,
}

/// The connected endpoints and the threads of one point.
struct Session<'a> {
    point: &'a Point,
    placement: Placement,
    timeout: Duration,
    priority: Option<u8>,
    wakeable: Wakeable,
    reports: Receiver<Report>,
    workers: Vec<Worker>,
    stamp_pages: PageKind,
    bursts: u32,
    endpoints: Arc<Endpoints>,
}

impl<'a> Session<'a> {
    fn start<C: Clock>(
        runner: &Runner,
        point: &'a Point,
        placement: Placement,
        clock: C,
    ) -> Result<Self, RunError> {
        let config = &runner.config;
        let depth = point.burst.max(config.warmup);
        let settings = EndpointSettings {
            service: point.service,
            operation: point.operation,
            size: point.size as usize,
            depth,
            inline: point.inline.is_on(),
            receive_events: point.poll_recv == Poll::Event,
            completion_events: point.poll_comp == Poll::Event,
            huge_pages: config.huge_pages,
            sender_cpu: placement.sender,
            receiver_cpu: placement.receiver,
        };
        let (from, to) = (runner.pair.sender.end(), runner.pair.receiver.end());
        let endpoints = Arc::new(Endpoints::connect(&runner.channel, &from, &to, &settings)?);
        let (sender, reports) = channel();
        let frame = Frame {
            capacity: depth as usize,
            huge_pages: config.huge_pages,
            priority: config.priority,
            wakeable: runner.wakeable.clone(),
            reports: sender,
        };
        let signal_every = if point.unsignaled.is_on() { depth } else { 1 };
        let sending = SenderSettings {
            pause: point.pause_ns,
            timestamp: point.timestamp,
            signal_every,
            collects: placement.completion_by == CompletionBy::Sender,
        };
        let failed = |role| move |error| RunError::Spawn(role, error);
        let mut workers = vec![
            threads::start_receiver(
                clock,
                placement.receiver,
                &frame,
                &endpoints,
                point.poll_recv,
                point.operation,
            )
            .map_err(failed(Role::Receiver))?,
            threads::start_sender(clock, placement.sender, &frame, &endpoints, sending)
                .map_err(failed(Role::Sender))?,
        ];
        if let Some(cpu) = placement.completion {
            workers.push(
                threads::start_completion(
                    clock,
                    cpu,
                    &frame,
                    &endpoints,
                    point.poll_comp,
                    signal_every,
                )
                .map_err(failed(Role::Completion))?,
            );
        }
        if let Some(cpu) = placement.stamp {
            workers.push(
                threads::start_stamper(clock, cpu, &frame, &endpoints)
                    .map_err(failed(Role::Stamp))?,
            );
        }
        let mut session = Session {
            point,
            placement,
            timeout: config.timeout,
            priority: config.priority,
            wakeable: runner.wakeable.clone(),
            reports,
            workers,
            stamp_pages: PageKind::Huge,
            bursts: 0,
            endpoints,
        };
        for _ in 0..session.workers.len() {
            match session.reports.recv_timeout(Duration::from_secs(30)) {
                Ok(Report::Placed(pages)) => {
                    session.stamp_pages =
                        pages.map_or(session.stamp_pages, |pages| pages.min(session.stamp_pages));
                }
                Ok(Report::Unfit(role, error)) => return Err(RunError::Thread(role, error)),
                Ok(_) | Err(_) => return Err(RunError::Stuck),
            }
        }
        Ok(session)
    }

    /// Runs one burst and watches over it.
    fn run_burst(
        &mut self,
        count: usize,
        progress: &mut dyn FnMut(u32),
    ) -> Result<BurstRecord, RunError> {
        let control = Arc::new(Control::default());
        let task = Task {
            number: self.bursts,
            count,
            others: self.workers.len() as u32 - 1,
            control: Arc::clone(&control),
        };
        let mut record = BurstRecord {
            number: self.bursts,
            ..BurstRecord::default()
        };
        self.bursts += 1;
        for worker in &self.workers {
            // A thread that has gone shows by its missing report.
            let _ = worker.tasks.send(task.clone());
        }
        let mut watch = Watch::new(self.timeout, self.point.pause_ns);
        let mut missing = self.workers.len();
        let mut stopped_at: Option<Instant> = None;
        while missing > 0 {
            match self.reports.recv_timeout(watch.look) {
                Ok(report) => {
                    missing -= 1;
                    if let Some((role, error)) = record.take(report) {
                        control.stop();
                        self.wakeable.wake();
                        record.failure.get_or_insert(format!("{role}: {error}"));
                        stopped_at.get_or_insert_with(Instant::now);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(RunError::Stuck),
                Err(RecvTimeoutError::Timeout) => {}
            }
            progress(control.received());
            if let Some(since) = stopped_at {
                self.wakeable.wake();
                if since.elapsed() > GRACE {
                    return Err(RunError::Stuck);
                }
                continue;
            }
            let ending = if let Some(signal) = interrupt::requested() {
                Some(Some(format!("interrupted by {signal}")))
            } else if let Some(trouble) = watch.due().then(|| self.endpoints.trouble()).flatten() {
                Some(Some(trouble))
            } else {
                watch.is_over(&control).then_some(None)
            };
            if let Some(failure) = ending {
                record.failure = failure.or(record.failure);
                control.stop();
                self.wakeable.wake();
                stopped_at = Some(Instant::now());
            }
        }
        record.find_failure();
        // Whatever was noticed first, this is the reason for it.
        if record.failure.is_some()
            && interrupt::requested().is_none()
            && let Some(removal) = self.endpoints.removal()
        {
            record.failure = Some(removal);
        }
        Ok(record)
    }

    /// Judges the messages of a burst.
    fn judge<C: Clock>(&self, clock: &C, repeat: u32, record: BurstRecord, tally: &mut Tally) {
        let delivery = PayloadDelivery {
            payload: self.endpoints.target(),
            burst: record.number,
            by_sequence: self.point.operation == Operation::Write,
        };
        let burst = Burst {
            repeat,
            submitted: &record.submitted,
            completed: &record.completed,
            arrivals: &record.arrivals,
            timestamp: self.point.timestamp,
        };
        let (messages, mut counts) = judge(clock, burst, &delivery);
        counts.late = record
            .receive
            .as_ref()
            .map_or(0, |outcome| u64::from(outcome.late));
        counts.failed_completions = record
            .completion
            .as_ref()
            .map_or(0, |outcome| u64::from(outcome.failed));
        tally.counts += counts;
        tally.faults.sender += record.faults.sender;
        tally.faults.receiver += record.faults.receiver;
        tally.faults.completion += record.faults.completion;
        if let (Some(first), Some(outcome)) = (record.submitted.first(), &record.send) {
            let posting = clock.to_nanos(outcome.last_post).0 - clock.to_nanos(*first).0;
            tally.posting_ns += posting;
            tally.posted += u64::from(outcome.posted);
            if let Some(stamp) = &record.stamp {
                tally.rewritten += stamp.rewritten;
                // The stamp thread is at work while a message is under way.
                tally.rewriting_ns += messages
                    .iter()
                    .filter_map(|message| Some(message.received_ns? - message.submitted_ns))
                    .sum::<u64>();
            }
        }
        tally.messages.extend(messages);
    }

    /// Ends the threads and sums up.
    fn finish(mut self, tally: Tally, costs: InstrumentCosts) -> PointResult {
        self.end_threads();
        let latencies: Vec<i64> = tally
            .messages
            .iter()
            .filter_map(Message::latency_ns)
            .collect();
        let completions: Vec<i64> = tally
            .messages
            .iter()
            .filter_map(Message::completion_latency_ns)
            .collect();
        let [from_pages, to_pages] = self.endpoints.page_kinds();
        PointResult {
            point: self.point.clone(),
            counts: tally.counts,
            latency: Summary::of(&latencies),
            median_interval: MedianInterval::of(&latencies),
            histogram: LatencyHistogram::of(&latencies),
            completion_latency: Summary::of(&completions),
            post_rate: (tally.posting_ns > 0)
                .then(|| tally.posted as f64 * 1e9 / tally.posting_ns as f64),
            circumstances: Circumstances {
                completion_by: self.placement.completion_by,
                placement: self.placement.clone(),
                pages: [self.stamp_pages, from_pages, to_pages],
                priority: self.priority,
                granted_inline: self.endpoints.sending().granted().inline_bytes,
                loop_faults: tally.faults,
                stamp_refresh_ns: (tally.rewritten > 0)
                    .then(|| tally.rewriting_ns as f64 / tally.rewritten as f64),
                connection: match self.point.service {
                    Service::Rc => "rdma_create_id, RDMA_PS_TCP",
                    Service::Uc => "rdma_create_ep, RDMA_PS_IB",
                    Service::Ud => "rdma_create_id, RDMA_PS_UDP",
                },
            },
            messages: tally.messages,
            costs,
            failure: tally.failure,
        }
    }

    fn end_threads(&mut self) {
        for worker in self.workers.drain(..) {
            drop(worker.tasks);
            // All threads have reported or were told to stop, so they are about to end.
            let deadline = Instant::now() + GRACE;
            while !worker.handle.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(100));
            }
            if worker.handle.is_finished() {
                let _ = worker.handle.join();
            }
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.end_threads();
    }
}

impl BurstRecord {
    /// Keeps what a thread reports; gives back the error if it has none but that.
    fn take(&mut self, report: Report) -> Option<(Role, ThreadError)> {
        match report {
            Report::Placed(..) => {}
            Report::Unfit(role, error) => return Some((role, error)),
            Report::Sent {
                submitted,
                completed,
                outcome,
                faults,
            } => {
                self.submitted = submitted;
                if let Some((completed, completion)) = completed {
                    self.completed = completed;
                    self.completion = Some(completion);
                }
                self.send = Some(outcome);
                self.faults.sender = faults;
            }
            Report::Received {
                arrivals,
                outcome,
                faults,
            } => {
                self.arrivals = arrivals;
                self.receive = Some(outcome);
                self.faults.receiver = faults;
            }
            Report::Completed {
                completed,
                outcome,
                faults,
            } => {
                self.completed = completed;
                self.completion = Some(outcome);
                self.faults.completion = faults;
            }
            Report::Restamped(outcome) => self.stamp = Some(outcome),
        }
        None
    }

    /// Puts a failure of the loops in words, unless a graver one is known. What failed first says more than what follows.
    fn find_failure(&mut self) {
        let failed_sends = self.completion.as_ref().and_then(|outcome| {
            outcome.failure.as_ref().map(|failure| {
                format!(
                    "{} send requests completed with an error, the first: {failure}",
                    outcome.failed
                )
            })
        });
        let of = |failure: &Option<Failure>, what: &str| {
            failure.as_ref().map(|failure| format!("{what}: {failure}"))
        };
        let posting = self
            .send
            .as_ref()
            .and_then(|outcome| of(&outcome.failure, "posting"));
        let receiving = self
            .receive
            .as_ref()
            .and_then(|outcome| of(&outcome.failure, "receiving"));
        if self.failure.is_none() {
            self.failure = failed_sends.or(receiving).or(posting);
        }
    }
}

/// Sees when nothing more is to be expected.
struct Watch {
    look: Duration,
    timeout: Duration,
    pause: Duration,
    counts: (u32, u32, u32),
    changed: Instant,
    looked: Instant,
}

impl Watch {
    fn new(timeout: Duration, pause: Nanos) -> Self {
        Watch {
            look: LOOK.min(timeout / 4).max(Duration::from_millis(1)),
            timeout,
            pause: Duration::from_nanos(pause.0),
            counts: (0, 0, 0),
            changed: Instant::now(),
            looked: Instant::now(),
        }
    }

    /// Whether it is time for a look at what costs a system call.
    fn due(&mut self) -> bool {
        let due = self.looked.elapsed() >= LOOK.min(self.look);
        if due {
            self.looked = Instant::now();
        }
        due
    }

    /// Whether nothing has happened for so long that nothing will.
    fn is_over(&mut self, control: &Control) -> bool {
        let counts = (control.posted(), control.received(), control.completed());
        if counts != self.counts {
            self.counts = counts;
            self.changed = Instant::now();
            return false;
        }
        let patience = if control.failed() {
            self.timeout.min(AFTER_FAILURE)
        } else if control.sender_done() {
            self.timeout
        } else {
            self.timeout + self.pause
        };
        self.changed.elapsed() >= patience
    }
}
