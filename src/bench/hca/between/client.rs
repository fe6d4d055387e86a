//! The process that asks: it sends the bursts, and the probes before, between and after them.

use std::collections::{BTreeSet, HashMap};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::super::bursts::Bursts;
use super::super::config::{Config, Connect, Poll, Service};
use super::super::endpoints::EndpointSettings;
use super::super::ends::{ReceivingEnd, SendingEnd};
use super::super::error::RunError;
use super::super::needs::{Needs, require_huge_pages};
use super::super::path::PathLimits;
use super::super::path_proof::PathEnd;
use super::super::placement::Placement;
use super::super::plan::{Limits, Plan, Point};
use super::super::port::{BusyPolling, Failure as PortFailure, WaitForEvent};
use super::super::requesting_end::Requester;
use super::super::result::Tally;
use super::super::run::{check_priority, connection_of, refusal_in_words};
use super::super::sending_end::Sender;
use super::super::session::Between;
use super::super::uc_route::choose_route;
use super::super::verbs_link::queue_pair_lengths;
use super::super::verbs_port::not_posted;
use super::super::worker::Frame;
use super::far::{FarReceiver, FarTarget, SharedWire, lock};
use super::half::{Half, Receiving};
use super::message::{ANSWER, Facts, Hello, Made, Message, Order, WORK, hear, only, tell};
use super::ping_pong::{Ports, SLOTS, Stamped, Watched, ask};
use super::serving::{of_probes, reads_of, receives_of};
use super::time_of_day::Ahead;
use crate::buffer::{HugePagePolicy, PageKind};
use crate::host::pinning::on_cpu;
use crate::host::{Topology, Wakeable, interrupt, memory_lock, pinning, priority};
use crate::launch::wire::Wire;
use crate::pacing::SplitMix64;
use crate::rdma::cm::{CmError, UcRoute};
use crate::rdma::verbs::{
    Capabilities, Gid, LinkLayer, Transport, common_partitions, devices, usual_pair,
};
use crate::results::document::Program;
use crate::rig::benchmark::{Failure, Progress};
use crate::rig::child;
use crate::rig::error::unless_interrupted;
use crate::rig::port_choice::choose_one;
use crate::rig::ports::SERVING;
use crate::time::between::{Phase, Probe};
use crate::time::{
    AnyClock, Clock, ClockKind, ClockUser, Nanos, StampCost, TscFacts, measure_stamp_cost,
};

/// How long the other host may take to be reached.
const REACHING: Duration = Duration::from_secs(10);
/// How long a phase of probes takes at the most.
const PHASE: Duration = Duration::from_secs(5);
/// The longest phase: the other end answers for a little longer.
const ANSWERED: Duration = Duration::from_secs(120);
/// How often a running phase is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long the answer to a probe may take on UC and UD, which lose messages.
const UNANSWERED: Duration = Duration::from_millis(200);
/// Between bursts there are probes only if the last ones are so long ago.
const SINCE_LAST: Duration = Duration::from_millis(250);

/// The other host, and how its clock is compared.
#[derive(Debug, Clone)]
pub struct PeerConfig {
    /// Host and TCP port.
    pub peer: String,
    /// Probes of each phase.
    pub probes: u32,
    /// How far the two clocks lie apart at the most, if the user says so.
    pub uncertainty: Option<Nanos>,
    /// How far their rates lie apart at the most, in parts per million.
    pub drift: u32,
}

/// A probe with its number and its phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probed {
    pub(super) number: u32,
    pub(super) phase: Phase,
    /// Which phase of its point, from 0.
    pub(super) place: u32,
    pub(super) stamps: Probe,
}

