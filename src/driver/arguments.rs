//! The options of a sweep, which every benchmark has.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::arguments::values::duration;

/// How often, how long and from where a sweep is run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SweepArguments {
    /// Measure the whole sweep so many times, each time in a process of its own and, from two on, with its points in
    /// another order: figures are medians over rounds, with bounds from six on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,

    /// Seed of the shuffled order of the points in each round [default: random, and recorded]
    #[arg(long, value_name = "NUMBER", help_heading = "Sweep")]
    pub order_seed: Option<u64>,

    /// Time for the whole sweep, with unit: only whole rounds that fit are measured, the first always. Without
    /// --rounds, as many as fit
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Sweep")]
    pub budget: Option<Duration>,

    /// Print the points, the time and the disk space that they would take, and measure nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Measure what is missing or incomplete in the results folder DIR, with its settings. Refused where the machine or
    /// given settings differ
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "force", "dry_run"], help_heading = "Sweep")]
    pub resume: Option<PathBuf>,

    /// Take options from FILE, in TOML with their names: service = "rc,uc", inline = true. The command
    /// line overrides them
    #[arg(long, value_name = "FILE", help_heading = "Sweep")]
    pub config: Option<PathBuf>,

    /// Write the options of this command line to FILE, for --config, before anything is measured; refused if it exists
    #[arg(long, value_name = "FILE", help_heading = "Sweep")]
    pub save_config: Option<PathBuf>,

    /// Stop after so many rounds, as if it had been interrupted, with exit code 0
    #[arg(long, value_name = "N", hide = true)]
    pub until_round: Option<u32>,
}
