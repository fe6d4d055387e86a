//! Locking what is there, in a process of its own.

use hcabench::host::memory_lock::{self, MemoryLock};

fn locked() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmLck:"));
    line.unwrap()
        .split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn what_is_there_is_locked_and_what_comes_later_is_not() {
    const SIZE: usize = 4 << 20;
    let limit = MemoryLock::raise().unwrap();
    let _there = memmap2::MmapMut::map_anon(SIZE).unwrap();
    let is_permitted = limit.permits(memory_lock::address_space_size().unwrap());
    assert_eq!(memory_lock::lock_present(), is_permitted);
    let first = locked();
    assert_eq!(first >= SIZE as u64 / 1024, is_permitted, "{first}");
    let _later = memmap2::MmapMut::map_anon(SIZE).unwrap();
    assert_eq!(locked(), first);
}
