//! The memory of a run: whether there is as much, in the pages asked for, and what of it can be locked.
//!
//! The stamps are in memory of [`crate::buffer`], which is locked or not there. The queues are made by themselves or by
//! crates, anywhere in the process: their memory is touched when they are made, and locked with all else that the
//! process has, if the limit permits that.

use super::config::{Config, Measure};
use super::floor;
use super::notes::Notes;
use super::plan::Point;
use super::task::{RECEIVER, SENDER};
use crate::buffer::{HUGE_PAGE, HugePagePolicy};
use crate::host::memory_lock::{self, MemoryLock};
use crate::host::{HostError, HugePages};
use crate::rig::error::RigError;
use crate::rig::memory::{Allowance, Need, TooMuch};

/// Bytes that an element takes while a run is analysed: four samples, and what was sent and received.
const BYTES_WITH_TIMES: u64 = 4 * 8 + 16;
/// Without times only the latter.
const BYTES_WITHOUT: u64 = 16;
/// Beside that, where the elements are kept.
const BYTES_PER_ROW: u64 = 88;
/// What a thread adds to the address space: its stack, and what the C library sets aside for its allocations.
const BYTES_PER_THREAD: u64 = (2 << 20) + (128 << 20);
/// Both ends and the analysis.
const THREADS: u64 = 3;

/// What the largest run of a sweep takes, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// Stamps of the sender and of the receiver, which are locked in any case.
    stamps: [u64; 2],
    queue: u64,
    analysis: u64,
    rows: u64,
}

impl Needs {
    /// With a queue of so many elements of so many bytes.
    pub fn of(config: &Config, capacity: usize, payload: usize) -> Self {
        let per_element = match config.measure {
            Measure::Time => BYTES_WITH_TIMES,
            Measure::Throughput | Measure::Counters => BYTES_WITHOUT,
        };
        let rows = if config.keep_elements {
            config.count * BYTES_PER_ROW
        } else {
            0
        };
        let elements = match config.measure {
            // Those of the floor, which is measured before each run.
            Measure::Time => config.elements().max(floor::WARMUP + floor::HANDOFFS),
            Measure::Throughput | Measure::Counters => config.elements(),
        };
        let stamps = [SENDER, RECEIVER].map(|role| {
            let room = Notes::room(role, config.measure, elements as usize);
            Notes::length(config.measure, room, config.huge_pages).0
        });
        Needs {
            stamps,
            // Some queues have a cache line a slot.
            queue: capacity as u64 * (payload as u64 + 64),
            analysis: elements * per_element,
            rows,
        }
    }

    /// With the largest queue of these.
    pub fn of_points(config: &Config, points: &[Point]) -> Self {
        let capacity = points.iter().map(|point| point.capacity).max().unwrap_or(0);
        let payload = points.iter().map(|point| point.payload).max().unwrap_or(0);
        Self::of(config, capacity, payload)
    }

    fn stamps(&self) -> u64 {
        self.stamps.iter().sum()
    }

    fn listed(&self) -> [Need; 4] {
        [
            ("stamps", self.stamps()),
            ("the queue", self.queue),
            ("the analysis", self.analysis),
            ("elements to be written", self.rows),
        ]
        .map(|(what, bytes)| Need { what, bytes })
    }

    fn total(&self) -> u64 {
        self.listed().iter().map(|need| need.bytes).sum()
    }

    /// Checks that the huge pages are there, if they are required.
    pub(super) fn require_huge_pages(
        &self,
        policy: HugePagePolicy,
        pool: Option<HugePages>,
    ) -> Result<(), RigError> {
        let needed = self.stamps() / HUGE_PAGE as u64;
        let free = pool.map_or(0, |pool| pool.available());
        if policy != HugePagePolicy::Required
            || needed <= free + pool.map_or(0, |pool| pool.overcommit)
        {
            return Ok(());
        }
        Err(RigError::TooFewHugePages {
            what: "the stamps need".to_owned(),
            needed,
            free,
            pool: pool.map_or(0, |pool| pool.total) + needed - free,
        })
    }

    /// Checks that the stamps can be locked; returns whether the queue can be as well, with all of the process.
    pub(super) fn require_lock(&self, limit: &MemoryLock) -> Result<bool, HostError> {
        limit.require(self.stamps())?;
        let already = memory_lock::address_space_size().unwrap_or(u64::MAX / 2);
        let later = self.total() + THREADS * BYTES_PER_THREAD + 2 * HUGE_PAGE as u64;
        Ok(limit.permits(already + later))
    }
}

