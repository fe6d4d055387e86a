//! Time stamps exchanged between two threads, each pinned to its CPU: a cache line is handed to and fro.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::TrustError;
use crate::host::{HostError, pinning};
use crate::time::trust::offset::{Exchange, Offset, Offsets};

/// One end of the exchange.
#[derive(Debug, Clone, Copy)]
pub struct End<F> {
    /// Where its thread is pinned to; nowhere in tests.
    pub cpu: Option<usize>,
    /// Reads its counter.
    pub read: F,
}

/// When an exchange is enough.
#[derive(Debug, Clone, Copy)]
pub struct Enough {
    /// After so many.
    pub exchanges: u64,
    /// Or after so long.
    pub time: Duration,
}

impl Default for Enough {
    fn default() -> Self {
        Self {
            exchanges: 20_000,
            // Milliseconds where both CPUs are free; on a busy machine they seldom run at the same time.
            time: Duration::from_secs(5),
        }
    }
}

/// What is handed to and fro: nothing else shares the line, nor the one that the prefetcher fetches with it.
#[repr(align(128))]
#[derive(Default)]
struct Line {
    /// Odd: asked. Even: answered.
    number: AtomicU64,
    /// The counter of the one who answered.
    stamp: AtomicU64,
}

/// Says that it is over when its thread ends, however it ends: the other one must not wait for an end that is not there.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Spins between two looks at the clock and at the stop flag.
const SPINS: u32 = 256;

/// Exchanges stamps between two threads. `None` if the other end never answered.
///
/// # Errors
/// When a thread cannot be started or pinned, or `stop` says so.
pub fn between<A, B>(
    asking: &End<A>,
    answering: &End<B>,
    enough: Enough,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Offset>, TrustError>
where
    A: Fn() -> u64 + Sync,
    B: Fn() -> u64 + Sync,
{
    let line = Line::default();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = thread::Builder::new()
            .name("answer".to_owned())
            .spawn_scoped(scope, || {
                let _over = Over(&over);
                answer(answering, &line, &over)
            })
            .map_err(TrustError::Spawn)?;
        let one = thread::Builder::new()
            .name("ask".to_owned())
            .spawn_scoped(scope, || {
                let _over = Over(&over);
                ask(asking, &line, &over, enough, stop)
            });
        let one = one.map_err(|error| {
            over.store(true, Ordering::Relaxed);
            TrustError::Spawn(error)
        })?;
        let asked = join(one);
        join(other)?;
        let offset = asked?;
        if stop() {
            return Err(TrustError::Interrupted);
        }
        Ok(offset)
    })
}

/// What a thread came to; its panic goes on here.
pub(super) fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn pin<F>(end: &End<F>) -> Result<(), HostError> {
    end.cpu.map_or(Ok(()), pinning::pin_current_thread)
}

fn ask<A: Fn() -> u64>(
    end: &End<A>,
    line: &Line,
    over: &AtomicBool,
    enough: Enough,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Offset>, HostError> {
    pin(end)?;
    let deadline = Instant::now() + enough.time;
    let mut offsets = Offsets::default();
    let mut question = 1;
    'exchanges: while offsets.exchanges() < enough.exchanges {
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
        offsets.push(Exchange {
            asked,
            answered: line.stamp.load(Ordering::Relaxed),
            returned,
        });
        question += 2;
        if question % u64::from(SPINS) == 1 && Instant::now() > deadline {
            break;
        }
    }
    Ok(offsets.estimate())
}

fn answer<B: Fn() -> u64>(end: &End<B>, line: &Line, over: &AtomicBool) -> Result<(), HostError> {
    pin(end)?;
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
    use super::*;
    use crate::time::{Clock, Monotonic};

    fn now() -> u64 {
        Monotonic::default().now().0
    }

    fn never() -> bool {
        false
    }

    fn here<F: Fn() -> u64>(read: F) -> End<F> {
        End { cpu: None, read }
    }

    const SHORT: Enough = Enough {
        exchanges: 2_000,
        // Milliseconds, where two CPUs are free.
        time: Duration::from_secs(20),
    };

    #[test]
    fn a_counter_that_is_ahead_is_found_between_real_threads() {
        for ahead in [0i64, 12_345_678, -50_000_000] {
            let other = here(move || now().checked_add_signed(ahead).unwrap());
            let found = between(&here(now), &other, SHORT, &never).unwrap().unwrap();
            assert!(
                (found.ticks - ahead as f64).abs() <= found.uncertainty_ticks,
                "{ahead}: {found:?}"
            );
            assert!(!found.changes(), "{found:?}");
            assert!(found.exchanges > 10, "{found:?}");
        }
    }

    #[test]
    fn a_counter_of_another_rate_contradicts_itself() {
        let start = now();
        let twice_as_fast = here(move || start + 2 * (now() - start));
        let found = between(&here(now), &twice_as_fast, SHORT, &never)
            .unwrap()
            .unwrap();
        assert!(found.changes(), "{found:?}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_and_no_hang() {
        let here = here(now);
        let nowhere = End {
            cpu: Some(1023),
            read: now,
        };
        let begun = Instant::now();
        let long = Enough {
            exchanges: u64::MAX,
            time: Duration::from_secs(60),
        };
        for done in [
            between(&here, &nowhere, long, &never),
            between(&nowhere, &here, long, &never),
        ] {
            assert!(matches!(done, Err(TrustError::Host(_))), "{done:?}");
        }
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

    #[test]
    fn the_stop_flag_and_the_time_end_it() {
        let end = here(now);
        let begun = Instant::now();
        let endless = |time| Enough {
            exchanges: u64::MAX,
            time,
        };
        let stopped = between(&end, &end, endless(Duration::from_secs(60)), &|| true);
        assert!(matches!(stopped, Err(TrustError::Interrupted)));
        between(&end, &end, endless(Duration::from_millis(50)), &never).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
