//! `hcabench memory`: bandwidth-latency curves of memory.

mod present;
pub(super) mod values;

pub(super) use self::present::VIEW;
use std::time::Duration;

use clap::Args;

use crate::arguments::values::{List, count, cpu, named, number, one, seed};
use crate::bench::Assignment;
use crate::bench::memory::config::{Bandwidth, Config, Pause, Sweep};
use crate::buffer::{Bytes, PageSize};
use crate::driver;
use crate::driver::Request;
use crate::driver::arguments::SweepArguments;
use crate::generators::{InstructionSet, Store};
use crate::host::CpuSet;
use crate::host::readiness::Needs;
use crate::host::uncore::{ChosenEvent, ChosenEvents};
use crate::results::Record;
use crate::results::schema::memory as columns;
use crate::stats::outliers::Outliers;
use crate::stats::smoothing::Smoothing;
use crate::terminal::output::OutputArguments;

/// Arguments of `hcabench memory`. LIST: one value, or several with commas between them.
#[derive(Debug, Clone, Args)]
pub(crate) struct MemoryArguments {
    /// Read with this per cent of the accesses and store with the others; even numbers; with --node-pairs by default 100
    #[arg(long, value_name = "LIST", default_value = "0,26,50,76,100", value_parser = values::shares,
          default_value_if("node_pairs", "true", "100"))]
    pub read_share: List<u32>,

    /// Store lines: regular (through the caches), non-temporal (past them)
    #[arg(long, value_name = "LIST", default_value = "regular", value_parser = named::<Store>)]
    pub store: List<Store>,

    /// Run this many nops after each group of 50 accesses: 0 (full speed) to max (almost no bandwidth); off (generators
    /// rest); with --node-pairs by default off,0
    #[arg(long, value_name = "LIST", default_value = values::DEFAULT_PAUSES, value_parser = values::pauses,
          default_value_if("node_pairs", "true", values::PAUSES_OF_PAIRS))]
    pub pause: List<Pause>,

    /// Access memory by this instruction set: sse2, avx2, avx512, on aarch64 neon, sve; auto (the widest available)
    #[arg(long, value_name = "SET", default_value = "auto", value_parser = values::or_auto::<InstructionSet>)]
    pub isa: values::OrAuto<InstructionSet>,

    /// Set the size of each buffer in bytes, one for the chase and two for each generator; k, M and G are binary. With
    /// several, such as 16k..1G (doubles), the chase has a buffer of each, and generators have the largest [default: four
    /// times the last level of cache, where that fits; smaller ones for generators where theirs do not fit beside it]
    #[arg(long, value_name = "LIST", value_parser = values::sizes)]
    pub size: Option<List<Bytes>>,

    /// Use these pages for all buffers: 4k, 2m (reserved, or transparent and verified), 1g [default: the largest
    /// available]
    #[arg(long, value_name = "SIZE", value_parser = one::<PageSize>)]
    pub pages: Option<PageSize>,

    /// Set the length of a window
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = values::window)]
    pub window: Duration,

    /// Measure this many windows of a point in a round
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = |text: &str| count::<u32>(text, 1..=100_000))]
    pub windows: u32,

    /// Wait at most this long for a stable bandwidth; points that are unstable then are marked
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = values::settle)]
    pub settle: Duration,

    /// Pin the pointer chase to this CPU [default: one that runs little else]
    #[arg(long, value_name = "CPU", value_parser = cpu, help_heading = "Machine")]
    pub chase_cpu: Option<usize>,

    /// Pin generators to these CPUs: 3, or 0-3,8 [default: all other cores, of all packages]
    #[arg(long, value_name = "LIST", help_heading = "Machine", value_parser = values::cpus)]
    pub generators: Option<CpuSet>,

    /// Bind all buffers to this NUMA node, with or without CPUs [default: the node of each thread]
    #[arg(long, value_name = "NODE",
          value_parser = |text: &str| number::<u32>(text, 0..=1023), help_heading = "Machine")]
    pub memory_node: Option<u32>,

    /// Measure the CPUs of each NUMA node with the memory of each, a point for each pair: chase and generators run on the
    /// CPUs of one node (hcabench plot matrix). Pairs that cannot be measured are in left_out.csv
    #[arg(long, conflicts_with_all = ["chase_cpu", "generators", "memory_node"], help_heading = "Machine")]
    pub node_pairs: bool,

    /// Measure bandwidth by: auto (counters of the memory controllers, if they can be read), uncore (these, or an
    /// error), software (only the accesses are counted)
    #[arg(long, value_name = "SOURCE", default_value = "auto", help_heading = "Machine", value_parser = one::<Bandwidth>)]
    pub bandwidth: Bandwidth,

    /// Count what memory controllers read by this event of perf, on a processor whose events are not known:
    /// DEVICE/EVENT or DEVICE/EVENT/BYTES of a count; a * in DEVICE stands for any text; may be repeated
    #[arg(long, value_name = "EVENT", requires = "write_event", help_heading = "Machine",
          value_parser = |text: &str| text.parse::<ChosenEvent>())]
    pub read_event: Vec<ChosenEvent>,

    /// Count what they write by this event
    #[arg(long, value_name = "EVENT", requires = "read_event", help_heading = "Machine",
          value_parser = |text: &str| text.parse::<ChosenEvent>())]
    pub write_event: Vec<ChosenEvent>,

    /// Leave out windows by: mad (median absolute deviation), sigma3, none
    #[arg(long, value_name = "RULE", default_value = "mad", help_heading = "Analysis", value_parser = one::<Outliers>)]
    pub outliers: Outliers,

    /// Smooth the latencies of a curve in the order of load: savgol:WINDOW:ORDER (Savitzky-Golay), none
    #[arg(long, value_name = "FILTER", default_value = "savgol:11:3", help_heading = "Analysis", value_parser = values::smoothing)]
    pub smooth: Smoothing,

    /// Set the seed of the order of the chase
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, help_heading = "Analysis")]
    pub seed: u64,

    /// Where results go, and how they are shown.
    #[command(flatten)]
    pub output: OutputArguments,

    /// How often, how long and from where the sweep is run.
    #[command(flatten)]
    pub sweep: SweepArguments,
}

