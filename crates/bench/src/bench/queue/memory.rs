//! The memory of a run: whether there is as much, in the pages asked for, and what of it can be locked.
//!
//! The stamps are in memory of [`crate::buffer`], which is locked or not there. The queues are made in such memory, too,
//! if the limit permits to lock all that the process has, and else anywhere in the process, where it is touched only.

use std::time::Duration;

use super::config::{Config, MOST_ELEMENTS, RoundLength};
use super::floor;
use super::measurer::Record;
use super::notes::Notes;
use super::roles::{RECEIVER, SENDER};
use crate::buffer::{HUGE_PAGE, HugePagePolicy};
use crate::host::memory_lock::{self, MemoryLock};
use crate::host::{HostError, HugePages};
use crate::queues::arena::Arena;
use crate::rig::error::RigError;
use crate::rig::memory::{Allowance, MemoryLimitError, MemoryNeed};
use crate::rig::role::Role;

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

/// What a queue takes at most: some have a cache line a slot, and room for twice the elements; a round trip takes two.
/// Beside that some have room for all elements for each sender, and blocks that are begun.
pub fn queue_bytes(capacity: usize, payload: usize, senders: usize) -> u64 {
    let of_senders = senders as u64 * (capacity as u64 + BEGUN);
    (4 * capacity as u64 + of_senders) * (payload as u64 + 64)
}

/// Elements of the blocks that a sender has begun, or that are not yet empty.
const BEGUN: u64 = 128;

/// What the largest run of a sweep takes: the stamps, which are locked in any case, and all else.
#[derive(Debug, Clone)]
pub struct Needs([MemoryNeed; 4]);

impl Needs {
    /// With so many elements in a round, through a queue for so many elements of so many bytes.
    pub fn of(config: &Config, count: u64, (capacity, payload): (usize, usize)) -> Self {
        let (elements, per_element) = match config.times_each() {
            // Those of the floor, which is measured before each run, may be more.
            true => (count.max(floor::HANDOFFS), BYTES_WITH_TIMES),
            false => (count, BYTES_WITHOUT),
        };
        let room = |role| Notes::room(role, config, elements as usize);
        let rooms = [SENDER, RECEIVER].map(|role| (role, room(role)));
        let queue = ("the queue", queue_bytes(capacity, payload, 1));
        Needs::new(config, &rooms, queue, (elements, per_element), count)
    }

    /// The same of several threads, each with room for what it notes, and of queues of so many bytes.
    pub(super) fn of_many(config: &Config, rooms: &[(Role, usize)], queues: u64) -> Self {
        let taken = rooms.iter().filter(|(role, _)| *role == RECEIVER);
        let taken: usize = taken.map(|(_, room)| room).sum();
        // What was taken is put beside what was sent.
        let per_element = match config.measure.has_times() {
            true => BYTES_WITH_TIMES + 2 * size_of::<Record>() as u64,
            false => BYTES_WITHOUT,
        };
        let analysis = (taken as u64, per_element);
        Needs::new(config, rooms, ("the queues", queues), analysis, 0)
    }

