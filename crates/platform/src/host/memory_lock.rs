//! Locking memory, so that no page of it is ever missing, and the limit on that.
//!
//! The same limit (RLIMIT_MEMLOCK) bounds what may be registered with an RDMA device. A process with CAP_IPC_LOCK is
//! above it.

use super::error::HostError;
use super::system_files::SystemFiles;
use bytesize::ByteSize;
use nix::errno::Errno;
use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use serde::{Serialize, Serializer};
use std::fmt;

/// A limit in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub u64);

impl Limit {
    /// As many as there are.
    pub const UNLIMITED: Self = Self(RLIM_INFINITY);

    /// Whether `bytes` fit.
    pub fn permits(self, bytes: u64) -> bool {
        bytes <= self.0
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UNLIMITED => f.write_str("unlimited"),
            Self(bytes) => f.write_str(&in_units(bytes)),
        }
    }
}

impl Serialize for Limit {
    /// The number of bytes, or the text "unlimited".
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::UNLIMITED => serializer.serialize_str("unlimited"),
            Self(bytes) => serializer.serialize_u64(bytes),
        }
    }
}

/// How much memory this process may lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryLock {
    /// The limit in force.
    pub soft: Limit,
    /// How far the process may raise it by itself.
    pub hard: Limit,
    /// Whether the process has CAP_IPC_LOCK, to which the limit does not apply.
    pub above_limit: bool,
}

impl MemoryLock {
    /// The limit of this process.
    pub fn read() -> Result<Self, HostError> {
        let operation = "getrlimit(RLIMIT_MEMLOCK)";
        let failed = HostError::system(operation, "this process", "see man 2 getrlimit");
        let (soft, hard) = getrlimit(Resource::RLIMIT_MEMLOCK).map_err(failed)?;
        let status = SystemFiles::of_this_machine().field("proc/self/status", "CapEff", ':');
        Ok(Self {
            soft: Limit(soft),
            hard: Limit(hard),
            above_limit: status.is_some_and(|mask| has_capability(&mask, CAP_IPC_LOCK)),
        })
    }

    /// Whether `bytes` can be locked by this process as it is.
    pub fn permits(&self, bytes: u64) -> bool {
        self.above_limit || self.soft.permits(bytes)
    }

    /// What the limit is and what to do, if this process cannot lock so much more than it has locked.
    pub fn missing(more: u64) -> Option<String> {
        let locked = SystemFiles::of_this_machine().kibibytes("proc/self/status", "VmLck");
        Self::read().ok()?.refuses(more, locked.unwrap_or(0))
    }

    fn refuses(&self, more: u64, locked: u64) -> Option<String> {
        if self.permits(locked.saturating_add(more)) {
            return None;
        }
        let (limit, locked) = (self.soft, in_units(locked));
        Some(format!(
            "ulimit -l is {limit}, of which {locked} are locked: raise it with ulimit -l, or ask for less"
        ))
    }

    /// Checks that `bytes`, all that is to be locked together, can be locked.
    ///
    /// # Errors
    /// [`HostError::MemoryLockLimit`] if not, with the command that raises the limit.
    pub fn require(&self, bytes: u64) -> Result<(), HostError> {
        if self.permits(bytes) {
            return Ok(());
        }
        Err(HostError::MemoryLockLimit {
            limit: self.soft.to_string(),
            needed: in_units(bytes),
            advice: self.how_to_raise(bytes),
        })
    }

    /// What to do so that `bytes` can be locked.
    pub fn how_to_raise(&self, bytes: u64) -> String {
        // The unit of ulimit -l.
        let kibibytes = bytes.div_ceil(1024);
        if self.hard.permits(bytes) {
            format!("raise it with ulimit -l {kibibytes} in this shell")
        } else {
            format!(
                "raise it with ulimit -l {kibibytes} as root (the hard limit is {}), or for each login by the line \
                 \"* - memlock unlimited\" in /etc/security/limits.d/memlock.conf",
                self.hard
            )
        }
    }

    /// Raises the soft limit to the hard limit, for which no privilege is needed, and returns the limits then in force.
    pub fn raise() -> Result<Self, HostError> {
        let advice = "raise it with ulimit -l before the program starts";
        let failed = HostError::system("setrlimit(RLIMIT_MEMLOCK)", "this process", advice);
        let raised = getrlimit(Resource::RLIMIT_MEMLOCK)
            .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_MEMLOCK, hard, hard));
        raised.map_err(failed)?;
        Self::read()
    }
}

/// Undoes [`lock_all`], for a process that measures no more: memory that it takes later is under no limit of locks.
pub fn unlock_all() {
    // Fails for no process that is not locked by others.
    let _ = munlockall();
}

/// Stacks of the threads to come, in bytes: mlockall counts the whole address space.
const STACKS: u64 = 5 * (2 << 20);

/// Locks all memory that there is and that will be, if so much more than there is now may be locked.
///
/// # Errors
/// When the limit allows less.
pub fn lock_with(more: u64) -> Result<(), HostError> {
    let already = address_space_size().unwrap_or(0);
    let limit = MemoryLock::raise().or_else(|_| MemoryLock::read())?;
    limit.require((already + STACKS).saturating_add(more))?;
    lock_all()
}

