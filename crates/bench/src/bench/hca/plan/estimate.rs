//! How long a point takes, before it is measured.

use std::time::Duration;

use super::Point;
use crate::bench::hca::settings::warmup::Warmup;

/// What a message takes beside its pauses; at a rate that is part of the time between two posts.
const PER_MESSAGE: Duration = Duration::from_micros(10);

impl Point {
    /// How long its messages take in a round, about: whole bursts, warm-up included.
    pub fn time_of_bursts(&self, repeat: u32, warmup: Warmup) -> Duration {
        let burst = self.time_of_burst();
        let before = match warmup {
            Warmup::Messages(messages) => messages.div_ceil(self.burst),
            Warmup::Time(time) => {
                let bursts = time.as_nanos().div_ceil(burst.as_nanos());
                u32::try_from(bursts).unwrap_or(u32::MAX).max(1)
            }
        };
        burst.saturating_mul(repeat.saturating_add(before))
    }

    /// There is no pause behind the last message. Both ends pause at once.
    fn time_of_burst(&self) -> Duration {
        let receiver = Duration::from_nanos(self.receiver_pause_ns.0);
        let pauses = self.mean_pause().max(receiver) * (self.burst - 1);
        match self.rate {
            Some(_) => pauses + PER_MESSAGE,
            None => pauses + PER_MESSAGE * self.burst,
        }
    }
}

#[cfg(all(test, feature = "rdma"))]
mod tests {
    use super::*;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::plan::{Arrivals, Plan, Rate};
    use crate::time::Nanos;

    fn point(burst: u32, rate: Option<u32>, pause: Duration) -> Point {
        let mut point = Plan::new(&single()).points[0];
        point.burst = burst;
        point.pause_ns = Nanos::from(pause);
        point.rate = rate.map(|per_second| Rate {
            per_second,
            arrivals: Arrivals::Constant,
        });
        point
    }

    /// The bursts and pauses that the sender's loop makes, one after the other.
    fn by_loop(point: &Point, repeat: u32, warmup: Warmup) -> Duration {
        let mut time = Duration::ZERO;
        let mut burst = || {
            for message in 1..=point.burst {
                time += if point.rate.is_none() || message == point.burst {
                    PER_MESSAGE
                } else {
                    Duration::ZERO
                };
                if message < point.burst {
                    time += point.mean_pause();
                }
            }
            time
        };
        let (mut messages, mut since) = (0, Duration::ZERO);
        while warmup.goes_on(messages, since) {
            since = burst();
            messages += u64::from(point.burst);
        }
        (0..repeat).for_each(|_| {
            burst();
        });
        time
    }

    #[test]
    fn it_is_that_of_the_loop_warm_up_included() {
        let ms = Duration::from_millis;
        let points = [
            point(1, None, ms(10)),
            point(1000, None, Duration::ZERO),
            point(100, None, ms(10)),
            point(100, Some(10), Duration::ZERO),
            point(1000, Some(10_000), Duration::ZERO),
            point(2, Some(1), Duration::ZERO),
        ];
        let warmups = [
            Warmup::Messages(0),
            Warmup::Messages(100),
            Warmup::Time(ms(100)),
            Warmup::Time(ms(1500)),
        ];
        for point in points {
            for warmup in warmups {
                for repeat in [1, 10] {
                    let found = point.time_of_bursts(repeat, warmup);
                    assert_eq!(
                        found,
                        by_loop(&point, repeat, warmup),
                        "{point}, {warmup:?}"
                    );
                }
            }
        }
        // Not both pauses: who pauses longer takes the time.
        let mut slow = point(100, None, ms(10));
        slow.receiver_pause_ns = Nanos::from(ms(20));
        let found = slow.time_of_bursts(1, Warmup::Messages(0));
        assert_eq!(found, 99 * ms(20) + 100 * PER_MESSAGE);
    }
}
