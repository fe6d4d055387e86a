//! What comes of a point in a round.

use serde::Serialize;

use super::counters::Counts;
use super::floor::Floors;
use super::judge::{Outcome, Verdict};
use crate::buffer::PageKind;
use crate::host::PageFaults;
use crate::stats::{LatencyHistogram, Summary};
use crate::time::StampCost;

/// Something for each end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PerEnd<T> {
    /// The sender's.
    pub sender: T,
    /// The receiver's.
    pub receiver: T,
}

/// How full the queue was: elements between the end of their enqueue and the end of their dequeue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Depth {
    /// The most at one time: a slot that was freed and filled again while its dequeue had not ended makes it one more
    /// than the capacity.
    pub max: u64,
    /// The mean over the time.
    pub mean: f64,
}

/// The times of the operations of one run, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Times {
    /// From before to after each enqueue.
    pub enqueue: Summary,
    /// From before to after each dequeue.
    pub dequeue: Summary,
    /// From before the first attempt to enqueue an element to after its dequeue.
    pub latency: Summary,
    /// From when it was meant to be enqueued to after its dequeue, where there is a schedule.
    pub intended: Option<Summary>,
    /// How full the queue was.
    pub depth: Depth,
}

/// A run of a queue, which is a point in a round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// How it went: only a clean run has figures.
    pub outcome: Outcome,
    /// Elements that count: those after the warm-up.
    pub elements: u64,
    /// The times, if they were measured.
    pub times: Option<Times>,
    /// Elements a second through the queue, by the receiver's clock.
    pub throughput_per_s: Option<f64>,
    /// Attempts that failed because the queue was full or empty.
    pub failed: PerEnd<u64>,
    /// Operations, or blocks, that were already due when the one before them ended.
    pub missed: PerEnd<u64>,
    /// What a time stamp cost on the CPU of each end right before the run.
    pub stamp: PerEnd<StampCost>,
    /// What the loops measure without a queue, where times are measured.
    pub floors: Option<Floors>,
    /// Enqueues whose time holds handing over what the queue had held back, before a pause.
    pub handed_over: u64,
    /// Page faults in the loops, after the warm-up.
    pub page_faults: PerEnd<PageFaults>,
    /// The pages in which the stamps were noted.
    pub pages: PerEnd<PageKind>,
    /// Whether the memory of the queue was locked: with a small limit it is only touched.
    pub queue_locked: bool,
    /// The processor's counters, if they were asked for.
    pub counters: Option<PerEnd<Counts>>,
    /// Whether all came out as it went in.
    pub verdict: Verdict,
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

/// The distributions of a round.
#[derive(Debug, Clone, Default)]
pub struct Histograms {
    /// Of enqueues.
    pub enqueue: LatencyHistogram,
    /// Of dequeues.
    pub dequeue: LatencyHistogram,
    /// Of the latency of elements.
    pub latency: LatencyHistogram,
    /// Of that from the intended time; empty without a schedule.
    pub intended: LatencyHistogram,
}

impl Histograms {
    /// The files they go to; without a schedule there are none from the intended time.
    pub(super) fn named(self) -> Vec<(String, LatencyHistogram)> {
        let all = [
            ("latency.hgrm", self.latency),
            ("enqueue.hgrm", self.enqueue),
            ("dequeue.hgrm", self.dequeue),
            ("intended_latency.hgrm", self.intended),
        ];
        all.into_iter()
            .filter(|(_, histogram)| histogram.count() > 0)
            .map(|(name, histogram)| (name.to_owned(), histogram))
            .collect()
    }
}

/// A run with what only a clean one leaves.
#[derive(Debug, Clone)]
pub struct Round {
    /// Its figures.
    pub run: RunResult,
    /// The distributions; empty unless times were measured.
    pub histograms: Histograms,
    /// The elements, if they are kept.
    pub elements: Vec<ElementRow>,
}

#[cfg(test)]
pub(crate) mod made_up {
    //! A run for tests of what is made of it.

    use super::*;
    use std::time::Duration;

    use crate::bench::queue::config::{Config, Measure};
    use crate::bench::queue::cpus::Cpus;
    use crate::bench::queue::floor::Floor;
    use crate::bench::queue::plan::Point;
    use crate::buffer::HugePagePolicy;
    use crate::pacing::EndLoad;
    use crate::time::ClockKind;

    /// What tests measure.
    pub(crate) fn config() -> Config {
        Config {
            count: 100_000,
            warmup: 10_000,
            measure: Measure::Time,
            measure_failed: false,
            clock: ClockKind::Monotonic,
            timeout: Duration::from_secs(5),
            huge_pages: HugePagePolicy::Try,
            keep_elements: false,
        }
    }

    /// A point of 64 elements without a load.
    pub(crate) fn point(queue: &str) -> Point {
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
        }
    }

    /// A clean run in which each enqueue took so many nanoseconds, each dequeue twice and each latency ten times as many.
    pub(crate) fn run(enqueue_ns: i64) -> RunResult {
        let summary = |ns: i64| Summary::of(&[ns - 1, ns, ns + 1]).unwrap();
        let stamp = StampCost {
            cost_ns: 12.5,
            resolution_ns: Some(1.0),
        };
        let floor = |min_ns: i64| Floor {
            min_ns,
            p50_ns: min_ns as f64 + 0.5,
        };
        RunResult {
            outcome: Outcome::Clean,
            elements: 3,
            times: Some(Times {
                enqueue: summary(enqueue_ns),
                dequeue: summary(2 * enqueue_ns),
                latency: summary(10 * enqueue_ns),
                intended: None,
                depth: Depth { max: 5, mean: 1.5 },
            }),
            throughput_per_s: Some(1e9 / enqueue_ns as f64),
            failed: PerEnd {
                sender: 3,
                receiver: 7,
            },
            missed: PerEnd::default(),
            stamp: PerEnd {
                sender: stamp,
                receiver: stamp,
            },
            floors: Some(Floors {
                enqueue: floor(10),
                dequeue: floor(11),
                latency: Some(floor(100)),
                intended: None,
            }),
            handed_over: 0,
            page_faults: PerEnd::default(),
            pages: PerEnd {
                sender: PageKind::Huge,
                receiver: PageKind::Huge,
            },
            queue_locked: true,
            counters: None,
            verdict: Verdict::default(),
        }
    }
}
