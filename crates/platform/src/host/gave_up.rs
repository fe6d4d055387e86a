//! What is reported where an allocation or a library ends the program because a resource ends.
//!
//! Rust's own allocations abort where there is no memory, and libzmq where it gets no file or thread. Both print what
//! they lacked. Where a limit is shown to be reached at that moment, this adds which one, and makes it an exit code:
//! what was measured is on disk by then. All else, and a panic, which is a fault of the program, aborts as before.

use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::error::HostError;
use super::remedies::{memory_remedy, page_size};
use super::resources;

/// A resource of which none is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// No file can be opened.
    Files,
    /// No thread can be started.
    Threads,
    /// No memory is available.
    Memory,
}

/// The exit code of a process that a parent of this program asks for its results. Others end with 1.
const CHILD_CODES: [(Exhausted, i32); 3] = [
    (Exhausted::Files, 91),
    (Exhausted::Threads, 92),
    (Exhausted::Memory, 93),
];
const EXIT_CODE: i32 = 1;

/// Address space that a library asks for at once: the stack of a thread, with a heap.
const NEAR: u64 = 16 << 20;

impl Exhausted {
    /// Of a child that ended with this code.
    pub fn of_exit_code(code: i32) -> Option<Self> {
        let found = CHILD_CODES.iter().find(|(_, of_it)| *of_it == code);
        found.map(|(exhausted, _)| *exhausted)
    }

    /// What is missing, with the limit and what to do.
    pub fn in_words(self) -> String {
        match self {
            Exhausted::Files => {
                let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(_, hard)| hard);
                format!("no more files could be opened: raise ulimit -n, which is {limit}")
            }
            Exhausted::Threads => format!(
                "no more threads could be started: {}",
                resources::of_threads_in_words()
            ),
            Exhausted::Memory => {
                format!("no more memory could be allocated: {}", memory_remedy(None))
            }
        }
    }
}

/// What the handler needs, which must not allocate.
struct Prepared {
    is_child: bool,
    /// Line by line as in [`CHILD_CODES`].
    lines: [String; 3],
    page_size: u64,
}

static PREPARED: OnceLock<Prepared> = OnceLock::new();

/// From now on. The limits are those of this moment. `is_child`: a parent of this program reports it. A file that grows
/// beyond `ulimit -f` is an error from now on, where it would be a signal.
///
/// # Errors
/// When the system refuses a handler.
pub fn name_limits(is_child: bool) -> Result<(), HostError> {
    PREPARED.get_or_init(|| Prepared {
        is_child,
        lines: CHILD_CODES.map(|(exhausted, _)| match is_child {
            true => String::new(),
            false => format!("hcabench: ended: {}\n", exhausted.in_words()),
        }),
        page_size: page_size(),
    });
    let set = |signal: Signal, handler, flags| {
        let action = SigAction::new(handler, flags, SigSet::empty());
        // SAFETY: the handler only makes system calls, and reads texts and a counter of its thread that exist by now.
        let set = unsafe { sigaction(signal, &action) };
        let failed = HostError::system("sigaction", signal.as_str(), "see man 2 sigaction");
        set.map(drop).map_err(failed)
    };
    set(
        Signal::SIGXFSZ,
        SigHandler::Handler(do_nothing),
        SaFlags::SA_RESTART,
    )?;
    set(
        Signal::SIGABRT,
        SigHandler::Handler(end),
        SaFlags::SA_RESETHAND,
    )
}

/// An ignored signal would be ignored by all programs that are started, too.
extern "C" fn do_nothing(_: libc::c_int) {}

