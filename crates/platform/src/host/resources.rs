//! The limits on threads and open files, in words: which of them an error of the system is about.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::geteuid;

use super::cgroup;

/// Address space that a thread may take: the default stack of the threads of C libraries.
const STACK: u64 = 8 << 20;

/// Memory that the program takes before it measures anything, with some to spare.
const LEAST_MEMORY: u64 = 28 << 20;

/// Why the control group of this process has too little memory for anything, if that is so: the kernel kills who takes
/// more than is left.
pub fn too_little_memory() -> Option<String> {
    let limit = cgroup::memory_limit().filter(|limit| limit.free < LEAST_MEMORY)?;
    Some(format!(
        "memory: {} MiB are needed at least, and {} KiB are left of the {} KiB that {} allows: raise the limit on the \
         memory of this container or control group",
        LEAST_MEMORY >> 20,
        limit.free >> 10,
        limit.limit >> 10,
        limit.file.display()
    ))
}

/// Why this many more threads cannot be started, if that is so.
pub(super) fn threads_missing(more: u64) -> Option<String> {
    let short = tightest(thread_limits()).filter(|limit| limit.left() < more)?;
    Some(short.refuses(more))
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
        libc::ENOMEM => address_space().map(|limit| limit.refuses(0)),
        _ => None,
    }
}

/// What to do where a thread or a process could not be started.
pub fn process_remedy(error: &io::Error) -> String {
    let files = [libc::EMFILE, libc::ENFILE].contains(&error.raw_os_error().unwrap_or(0));
    if let (true, Some(remedy)) = (files, remedy(error)) {
        return remedy;
    }
    let reached = tightest(thread_limits()).filter(|limit| limit.left() == 0);
    reached.map_or_else(
        || {
            "look at ulimit -u, pids.max of the control group, ulimit -v, and kernel.threads-max"
                .to_owned()
        },
        |limit| limit.refuses(1),
    )
}

/// A limit on threads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ThreadLimit {
    /// With its place, as `pids.max`.
    name: String,
    /// With its unit.
    value: String,
    most: u64,
    taken: u64,
    advice: String,
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
            value,
            advice,
            ..
        } = self;
        format!("{needed}{name} is {value}: {advice}")
    }
}

fn tightest(limits: impl Iterator<Item = ThreadLimit>) -> Option<ThreadLimit> {
    limits.min_by_key(ThreadLimit::left)
}

fn thread_limits() -> impl Iterator<Item = ThreadLimit> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = pids_limit(Path::new("/sys/fs/cgroup"), &groups);
    [group, of_user(), address_space()].into_iter().flatten()
}

/// The tightest on the way from the control group of this process to the root, in version 1 or 2.
fn pids_limit(root: &Path, groups: &str) -> Option<ThreadLimit> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or("/"));
        let top = match controllers {
            "" => root.to_path_buf(),
            _ if controllers.split(',').any(|name| name == "pids") => root.join("pids"),
            _ => return Vec::new(),
        };
        let folder = top.join(path.trim_start_matches('/'));
        let within = folder.ancestors().take_while(|it| it.starts_with(&top));
        let read = |group: &Path| {
            let number = |name: &str| {
                let text = fs::read_to_string(group.join(name)).ok()?;
                text.trim().parse::<u64>().ok()
            };
            let (most, taken) = (number("pids.max")?, number("pids.current").unwrap_or(0));
            Some(ThreadLimit {
                name: format!("pids.max of {}", group.display()),
                value: format!("{most}, of which {taken} are taken"),
                most,
                taken,
                advice: "raise the limit on processes of this container or control group"
                    .to_owned(),
            })
        };
        within.filter_map(read).collect()
    });
    tightest(limits)
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
    let taken = all.unwrap_or_else(|| threads_of(user.as_raw()));
    Some(ThreadLimit {
        name: "ulimit -u".to_owned(),
        value: format!("{most}, of which {taken} are taken"),
        most,
        taken,
        advice: "raise it with ulimit -u".to_owned(),
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

/// `ulimit -v`, in threads.
fn address_space() -> Option<ThreadLimit> {
    let (most, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    if most == libc::RLIM_INFINITY {
        return None;
    }
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').next()?.parse().unwrap_or(0);
    let taken = pages << 12;
    Some(ThreadLimit {
        name: "ulimit -v".to_owned(),
        value: format!("{} KiB, of which {} KiB are taken", most >> 10, taken >> 10),
        most: most.saturating_sub(taken) / STACK,
        taken: 0,
        advice: "raise it with ulimit -v, or ask for less".to_owned(),
    })
}

/// All limits in force, for a message that cannot know which of them is reached.
pub(super) fn in_force() -> String {
    let files = getrlimit(Resource::RLIMIT_NOFILE).map(|(soft, _)| format!("ulimit -n {soft}"));
    let memory =
        cgroup::memory_limit().map(|it| format!("{} {} KiB", it.file.display(), it.limit >> 10));
    let threads = thread_limits().map(|it| format!("{} {}", it.name, it.value));
    let all: Vec<String> = files.into_iter().chain(threads).chain(memory).collect();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn put(root: &TempDir, file: &str, text: &str) {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_tightest_group_on_the_way_to_the_root_limits_threads() {
        for (top, line) in [("pids/", "7:pids:/a/b\n"), ("", "0::/a/b\n")] {
            let root = TempDir::new().unwrap();
            put(&root, &format!("{top}a/pids.max"), "10\n");
            put(&root, &format!("{top}a/pids.current"), "9\n");
            put(&root, &format!("{top}a/b/pids.max"), "4\n");
            put(&root, &format!("{top}a/b/pids.current"), "1\n");
            let groups = format!("4:cpu,cpuacct:/elsewhere\n{line}");
            let found = pids_limit(root.path(), &groups).unwrap();
            assert_eq!((found.most, found.taken, found.left()), (10, 9, 1));
            let text = found.refuses(3);
            assert!(
                text.starts_with("3 more threads are needed, and pids.max of /"),
                "{text}"
            );
            assert!(text.contains("a is 10, of which 9 are taken"), "{text}");
            put(&root, &format!("{top}a/pids.max"), "max\n");
            assert_eq!(pids_limit(root.path(), &groups).unwrap().left(), 3);
        }
    }

    #[test]
    fn an_error_is_answered_by_its_own_limit() {
        let of = |errno| remedy(&io::Error::from_raw_os_error(errno));
        assert!(of(libc::EMFILE).unwrap().contains("ulimit -n"));
        assert!(of(libc::ENFILE).unwrap().contains("fs.file-max"));
        assert_eq!(of(libc::ENOENT), None);
        let files = process_remedy(&io::Error::from_raw_os_error(libc::EMFILE));
        assert!(
            files.contains("ulimit -n") && !files.contains("ulimit -u"),
            "{files}"
        );
        assert!(process_remedy(&io::Error::from_raw_os_error(libc::EAGAIN)).contains("ulimit -u"));
    }
}
