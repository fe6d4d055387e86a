//! Which CPUs a thread may run on: setting it, and reading back that it took effect.

use super::cpu_set::CpuSet;
use super::error::{HostError, THIS_THREAD};
use super::threads;
use nix::errno::Errno;
use nix::sched;
use nix::unistd::Pid;
use std::thread::Builder;

/// The calling thread, in the calls that take a thread.
const SELF: Pid = Pid::from_raw(0);

/// Pins the calling thread to one CPU, and verifies that it runs there.
pub fn pin_current_thread(cpu: usize) -> Result<(), HostError> {
    let wanted = CpuSet::from_iter([cpu]);
    pin_current_thread_to(&wanted)?;
    verify(&wanted, CpuSet::from_iter([current_cpu()?]))
}

/// Confines the calling thread to a set of CPUs, and verifies that it is.
pub fn pin_current_thread_to(wanted: &CpuSet) -> Result<(), HostError> {
    set_affinity(SELF, wanted)?;
    verify(wanted, current_affinity()?)
}

fn verify(wanted: &CpuSet, found: CpuSet) -> Result<(), HostError> {
    if found == *wanted {
        Ok(())
    } else {
        Err(HostError::NotPinned(wanted.clone(), found))
    }
}

/// The CPUs the calling thread may run on.
///
/// # Errors
/// [`HostError::System`] on a machine with more CPUs than the C library's sets hold (1024).
pub fn current_affinity() -> Result<CpuSet, HostError> {
    affinity_of(SELF)
}

/// The CPUs a thread may run on.
pub(crate) fn affinity_of(thread: Pid) -> Result<CpuSet, HostError> {
    let most = sched::CpuSet::count();
    let advice = format!("machines with more than {most} CPUs are not supported");
    let failed = HostError::system("sched_getaffinity", THIS_THREAD, advice);
    let set = sched::sched_getaffinity(thread).map_err(failed)?;
    Ok((0..most)
        .filter(|&cpu| set.is_set(cpu) == Ok(true))
        .collect())
}

/// The CPU the calling thread runs on at this moment.
pub fn current_cpu() -> Result<usize, HostError> {
    let advice = "pinning cannot be verified on this kernel";
    sched::sched_getcpu().map_err(HostError::system("sched_getcpu", THIS_THREAD, advice))
}

/// A thread is not where it was pinned to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("was moved away from CPU {from}: it runs on CPU {on}, and may run on {allowed}")]
pub struct ThreadMigration {
    /// The CPU that it was pinned to.
    pub from: usize,
    /// The CPU that it runs on.
    pub on: usize,
    /// The CPUs that it may run on.
    pub allowed: CpuSet,
}

/// Whether the calling thread is still where [`pin_current_thread`] put it: an administrator, another program or a CPU
/// that went offline moves threads without notice. Two system calls.
///
/// # Errors
/// [`ThreadMigration`], also if the thread is back by now but may run elsewhere.
pub fn check_still_on(cpu: usize) -> Result<(), ThreadMigration> {
    let on = current_cpu().unwrap_or(cpu);
    let pinned = CpuSet::from_iter([cpu]);
    let allowed = current_affinity().unwrap_or_else(|_| pinned.clone());
    if on == cpu && allowed == pinned {
        return Ok(());
    }
    let from = cpu;
    Err(ThreadMigration { from, on, allowed })
}

/// Does `work` on a CPU, then goes back to where the thread may run.
///
/// # Errors
/// When the thread cannot be pinned, or not go back.
pub fn on_cpu<R>(cpu: usize, work: impl FnOnce() -> R) -> Result<R, HostError> {
    let before = current_affinity()?;
    pin_current_thread(cpu)?;
    let result = work();
    pin_current_thread_to(&before)?;
    Ok(result)
}

/// The same on whichever of some CPUs the scheduler chooses: one of them may never run the thread.
///
/// # Errors
/// When the thread cannot be confined to them, or not go back.
pub fn on_cpus<R>(cpus: &CpuSet, work: impl FnOnce() -> R) -> Result<R, HostError> {
    let before = current_affinity()?;
    pin_current_thread_to(cpus)?;
    let result = work();
    pin_current_thread_to(&before)?;
    Ok(result)
}

