//! What there is to draw in the results of each benchmark, and where it stands.

use super::config::Checked;
use crate::bench::hca::config::Operation;
use crate::bench::node::benchmark::INTENDED;
use crate::cli::UsageError;
use crate::results::read::{Benchmark, Point};
use crate::results::schema::{SampleFile, between, clock, hca, memory, node, queue};
use crate::rig::named::Named;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metric {
    pub benchmark: Benchmark,
    /// What it is called by --metric.
    pub name: &'static str,
    alias: &'static str,
    /// On an axis.
    pub label: &'static str,
    /// How the columns of its percentiles begin in the summary, where there are any: `STEM_p50_ns`.
    pub stem: &'static str,
    /// Where its samples stand in the benchmark's file of samples: in a column, or as the difference of two, the second
    /// less the first; nowhere, if there is only a distribution.
    pub samples: &'static [&'static str],
}

/// When a jump began, its length, and its cause.
pub(super) const JUMP: [&str; 3] = ["t_ns", "jump_ns", "cause"];

const fn metric(
    benchmark: Benchmark,
    [name, alias, label, stem]: [&'static str; 4],
    samples: &'static [&'static str],
) -> Metric {
    Metric {
        benchmark,
        name,
        alias,
        label,
        stem,
        samples,
    }
}

/// Of a memory: the latency by shares of the largest bandwidth, in place of the curves.
pub(super) const LOADED: &str = "loaded";

pub(super) static METRICS: [Metric; 16] = [
    metric(
        Benchmark::Hca,
        ["latency", "t_lat", "one-way latency", "latency"],
        &["latency_ns"],
    ),
    metric(
        Benchmark::Hca,
        [
            "completion",
            "t_comp",
            "completion latency",
            "completion_latency",
        ],
        &["completion_latency_ns"],
    ),
    metric(
        Benchmark::Hca,
        [
            "intended",
            "",
            "latency from the intended time",
            "intended_latency",
        ],
        &["t_intended_ns", "t_recv_ns"],
    ),
    metric(
        Benchmark::Between,
        ["excess", "", "latency above the least", "excess"],
        &[between::message::EXCESS.name],
    ),
    metric(
        Benchmark::Between,
        [
            "half-round-trip",
            "",
            "half a round trip (one way if both ways are equal)",
            "half_round_trip",
        ],
        &[],
    ),
    metric(
        Benchmark::Between,
        [
            "completion",
            "t_comp",
            "completion latency",
            "completion_latency",
        ],
        &["completion_latency_ns"],
    ),
    metric(
        Benchmark::Queue,
        ["latency", "", "latency through the queue", "latency"],
        &["latency_ns"],
    ),
    metric(
        Benchmark::Queue,
        ["enqueue", "", "time of an enqueue", "enqueue"],
        &["t_enqueue_ns", "t_enqueued_ns"],
    ),
    metric(
        Benchmark::Queue,
        ["dequeue", "", "time of a dequeue", "dequeue"],
        &["t_dequeue_ns", "t_dequeued_ns"],
    ),
    metric(
        Benchmark::Queue,
        [
            "intended",
            "",
            "latency from the intended time",
            "intended_latency",
        ],
        &["t_intended_ns", "t_dequeued_ns"],
    ),
    metric(
        Benchmark::Clock,
        ["jump", "jumps", "length of a jump", "jump"],
        &[JUMP[1]],
    ),
    metric(
        Benchmark::Clock,
        [
            "difference",
            "differences",
            "difference between two readings",
            "histogram",
        ],
        &[],
    ),
    metric(
        Benchmark::Node,
        ["latency", "", "latency of a sample", "latency"],
        &[node::sample::LATENCY.name],
    ),
    metric(
        Benchmark::Node,
        [
            "intended",
            "",
            "latency from the intended time",
            "intended_latency",
        ],
        &[],
    ),
    metric(
        Benchmark::Memory,
        ["latency", "", "latency of a load", "latency"],
        &[memory::window::LATENCY.name],
    ),
    metric(
        Benchmark::Memory,
        [LOADED, "", "latency under load", ""],
        &[],
    ),
];

