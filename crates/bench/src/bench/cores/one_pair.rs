//! Both ends of a pair in threads, and what comes of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::error::RunError;
use super::lines::{LINE_BYTES, Way};
use super::loops::{self, BATCH, Patience, Span, Stage, StreamEnd, Ways};
use super::watch::{PairWatch, WatchedEnd};
use crate::host::pinning::{self, ThreadMigration};
use crate::rig::error::RigError;
use crate::rig::exchange::{Exchange, Offset};
use crate::rig::in_threads::{SignalCheck, ThreadJob, ThreadsError, watched_threads};
use crate::rig::role::Role;
use crate::stats::median_of;
use crate::time::{Clock, ClockUser, Nanos, Ticks};

/// Batches and exchanges of a pair that are kept, the last ones: what fits into the second level of cache beside the
/// lines.
const MOST_BATCHES: usize = 4096;
const MOST_EXCHANGES: usize = 8192;

/// How long an end waits for the other one: this, and the duration of the pair times that.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENT_TIMES: u32 = 3;
/// How much longer the thread that started both ends waits for them.
const LONGER: Duration = Duration::from_secs(1);

/// What a stamp is before it is taken. Zeros would be pages that no thread has touched.
const NO_TICKS: Ticks = Ticks(1);
const NO_EXCHANGE: Exchange = Exchange {
    asked: 1,
    answered: 1,
    returned: 1,
};

/// Where stamps of a pair go: memory that was written to before.
#[derive(Debug)]
pub struct PairStamps {
    batches: Vec<Ticks>,
    exchanges: Vec<Exchange>,
}

impl Default for PairStamps {
    fn default() -> Self {
        PairStamps {
            batches: vec![NO_TICKS; MOST_BATCHES],
            exchanges: vec![NO_EXCHANGE; MOST_EXCHANGES],
        }
    }
}

/// A pair to be measured.
pub struct PairRun<'a> {
    /// The CPU that asks, and the one that answers.
    pub cpus: [usize; 2],
    /// The lines that the first writes, and those that the second does.
    pub ways: [Way<'a>; 2],
    /// Which of these lines has the first turn.
    pub first_turn: usize,
    /// How long it is measured.
    pub duration: Duration,
    /// Where its stamps go.
    pub stamps: &'a mut PairStamps,
    /// Whether a signal has come.
    pub stop: SignalCheck<'a>,
}

/// What came of a pair.
#[derive(Debug, Clone, PartialEq)]
pub enum PairOutcome {
    /// Its figures, perhaps not all of them.
    Measured(PairFigures),
    /// Its CPUs did not run at the same time.
    NeverTogether,
    /// Threads on these of its CPUs never ran.
    NeverRan(Vec<usize>),
}

/// The figures of a pair. Of two figures the first is of the direction from the first CPU to the second.
#[derive(Debug, Clone, PartialEq)]
pub struct PairFigures {
    /// The median of batches.
    pub round_trip_ns: f64,
    /// The fastest batch.
    pub least_round_trip_ns: f64,
    /// Batches that count.
    pub batches: usize,
    /// From stamp to stamp, the medians.
    pub one_way_ns: [Option<f64>; 2],
    /// Hand-overs that count, in each direction.
    pub handovers: usize,
    /// How far the second CPU's clock is ahead, and to how much on either side that is known.
    pub offset_ns: Option<[f64; 2]>,
    /// 10^6 bytes a second.
    pub stream_mb_s: [Option<f64>; 2],
}

impl PairFigures {
    /// Whether all stages came to their end.
    pub fn is_whole(&self) -> bool {
        self.handovers > 0 && self.stream_mb_s.iter().all(Option::is_some)
    }
}

/// What an end has found.
#[derive(Debug, Default)]
struct EndReport {
    batches: usize,
    exchanges: usize,
    stream: Option<StreamEnd>,
    moved: Option<ThreadMigration>,
}

