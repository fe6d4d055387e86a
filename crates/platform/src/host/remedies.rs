//! What to do about an error of the system that is about a limit of this process.

use std::fs;
use std::io;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{SysconfVar, sysconf};

/// What to do about an error of the system that is about a limit, whatever was tried.
pub fn remedy(error: &io::Error) -> Option<String> {
    match error.raw_os_error()? {
        libc::EMFILE => {
            let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
            Some(format!(
                "this process may have {limit} files open: raise that with ulimit -n"
            ))
        }
        libc::ENFILE => Some("the machine has too many files open: raise fs.file-max".to_owned()),
        libc::ENOMEM => Some(memory_remedy(None)),
        _ => None,
    }
}

/// What to do where memory of that size could not be allocated.
pub fn memory_remedy(bytes: Option<u64>) -> String {
    if let Some(most) = mappings_reached() {
        return format!(
            "this process has as many mappings as vm.max_map_count allows, {most}: raise it"
        );
    }
    // Other threads may have given back what they had by now: a limit that is set is taken for the one that was reached,
    // unless it has room for that size beside all that there ever was.
    let ever = most_ever_taken();
    if let Some(space) = AddressSpace::of_this_process()
        && may_be_reached(space.most, bytes, ever)
    {
        return match bytes {
            Some(bytes) if space.left() < bytes => space.in_words(),
            _ => format!(
                "ulimit -v is {} KiB: raise it with ulimit -v, or ask for less",
                space.most >> 10
            ),
        };
    }
    if let Ok((data, _)) = getrlimit(Resource::RLIMIT_DATA)
        && data != libc::RLIM_INFINITY
        && may_be_reached(data, bytes, ever)
    {
        return format!(
            "ulimit -d is {} KiB: raise it with ulimit -d, or ask for less",
            data >> 10
        );
    }
    if fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|text| text.trim() == "2") {
        return "the kernel promises no more memory than it has (vm.overcommit_memory is 2): raise \
                vm.overcommit_ratio, or ask for less"
            .to_owned();
    }
    // A control group refuses no memory: the kernel ends who takes more than it allows.
    "the machine has too little memory: ask for less at a time".to_owned()
}

fn may_be_reached(most: u64, bytes: Option<u64>, ever_taken: u64) -> bool {
    bytes.is_none_or(|bytes| ever_taken.saturating_add(bytes) > most)
}

/// The most address space that this process has had, in bytes; all there is where that cannot be read.
fn most_ever_taken() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    peak_of(&status).unwrap_or(u64::MAX)
}

/// Of `/proc/self/status`.
fn peak_of(status: &str) -> Option<u64> {
    let peak = (status.lines()).find_map(|line| line.strip_prefix("VmPeak:"))?;
    let kibibytes: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The limit on the mappings of a process, if it is nearly reached.
fn mappings_reached() -> Option<usize> {
    let most = fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    let most: usize = most.trim().parse().ok()?;
    let maps = fs::read("/proc/self/maps").ok()?;
    let count = maps.iter().filter(|byte| **byte == b'\n').count();
    (count + 8 >= most).then_some(most)
}

/// `ulimit -v`, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressSpace {
    most: u64,
    taken: u64,
}

impl AddressSpace {
    /// Where it is limited.
    pub(super) fn of_this_process() -> Option<Self> {
        let (most, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
        if most == libc::RLIM_INFINITY {
            return None;
        }
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        Some(AddressSpace {
            most,
            taken: bytes_taken(&statm, page_size()),
        })
    }

    pub(super) fn left(&self) -> u64 {
        self.most.saturating_sub(self.taken)
    }

    pub(super) fn in_words(&self) -> String {
        format!(
            "ulimit -v is {} KiB, of which {} KiB are taken: raise it with ulimit -v, or ask for less",
            self.most >> 10,
            self.taken >> 10
        )
    }
}

/// Of `/proc/self/statm`; 0 where it cannot be read.
fn bytes_taken(statm: &str, page: u64) -> u64 {
    let pages = statm.split(' ').next().and_then(|text| text.parse().ok());
    page.saturating_mul(pages.unwrap_or(0))
}

pub(super) fn page_size() -> u64 {
    let found = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    found.map_or(4096, |bytes| bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_answered_by_its_own_limit() {
        let of = |errno| remedy(&io::Error::from_raw_os_error(errno));
        assert!(of(libc::EMFILE).unwrap().contains("ulimit -n"));
        assert!(of(libc::ENFILE).unwrap().contains("fs.file-max"));
        assert!(of(libc::ENOMEM).unwrap().contains("ask for less"));
        assert_eq!(of(libc::ENOENT), None);
    }

    #[test]
    fn a_limit_with_room_for_what_was_refused_is_not_named() {
        let status = "Name:\tx\nVmPeak:\t   14208 kB\nVmSize:\t   10000 kB\n";
        assert_eq!(peak_of(status), Some(14208 << 10));
        assert_eq!(peak_of("VmSize:\t 1 kB\n"), None);
        assert!(most_ever_taken() < u64::MAX);
        for (bytes, expected) in [(Some(10), false), (Some(11), true), (None, true)] {
            assert_eq!(may_be_reached(100, bytes, 90), expected, "{bytes:?}");
        }
        assert!(may_be_reached(100, Some(1), u64::MAX));
    }

    #[test]
    fn address_space_is_counted_in_pages_of_the_machine() {
        assert_eq!(bytes_taken("100 20 3 4 0 5 0", 64 << 10), 100 * (64 << 10));
        assert_eq!(bytes_taken("", 4096), 0);
        let space = AddressSpace {
            most: 20 << 20,
            taken: 19 << 20,
        };
        assert_eq!(space.left(), 1 << 20);
        let text = space.in_words();
        assert!(
            text.contains("ulimit -v is 20480 KiB, of which 19456 KiB"),
            "{text}"
        );
    }
}
