//! Locking all memory of a process, in a process of its own.

use hcabench::host::HostError;
use hcabench::host::memory_lock::{self, MemoryLock};
use nix::sys::resource::{UsageWho, getrusage};

const SIZE: usize = 4 << 20;

#[test]
fn what_is_mapped_after_lock_all_has_no_page_faults_or_the_limit_is_told() {
    let before = MemoryLock::read().unwrap();
    let lock = MemoryLock::raise().unwrap();
    assert_eq!((lock.soft, lock.hard), (before.hard, before.hard));

    match memory_lock::lock_all() {
        Ok(()) => {
            let mut map = memmap2::MmapMut::map_anon(SIZE).unwrap();
            let faults = || {
                let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
                usage.minor_page_faults() + usage.major_page_faults()
            };
            let start = faults();
            for byte in map.iter_mut().step_by(4096) {
                *std::hint::black_box(byte) = 1;
            }
            assert_eq!(faults() - start, 0);
        }
        Err(HostError::MemoryLockLimit { advice, .. }) => {
            assert!(!lock.permits(memory_lock::address_space_size().unwrap()));
            assert!(advice.contains("ulimit -l"), "{advice}");
        }
        Err(other) => panic!("{other}"),
    }
}