/// Locks all memory of the process, what is mapped now and what will be (`mlockall`).
///
/// Counted against the limit is the whole address space ([`address_space_size`]), also what was never touched.
pub fn lock_all() -> Result<(), HostError> {
    let locked = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE);
    if matches!(locked, Err(Errno::ENOMEM | Errno::EPERM)) {
        MemoryLock::read()?.require(address_space_size().unwrap_or(0))?;
    }
    let advice = "free memory for all that the process has mapped";
    let object = "all memory of this process";
    locked.map_err(HostError::system("mlockall", object, advice))
}

/// Locks what the process has mapped now, and nothing that it maps later; it is touched if it was not. Returns whether
/// the kernel permitted it: the limit is as that of [`lock_all`].
pub fn lock_present() -> bool {
    mlockall(MlockAllFlags::MCL_CURRENT).is_ok()
}

/// The size of the address space of this process in bytes (VmSize), which is what [`lock_all`] locks.
pub fn address_space_size() -> Option<u64> {
    SystemFiles::of_this_machine().kibibytes("proc/self/status", "VmSize")
}

/// The memory of the machine in bytes (MemTotal).
pub fn physical_memory() -> Option<u64> {
    SystemFiles::of_this_machine().kibibytes("proc/meminfo", "MemTotal")
}

/// The memory available without swapping, in bytes (MemAvailable).
pub fn available_memory() -> Option<u64> {
    SystemFiles::of_this_machine().kibibytes("proc/meminfo", "MemAvailable")
}

/// Bit of CAP_IPC_LOCK in a capability mask (`linux/capability.h`).
const CAP_IPC_LOCK: u32 = 14;

/// Whether a mask as /proc/self/status shows it holds a capability.
pub(crate) fn has_capability(mask: &str, capability: u32) -> bool {
    u64::from_str_radix(mask, 16).is_ok_and(|mask| mask >> capability & 1 == 1)
}

/// Bytes in the largest binary unit, without a fraction of zero: "8 MiB".
pub(crate) fn in_units(bytes: u64) -> String {
    let text = ByteSize::b(bytes).display().iec().to_string();
    text.replace(".0 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_refused_with_what_to_type() {
        const UNLIMITED: Limit = Limit::UNLIMITED;
        const LIMIT: u64 = 8 << 20;
        const MORE: u64 = 17 << 20;
        let soft = Limit(LIMIT);
        let here = "raise it with ulimit -l 17408 in this shell";
        let root = "raise it with ulimit -l 17409 as root (the hard limit is 8 MiB), or for each";
        for (soft, hard, above_limit, bytes, told) in [
            (soft, UNLIMITED, false, LIMIT, None),
            (soft, UNLIMITED, false, MORE, Some(("8 MiB", here))),
            (Limit(65536), soft, false, MORE + 1, Some(("64 KiB", root))),
            (UNLIMITED, UNLIMITED, false, u64::MAX, None),
            (Limit(0), Limit(0), true, u64::MAX, None),
        ] {
            let lock = MemoryLock {
                soft,
                hard,
                above_limit,
            };
            let refused = lock.require(bytes).map_err(|error| error.to_string());
            let told = told.map(|(limit, advice)| {
                format!("memlock limit is {limit}, 17 MiB are needed: {advice}")
            });
            match (refused, told) {
                (Err(error), Some(told)) => assert!(error.starts_with(&told), "{error}"),
                (refused, told) => assert_eq!((refused, told), (Ok(()), None)),
            }
        }
    }

    #[test]
    fn what_is_locked_counts_against_the_limit() {
        let of = |soft, above_limit, more| {
            let hard = Limit::UNLIMITED;
            let lock = MemoryLock {
                soft,
                hard,
                above_limit,
            };
            lock.refuses(more, 7 << 20)
        };
        let limit = Limit(8 << 20);
        assert_eq!(of(limit, false, 1 << 20), None);
        assert_eq!(of(limit, true, u64::MAX), None);
        assert_eq!(of(Limit::UNLIMITED, false, u64::MAX), None);
        for more in [(1 << 20) + 1, u64::MAX] {
            let text = of(limit, false, more).unwrap();
            assert!(
                text.starts_with("ulimit -l is 8 MiB, of which 7 MiB are locked: "),
                "{text}"
            );
        }
    }

    #[test]
    fn capabilities_are_read_from_the_mask() {
        assert!(has_capability("000001fffeffffff", CAP_IPC_LOCK));
        assert!(has_capability("0000000000004000", CAP_IPC_LOCK));
        assert!(!has_capability("0000000000003fff", CAP_IPC_LOCK));
        assert!(!has_capability("", CAP_IPC_LOCK));
    }

    #[test]
    fn the_limit_read_is_the_one_in_force() {
        let text = std::fs::read_to_string("/proc/self/limits").unwrap();
        let mut limits = text
            .lines()
            .filter_map(|line| line.strip_prefix("Max locked memory"));
        let soft = limits.next().unwrap().split_whitespace().next().unwrap();
        let found = serde_json::to_string(&MemoryLock::read().unwrap().soft).unwrap();
        assert_eq!(found.trim_matches('"'), soft);
    }

    #[test]
    fn the_address_space_holds_a_new_mapping() {
        // Large against what other tests map and unmap meanwhile.
        const SIZE: usize = 16 << 30;
        let before = address_space_size().unwrap();
        let mut options = memmap2::MmapOptions::new();
        let _map = options.len(SIZE).no_reserve_swap().map_anon().unwrap();
        let after = address_space_size().unwrap();
        let wrong = after.saturating_sub(before).abs_diff(SIZE as u64);
        assert!(wrong < SIZE as u64 / 8, "{before} then {after}");
    }
}
