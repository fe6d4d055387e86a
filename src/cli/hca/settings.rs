//! What stands in the files: rows of the summary and of the messages, and the document of settings.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bench::hca::config::{Config, Service};
use crate::bench::hca::plan::{LeftOut, Point};
use crate::bench::hca::result::{Message, PointResult};
use crate::results::Record;
use crate::rig::named::Named;
use crate::stats::summary::DEFAULT_LIMIT_NS;

/// A row of `messages.csv`.
#[derive(Debug, Default, Serialize)]
pub struct MessageRow {
    repeat: u32,
    seq: u32,
    t_subm_ns: u64,
    t_send_ns: Option<u64>,
    t_recv_ns: Option<u64>,
    t_comp_ns: Option<u64>,
    latency_ns: Option<i64>,
    completion_latency_ns: Option<i64>,
}

impl From<&Message> for MessageRow {
    fn from(message: &Message) -> Self {
        MessageRow {
            repeat: message.repeat,
            seq: message.sequence,
            t_subm_ns: message.submitted_ns,
            t_send_ns: message.sent_ns,
            t_recv_ns: message.received_ns,
            t_comp_ns: message.completed_ns,
            latency_ns: message.latency_ns(),
            completion_latency_ns: message.completion_latency_ns(),
        }
    }
}

/// The settings of a point as cells.
pub fn point_record(point: &Point) -> Record {
    let mut record = Record::new();
    record
        .text("service", point.service.name())
        .text("operation", point.operation.name())
        .count("size_bytes", u64::from(point.size))
        .count("burst", u64::from(point.burst))
        .text("inline", point.inline.name())
        .text("unsignaled", point.unsignaled.name())
        .text("poll_recv", point.poll_recv.name())
        .text("poll_comp", point.poll_comp.name())
        .count("pause_ns", point.pause_ns.0)
        .count("receiver_pause_ns", point.receiver_pause_ns.0)
        .text("timestamp", point.timestamp.name())
        .text("clock", point.clock.name());
    record
}

/// A row of `summary.csv`.
pub fn summary_record(result: &PointResult, config: &Config) -> Record {
    let mut record = point_record(&result.point);
    let counts = &result.counts;
    record
        .count("warmup", u64::from(config.warmup))
        .count("repeat", u64::from(config.repeat))
        .text(
            "status",
            if result.failure.is_none() {
                "complete"
            } else {
                "incomplete"
            },
        )
        .count("messages_sent", counts.sent)
        .count("messages_received", counts.received)
        .count("messages_lost", counts.lost)
        .count("messages_corrupted", counts.corrupted)
        .count("messages_duplicated", counts.duplicated)
        .count("messages_late", counts.late)
        .count("messages_foreign", counts.foreign)
        .count("failed_completions", counts.failed_completions)
        .decimal("delivery_rate", counts.delivery_rate(), 6)
        .summary("latency", DEFAULT_LIMIT_NS, result.latency.as_ref())
        .median_interval("latency", result.median_interval)
        .count(
            "completions",
            result
                .completion_latency
                .as_ref()
                .map(|summary| summary.count),
        )
        .summary(
            "completion_latency",
            DEFAULT_LIMIT_NS,
            result.completion_latency.as_ref(),
        )
        .decimal("post_rate_per_s", result.post_rate, 1)
        .count("loop_page_faults", result.circumstances.loop_faults.total())
        .decimal("stamp_cost_ns", result.costs.stamp.cost_ns, 1)
        .decimal("clock_resolution_ns", result.costs.stamp.resolution_ns, 1)
        .micros("floor_p50_us", result.costs.floor.p50_ns)
        .micros("floor_p99_us", result.costs.floor.p99_ns);
    record
}

/// A row of `left_out.csv`.
pub fn left_out_record(left_out: &LeftOut) -> Record {
    let mut record = point_record(&left_out.point);
    record.text("reason", left_out.reason.as_str());
    record
}

const POINT: &str = "point";
const STATUS: &str = "status";
const COMPLETE: &str = "complete";
const INCOMPLETE: &str = "incomplete";

/// What a `settings.json` says of its point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPoint {
    /// The settings.
    pub point: Point,
    /// Whether it was measured to the end.
    pub complete: bool,
}

/// A text is no `settings.json` of this program.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It is not JSON, or cut off.
    #[error("not JSON, or not all of it: {0}")]
    Syntax(serde_json::Error),
    /// The point's settings are missing or not those of a point.
    #[error("no settings of a point: {0}")]
    Point(serde_json::Error),
    /// It does not say whether the point was measured to the end.
    #[error("the status is {0}, neither complete nor incomplete")]
    Status(Value),
}

/// Reads back the document that [`settings_document`] makes.
///
/// # Errors
/// With what is wrong with the text.
pub fn read_settings(text: &str) -> Result<StoredPoint, SettingsError> {
    let document: Value = serde_json::from_str(text).map_err(SettingsError::Syntax)?;
    let point = Point::deserialize(&document[POINT]).map_err(SettingsError::Point)?;
    match document[STATUS].as_str() {
        Some(COMPLETE) => Ok(StoredPoint {
            point,
            complete: true,
        }),
        Some(INCOMPLETE) => Ok(StoredPoint {
            point,
            complete: false,
        }),
        _ => Err(SettingsError::Status(document[STATUS].clone())),
    }
}

/// What is the same for all points of a run.
#[derive(Debug, Clone)]
pub struct RunFacts {
    /// When it began, UTC, RFC 3339.
    pub started_at: String,
    /// The two ports with their devices.
    pub devices: Value,
    /// The machine.
    pub machine: Value,
    /// The RDMA libraries in use, with version and path.
    pub libraries: Value,
    /// The name of the route that UC takes; `None` where no point is UC.
    pub uc_route: Option<&'static str>,
}

/// The document `settings.json` of a point; without a result, of one that is still to be measured.
pub fn settings_document(
    point: &Point,
    config: &Config,
    facts: &RunFacts,
    result: Option<&PointResult>,
) -> Value {
    let failure = result.and_then(|result| result.failure.as_deref());
    let complete = result.is_some() && failure.is_none();
    let obtained = match result {
        Some(result) => json!(result.circumstances),
        // Chosen before the first point, so it holds for one that does not come to its end, too.
        None if point.service == Service::Uc => json!({ "uc_route": facts.uc_route }),
        None => Value::Null,
    };
    json!({
        "hcabench": { "version": env!("CARGO_PKG_VERSION") },
        "started_at": facts.started_at,
        STATUS: if complete { COMPLETE } else { INCOMPLETE },
        "failure": failure,
        POINT: point,
        "run": {
            "warmup": config.warmup,
            "repeat": config.repeat,
            "timeout_ms": config.timeout.as_secs_f64() * 1e3,
            "priority": config.priority,
            "hugepages": config.huge_pages,
            "uc_route": config.uc_route,
            "sender": config.sender,
            "receiver": config.receiver,
            "cpus": config.cpus,
            "tsc_khz": config.tsc_khz,
        },
        "obtained": obtained,
        "counts": result.map(|result| &result.counts),
        "instrument": result.map(|result| &result.costs),
        "devices": facts.devices,
        "libraries": facts.libraries,
        "machine": facts.machine,
    })
}
