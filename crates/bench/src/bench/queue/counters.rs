//! The processor's own counters over the loop of a thread, through `perf_event_open(2)`.
//!
//! They count the loop of the elements that count, and nothing around it: reading them around each operation would be a
//! system call, a hundred times as long as what it measures.

use std::io;

use perf_event::events::{Event, Hardware};
use perf_event::{Builder, Counter, Group};
use serde::Serialize;

/// What a thread's loop took, in user space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CounterValues {
    pub cycles: u64,
    pub instructions: u64,
    /// Accesses that missed the last level of cache.
    pub cache_misses: u64,
    pub branch_misses: u64,
}

impl CounterValues {
    /// All of them, in the order of the columns.
    pub fn all(&self) -> [u64; 4] {
        [
            self.cycles,
            self.instructions,
            self.cache_misses,
            self.branch_misses,
        ]
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CounterError {
    /// The processor, or the hypervisor below it, has none.
    #[error(
        "this machine has no hardware counters (perf_event_open: {0}); in a virtual machine the host has to pass them on: \
         use --measure time or throughput"
    )]
    None(io::Error),
    /// The kernel does not let this process have them.
    #[error(
        "this process may not use the hardware counters (perf_event_open: {0}): sysctl kernel.perf_event_paranoid=2 or \
         less, or give it CAP_PERFMON"
    )]
    Forbidden(io::Error),
    /// They did not count all the time, because others use them as well.
    #[error(
        "the hardware counters ran only {0:.0} % of the time, because something else uses them too: end other profilers, \
         or free one by sysctl kernel.nmi_watchdog=0"
    )]
    Shared(f64),
    #[error("the hardware counters could not be read: {0}")]
    Unreadable(io::Error),
}

impl CounterError {
    fn from_opening(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => CounterError::Forbidden(error),
            _ => CounterError::None(error),
        }
    }
}

/// The counters of the thread that opened them.
pub struct Counters {
    group: Group,
    members: [Counter; 4],
}

impl Counters {
    /// Opens the counters of the calling thread; they stand still.
    pub fn open() -> Result<Self, CounterError> {
        Self::of([
            Hardware::CPU_CYCLES,
            Hardware::INSTRUCTIONS,
            Hardware::CACHE_MISSES,
            Hardware::BRANCH_MISSES,
        ])
    }

    fn of<E: Event>(events: [E; 4]) -> Result<Self, CounterError> {
        let mut group = Group::new().map_err(CounterError::from_opening)?;
        let mut open = |event: E| {
            group
                .add(&Builder::new(event))
                .map_err(CounterError::from_opening)
        };
        let [first, second, third, fourth] = events;
        let members = [open(first)?, open(second)?, open(third)?, open(fourth)?];
        Ok(Counters { group, members })
    }
}

/// Counters that run only while they are told to.
pub trait LoopCounters {
    fn start(&mut self) -> Result<(), CounterError>;

    /// Stops them; returns what was counted.
    fn stop(&mut self) -> Result<CounterValues, CounterError>;
}

impl LoopCounters for Counters {
    fn start(&mut self) -> Result<(), CounterError> {
        self.group.enable().map_err(CounterError::Unreadable)
    }

    fn stop(&mut self) -> Result<CounterValues, CounterError> {
        self.group.disable().map_err(CounterError::Unreadable)?;
        let data = self.group.read().map_err(CounterError::Unreadable)?;
        if let (Some(enabled), Some(running)) = (data.time_enabled(), data.time_running())
            && running < enabled
        {
            let share = running.as_secs_f64() / enabled.as_secs_f64() * 100.0;
            return Err(CounterError::Shared(share));
        }
        let [cycles, instructions, cache_misses, branch_misses] =
            self.members.each_ref().map(|member| data[member]);
        Ok(CounterValues {
            cycles,
            instructions,
            cache_misses,
            branch_misses,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event::events::Software;

    #[test]
    fn what_runs_in_between_is_counted_and_nothing_else() {
        // Events of the kernel, which every machine has.
        let opened = Counters::of([
            Software::TASK_CLOCK,
            Software::PAGE_FAULTS_MIN,
            Software::CPU_CLOCK,
            Software::CPU_MIGRATIONS,
        ]);
        let mut counters = match opened {
            Ok(counters) => counters,
            // A sandbox may forbid the call; then that must be what is told.
            Err(error) => return assert!(matches!(error, CounterError::Forbidden(_)), "{error}"),
        };
        let touch = |pages: usize| {
            let mut map = memmap2::MmapMut::map_anon(pages * 4096).unwrap();
            let _ = map.advise(memmap2::Advice::NoHugePage);
            map.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            std::hint::black_box(&map);
        };
        touch(1000);
        counters.start().unwrap();
        touch(50);
        let counts = counters.stop().unwrap();
        touch(1000);
        assert!(counts.cycles > 0, "{counts:?}");
        assert!((1..500).contains(&counts.instructions), "{counts:?}");
    }

    #[test]
    fn without_hardware_counters_it_is_said_what_to_do() {
        let error = CounterError::from_opening(io::Error::from_raw_os_error(libc::ENOENT));
        assert!(error.to_string().contains("--measure time"), "{error}");
        let error = CounterError::from_opening(io::Error::from_raw_os_error(libc::EACCES));
        assert!(error.to_string().contains("perf_event_paranoid"), "{error}");
    }
}
