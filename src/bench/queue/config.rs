//! What a run of the queue benchmark is asked to do.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::buffer::HugePagePolicy;
use crate::pacing::{
    AfterMiss, BackToBack, Bursty, ConstantRate, ConstantWait, Idle, Interval, Jitter, Pacing,
};
use crate::time::{Clock, ClockKind, Ticks};

/// The sizes of an element, in bytes.
pub const PAYLOADS: [usize; 3] = [8, 64, 256];
/// The largest capacity, in elements.
pub const LARGEST_CAPACITY: usize = 1 << 24;
/// The most elements of a run, and as many may come before them to warm up.
pub const MOST_ELEMENTS: u64 = 1 << 30;

/// What an end does between two operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "load")]
pub enum Load {
    /// Nothing: as fast as it can.
    None,
    /// The same time between two operations.
    ConstantWait {
        /// That time.
        wait_ns: f64,
    },
    /// The same time from start to start.
    ConstantRate {
        /// Operations in a second.
        rate_per_s: f64,
    },
    /// Blocks of operations without a wait; their waits, less the time of the operations, together behind them.
    Bursty {
        /// The wait of each.
        wait_ns: f64,
        /// Operations of a block.
        burst: u32,
    },
}

/// The load of an end, with its variance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EndLoad {
    /// What it does.
    #[serde(flatten)]
    pub load: Load,
    /// By how much a wait is longer or shorter at most, as a share of it: 0 to 1.
    pub jitter: f64,
    /// What decides the jitter.
    pub seed: u64,
}

impl EndLoad {
    /// As fast as it can.
    pub const NONE: Self = EndLoad {
        load: Load::None,
        jitter: 0.0,
        seed: 0,
    };

    /// The jitter in per cent, as it was given: a share such as 0.07 is not exact, and its hundredfold would show that.
    pub fn jitter_percent(&self) -> f64 {
        (self.jitter * 1e10).round() / 1e8
    }

    /// The longest time that passes between two operations.
    pub fn longest_pause(&self) -> Duration {
        let mean_ns = match self.load {
            Load::None => 0.0,
            Load::ConstantWait { wait_ns } => wait_ns,
            Load::ConstantRate { rate_per_s } => 1e9 / rate_per_s,
            Load::Bursty { wait_ns, burst } => wait_ns * f64::from(burst),
        };
        Duration::try_from_secs_f64(mean_ns * (1.0 + self.jitter) / 1e9).unwrap_or(Duration::MAX)
    }

    /// The waiter that makes this load.
    pub fn waiter<C: Clock>(&self, clock: &C, after_miss: AfterMiss) -> Paced {
        let with_jitter = |interval: Interval| {
            if self.jitter > 0.0 {
                interval.with_jitter(Jitter::new(self.jitter, self.seed))
            } else {
                interval
            }
        };
        let waits = |wait_ns: f64| with_jitter(Interval::from_rate(clock, 1e9 / wait_ns));
        match self.load {
            Load::None => Paced::Not(BackToBack),
            Load::ConstantWait { wait_ns } => Paced::Wait(ConstantWait::of(waits(wait_ns))),
            Load::ConstantRate { rate_per_s } => {
                let interval = with_jitter(Interval::from_rate(clock, rate_per_s));
                Paced::Rate(ConstantRate::new(interval, after_miss))
            }
            Load::Bursty { wait_ns, burst } => {
                Paced::Bursty(Bursty::new(waits(wait_ns), burst, after_miss))
            }
        }
    }
}

impl fmt::Display for EndLoad {
    /// Fit for the name of a folder.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.load {
            Load::None => formatter.write_str("max")?,
            Load::ConstantWait { wait_ns } => write!(formatter, "wait{wait_ns}ns")?,
            Load::ConstantRate { rate_per_s } => write!(formatter, "rate{rate_per_s}")?,
            Load::Bursty { wait_ns, burst } => write!(formatter, "burst{burst}x{wait_ns}ns")?,
        }
        if self.jitter > 0.0 {
            write!(formatter, "+-{}pc", self.jitter_percent())?;
        }
        Ok(())
    }
}

