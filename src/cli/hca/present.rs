//! What is shown of the results: the table, what inline saves, and warnings with what to do about them.

use std::collections::BTreeSet;

use serde::Serialize;

use super::settings::summary_record;
use crate::bench::hca::config::{Config, Timestamp};
use crate::bench::hca::plan::Point;
use crate::bench::hca::result::PointResult;
use crate::buffer::{HugePagePolicy, PageKind};
use crate::cli::table::{Column, Table};
use crate::results::{Record, units};
use crate::stats::resolvable;

/// One finished point, as far as the closing words need it.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its settings.
    pub point: Point,
    /// Its row of the summary.
    pub record: Record,
    /// Median latency in nanoseconds.
    pub median_ns: Option<f64>,
    /// Messages it was made from.
    pub received: u64,
    /// Whether the thread that rewrites stamps had to share its CPU, so that t_send comes late or not at all.
    pub stamp_shares_cpu: bool,
}

impl Finished {
    /// Keeps what the closing words need of a result.
    pub fn new(result: &PointResult, config: &Config) -> Self {
        let placement = &result.circumstances.placement;
        Finished {
            point: result.point.clone(),
            record: summary_record(result, config),
            median_ns: result.latency.as_ref().map(|summary| summary.p50_ns),
            received: result.counts.received,
            stamp_shares_cpu: placement.stamp.is_some_and(|stamp| {
                [
                    Some(placement.sender),
                    Some(placement.receiver),
                    placement.completion,
                ]
                .contains(&Some(stamp))
            }),
        }
    }
}

/// The columns of the table: title, unit, and the column of the summary.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("service", "", "service"),
    ("operation", "", "operation"),
    ("size", "B", "size_bytes"),
    ("burst", "", "burst"),
    ("inline", "", "inline"),
    ("unsignaled", "", "unsignaled"),
    ("recv", "", "poll_recv"),
    ("comp", "", "poll_comp"),
    ("pause", "ns", "pause_ns"),
    ("away", "ns", "receiver_pause_ns"),
    ("stamp", "", "timestamp"),
    ("clock", "", "clock"),
];
const FIGURES: &[(&str, &str, &str)] = &[
    ("sent", "", "messages_sent"),
    ("lost", "", "messages_lost"),
    ("bad", "", "messages_corrupted"),
    ("min", "us", "latency_min_us"),
    ("p50", "us", "latency_p50_us"),
    ("p99", "us", "latency_p99_us"),
    ("p99.9", "us", "latency_p999_us"),
    ("max", "us", "latency_max_us"),
    ("comp p50", "us", "completion_latency_p50_us"),
    ("comp p99", "us", "completion_latency_p99_us"),
    ("posts", "1/s", "post_rate_per_s"),
];

/// The table of all finished points.
pub fn table(finished: &[Finished], width: Option<usize>) -> String {
    let settings = SETTINGS.iter().map(|(title, unit, _)| {
        let column = match *title {
            "size" | "burst" | "pause" | "away" => Column::number(*title, *unit),
            _ => Column::text(*title),
        };
        column.setting()
    });
    let figures = FIGURES
        .iter()
        .map(|(title, unit, _)| Column::number(*title, *unit));
    let mut table = Table::new(settings.chain(figures).collect());
    for point in finished {
        let cells = SETTINGS.iter().chain(FIGURES).map(|(_, _, column)| {
            let text = point
                .record
                .get(column)
                .map(|cell| cell.text())
                .unwrap_or_default();
            match *column {
                "post_rate_per_s" => text.split('.').next().unwrap_or_default().to_owned(),
                _ => text,
            }
        });
        table.row(cells);
    }
    table.render(width)
}

/// How much earlier a message is with its data in the work request: the median from t_subm less that from t_send.
#[derive(Debug, Clone, Serialize)]
pub struct InlineSaving {
    /// The settings that both points share.
    pub settings: String,
    /// Median latency from t_subm.
    pub submit_p50_us: f64,
    /// Median latency from t_send.
    pub send_p50_us: f64,
    /// Their difference: the time between posting and the HCA's reading of the memory.
    pub saving_us: f64,
}

/// Compares each point with t_send to the one with t_subm that is equal otherwise.
pub fn inline_savings(finished: &[Finished]) -> Vec<InlineSaving> {
    let mut savings = Vec::new();
    for send in finished
        .iter()
        .filter(|one| one.point.timestamp == Timestamp::Send)
    {
        let twin = Point {
            timestamp: Timestamp::Submit,
            ..send.point.clone()
        };
        let submit = finished.iter().find(|one| one.point == twin);
        if let (Some(submit_ns), Some(send_ns)) =
            (submit.and_then(|one| one.median_ns), send.median_ns)
        {
            let round = |ns: f64| (ns.round()) / 1000.0;
            savings.push(InlineSaving {
                settings: twin.to_string().replace("-submit-", "-"),
                submit_p50_us: round(submit_ns),
                send_p50_us: round(send_ns),
                saving_us: round(submit_ns - send_ns),
            });
        }
    }
    savings
}