/// Half of the time for round trips, a quarter for hand-overs with stamps, an eighth for a stream in each direction. Of
/// the first two a quarter does not count, in which a processor becomes as fast as it gets; of streams the first lap.
fn span<C: Clock>(clock: &C, length: Duration) -> Span {
    let ticks = |time: Duration| clock.ticks_in(Nanos::from(time));
    Span {
        warm_up: ticks(length / 4),
        length: ticks(length),
    }
}

impl ClockUser for PairRun<'_> {
    type Output = Result<PairOutcome, RunError>;

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        let PairRun {
            cpus,
            ways: [there, back],
            first_turn,
            duration,
            stamps,
            stop,
        } = self;
        let (over, watch) = (AtomicBool::new(false), PairWatch::new());
        let everywhere = pinning::current_affinity().map_err(RigError::Host)?;
        let PairStamps { batches, exchanges } = stamps;
        let spans = [2, 4, 8].map(|part| span(&clock, duration / part));
        let longest = PATIENCE + duration * PATIENT_TIMES;
        let patience = || {
            let length = clock.ticks_in(Nanos::from(longest));
            Patience::new(clock, length, &over, stop)
        };
        let ways = Ways {
            there,
            back,
            first_turn,
        };
        // An end that was moved off its CPU has ended.
        let pinned = |end: &WatchedEnd<'_>, cpu: usize| {
            let pinned = pinning::pin_current_thread(cpu);
            if end.is_released() {
                return Ok(false);
            }
            pinned.map(|()| true)
        };
        let moved = |end: &WatchedEnd<'_>, cpu: usize| {
            let moved = pinning::check_still_on(cpu).err();
            moved.filter(|_| !end.is_released())
        };
        // What is found before an end gives up counts.
        let asks: ThreadJob<'_, EndReport> = Box::new(|| {
            let (end, mut report) = (watch.enter(0), EndReport::default());
            if !pinned(&end, cpus[0])? {
                return Ok(report);
            }
            // Into the cache of this CPU.
            batches.fill(NO_TICKS);
            exchanges.fill(NO_EXCHANGE);
            let patience = patience();
            let mut stages = || -> Option<StreamEnd> {
                report.batches = loops::ask(&clock, ways, spans[0], &patience, batches)?;
                report.exchanges =
                    loops::ask_with_stamps(&clock, ways, spans[1], &patience, exchanges)?;
                let stage = Stage::STREAM_THERE;
                loops::write_stream(&clock, there, stage, spans[2], &patience).then_some(())?;
                loops::read_stream(&clock, back, Stage::STREAM_BACK, &patience)
            };
            let stream = stages();
            over.fetch_or(stream.is_none(), Ordering::Relaxed);
            report.stream = stream;
            report.moved = moved(&end, cpus[0]);
            Ok(report)
        });
        let answers: ThreadJob<'_, EndReport> = Box::new(|| {
            let (end, mut report) = (watch.enter(1), EndReport::default());
            if !pinned(&end, cpus[1])? {
                return Ok(report);
            }
            let patience = patience();
            let mut stages = || -> Option<()> {
                loops::answer(ways, &patience).then_some(())?;
                loops::answer_with_stamps(&clock, ways, &patience).then_some(())?;
                let stage = Stage::STREAM_THERE;
                report.stream = Some(loops::read_stream(&clock, there, stage, &patience)?);
                let stage = Stage::STREAM_BACK;
                loops::write_stream(&clock, back, stage, spans[2], &patience).then_some(())
            };
            let is_whole = stages().is_some();
            over.fetch_or(!is_whole, Ordering::Relaxed);
            report.moved = moved(&end, cpus[1]);
            Ok(report)
        });
        let jobs = vec![("answer".to_owned(), answers), ("ask".to_owned(), asks)];
        let wait = || {
            watch.wait(longest + LONGER, &over, stop, |thread| {
                // Where that fails, the next time may not.
                let _ = pinning::pin_thread_to(thread, &everywhere);
            });
        };
        let mut ended = watched_threads(jobs, &over, wait).map_err(ThreadsError::Host)?;
        if stop() {
            return Err(ThreadsError::Interrupted.into());
        }
        let never: Vec<usize> = (cpus.into_iter().zip(watch.released()))
            .filter_map(|(cpu, is_released)| is_released.then_some(cpu))
            .collect();
        if !never.is_empty() {
            return Ok(PairOutcome::NeverRan(never));
        }
        let (Some(asked), Some(answered)) = (ended.pop(), ended.pop()) else {
            unreachable!("each end reports");
        };
        if let Some(moved) = asked.moved.or(answered.moved) {
            let role = Role::new("end", "end");
            return Err(RigError::Moved { role, moved }.into());
        }
        // The stream there is read by the end that answers.
        let streams = [answered.stream, asked.stream];
        if streams.iter().flatten().any(|stream| stream.is_damaged) {
            return Err(RunError::Damaged(cpus));
        }
        let (batches, exchanges) = (&batches[..asked.batches], &exchanges[..asked.exchanges]);
        let found = figures(&clock, batches, exchanges, streams);
        Ok(found.map_or(PairOutcome::NeverTogether, PairOutcome::Measured))
    }
}

