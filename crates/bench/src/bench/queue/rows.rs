//! The rows of the queue benchmark in the results: settings of a point, and figures of a run.

use super::config::{Config, RoundLength};
use super::ends;
use super::judge::Outcome;
use super::plan::Point;
use super::result::{PerEnd, PerOperation, RunResult};
use super::sharing::set_columns;
use crate::pacing::{EndLoad, Load};
use crate::queues::registry;
use crate::results::Record;
use crate::results::schema::{Column, queue as columns};

/// What tells the load of the sender: its kind, rate, wait, group and jitter.
pub const LOAD_OF_SENDER: [&Column; 5] = [
    &columns::LOAD,
    &columns::RATE,
    &columns::WAIT,
    &columns::GROUP,
    &columns::JITTER,
];
/// The same of the receiver.
pub const LOAD_OF_RECEIVER: [&Column; 5] = [
    &columns::RECEIVER_LOAD,
    &columns::RECEIVER_RATE,
    &columns::RECEIVER_WAIT,
    &columns::RECEIVER_GROUP,
    &columns::RECEIVER_JITTER,
];

/// The outcome of a round without a run.
pub const FAILED: &str = "failed";

fn rate(end: &EndLoad) -> Option<f64> {
    match end.load {
        Load::ConstantRate { rate_per_s } => Some(rate_per_s),
        _ => None,
    }
}

fn set_load(record: &mut Record, columns: [&Column; 5], end: &EndLoad, rate: Option<f64>) {
    let (wait, group) = match end.load {
        Load::None | Load::ConstantRate { .. } => (None, None),
        Load::ConstantWait { wait_ns } => (Some(wait_ns), None),
        Load::Bursty { wait_ns, group } => (Some(wait_ns), Some(group)),
    };
    let [
        load_column,
        rate_column,
        wait_column,
        group_column,
        jitter_column,
    ] = columns;
    record
        .set(load_column, end.load.name())
        .set(wait_column, wait)
        .set(group_column, group)
        .set(jitter_column, end.jitter_percent());
    if rate.is_some() {
        record.set(rate_column, rate);
    }
}

/// The settings of a point. On a load curve the rate is no setting: it is among the [`figures`].
pub fn settings(point: &Point, config: &Config) -> Record {
    let entry = registry::entry(&point.queue);
    let mut record = Record::new();
    record
        .set(&columns::QUEUE, point.queue.as_str())
        .set(&columns::ENDS, entry.map(|entry| entry.ends.name()))
        .set(&columns::WRITTEN, entry.map(|entry| entry.origin.name()))
        .set(&columns::CAPACITY, point.capacity)
        .set(&columns::PAYLOAD, point.payload);
    let of_sender = rate(&point.sender).filter(|_| point.percent_of_saturation.is_none());
    set_load(&mut record, LOAD_OF_SENDER, &point.sender, of_sender);
    set_columns(&mut record, point.wiring.as_ref());
    let cpus = point.wiring.is_none().then_some(&point.cpus);
    let of_receiver = rate(&point.receiver);
    set_load(&mut record, LOAD_OF_RECEIVER, &point.receiver, of_receiver);
    record
        .set(&columns::PERCENT_OF_SATURATION, point.percent_of_saturation)
        .set(
            &columns::MEMORY_LOAD,
            config
                .has_memory_load
                .then_some(point.memory_load.percent()),
        )
        .set(
            &columns::CORES,
            cpus.and_then(|cpus| cpus.cores).map(|cores| cores.name()),
        )
        .set(&columns::SENDER_CPU, cpus.map(|cpus| cpus.sender))
        .set(&columns::RECEIVER_CPU, cpus.map(|cpus| cpus.receiver))
        .set(&columns::MEASURE, config.measure.name())
        .set(&columns::MEASURE_FAILED, config.measure_failed)
        .set(&columns::RETRY, config.retry.name())
        .set(&columns::CLOCK, config.clock_name())
        .set(
            &columns::PER_STAMP,
            config.has_batches().then_some(config.per_stamp),
        )
        .set(&columns::WARMUP, config.warmup.as_nanos() as u64)
        .set(&columns::PRIORITY, config.priority.map(u32::from));
    match config.length {
        RoundLength::Elements(count) => record.set(&columns::COUNT, count),
        RoundLength::Time(time) => record.set(&columns::DURATION, time.as_nanos() as u64),
    };
    record
}

/// What is found where there was no run.
pub fn without_run() -> Record {
    let mut record = Record::new();
    record.set(&columns::OUTCOME, FAILED);
    record
}

