//! `hcabench clock`: whether this machine's time stamp counter can be trusted.

mod trust;

use crate::bench::clock::trust::DEFAULT_READS;
use crate::cli::UsageError;
use crate::time::TscKilohertz;

/// Arguments of `hcabench clock`.
#[derive(Debug, Clone, clap::Args)]
pub struct ClockArguments {
    /// Tell whether the TSC can be trusted: its flags, its rate by every source, the offsets between CPUs, steps back;
    /// exit code 1 if it cannot
    #[arg(long)]
    pub trust: bool,

    /// Reads for --trust in which the TSC must not step back, 10000 to 10000000000
    #[arg(long, value_name = "N", default_value_t = DEFAULT_READS, requires = "trust",
          value_parser = clap::value_parser!(u64).range(10_000..=10_000_000_000))]
    pub trust_reads: u64,

    /// Rate of the TSC in kHz, 100000 to 10000000 [default: measured against CLOCK_MONOTONIC_RAW]
    #[arg(long, value_name = "KHZ")]
    pub tsc_khz: Option<TscKilohertz>,

    /// Print as JSON
    #[arg(long)]
    pub json: bool,

    /// Print nothing; the exit code tells
    #[arg(long, conflicts_with = "json")]
    pub quiet: bool,
}

/// Runs what the arguments name. Returns the exit code.
///
/// # Errors
/// [`UsageError`] for bad input, others when the machine refuses.
pub fn run(arguments: &ClockArguments) -> anyhow::Result<u8> {
    if arguments.trust {
        return trust::run(arguments);
    }
    Err(UsageError("hcabench clock: nothing is asked for: add --trust".to_owned()).into())
}
