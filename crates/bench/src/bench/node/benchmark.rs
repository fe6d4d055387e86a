//! The node benchmark as the rig runs it: which points there are, and one run of a point in each round.

use std::time::{Duration, SystemTime};

use serde_json::json;

use super::between::bounds;
use super::config::{Config, LogPlace, RunsAs, TimerKind};
use super::error::RunError;
use super::log::Log;
use super::plan::{Plan as Points, Sweep};
use super::point::Point;
use super::result::{LostSample, ReceivedSample, SentSample};
use super::run::{self, NodeMachine, Run};
#[cfg(feature = "rdma")]
use super::verbs;
use super::{files, findings, process, publisher, rows, subscriber};
use crate::buffer::HugePagePolicy;
use crate::host::MemoryLock;
use crate::node::settings::Poll;
use crate::results::finding::{Finding, kinds};
use crate::results::hlog::{self, LoggedRound, RoundLog};
use crate::results::schema::{Schema, node as columns, node_between};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
    SampleFolders,
};
use crate::rig::error::RigError;
use crate::rig::findings::{of_placement, of_throttling};
use crate::rig::memory::{Allowance, MemoryNeed};
use crate::stats::TimedSamples;

/// The distributions in a point's folder.
pub const LATENCY: &str = "latency.hgrm";
/// From when a sample was meant to be sent.
pub const INTENDED: &str = "intended.hgrm";

/// What else a point leaves on disk, in bytes.
const BYTES_PER_POINT: u64 = 512 << 10;
/// What a run takes beside its steps: threads, connections, memory.
const TIME_BESIDE: Duration = Duration::from_millis(100);
/// The same for each end that is a process.
const TIME_OF_A_PROCESS: Duration = Duration::from_millis(20);

/// The node benchmark.
#[derive(Debug)]
pub struct NodeBenchmark {
    config: Config,
    sweep: Sweep,
    plan: Points,
    machine: Option<NodeMachine>,
}

impl NodeBenchmark {
    /// Of that sweep.
    pub fn new(config: Config, sweep: Sweep) -> Self {
        NodeBenchmark {
            config,
            sweep,
            plan: Points::default(),
            machine: None,
        }
    }

    /// Samples that a run of a point sends, those of the warm-up not counted, and the most that come of them.
    fn samples(&self, point: &Point) -> (u64, u64) {
        let steps = self.config.steps(point.rate_per_s);
        let sent = steps.saturating_mul(u64::from(point.wiring.publishers));
        (sent, sent.saturating_mul(point.wiring.copies()))
    }

    /// Memory that a run of a point takes.
    fn needs(&self, point: &Point) -> [MemoryNeed; 5] {
        let config = &self.config;
        let (sent, received) = self.samples(point);
        let wiring = &point.wiring;
        let steps = config.steps(point.rate_per_s);
        let (place, policy) = (config.log, config.huge_pages);
        // Of another host's logs there is a copy here, in small pages.
        let copied = match config.peer {
            None => policy,
            Some(_) => HugePagePolicy::Off,
        };
        let of_publisher = Log::<{ SentSample::WORDS }>::memory(place, steps as usize, policy).0;
        let of_subscribers = (0..wiring.subscribers)
            .map(|number| subscriber::entries(wiring, steps, number))
            .map(|entries| Log::<{ ReceivedSample::WORDS }>::memory(place, entries, copied).0)
            .fold(0, u64::saturating_add);
        let logs = of_publisher.saturating_mul(wiring.publishers.into());
        // Of two clocks, the two stamps of each copy and its bounds, with its place.
        let of_bounds = match config.peer {
            None => 0,
            Some(_) => 120,
        };
        // The step of each sample; of each copy whether it came, and two figures of it, or that it did not.
        let of_figures = match config.interval(point.rate_per_s) {
            None => 2 * 8,
            // The figures of one metric beside.
            Some(_) => 2 * TimedSamples::BYTES + 8,
        };
        let of_copy = of_figures.max(size_of::<LostSample>() as u64) + 1 + of_bounds;
        let analysis = (sent.saturating_mul(8)).saturating_add(received.saturating_mul(of_copy));
        let subscribers_here = match config.peer {
            None => wiring.subscribers,
            Some(_) => 0,
        };
        let slots = u64::from(wiring.publishers) * publisher::slots(config) as u64
            + u64::from(subscribers_here) * subscriber::slots(config) as u64;
        [
            MemoryNeed {
                what: "logs",
                bytes: logs.saturating_add(of_subscribers),
            },
            MemoryNeed {
                what: "the analysis of what was logged",
                bytes: analysis,
            },
            MemoryNeed {
                what: "samples",
                bytes: slots * rows::slot_bytes(point),
            },
            MemoryNeed {
                what: "rings",
                bytes: (point.node_type).memory(wiring, &point.settings(config)),
            },
            MemoryNeed {
                what: "processes",
                bytes: u64::from(processes(point)) * process::BYTES_BESIDE,
            },
        ]
    }

