//! What comes of a point in a round.

use serde::Serialize;

use super::counters::CounterValues;
use super::floor::{OperationFloors, QueueFloor};
use super::judge::{Outcome, Verdict};
use super::measurer::CarriedElements;
use super::runner::EndTally;
use super::shares::Shares;
use crate::buffer::PageKind;
use crate::generators::LoadTraffic;
use crate::host::throttling::ThrottlingRecord;
use crate::results::hlog::RoundLog;
use crate::stats::{LatencyHistogram, Summary};
use crate::time::{StampCost, Ticks};

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PerEnd<T> {
    pub sender: T,
    pub receiver: T,
}

impl<T> PerEnd<T> {
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> PerEnd<U> {
        PerEnd {
            sender: of(&self.sender),
            receiver: of(&self.receiver),
        }
    }
}

/// Something for each time that is measured of an element.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PerOperation<T> {
    /// From before to after its enqueue.
    pub enqueue: T,
    /// From before to after its dequeue.
    pub dequeue: T,
    /// From before the first attempt to enqueue it to after its dequeue.
    pub latency: T,
    /// From when it was meant to be enqueued to after its dequeue, where there is a schedule.
    pub intended: T,
    /// From before its enqueue to after the dequeue of the answer.
    pub round_trip: T,
    /// From before the first to after the last enqueue of a batch.
    pub enqueue_batch: T,
    /// The same of dequeues.
    pub dequeue_batch: T,
}

impl<T> PerOperation<T> {
    /// All of them, in the order of the columns.
    pub fn all(&self) -> [&T; 7] {
        [
            &self.enqueue,
            &self.dequeue,
            &self.latency,
            &self.intended,
            &self.round_trip,
            &self.enqueue_batch,
            &self.dequeue_batch,
        ]
    }

    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> PerOperation<U> {
        let [
            enqueue,
            dequeue,
            latency,
            intended,
            round_trip,
            enqueue_batch,
            dequeue_batch,
        ] = self.all().map(of);
        PerOperation {
            enqueue,
            dequeue,
            latency,
            intended,
            round_trip,
            enqueue_batch,
            dequeue_batch,
        }
    }
}

/// The files of distributions, in that order.
pub(super) const DISTRIBUTIONS: [&str; 7] = [
    "enqueue.hgrm",
    "dequeue.hgrm",
    "latency.hgrm",
    "intended_latency.hgrm",
    "round_trip.hgrm",
    "enqueue_batch.hgrm",
    "dequeue_batch.hgrm",
];

/// How full the queue was: elements between the end of their enqueue and the end of their dequeue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Depth {
    /// The most at one time: a slot that was freed and filled again while its dequeue had not ended makes it one more
    /// than the capacity.
    pub max: u64,
    pub mean: f64,
}

/// The times of the elements of a run that count, in nanoseconds.
#[derive(Debug, Clone)]
pub struct Times {
    pub figures: PerOperation<Option<Summary>>,
    pub histograms: PerOperation<LatencyHistogram>,
    /// Of a queue with more than one element.
    pub depth: Option<Depth>,
    /// Operations of a batch; one where each is timed by itself.
    pub per_stamp: u32,
}

impl Times {
    /// Those of samples in ascending order.
    pub(super) fn of(samples: &PerOperation<Vec<i64>>, depth: Option<Depth>) -> Self {
        Times {
            figures: samples.map(|samples| Summary::of_sorted(samples)),
            histograms: samples.map(|samples| LatencyHistogram::of(samples)),
            depth,
            per_stamp: 1,
        }
    }

    /// Operations of an end that are in its timed batches, in per cent of all of them.
    pub(super) fn percent_in_batches(&self, batches: usize, operations: u64) -> f64 {
        let inside = batches as u64 * u64::from(self.per_stamp);
        100.0 * inside as f64 / operations.max(1) as f64
    }

