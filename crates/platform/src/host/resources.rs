//! The limits on threads, files and memory, in words: which of them an error of the system is about.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{SysconfVar, geteuid, sysconf};

use super::cgroup::{ControlGroups, MemoryLimit, memory_limit};
use super::error::HostError;

/// Address space of a thread with the stack that Rust gives it, and its guard.
pub const STACK: u64 = (2 << 20) + (64 << 10);

/// That of a thread of a C library: the limit on the stack of the main thread, where there is one (pthread_create(3)).
pub fn stack_of_libraries() -> u64 {
    match getrlimit(Resource::RLIMIT_STACK) {
        Ok((stack, _)) if stack != libc::RLIM_INFINITY => stack,
        _ => STACK,
    }
}

/// Memory that the program takes before it measures anything, with some to spare.
const LEAST_MEMORY: u64 = 28 << 20;

/// To be asked before anything is measured: the kernel kills who takes more than is left.
///
/// # Errors
/// When the control group of this process has too little memory to measure anything.
pub fn require_memory() -> Result<(), HostError> {
    refuse_memory(memory_limit())
}

fn refuse_memory(limit: Option<MemoryLimit>) -> Result<(), HostError> {
    let Some(limit) = limit.filter(|limit| limit.free < LEAST_MEMORY) else {
        return Ok(());
    };
    Err(HostError::Shortage {
        what: "memory".to_owned(),
        reason: format!(
            "{} MiB are needed at least, and {} KiB are left of the {} KiB that {} allows: raise the limit on the memory \
             of this container or control group",
            LEAST_MEMORY >> 20,
            limit.free >> 10,
            limit.limit >> 10,
            limit.file.display()
        ),
    })
}

/// Why this many more threads cannot be started, if that is so.
pub(super) fn threads_missing(more: u64) -> Option<String> {
    let short = tightest_of_threads().filter(|limit| limit.left() < more)?;
    Some(short.refuses(more))
}

/// Why there is no address space for stacks of that size together, if that is so.
pub(super) fn stacks_missing(bytes: u64) -> Option<String> {
    let short = AddressSpace::of_this_process().filter(|space| space.left() < bytes)?;
    Some(format!(
        "{} KiB are needed for the stacks of threads, and {}",
        bytes >> 10,
        short.in_words()
    ))
}

/// What to do about an error that says that a limit is reached, whatever was tried.
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

/// What to do where memory of that size could not be had.
pub fn memory_remedy(bytes: Option<u64>) -> String {
    let space = AddressSpace::of_this_process();
    // Where the size is not known, a limit that is set is taken for the one that was reached.
    let is_reached = |space: &AddressSpace| bytes.is_none_or(|bytes| space.left() < bytes);
    if let Some(space) = space.filter(is_reached) {
        return space.in_words();
    }
    if let Some(most) = mappings_reached() {
        return format!(
            "this process has as many mappings as vm.max_map_count allows, {most}: raise it"
        );
    }
    if let Ok((data, _)) = getrlimit(Resource::RLIMIT_DATA)
        && data != libc::RLIM_INFINITY
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
    match memory_limit().filter(|limit| bytes.is_none_or(|bytes| limit.free < bytes)) {
        Some(limit) => format!(
            "{} allows {} KiB: raise the limit on the memory of this container or control group, or ask for less",
            limit.file.display(),
            limit.limit >> 10
        ),
        None => "the machine has too little memory: ask for less at a time".to_owned(),
    }
}

/// The limit on the mappings of a process, if it is nearly reached.
fn mappings_reached() -> Option<usize> {
    let most = fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    let most: usize = most.trim().parse().ok()?;
    let maps = fs::read("/proc/self/maps").ok()?;
    let count = maps.iter().filter(|byte| **byte == b'\n').count();
    (count + 8 >= most).then_some(most)
}

/// What to do where a thread or a process could not be started.
pub fn process_remedy(error: &io::Error) -> String {
    let of_other = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];
    let is_other = of_other.contains(&error.raw_os_error().unwrap_or(0));
    if let (true, Some(remedy)) = (is_other, remedy(error)) {
        return remedy;
    }
    if let Some(limit) = tightest_of_threads().filter(|limit| limit.left() == 0) {
        return limit.refuses(1);
    }
    // A stack that cannot be mapped is reported as a thread that cannot be started.
    if let Some(space) = AddressSpace::of_this_process().filter(|space| space.left() < STACK) {
        return space.in_words();
    }
    "look at ulimit -u, pids.max of the control group, ulimit -v, and kernel.threads-max".to_owned()
}

/// Which limit keeps threads from being started, and its value.
pub(super) fn of_threads_in_words() -> String {
    tightest_of_threads().map_or_else(
        || "raise kernel.threads-max or kernel.pid_max".to_owned(),
        |limit| limit.refuses(0),
    )
}

/// A limit on threads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ThreadLimit {
    /// With its place, as `pids.max`.
    name: String,
    most: u64,
    taken: u64,
    advice: &'static str,
}

impl ThreadLimit {
    fn left(&self) -> u64 {
        self.most.saturating_sub(self.taken)
    }

