//! Huge pages in a process that has locked all memory to come, in a process of its own.

use hcabench::buffer::{Bytes, HUGE_PAGE, HugeBuffer, HugePagePolicy, PageKind};
use hcabench::host::memory_lock::{self, MemoryLock};

const SIZE: u64 = 4 * HUGE_PAGE as u64;

/// Bytes of this process in transparent huge pages.
fn transparent() -> u64 {
    let file = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = file.lines().find(|line| line.starts_with("AnonHugePages:"));
    let kib = line.unwrap().split_ascii_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() * 1024
}

#[test]
fn transparent_huge_pages_come_although_all_memory_to_come_is_locked() {
    let modes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let is_possible = modes.is_ok_and(|modes| !modes.contains("[never]"));
    let limit = MemoryLock::raise().unwrap();
    let needed = memory_lock::address_space_size().unwrap() + 3 * SIZE;
    assert!(limit.permits(needed), "{}", limit.how_to_raise(needed));
    memory_lock::lock_all().unwrap();

    let before = transparent();
    let small = HugeBuffer::new(Bytes(SIZE), HugePagePolicy::Off).unwrap();
    assert_eq!(small.page_kind(), PageKind::Small);
    assert_eq!(transparent(), before);

    let buffer = HugeBuffer::new(Bytes(SIZE), HugePagePolicy::Try).unwrap();
    let obtained = transparent() - before;
    let kind = buffer.page_kind();
    // Reserved ones come first. Where the kernel joins no pages, they are said to be small.
    let expected = if kind == PageKind::Huge {
        (kind, 0)
    } else if is_possible {
        (PageKind::TransparentHuge, SIZE)
    } else {
        (PageKind::Small, 0)
    };
    assert_eq!(
        (kind, obtained),
        expected,
        "memory may be in pieces: sysctl vm.compact_memory=1"
    );
    assert_eq!(buffer.as_ptr() as usize % HUGE_PAGE, 0);
}