/// What came of a point.
#[derive(Debug)]
pub(super) struct PeerResult {
    pub(super) point: Point,
    pub(super) tally: Tally,
    pub(super) probes: Vec<Probed>,
    pub(super) unanswered: u64,
    pub(super) pages: [PageKind; 3],
    pub(super) placement: Placement,
    pub(super) path: PathEnd,
    pub(super) made: Made,
    pub(super) granted_inline: u32,
    pub(super) connection: String,
    pub(super) stamp: StampCost,
    pub(super) tsc: Option<TscFacts>,
    /// How far the time of day is ahead of this host's clock.
    pub(super) time_of_day: Ahead,
}

/// The asking end of a run.
pub(super) struct Client {
    config: Config,
    asked: PeerConfig,
    half: Half,
    pub(super) here: Facts,
    pub(super) there: Facts,
    wire: SharedWire,
    topology: Topology,
    wakeable: Wakeable,
    uc_route: Option<UcRoute>,
    clocks: HashMap<ClockKind, AnyClock>,
}

/// The addresses of a host; `HOST` or `HOST:PORT`, IPv6 in brackets.
pub(super) fn addresses_of(peer: &str, default_port: u16) -> Result<Vec<SocketAddr>, String> {
    let with_port = match peer.to_socket_addrs() {
        Ok(found) => Ok(found.collect::<Vec<_>>()),
        Err(_) => (peer.trim_matches(['[', ']']), default_port)
            .to_socket_addrs()
            .map(Iterator::collect),
    };
    match with_port {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err("it has no address".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What tells this run from others: its parent, where this process measures a round of it.
fn run_name(boot_id: &str) -> String {
    let process = match child::is_any() {
        true => nix::unistd::getppid(),
        false => nix::unistd::getpid(),
    };
    // Processes of two containers may have one number.
    let of_container = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{boot_id}-{}-{process}", of_container.display())
}

/// Keeps the connection of a run open as long as its process is there, so that nobody comes in between two rounds, each
/// of which is a process with a connection of its own.
fn keep_open(wire: &Wire) -> Result<(), RunError> {
    static KEPT: OnceLock<OwnedFd> = OnceLock::new();
    if !child::is_any() {
        let copy = wire.as_fd().try_clone_to_owned();
        let copy =
            copy.map_err(|error| RunError::Post(format!("keeping a connection open: {error}")))?;
        let _ = KEPT.set(copy);
    }
    Ok(())
}

impl Client {
    /// Opens the port of this host and greets the other one.
    ///
    /// # Errors
    /// When there is no port, the other host is not reached, or serves somebody else, or is another version.
    pub(super) fn connect(config: Config, asked: PeerConfig) -> Result<Self, RunError> {
        let half = Half::open(choose_one(&devices()?, "--sender", config.sender.as_ref())?)?;
        let here = half.facts();
        let addresses = addresses_of(&asked.peer, SERVING).map_err(|reason| {
            RunError::Usage(format!(
                "--peer {}: {reason}: allowed is HOST or HOST:PORT of a host where hcabench serve runs",
                asked.peer
            ))
        })?;
        let mut reached = Err(RunError::NoAddress);
        for address in addresses {
            reached = Wire::connect(address, REACHING).map_err(RunError::from);
            if reached.is_ok() {
                break;
            }
        }
        let mut wire = reached?;
        keep_open(&wire)?;
        let hello = Hello {
            program: Program::this(),
            run: run_name(&here.boot_id),
            host: here.host.clone(),
            port: config.receiver.clone(),
        };
        tell(&mut wire, &Message::Hello(Box::new(hello)))?;
        let there = hear(&mut wire, ANSWER, only!(Message::Welcome(facts) => *facts))?;
        tell(&mut wire, &Message::Welcome(Box::new(here.clone())))?;
        Ok(Client {
            config,
            asked,
            half,
            here,
            there,
            wire: Arc::new(Mutex::new(wire)),
            topology: Topology::read()?,
            wakeable: Wakeable::new()?,
            uc_route: None,
            clocks: HashMap::new(),
        })
    }

    pub(super) fn uc_route(&self) -> Option<UcRoute> {
        self.uc_route
    }

    fn ask<T>(
        &self,
        message: &Message,
        limit: Duration,
        wanted: impl FnOnce(Message) -> Result<T, Box<Message>>,
    ) -> Result<T, RunError> {
        let mut wire = lock(&self.wire);
        tell(&mut wire, message)?;
        hear(&mut wire, limit, wanted)
    }

    /// Leaves out of a plan what these two hosts cannot do.
    ///
    /// # Errors
    /// When one of them cannot be asked, or refuses the route to UC that is named.
    pub(super) fn within_devices(&mut self, plan: Plan) -> Result<Plan, RunError> {
        let ends = [&self.here, &self.there];
        let iwarp = ends.iter().find(|end| end.transport == Transport::Iwarp);
        let reason =
            iwarp.map(|end| format!("{} is iWARP, which has no immediate data", end.device));
        let plan = plan.without(|point| {
            let needs_it = point.operation.has_immediate_data();
            reason.clone().filter(|_| needs_it)
        });
        let plan = plan.without(only_on_one_host);
        let has_addresses = ends.iter().all(|end| end.address.is_some());
        let failed = std::cell::RefCell::new(None);
        let probe = |route: UcRoute| match self.probe(route) {
            Ok(refused) => refused.map_or(Ok(()), |text| Err(CmError::Far(text))),
            Err(error) => {
                let text = error.to_string();
                failed.borrow_mut().get_or_insert(error);
                Err(CmError::Far(text))
            }
        };
        let uc = plan.points.iter().any(|point| point.service == Service::Uc);
        let can_uc =
            has_addresses && uc && UcRoute::ALL.into_iter().any(|route| probe(route).is_ok());
        let plan = plan.connected(|service| has_addresses && (service != Service::Uc || can_uc));
        let by_manager = |point: &Point| point.connect == Connect::Manager;
        let plan = plan.without(|point| {
            (by_manager(point) && !has_addresses).then(|| {
                "--connect cm is impossible: one of the two ports has no IP address, which the connection manager needs: \
                 use --connect direct"
                    .to_owned()
            })
        });
        let plan = plan.within(&self.limits());
        let path = self.path_limits();
        let plan = plan.without(|point| path.impossible(point.connect, &point.path));
        let mut tried = HashMap::new();
        let plan = plan.without(|point| {
            let key = (
                point.service,
                point.burst,
                point.depth,
                point.queue_pairs,
                point.inline_bytes(),
            );
            let refusal = || match self.refusal(point) {
                Ok(refusal) => refusal,
                Err(error) => {
                    let text = error.to_string();
                    failed.borrow_mut().get_or_insert(error);
                    Some(text)
                }
            };
            tried.entry(key).or_insert_with(refusal).clone()
        });
        let (plan, route) =
            choose_route(plan, self.config.uc_route, probe).map_err(RunError::Usage)?;
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        self.uc_route = route;
        Ok(plan)
    }

    /// Tries a route to UC at both ends; tells why it is refused.
    fn probe(&self, route: UcRoute) -> Result<Option<String>, RunError> {
        if let Err(error) = self.half.probe(route) {
            return Ok(Some(error.to_string()));
        }
        self.ask(
            &Message::Route(route),
            WORK,
            only!(Message::Tried(refusal) => refusal),
        )
    }

    /// Tries the queue pairs of a point at both ends; tells why they are refused.
    fn refusal(&self, point: &Point) -> Result<Option<String>, RunError> {
        let requests = receives_of(point, &self.here, &self.there).requests;
        let (sending, receiving) =
            queue_pair_lengths(point.sends(), requests, point.inline_bytes());
        let (service, count) = (point.service, point.queue_pairs);
        let here = self.half.refuses(service, sending, count);
        let refused = match here {
            Some(error) => Some(error.to_string()),
            None => self.refused_there(service, receiving, count)?,
        };
        Ok(refused.map(|refused| refusal_in_words(point, &refused)))
    }

    fn refused_there(
        &self,
        service: Service,
        capabilities: Capabilities,
        count: u32,
    ) -> Result<Option<String>, RunError> {
        let attempt = Message::Try {
            service,
            capabilities,
            count,
        };
        self.ask(&attempt, WORK, only!(Message::Tried(refusal) => refusal))
    }

    fn least(&self, of: fn(&Facts) -> u32) -> u32 {
        of(&self.here).min(of(&self.there))
    }

    fn limits(&self) -> Limits {
        let there: BTreeSet<Service> = self
            .there
            .inline
            .iter()
            .map(|(service, _)| *service)
            .collect();
        let both = self
            .here
            .inline
            .iter()
            .filter(|(service, _)| there.contains(service));
        Limits {
            queue_pairs: self.least(|end| end.limits.max_queue_pairs),
            queue_pair_work_requests: self.least(|end| end.limits.max_queue_pair_work_requests),
            completion_queue_entries: self.least(|end| end.limits.max_completion_queue_entries),
            path_mtu: self.least(|end| end.mtu),
            message: self.least(|end| end.max_message),
            reads: reads_of(&self.here, &self.there),
            atomics: self.here.limits.atomics && self.there.limits.atomics,
            inline: both.copied().collect(),
        }
    }

    fn path_limits(&self) -> PathLimits {
        let (here, there) = (&self.here, &self.there);
        let suits = |gid: &&Gid| {
            let mut others = there.gids.iter().filter(|peer| peer.index == gid.index);
            others.any(|peer| peer.suits(gid))
        };
        let ethernet = [here, there]
            .iter()
            .any(|end| end.link_layer == LinkLayer::Ethernet);
        PathLimits {
            mtu: self.least(|end| end.mtu),
            partition_keys: common_partitions(&here.partition_keys, &there.partition_keys),
            has_usual_gids: usual_pair([&here.gids, &there.gids], [None; 2]).is_some(),
            gids: here
                .gids
                .iter()
                .filter(suits)
                .map(|gid| gid.index)
                .collect(),
            // Ethernet has 3 bits of priority, InfiniBand 4 of service level.
            service_level: if ethernet { 7 } else { 15 },
        }
    }

    fn placement(&self, point: &Point) -> Result<Placement, RunError> {
        let named = super::super::config::CpuRequest {
            receiver: None,
            ..self.config.cpus
        };
        let numa_node = self.half.port.device.numa_node;
        Ok(Placement::of_sending_side(
            &self.topology,
            point,
            named,
            numa_node,
        )?)
    }

    fn clock(&mut self, kind: ClockKind) -> Result<AnyClock, RunError> {
        if let Some(known) = self.clocks.get(&kind) {
            return Ok(*known);
        }
        let clock = AnyClock::prepare_with(kind, self.config.tsc_khz)?;
        self.clocks.insert(kind, clock);
        Ok(clock)
    }

    /// Checks, before anything is measured, what every point needs of both machines, and locks memory on both. Returns what
    /// the other one warns of.
    ///
    /// # Errors
    /// When one of them does not have it.
    pub(super) fn prepare(&mut self, plan: &Plan) -> Result<Vec<String>, RunError> {
        let mut most = 0;
        for point in &plan.points {
            let slots = receives_of(point, &self.here, &self.there).slots;
            let needed = Needs::of(point, &self.config, slots);
            needed.require(point, &self.config)?;
            let placement = self.placement(point)?;
            check_priority(self.config.priority, &placement)?;
            self.clock(point.clock)?;
            if self.config.huge_pages == HugePagePolicy::Required {
                require_huge_pages(needed.huge_pages(&placement), point)?;
            }
            most = needed.bytes().max(most);
        }
        let clocks: BTreeSet<ClockKind> = plan.points.iter().map(|point| point.clock).collect();
        let Some(point) = plan.points.first() else {
            return Ok(Vec::new());
        };
        let there = Message::Prepare {
            clocks: clocks.into_iter().collect(),
            bytes: most,
            cpu: self.config.cpus.receiver,
            allow_idle_states: self.config.allow_idle_states,
            point: Box::new(*point),
        };
        let warnings = self.ask(&there, WORK, only!(Message::Prepared(warnings) => warnings))?;
        memory_lock::lock_with(most)?;
        Ok(warnings)
    }

    /// Measures a point in a round.
    ///
    /// # Errors
    /// When there is nothing to show.
    pub(super) fn measure(
        &mut self,
        point: &Point,
        round: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PeerResult, RunError> {
        let clock = self.clock(point.clock)?;
        clock.visit(Measurement {
            client: self,
            tsc: clock.tsc_facts(),
            point,
            round,
            progress,
        })
    }
}

/// Why a point is measured on one host only.
fn only_on_one_host(point: &Point) -> Option<String> {
    let option = if let Some(background) = point.background {
        format!("--background {background}")
    } else if point.memory_load.is_on() {
        "--memory-load".to_owned()
    } else {
        return None;
    };
    Some(format!(
        "{option} is not measured between two hosts: leave it out, or leave out --peer"
    ))
}

/// A point about to be measured on one clock.
struct Measurement<'a> {
    client: &'a Client,
    tsc: Option<TscFacts>,
    point: &'a Point,
    round: u32,
    progress: &'a mut dyn FnMut(Progress),
}

impl ClockUser for Measurement<'_> {
    type Output = Result<PeerResult, RunError>;

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        let Measurement {
            client,
            tsc,
            point,
            round,
            progress,
        } = self;
        let config = &client.config;
        let placement = client.placement(point)?;
        let stamp = on_cpu(placement.sender, || measure_stamp_cost(&clock))?;
        pinning::pin_current_thread_to(&placement.supervisor)?;
        let uc_route = client.uc_route.unwrap_or(UcRoute::Endpoint);
        let settings = EndpointSettings {
            point: *point,
            uc_route,
            receives: receives_of(point, &client.here, &client.there),
            reads: match point.operation.is_one_way() {
                true => 0,
                false => reads_of(&client.here, &client.there),
            },
            comp_vectors: config.comp_vectors.unwrap_or_default(),
            huge_pages: config.huge_pages,
            sender_cpu: placement.sender,
            receiver_cpu: placement.sender,
        };
        let probes = of_probes(&settings);
        let order = Order {
            point: *point,
            uc_route,
            comp_vectors: settings.comp_vectors,
            huge_pages: config.huge_pages,
            priority: config.priority,
            cpu: config.cpus.receiver,
        };
        let (half, peer) = (&client.half, &client.there);
        let (sender, asking, answered, made) = {
            let mut wire = lock(&client.wire);
            tell(&mut wire, &Message::Point(Box::new(order)))?;
            on_cpu(placement.sender, || -> Result<_, RunError> {
                let sender = half.sending(&mut wire, peer, &settings)?;
                let asking = half.sending(&mut wire, peer, &probes)?;
                let answered = half.receiving(&mut wire, peer, &probes)?;
                let made = hear(&mut wire, WORK, only!(Message::Made(made) => *made))?;
                Ok((sender, asking, answered, made))
            })??
        };
        let path = sender.path_end();
        let granted_inline = sender.queue_pair().granted().inline_bytes;
        let supervisors = placement.supervisor.iter().next();
        let far = Arc::new(FarReceiver::new(
            Arc::clone(&client.wire),
            made.pages,
            supervisors.unwrap_or(placement.sender),
        ));
        let mut prober = Prober {
            clock,
            client,
            asking,
            answered,
            cpu: placement.sender,
            reliable: point.service == Service::Rc,
            events: point.poll_recv == Poll::Event,
            next: 0,
            phases: 0,
            last: None,
            far: Arc::clone(&far),
            probes: Vec::new(),
            unanswered: 0,
        };
        prober.post_all()?;
        let frame = Frame {
            point: *point,
            priority: config.priority,
            seed: SplitMix64::new(config.seed ^ u64::from(round)).draw(),
            huge_pages: config.huge_pages,
            wakeable: client.wakeable.clone(),
            far: true,
        };
        let bursts = Bursts {
            clock,
            config,
            frame,
            placement: &placement,
            background: None,
            load: None,
            progress,
            between: &mut prober,
        };
        let sender = Arc::new(sender);
        let (tally, pages) = if point.operation.is_one_way() {
            bursts.measure(&sender, &far)?
        } else {
            let target = FarTarget(Arc::clone(&far));
            let requester = Requester::new(&sender, target, point.operation);
            bursts.measure(&Arc::new(requester), &far)?
        };
        // Where the other end has gone, that is told already.
        let _ = tell(&mut lock(&client.wire), &Message::PointOver);
        Ok(PeerResult {
            point: *point,
            tally,
            probes: prober.probes,
            unanswered: prober.unanswered,
            pages,
            placement,
            path,
            made,
            granted_inline,
            connection: connection_of(point, uc_route),
            stamp,
            tsc,
            time_of_day: Ahead::of(&clock),
        })
    }
}

/// What exchanges probes while no burst runs.
struct Prober<'a, C> {
    clock: C,
    client: &'a Client,
    asking: Sender,
    answered: Receiving,
    cpu: usize,
    reliable: bool,
    events: bool,
    /// The number of the next probe on this connection.
    next: u32,
    /// Phases so far.
    phases: u32,
    last: Option<Instant>,
    probes: Vec<Probed>,
    unanswered: u64,
    far: Arc<FarReceiver>,
}

