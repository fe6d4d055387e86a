//! A pair of ranks of a fabric: each measures towards the other, one after the other.
//!
//! The lower rank measures to the higher one, as a client of what that serves, and asks it then to do the same the other
//! way round. So both directions are measured by the same code, each by the host that sends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::figures::{figures_of_pair, message_rows, prove};
use super::remote::{FarEnd, Remote};
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::ends::open_port::OpenPort;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::Plan;
use crate::bench::hca::result::PointResult;
use crate::bench::hca::run::PointRunner;
use crate::bench::hca::run::clocks::Clocks;
use crate::bench::hca::settings::config::Config;
use crate::between::peer::PeerConfig;
use crate::between::probe::probe_rows;
use crate::between::proof::ProvedBounds;
use crate::host::idle_hold::IdleHold;
use crate::host::limits::Limits;
use crate::host::machine_name::kernel_release;
use crate::host::pinning::pin_current_thread_to;
use crate::host::readiness::{CPU_QUOTA, Needs, Readiness, Verdict};
use crate::host::{CpuSet, HostError, Topology};
use crate::launch::agent::RankWork;
use crate::launch::message::{DirectionReport, MeasurementOrder, PairReport, Start};
use crate::rdma::verbs::{LinkLayer, devices};
use crate::results::finding::{Finding, kinds};
use crate::results::samples::rows_to_text;
use crate::results::schema::between::{MESSAGES, PROBES_FILE};
use crate::rig::benchmark::Failure;
use crate::rig::findings::{of_idle_states, of_throttling};
use crate::rig::port_choice::choose_nth;
use crate::sorting::sort_by_key;

/// The largest file of samples of a direction that is sent to rank 0, in bytes: a line to it has four at the most.
const MOST_SAMPLES: usize = 3 << 20;

/// How much of a pair's time is left for telling what came of it.
const ENDING: Duration = Duration::from_secs(3);

/// What a rank measures with.
#[derive(Debug)]
pub struct PairEnd {
    config: Config,
    asked: PeerConfig,
    /// What follows is known once all ranks are there.
    run: OnceLock<String>,
    port: OnceLock<(OpenPort, Facts)>,
    cpus: OnceLock<RankCpus>,
    /// Held as long as it takes part.
    idle_hold: OnceLock<IdleHold>,
    /// The same for all pairs: the rate of a counter is measured once.
    clocks: Arc<Clocks>,
    /// Where it serves.
    serves: OnceLock<SocketAddr>,
}

/// The CPUs of a rank.
#[derive(Debug)]
struct RankCpus {
    own: CpuSet,
    /// Those of the sending and of the receiving thread, where there are fewer CPUs than ranks: two ranks of this host
    /// must not wait for each other on one CPU.
    ends: Option<(usize, usize)>,
}

impl RankCpus {
    /// Of a rank that shares what it may use with others: neighbours in the same NUMA node and core stay together.
    fn of(topology: &Topology, (place, count): (u32, u32)) -> Self {
        let mut allowed: Vec<_> = topology.cpus.iter().filter(|cpu| cpu.allowed).collect();
        sort_by_key(&mut allowed, |cpu| {
            (cpu.numa_node, cpu.siblings.first(), cpu.id)
        });
        let all: Vec<usize> = allowed.iter().map(|cpu| cpu.id).collect();
        let (place, count) = (place as usize, count.max(1) as usize);
        if all.len() < count {
            let ends = all.first().copied().zip(all.last().copied());
            let own = all.into_iter().collect();
            return RankCpus { own, ends };
        }
        let share = all.len() / count;
        let own = all.into_iter().skip(place * share).take(share).collect();
        RankCpus { own, ends: None }
    }
}

impl PairEnd {
    /// Of a run of one point.
    pub fn new(config: Config, asked: PeerConfig) -> Self {
        PairEnd {
            clocks: Arc::new(Clocks::new(config.tsc_khz)),
            config,
            asked,
            run: OnceLock::new(),
            port: OnceLock::new(),
            cpus: OnceLock::new(),
            idle_hold: OnceLock::new(),
            serves: OnceLock::new(),
        }
    }