    /// The files of the distributions; without a schedule there is none from the intended time.
    pub(super) fn files(&self) -> Vec<(String, LatencyHistogram)> {
        let all = DISTRIBUTIONS.into_iter().zip(self.histograms.all());
        all.filter(|(_, histogram)| histogram.count() > 0)
            .map(|(name, histogram)| (name.to_owned(), histogram.clone()))
            .collect()
    }
}

/// What is known of an end when all elements went through.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PassageResult {
    /// When the schedule of its elements that count began, of a sender; of a receiver the one of all.
    pub started: Ticks,
    /// The elements of the warm-up.
    pub warmed_up: CarriedElements,
    /// The time that its rate is over, behind the warm-up: see `per_second`.
    pub span: [Ticks; 2],
    /// The intervals from element to element in it; of one of several receivers its elements.
    pub intervals: u64,
    /// Page faults in its loop, after the warm-up.
    pub faults: u64,
    /// The processor's counters, if they were asked for.
    pub counts: Option<CounterValues>,
}

/// What there is to know of an end after a run, beside what it noted.
#[derive(Debug, Clone, PartialEq)]
pub struct EndResult {
    /// What its loop counted; failed attempts and misses without those of the warm-up.
    pub tally: EndTally,
    /// When elements went through, and what that took.
    pub passed: PassageResult,
    /// What a time stamp cost on its CPU right before the run.
    pub stamp: StampCost,
    /// What its measurer measures without a queue.
    pub floors: OperationFloors,
    /// The same of a batch, where batches are timed.
    pub batch_floor: Option<QueueFloor>,
    /// The pages in which it noted.
    pub pages: PageKind,
    /// The pages of the queue, where it was made in memory of its own.
    pub queue_pages: Option<PageKind>,
    /// Whether the memory of the queue was locked, as the sender knows: with a small limit it is only touched.
    pub queue_locked: bool,
}

/// A run of a queue, which is a point in a round.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// How it went: only a clean run has figures.
    pub outcome: Outcome,
    /// Whether all came out as it went in.
    pub verdict: Verdict,
    /// Elements that should have gone through behind the warm-up.
    pub elements: u64,
    pub times: Option<Times>,
    /// The same by interval, where it was long enough or that was asked for.
    pub interval_logs: Vec<RoundLog>,
    /// Elements a second through the queue, by the receiver's clock; `per_second` says over which time.
    pub throughput_per_s: Option<f64>,
    /// Elements a second into it, by the sender's clock.
    pub sent_per_s: Option<f64>,
    /// What the loops measure without a queue, where times are measured. That of an enqueue has a hand-over behind it
    /// where more than half of the enqueues had one; those of latencies are missing if the bare hand-over was
    /// disturbed.
    pub floors: Option<PerOperation<Option<QueueFloor>>>,
    pub ends: PerEnd<EndResult>,
    /// What each of several threads had.
    pub shares: Option<Shares>,
    /// The elements that count, if they are kept.
    pub rows: Vec<ElementRow>,
    /// What generators issued meanwhile, under memory load.
    pub drawn: Option<LoadTraffic>,
    /// What CPU quotas did behind the warm-up.
    pub throttled: ThrottlingRecord,
}

/// One element, with all that is known of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ElementRow {
    /// The round, from 0.
    pub round: u32,
    /// Its number in the round, from 0.
    pub seq: u64,
    /// When it was meant to be enqueued.
    pub t_intended_ns: Option<u64>,
    /// What it carried: before the first attempt to enqueue it.
    pub t_stamp_ns: u64,
    /// Before the enqueue that succeeded.
    pub t_enqueue_ns: u64,
    /// After it; moved by as long as handing over took, where that belongs to it.
    pub t_enqueued_ns: u64,
    /// Before the dequeue that succeeded.
    pub t_dequeue_ns: u64,
    /// After it.
    pub t_dequeued_ns: u64,
    /// From stamp to dequeue.
    pub latency_ns: i64,
}