    fn check_memory(&self) -> Result<(), RunError> {
        let Some(allowance) = Allowance::of_this_process() else {
            return Ok(());
        };
        for point in &self.plan.points {
            let options = format!(
                "--rate {} for {} steps",
                point.rate_per_s,
                self.config.steps(point.rate_per_s)
            );
            let advice = match self.config.log {
                LogPlace::Memory if self.config.peer.is_none() => {
                    "lower --count, --duration, --rate, --receive-queue, --publishers or --subscribers, \
                    or use --log file"
                }
                _ => {
                    "lower --count, --duration, --rate, --receive-queue, --publishers or --subscribers"
                }
            };
            let checked = allowance.require(&self.needs(point), &options, advice);
            checked.map_err(RigError::Memory)?;
        }
        Ok(())
    }

    /// Refuses what cannot be measured at all.
    fn check_points(&self) -> Result<(), RunError> {
        if let Some(reason) = self.plan.why_empty() {
            return Err(RunError::NothingToMeasure(reason));
        }
        #[cfg(feature = "rdma")]
        verbs::check(&self.plan, &self.config)?;
        Ok(())
    }

    /// The plan as the rig has it.
    fn outline(&self) -> Plan {
        let planned = |(index, point): (usize, &Point)| {
            let (sent, received) = self.samples(point);
            let lost = sent
                .saturating_add(received)
                .saturating_mul(files::BYTES_PER_LOST);
            let formats = self.config.keep_samples.len() as u64;
            let kept = sent.saturating_add(received).saturating_mul(formats);
            let values = sent.saturating_mul(formats * u64::from(point.values));
            let interval = self.config.interval(point.rate_per_s);
            let run = self.config.lasts(point.rate_per_s);
            let logs = interval.map_or(0, |interval| 2 * hlog::most_bytes(run, interval));
            PlannedPoint {
                index,
                rows: vec![PlannedRow {
                    name: point.to_string(),
                    settings: rows::settings(point, &self.config),
                }],
                time: TIME_BESIDE
                    .saturating_add(TIME_OF_A_PROCESS * processes(point))
                    .saturating_add(run::usual(point, &self.config)),
                bytes: (kept.saturating_mul(files::BYTES_PER_SAMPLE))
                    .saturating_add(values.saturating_mul(files::BYTES_PER_VALUE))
                    .saturating_add(lost)
                    .saturating_add(logs)
                    .saturating_add(BYTES_PER_POINT),
                bytes_once: BYTES_PER_POINT,
                bytes_of_losses: lost,
                may_abort: point.node_type.may_abort(),
            }
        };
        Plan {
            points: self.plan.points.iter().enumerate().map(planned).collect(),
            left_out: self.plan.left_out.clone(),
        }
    }

    /// The logs of a round by interval, where there are some.
    fn interval_logs(&self, point: &Point, round: u32, run: &mut Run) -> Vec<RoundLog> {
        let Some(interval) = self.config.interval(point.rate_per_s) else {
            return Vec::new();
        };
        let round = LoggedRound {
            number: round,
            interval,
            // Stamps count from there.
            zero: SystemTime::UNIX_EPOCH,
        };
        let samples = std::mem::take(&mut run.outcome.by_time);
        let logs = [LATENCY, INTENDED].into_iter().zip(samples);
        let logs = logs.map(|(of, samples)| RoundLog::of(hlog::beside(of), samples, 0, &round));
        logs.flatten().collect()
    }

