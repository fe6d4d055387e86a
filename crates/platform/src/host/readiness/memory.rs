//! Which memory is available, and what the kernel does to it without a program's request.

use super::{Assessment, Facts, ToAssessment, unknown};
use crate::host::memory_lock::in_units;

pub(super) fn huge_pages(facts: &Facts) -> Assessment {
    let needed = facts.needs.huge_pages;
    let Some(pages) = facts.fingerprint.memory.huge_pages else {
        return "none in this kernel"
            .advise("buffers come from pages of 4 KiB, with more TLB misses: use a kernel with CONFIG_HUGETLBFS");
    };
    let available = pages.available();
    let found = format!("{available} free of {}, {needed} wanted", pages.total);
    if available + pages.overcommit >= needed {
        return found.good();
    }
    found.advise(format!(
        "buffers come from pages of 4 KiB, with more TLB misses: sysctl vm.nr_hugepages={}",
        pages.total + needed - available
    ))
}

pub(super) fn lock_limit(facts: &Facts) -> Assessment {
    let lock = &facts.memory_lock;
    let needed = facts.needs.locked_bytes;
    let mut found = lock.soft.to_string();
    if lock.above_limit && !lock.soft.permits(u64::MAX) {
        found += ", which CAP_IPC_LOCK overrides";
    } else if !lock.permits(needed) {
        found += &format!(", {} needed", in_units(needed));
    }
    if lock.permits(needed) {
        found.good()
    } else if facts.files.processes().next().is_none() {
        format!("{found}; unknown whether CAP_IPC_LOCK overrides it: /proc cannot be read")
            .advise(lock.how_to_raise(needed))
    } else {
        found.spoils(lock.how_to_raise(needed))
    }
}

pub(super) fn transparent_huge_pages(facts: &Facts) -> Assessment {
    match facts.fingerprint.memory.transparent_huge_pages.as_deref()? {
        "never" => "never".good(),
        "madvise" => "where asked for (madvise)".good(),
        _ => "always".advise(
            "the kernel moves memory to make them, and threads wait for it: \
             echo madvise > /sys/kernel/mm/transparent_hugepage/enabled as root",
        ),
    }
}

pub(super) fn swap(facts: &Facts) -> Assessment {
    let bytes = |key: &str| facts.files.kibibytes("proc/meminfo", key);
    if facts.files.optional("proc/meminfo").is_none() {
        return unknown("proc/meminfo");
    }
    let (total, free) = (bytes("SwapTotal")?, bytes("SwapFree")?);
    if total == 0 {
        return "none".good();
    }
    let used = total.saturating_sub(free);
    if used == 0 {
        return format!("{}, unused", in_units(total)).good();
    }
    format!("{} of {} used", in_units(used), in_units(total)).advise(
        "the measurement's memory is locked, but the machine was short of memory, and disks are busy then: swapoff -a",
    )
}

/// None where there is one node only, or the kernel cannot do it.
pub(super) fn numa_balancing(facts: &Facts) -> Assessment {
    if facts.topology.numa_nodes().len() < 2 {
        return None;
    }
    match facts
        .files
        .number::<u32>("proc/sys/kernel/numa_balancing")?
    {
        0 => "off".good(),
        _ => "on".advise(
            "the kernel unmaps pages to see who touches them, which is page faults in hot loops: \
             sysctl kernel.numa_balancing=0",
        ),
    }
}
