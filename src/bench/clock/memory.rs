//! Whether what a watch keeps fits into the memory that this process may take: all differences, and the jumps.

use crate::buffer::Bytes;
use crate::host::cgroup;
use crate::host::memory_lock::{MemoryLock, available_memory};
use crate::rig::memory::{Allowance, Need};

use super::config::{Config, Report};
use super::error::RunError;
use super::jump::JumpStore;

/// Of the memory that is available, all differences may take so much at the most.
const MOST_OF_MEMORY: f64 = 0.8;
/// As much as they may take where counting them will do as well.
const MOST_OF_MEMORY_UNASKED: f64 = 0.25;
const BYTES_PER_READING: u64 = 4;

/// How many differences of each CPU there is to be memory for, if they are wanted and can be kept; else a note says
/// why they are counted.
pub(super) fn room(
    config: &Config,
    readings: u64,
    notes: &mut Vec<String>,
) -> Result<Option<u64>, RunError> {
    if !config.wants(Report::Percentiles) {
        return Ok(None);
    }
    let cpus = config.cpus.len();
    let needed = readings
        .saturating_mul(BYTES_PER_READING)
        .saturating_mul(cpus as u64);
    let machine = available_memory().unwrap_or(u64::MAX);
    let group = cgroup::memory_limit().map_or(u64::MAX, |limit| limit.free);
    let available = machine.min(group);
    let lock = MemoryLock::read()?;
    if config.keep_all {
        if needed as f64 > available as f64 * MOST_OF_MEMORY {
            return Err(RunError::Memory {
                readings,
                cpus,
                needed: Bytes(needed),
                available: Bytes(available),
            });
        }
        lock.require(needed).map_err(RunError::Lock)?;
        return Ok(Some(readings));
    }
    let short_of = if needed as f64 > available as f64 * MOST_OF_MEMORY_UNASKED {
        format!("a quarter of the memory available ({})", Bytes(available))
    } else if !lock.permits(needed) {
        format!("the memlock limit ({})", lock.soft)
    } else {
        return Ok(Some(readings));
    };
    notes.push(format!(
        "to keep {readings} differences on each CPU would take {}, more than {short_of}: they are counted instead, \
         to 0.1 %, and exactly below 4096 ticks where the baseline is; --report percentiles alone insists on that memory",
        Bytes(needed)
    ));
    Ok(None)
}

/// Whether the jumps that may be kept fit into the memory that this process may take.
pub(super) fn jumps_fit(config: &Config) -> Result<(), RunError> {
    let cpus = config.cpus.len();
    let bytes = JumpStore::bytes(config.keep).saturating_mul(cpus as u64);
    if let Some(allowance) = Allowance::of_this_process() {
        let needs = [Need {
            what: "the jumps",
            bytes,
        }];
        let fit = allowance.bytes / JumpStore::bytes(1_000_000).div_ceil(1_000_000) / cpus as u64;
        let options = format!("--keep-jumps {} on {cpus} CPUs", config.keep);
        let advice = format!("keep 2 to about {fit}, or watch fewer CPUs");
        let fits = allowance.require(&needs, &options, &advice);
        fits.map_err(|error| RunError::Rig(error.into()))?;
    }
    // What ulimit -v refuses is refused now, as nothing is measured yet.
    let mut trial = Vec::<u8>::new();
    let tried = trial.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX));
    tried.map_err(|_| RunError::Jumps { keep: config.keep })
}