    /// It serves there.
    pub fn serves_at(&self, address: SocketAddr) {
        let _ = self.serves.set(address);
    }

    /// Chooses its port: of the active ones that of its place among the ranks of its host. Returns what rank 0 is to know.
    fn choose(&self, start: &Start) -> Result<Value, RunError> {
        let port = choose_nth(&devices()?, self.config.sender.as_ref(), start.place)?;
        let named = &self.config.cpus;
        let named = [named.sender, named.completion, named.stamp];
        if start.share.1 > 1 && named.iter().any(Option::is_some) {
            return Err(RunError::Usage(
                "--sender-cpu, --completion-cpu, --stamp-cpu: several ranks share the CPUs of this host: leave them out, \
                 and each takes a share"
                    .to_owned(),
            ));
        }
        let _ = self.cpus.set(RankCpus::of(&Topology::read()?, start.share));
        let (hold, _, idle) = IdleHold::unless(self.config.allow_idle_states);
        hold.into_iter()
            .for_each(|hold| drop(self.idle_hold.set(hold)));
        let port = OpenPort::open(port)?;
        let facts = port.facts();
        let quota = of_quota(self.config.priority)?;
        let gid = facts.gids.first().map(|gid| gid.gid.as_str());
        let known = json!({
            "limits": Limits::of_this_process(), "kernel": kernel_release(),
            "node_name": std::env::var("HCABENCH_NODE").ok(),
            "device": facts.device, "port": facts.port, "address": facts.address, "software": facts.software,
            "gid": gid.filter(|_| facts.link_layer == LinkLayer::InfiniBand),
            "description": facts.description, "details": facts.details,
            "findings": Vec::from_iter(idle.as_ref().map(of_idle_states).into_iter().chain(quota)),
        });
        let _ = self.port.set((port, facts));
        let _ = self.run.set(start.run.clone());
        Ok(known)
    }

    /// Whether this is the run that this rank takes part in.
    pub(super) fn is_of(&self, run: &str) -> bool {
        self.run.get().is_some_and(|own| own == run)
    }

    /// The port of this rank, for a connection, once it is chosen.
    ///
    /// # Errors
    /// Before that.
    pub(super) fn port(&self) -> Result<(OpenPort, Facts), RunError> {
        let (port, facts) = self.port.get().ok_or(RunError::NoAddress)?;
        Ok((port.another(), facts.clone()))
    }

    /// Confines the calling thread to the CPUs of this rank.
    ///
    /// # Errors
    /// When the kernel does not do so.
    pub(super) fn take_place(&self) -> Result<(), HostError> {
        let cpus = self.cpus.get();
        cpus.map_or(Ok(()), |cpus| pin_current_thread_to(&cpus.own))
    }

    /// The clocks of this rank.
    pub(super) fn clocks(&self) -> Arc<Clocks> {
        Arc::clone(&self.clocks)
    }

    /// The CPU of the receiving thread, where it must not choose for itself.
    pub(super) fn receiver_cpu(&self) -> Option<usize> {
        self.cpus.get()?.ends.map(|(_, receiver)| receiver)
    }

    /// Measures towards a rank that serves there.
    pub(super) fn towards(
        &self,
        to: SocketAddr,
        (round, samples): (u32, bool),
        limit: Duration,
    ) -> Result<(DirectionReport, PointRunner<Remote>), RunError> {
        // The measurement before has left it to the CPUs that it did not measure on.
        self.take_place()?;
        let mut config = self.config.clone();
        // The partner chooses its own, and its port.
        config.cpus.receiver = None;
        let ends = self.cpus.get().and_then(|cpus| cpus.ends);
        config.cpus.sender = config.cpus.sender.or(ends.map(|(sender, _)| sender));
        let asked = PeerConfig {
            peer: to.to_string(),
            run: self.run.get().cloned(),
            limit: Some(limit),
            ..self.asked.clone()
        };
        let plan = Plan::new(&config.sweep);
        let (port, facts) = self.port()?;
        let peer = Remote::greet(None, &asked, port, facts)?;
        let mut runner = PointRunner::new(config, peer, self.clocks())?;
        let plan = runner.within_devices(plan, None)?;
        plan.check().map_err(RunError::Usage)?;
        let point = plan.points[0];
        runner.prepare(&plan)?;
        let measured = runner.measure(&point, round, &mut |_| ())?;
        Ok((self.report(&measured, round, samples)?, runner))
    }