/// The waiters as one type: which it is, is asked after each operation, outside of every sample. Where no time is taken,
/// and a nanosecond counts, the loop without a pause is compiled for itself.
#[derive(Debug, Clone, Copy)]
pub enum Paced {
    /// No time at all.
    Not(BackToBack),
    /// The same time between two operations.
    Wait(ConstantWait),
    /// The same time from start to start.
    Rate(ConstantRate),
    /// In blocks.
    Bursty(Bursty),
}

impl Pacing for Paced {
    #[inline(always)]
    fn start_at(&mut self, now: Ticks) {
        match self {
            Paced::Not(waiter) => waiter.start_at(now),
            Paced::Wait(waiter) => waiter.start_at(now),
            Paced::Rate(waiter) => waiter.start_at(now),
            Paced::Bursty(waiter) => waiter.start_at(now),
        }
    }

    #[inline(always)]
    fn pause<C: Clock>(&mut self, clock: &C, idle: impl Idle) {
        match self {
            Paced::Not(waiter) => waiter.pause(clock, idle),
            Paced::Wait(waiter) => waiter.pause(clock, idle),
            Paced::Rate(waiter) => waiter.pause(clock, idle),
            Paced::Bursty(waiter) => waiter.pause(clock, idle),
        }
    }

    fn missed(&self) -> u64 {
        match self {
            Paced::Not(waiter) => waiter.missed(),
            Paced::Wait(waiter) => waiter.missed(),
            Paced::Rate(waiter) => waiter.missed(),
            Paced::Bursty(waiter) => waiter.missed(),
        }
    }

    fn intended_starts(&self, start: Ticks, count: usize) -> Option<Vec<Ticks>> {
        match self {
            Paced::Not(waiter) => waiter.intended_starts(start, count),
            Paced::Wait(waiter) => waiter.intended_starts(start, count),
            Paced::Rate(waiter) => waiter.intended_starts(start, count),
            Paced::Bursty(waiter) => waiter.intended_starts(start, count),
        }
    }
}

/// What is measured of each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The clock before and after each operation.
    Time,
    /// Only how many elements go through in a second.
    Throughput,
    /// The processor's counters over the loops of each end, without time stamps.
    Counters,
}

impl Measure {
    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Time => "time",
            Measure::Throughput => "throughput",
            Measure::Counters => "counters",
        }
    }
}

/// What is the same for all points of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// Elements that are measured in each run.
    pub count: u64,
    /// Elements that go through before them.
    pub warmup: u64,
    /// Runs of each point.
    pub repeat: u32,
    /// What is measured.
    pub measure: Measure,
    /// Whether the time of failed attempts belongs to the operation that succeeded at last.
    pub measure_failed: bool,
    /// The clock of stamps and waiters.
    pub clock: ClockKind,
    /// How long nothing may go through before a run is given up, beside the pauses of the load.
    #[serde(skip)]
    pub timeout: Duration,
    /// The pages that stamps are noted in.
    pub huge_pages: HugePagePolicy,
    /// Whether the stamps of all elements are kept, for `elements.csv`.
    pub keep_elements: bool,
}

impl Config {
    /// Elements of a run, with those that warm up.
    pub fn elements(&self) -> u64 {
        self.count + self.warmup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cents_are_written_as_they_were_given() {
        for percent in 1..=100 {
            let load = EndLoad {
                load: Load::ConstantWait { wait_ns: 100.0 },
                jitter: f64::from(percent) / 100.0,
                seed: 1,
            };
            assert_eq!(load.to_string(), format!("wait100ns+-{percent}pc"));
        }
        let finer = EndLoad {
            jitter: 0.000_012_5,
            ..EndLoad::NONE
        };
        assert_eq!(finer.jitter_percent(), 0.001_25);
    }
}