#[cfg(any(test, feature = "testing"))]
pub mod made_up {
    //! A run for tests of what is made of it.

    use super::*;
    use std::time::Duration;

    use crate::bench::queue::config::{Config, Measure, RoundLength};
    use crate::bench::queue::cpus::Cpus;
    use crate::bench::queue::plan::Point;
    use crate::bench::queue::retry::Retry;
    use crate::buffer::HugePagePolicy;
    use crate::generators::MemoryLoad;
    use crate::pacing::{EndLoad, Load};
    use crate::time::ClockKind;

    pub fn config() -> Config {
        Config {
            length: RoundLength::Elements(100_000),
            warmup: Duration::ZERO,
            measure: Measure::Time,
            measure_failed: false,
            retry: Retry::Pause,
            clock: ClockKind::Monotonic,
            unfenced: false,
            per_stamp: 1,
            timeout: Duration::from_secs(5),
            priority: None,
            huge_pages: HugePagePolicy::Try,
            keep_elements: false,
            hlog_interval: None,
            has_memory_load: false,
        }
    }

    /// A point of 64 elements under a load of the sender.
    pub fn point_under(queue: &str, load: Load) -> Point {
        Point {
            sender: EndLoad {
                load,
                ..EndLoad::NONE
            },
            ..point(queue)
        }
    }

    /// A point of 64 elements without a load.
    pub fn point(queue: &str) -> Point {
        Point {
            queue: queue.to_owned(),
            capacity: 64,
            payload: 8,
            sender: EndLoad::NONE,
            receiver: EndLoad::NONE,
            percent_of_saturation: None,
            cpus: Cpus {
                sender: 0,
                receiver: 1,
                cores: None,
            },
            memory_load: MemoryLoad::OFF,
            wiring: None,
        }
    }

    /// An end of a run in which nothing happened that should not.
    pub fn end(failed: u64) -> EndResult {
        let floor = |min_ns: i64| QueueFloor {
            min_ns,
            p50_ns: min_ns as f64 + 0.5,
        };
        EndResult {
            tally: EndTally {
                noted: 3,
                failed,
                ..EndTally::default()
            },
            passed: PassageResult::default(),
            stamp: StampCost {
                cost_ns: Some(12.5),
                resolution_ns: Some(1.0),
            },
            floors: OperationFloors {
                plain: floor(10),
                with_flush: floor(20),
            },
            batch_floor: None,
            pages: PageKind::Huge,
            queue_pages: Some(PageKind::Huge),
            queue_locked: true,
        }
    }

    /// A clean run in which each enqueue took so many nanoseconds, each dequeue twice and each latency ten times as
    /// many.
    pub fn run(enqueue_ns: i64) -> RunResult {
        let summary = |ns: i64| Summary::of(&[ns - 1, ns, ns + 1]);
        let ends = PerEnd {
            sender: end(3),
            receiver: end(7),
        };
        let floor = Some(ends.sender.floors.plain);
        RunResult {
            outcome: Outcome::Clean,
            verdict: Verdict::default(),
            elements: 3,
            throttled: ThrottlingRecord::default(),
            times: Some(Times {
                figures: PerOperation {
                    enqueue: summary(enqueue_ns),
                    dequeue: summary(2 * enqueue_ns),
                    latency: summary(10 * enqueue_ns),
                    ..PerOperation::default()
                },
                histograms: PerOperation::default(),
                depth: Some(Depth { max: 5, mean: 1.5 }),
                per_stamp: 1,
            }),
            interval_logs: Vec::new(),
            throughput_per_s: Some(1e9 / enqueue_ns as f64),
            sent_per_s: Some(1e9 / enqueue_ns as f64),
            floors: Some(PerOperation {
                enqueue: floor,
                dequeue: floor,
                latency: floor,
                intended: floor,
                round_trip: floor,
                ..PerOperation::default()
            }),
            ends,
            shares: None,
            rows: Vec::new(),
            drawn: None,
        }
    }
}