    /// The figures of one direction.
    fn report(
        &self,
        (result, far): &(PointResult, FarEnd),
        round: u32,
        samples: bool,
    ) -> Result<DirectionReport, RunError> {
        let proved = prove(result, far, &self.asked);
        let proved = proved.as_ref();
        let unproved = proved.err().map(ToString::to_string);
        let (_, facts) = self.port()?;
        let throttled = of_throttling(&result.throttled, self.config.priority).into_iter();
        let throttled = throttled.map(|found| found.on(&*facts.host));
        Ok(DirectionReport {
            findings: throttled.chain(far.throttled.iter().cloned()).collect(),
            figures: figures_of_pair(result, far, proved),
            failure: result.failure.clone().or(unproved),
            samples: match samples {
                true => samples_of(round, result, far, proved.ok())?,
                false => BTreeMap::new(),
            },
        })
    }

    /// What the higher rank of a pair does when it is asked: the same the other way round.
    pub(super) fn back(
        &self,
        to: SocketAddr,
        measured: (u32, bool),
        limit: Duration,
    ) -> Result<DirectionReport, Failure> {
        let (report, _runner) = self.towards(to, measured, limit)?;
        Ok(report)
    }
}

/// A CPU quota that is less than the threads of a rank keep busy: it sends and is sent to.
fn of_quota(priority: Option<u8>) -> Result<Option<Finding>, HostError> {
    let needs = Needs::between_devices().with_priority(priority);
    let readiness = Readiness::assess(needs)?;
    let mut spoils = readiness.with(Verdict::Spoils);
    let quota = spoils.find(|check| check.id == CPU_QUOTA);
    Ok(quota.map(|check| {
        Finding::of(&kinds::MACHINE_NOT_READY)
            .name("check", check.title)
            .listed("found", &*check.found)
            .listed("advice", check.advice.as_deref().unwrap_or_default())
    }))
}

impl RankWork for &PairEnd {
    fn prepare(&mut self, start: &Start) -> Result<Value, String> {
        self.choose(start).map_err(|error| error.to_string())
    }

    fn measure(&mut self, order: &MeasurementOrder) -> Result<PairReport, String> {
        let begun = Instant::now();
        let begun_unix_ns = unix_ns();
        let measured = (order.round, order.samples);
        let limit = order.limit().saturating_sub(ENDING);
        let (there, runner) = self
            .towards(order.partner, measured, limit)
            .map_err(|error| error.to_string())?;
        let left = limit.saturating_sub(begun.elapsed());
        let serves = self.serves.get().ok_or("this rank serves no peer")?;
        let back = runner
            .peer
            .ask_back(*serves, measured, left.max(Duration::from_secs(1)))
            .unwrap_or_else(|error| DirectionReport {
                failure: Some(error.to_string()),
                ..DirectionReport::default()
            });
        Ok(PairReport {
            begun_unix_ns,
            directions: [there, back],
        })
    }
}

/// The samples of a direction, as rows of their files.
fn samples_of(
    round: u32,
    result: &PointResult,
    far: &FarEnd,
    proved: Option<&ProvedBounds>,
) -> Result<BTreeMap<String, String>, RunError> {
    let failed = |error: csv::Error| RunError::Post(format!("the samples of a pair: {error}"));
    let messages = rows_to_text(message_rows(round, result, proved)).map_err(failed)?;
    let probes = rows_to_text(probe_rows(round, &far.probes)).map_err(failed)?;
    let files = [(MESSAGES, messages), (PROBES_FILE, probes)];
    let files = files
        .into_iter()
        .filter(|(_, rows)| rows.len() <= MOST_SAMPLES);
    Ok(files
        .map(|(file, rows)| (file.name.to_owned(), rows))
        .collect())
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
