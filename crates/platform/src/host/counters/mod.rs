//! What the kernel counts on one CPU and for one thread: what may have stopped that thread.
//!
//! All files are opened once and read with `pread` into memory that is kept. A reading gives what was added since the
//! one before. What cannot be read is named with the reason, never taken as zero.
//!
//! | counter | source |
//! | --- | --- |
//! | interrupts of the CPU, by name | `/proc/interrupts` |
//! | softirqs of the CPU, by name | `/proc/softirqs` |
//! | context switches and page faults of the calling thread | `getrusage(RUSAGE_THREAD)` |
//! | time that the hypervisor gave to others, in ticks of 10 ms | `/proc/stat`, in guests |
//! | time that a CPU quota stopped threads of this process's control groups | `cpu.stat`, where there is a quota |
//! | system management interrupts | perf's `msr` counters, or `/dev/cpu/N/msr` |
//!
//! Left out: who sent an interrupt, and what ran instead of the thread; that takes a tracer.

mod smi;
mod steal;
mod table;

use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use super::throttling::ThrottleCounters;
use smi::SmiCounter;
use steal::StealCounter;
pub use table::CounterTable;

/// Rows with a difference that one reading can hold.
pub const ROWS: usize = 8;

/// The counters of a table that rose, with their rows and by how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RisenCounters {
    rows: [(u16, u32); ROWS],
    length: u8,
    /// Counters that rose beyond the first [`ROWS`].
    pub left_out: u16,
}

impl RisenCounters {
    pub fn push(&mut self, row: u16, by: u32) {
        match self.rows.get_mut(usize::from(self.length)) {
            Some(place) => {
                *place = (row, by);
                self.length += 1;
            }
            None => self.left_out = self.left_out.saturating_add(1),
        }
    }

    /// The counters that are kept: row, and by how much it rose.
    pub fn rows(&self) -> &[(u16, u32)] {
        &self.rows[..usize::from(self.length)]
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// By how much all of them rose together; each that was left out counts once.
    pub fn total(&self) -> u64 {
        let kept: u64 = self.rows().iter().map(|&(_, by)| u64::from(by)).sum();
        kept + u64::from(self.left_out)
    }
}

/// What was added to each counter between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deltas {
    /// Context switches because the thread waited or was stopped.
    pub voluntary_switches: u32,
    /// Context switches because another thread was to run.
    pub involuntary_switches: u32,
    /// Page faults without input or output.
    pub minor_faults: u32,
    /// Page faults that had to read from a disk.
    pub major_faults: u32,
    /// Ticks of 10 ms stolen by the hypervisor.
    pub steal_ticks: u32,
    pub smis: u32,
    /// How long a CPU quota stopped threads, of all CPUs together.
    pub throttled_ns: u64,
    /// Interrupts, by row of `/proc/interrupts`.
    pub interrupts: RisenCounters,
    /// Softirqs, by row of `/proc/softirqs`.
    pub softirqs: RisenCounters,
}

impl Deltas {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Which counters can be read, with the reason for those that cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CounterAvailability {
    /// `/proc/interrupts`; `None` if it can.
    pub interrupts: Option<String>,
    pub softirqs: Option<String>,
    pub steal: Option<String>,
    pub smis: Option<String>,
    /// What CPU quotas did. It is not among those that are [`missing`](Self::missing): a finding states it of a whole
    /// run.
    pub throttling: Option<String>,
}

impl CounterAvailability {
    /// What cannot be read, by name, with the reason.
    pub fn missing(&self) -> Vec<(&'static str, &str)> {
        [
            ("interrupts", &self.interrupts),
            ("softirqs", &self.softirqs),
            ("steal time", &self.steal),
            ("SMIs", &self.smis),
        ]
        .into_iter()
        .filter_map(|(name, reason)| Some((name, reason.as_deref()?)))
        .collect()
    }
}

/// The counters of one CPU and of the thread that reads them.
#[derive(Debug)]
pub struct CpuCounters {
    interrupts: Option<CounterTable>,
    softirqs: Option<CounterTable>,
    steal: Option<StealCounter>,
    smis: Option<SmiCounter>,
    throttling: Option<ThrottleCounters>,
    available: CounterAvailability,
    usage: ThreadUsage,
}

/// Context switches and page faults of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Context switches because the thread waited or was stopped.
    pub voluntary_switches: u64,
    /// Context switches because another thread was to run.
    pub involuntary_switches: u64,
    /// Page faults without input or output.
    pub minor_faults: u64,
    /// Page faults that had to read from a disk.
    pub major_faults: u64,
}

impl ThreadUsage {
    pub fn now() -> Self {
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        getrusage(UsageWho::RUSAGE_THREAD).map_or_else(
            |_| Self::default(),
            |usage| Self {
                voluntary_switches: count(usage.voluntary_context_switches()),
                involuntary_switches: count(usage.involuntary_context_switches()),
                minor_faults: count(usage.minor_page_faults()),
                major_faults: count(usage.major_page_faults()),
            },
        )
    }

    /// Page faults of both kinds.
    pub fn faults(self) -> u64 {
        self.minor_faults + self.major_faults
    }

