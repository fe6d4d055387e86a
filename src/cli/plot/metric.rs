//! What there is to draw in the results of each benchmark, and where it stands.

use super::config::Checked;
use crate::cli::UsageError;
use crate::results::read::Benchmark;
use crate::results::schema::{Column, clock, hca, queue};

/// Where the samples stand, in the benchmark's file of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Samples {
    /// A column.
    One(&'static str),
    /// The difference of two columns, the second less the first.
    Between(&'static str, &'static str),
    /// Nowhere: there is only a distribution.
    None,
}

/// Something that is drawn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metric {
    pub benchmark: Benchmark,
    /// What it is called by --metric.
    pub name: &'static str,
    /// Another name.
    pub alias: &'static str,
    /// On an axis.
    pub label: &'static str,
    /// In the plural: "messages".
    pub plural: &'static str,
    pub samples: Samples,
    /// The column that tells when they were taken.
    pub time: &'static str,
    /// The file of the distribution; empty where there is none.
    pub distribution: &'static str,
    /// In the summary, the 10th percentile, the median and the 90th percentile.
    pub summary: Option<[Column; 3]>,
    /// Whether an empty cell is a message that was lost.
    pub may_be_lost: bool,
}

/// The name of a column of samples, which must be declared: another one does not compile.
const fn declared(columns: &'static [Column], name: &str) -> &'static str {
    let mut at = 0;
    while at < columns.len() {
        let (one, other) = (columns[at].name.as_bytes(), name.as_bytes());
        let mut same = 0;
        while same < one.len() && same < other.len() && one[same] == other[same] {
            same += 1;
        }
        if same == one.len() && same == other.len() {
            return columns[at].name;
        }
        at += 1;
    }
    panic!("no such column is declared")
}

const fn message(name: &str) -> &'static str {
    declared(&hca::MESSAGE_COLUMNS, name)
}

const fn element(name: &str) -> &'static str {
    declared(&queue::ELEMENT_COLUMNS, name)
}

const fn of_jump(name: &str) -> &'static str {
    declared(&clock::JUMP_COLUMNS, name)
}

/// When a jump began, its length, and its cause.
pub(super) const JUMP: [&str; 3] = [of_jump("t_ns"), of_jump("jump_ns"), of_jump("cause")];

const fn of_queue(
    name: &'static str,
    label: &'static str,
    samples: Samples,
    distribution: &'static str,
    summary: [Column; 3],
) -> Metric {
    Metric {
        benchmark: Benchmark::Queue,
        name,
        alias: name,
        label,
        plural: "elements",
        samples,
        time: element("t_stamp_ns"),
        distribution,
        summary: Some(summary),
        may_be_lost: false,
    }
}

static METRICS: [Metric; 8] = [
    Metric {
        benchmark: Benchmark::Hca,
        name: "latency",
        alias: "t_lat",
        label: "one-way latency",
        plural: "messages",
        samples: Samples::One(message("latency_ns")),
        time: message("t_subm_ns"),
        distribution: "latency.hgrm",
        summary: Some([hca::latency::P10, hca::latency::P50, hca::latency::P90]),
        may_be_lost: true,
    },
    Metric {
        benchmark: Benchmark::Hca,
        name: "completion",
        alias: "t_comp",
        label: "completion latency",
        plural: "messages",
        samples: Samples::One(message("completion_latency_ns")),
        time: message("t_subm_ns"),
        distribution: "",
        summary: Some([
            hca::completion::P10,
            hca::completion::P50,
            hca::completion::P90,
        ]),
        may_be_lost: false,
    },
    of_queue(
        "latency",
        "latency through the queue",
        Samples::One(element("latency_ns")),
        "latency.hgrm",
        [
            queue::latency::P10,
            queue::latency::P50,
            queue::latency::P90,
        ],
    ),
    of_queue(
        "enqueue",
        "time of an enqueue",
        Samples::Between(element("t_enqueue_ns"), element("t_enqueued_ns")),
        "enqueue.hgrm",
        [
            queue::enqueue::P10,
            queue::enqueue::P50,
            queue::enqueue::P90,
        ],
    ),
    of_queue(
        "dequeue",
        "time of a dequeue",
        Samples::Between(element("t_dequeue_ns"), element("t_dequeued_ns")),
        "dequeue.hgrm",
        [
            queue::dequeue::P10,
            queue::dequeue::P50,
            queue::dequeue::P90,
        ],
    ),
    of_queue(
        "intended",
        "latency from the intended time",
        Samples::Between(element("t_intended_ns"), element("t_dequeued_ns")),
        "intended_latency.hgrm",
        [
            queue::intended::P10,
            queue::intended::P50,
            queue::intended::P90,
        ],
    ),
    Metric {
        benchmark: Benchmark::Clock,
        name: "jump",
        alias: "jumps",
        label: "length of a jump",
        plural: "jumps",
        samples: Samples::One(JUMP[1]),
        time: JUMP[0],
        distribution: "",
        summary: None,
        may_be_lost: false,
    },
    Metric {
        benchmark: Benchmark::Clock,
        name: "difference",
        alias: "differences",
        label: "difference between two readings",
        plural: "readings",
        samples: Samples::None,
        time: "",
        distribution: "histogram.hgrm",
        summary: None,
        may_be_lost: false,
    },
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
            all.find(|metric| metric.name == name || metric.alias == name)
                .ok_or_else(|| {
                    let names: Vec<&str> = own().map(|metric| metric.name).collect();
                    UsageError(format!(
                        "{} {name:?}: results of {} have {}",
                        settings.named("metric"),
                        benchmark.name(),
                        names.join(", ")
                    ))
                })
        };
        if settings.metric.is_empty() {
            return usual.iter().map(|name| found(name)).collect();
        }
        let mut metrics: Vec<&'static Metric> = Vec::new();
        for (place, name) in settings.metric.iter().enumerate() {
            let metric = found(name)?;
            if let Some(same) = metrics.iter().position(|other| *other == metric) {
                let other = &settings.metric[..place][same];
                return Err(UsageError(format!(
                    "{}: {other:?} and {name:?} are the same, name it once",
                    settings.named("metric")
                )));
            }
            metrics.push(metric);
        }
        Ok(metrics)
    }

    /// The file of its samples; `None` where there is only a distribution.
    pub fn file(&self) -> Option<&'static str> {
        let file = match self.benchmark {
            Benchmark::Hca => hca::MESSAGES,
            Benchmark::Queue => queue::ELEMENTS,
            Benchmark::Clock => clock::JUMPS_FILE,
        };
        (self.samples != Samples::None).then_some(file.name)
    }
}