impl<C: Clock> Between for Prober<'_, C> {
    fn before_burst(&mut self, burst: u32) -> Result<(), RunError> {
        match burst {
            0 => self.phase(Phase::Before),
            _ if self.last.is_some_and(|last| last.elapsed() < SINCE_LAST) => Ok(()),
            _ => self.phase(Phase::Between),
        }
    }

    fn after_bursts(&mut self) -> Result<(), RunError> {
        self.phase(Phase::After)
    }
}

impl<C: Clock> Prober<'_, C> {
    fn post_all(&self) -> Result<(), RunError> {
        let post = |slot| self.answered.0.post(slot as usize);
        (0..SLOTS).try_for_each(post).map_err(RunError::from)
    }

    /// Exchanges the probes of a phase. Whoever fails to answer then is not asked again.
    fn phase(&mut self, phase: Phase) -> Result<(), RunError> {
        let done = self.exchange(phase);
        if let Err(RunError::Wire(_)) = &done {
            self.far.set_gone();
        }
        done
    }

    fn exchange(&mut self, phase: Phase) -> Result<(), RunError> {
        let (first, count) = (self.next, self.client.asked.probes);
        let place = self.phases;
        self.next += count;
        self.phases += 1;
        let mut wire = lock(&self.client.wire);
        tell(&mut wire, &Message::Probe { first, count })?;
        hear(&mut wire, ANSWER, only!(Message::Receiving => ()))?;
        let watched = Watched::default();
        let stamped = self.stamp((first, count), &watched);
        tell(&mut wire, &Message::ProbesOver)?;
        let (there, failure) = hear(
            &mut wire,
            ANSWER,
            only!(Message::Probed { stamped, failure } => (stamped, failure)),
        )?;
        drop(wire);
        let here = stamped?.map_err(|failure| probes_failed(&failure.to_string()))?;
        if let Some(failure) = failure {
            let failure = Failure::Run(format!("probes: {failure}"));
            return Err(RunError::Peer(self.peer(), failure));
        }
        self.last = Some(Instant::now());
        let there: HashMap<u32, Stamped> = there.into_iter().map(|one| (one.number, one)).collect();
        let nanos = |ticks| self.clock.to_nanos(ticks);
        let before = self.probes.len();
        self.probes.extend(here.iter().filter_map(|one| {
            let other = there.get(&one.number)?;
            Some(Probed {
                number: one.number,
                phase,
                place,
                stamps: Probe {
                    a_sent: nanos(one.sent),
                    b_received: Nanos(other.received.0),
                    b_sent: Nanos(other.sent.0),
                    a_received: nanos(one.received),
                },
            })
        }));
        let answered = self.probes.len() - before;
        if answered == 0 {
            return Err(probes_failed("none of them was answered"));
        }
        // Where the time of a phase was over, not all were sent.
        self.unanswered += u64::from(watched.at()).saturating_sub(answered as u64);
        unless_interrupted().map_err(RunError::from)
    }

    fn peer(&self) -> SocketAddr {
        lock(&self.client.wire).peer()
    }

    /// Sends probes in a thread on the sender's CPU, and gives up those that are not answered.
    fn stamp(
        &self,
        numbers: (u32, u32),
        watched: &Watched,
    ) -> Result<Result<Vec<Stamped>, PortFailure>, RunError> {
        let config = &self.client.config;
        let patience = match self.reliable {
            true => config.timeout,
            false => UNANSWERED.min(config.timeout),
        };
        let work = || -> Result<_, RunError> {
            pinning::pin_current_thread(self.cpu)?;
            if let Some(level) = config.priority {
                priority::set_fifo(i32::from(level))?;
            }
            Ok(self.ask(numbers, watched))
        };
        std::thread::scope(|scope| {
            let thread = scope.spawn(work);
            let begun = Instant::now();
            let (mut at, mut since) = (0, begun);
            while !thread.is_finished() {
                std::thread::sleep(LOOK);
                if watched.at() != at {
                    (at, since) = (watched.at(), Instant::now());
                }
                if begun.elapsed() > PHASE.max(patience * 2).min(ANSWERED)
                    || interrupt::requested().is_some()
                {
                    watched.stop();
                    self.client.wakeable.wake();
                } else if since.elapsed() > patience {
                    watched.give_up(at);
                    self.client.wakeable.wake();
                }
            }
            let stamped = thread.join();
            stamped.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn ask(&self, numbers: (u32, u32), watched: &Watched) -> Result<Vec<Stamped>, PortFailure> {
        let receiver = &self.answered.0;
        let ports = Ports {
            send: &mut self.asking.port(),
            receive: &mut ReceivingEnd::port(receiver, 0, SLOTS as usize),
            sent: &mut self.asking.completions(),
            post: &mut |slot| {
                receiver
                    .post(slot as usize)
                    .map_err(|error| not_posted(&error))
            },
            unsignalled: 0,
        };
        match self.events {
            false => ask(&self.clock, ports, BusyPolling, numbers, watched),
            true => self.client.wakeable.during(|| {
                ask(
                    &self.clock,
                    ports,
                    WaitForEvent::default(),
                    numbers,
                    watched,
                )
            }),
        }
    }
}

fn probes_failed(reason: &str) -> RunError {
    RunError::Post(format!(
        "probes: {reason}: are both ports up, and did an address or a route change in the middle?"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_host_with_or_without_a_port() {
        for (peer, expected) in [
            ("127.0.0.1", "127.0.0.1:18599"),
            ("127.0.0.1:7", "127.0.0.1:7"),
            ("[::1]", "[::1]:18599"),
            ("::1", "[::1]:18599"),
            ("[::1]:7", "[::1]:7"),
        ] {
            let found = addresses_of(peer, SERVING).unwrap();
            assert_eq!(found, [expected.parse().unwrap()], "{peer}");
        }
        assert!(addresses_of("", SERVING).is_err());
    }
}
