//! `--prometheus FILE`: the summary of a run as gauges in seconds and bytes, for Prometheus and other readers of
//! OpenMetrics.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::shown::Report;
use crate::results::durable::replace;
use crate::results::exposition::{Gauge, MetricsText, flag};
use crate::results::finding::{Findings, Severity};
use crate::results::schema::{COMPLETE, POINT, Schema};
use crate::results::{Record, ReportError};

/// Writes the file, in one step.
///
/// # Errors
/// When it cannot be written or put in place.
pub(super) fn write(path: &Path, schema: &Schema, report: &Report) -> Result<(), ReportError> {
    let text = text(schema, report);
    replace(path, |out| out.write_all(text.as_bytes()))
}

fn text(schema: &Schema, report: &Report) -> String {
    let prefix = format!("hcabench_{}_", schema.benchmark.replace('-', "_"));
    let mut out = MetricsText::new(&prefix);
    let document = &report.document;
    out.metric(
        "run_start_timestamp_seconds",
        "When the run began, since 1970.",
    );
    let begun = humantime::parse_rfc3339(&document.started_at).ok();
    let begun = begun.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    out.sample(&[], begun.map(|it| it.as_secs_f64()));
    let help = "Whether the run measured all that it was to measure.";
    out.metric("run_complete", help);
    out.sample(&[], Some(flag(document.status == COMPLETE)));
    out.metric(
        "run_info",
        "The program, the label and the start of the run.",
    );
    let commit = document.hcabench.commit.as_deref().unwrap_or_default();
    let labels = [
        ("version", &*document.hcabench.version),
        ("commit", commit),
        ("label", document.label.as_deref().unwrap_or_default()),
        ("started_at", &document.started_at),
    ];
    out.sample(&labels, Some(1.0));
    out.metric(
        "findings",
        "Facts to know before the figures are believed, by severity.",
    );
    let found = report.findings.iter().flat_map(Findings::all);
    let found: Vec<Severity> = found.map(|finding| finding.severity).collect();
    for (severity, name) in [
        (Severity::Invalid, "invalid"),
        (Severity::Reservation, "reservation"),
        (Severity::Advice, "advice"),
    ] {
        let count = found.iter().filter(|it| **it == severity).count();
        out.sample(&[("severity", name)], Some(count as f64));
    }
    let rows: Vec<(String, &Record)> = (report.summary.iter())
        .map(|row| (row.text(&POINT), row))
        .collect();
    out.metric("point_info", "The settings of a point.");
    for (name, row) in &rows {
        let settings = schema.point.iter().map(|it| (it.name, row.text(it)));
        let settings: Vec<(&str, String)> = settings.filter(|(_, text)| !text.is_empty()).collect();
        let settings = settings.iter().map(|(name, text)| (*name, &**text));
        let labels: Vec<(&str, &str)> = std::iter::once(("point", &**name))
            .chain(settings)
            .collect();
        out.sample(&labels, Some(1.0));
    }
    let mut known = BTreeSet::new();
    for (name, column) in schema.summary() {
        let has = |(_, row): &(String, &Record)| row.number(&name).is_some();
        if !schema.figures.contains(&column) || !rows.iter().any(has) {
            continue;
        }
        let Gauge { metric, value_of } = Gauge::of(&name);
        // Some figures are in nanoseconds and, for other programs, in microseconds as well.
        if known.insert(metric.clone()) {
            let bound = match name == column.name {
                true => "",
                false => ": a bound of its median over rounds",
            };
            out.metric(&metric, &format!("{}{bound}", column.meaning));
            for (point, row) in &rows {
                out.sample(&[("point", point)], row.number(&name).map(value_of));
            }
        }
    }
    out.into_text()
}
