//! A point and what came of it as rows of the results' files.

use super::broker::BrokerUsage;
use super::config::Config;
use super::point::Point;
use super::result::RunOutcome;
use crate::node::NodeType;
use crate::node::pool::WORD;
use crate::results::Record;
use crate::results::schema::{between, node as columns};
use crate::rig::named::Named;
use crate::stats::fairness;

/// Bytes of a sample.
pub(super) fn sample_bytes(point: &Point) -> u64 {
    (point.words() * WORD) as u64
}

/// The same in a pool, with what is noted of it there.
pub(super) fn slot_bytes(point: &Point) -> u64 {
    sample_bytes(point) + 128
}

/// The settings of a point.
pub(super) fn settings(point: &Point, config: &Config) -> Record {
    let mut record = Record::new();
    let wiring = &point.wiring;
    record
        .set(&columns::TYPE, point.node_type.name())
        .set(&columns::SERVICE, point.service.map(Named::name))
        .set(&columns::SCENARIO, wiring.scenario.name())
        .set(&columns::PUBLISHERS, wiring.publishers)
        .set(&columns::SUBSCRIBERS, wiring.subscribers)
        .set(&columns::ENDS, point.ends.name())
        .set(&columns::RATE, point.rate_per_s)
        .set(&columns::VALUES, point.values)
        .set(&columns::SAMPLE, sample_bytes(point))
        .set(&columns::DISTRIBUTED_BY, point.node_type.distributed_by())
        .set(&columns::TIMER, config.timer.name())
        .set(&columns::POLL, config.poll.name())
        .set(&columns::AFTER_MISS, config.after_miss.name())
        .set(&columns::VECTORIZE, config.vectorize as u64)
        .set(&columns::SEND_QUEUE, config.send_queue)
        .set(&columns::RECEIVE_QUEUE, config.receive_queue)
        .set(&columns::STEPS, config.steps(point.rate_per_s))
        .set(&columns::WARMUP, config.warmup.as_nanos() as u64);
    if let Some(peer) = &config.peer {
        record
            .set(&between::RATE_LIMIT, peer.drift)
            .set(&between::UNCERTAINTY, peer.uncertainty.map(|most| most.0));
    }
    let sockets = &config.sockets;
    match point.node_type {
        #[cfg(feature = "mqtt")]
        NodeType::Mqtt => {
            record.set(&columns::QOS, config.qos as u64);
        }
        #[cfg(feature = "redis")]
        NodeType::Redis => {
            record.set(&columns::REDIS_KIND, config.redis_kind.name());
        }
        NodeType::Tcp => {
            let busy_poll = sockets.tcp_busy_poll.as_nanos() as u64;
            record
                .set(&columns::TCP_NODELAY, sockets.tcp_no_delay)
                .set(&columns::TCP_BUSY_POLL, busy_poll);
        }
        NodeType::Unix => {
            record.set(&columns::UNIX_SOCKET, sockets.unix_socket.name());
        }
        NodeType::Multicast => {
            let interface = sockets.multicast_interface.as_str();
            record.set(&columns::MULTICAST_INTERFACE, interface);
        }
        _ => {}
    }
    if point.node_type == NodeType::InfiniBand {
        let (verbs, threshold) = (&config.verbs, point.settings(config).receive_threshold());
        let inline = sample_bytes(point) <= u64::from(verbs.max_inline);
        record
            .set(&columns::INLINE, inline)
            .set(&columns::SIGNAL_EVERY, inline.then_some(verbs.signal_every))
            .set(&columns::RECEIVE_THRESHOLD, threshold);
    }
    record
}

/// What came of a run.
pub(super) fn figures(point: &Point, run: &RunOutcome) -> Record {
    let mut record = Record::new();
    let tally = &run.tally;
    let bytes = sample_bytes(point);
    let fell_back = run.work.map(|work| work.fell_back.count());
    let delivered = tally.received as f64 / run.nominal.max(1) as f64;
    record
        .distribution(&columns::latency::ALL, run.latency.summary.as_ref())
        .distribution(&columns::intended::ALL, run.intended.summary.as_ref())
        .set(&columns::EXPECTED, run.nominal)
        .set(&columns::SENT, run.sent)
        .set(&columns::COPIES, tally.sent)
        .set(&columns::RECEIVED, tally.received)
        .set(&columns::LOST, tally.lost)
        .set(&columns::DELIVERY_RATE, delivered)
        .set(&columns::ACKED, run.acknowledged)
        .set(&columns::STEPS_MADE, run.sent + run.refused)
        .set(&columns::STEPS_MISSED, run.missed)
        .set(&columns::STEPS_LATE, run.late)
        .set(&columns::REFUSED, run.refused)
        .set(&columns::ARRIVALS, run.arrivals)
        .set(&columns::DUPLICATED, tally.duplicated)
        .set(&columns::REORDERED, tally.reordered)
        .set(&columns::DAMAGED, tally.damaged)
        .set(&columns::NEVER_SENT, tally.never_sent)
        .set(&columns::NOT_DELIVERED, run.lost.len() as u64)
        .set(&columns::BYTES_SENT, run.sent * bytes)
        .set(&columns::BYTES_RECEIVED, tally.received * bytes)
        .set(&columns::REQUESTS, run.work.map(|work| work.requests))
        .set(&columns::COMPLETIONS, run.work.map(|work| work.completions))
        .set(&columns::FELL_BACK, fell_back)
        .set(&columns::ERRORS, run.refused + fell_back.unwrap_or(0))
        .set(&columns::SEND_RATE, run.send_rate_per_s)
        .set(&columns::RECEIVE_RATE, run.receive_rate_per_s)
        .set(&columns::FAIRNESS, fairness(&run.by_subscriber))
        .set(
            &columns::LEAST_AT_ONE,
            run.by_subscriber.iter().min().copied(),
        )
        .set(
            &columns::MOST_AT_ONE,
            run.by_subscriber.iter().max().copied(),
        );
    run.microseconds.set(&mut record);
    record
}

/// What the broker took.
pub(super) fn add_broker(figures: &mut Record, spent: Option<&BrokerUsage>) {
    figures
        .set(&columns::BROKER_CPU, spent.map(|it| it.cpu_percent))
        .set(&columns::BROKER_BASELINE, spent.map(|it| it.baseline_bytes))
        .set(&columns::BROKER_RSS, spent.map(|it| it.resident_bytes))
        .set(&columns::BROKER_PEAK, spent.map(|it| it.peak_bytes));
}
