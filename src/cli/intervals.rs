//! The option by which runs are divided into intervals.

use std::time::Duration;

use clap::Args;

use crate::arguments::values::{DAY, time};
use crate::results::Record;
use crate::results::schema::HLOG_INTERVAL;

/// The shortest interval.
const SHORTEST: Duration = Duration::from_millis(10);

/// How a run is divided.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct IntervalArguments {
    /// Write distributions by intervals of this length to .hlog files, 10ms to 1d [default: 1s for runs of 60s or more]
    #[arg(long, value_name = "TIME", help_heading = "Output",
          value_parser = |text: &str| time(text, SHORTEST..=DAY))]
    pub hlog_interval: Option<Duration>,
}

impl IntervalArguments {
    /// Records it among the settings of a run, if it was given.
    pub(crate) fn record(&self, run: &mut Record) {
        if let Some(length) = self.hlog_interval {
            run.set(&HLOG_INTERVAL, length.as_nanos() as u64);
        }
    }
}