    fn new(
        config: &Config,
        rooms: &[(Role, usize)],
        (queues, bytes): (&'static str, u64),
        (elements, per_element): (u64, u64),
        written: u64,
    ) -> Self {
        let stamps =
            |&(role, room): &(Role, usize)| Notes::length(role, config, room, elements as usize).0;
        let written = if config.keep_elements { written } else { 0 };
        let needs = [
            ("stamps", rooms.iter().map(stamps).sum()),
            (queues, Arena::length_for(bytes, config.huge_pages).0),
            ("the analysis", elements * per_element),
            ("elements to be written", written * BYTES_PER_ROW),
        ];
        Needs(needs.map(|(what, bytes)| MemoryNeed { what, bytes }))
    }

    /// Whether so much may be had, and the stamps be locked.
    pub(super) fn fit(
        &self,
        config: &Config,
        allowed: Option<&Allowance>,
        limit: &MemoryLock,
        pages: Option<HugePages>,
    ) -> bool {
        allowed.is_none_or(|allowed| self.total() <= allowed.bytes)
            && limit.permits(self.stamps())
            && self.require_huge_pages(config.huge_pages, pages).is_ok()
    }

    /// Checks that so much may be had.
    pub(super) fn require(
        &self,
        allowed: &Allowance,
        options: &str,
    ) -> Result<(), MemoryLimitError> {
        let advice = "use a smaller --capacity, or fewer threads";
        allowed.require(&self.0, options, advice)
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
        let [stamps, queue, ..] = &self.0;
        let needed = (stamps.bytes + queue.bytes) / HUGE_PAGE as u64;
        let free = pool.map_or(0, |pool| pool.available());
        if policy != HugePagePolicy::Required
            || needed <= free + pool.map_or(0, |pool| pool.overcommit)
        {
            return Ok(());
        }
        Err(RigError::TooFewHugePages {
            what: "the stamps and the queue need".to_owned(),
            needed,
            free,
            pool: pool.map_or(0, |pool| pool.total) + needed - free,
        })
    }

    /// Checks that the stamps can be locked; returns whether the queue can be as well, with all of the process, to which
    /// so many bytes belong `beside` it.
    pub(super) fn require_lock(&self, limit: &MemoryLock, beside: u64) -> Result<bool, HostError> {
        limit.require(self.stamps())?;
        Ok(self.permits_all(limit, beside))
    }

    fn permits_all(&self, limit: &MemoryLock, beside: u64) -> bool {
        let already = memory_lock::address_space_size().unwrap_or(u64::MAX / 2);
        let later = self.total() + beside + THREADS * BYTES_PER_THREAD + 2 * HUGE_PAGE as u64;
        limit.permits(already + later)
    }
}

/// The memory of so many must be there.
pub(super) const FEWEST: u64 = 1000;
/// A round has so many, however long they take.
pub(super) const FEWEST_IN_TIME: u64 = 10;
/// No more go through in a second: a stamp takes some ten nanoseconds, and without them an element takes one.
pub(super) const MOST_STAMPED_PER_S: f64 = 1e8;
const MOST_PER_S: f64 = 1e9;

/// The most elements that a round may have, with the largest queue of a sweep. With a duration they are as many as can
/// be locked together with the queue, if that leaves enough of them, or else without it.
///
/// # Errors
/// When this machine, or the control group of this process, has not the memory for elements and queues of this size.
pub fn most_elements(
    config: &Config,
    queue: (usize, usize),
    allowed: Option<&Allowance>,
    limit: &MemoryLock,
    pages: Option<HugePages>,
) -> Result<u64, MemoryLimitError> {
    let needs = |count| Needs::of(config, count, queue);
    let is_there = |count| allowed.is_none_or(|allowed| needs(count).total() <= allowed.bytes);
    let without = if config.keep_elements {
        ", or leave out --elements"
    } else {
        ""
    };
    let require = |count, options: String| {
        let advice = match largest(count, is_there) {
            0 => format!("use a smaller --capacity{without}"),
            count => format!("use --count {count} at most{without}"),
        };
        let check = |allowed: &Allowance| allowed.require(&needs(count).0, &options, &advice);
        allowed.map_or(Ok(()), check)
    };
    let capacity = queue.0;
    match config.length {
        RoundLength::Elements(count) => {
            require(count, format!("--count {count} with --capacity {capacity}"))?;
            Ok(count)
        }
        RoundLength::Time(time) => {
            require(FEWEST, format!("--capacity {capacity}"))?;
            let per_s = match config.times_each() {
                true => MOST_STAMPED_PER_S,
                false => MOST_PER_S,
            };
            let most = (time.as_secs_f64() * per_s).min(MOST_ELEMENTS as f64) as u64;
            let fits = |count| needs(count).fit(config, allowed, limit, pages);
            let locks_all = |count| fits(count) && needs(count).permits_all(limit, 0);
            let found = largest(most, locks_all);
            let found = if found < most / 64 {
                largest(most, fits)
            } else {
                found
            };
            Ok(found.max(FEWEST))
        }
    }
}

/// The largest number up to `most` that fits; where one does, all below it do.
pub(super) fn largest(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        *(if fits(middle) { &mut low } else { &mut high }) = middle;
    }
    low
}

