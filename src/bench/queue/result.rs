//! What comes of a point: the figures of each run, and over all of them.

use serde::Serialize;

use super::counters::Counts;
use super::floor::Floors;
use super::judge::{Outcome, Verdict};
use super::plan::Point;
use crate::buffer::PageKind;
use crate::host::{PageFaults, PlacementWarning};
use crate::stats::{LatencyHistogram, MedianInterval, Summary, TwoModes, median_of};
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

/// One run.
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
    /// The run, from 0.
    pub run: u32,
    /// Its number, from 0.
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

/// The distributions over all runs of a point.
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

/// All runs of a point.
#[derive(Debug, Clone)]
pub struct PointResult {
    /// The point, with the rate that was offered.
    pub point: Point,
    /// Elements a second that the queue took at most, on a load curve.
    pub saturation_per_s: Option<f64>,
    /// Its runs.
    pub runs: Vec<RunResult>,
    /// The distributions.
    pub histograms: Histograms,
    /// The elements, if they are kept.
    pub elements: Vec<ElementRow>,
    /// What is less than it should be in where the threads ran.
    pub placement_warnings: Vec<PlacementWarning>,
    /// Why it failed, if it did: a queue that loses elements, or worse.
    pub failure: Option<String>,
}

impl PointResult {
    /// A point before its first run.
    pub fn of(point: Point) -> Self {
        PointResult {
            point,
            saturation_per_s: None,
            runs: Vec::new(),
            histograms: Histograms::default(),
            elements: Vec::new(),
            placement_warnings: Vec::new(),
            failure: None,
        }
    }

    /// The runs that figures may be made of: none if one of them failed, because who is wrong once is not to be believed.
    pub fn figures(&self) -> &[RunResult] {
        match self.failure {
            None => &self.runs,
            Some(_) => &[],
        }
    }

    /// How its runs went: as the last one, because none is made after one that failed; `None` without any.
    pub fn outcome(&self) -> Option<Outcome> {
        self.runs.last().map(|run| run.outcome)
    }
}

/// A figure over the runs of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverRuns {
    /// Their median.
    pub median: f64,
    /// Between which bounds the true median lies with 95 %; `None` for fewer than six runs.
    pub interval: Option<(f64, f64)>,
    /// The two groups that they fall into, if they do.
    pub modes: Option<TwoModes>,
}

/// A figure of each run, over all that have it; `None` if none has.
pub fn over_runs(
    runs: &[RunResult],
    figure: impl Fn(&RunResult) -> Option<f64>,
) -> Option<OverRuns> {
    let figures: Vec<f64> = runs.iter().filter_map(figure).collect();
    // In thousandths, because the interval is one of whole numbers.
    let scaled: Vec<i64> = figures
        .iter()
        .map(|figure| (figure * 1000.0).round() as i64)
        .collect();
    let unscaled = |thousandths: i64| thousandths as f64 / 1000.0;
    Some(OverRuns {
        median: median_of(&figures)?,
        interval: MedianInterval::of(&scaled)
            .map(|interval| (unscaled(interval.low_ns), unscaled(interval.high_ns))),
        modes: TwoModes::of(&figures),
    })
}

/// As [`over_runs`], of the times.
pub fn over_times(runs: &[RunResult], figure: impl Fn(&Times) -> Option<f64>) -> Option<OverRuns> {
    over_runs(runs, |run| run.times.as_ref().and_then(&figure))
}

#[cfg(test)]
pub(crate) mod made_up {
    //! Runs for tests of what is made of them.

    use super::*;
    use crate::bench::queue::floor::Floor;

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
            verdict: Verdict {
                sent: 3,
                received: 3,
                ..Verdict::default()
            },
        }
    }

    #[test]
    fn figures_over_runs_are_medians_with_their_bounds() {
        let runs: Vec<RunResult> = [40, 41, 42, 43, 44, 45].map(run).into();
        let found = over_times(&runs, |times| Some(times.enqueue.p50_ns)).unwrap();
        assert_eq!(found.median, 42.5);
        assert_eq!(found.interval, Some((40.0, 45.0)));
        assert_eq!(found.modes, None);
        assert_eq!(
            over_times(&runs, |times| times.intended.as_ref().map(|s| s.p50_ns)),
            None
        );

        let few = over_runs(&runs[..5], |run| run.throughput_per_s).unwrap();
        assert_eq!(few.interval, None);
    }

    #[test]
    fn two_rhythms_are_noticed() {
        let runs: Vec<RunResult> = [40, 41, 90, 40, 91].map(run).into();
        let modes = over_times(&runs, |times| Some(times.latency.p50_ns))
            .unwrap()
            .modes
            .unwrap();
        assert_eq!((modes.low, modes.low_runs), (400.0, 3));
        assert_eq!((modes.high, modes.high_runs), (905.0, 2));
    }
}
