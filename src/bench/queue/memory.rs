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

/// What the largest run of a sweep takes: the stamps, which are locked in any case, and all else.
#[derive(Debug, Clone)]
pub struct Needs([Need; 4]);

impl Needs {
    /// With a queue of so many elements of so many bytes.
    pub fn of(config: &Config, capacity: usize, payload: usize) -> Self {
        let (elements, per_element) = match config.measure {
            // Those of the floor, which is measured before each run, may be more.
            Measure::Time => (
                config.elements().max(floor::WARMUP + floor::HANDOFFS),
                BYTES_WITH_TIMES,
            ),
            Measure::Throughput | Measure::Counters => (config.elements(), BYTES_WITHOUT),
        };
        let stamps = [SENDER, RECEIVER].map(|role| {
            let room = Notes::room(role, config.measure, elements as usize);
            Notes::length(config.measure, room, config.huge_pages).0
        });
        let needs = [
            ("stamps", stamps.iter().sum()),
            // Some queues have a cache line a slot.
            ("the queue", capacity as u64 * (payload as u64 + 64)),
            ("the analysis", elements * per_element),
            (
                "elements to be written",
                config.kept_elements() * BYTES_PER_ROW,
            ),
        ];
        Needs(needs.map(|(what, bytes)| Need { what, bytes }))
    }

    /// With the largest queue of these.
    pub fn of_points(config: &Config, points: &[Point]) -> Self {
        let capacity = points.iter().map(|point| point.capacity).max().unwrap_or(0);
        let payload = points.iter().map(|point| point.payload).max().unwrap_or(0);
        Self::of(config, capacity, payload)
    }

    fn stamps(&self) -> u64 {
        self.0[0].bytes
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|need| need.bytes).sum()
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

    /// Checks that the stamps can be locked; returns whether the queue can be as well, with all of the process, to which
    /// so many bytes belong `beside` it.
    pub(super) fn require_lock(&self, limit: &MemoryLock, beside: u64) -> Result<bool, HostError> {
        limit.require(self.stamps())?;
        let already = memory_lock::address_space_size().unwrap_or(u64::MAX / 2);
        let later = self.total() + beside + THREADS * BYTES_PER_THREAD + 2 * HUGE_PAGE as u64;
        Ok(limit.permits(already + later))
    }
}

/// Checks that this machine, and the control group of this process, have memory for elements and queues of this size,
/// before a queue is made.
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
    allowed.require(&needs(config.count).0, &options, &advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::queue::result::made_up;
    use crate::host::memory_lock::Limit;
    use crate::refused::refused;

    fn config(measure: Measure) -> Config {
        Config {
            measure,
            ..made_up::config()
        }
    }

    fn limit(bytes: u64) -> MemoryLock {
        MemoryLock {
            soft: Limit(bytes),
            hard: Limit(bytes),
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
            assert!(!needs.require_lock(&limit(expected), 0).unwrap());
            refused(
                needs.require_lock(&limit(expected - 1), 0),
                &["memlock limit"],
            );
        }
        let needs = Needs::of(&config(Measure::Time), 1024, 8);
        assert!(needs.require_lock(&limit(u64::MAX), 1 << 30).unwrap());
        // What the process has already is less than that.
        assert!(needs.require_lock(&limit(1 << 50), 0).unwrap());
        assert!(!needs.require_lock(&limit(1 << 50), 1 << 50).unwrap());
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
        let told = ["4 huge pages", "vm.nr_hugepages=8"];
        refused(required(pool(7, 3, 0)), &told);
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
        let checked = check_within(&allowed, &config, 1024, 8);
        refused(checked.clone(), &["1 GiB", "half of this machine"]);
        let text = checked.unwrap_err().to_string();
        let words: Vec<&str> = text.split_whitespace().collect();
        let place = words.iter().rposition(|word| *word == "--count").unwrap();
        config.count = words[place + 1].parse().unwrap();
        check_within(&allowed, &config, 1024, 8).unwrap();
        config.count += 1 << 17;
        assert!(check_within(&allowed, &config, 1024, 8).is_err());

        let checked = check_within(&allowed, &config, 1 << 24, 256);
        refused(checked, &["--capacity or --warmup"]);
    }
}