/// Checks that this machine, and the control group of this process, have memory for elements and queues of this size, before
/// a queue is made.
///
/// # Errors
/// When they take more than is allowed, with the largest `--count` that does not.
pub fn check(config: &Config, capacity: usize, payload: usize) -> Result<(), TooMuch> {
    Allowance::of_this_process().map_or(Ok(()), |allowed| {
        check_within(&allowed, config, capacity, payload)
    })
}

fn check_within(
    allowed: &Allowance,
    config: &Config,
    capacity: usize,
    payload: usize,
) -> Result<(), TooMuch> {
    let needs = |count| {
        let config = Config {
            count,
            ..config.clone()
        };
        Needs::of(&config, capacity, payload)
    };
    let fits = |count| needs(count).total() <= allowed.bytes;
    // The largest that fits lies between one that does and one that does not.
    let (mut low, mut high) = (0, config.count);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        *(if fits(middle) { &mut low } else { &mut high }) = middle;
    }
    let without = if config.keep_elements {
        ", or leave out --elements"
    } else {
        ""
    };
    let advice = match low {
        0 => format!("use a smaller --capacity or --warmup{without}"),
        count => format!("use --count {count} at most{without}"),
    };
    let options = format!(
        "--count {} with --warmup {} and --capacity {capacity}",
        config.count, config.warmup
    );
    allowed.require(&needs(config.count).listed(), &options, &advice)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::host::memory_lock::Limit;
    use crate::time::ClockKind;

    fn config(measure: Measure) -> Config {
        Config {
            count: 100_000,
            warmup: 10_000,
            measure,
            measure_failed: false,
            clock: ClockKind::Monotonic,
            timeout: Duration::from_secs(5),
            huge_pages: HugePagePolicy::Try,
            keep_elements: false,
        }
    }

    fn limit(bytes: u64) -> MemoryLock {
        MemoryLock {
            soft: Limit::Bytes(bytes),
            hard: Limit::Bytes(bytes),
            above_limit: false,
        }
    }

    #[test]
    fn the_usual_limit_is_enough_for_the_defaults_and_what_is_locked_is_what_is_demanded() {
        for (measure, huge_pages, expected) in [
            (Measure::Time, HugePagePolicy::Try, 8 << 20),
            // 110 000 times 24 bytes at each end, in pages of 4096.
            (Measure::Time, HugePagePolicy::Off, 2 * 645 * 4096),
            // 110 000 times 8 bytes at the receiver, and nothing but the least that there is at the sender.
            (Measure::Throughput, HugePagePolicy::Off, (1 + 215) * 4096),
            (Measure::Counters, HugePagePolicy::Try, 4 << 20),
        ] {
            let config = Config {
                huge_pages,
                ..config(measure)
            };
            let needs = Needs::of(&config, 1024, 8);
            assert!(!needs.require_lock(&limit(expected)).unwrap());
            let error = needs.require_lock(&limit(expected - 1)).unwrap_err();
            assert!(error.to_string().contains("memlock limit"), "{error}");
        }
        let needs = Needs::of(&config(Measure::Time), 1024, 8);
        assert!(needs.require_lock(&limit(u64::MAX)).unwrap());
    }

    #[test]
    fn required_huge_pages_are_counted_before_a_run() {
        let needs = Needs::of(&config(Measure::Time), 1024, 8);
        let pool = |total, free, overcommit| {
            Some(HugePages {
                total,
                free,
                reserved: 0,
                overcommit,
            })
        };
        let required = |pool| needs.require_huge_pages(HugePagePolicy::Required, pool);
        required(pool(4, 4, 0)).unwrap();
        required(pool(2, 2, 2)).unwrap();
        let error = required(pool(7, 3, 0)).unwrap_err().to_string();
        assert!(
            error.contains("4 huge pages") && error.contains("vm.nr_hugepages=8"),
            "{error}"
        );
        assert!(required(None).is_err());
        needs.require_huge_pages(HugePagePolicy::Try, None).unwrap();
    }

    #[test]
    fn what_is_too_large_is_told_with_the_largest_that_fits() {
        let mut config = config(Measure::Time);
        config.count = 1 << 30;
        let allowed = Allowance {
            bytes: 1 << 30,
            group: None,
        };
        let error = check_within(&allowed, &config, 1024, 8).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("1 GiB") && text.contains("half of this machine"),
            "{text}"
        );
        let words: Vec<&str> = text.split_whitespace().collect();
        let place = words.iter().rposition(|word| *word == "--count").unwrap();
        config.count = words[place + 1].parse().unwrap();
        check_within(&allowed, &config, 1024, 8).unwrap();
        config.count += 1 << 17;
        assert!(check_within(&allowed, &config, 1024, 8).is_err());

        let text = check_within(&allowed, &config, 1 << 24, 256).unwrap_err();
        assert!(
            text.to_string().contains("--capacity or --warmup"),
            "{text}"
        );
    }
}
