//! A point and what came of it as rows of the results' files.

use serde::Serialize;

use super::PointResult;
use super::hardware::{EndStamps, HardwareTimes};
use crate::bench::hca::ends::path_proof::PortRecord;
use crate::bench::hca::loops::floor::Floor;
use crate::bench::hca::message::{Counts, Message};
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::config::Config;
use crate::bench::hca::settings::resources::ResourceOption;
use crate::results::schema::{Column, SampleFile, hca as columns};
use crate::results::{Record, ReportError, SampleWriter};
use crate::rig::benchmark::SampleFolders;
use crate::stats::Summary;

/// A row of `messages.csv`.
#[derive(Debug, Default, Serialize)]
pub struct MessageRow {
    round: u32,
    repeat: u32,
    seq: u32,
    t_intended_ns: Option<u64>,
    t_subm_ns: u64,
    t_send_ns: Option<u64>,
    t_recv_ns: Option<u64>,
    t_comp_ns: Option<u64>,
    in_flight: u32,
    latency_ns: Option<i64>,
    completion_latency_ns: Option<i64>,
    t_recv_hw_ns: Option<u64>,
    t_comp_hw_ns: Option<u64>,
}

impl MessageRow {
    pub fn new(round: u32, message: &Message, hardware: HardwareTimes) -> Self {
        MessageRow {
            round,
            repeat: message.repeat,
            seq: message.sequence,
            t_intended_ns: message.intended_ns,
            t_subm_ns: message.submitted_ns,
            t_send_ns: message.sent_ns,
            t_recv_ns: message.received_ns,
            t_comp_ns: message.completed_ns,
            in_flight: message.in_flight,
            latency_ns: message.latency_ns(),
            completion_latency_ns: message.completion_latency_ns(),
            t_recv_hw_ns: hardware.received_ns,
            t_comp_hw_ns: hardware.completed_ns,
        }
    }
}

/// A row of `counters.csv`.
#[derive(Debug, Serialize)]
pub struct CounterRow<'a> {
    round: u32,
    end: &'static str,
    counter: &'a str,
    difference: u64,
}

impl CounterRow<'_> {
    /// All counters of both ports.
    pub fn of(round: u32, ports: &PortRecord) -> impl Iterator<Item = CounterRow<'_>> {
        let ends = [("sender", &ports.sender), ("receiver", &ports.receiver)];
        ends.into_iter().flat_map(move |(end, counters)| {
            counters
                .iter()
                .map(move |(counter, difference)| CounterRow {
                    round,
                    end,
                    counter,
                    difference,
                })
        })
    }
}

/// Writes rows to the file of samples in each folder of a point.
pub fn write_rows<R: Serialize, I: Iterator<Item = R>>(
    place: &SampleFolders,
    file: &'static SampleFile,
    rows: impl Fn() -> I,
) -> Result<(), ReportError> {
    for folder in &place.folders {
        let mut file = SampleWriter::open(folder, file, place.round)?;
        rows().try_for_each(|row| file.append(&row))?;
        file.finish()?;
    }
    Ok(())
}

