//! How far the counter of one CPU is ahead of another's, from time stamps exchanged between two threads, each pinned to
//! its CPU: a cache line is handed to and fro.
//!
//! One reads its counter and asks, the other reads its own and answers, the first reads again. Wherever between the two
//! readings of the first the answer was stamped, the offset is known to half the round trip. The shortest round trip
//! gives the estimate. All exchanges together must allow one offset; where they do not, it changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::in_threads::{SignalCheck, ThreadJob, ThreadsError, in_threads};
use crate::host::{HostError, pinning};

/// The stamps of one exchange, in counts: of the asking CPU before it asked and after the answer had come, and of the
/// other before it answered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exchange {
    pub asked: u64,
    pub answered: u64,
    pub returned: u64,
}

/// The counter of a CPU against that of the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Offset {
    /// How far it is ahead, in counts; negative where it is behind.
    pub ticks: f64,
    /// The offset lies within this many counts on either side: half of the shortest round trip.
    pub uncertainty_ticks: f64,
    pub round_trip_ticks: u64,
    pub exchanges: u64,
    /// By how many counts the exchanges contradict each other: 0 if there is an offset that all of them allow.
    pub contradiction_ticks: u64,
    /// Exchanges that came back before they had been asked.
    pub backward_steps: u64,
}

impl Offset {
    /// What exchanges come to; `None` if none of them came back after it had been asked.
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let usable = || exchanges.iter().filter(|it| it.returned >= it.asked);
        let ahead = |it: &Exchange, of: u64| i128::from(it.answered) - i128::from(of);
        let best = usable().min_by_key(|it| it.returned - it.asked)?;
        let at_least = usable().map(|it| ahead(it, it.returned)).max()?;
        let at_most = usable().map(|it| ahead(it, it.asked)).min()?;
        let round_trip = best.returned - best.asked;
        Some(Offset {
            // Twice the offset is a whole number.
            ticks: (ahead(best, best.asked) + ahead(best, best.returned)) as f64 / 2.0,
            uncertainty_ticks: round_trip as f64 / 2.0,
            round_trip_ticks: round_trip,
            exchanges: exchanges.len() as u64,
            contradiction_ticks: u64::try_from((at_least - at_most).max(0)).unwrap_or(u64::MAX),
            backward_steps: (exchanges.len() - usable().count()) as u64,
        })
    }

    /// The part of the offset that is proven: what is left of it at the nearer end of the uncertainty.
    pub fn proven_ticks(&self) -> f64 {
        (self.ticks.abs() - self.uncertainty_ticks).max(0.0)
    }

    /// Whether the offset changed while it was measured, by more than the shortest round trip.
    pub fn changes(&self) -> bool {
        self.contradiction_ticks > self.round_trip_ticks
    }
}

