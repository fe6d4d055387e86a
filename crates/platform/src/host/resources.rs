//! The limits on threads and memory of this process, in words: whether they leave what is needed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::geteuid;

use super::cgroup::{ControlGroups, MemoryLimit, memory_limit};
use super::error::HostError;
use super::memory_lock::MemoryLock;
use super::remedies::{AddressSpace, remedy};

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
pub const LEAST_TO_MEASURE: u64 = 28 << 20;
/// The same before it draws anything.
pub const LEAST_TO_DRAW: u64 = 14 << 20;

/// To be asked before that much is taken: the kernel kills who takes more than is left.
///
/// # Errors
/// When the control group of this process has less memory.
pub fn require_memory(bytes: u64) -> Result<(), HostError> {
    refuse_memory(bytes, memory_limit())
}

fn refuse_memory(bytes: u64, limit: Option<MemoryLimit>) -> Result<(), HostError> {
    let Some(limit) = limit.filter(|limit| limit.free < bytes) else {
        return Ok(());
    };
    Err(HostError::Shortage {
        what: "memory".to_owned(),
        reason: format!(
            "{} MiB are needed at least, and {} KiB are left of the {} KiB that {} allows: raise the limit on the \
             memory of this container or control group",
            bytes.div_ceil(1 << 20),
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
    // A stack that cannot be mapped is reported as a thread that cannot be started. Other threads may have given back
    // what they had by now.
    let space = AddressSpace::of_this_process();
    let has_room = space.is_none_or(|space| space.left() >= STACK);
    if let (true, Some(remedy)) = (has_room, MemoryLock::missing(STACK)) {
        return remedy;
    }
    if let Some(space) = space {
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
    let limits = [of_group(&ControlGroups::of_this_process()), of_user()];
    limits.into_iter().flatten().min_by_key(ThreadLimit::left)
}

/// The tightest on the way from the control group of this process to the root.
fn of_group(groups: &ControlGroups) -> Option<ThreadLimit> {
    let found = groups.thread_limit().limit?;
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
                of_group(&ControlGroups::from_files(&files)).unwrap()
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
            let limit = MemoryLimit {
                limit: 64 << 20,
                free,
                file: "/sys/fs/cgroup/memory.max".into(),
            };
            refuse_memory(LEAST_TO_MEASURE, Some(limit))
        };
        assert!(of(64 << 20).is_ok() && refuse_memory(1 << 60, None).is_ok());
        of(1 << 20).refused(&[
            "memory: 28 MiB",
            "1024 KiB are left of the 65536 KiB",
            "memory.max",
        ]);
    }

    #[test]
    fn a_thread_that_lacks_a_file_is_answered_by_the_limit_of_files() {
        let files = process_remedy(&io::Error::from_raw_os_error(libc::EMFILE));
        assert!(
            files.contains("ulimit -n") && !files.contains("ulimit -u"),
            "{files}"
        );
    }
}
