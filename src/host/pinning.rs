//! Which CPUs a thread may run on: setting it, and reading back that it took effect.

use super::cpu_set::CpuSet;
use super::error::HostError;
use nix::errno::Errno;
use nix::sched;
use nix::unistd::Pid;

/// The calling thread, in the calls that take a thread.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// Pins the calling thread to one CPU, and verifies that it runs there.
///
/// # Errors
/// [`HostError::System`] if the kernel refuses, [`HostError::NotPinned`] if it does not and the thread is elsewhere.
pub fn pin_current_thread(cpu: usize) -> Result<(), HostError> {
    let wanted = CpuSet::from_iter([cpu]);
    pin_current_thread_to(&wanted)?;
    let found = current_cpu()?;
    if found == cpu {
        Ok(())
    } else {
        Err(HostError::NotPinned {
            wanted,
            found: CpuSet::from_iter([found]),
        })
    }
}

/// Confines the calling thread to a set of CPUs, and verifies that it is.
///
/// # Errors
/// As [`pin_current_thread`].
pub fn pin_current_thread_to(wanted: &CpuSet) -> Result<(), HostError> {
    set_affinity(wanted)?;
    let found = current_affinity()?;
    if found == *wanted {
        Ok(())
    } else {
        Err(HostError::NotPinned {
            wanted: wanted.clone(),
            found,
        })
    }
}

/// The CPUs the calling thread may run on.
///
/// # Errors
/// [`HostError::System`] on a machine with more CPUs than the C library's sets hold (1024).
pub fn current_affinity() -> Result<CpuSet, HostError> {
    let set = sched::sched_getaffinity(THIS_THREAD).map_err(|errno| HostError::System {
        operation: "sched_getaffinity",
        object: "the calling thread".to_owned(),
        errno,
        advice: format!(
            "machines with more than {} CPUs are not supported",
            sched::CpuSet::count()
        ),
    })?;
    Ok((0..sched::CpuSet::count())
        .filter(|&cpu| set.is_set(cpu) == Ok(true))
        .collect())
}

/// The CPU the calling thread runs on at this moment.
///
/// # Errors
/// [`HostError::System`] if the kernel lacks the call.
pub fn current_cpu() -> Result<usize, HostError> {
    sched::sched_getcpu().map_err(|errno| HostError::System {
        operation: "sched_getcpu",
        object: "the calling thread".to_owned(),
        errno,
        advice: "pinning cannot be verified on this kernel".to_owned(),
    })
}

/// A thread that was pinned to one CPU runs, or may run, on others. Its text wants a subject before it: "the receiver ...".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}; its figures are not those of CPU {cpu}: {ADVICE}", self.what())]
pub struct Moved {
    /// The CPU it was pinned to.
    pub cpu: usize,
    /// The CPU it was found on.
    pub found: usize,
    /// The CPUs it may run on now.
    pub allowed: CpuSet,
}

const ADVICE: &str = "does something else (taskset, a cpuset, a CPU that went offline) move the threads of this process?";

impl Moved {
    fn what(&self) -> String {
        let Moved {
            cpu,
            found,
            allowed,
        } = self;
        if cpu == found {
            format!("was pinned to CPU {cpu} and may now run on CPU {allowed}")
        } else {
            format!("was moved from CPU {cpu} to CPU {found}")
        }
    }
}

/// Checks that the calling thread, which was pinned to `cpu`, is there and may run nowhere else. Two system calls at the
/// most: for the end of a loop, not for its inside.
///
/// # Errors
/// [`Moved`] if it is, or may be, on another CPU: then nobody knows where it was while it measured.
pub fn check_still_on(cpu: usize) -> Result<(), Moved> {
    // Both calls succeeded when the thread was pinned. Should they fail now, it is not known to be where it was put.
    let found = current_cpu().unwrap_or(usize::MAX);
    let allowed = current_affinity().unwrap_or_default();
    if found == cpu && allowed == CpuSet::from_iter([cpu]) {
        Ok(())
    } else {
        Err(Moved {
            cpu,
            found,
            allowed,
        })
    }
}

/// All CPUs the kernel would let this process run on, whatever its affinity is now.
///
/// A thread of its own asks for every CPU there is, and reads what is left of that after the cpuset.
pub(crate) fn reachable_cpus() -> Result<CpuSet, HostError> {
    let every: CpuSet = (0..sched::CpuSet::count()).collect();
    std::thread::scope(|scope| {
        let probe = scope.spawn(|| {
            set_affinity(&every)?;
            current_affinity()
        });
        probe
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn set_affinity(cpus: &CpuSet) -> Result<(), HostError> {
    let failed = |errno| HostError::System {
        operation: "sched_setaffinity",
        object: format!("the calling thread to CPU {cpus}"),
        errno,
        advice: match errno {
            Errno::EINVAL => {
                "is that CPU online, and in the cpuset of this process (taskset -p shows it)?"
            }
            Errno::EPERM => "a security policy forbids pinning: run outside of that sandbox",
            _ => "see man 2 sched_setaffinity",
        }
        .to_owned(),
    };
    let mut set = sched::CpuSet::new();
    for cpu in cpus.iter() {
        set.set(cpu).map_err(failed)?;
    }
    sched::sched_setaffinity(THIS_THREAD, &set).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_pinned_thread_runs_where_it_was_pinned() {
        for cpu in current_affinity().unwrap().iter() {
            thread::spawn(move || {
                pin_current_thread(cpu).unwrap();
                assert_eq!(current_affinity().unwrap(), CpuSet::from_iter([cpu]));
                for _ in 0..100 {
                    thread::yield_now();
                    assert_eq!(current_cpu().unwrap(), cpu);
                }
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn a_thread_that_is_or_may_be_on_another_cpu_is_told() {
        let all = current_affinity().unwrap();
        thread::spawn(move || {
            let cpu = all.first().unwrap();
            pin_current_thread(cpu).unwrap();
            assert_eq!(check_still_on(cpu), Ok(()));
            let text = check_still_on(cpu + 1).unwrap_err().to_string();
            let moved = format!("was moved from CPU {} to CPU {cpu};", cpu + 1);
            assert!(text.starts_with(&moved), "{text}");
            let Some(other) = all.iter().nth(1) else {
                return;
            };
            // As by `taskset -a -p` in the middle of a run, and as when its CPU went offline and came back.
            pin_current_thread(other).unwrap();
            assert_eq!(check_still_on(cpu).unwrap_err().found, other);
            set_affinity(&all).unwrap();
            assert_eq!(check_still_on(other).unwrap_err().allowed, all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_set_holds_for_threads_started_later() {
        thread::spawn(|| {
            let one = CpuSet::from_iter(current_affinity().unwrap().first());
            pin_current_thread_to(&one).unwrap();
            let heir = thread::spawn(|| current_affinity().unwrap())
                .join()
                .unwrap();
            assert_eq!(heir, one);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_that_names_it() {
        for cpu in [1023, 5000] {
            let error = pin_current_thread(cpu).unwrap_err().to_string();
            assert!(
                error.contains(&format!("CPU {cpu}")) && error.contains("EINVAL"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_reachable_does_not_shrink_by_pinning() {
        let reachable = reachable_cpus().unwrap();
        assert!(
            current_affinity()
                .unwrap()
                .difference(&reachable)
                .is_empty()
        );
        thread::spawn(move || {
            pin_current_thread(reachable.first().unwrap()).unwrap();
            assert_eq!(reachable_cpus().unwrap(), reachable);
        })
        .join()
        .unwrap();
    }
}
