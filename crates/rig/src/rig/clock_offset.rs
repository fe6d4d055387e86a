//! How far the receiver's clock is ahead of the sender's: a latency is the difference of two readings on two CPUs.

use std::time::Duration;

use serde::Serialize;

use crate::rig::exchange::{ExchangeEnd, ExchangeLimit, between};
use crate::rig::in_threads::ThreadsError;
use crate::time::{Clock, Ticks};

/// The clock of one CPU against that of another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockOffset {
    /// How far it is ahead, in nanoseconds; negative where it is behind.
    pub ns: f64,
    /// The offset lies within this many nanoseconds on either side: half of the shortest round trip.
    pub bound_ns: f64,
}

/// A shortest round trip needs no more; milliseconds where both CPUs are free.
const ENOUGH: ExchangeLimit = ExchangeLimit {
    exchanges: 5_000,
    time: Duration::from_secs(1),
};

/// Over how many ticks the length of one is found.
const MANY_TICKS: u64 = 1 << 40;

/// Compares the clock on the receiver's CPU with that on the sender's; `None` where both are one CPU, or the two did
/// not run at the same time.
///
/// # Errors
/// When a thread cannot be started or placed.
pub fn measure_offset<C: Clock>(
    clock: &C,
    sender: usize,
    receiver: usize,
) -> Result<Option<ClockOffset>, ThreadsError> {
    if sender == receiver {
        return Ok(None);
    }
    let end = |cpu| ExchangeEnd {
        cpu: Some(cpu),
        read: || clock.now().0,
    };
    // A signal can wait for so long.
    let found = between(&end(sender), &end(receiver), ENOUGH, &|| false)?;
    let nanos = |ticks: u64| clock.to_nanos(Ticks(ticks)).0;
    let ns_per_tick = (nanos(MANY_TICKS) - nanos(0)) as f64 / MANY_TICKS as f64;
    Ok(found.map(|offset| ClockOffset {
        ns: offset.ticks * ns_per_tick,
        bound_ns: offset.uncertainty_ticks * ns_per_tick,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::pinning;
    use crate::time::{Nanos, Posix};

    /// A clock of which four ticks are a nanosecond.
    #[derive(Debug, Clone, Copy)]
    struct Fine(Posix);

    impl Clock for Fine {
        fn now(&self) -> Ticks {
            Ticks(self.0.now().0 * 4)
        }

        fn to_nanos(&self, ticks: Ticks) -> Nanos {
            Nanos(ticks.0 / 4)
        }
    }

    #[test]
    fn one_clock_on_two_cpus_is_ahead_by_nothing_within_the_bound() {
        let cpus: Vec<usize> = pinning::current_affinity().unwrap().iter().collect();
        let (first, last) = (cpus[0], *cpus.last().unwrap());
        let clock = Posix::MONOTONIC;
        assert_eq!(measure_offset(&clock, first, first).unwrap(), None);
        if first == last {
            return;
        }
        let offset = measure_offset(&clock, first, last).unwrap().unwrap();
        assert!(offset.bound_ns > 0.0, "{offset:?}");
        assert!(offset.ns.abs() <= offset.bound_ns, "{offset:?}");
        // In nanoseconds, whatever a tick is.
        let fine = measure_offset(&Fine(clock), first, last).unwrap().unwrap();
        assert!(fine.ns.abs() <= fine.bound_ns, "{fine:?}");
        assert!(fine.bound_ns < 1e9, "{fine:?}");
        assert!(measure_offset(&clock, first, 100_000).is_err());
    }
}