impl Metric {
    /// The metrics of these names; without names, the usual one.
    pub fn of(
        benchmark: Benchmark,
        settings: &Checked,
        usual: &[&str],
    ) -> Result<Vec<&'static Metric>, UsageError> {
        let own = || METRICS.iter().filter(|it| it.benchmark == benchmark);
        let found = |name: &str| {
            let mut all = own();
            let found = all.find(|metric| [metric.name, metric.alias].contains(&name));
            found.filter(|_| !name.is_empty()).ok_or_else(|| {
                let names: Vec<&str> = own().map(|metric| metric.name).collect();
                let (whose, names) = (benchmark.name(), names.join(", "));
                let why = format!("results of {whose} have {names}");
                settings.refused("metric", name, &why)
            })
        };
        let names = settings.given.texts("metric");
        if names.is_empty() {
            return usual.iter().map(|name| found(name)).collect();
        }
        let mut metrics: Vec<&'static Metric> = Vec::new();
        for name in names {
            let metric = found(name)?;
            if let Some(same) = metrics.iter().position(|other| *other == metric) {
                let other = &names[same];
                return Err(UsageError(format!(
                    "{}: {other:?} and {name:?} are the same, name it once",
                    settings.named("metric")
                )));
            }
            metrics.push(metric);
        }
        Ok(metrics)
    }

    /// The same for some points: where these have none of the usual ones, that which they have.
    pub fn of_points<'a>(
        benchmark: Benchmark,
        settings: &Checked,
        usual: &[&str],
        points: impl Iterator<Item = &'a Point>,
    ) -> Result<Vec<&'static Metric>, UsageError> {
        let metrics = Self::of(benchmark, settings, usual)?;
        let mut points = points.peekable();
        let lacks_all = |point: &Point| !metrics.iter().any(|metric| metric.is_of(point));
        match points.peek().is_some() && points.all(lacks_all) {
            true => Self::of(benchmark, settings, &["completion"]),
            false => Ok(metrics),
        }
    }

    pub fn plural(&self) -> &'static str {
        match self.benchmark {
            Benchmark::Between if self.samples.is_empty() => "probes",
            Benchmark::Hca | Benchmark::Between => "messages",
            Benchmark::Queue => "elements",
            Benchmark::Clock if self.samples.is_empty() => "readings",
            Benchmark::Clock => "jumps",
            Benchmark::Node => "samples",
            Benchmark::Memory => "windows",
        }
    }

    pub fn file(&self) -> SampleFile {
        match self.benchmark {
            Benchmark::Hca => hca::MESSAGES,
            Benchmark::Between => between::MESSAGES,
            Benchmark::Queue => queue::ELEMENTS,
            Benchmark::Clock => clock::JUMPS_FILE,
            Benchmark::Node => node::OUT,
            Benchmark::Memory => memory::WINDOWS_FILE,
        }
    }

    /// The file of its distribution.
    pub fn distribution(&self) -> String {
        match (self.benchmark, self.name) {
            (Benchmark::Node, "intended") => INTENDED.to_owned(),
            _ => format!("{}.hgrm", self.stem),
        }
    }

    pub fn time(&self) -> &'static str {
        match self.benchmark {
            Benchmark::Hca | Benchmark::Between => "t_subm_ns",
            Benchmark::Queue => "t_stamp_ns",
            Benchmark::Clock => JUMP[0],
            Benchmark::Node => node::sample::CARRIED.name,
            Benchmark::Memory => memory::window::START.name,
        }
    }

    /// The columns of its samples and, where messages may be lost, last the one that is empty of those: a message that
    /// arrived may have no latency.
    pub fn columns(&self) -> Vec<&'static str> {
        let arrival = self.may_be_lost().then_some(hca::message::RECEIVED.name);
        self.samples.iter().copied().chain(arrival).collect()
    }

    /// Whether a point has it: nothing arrives of RDMA reads and atomics, so that they have completions only.
    pub fn is_of(&self, point: &Point) -> bool {
        let counts_arrivals = ["latency", "intended"].contains(&self.name);
        let operation = point.setting(hca::OPERATION.name);
        let mut operations = Operation::ALL.iter();
        let operation = operations.find(|one| Some(one.name()) == operation);
        let is_one_way = operation.is_none_or(|operation| operation.is_one_way());
        self.benchmark != Benchmark::Hca || !counts_arrivals || is_one_way
    }

    /// What is said of the points that lack metrics, by the names of both.
    pub fn lacking(lack: &[(&'static Metric, &str)]) -> Option<String> {
        let (metric, name) = lack.first()?;
        let (label, count) = (metric.label, lack.len());
        Some(format!(
            "no {label} of {count} point(s) of RDMA reads and atomics, such as {name}: --metric completion draws them"
        ))
    }

    /// Whether a message may have been lost on the way to a sample.
    pub fn may_be_lost(&self) -> bool {
        matches!(
            (self.benchmark, self.name),
            (Benchmark::Hca, "latency") | (Benchmark::Between, "excess")
        )
    }
}