/// The elements of a round that takes so long at so many elements a second, up to `most`; but not so few that neither a
/// rate nor a median comes of them.
pub fn elements_in(time: Duration, rate_per_s: f64, most: u64) -> u64 {
    let elements = (rate_per_s * time.as_secs_f64()).ceil() as u64;
    elements.max(FEWEST_IN_TIME).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::queue::config::Measure;
    use crate::bench::queue::result::made_up;
    use crate::host::memory_lock::Limit;
    use crate::testing::Refused as _;

    fn config(measure: Measure) -> Config {
        Config {
            measure,
            ..made_up::config()
        }
    }

    const ELEMENTS: u64 = 110_000;

    fn limit(bytes: u64) -> MemoryLock {
        MemoryLock {
            soft: Limit(bytes),
            hard: Limit(bytes),
            above_limit: false,
        }
    }

    #[test]
    fn what_is_locked_is_what_is_demanded() {
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
            let needs = Needs::of(&config, ELEMENTS, (1024, 8));
            assert!(!needs.require_lock(&limit(expected), 0).unwrap());
            needs
                .require_lock(&limit(expected - 1), 0)
                .refused(&["memlock limit"]);
        }
        let needs = Needs::of(&config(Measure::Time), ELEMENTS, (1024, 8));
        assert!(needs.require_lock(&limit(u64::MAX), 1 << 30).unwrap());
        // What the process has already is less than that.
        assert!(needs.require_lock(&limit(1 << 50), 0).unwrap());
        assert!(!needs.require_lock(&limit(1 << 50), 1 << 50).unwrap());
    }

    #[test]
    fn each_sender_may_have_blocks_for_all_elements() {
        // As concurrent-queue has: 32 elements a block, two begun, and 256 bytes beside the elements of one.
        for (capacity, payload) in [(1, 8), (1, 256), (1024, 256), (65536, 8)] {
            for senders in [1, 2, 64] {
                let blocks = |elements: usize| elements.div_ceil(32) * (32 * payload + 256);
                let taken = blocks(capacity) + senders * blocks(capacity + 64);
                assert!(queue_bytes(capacity, payload, senders) > taken as u64);
            }
        }
    }

    #[test]
    fn required_huge_pages_are_counted_before_a_run() {
        let needs = Needs::of(&config(Measure::Time), ELEMENTS, (1024, 8));
        let pool = |total, free, overcommit| {
            Some(HugePages {
                total,
                free,
                reserved: 0,
                overcommit,
            })
        };
        let required = |pool| needs.require_huge_pages(HugePagePolicy::Required, pool);
        required(pool(5, 5, 0)).unwrap();
        required(pool(3, 3, 2)).unwrap();
        let told = ["5 huge pages", "vm.nr_hugepages=9"];
        required(pool(7, 3, 0)).refused(&told);
        assert!(required(None).is_err());
        needs.require_huge_pages(HugePagePolicy::Try, None).unwrap();
    }

    #[test]
    fn what_is_too_large_is_told_with_the_largest_that_fits() {
        let allowed = Allowance {
            bytes: 1 << 30,
            group: None,
        };
        let most = |count, queue| {
            let config = Config {
                length: RoundLength::Elements(count),
                ..config(Measure::Time)
            };
            most_elements(&config, queue, Some(&allowed), &limit(0), None)
        };
        let checked = most(1 << 30, (1024, 8));
        checked.clone().refused(&["1 GiB", "half of this machine"]);
        let text = checked.unwrap_err().to_string();
        let words: Vec<&str> = text.split_whitespace().collect();
        let place = words.iter().rposition(|word| *word == "--count").unwrap();
        let count: u64 = words[place + 1].parse().unwrap();
        assert_eq!(most(count, (1024, 8)), Ok(count));
        assert!(most(count + (1 << 17), (1024, 8)).is_err());
        most(count, (1 << 24, 256)).refused(&["smaller --capacity"]);
    }

    #[test]
    fn with_a_duration_no_more_elements_are_measured_than_can_be_locked() {
        let config = Config {
            length: RoundLength::Time(Duration::from_millis(20)),
            huge_pages: HugePagePolicy::Off,
            ..config(Measure::Time)
        };
        let most = |bytes| most_elements(&config, (1024, 8), None, &limit(bytes), None).unwrap();
        assert_eq!(most(u64::MAX), 2_000_000);
        // The usual limit.
        let usual = most(8 << 20);
        assert!((170_000..175_000).contains(&usual), "{usual}");
        Needs::of(&config, usual, (1024, 8))
            .require_lock(&limit(8 << 20), 0)
            .unwrap();
        assert_eq!(most(0), FEWEST);

        let time = Duration::from_millis(20);
        assert_eq!(elements_in(time, 1e6, usual), 20_000);
        assert_eq!(elements_in(time, 1e9, usual), usual);
        // However slow the load is, a round takes no longer than it should.
        assert_eq!(elements_in(time, 1000.0, usual), 20);
        assert_eq!(elements_in(time, 1.0, usual), FEWEST_IN_TIME);
        assert_eq!(elements_in(time, 1.0, 5), 5);
    }
}
