//! `hcabench cores`: cache lines between CPUs.

mod present;
mod values;

pub(super) use self::present::VIEW;
use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::memory::values::cpus;
use crate::arguments::UsageError;
use crate::arguments::values::one;
use crate::bench::Assignment;
use crate::bench::cores::all_pairs::{Advised, AllPairs, advised};
use crate::bench::cores::config::{Config, DEFAULT_ROUNDS, LineNode};
use crate::bench::cores::plan::UNKNOWN;
use crate::driver;
use crate::driver::Request;
use crate::driver::arguments::SweepArguments;
use crate::host::machine_name::machine_name;
use crate::host::readiness::Needs;
use crate::host::{CpuSet, Topology};
use crate::results::Record;
use crate::results::schema::cores as columns;
use crate::results::text::printable_path;
use crate::terminal::output::OutputArguments;
use crate::time::ClockKind;

/// Arguments of `hcabench cores`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CoresArguments {
    /// Measure the pairs of these CPUs: 0-3,8 [default: all that this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<CpuSet>,

    /// Measure a pair for this time in a round, both directions together
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = values::duration)]
    pub duration: Duration,

    /// Place lines on this NUMA node: writer (that of the CPU that writes a line), reader (that of the CPU that reads
    /// it), or the number of a node, with or without CPUs
    #[arg(long, value_name = "NODE", default_value = "writer", value_parser = values::node, help_heading = "Machine")]
    pub memory_node: LineNode,

    /// Take stamps by this clock: monotonic, monotonic-raw, tsc (counter on aarch64) [default: tsc or counter where it
    /// can be trusted, else monotonic]
    #[arg(long, value_name = "CLOCK", value_parser = one::<ClockKind>, help_heading = "Machine")]
    pub clock: Option<ClockKind>,

    /// Where results go, and how they are shown.
    #[command(flatten)]
    pub output: OutputArguments,

    /// How often, how long and from where the sweep is run.
    #[command(flatten)]
    pub sweep: SweepArguments,
}

impl CoresArguments {
    /// What is to be measured.
    pub(crate) fn assignment(&self) -> Assignment {
        Assignment::Cores(Config {
            cpus: self.cpus.clone(),
            duration: self.duration,
            memory_node: self.memory_node,
            clock: self.clock.unwrap_or_else(ClockKind::finest),
        })
    }
}

/// The CPUs of a sender and a receiver that suit them best by the results in a folder.
///
/// # Errors
/// [`UsageError`] where they are not whole, or of another machine, or have no pair that this process may use.
pub(crate) fn fastest_pair(folder: &Path) -> anyhow::Result<[usize; 2]> {
    let refused = |why: &str| UsageError(format!("--cores-from {}: {why}", printable_path(folder)));
    let mut pairs = AllPairs::salvage(folder).map_err(|error| refused(&error.to_string()))?;
    let (here, _) = machine_name();
    let measured = pairs.hostname().unwrap_or_default();
    if measured != here {
        let why = format!(
            "it was measured on {measured:?}, and this is {here:?}: run hcabench cores here"
        );
        return Err(refused(&why).into());
    }
    if let Some(reason) = &pairs.incomplete {
        let why = format!("it is incomplete ({reason}): run hcabench cores again");
        return Err(refused(&why).into());
    }
    let topology = Topology::read()?;
    let allowed = topology.allowed();
    let fastest = pairs.fastest(Some(&allowed));
    if let Some(damage) = pairs.damaged.first() {
        let why = format!("it is damaged ({damage}): run hcabench cores again");
        return Err(refused(&why).into());
    }
    if let Some(cpu) = pairs.changed_cpu(&topology) {
        let why = format!(
            "the kernel reports CPU {cpu} otherwise than it did then (core, caches, node or socket): run hcabench cores \
             again"
        );
        return Err(refused(&why).into());
    }
    let best = advised(&fastest).ok_or_else(|| {
        refused(&format!(
            "it has no pair on two cores of the CPUs that this process may use ({allowed}): allow it more, or run \
             hcabench cores again"
        ))
    })?;
    Ok(of_two_cores(best).map_err(|why| refused(&why))?)
}

/// The CPUs of a pair, unless they may share a core.
fn of_two_cores(best: &Advised) -> Result<[usize; 2], String> {
    let [one, other] = best.cpus;
    match best.cores == UNKNOWN {
        true => Err(format!(
            "the kernel does not report whether CPUs {one} and {other} share a core: choose CPUs by --sender-cpu and \
             --receiver-cpu"
        )),
        false => Ok(best.cpus),
    }
}

/// Runs the benchmark. Returns the exit code.
///
/// # Errors
/// [`UsageError`] for bad input, others when it cannot be measured.
pub(crate) fn run(arguments: &CoresArguments) -> anyhow::Result<u8> {
    let cpus = arguments.cpus.as_ref().map(CpuSet::to_string);
    let clock = arguments.clock.unwrap_or_else(ClockKind::finest);
    let mut run = Record::new();
    run.set(&columns::CPUS, cpus)
        .set(&columns::DURATION, arguments.duration.as_nanos() as u64)
        .set(&columns::MEMORY_NODE, arguments.memory_node.to_string())
        .set(&columns::CLOCK, clock.name());
    driver::run(Request {
        find_rate: None,
        sweep: &arguments.sweep,
        output: &arguments.output,
        assignment: arguments.assignment(),
        default_rounds: DEFAULT_ROUNDS,
        run,
        needs: Needs::of_memory_load(),
        view: present::VIEW,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn a_pair_that_may_share_a_core_is_not_chosen() {
        let pair = |cores: &str| {
            of_two_cores(&Advised {
                cores: cores.to_owned(),
                cpus: [2, 3],
                half_ns: 50.0,
            })
        };
        assert_eq!(pair("other-core"), Ok([2, 3]));
        pair(UNKNOWN)
            .unwrap_err()
            .has(&["CPUs 2 and 3", "--sender-cpu"]);
    }
}