pub fn settings(point: &Point, config: &Config) -> Record {
    let background = point.background;
    let mut record = Record::new();
    record
        .set(&columns::SERVICE, point.service.name())
        .set(&columns::OPERATION, point.operation.name())
        .set(&columns::SIZE, u64::from(point.size))
        .set(&columns::BURST, u64::from(point.burst))
        .set(&columns::INLINE, point.inline.name())
        .set(&columns::UNSIGNALED, point.unsignaled.name())
        .set(&columns::POLL_RECV, point.poll_recv.name())
        .set(&columns::POLL_COMP, point.poll_comp.name())
        .set(
            &columns::PAUSE,
            point.rate.is_none().then_some(point.pause_ns.0),
        )
        .set(&columns::RATE, point.rate.map(|rate| rate.per_second))
        .set(
            &columns::ARRIVALS,
            point.rate.map(|rate| rate.arrivals.name()),
        )
        .set(&columns::RECEIVER_PAUSE, point.receiver_pause_ns.0)
        .set(&columns::TIMESTAMP, point.timestamp.name())
        .set(&columns::CLOCK, point.clock.name())
        .set(&columns::CONNECT, point.connect.name())
        .set(&columns::WARMUP, config.warmup.messages(point.burst))
        .set(&columns::REPEAT, u64::from(config.repeat))
        .set(&columns::QUEUE_PAIRS, u64::from(point.queue_pairs))
        .set(&columns::DEPTH, point.is_limited().then_some(point.depth))
        .set(
            &columns::BACKGROUND,
            background.map_or_else(|| "0".to_owned(), |it| it.to_string()),
        )
        .set(
            &columns::BACKGROUND_TRAFFIC,
            background.map(|it| it.traffic.name()),
        )
        .set(
            &columns::BACKGROUND_THREAD,
            background.and_then(|it| it.placed()),
        )
        .set(
            &columns::MEMORY_LOAD,
            (config.has_memory_load()).then_some(point.memory_load.percent()),
        );
    let of_path = [
        &columns::GID_INDEX,
        &columns::SERVICE_LEVEL,
        &columns::TRAFFIC_CLASS,
        &columns::PATH_MTU,
        &columns::PKEY_INDEX,
        &columns::FLOW_LABEL,
        &columns::RETRY_COUNT,
        &columns::RNR_RETRY,
        &columns::QP_TIMEOUT,
    ];
    for (column, (_, value)) in of_path.into_iter().zip(point.path.all()) {
        record.set(column, value.map(u64::from));
    }
    let of_resources = [
        &columns::SRQ,
        &columns::RELAXED_ORDERING,
        &columns::ODP,
        &columns::THREAD_DOMAIN,
    ];
    for (column, option) in of_resources.into_iter().zip(ResourceOption::ALL) {
        let value = point.resources.value(option).name();
        record.set(column, config.uses(option).then_some(value));
    }
    record
}

pub fn figures(result: &PointResult) -> Record {
    let (costs, in_flight) = (&result.costs, &result.in_flight);
    let offset = costs.offset;
    let schedule = result.schedule.as_ref();
    let floor = |of: fn(&Floor) -> f64| costs.floor.as_ref().map(of);
    let mut record = figures_of_sender(result);
    record
        .distribution(&columns::latency::ALL, result.latency.as_ref())
        .distribution(
            &columns::intended::ALL,
            schedule.and_then(|schedule| schedule.latency.as_ref()),
        )
        .set(
            &columns::MISSED_STEPS,
            schedule.map(|schedule| schedule.missed_steps),
        )
        .set(&columns::IN_FLIGHT_P50, in_flight.p50)
        .set(&columns::IN_FLIGHT_MAX, in_flight.max)
        .set(&columns::ALONE_SHARE, in_flight.alone_share)
        .set(&columns::LATENCY_ALONE_P50, in_flight.latency_alone_p50_ns)
        .set(&columns::FLOOR_P50, floor(|floor| floor.p50_ns))
        .set(&columns::FLOOR_P99, floor(|floor| floor.p99_ns))
        .set(
            &columns::FLOOR_BACK_P50,
            costs.floor_back.map(|floor| floor.p50_ns),
        )
        .set(&columns::CLOCK_OFFSET, offset.map(|offset| offset.ns))
        .set(
            &columns::CLOCK_OFFSET_BOUND,
            offset.map(|offset| offset.bound_ns),
        );
    set_of_others(&mut record, result);
    if let Some(stamps) = &result.hardware {
        set_lag(&mut record, &columns::recv_lag::ALL, &stamps.receiver);
        set_lag(&mut record, &columns::comp_lag::ALL, &stamps.sender);
    }
    record
}

/// What lies between the adapter's stamps and ours at an end; nothing where it has no completions.
fn set_lag(record: &mut Record, columns: &[Column; 10], stamps: &EndStamps) {
    if stamps.completions == 0 {
        return;
    }
    let of = |figure: fn(&Summary) -> f64| stamps.lag.as_ref().map(figure);
    let figures = [
        of(|it| it.min_ns as f64),
        of(|it| it.p50_ns),
        of(|it| it.p90_ns),
        of(|it| it.p99_ns),
        of(|it| it.p999_ns),
        of(|it| it.max_ns as f64),
        stamps.lag.as_ref().map(|_| stamps.error_ns as f64),
    ];
    let counts = [stamps.missing, stamps.outside, stamps.too_late()];
    let counts = counts.map(|count| Some(count as f64));
    for (column, figure) in columns.iter().zip(figures.into_iter().chain(counts)) {
        record.set(column, figure);
    }
}