    pub fn since(self, before: Self) -> Self {
        let rise = u64::saturating_sub;
        Self {
            voluntary_switches: rise(self.voluntary_switches, before.voluntary_switches),
            involuntary_switches: rise(self.involuntary_switches, before.involuntary_switches),
            minor_faults: rise(self.minor_faults, before.minor_faults),
            major_faults: rise(self.major_faults, before.major_faults),
        }
    }
}

impl CpuCounters {
    /// Opens all counters of `cpu` that can be read, and reads them once. `guest`: whether there is a hypervisor;
    /// `has_quota`: whether a CPU quota can stop the thread, as none can with a real-time priority.
    pub fn open(cpu: usize, guest: bool, has_quota: bool) -> Self {
        fn kept<T>(opened: Result<T, String>, why_not: &mut Option<String>) -> Option<T> {
            opened.map_err(|reason| *why_not = Some(reason)).ok()
        }
        let mut available = CounterAvailability::default();
        let steal = match guest {
            true => StealCounter::open(cpu),
            false => Err("this machine is not a guest".to_owned()),
        };
        let throttling = match has_quota {
            true => {
                let counters = ThrottleCounters::open();
                let unknown = counters.unknown().map(str::to_owned);
                unknown.map_or(Ok(counters), Err)
            }
            false => Err("a thread with a real-time priority has no CPU quota".to_owned()),
        };
        let table = |path| CounterTable::open(path, cpu);
        CpuCounters {
            interrupts: kept(table("/proc/interrupts"), &mut available.interrupts),
            softirqs: kept(table("/proc/softirqs"), &mut available.softirqs),
            steal: kept(steal, &mut available.steal),
            smis: kept(SmiCounter::open(cpu), &mut available.smis),
            throttling: kept(throttling, &mut available.throttling),
            available,
            usage: ThreadUsage::now(),
        }
    }

    pub fn available(&self) -> &CounterAvailability {
        &self.available
    }

    /// Reads all counters: what was added since the last time. The thread must be the one whose switches are meant. Its
    /// switches and faults while this reads belong to the reading and to none of the deltas; interrupts that come
    /// meanwhile are found the next time.
    pub fn read(&mut self) -> Deltas {
        let risen = ThreadUsage::now().since(self.usage);
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let mut deltas = Deltas {
            voluntary_switches: narrow(risen.voluntary_switches),
            involuntary_switches: narrow(risen.involuntary_switches),
            minor_faults: narrow(risen.minor_faults),
            major_faults: narrow(risen.major_faults),
            ..Deltas::default()
        };
        if let Some(throttling) = &mut self.throttling {
            deltas.throttled_ns = throttling.rise().throttled_ns;
        }
        if let Some(smis) = &mut self.smis {
            deltas.smis = smis.rise();
        }
        if let Some(table) = &mut self.interrupts {
            table.read(|row, by| deltas.interrupts.push(row, by));
        }
        if let Some(table) = &mut self.softirqs {
            table.read(|row, by| deltas.softirqs.push(row, by));
        }
        if let Some(steal) = &mut self.steal {
            deltas.steal_ticks = steal.rise();
        }
        self.usage = ThreadUsage::now();
        deltas
    }

    pub fn interrupt_names(&self) -> Vec<String> {
        names(&self.interrupts)
    }

    pub fn softirq_names(&self) -> Vec<String> {
        names(&self.softirqs)
    }
}

fn names(table: &Option<CounterTable>) -> Vec<String> {
    table.as_ref().map_or_else(Vec::new, CounterTable::names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_voluntary_switch_and_what_cannot_be_read_has_a_reason() {
        std::thread::spawn(|| {
            let mut counters = CpuCounters::open(0, true, true);
            counters.read();
            std::thread::sleep(std::time::Duration::from_millis(2));
            let deltas = counters.read();
            assert!(deltas.voluntary_switches >= 1, "{deltas:?}");
            assert!(!deltas.is_empty());
            for (name, reason) in counters.available().missing() {
                assert!(!reason.is_empty(), "{name}");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn page_faults_count_at_the_first_touch_and_for_the_thread_that_touches() {
        const PAGES: usize = 4096;
        fn faults(work: impl FnOnce()) -> u64 {
            let before = ThreadUsage::now();
            work();
            ThreadUsage::now().since(before).faults()
        }
        let touched_twice = || {
            let mut map = memmap2::MmapMut::map_anon(PAGES * 4096).unwrap();
            map.advise(memmap2::Advice::NoHugePage).unwrap();
            [1, 2].map(|value| {
                faults(|| {
                    for byte in map.iter_mut().step_by(4096) {
                        *std::hint::black_box(byte) = value;
                    }
                })
            })
        };
        let mut theirs = [0; 2];
        let ours = faults(|| theirs = std::thread::spawn(touched_twice).join().unwrap());
        // Large folios of newer kernels may serve several pages by one fault.
        assert!((1..=PAGES as u64 + 8).contains(&theirs[0]), "{theirs:?}");
        assert_eq!(theirs[1], 0);
        assert!(theirs[0] > 4 * ours.max(8), "{theirs:?}, ours {ours}");
    }

    #[test]
    fn more_rows_than_fit_are_counted() {
        let mut risen = RisenCounters::default();
        for row in 0..11 {
            risen.push(row, 1);
        }
        assert_eq!((risen.rows().len(), risen.left_out), (8, 3));
        assert_eq!(risen.total(), 11);
        assert!(!risen.is_empty() && RisenCounters::default().is_empty());
    }
}
