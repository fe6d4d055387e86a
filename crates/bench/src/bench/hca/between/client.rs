//! The process that asks: it sends the bursts, and the probes before, between and after them.

mod within_devices;

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::super::bursts::Bursts;
use super::super::config::{Config, Service};
use super::super::endpoints::EndpointSettings;
use super::super::error::RunError;
use super::super::needs::{Needs, require_huge_pages};
use super::super::path_proof::PathEnd;
use super::super::placement::Placement;
use super::super::plan::{Plan, Point};
use super::super::requesting_end::Requester;
use super::super::result::Tally;
use super::super::run::connection_of;
use super::super::worker::Frame;
use super::far::{FarReceiver, FarTarget, SharedWire, lock};
use super::half::Half;
use super::message::{ANSWER, Facts, Hello, Made, Message, Order, WORK, hear, only, tell};
use super::probe_end::{Part, ProbeEnd, of_probes};
use super::prober::{Probed, Prober};
use super::serving::receives_of;
use super::time_of_day::Ahead;
use crate::buffer::{HugePagePolicy, PageKind};
use crate::host::pinning::on_cpu;
use crate::host::{Topology, Wakeable, memory_lock, pinning};
use crate::launch::message::DirectionReport;
use crate::launch::wire::Wire;
use crate::pacing::SplitMix64;
use crate::rdma::cm::UcRoute;
use crate::rdma::verbs::devices;
use crate::results::document::Program;
use crate::rig::benchmark::Progress;
use crate::rig::child;
use crate::rig::port_choice::choose_one;
use crate::rig::ports::SERVING;
use crate::sorting::distinct;
use crate::time::{
    AnyClock, Clock, ClockKind, ClockUser, Nanos, StampCost, TscFacts, measure_stamp_cost,
};

/// How long the other host may take to be reached.
const REACHING: Duration = Duration::from_secs(10);
/// How much longer than its limit the other direction may take to tell what came of it.
const LEAVING: Duration = Duration::from_secs(2);

/// The other host, and how its clock is compared.
#[derive(Debug, Clone)]
pub struct PeerConfig {
    /// Host and TCP port.
    pub peer: String,
    /// What tells this run from others; otherwise the process does.
    pub run: Option<String>,
    /// How long the other host is waited for in all, however long each wait may take.
    pub limit: Option<Duration>,
    /// Probes of each phase.
    pub probes: u32,
    /// How far the two clocks lie apart at the most, if the user says so.
    pub uncertainty: Option<Nanos>,
    /// How far their rates lie apart at the most, in parts per million.
    pub drift: u32,
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
        Self::greet(config, asked, half, here)
    }

    /// Greets the other host, with a port of this one that is open.
    ///
    /// # Errors
    /// When the other host is not reached, or serves somebody else, or is another version.
    pub(super) fn greet(
        config: Config,
        asked: PeerConfig,
        half: Half,
        here: Facts,
    ) -> Result<Self, RunError> {
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
        if let Some(limit) = asked.limit {
            wire.end_at(Instant::now() + limit);
        }
        let run = match &asked.run {
            Some(run) => run.clone(),
            None => {
                keep_open(&wire)?;
                run_name(&here.boot_id)
            }
        };
        let hello = Hello {
            program: Program::this(),
            run,
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

    /// Asks the other end, a rank of a fabric as this one, to measure towards this one.
    ///
    /// # Errors
    /// When it cannot, or not in time.
    pub(super) fn ask_back(
        &mut self,
        serves: SocketAddr,
        (round, samples): (u32, bool),
        limit: Duration,
    ) -> Result<DirectionReport, RunError> {
        let message = Message::Back {
            serves,
            round,
            samples,
            limit_ms: limit.as_millis() as u64,
        };
        self.ask(
            &message,
            limit + LEAVING,
            only!(Message::BackOver(report) => *report),
        )
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

    /// Uses a clock that is prepared already.
    pub(super) fn use_clock(&mut self, kind: ClockKind, clock: AnyClock) {
        self.clocks.insert(kind, clock);
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
            placement.places().permit(self.config.priority)?;
            self.clock(point.clock)?;
            if self.config.huge_pages == HugePagePolicy::Required {
                require_huge_pages(needed.huge_pages(&placement), point)?;
            }
            most = needed.bytes().max(most);
        }
        let clocks = distinct(plan.points.iter().map(|point| point.clock));
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
            reads: client.here.to(&client.there).reads_of(point),
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
        let end = ProbeEnd::new(
            clock,
            Part::Asks,
            (asking, answered),
            point,
            (placement.sender, config.priority),
            client.wakeable.clone(),
        )?;
        let mut prober = Prober::new(
            clock,
            (Arc::clone(&client.wire), Arc::clone(&far)),
            end,
            client.asked.probes,
            (point.service == Service::Rc, config.timeout),
        );
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
