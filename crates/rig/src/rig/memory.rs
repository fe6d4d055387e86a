//! Whether a run's memory fits before it begins: into the machine, and into the control group it runs in.

use std::path::PathBuf;

use crate::buffer::Bytes;
use crate::host::{cgroup, memory_lock};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryNeed {
    /// What it is, in words: `both message buffers`.
    pub what: &'static str,
    pub bytes: u64,
}

/// What a run may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    pub bytes: u64,
    /// The file of the control group that sets the limit, if it is that.
    pub group: Option<PathBuf>,
}

impl Allowance {
    /// What this machine and the control group of this process allow: half of the machine's memory, and nine tenths of
    /// what is left of the group's. `None` where neither is known.
    pub fn of_this_process() -> Option<Self> {
        let machine = memory_lock::physical_memory().map(|total| Allowance {
            bytes: total / 2,
            group: None,
        });
        let group = cgroup::memory_limit().map(|limit| Allowance {
            bytes: limit.free / 10 * 9,
            group: Some(limit.file),
        });
        machine.into_iter().chain(group).min_by_key(|one| one.bytes)
    }

    /// Refuses needs that do not fit. `options`: those that decide, with their values, as `--burst 8192 with --repeat
    /// 100`; `advice`: what to do.
    pub fn require(
        &self,
        needs: &[MemoryNeed],
        options: &str,
        advice: &str,
    ) -> Result<(), MemoryLimitError> {
        let needed = needs.iter().map(|need| need.bytes);
        let needed = needed.fold(0, u64::saturating_add);
        if needed <= self.bytes {
            return Ok(());
        }
        let largest = needs.iter().max_by_key(|need| need.bytes);
        Err(MemoryLimitError {
            options: options.to_owned(),
            needed: Bytes(needed),
            mostly: largest.map_or("", |need| need.what),
            allowed: Bytes(self.bytes),
            by: match &self.group {
                Some(file) => format!("what is left of the limit in {}", file.display()),
                None => "half of this machine's memory".to_owned(),
            },
            advice: advice.to_owned(),
        })
    }
}

/// A run takes more memory than it may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{options} is impossible on this machine: it takes {needed} of memory, most of it for {mostly}; allowed is \
     {allowed}, {by}: {advice}"
)]
pub struct MemoryLimitError {
    /// The options that decide, with their values.
    pub options: String,
    pub needed: Bytes,
    pub mostly: &'static str,
    /// What it may take.
    pub allowed: Bytes,
    /// Whose limit that is.
    pub by: String,
    pub advice: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn all_needs_count_and_the_largest_is_named() {
        let allowance = Allowance {
            bytes: 100,
            group: Some("/sys/fs/cgroup/x/memory.max".into()),
        };
        let need = |what, bytes| MemoryNeed { what, bytes };
        let needs = [need("both message buffers", 60), need("results", 30)];
        assert_eq!(allowance.require(&needs, "--burst 8", "use less"), Ok(()));
        let needs = [need("both message buffers", 60), need("results", 41)];
        let refusal = allowance.require(&needs, "--burst 8", "use less");
        let told = [
            "--burst 8 is impossible",
            "both message buffers",
            "memory.max",
            "use less",
        ];
        refusal.refused(&told);
    }
}
