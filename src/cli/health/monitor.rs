//! The health of nodes for the textfile collector of Prometheus' node exporter.

use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::bench::fabric::history::{Course, Health, JudgedRun, Subject};
use crate::results::ReportError;
use crate::results::durable::replace;
use crate::results::exposition::{MetricsText, flag};

/// Seconds since 1970 of a moment in RFC 3339.
fn seconds(moment: &str) -> Option<f64> {
    let moment = humantime::parse_rfc3339(moment).ok()?;
    let since = moment.duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_secs_f64())
}

/// Writes the file, in one step.
pub(super) fn write(
    path: &Path,
    runs: &[JudgedRun],
    courses: &[Course],
) -> Result<(), ReportError> {
    let text = text(runs, courses);
    replace(path, |out| out.write_all(text.as_bytes()))
}

fn text(runs: &[JudgedRun], courses: &[Course]) -> String {
    let mut out = MetricsText::new("hcabench_health_");
    out.metric("runs", "Runs that were judged.");
    out.sample(&[], Some(runs.len() as f64));
    out.metric(
        "evaluated_timestamp_seconds",
        "When this file was written, since 1970.",
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    out.sample(&[], now.map(|it| it.as_secs_f64()));
    out.metric(
        "last_run_timestamp_seconds",
        "When the last run began, since 1970.",
    );
    out.sample(&[], runs.last().and_then(|run| seconds(&run.begun)));
    let nodes: Vec<(&str, &Course)> = (courses.iter())
        .filter_map(|course| match &course.subject {
            Subject::Node(name) => Some((name.as_str(), course)),
            _ => None,
        })
        .collect();
    type Value = fn(&Course) -> Option<f64>;
    let metrics: [(&str, &str, Value); 5] = [
        (
            "node_failing",
            "Whether the node breaks a rule; absent of a node that could not be judged, or is not in the last run.",
            |it| {
                let is_known = !matches!(it.health, Health::NotJudged | Health::Left);
                is_known.then(|| flag(it.health == Health::Failing))
            },
        ),
        (
            "node_failed_runs",
            "In how many of its last runs the node was out by a rule.",
            |it| Some(it.failed[0] as f64),
        ),
        (
            "node_counted_runs",
            "How many of its last runs are counted.",
            |it| Some(it.failed[1] as f64),
        ),
        (
            "node_failing_since_timestamp_seconds",
            "When the first run began in which the node was out, since 1970.",
            |it| it.since.as_ref().and_then(|[first, _]| seconds(first)),
        ),
        (
            "node_in_last_run",
            "Whether the last run has the node.",
            |it| Some(flag(it.is_in_last)),
        ),
    ];
    for (metric, help, value) in metrics {
        out.metric(metric, help);
        for (name, course) in &nodes {
            out.sample(&[("node", name)], value(course));
        }
    }
    out.metric("out", "Tiers and pairs that break a rule.");
    for course in courses.iter().filter(|it| it.health == Health::Failing) {
        if !matches!(course.subject, Subject::Node(_)) {
            out.sample(&[("name", &course.subject.in_words())], Some(1.0));
        }
    }
    out.into_text()
}