#[cfg(any(test, feature = "testing"))]
impl Offset {
    pub fn made_up(ticks: f64, round_trip: u64) -> Self {
        Offset {
            ticks,
            uncertainty_ticks: round_trip as f64 / 2.0,
            round_trip_ticks: round_trip,
            exchanges: 20_000,
            contradiction_ticks: 0,
            backward_steps: 0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ExchangeEnd<F> {
    /// Where its thread is pinned to; nowhere in tests.
    pub cpu: Option<usize>,
    pub read: F,
}

/// When an exchange is enough.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeLimit {
    pub exchanges: usize,
    pub time: Duration,
}

/// Exchanges between two CPUs, and how long they may take.
pub const ENOUGH: ExchangeLimit = ExchangeLimit {
    exchanges: 20_000,
    // Milliseconds where both CPUs are free; on a busy machine they seldom run at the same time.
    time: Duration::from_secs(5),
};

/// What is handed to and fro: nothing else shares the line, nor the one that the prefetcher fetches with it.
#[repr(align(128))]
#[derive(Default)]
struct ExchangeLine {
    /// Odd: asked. Even: answered.
    number: AtomicU64,
    /// The counter of the one who answered.
    stamp: AtomicU64,
}

/// Spins between two looks at the clock and at the stop flag.
const SPINS: u32 = 256;

/// Exchanges stamps between two threads. `None` if the other end never answered.
pub fn between<A, B>(
    asking: &ExchangeEnd<A>,
    answering: &ExchangeEnd<B>,
    enough: ExchangeLimit,
    stop: SignalCheck<'_>,
) -> Result<Option<Offset>, ThreadsError>
where
    A: Fn() -> u64 + Sync,
    B: Fn() -> u64 + Sync,
{
    let (line, over) = (ExchangeLine::default(), AtomicBool::new(false));
    let answers: ThreadJob<'_, _> =
        Box::new(|| answer(answering, &line, &over).map(|()| Vec::new()));
    let asks: ThreadJob<'_, _> = Box::new(|| ask(asking, &line, &over, enough, stop));
    let jobs = vec![("answer".to_owned(), answers), ("ask".to_owned(), asks)];
    let exchanges = in_threads(jobs, &over, stop)?.concat();
    Ok(Offset::of(&exchanges))
}

fn ask<A: Fn() -> u64>(
    end: &ExchangeEnd<A>,
    line: &ExchangeLine,
    over: &AtomicBool,
    enough: ExchangeLimit,
    stop: SignalCheck<'_>,
) -> Result<Vec<Exchange>, HostError> {
    end.cpu.map_or(Ok(()), pinning::pin_current_thread)?;
    let deadline = Instant::now() + enough.time;
    let mut exchanges = Vec::with_capacity(enough.exchanges.min(1 << 16));
    let mut question = 1;
    'exchanges: while exchanges.len() < enough.exchanges {
        let asked = (end.read)();
        line.number.store(question, Ordering::Release);
        let mut spins = 0;
        // Acquire: the stamp behind the number is the one that belongs to it.
        while line.number.load(Ordering::Acquire) != question + 1 {
            spins += 1;
            if spins % SPINS == 0
                && (over.load(Ordering::Relaxed) || stop() || Instant::now() > deadline)
            {
                break 'exchanges;
            }
        }
        let returned = (end.read)();
        exchanges.push(Exchange {
            asked,
            answered: line.stamp.load(Ordering::Relaxed),
            returned,
        });
        question += 2;
        if question % u64::from(SPINS) == 1 && Instant::now() > deadline {
            break;
        }
    }
    over.store(true, Ordering::Relaxed);
    Ok(exchanges)
}

fn answer<B: Fn() -> u64>(
    end: &ExchangeEnd<B>,
    line: &ExchangeLine,
    over: &AtomicBool,
) -> Result<(), HostError> {
    end.cpu.map_or(Ok(()), pinning::pin_current_thread)?;
    let mut question = 1;
    loop {
        let mut spins = 0;
        while line.number.load(Ordering::Acquire) != question {
            spins += 1;
            if spins % SPINS == 0 && over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        line.stamp.store((end.read)(), Ordering::Relaxed);
        line.number.store(question + 1, Ordering::Release);
        question += 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::{Clock, Posix};

    /// The exchange of two CPUs, the second `ahead` by some counts, whose messages take `to` and `back`.
    fn exchange(at: u64, ahead: i64, to: u64, back: u64) -> Exchange {
        Exchange {
            asked: at,
            answered: (at + to).checked_add_signed(ahead).unwrap(),
            returned: at + to + back,
        }
    }

    #[test]
    fn the_shortest_round_trip_gives_the_offset() {
        let cases: [(&[Exchange], f64, u64, f64); 3] = [
            (
                &[
                    exchange(1_000_000, 12_345, 900, 100),
                    exchange(2_000_000, 12_345, 50, 50),
                    exchange(3_000_000, 12_345, 70, 300),
                ],
                12_345.0,
                100,
                12_295.0,
            ),
            (&[exchange(1_000_000, -7, 20, 21)], -7.5, 41, 0.0),
            // Large counters lose no count.
            (&[exchange(u64::MAX - 1000, 1, 10, 10)], 1.0, 20, 0.0),
        ];
        for (exchanges, ticks, round_trip, proven) in cases {
            let found = Offset::of(exchanges).unwrap();
            assert_eq!((found.ticks, found.round_trip_ticks), (ticks, round_trip));
            assert_eq!(found.uncertainty_ticks, round_trip as f64 / 2.0);
            assert_eq!(found.proven_ticks(), proven);
            assert_eq!((found.contradiction_ticks, found.changes()), (0, false));
        }
    }

    #[test]
    fn an_offset_that_moves_contradicts_itself() {
        let drifting = (0..100).map(|at| exchange(at * 10_000, 500 + 3 * at as i64, 50, 50));
        let found = Offset::of(&drifting.collect::<Vec<_>>()).unwrap();
        // From 500 to 797, less the round trip.
        assert_eq!(found.contradiction_ticks, 297 - 100);
        assert!(found.changes());
    }

    #[test]
    fn a_counter_that_went_back_is_counted_and_not_used() {
        let backwards = Exchange {
            returned: 900,
            ..exchange(1000, 0, 0, 0)
        };
        assert_eq!(Offset::of(&[backwards]), None);
        let found = Offset::of(&[backwards, exchange(5000, 0, 10, 10)]).unwrap();
        assert_eq!((found.backward_steps, found.exchanges), (1, 2));
        assert_eq!(found.round_trip_ticks, 20);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_always_within_the_uncertainty(
            ahead in -1_000_000_000i64..1_000_000_000,
            ways in proptest::collection::vec((0u64..100_000, 0u64..100_000), 1..50),
        ) {
            let exchanges = ways.iter().enumerate().map(|(number, &(to, back))| {
                exchange(10_000_000_000 + number as u64 * 1_000_000, ahead, to, back)
            });
            let found = Offset::of(&exchanges.collect::<Vec<_>>()).unwrap();
            prop_assert!((found.ticks - ahead as f64).abs() <= found.uncertainty_ticks);
            prop_assert_eq!(found.contradiction_ticks, 0);
            prop_assert!(found.proven_ticks() <= ahead.abs() as f64);
        }
    }

    fn now() -> u64 {
        Posix::MONOTONIC.now().0
    }

    fn never() -> bool {
        false
    }

    fn here<F: Fn() -> u64>(read: F) -> ExchangeEnd<F> {
        ExchangeEnd { cpu: None, read }
    }

    const SHORT: ExchangeLimit = ExchangeLimit {
        exchanges: 2_000,
        // Milliseconds, where two CPUs are free.
        time: Duration::from_secs(20),
    };

    const LONG: ExchangeLimit = ExchangeLimit {
        exchanges: usize::MAX,
        time: Duration::from_secs(60),
    };

    #[test]
    fn counters_that_are_ahead_or_faster_are_found_between_real_threads() {
        for ahead in [0i64, 12_345_678, -50_000_000] {
            let other = here(move || now().checked_add_signed(ahead).unwrap());
            let found = between(&here(now), &other, SHORT, &never).unwrap().unwrap();
            let is_close = (found.ticks - ahead as f64).abs() <= found.uncertainty_ticks;
            assert!(is_close, "{ahead}: {found:?}");
            assert!(!found.changes() && found.exchanges > 10, "{found:?}");
        }
        let start = now();
        let twice_as_fast = here(move || start + 2 * (now() - start));
        let found = between(&here(now), &twice_as_fast, SHORT, &never).unwrap();
        assert!(found.unwrap().changes(), "{found:?}");
    }

    #[test]
    fn nothing_hangs_on_a_missing_cpu_the_stop_flag_or_the_time() {
        let begun = Instant::now();
        let here = here(now);
        let nowhere = ExchangeEnd {
            cpu: Some(1023),
            read: now,
        };
        for (one, other) in [(here, nowhere), (nowhere, here)] {
            let done = between(&one, &other, LONG, &never);
            assert!(matches!(done, Err(ThreadsError::Host(_))), "{done:?}");
        }
        let stopped = between(&here, &here, LONG, &|| true);
        assert!(matches!(stopped, Err(ThreadsError::Interrupted)));
        let brief = ExchangeLimit {
            time: Duration::from_millis(50),
            ..LONG
        };
        between(&here, &here, brief, &never).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_panic_on_one_end_ends_the_other() {
        let good = here(now);
        let bad = here(|| -> u64 { panic!("on purpose") });
        let ended = std::panic::catch_unwind(|| between(&bad, &good, SHORT, &never));
        assert!(ended.is_err());
        let ended = std::panic::catch_unwind(|| between(&good, &bad, SHORT, &never));
        assert!(ended.is_err());
    }
}
