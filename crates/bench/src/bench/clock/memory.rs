//! Whether what a watch keeps fits into the memory that this process may take: all differences, and the jumps.

use crate::buffer::Bytes;
use crate::host::cgroup;
use crate::host::memory_lock::{MemoryLock, available_memory};
use crate::rig::memory::{Allowance, MemoryNeed};

use super::config::{BYTES_PER_READING, Causes, Config};
use super::error::RunError;
use super::jump::JumpStore;
use super::trace;

/// Of the memory that is available, all differences may take so much at the most.
const MOST_OF_MEMORY: f64 = 0.8;

/// Refuses to keep so many differences of each CPU where there is no memory for them.
pub(super) fn differences_fit(config: &Config, readings: u64) -> Result<(), RunError> {
    let cpus = config.cpus.len();
    let needed = readings
        .saturating_mul(BYTES_PER_READING)
        .saturating_mul(cpus as u64);
    let machine = available_memory().unwrap_or(u64::MAX);
    let group = cgroup::memory_limit().map_or(u64::MAX, |limit| limit.free);
    let available = machine.min(group);
    if needed as f64 > available as f64 * MOST_OF_MEMORY {
        return Err(RunError::Memory {
            readings,
            cpus,
            needed: Bytes(needed),
            available: Bytes(available),
        });
    }
    let lock = MemoryLock::read()?;
    lock.require(needed).map_err(RunError::Lock)
}

/// Whether the jumps that may be kept fit into the memory that this process may take.
pub(super) fn jumps_fit(config: &Config) -> Result<(), RunError> {
    let cpus = config.cpus.len();
    let bytes = JumpStore::bytes(config.kept_jumps()).saturating_mul(cpus as u64);
    if let Some(allowance) = Allowance::of_this_process() {
        let of_trace = match config.causes {
            Causes::Trace => trace::bytes(cpus),
            _ => 0,
        };
        let need = |what, bytes| MemoryNeed { what, bytes };
        let needs = [need("the jumps", bytes), need("the trace", of_trace)];
        let fit = allowance.bytes / JumpStore::bytes(1_000_000).div_ceil(1_000_000) / cpus as u64;
        let options = format!("--keep-jumps {} on {cpus} CPUs", config.kept_jumps());
        let advice = format!("keep 2 to about {fit}, or watch fewer CPUs");
        let fits = allowance.require(&needs, &options, &advice);
        fits.map_err(|error| RunError::Rig(error.into()))?;
    }
    // What ulimit -v refuses is refused now, as nothing is measured yet.
    let mut trial = Vec::<u8>::new();
    let tried = trial.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX));
    tried.map_err(|_| RunError::Jumps {
        keep: config.kept_jumps(),
    })
}
