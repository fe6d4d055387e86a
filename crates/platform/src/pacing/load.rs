//! What an end of a benchmark does between two operations, as a setting.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{AnyPacing, Bursty, ConstantRate, ConstantWait, Interval, Jitter, MissPolicy, NoPause};
use crate::time::Clock;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "load")]
pub enum Load {
    /// Nothing: as fast as it can.
    None,
    /// The same time between two operations.
    ConstantWait { wait_ns: f64 },
    /// The same time from start to start.
    ConstantRate { rate_per_s: f64 },
    /// Blocks of operations without a wait; their waits, less the time of the operations, together behind them.
    Bursty {
        /// The wait of each.
        wait_ns: f64,
        group: u32,
    },
}

impl Load {
    pub const fn name(&self) -> &'static str {
        match self {
            Load::None => "none",
            Load::ConstantWait { .. } => "constant-wait",
            Load::ConstantRate { .. } => "constant-rate",
            Load::Bursty { .. } => "bursty",
        }
    }
}

/// The load of an end, with its variance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EndLoad {
    #[serde(flatten)]
    pub load: Load,
    /// By how much a wait is longer or shorter at most, as a share of it: 0 to 1.
    pub jitter: f64,
    pub seed: u64,
}

impl EndLoad {
    pub const NONE: Self = EndLoad {
        load: Load::None,
        jitter: 0.0,
        seed: 0,
    };

    /// The jitter in per cent, as it was given: a share such as 0.07 is not exact, and its hundredfold would show that.
    pub fn jitter_percent(&self) -> f64 {
        (self.jitter * 1e10).round() / 1e8
    }

    /// Operations that follow each other without a pause: those of a group, and one with any other load.
    pub fn group(&self) -> u32 {
        match self.load {
            Load::Bursty { group, .. } => group.max(1),
            _ => 1,
        }
    }

    /// The mean pause per operation.
    pub fn mean_pause(&self) -> Duration {
        let mean_ns = match self.load {
            Load::None => 0.0,
            Load::ConstantWait { wait_ns } | Load::Bursty { wait_ns, .. } => wait_ns,
            Load::ConstantRate { rate_per_s } => 1e9 / rate_per_s,
        };
        Duration::try_from_secs_f64(mean_ns / 1e9).unwrap_or(Duration::MAX)
    }

    /// The longest time that passes between two operations.
    pub fn longest_pause(&self) -> Duration {
        let mean_ns = match self.load {
            Load::None => 0.0,
            Load::ConstantWait { wait_ns } => wait_ns,
            Load::ConstantRate { rate_per_s } => 1e9 / rate_per_s,
            Load::Bursty { wait_ns, group } => wait_ns * f64::from(group),
        };
        Duration::try_from_secs_f64(mean_ns * (1.0 + self.jitter) / 1e9).unwrap_or(Duration::MAX)
    }

    pub fn waiter<C: Clock>(&self, clock: &C, after_miss: MissPolicy) -> AnyPacing {
        let with_jitter = |interval: Interval| {
            if self.jitter > 0.0 {
                interval.with_jitter(Jitter::new(self.jitter, self.seed))
            } else {
                interval
            }
        };
        let waits = |wait_ns: f64| with_jitter(Interval::from_rate(clock, 1e9 / wait_ns));
        match self.load {
            Load::None => AnyPacing::Not(NoPause),
            Load::ConstantWait { wait_ns } => AnyPacing::Wait(ConstantWait::of(waits(wait_ns))),
            Load::ConstantRate { rate_per_s } => {
                let interval = with_jitter(Interval::from_rate(clock, rate_per_s));
                AnyPacing::Rate(ConstantRate::new(interval, after_miss))
            }
            Load::Bursty { wait_ns, group } => {
                AnyPacing::Bursty(Bursty::new(waits(wait_ns), group, after_miss))
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
            Load::Bursty { wait_ns, group } => write!(formatter, "burst{group}x{wait_ns}ns")?,
        }
        if self.jitter > 0.0 {
            write!(formatter, "+-{}pc", self.jitter_percent())?;
        }
        Ok(())
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
