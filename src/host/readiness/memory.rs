//! What memory can be had, and what the kernel does to it behind a program's back.

use super::{Check, Facts, subject};
use crate::host::memory_lock::in_units;

pub(super) fn huge_pages(facts: &Facts) -> Option<Check> {
    let title = "huge pages, 2 MiB";
    let needed = facts.needs.huge_pages;
    let Some(pages) = facts.fingerprint.memory.huge_pages else {
        return subject("huge_pages", title, "none in this kernel")
            .advise("buffers come from pages of 4 KiB, with more TLB misses: use a kernel with CONFIG_HUGETLBFS");
    };
    let available = pages.available();
    let subject = subject(
        "huge_pages",
        title,
        format!("{available} free of {}, {needed} wanted", pages.total),
    );
    if available + pages.overcommit >= needed {
        return subject.good();
    }
    subject.advise(format!(
        "buffers come from pages of 4 KiB, with more TLB misses: sysctl vm.nr_hugepages={}",
        pages.total + needed - available
    ))
}

pub(super) fn lock_limit(facts: &Facts) -> Option<Check> {
    let lock = &facts.memory_lock;
    let needed = facts.needs.locked_bytes;
    let mut found = lock.soft.to_string();
    if lock.above_limit && !lock.soft.permits(u64::MAX) {
        found += ", which CAP_IPC_LOCK overrides";
    } else if !lock.permits(needed) {
        found += &format!(", {} needed", in_units(needed));
    }
    let subject = subject("memlock", "memlock limit", found);
    if lock.permits(needed) {
        subject.good()
    } else {
        subject.spoils(lock.how_to_raise(needed))
    }
}

pub(super) fn transparent_huge_pages(facts: &Facts) -> Option<Check> {
    let title = "transparent huge pages";
    let id = "transparent_huge_pages";
    match facts.fingerprint.memory.transparent_huge_pages.as_deref()? {
        "never" => subject(id, title, "never").good(),
        "madvise" => subject(id, title, "where asked for (madvise)").good(),
        _ => subject(id, title, "always").advise(
            "the kernel moves memory to make them, and threads wait for it: \
             echo madvise > /sys/kernel/mm/transparent_hugepage/enabled as root",
        ),
    }
}

pub(super) fn swap(facts: &Facts) -> Option<Check> {
    let bytes = |key: &str| facts.files.kibibytes("proc/meminfo", key);
    let (total, free) = (bytes("SwapTotal")?, bytes("SwapFree")?);
    if total == 0 {
        return subject("swap", "swap", "none").good();
    }
    let used = total.saturating_sub(free);
    if used == 0 {
        return subject("swap", "swap", format!("{}, unused", in_units(total))).good();
    }
    subject("swap", "swap", format!("{} of {} used", in_units(used), in_units(total))).advise(
        "the measurement's memory is locked, but the machine was short of memory, and disks are busy then: swapoff -a",
    )
}

/// None where there is one node only, or the kernel cannot do it.
pub(super) fn numa_balancing(facts: &Facts) -> Option<Check> {
    if facts.topology.numa_nodes().len() < 2 {
        return None;
    }
    let title = "NUMA balancing";
    match facts
        .files
        .number::<u32>("proc/sys/kernel/numa_balancing")?
    {
        0 => subject("numa_balancing", title, "off").good(),
        _ => subject("numa_balancing", title, "on").advise(
            "the kernel unmaps pages to see who touches them, which is page faults in hot loops: \
             sysctl kernel.numa_balancing=0",
        ),
    }
}