/// The figures that need no clock but the sender's.
pub fn figures_of_sender(result: &PointResult) -> Record {
    let completions = result.completion_latency.as_ref();
    let (stamp, obtained) = (&result.costs.stamp, &result.circumstances);
    let mut record = Record::new();
    set_counts(&mut record, &result.point, &result.counts);
    record
        .set(
            &columns::COMPLETIONS,
            completions.map_or(0, |all| all.count),
        )
        .distribution(&columns::completion::ALL, completions)
        .set(&columns::POST_RATE, result.post_rate)
        .set(&columns::PAGE_FAULTS, obtained.loop_faults.total())
        .set(&columns::STAMP_COST, stamp.cost_ns)
        .set(&columns::RESOLUTION, stamp.resolution_ns)
        .set(&columns::STAMP_REFRESH, obtained.stamp_refresh_ns);
    set_path(&mut record, &result.ports);
    record
}

/// What became of the messages.
fn set_counts(record: &mut Record, point: &Point, counts: &Counts) {
    // Of reads and atomics nothing arrives: a zero would tell of a loss.
    let arrives = point.operation.is_one_way();
    let of_arrival = |count: u64| arrives.then_some(count);
    record
        .set(&columns::SENT, counts.sent)
        .set(&columns::RECEIVED, of_arrival(counts.received))
        .set(&columns::LOST, of_arrival(counts.lost))
        .set(&columns::CORRUPTED, counts.corrupted)
        .set(&columns::DUPLICATED, of_arrival(counts.duplicated))
        .set(&columns::LATE, of_arrival(counts.late))
        .set(&columns::FOREIGN, of_arrival(counts.foreign))
        .set(&columns::FAILED_COMPLETIONS, counts.failed_completions)
        .set(&columns::NOT_RESTAMPED, of_arrival(counts.not_restamped))
        .set(
            &columns::DELIVERY_RATE,
            counts.delivery_rate().filter(|_| arrives),
        );
}

/// What the ports tell of the way.
fn set_path(record: &mut Record, ports: &PortRecord) {
    let (sender, receiver) = (&ports.sender, &ports.receiver);
    record
        .set(&columns::PACKETS_SENT, sender.packets_sent())
        .set(&columns::PACKETS_RECEIVED, receiver.packets_received())
        .set(&columns::RETRANSMISSIONS, sender.retransmissions())
        .set(
            &columns::CONGESTION_NOTIFICATIONS,
            ports.congestion_notifications(),
        )
        .set(&columns::SENDER_WAIT, sender.waits())
        .set(&columns::SENDER_PORT_ERRORS, sender.errors())
        .set(&columns::RECEIVER_PORT_ERRORS, receiver.errors())
        .set(&columns::PORT_COUNTERS, CounterRow::of(0, ports).count());
}

/// What others did meanwhile. Without a background nothing is offered, and all of it delivered.
fn set_of_others(record: &mut Record, result: &PointResult) {
    let delivered = result.background.unwrap_or_default();
    let settings = result.point.background;
    let bytes = settings.map_or(0.0, |it| it.bytes_sent() * delivered.rate());
    record
        .set(
            &columns::BACKGROUND_OFFERED,
            settings.map_or(0.0, |it| it.bytes_sent() * f64::from(it.per_second)),
        )
        .set(&columns::BACKGROUND_DELIVERED, bytes)
        .set(&columns::BACKGROUND_COMPLETED, delivered.messages.completed)
        .set(&columns::BACKGROUND_MISSED, delivered.messages.missed)
        .set(
            &columns::MEMORY_LOAD_MB_S,
            result.drawn.map(|drawn| drawn.mb_per_s()),
        );
}