/// Nanoseconds in a tick.
fn nanos_per_tick<C: Clock>(clock: &C) -> f64 {
    const MANY: u64 = 1 << 40;
    let nanos = |ticks: u64| clock.to_nanos(Ticks(ticks)).0;
    (nanos(MANY) - nanos(0)) as f64 / MANY as f64
}

fn figures<C: Clock>(
    clock: &C,
    batches: &[Ticks],
    exchanges: &[Exchange],
    streams: [Option<StreamEnd>; 2],
) -> Option<PairFigures> {
    let tick = nanos_per_tick(clock);
    let of_batch = |batch: &Ticks| batch.0 as f64 * tick / BATCH as f64;
    let round_trips: Vec<f64> = batches.iter().map(of_batch).collect();
    let round_trip_ns = median_of(&round_trips)?;
    let way = |from: fn(&Exchange) -> u64, to: fn(&Exchange) -> u64| {
        let ticks = |it: &Exchange| to(it).wrapping_sub(from(it)).cast_signed() as f64;
        let all: Vec<f64> = exchanges.iter().map(|it| ticks(it) * tick).collect();
        median_of(&all)
    };
    let offset = Offset::of(exchanges);
    let rate = |stream: StreamEnd| {
        let nanos = stream.time.0 as f64 * tick;
        // Bytes a nanosecond are 10^9 a second.
        (nanos > 0.0).then(|| (stream.lines * LINE_BYTES) as f64 * 1e3 / nanos)
    };
    Some(PairFigures {
        round_trip_ns,
        least_round_trip_ns: round_trips.into_iter().fold(f64::INFINITY, f64::min),
        batches: batches.len(),
        one_way_ns: [
            way(|it| it.asked, |it| it.answered),
            way(|it| it.answered, |it| it.returned),
        ],
        handovers: exchanges.len(),
        offset_ns: offset.map(|it| [it.ticks, it.uncertainty_ticks].map(|ticks| ticks * tick)),
        stream_mb_s: streams.map(|stream| stream.and_then(rate)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines::NodeLines;
    use super::*;
    use crate::time::Posix;

    const BRIEF: Duration = Duration::from_millis(20);

    fn measured(
        cpus: [usize; 2],
        duration: Duration,
        stop: SignalCheck<'_>,
    ) -> Result<PairOutcome, RunError> {
        let lines = NodeLines::new(None).unwrap();
        let mut stamps = PairStamps::default();
        let run = PairRun {
            cpus,
            ways: [lines.way(false), lines.way(true)],
            first_turn: 7,
            duration,
            stamps: &mut stamps,
            stop,
        };
        run.with(Posix::MONOTONIC)
    }

    #[test]
    fn figures_follow_from_stamps() {
        let exchange = |asked: u64, there: u64, back: u64| Exchange {
            asked,
            answered: asked + 1000 + there,
            returned: asked + there + back,
        };
        // The second clock is ahead by 1000 ns.
        let exchanges = [
            exchange(0, 50, 70),
            exchange(500, 40, 60),
            exchange(900, 60, 90),
        ];
        let stream = StreamEnd {
            lines: 1000,
            time: Ticks(8000),
            is_damaged: false,
        };
        let batches = [20_000, 24_000, 90_000].map(Ticks);
        let found = figures(
            &Posix::MONOTONIC,
            &batches,
            &exchanges,
            [Some(stream), None],
        );
        let found = found.unwrap();
        assert_eq!((found.round_trip_ns, found.batches), (240.0, 3));
        assert_eq!(found.least_round_trip_ns, 200.0);
        assert_eq!(found.one_way_ns, [Some(1050.0), Some(-930.0)]);
        // 1000 ns are within it: the shortest round trip took 100 ns.
        assert_eq!(found.offset_ns, Some([990.0, 50.0]));
        assert_eq!(found.stream_mb_s, [Some(8000.0), None]);
        assert_eq!(figures(&Posix::MONOTONIC, &[], &[], [None; 2]), None);
    }

    fn cpus() -> Vec<usize> {
        pinning::current_affinity().unwrap().iter().collect()
    }

    #[test]
    fn one_cpu_for_both_ends_comes_to_an_end() {
        // The ends take turns by time slices of the scheduler, or never come to the end of a batch.
        let found = measured([cpus()[0]; 2], BRIEF, &|| false).unwrap();
        match found {
            PairOutcome::Measured(found) => assert!(found.batches > 0, "{found:?}"),
            PairOutcome::NeverTogether => {}
            PairOutcome::NeverRan(which) => assert_eq!(which[0], cpus()[0]),
        }
    }

    #[test]
    fn two_cpus_hand_lines_over() {
        let cpus = cpus();
        let [first, last] = [cpus[0], *cpus.last().unwrap()];
        // Where there is one only, each hand-over takes a time slice of the scheduler.
        let duration = match first == last {
            true => Duration::from_secs(10),
            false => BRIEF,
        };
        // Two that other work keeps busy may not run at the same time for all of it.
        let found = until_whole(|| measured([first, last], duration, &|| false).unwrap());
        assert!(found.round_trip_ns > 1.0 && found.batches > 0, "{found:?}");
        let [_, bound] = found.offset_ns.unwrap();
        assert!(bound > 0.0, "{found:?}");
        assert!(
            found.stream_mb_s.iter().flatten().all(|rate| *rate > 0.0),
            "{found:?}"
        );
    }

    /// The first figures that are whole.
    fn until_whole(measure: impl Fn() -> PairOutcome) -> PairFigures {
        let begun = std::time::Instant::now();
        loop {
            match measure() {
                PairOutcome::Measured(found) if found.is_whole() => return found,
                other => assert!(begun.elapsed() < Duration::from_secs(300), "{other:?}"),
            }
        }
    }

    #[test]
    fn a_signal_ends_it_and_a_cpu_that_does_not_exist_is_an_error() {
        let stopped = measured([cpus()[0]; 2], BRIEF, &|| true);
        assert!(
            matches!(stopped, Err(RunError::Threads(ThreadsError::Interrupted))),
            "{stopped:?}"
        );
        for cpus in [[cpus()[0], 1023], [1023, cpus()[0]]] {
            let absent = measured(cpus, BRIEF, &|| false);
            let error = absent.as_ref().unwrap_err().to_string();
            assert!(
                matches!(absent, Err(RunError::Threads(ThreadsError::Host(_)))),
                "{error}"
            );
            assert!(error.contains("CPU 1023"), "{error}");
        }
    }
}