impl MemoryArguments {
    /// Rounds where none are asked for.
    pub(crate) const DEFAULT_ROUNDS: u32 = 3;

    /// What is to be measured.
    pub(crate) fn assignment(&self) -> Assignment {
        let config = Config {
            instruction_set: self.isa.0,
            page: self.pages,
            chase_cpu: self.chase_cpu,
            generators: self.generators.clone(),
            memory_node: self.memory_node,
            bandwidth: self.bandwidth,
            events: ChosenEvents {
                read: self.read_event.clone(),
                written: self.write_event.clone(),
            },
            settle: self.settle,
            windows: self.windows,
            window: self.window,
            outliers: self.outliers,
            smooth: self.smooth,
            seed: self.seed,
        };
        let sweep = Sweep {
            read_shares: self.read_share.0.clone(),
            stores: self.store.0.clone(),
            pauses: self.pause.0.clone(),
            node_pairs: self.node_pairs,
            sizes: self
                .size
                .as_ref()
                .map_or_else(Vec::new, |sizes| sizes.0.clone()),
        };
        Assignment::Memory(config, sweep)
    }
}

/// Runs the benchmark. Returns the exit code.
///
/// # Errors
/// [`UsageError`](crate::arguments::UsageError) for bad input, others when it cannot be measured.
pub(crate) fn run(arguments: &MemoryArguments) -> anyhow::Result<u8> {
    let named = |events: &[ChosenEvent]| {
        let events: Vec<String> = events.iter().map(ChosenEvent::to_string).collect();
        (!events.is_empty()).then(|| events.join(" "))
    };
    let mut run = Record::new();
    run.set(
        &columns::PAGES_ASKED,
        arguments.pages.map_or("largest", PageSize::name),
    )
    .set(&columns::BANDWIDTH, arguments.bandwidth.name())
    .set(&columns::READ_EVENT, named(&arguments.read_event))
    .set(&columns::WRITE_EVENT, named(&arguments.write_event))
    .set(&columns::SEED, arguments.seed);
    driver::run(Request {
        find_rate: None,
        sweep: &arguments.sweep,
        output: &arguments.output,
        assignment: arguments.assignment(),
        default_rounds: MemoryArguments::DEFAULT_ROUNDS,
        run,
        needs: Needs::of_memory_load(),
        view: present::VIEW,
    })
}
