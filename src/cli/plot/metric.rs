//! What there is to draw in the results of each benchmark, and where it stands.

use super::config::Checked;
use crate::cli::UsageError;
use crate::results::folder::MESSAGES;
use crate::results::read::Benchmark;

/// Where the samples stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// A column of a file.
    One(&'static str, &'static str),
    /// The difference of two columns of a file, the second less the first.
    Between(&'static str, &'static str, &'static str),
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
    pub samples: &'static str,
    /// The samples.
    pub column: Column,
    /// When they were taken.
    pub time: &'static str,
    /// The distribution: a file, `{}` in it stands for the point's name.
    pub distribution: &'static str,
    /// In the summary, the beginning of the columns of its percentiles in microseconds, if p10 to p90 are there.
    pub summary: Option<&'static str>,
    /// Whether an empty cell is a message that was lost.
    pub may_be_lost: bool,
}

const ELEMENTS: &str = "elements.csv";
pub(super) const JUMPS: &str = "jumps.csv";

const fn queue(
    name: &'static str,
    label: &'static str,
    column: Column,
    distribution: &'static str,
) -> Metric {
    Metric {
        benchmark: Benchmark::Queue,
        name,
        alias: name,
        label,
        samples: "elements",
        column,
        time: "t_stamp_ns",
        distribution,
        summary: None,
        may_be_lost: false,
    }
}

static METRICS: [Metric; 8] = [
    Metric {
        benchmark: Benchmark::Hca,
        name: "latency",
        alias: "t_lat",
        label: "one-way latency",
        samples: "messages",
        column: Column::One(MESSAGES, "latency_ns"),
        time: "t_subm_ns",
        distribution: "latency.hgrm",
        summary: Some("latency"),
        may_be_lost: true,
    },
    Metric {
        benchmark: Benchmark::Hca,
        name: "completion",
        alias: "t_comp",
        label: "completion latency",
        samples: "messages",
        column: Column::One(MESSAGES, "completion_latency_ns"),
        time: "t_subm_ns",
        distribution: "",
        summary: Some("completion_latency"),
        may_be_lost: false,
    },
    queue(
        "latency",
        "latency through the queue",
        Column::One(ELEMENTS, "latency_ns"),
        "latency.hgrm",
    ),
    queue(
        "enqueue",
        "time of an enqueue",
        Column::Between(ELEMENTS, "t_enqueue_ns", "t_enqueued_ns"),
        "enqueue.hgrm",
    ),
    queue(
        "dequeue",
        "time of a dequeue",
        Column::Between(ELEMENTS, "t_dequeue_ns", "t_dequeued_ns"),
        "dequeue.hgrm",
    ),
    queue(
        "intended",
        "latency from the intended time",
        Column::Between(ELEMENTS, "t_intended_ns", "t_dequeued_ns"),
        "intended_latency.hgrm",
    ),
    Metric {
        benchmark: Benchmark::Clock,
        name: "jump",
        alias: "jumps",
        label: "length of a jump",
        samples: "jumps",
        column: Column::One(JUMPS, "jump_ns"),
        time: "t_ns",
        distribution: "",
        summary: None,
        may_be_lost: false,
    },
    Metric {
        benchmark: Benchmark::Clock,
        name: "difference",
        alias: "differences",
        label: "difference between two readings",
        samples: "readings",
        column: Column::None,
        time: "",
        distribution: "histogram-{}.hgrm",
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
        let names = &settings.metric;
        let own = || {
            METRICS
                .iter()
                .filter(|metric| metric.benchmark == benchmark)
        };
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
        let known = |name: &String| own().find(|it| it.name == name || it.alias == name);
        for (place, name) in names.iter().enumerate() {
            let same = |other: &&String| known(name).is_some() && known(other) == known(name);
            if let Some(other) = names[..place].iter().find(same) {
                return Err(UsageError(format!(
                    "{}: {other:?} and {name:?} are the same, name it once",
                    settings.named("metric")
                )));
            }
        }
        if names.is_empty() {
            usual.iter().map(|name| found(name)).collect()
        } else {
            names.iter().map(|name| found(name)).collect()
        }
    }
}