/// All CPUs the kernel would let this process run on, whatever its affinity is now.
///
/// A separate thread asks for every CPU there is, and reads what is left of that after the cpuset.
pub fn reachable_cpus() -> Result<CpuSet, HostError> {
    let every: CpuSet = (0..sched::CpuSet::count()).collect();
    std::thread::scope(|scope| {
        let probe = || set_affinity(SELF, &every).and_then(|()| current_affinity());
        let probed = threads::start_scoped(scope, Builder::new(), probe)?.join();
        probed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Confines another thread of this process to a set of CPUs, also one that does not run.
///
/// # Errors
/// When the kernel refuses that, or the thread has ended.
pub fn pin_thread_to(thread: Pid, wanted: &CpuSet) -> Result<(), HostError> {
    set_affinity(thread, wanted)
}

fn set_affinity(thread: Pid, cpus: &CpuSet) -> Result<(), HostError> {
    let failed = |errno| {
        let advice = match errno {
            Errno::EINVAL => {
                "name a CPU that is online and in the cpuset of this process (taskset -p shows it)"
            }
            Errno::EPERM => "a security policy forbids pinning: run outside of that sandbox",
            _ => "see man 2 sched_setaffinity",
        };
        let object = format!("{THIS_THREAD} to CPU {cpus}");
        HostError::system("sched_setaffinity", object, advice)(errno)
    };
    let mut set = sched::CpuSet::new();
    for cpu in cpus.iter() {
        set.set(cpu).map_err(failed)?;
    }
    sched::sched_setaffinity(thread, &set).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn work_on_some_cpus_is_confined_to_these() {
        let all = current_affinity().unwrap();
        let some: CpuSet = all.iter().take(2).collect();
        let inside = on_cpus(&some, current_affinity).unwrap().unwrap();
        assert_eq!((inside, current_affinity().unwrap()), (some, all));
    }

    #[test]
    fn another_thread_is_moved_off_its_cpu() {
        let all = current_affinity().unwrap();
        let cpu = all.iter().next().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let to = all.clone();
        let waits = thread::spawn(move || {
            pin_current_thread(cpu).unwrap();
            sender.send(nix::unistd::gettid()).unwrap();
            while current_affinity().unwrap() != to {
                thread::yield_now();
            }
        });
        pin_thread_to(receiver.recv().unwrap(), &all).unwrap();
        waits.join().unwrap();
    }

    #[test]
    fn a_thread_that_was_moved_is_noticed() {
        let moved = thread::spawn(|| {
            let all = reachable_cpus().unwrap();
            let cpu = all.iter().next().unwrap();
            pin_current_thread(cpu).unwrap();
            check_still_on(cpu).unwrap();
            // As taskset -p does it from outside; with one CPU only a number that is not ours can stand for it.
            let elsewhere = all.iter().find(|&other| other != cpu);
            if elsewhere.is_some() {
                pin_current_thread_to(&all).unwrap();
            }
            let wanted = if elsewhere.is_some() { cpu } else { cpu + 1 };
            (wanted, check_still_on(wanted))
        });
        let (wanted, found) = moved.join().unwrap();
        let told = format!("was moved away from CPU {wanted}");
        assert!(found.unwrap_err().to_string().starts_with(&told));
    }

    #[test]
    fn a_pinned_thread_runs_where_it_was_pinned() {
        for cpu in current_affinity().unwrap().iter() {
            let pinned = thread::spawn(move || {
                pin_current_thread(cpu).unwrap();
                assert_eq!(current_affinity().unwrap(), CpuSet::from_iter([cpu]));
                for _ in 0..100 {
                    thread::yield_now();
                    assert_eq!(current_cpu().unwrap(), cpu);
                }
            });
            pinned.join().unwrap();
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_that_names_it() {
        for cpu in [1023, 5000] {
            let error = pin_current_thread(cpu).unwrap_err().to_string();
            let told = [&format!("CPU {cpu}"), "EINVAL"];
            assert!(told.iter().all(|part| error.contains(*part)), "{error}");
        }
    }

    #[test]
    fn what_is_reachable_does_not_shrink_by_pinning() {
        let reachable = reachable_cpus().unwrap();
        let affinity = current_affinity().unwrap();
        assert!(affinity.difference(&reachable).is_empty());
        thread::spawn(move || {
            pin_current_thread(reachable.first().unwrap()).unwrap();
            assert_eq!(reachable_cpus().unwrap(), reachable);
        })
        .join()
        .unwrap();
    }
}
