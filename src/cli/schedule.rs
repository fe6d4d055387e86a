//! Options for how the kernel treats the threads that measure.

use clap::Args;

use crate::arguments::values::number;

/// Of every benchmark whose threads must run when they want to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScheduleArguments {
    /// Run the measuring threads at this SCHED_FIFO priority, 1 to 99 [default: none]
    #[arg(long, value_name = "N", help_heading = "Machine", value_parser = |text: &str| number::<u8>(text, 1..=99))]
    pub priority: Option<u8>,

    /// Allow deep idle states of CPUs; otherwise /dev/cpu_dma_latency is held open, where this user may
    #[arg(long, help_heading = "Machine")]
    pub allow_idle_states: bool,
}