/// What is found of a run, and on a load curve the rate that was offered. Who is wrong has faults and no figures: a
/// queue that is broken looks fastest.
pub fn figures(point: &Point, run: &RunResult, saturation: Option<f64>) -> Record {
    let mut record = Record::new();
    if point.percent_of_saturation.is_some() {
        record
            .set(&columns::RATE, rate(&point.sender))
            .set(&columns::SATURATION, saturation);
    }
    let elements = &run.verdict.elements;
    record
        .set(&columns::OUTCOME, run.outcome.name())
        .set(
            &columns::QUEUE_IS,
            registry::chosen(&point.queue, &ends::spec(point)).map(|choice| choice.queue),
        )
        .set(&columns::LOST, elements.lost)
        .set(&columns::DUPLICATED, elements.duplicated)
        .set(&columns::REORDERED, elements.reordered)
        .set(&columns::INVENTED, elements.never_sent)
        .set(&columns::DAMAGED, elements.damaged)
        .set(&columns::BELATED, elements.late);
    if run.outcome == Outcome::Clean {
        set_figures(&mut record, point, run);
    }
    record
}

fn set_figures(record: &mut Record, point: &Point, run: &RunResult) {
    let PerEnd { sender, receiver } = &run.ends;
    let times = run.times.as_ref();
    let depth = times.and_then(|times| times.depth);
    for (place, operation) in columns::OPERATIONS.iter().enumerate() {
        let summary = times.and_then(|times| times.figures.all()[place].as_ref());
        // Beside a figure that there is.
        let floors = run.floors.as_ref().filter(|_| summary.is_some());
        let floor = floors.and_then(|floors| *floors.all()[place]);
        record
            .set(&operation.floor_min, floor.map(|floor| floor.min_ns))
            .set(&operation.floor_p50, floor.map(|floor| floor.p50_ns))
            .distribution(&operation.columns, summary);
    }
    if let Some(times) = times.filter(|times| times.per_stamp > 1) {
        let PerOperation {
            enqueue_batch,
            dequeue_batch,
            ..
        } = &times.figures;
        for (summary, [batches, batched, each]) in [
            (
                enqueue_batch,
                [
                    &columns::ENQUEUE_BATCHES,
                    &columns::ENQUEUES_BATCHED,
                    &columns::ENQUEUE_EACH,
                ],
            ),
            (
                dequeue_batch,
                [
                    &columns::DEQUEUE_BATCHES,
                    &columns::DEQUEUES_BATCHED,
                    &columns::DEQUEUE_EACH,
                ],
            ),
        ] {
            let summary = summary.as_ref();
            let count = summary.map_or(0, |summary| summary.count);
            let one = |batch: f64| batch / f64::from(times.per_stamp);
            record
                .set(batches, count)
                .set(
                    batched,
                    times.percent_in_batches(count as usize, run.elements),
                )
                .set(each, summary.map(|summary| one(summary.p50_ns)));
        }
    }
    record
        .set(&columns::ELEMENTS_MEASURED, run.elements)
        .set(&columns::THROUGHPUT, run.throughput_per_s)
        .set(&columns::SENT_PER_S, run.sent_per_s)
        .set(
            &columns::THROUGHPUT_MB_S,
            run.throughput_per_s
                .map(|per_s| per_s * point.payload as f64 / 1e6),
        )
        .set(&columns::DEPTH_MEAN, depth.map(|depth| depth.mean))
        .set(&columns::DEPTH_MAX, depth.map(|depth| depth.max))
        .set(&columns::HANDED_OVER, sender.tally.extended)
        .set(&columns::FAILED_ENQUEUES, sender.tally.failed)
        .set(&columns::FAILED_DEQUEUES, receiver.tally.failed)
        .set(&columns::MISSED_ENQUEUES, sender.tally.missed)
        .set(&columns::MISSED_DEQUEUES, receiver.tally.missed)
        .set(
            &columns::MEMORY_LOAD_MB_S,
            run.drawn.map(|drawn| drawn.mb_per_s()),
        )
        .set(&columns::SENDER_STAMP, sender.stamp.cost_ns)
        .set(&columns::RECEIVER_STAMP, receiver.stamp.cost_ns)
        .set(&columns::RESOLUTION, sender.stamp.resolution_ns)
        .set(&columns::SENDER_PAGE_FAULTS, sender.passed.faults)
        .set(&columns::RECEIVER_PAGE_FAULTS, receiver.passed.faults);
    for (columns, end) in columns::COUNTERS.chunks(4).zip([sender, receiver]) {
        if let Some(counts) = &end.passed.counts {
            for (column, count) in columns.iter().zip(counts.all()) {
                record.set(column, count as f64 / run.elements.max(1) as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::queue::result::made_up;
    use crate::generators::{LoadTraffic, MemoryLoad};

    #[test]
    fn a_clean_run_has_figures_and_a_broken_queue_has_faults() {
        let point = made_up::point("lamport");
        let mut run = made_up::run(40);
        let clean = figures(&point, &run, None);
        let number = |column: &Column| clean.number(column.name);
        assert_eq!(number(&columns::enqueue::MIN), Some(39.0));
        assert_eq!(number(&columns::enqueue::MAX), Some(41.0));
        assert_eq!(number(&columns::FAILED_DEQUEUES), Some(7.0));
        assert_eq!(number(&columns::DEPTH_MEAN), Some(1.5));
        assert_eq!(number(&columns::SENDER_STAMP), Some(12.5));
        assert_eq!(number(&columns::OPERATIONS[1].floor_min), Some(10.0));
        assert_eq!(number(&columns::OPERATIONS[2].floor_p50), Some(10.5));
        // No floor beside a figure that there is not.
        assert_eq!(number(&columns::OPERATIONS[3].floor_min), None);
        assert_eq!(number(&columns::intended::P50), None);

        run.outcome = Outcome::Wrong;
        run.verdict.elements.lost = 3;
        let wrong = figures(&point, &run, None);
        assert_eq!(wrong.number(columns::LOST.name), Some(3.0));
        assert_eq!(wrong.number(columns::THROUGHPUT.name), None);
        assert_eq!(wrong.number(columns::enqueue::P50.name), None);
        // All of them are declared.
        for record in [clean, wrong, without_run()] {
            record.arranged(&columns::SCHEMA.runs());
        }
    }

    #[test]
    fn a_run_in_batches_has_their_size_their_number_and_the_mean_of_an_operation() {
        let mut config = made_up::config();
        let point = made_up::point("lamport");
        let size = |config: &Config| settings(&point, config).number(columns::PER_STAMP.name);
        assert_eq!(size(&config), None);
        config.per_stamp = 64;
        assert_eq!(size(&config), Some(64.0));
        let mut run = made_up::run(40);
        run.elements = 200;
        let times = run.times.as_mut().unwrap();
        times.per_stamp = 32;
        times.figures = PerOperation {
            enqueue_batch: times.figures.enqueue.take(),
            ..PerOperation::default()
        };
        let found = figures(&point, &run, None);
        let number = |column: &Column| found.number(column.name);
        let batch = columns::enqueue_batch::P50;
        assert_eq!(
            [batch, columns::ENQUEUE_EACH].map(|it| number(&it)),
            [40.0, 1.25].map(Some)
        );
        assert_eq!(number(&columns::ENQUEUE_BATCHES), Some(3.0));
        assert_eq!(number(&columns::ENQUEUES_BATCHED), Some(48.0));
        assert_eq!(number(&columns::DEQUEUES_BATCHED), Some(0.0));
        // A receiver that always found the queue empty.
        assert_eq!(number(&columns::DEQUEUE_BATCHES), Some(0.0));
        assert_eq!(number(&columns::DEQUEUE_EACH), None);
        assert_eq!(number(&columns::enqueue::P50), None);
        found.arranged(&columns::SCHEMA.runs());
    }

    #[test]
    fn a_queue_that_is_one_of_several_has_the_name_of_that_one() {
        let is = |queue: &str| {
            let found = figures(&made_up::point(queue), &made_up::run(40), None);
            found.text(&columns::QUEUE_IS)
        };
        assert!(["baton-batching", "baton-demoting"].contains(&is("baton").as_str()));
        assert_eq!(["lamport", "baton-batching"].map(is), ["", ""]);
    }

    #[test]
    fn memory_load_stands_in_runs_that_have_one() {
        let mut config = made_up::config();
        let mut point = made_up::point("lamport");
        let setting = |point: &Point, config: &Config| {
            settings(point, config).number(columns::MEMORY_LOAD.name)
        };
        assert_eq!(setting(&point, &config), None);
        config.has_memory_load = true;
        assert_eq!(setting(&point, &config), Some(0.0));
        point.memory_load = MemoryLoad::of_percent(50).unwrap();
        assert_eq!(setting(&point, &config), Some(50.0));
        let mut run = made_up::run(40);
        let drawn =
            |run: &RunResult| figures(&point, run, None).number(columns::MEMORY_LOAD_MB_S.name);
        assert_eq!(drawn(&run), None);
        run.drawn = Some(LoadTraffic {
            bytes: 3_000_000,
            time: Duration::from_millis(2),
        });
        assert_eq!(drawn(&run), Some(1500.0));
    }

    #[test]
    fn all_settings_are_declared_and_a_curve_offers_what_follows_from_its_saturation() {
        let config = made_up::config();
        let mut point = made_up::point("lamport");
        let plain = settings(&point, &config).arranged(&columns::SCHEMA.summary());
        assert_eq!(plain.get("ends").unwrap().text(), "spsc");
        point.percent_of_saturation = Some(50);
        let offered = point.with_saturation(1e6);
        assert_eq!(settings(&point, &config).get(columns::RATE.name), None);
        let found = figures(&offered, &made_up::run(40), Some(1e6));
        assert_eq!(found.number(columns::RATE.name), Some(5e5));
    }
}