/// The savings as a table.
pub fn savings_table(savings: &[InlineSaving], width: Option<usize>) -> String {
    let mut table = Table::new(vec![
        Column::text("point"),
        Column::number("p50 from t_subm", "us"),
        Column::number("p50 from t_send", "us"),
        Column::number("inline saves", "us"),
    ]);
    for saving in savings {
        table.row([
            saving.settings.clone(),
            format!("{:.3}", saving.submit_p50_us),
            format!("{:.3}", saving.send_p50_us),
            format!("{:.3}", saving.saving_us),
        ]);
    }
    table.render(width)
}

/// Why the savings are not to be believed, where they are not.
pub fn doubt_about_savings(finished: &[Finished]) -> Option<&'static str> {
    finished.iter().any(|one| one.stamp_shares_cpu).then_some(
        "the stamp thread shared a CPU with another measuring thread, so t_send and what inline saves mean nothing here: \
         give it one of its own (--stamp-cpu, or HCABENCH_VM_CPUS=4 with ci/hcabench)",
    )
}

/// A line about the instrument itself, for the points that share a clock and a pair of CPUs.
pub fn instrument_line(result: &PointResult) -> String {
    let placement = &result.circumstances.placement;
    let costs = &result.costs;
    format!(
        "instrument: clock {}, CPU {} to {}: a stamp costs {}, resolution {}; floor (same loops over shared memory) p50 {}, p99 {}",
        result.point.clock.name(),
        placement.sender,
        placement.receiver,
        units::duration(costs.stamp.cost_ns),
        costs
            .stamp
            .resolution_ns
            .map_or_else(|| "unknown".to_owned(), units::duration),
        units::duration(costs.floor.p50_ns),
        units::duration(costs.floor.p99_ns),
    )
}

/// Warnings of a run, each once.
#[derive(Debug, Default)]
pub struct Warnings(BTreeSet<String>);

impl Warnings {
    /// Adds a warning; true if it is new.
    pub fn add(&mut self, text: String) -> bool {
        self.0.insert(text)
    }

    /// What a result gives reason to warn of; only what was not said before.
    pub fn of(&mut self, result: &PointResult, config: &Config) -> Vec<String> {
        let mut texts = Vec::new();
        let obtained = &result.circumstances;
        for warning in &obtained.placement.warnings {
            texts.push(format!("{}: {}", warning.message, warning.advice));
        }
        let worst = obtained
            .pages
            .iter()
            .min()
            .copied()
            .unwrap_or(PageKind::Huge);
        if config.huge_pages == HugePagePolicy::Try && worst != PageKind::Huge {
            texts.push(format!(
                "buffers are in {}: reserve 2 MiB pages (sysctl vm.nr_hugepages=N), or ask for none with --hugepages off",
                worst.describe()
            ));
        }
        if result.point.timestamp == Timestamp::Send && obtained.stamp_refresh_ns.is_none() {
            texts.push(format!(
                "{}: no stamp was rewritten, so t_send is t_subm: give the stamp thread a core of its own (--stamp-cpu), and \
                 the messages a --pause",
                result.point
            ));
        }
        if let Some(doubt) = result.costs.tsc.and_then(|tsc| tsc.rate.doubt()) {
            texts.push(doubt.to_string());
        }
        let faults = obtained.loop_faults.total();
        if faults > 0 {
            texts.push(format!(
                "{faults} page fault(s) in the hot loops of {}: its latencies hold their time; raise --warmup",
                result.point
            ));
        }
        let counts = &result.counts;
        if counts.lost > 0 {
            texts.push(format!(
                "{}: {} of {} messages were lost",
                result.point, counts.lost, counts.sent
            ));
        }
        if counts.corrupted > 0 {
            texts.push(format!(
                "{}: {} messages arrived with other bytes than were sent: do not trust this path with data",
                result.point, counts.corrupted
            ));
        }
        if counts.duplicated > 0 {
            texts.push(format!(
                "{}: {} messages arrived twice, and as many may be counted as lost for it",
                result.point, counts.duplicated
            ));
        }
        if counts.late > 0 {
            texts.push(format!(
                "{}: {} messages arrived after their burst was over and had counted as lost: raise --timeout",
                result.point, counts.late
            ));
        }
        if counts.foreign > 0 {
            texts.push(format!(
                "{}: {} messages were not of this run: something else sends to its queue pair; each took a receive request, so \
                 messages of this run may be lost by it",
                result.point, counts.foreign
            ));
        }
        if let Some(latency) = result
            .latency
            .as_ref()
            .filter(|latency| latency.negative > 0)
        {
            texts.push(format!(
                "{}: {} latencies are negative: the clock {} differs between CPUs; use --clock monotonic",
                result.point,
                latency.negative,
                result.point.clock.name()
            ));
        }
        texts
            .into_iter()
            .filter(|text| self.add(text.clone()))
            .collect()
    }
}

/// Which percentiles the fewest samples of all points cannot tell from the maximum.
pub fn unresolved(finished: &[Finished]) -> Option<String> {
    let fewest = finished
        .iter()
        .map(|one| one.received)
        .filter(|&received| received > 0)
        .min()?;
    let beyond: Vec<_> = [("p99", 99.0), ("p99.9", 99.9), ("p99.99", 99.99)]
        .into_iter()
        .filter(|(_, percent)| !resolvable(*percent, fewest))
        .map(|(name, _)| name)
        .collect();
    (!beyond.is_empty()).then(|| {
        format!("with {fewest} samples {} is little else than the maximum: more --repeat or a longer --burst", beyond.join(", "))
    })
}