    fn refuses(&self, threads: u64) -> String {
        let needed = match threads {
            0 => String::new(),
            1 => "1 more thread is needed, and ".to_owned(),
            _ => format!("{threads} more threads are needed, and "),
        };
        let ThreadLimit {
            name,
            most,
            taken,
            advice,
        } = self;
        format!("{needed}{name} is {most}, of which {taken} are taken: {advice}")
    }
}

fn tightest_of_threads() -> Option<ThreadLimit> {
    let limits = [of_group(ControlGroups::of_this_process()), of_user()];
    limits.into_iter().flatten().min_by_key(ThreadLimit::left)
}

/// The tightest on the way from the control group of this process to the root.
fn of_group(groups: Option<ControlGroups>) -> Option<ThreadLimit> {
    let found = groups?.thread_limit()?;
    let group = found.file.parent().unwrap_or(&found.file);
    Some(ThreadLimit {
        name: format!("pids.max of {}", group.display()),
        most: found.limit,
        taken: found.limit.saturating_sub(found.free),
        advice: "raise the limit on processes of this container or control group",
    })
}

/// `ulimit -u`, which root does not have.
fn of_user() -> Option<ThreadLimit> {
    let (most, _) = getrlimit(Resource::RLIMIT_NPROC).ok()?;
    let user = geteuid();
    if user.is_root() || most == libc::RLIM_INFINITY {
        return None;
    }
    // All threads of the machine are quickly read, those of a user not.
    let all = threads_of_machine().filter(|all| 2 * all < most);
    Some(ThreadLimit {
        name: "ulimit -u".to_owned(),
        most,
        taken: all.unwrap_or_else(|| threads_of(user.as_raw())),
        advice: "raise it with ulimit -u",
    })
}

fn threads_of_machine() -> Option<u64> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

fn threads_of(user: u32) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_user = processes.filter(|it| {
        let is_process = it.file_name().as_encoded_bytes()[0].is_ascii_digit();
        is_process && it.metadata().is_ok_and(|it| it.uid() == user)
    });
    let threads = of_user.filter_map(|it| {
        let status = fs::read_to_string(it.path().join("status")).ok()?;
        let mut lines = status.lines();
        let threads = lines.find_map(|line| line.strip_prefix("Threads:"))?;
        threads.trim().parse::<u64>().ok()
    });
    threads.sum()
}

/// `ulimit -v`, in bytes.
#[derive(Debug, Clone, Copy)]
struct AddressSpace {
    most: u64,
    taken: u64,
}

impl AddressSpace {
    /// Where it is limited.
    fn of_this_process() -> Option<Self> {
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

    fn left(&self) -> u64 {
        self.most.saturating_sub(self.taken)
    }

    fn in_words(&self) -> String {
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
    use crate::host::made_up::Machine;
    use crate::host::system_files::SystemFiles;
    use crate::testing::Refused as _;

    #[test]
    fn the_tightest_group_on_the_way_to_the_root_limits_threads() {
        for (line, mount) in [
            ("7:pids:/a/b", ("/", "cgroup", "rw,pids")),
            ("0::/a/b", ("/", "cgroup2", "rw")),
        ] {
            let machine = Machine::new(1, 1, 1);
            machine
                .in_group(line, &[mount])
                .file("cgroup/a/pids.max", "10")
                .file("cgroup/a/pids.current", "9")
                .file("cgroup/a/b/pids.max", "4")
                .file("cgroup/a/b/pids.current", "1");
            let found = || {
                let files = SystemFiles::below(machine.root());
                of_group(ControlGroups::from_files(&files)).unwrap()
            };
            assert_eq!((found().most, found().taken, found().left()), (10, 9, 1));
            let text = found().refuses(3);
            let begins = text.starts_with("3 more threads are needed, and pids.max of /");
            assert!(
                begins && text.contains("a is 10, of which 9 are taken"),
                "{text}"
            );
            machine.file("cgroup/a/pids.max", "max");
            assert_eq!(found().left(), 3);
        }
    }

    #[test]
    fn too_little_memory_is_refused_with_its_limit() {
        let of = |free| {
            refuse_memory(Some(MemoryLimit {
                limit: 64 << 20,
                free,
                file: "/sys/fs/cgroup/memory.max".into(),
            }))
        };
        assert!(of(64 << 20).is_ok() && refuse_memory(None).is_ok());
        of(1 << 20).refused(&[
            "memory: 28 MiB",
            "1024 KiB are left of the 65536 KiB",
            "memory.max",
        ]);
    }

    #[test]
    fn an_error_is_answered_by_its_own_limit() {
        let of = |errno| remedy(&io::Error::from_raw_os_error(errno));
        assert!(of(libc::EMFILE).unwrap().contains("ulimit -n"));
        assert!(of(libc::ENFILE).unwrap().contains("fs.file-max"));
        assert!(of(libc::ENOMEM).unwrap().contains("ask for less"));
        assert_eq!(of(libc::ENOENT), None);
        let files = process_remedy(&io::Error::from_raw_os_error(libc::EMFILE));
        assert!(
            files.contains("ulimit -n") && !files.contains("ulimit -u"),
            "{files}"
        );
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