extern "C" fn end(_: libc::c_int) {
    // Of what failed last, now or long ago: what succeeds does not clear it.
    let errno = nix::errno::Errno::last_raw();
    let prepared = PREPARED.get().filter(|_| !std::thread::panicking());
    if let Some(prepared) = prepared {
        if let Some(shown) = reached(errno, prepared.page_size) {
            let code = match prepared.is_child {
                true => CHILD_CODES[shown].1,
                false => EXIT_CODE,
            };
            say(&prepared.lines[shown]);
            // SAFETY: it ends the process, and runs nothing of it.
            unsafe { libc::_exit(code) };
        }
        if !prepared.is_child {
            say(
                "hcabench: ended by SIGABRT, of a library or another process; no limit is shown to be reached\n",
            );
        }
    }
    // Only abort(3) would end the process by itself. The action is the default one by now, and the signal is held back
    // until this returns.
    // SAFETY: a signal to this thread.
    unsafe { libc::raise(libc::SIGABRT) };
}

/// Which limit is, as its place in [`CHILD_CODES`].
fn reached(errno: i32, page_size: u64) -> Option<usize> {
    if no_file_is_left() {
        Some(0)
    } else if no_process_is_left() {
        Some(1)
    } else {
        no_memory_is_left(errno, page_size).then_some(2)
    }
}

fn say(text: &str) {
    // SAFETY: the text lives, and a system call reads it.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// What opens two files at once fails with one left.
fn no_file_is_left() -> bool {
    // SAFETY: it copies a descriptor, or none if standard error is closed; the process is about to end.
    let copy = || unsafe { libc::dup(libc::STDERR_FILENO) };
    let is_full = |copy: libc::c_int| {
        copy == -1 && [libc::EMFILE, libc::ENFILE].contains(&nix::errno::Errno::last_raw())
    };
    is_full(copy()) || is_full(copy())
}

fn no_process_is_left() -> bool {
    // SAFETY: fork without what the C library does at one: the child makes one system call, which ends it.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match child {
        0 => {
            // SAFETY: it ends the child, and runs nothing of it.
            unsafe { libc::_exit(0) }
        }
        -1 => nix::errno::Errno::last_raw() == libc::EAGAIN,
        _ => {
            // SAFETY: a child of this process, whose status is of no interest.
            unsafe { libc::waitpid(child as libc::pid_t, std::ptr::null_mut(), 0) };
            false
        }
    }
}

/// What grows asks for as much as it has, which is at most what the process has.
fn no_memory_is_left(errno: i32, page_size: u64) -> bool {
    let wanted = match errno {
        libc::ENOMEM => address_space_taken(page_size).max(NEAR),
        _ => NEAR,
    };
    // Locked memory would be filled, unless nothing can access it.
    if !can_map(NEAR, libc::PROT_NONE) {
        return true;
    }
    // SAFETY: it changes no content of memory; the process is about to end.
    unsafe { libc::munlockall() };
    !can_map(wanted, libc::PROT_READ | libc::PROT_WRITE)
}

fn can_map(bytes: u64, access: libc::c_int) -> bool {
    // Else more than the machine has would be refused, where nothing is limited.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the kernel chooses a place where nothing is mapped.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: the range is the mapping, which nothing else has.
    unsafe { libc::munmap(start, bytes as usize) };
    true
}

fn address_space_taken(page_size: u64) -> u64 {
    let mut text = [0_u8; 32];
    // SAFETY: system calls, which write no more than there is room for.
    let read = unsafe {
        let file = libc::open(c"/proc/self/statm".as_ptr(), libc::O_RDONLY);
        libc::read(file, text.as_mut_ptr().cast(), text.len())
    };
    let digits = text[..read.max(0) as usize]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let pages = digits.fold(0_u64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    pages.saturating_mul(page_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_started_end_by_a_file_that_is_too_large() {
        name_limits(false).unwrap();
        let status = std::process::Command::new("cat")
            .arg("/proc/self/status")
            .output();
        let status = String::from_utf8(status.unwrap().stdout).unwrap();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .unwrap();
        let ignored = u64::from_str_radix(mask.trim(), 16).unwrap();
        assert_eq!(ignored & 1 << (libc::SIGXFSZ - 1), 0, "{mask}");
    }
}
