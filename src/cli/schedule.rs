//! Options for how the kernel treats the threads that measure.

use clap::Args;

/// Of every benchmark whose threads must run when they want to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScheduleArguments {
    /// SCHED_FIFO priority of the measuring threads, 1 to 99 [default: none]
    #[arg(long, value_name = "N", help_heading = "Machine", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub priority: Option<u8>,

    /// Let idle CPUs sleep deeply; else /dev/cpu_dma_latency is held open, where this user may
    #[arg(long, help_heading = "Machine")]
    pub allow_idle_states: bool,
}