    fn round(
        &self,
        point: &Point,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, RunError> {
        let machine = self.machine.as_ref().expect("the benchmark was prepared");
        let folder = &place.folders[0];
        let mut run = machine.run(point, &self.config, folder, progress)?;
        let interval_logs = self.interval_logs(point, place.round, &mut run);
        files::add_lost(folder, place.round, &run)?;
        let proved = match (&run.far, &self.config.peer) {
            (Some(far), Some(asked)) => {
                files::add_probes(folder, place.round, far)?;
                Some(bounds::prove(&run.outcome, far, asked))
            }
            _ => None,
        };
        let contradiction = (proved.as_ref())
            .and_then(|proved| proved.as_ref().err())
            .map(|error| match error.is_contradiction() {
                true => format!("contradiction: {error}"),
                false => error.to_string(),
            });
        let proved = proved.and_then(Result::ok);
        for &format in &self.config.keep_samples {
            let source = files::SampleSource {
                point,
                seed: self.config.seed,
                clock: &machine.clock,
                run: &run,
                proved: proved.as_ref(),
            };
            files::add_samples(folder, place.round, format, &source)?;
        }
        let found = &run.outcome;
        let mut findings = findings::of(point, found);
        findings.extend(of_placement(&run.placement.warnings));
        findings.extend(of_throttling(&run.throttled, None));
        let (figures, histograms) = match &run.far {
            None => {
                let mut figures = rows::figures(point, found);
                rows::add_broker(&mut figures, run.broker.as_ref());
                let histograms = vec![
                    (LATENCY.to_owned(), found.latency.histogram.clone()),
                    (INTENDED.to_owned(), found.intended.histogram.clone()),
                ];
                (figures, histograms)
            }
            Some(far) => {
                findings.extend(far.findings.iter().cloned());
                findings.push(Finding::of(&kinds::HALF_ROUND_TRIP));
                let (mut figures, histograms) = bounds::figures(point, found, far, proved.as_ref());
                rows::add_broker(&mut figures, run.broker.as_ref());
                (figures, histograms)
            }
        };
        let row = RowOutcome {
            figures,
            findings,
            failure: failure(&run).or(contradiction),
            obtained: json!({
                "within_the_latency": point.node_type.within(),
                "made_of": point.node_type.made_of(),
                "cpus": run.placement.cpus,
                "of_peer": (run.far.as_ref())
                    .map(|far| json!({ "cpus": far.cpus, "pages": far.pages })),
                "placement_warnings": run.placement.warnings,
                "pages": run.reports.least_pages(run.far.is_some()),
            }),
            details: json!({ "by_subscriber": found.by_subscriber }),
            histograms,
            interval_logs,
            ..RowOutcome::default()
        };
        Ok(Outcome {
            rows: vec![row],
            ..Outcome::default()
        })
    }
}

/// Processes that a run of a point starts.
fn processes(point: &Point) -> u32 {
    match point.ends {
        RunsAs::Threads => 0,
        RunsAs::Processes => point.wiring.publishers + point.wiring.subscribers,
    }
}

/// What makes figures worthless, beside losses, which are results.
fn failure(run: &Run) -> Option<String> {
    let tally = &run.outcome.tally;
    let whole = (run.reports.publishers.iter().map(|it| it.pool_is_whole))
        .chain(run.reports.subscribers.iter().map(|it| it.pool_is_whole));
    let faults = [
        (
            tally.damaged,
            "samples arrived with other values than were sent",
        ),
        (
            tally.never_sent,
            "samples arrived at a subscriber they were not sent to",
        ),
        (
            whole.filter(|whole| !whole).count() as u64,
            "pools were not whole at the end: the node-type kept samples",
        ),
    ];
    let faults = faults.into_iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = faults
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

impl Benchmark for NodeBenchmark {
    fn schema(&self) -> &'static Schema {
        match self.config.peer {
            None => &columns::SCHEMA,
            Some(_) => &node_between::SCHEMA,
        }
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        self.plan = Points::new(&self.sweep, &self.config);
        self.check_points()?;
        self.check_memory()?;
        if let Some(ends @ 1..) = self.plan.points.iter().map(processes).max() {
            process::allow(ends, &self.config)?;
        }
        Ok(self.outline())
    }

    fn busy_cpus(&self) -> Option<usize> {
        let is_busy = [
            self.config.timer == TimerKind::Counter,
            self.config.poll == Poll::Busy,
        ];
        let [spin, poll] = is_busy.map(u32::from);
        let busy = |point: &Point| {
            let wiring = &point.wiring;
            let subscribers = match self.config.peer {
                None => wiring.subscribers,
                Some(_) => 0,
            };
            (spin * wiring.publishers + poll * subscribers) as usize
        };
        self.plan.points.iter().map(busy).max()
    }

    fn prepare(&mut self, _plan: Plan) -> Result<Ready, Failure> {
        let raised = MemoryLock::raise().or_else(|_| MemoryLock::read());
        raised.map_err(RunError::from)?;
        #[cfg_attr(not(feature = "rdma"), expect(unused_mut))]
        let mut machine = NodeMachine::new(&self.config)?;
        #[cfg(feature = "rdma")]
        let [facts, devices] = {
            machine.fabric = verbs::open(&mut self.plan, &self.config, self.sweep.all_types)?;
            let fabric = machine.fabric.as_ref();
            [verbs::facts, verbs::devices].map(|told| Some(told(fabric?, &self.config)))
        };
        #[cfg(not(feature = "rdma"))]
        let [facts, devices]: [Option<serde_json::Value>; 2] = [None, None];
        let mut devices = devices;
        if let Some(remote) = &machine.remote {
            let mut remote = remote.borrow_mut();
            let address = remote.address()?;
            self.plan.without(&self.config, |point| {
                remote.refusal(point, address, &self.config.broker)
            });
        }
        self.check_points()?;
        for point in &self.plan.points {
            machine.placement(point)?;
        }
        let mut findings = Vec::new();
        let mut hosts = None;
        if let (Some(remote), Some(asked)) = (&machine.remote, &self.config.peer) {
            let mut remote = remote.borrow_mut();
            let prepared = remote.prepare(&self.config, &self.plan.points)?;
            let device = prepared.iter().find_map(|it| it.device.as_ref());
            if let (Some(devices), Some(device)) = (&mut devices, device) {
                devices["receiver"] = device.clone();
            }
            let refused = self.plan.points.clone().into_iter().zip(prepared);
            let host = &remote.there.host;
            let told = |reason| format!("on {host}: {reason}");
            let refused = refused.filter_map(|(point, it)| Some((point, told(it.refusal?))));
            let refused: Vec<(Point, String)> = refused.collect();
            self.plan.without(&self.config, |point| {
                let reason = refused.iter().find(|(it, _)| it == point);
                reason.map(|(_, reason)| reason.clone())
            });
            self.check_points()?;
            let (here, there) = (&remote.here, &remote.there);
            hosts = Some(json!({ "publishers": here, "subscribers": there }));
            if here.boot_id == there.boot_id {
                findings.push(Finding::of(&kinds::ONE_HOST));
            } else if self.config.timer == TimerKind::Timerfd && asked.uncertainty.is_none() {
                findings.push(Finding::of(&kinds::STEERED_CLOCK));
            }
            if remote.is_exposed() {
                findings.push(Finding::of(&kinds::WITHOUT_SECRET));
            }
        }
        let ready = Ready {
            plan: self.outline(),
            obtained: json!({
                "latency_is_from": "the stamp of a sample to when it was read",
                "infiniband": facts,
                "devices": devices,
                "hosts": hosts,
            }),
            instrument: json!({ "clock": { "tsc": machine.clock.tsc_facts() } }),
            announcements: Vec::new(),
            findings,
        };
        self.machine = Some(machine);
        Ok(ready)
    }

    fn measure(
        &mut self,
        point: usize,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        Ok(self.round(&self.plan.points[point], place, progress)?)
    }
}
