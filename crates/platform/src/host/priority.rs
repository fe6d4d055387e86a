//! The scheduling policy of a thread: SCHED_FIFO, so that no ordinary thread takes its CPU away.
//!
//! A thread under SCHED_FIFO that spins keeps every other one of the same or a lower priority off its CPU for good; so
//! never put two of them on one CPU (`Placement::shares_cpu`).

use super::cgroup::ControlGroups;
use super::error::{HostError, THIS_THREAD};
use super::system_files::SystemFiles;
use nix::errno::Errno;

/// Puts the calling thread under SCHED_FIFO with that priority (1 to 99 on Linux), and verifies it.
///
/// # Errors
/// [`HostError::PriorityRange`] for a priority that does not exist, [`HostError::System`] if the kernel refuses, which
/// without CAP_SYS_NICE and with a small RLIMIT_RTPRIO it does, [`HostError::PriorityNotSet`] if it took no effect.
pub fn set_fifo(priority: i32) -> Result<(), HostError> {
    if !(1..=99).contains(&priority) {
        return Err(HostError::PriorityRange(priority));
    }
    let wanted = format!("SCHED_FIFO {priority}");
    let parameters = Parameters { priority };
    let set = set_scheduler(libc::SCHED_FIFO, &parameters);
    set.map_err(|errno| {
        let advice = match errno {
            Errno::EPERM => {
                let group = ControlGroups::of_this_process().without_realtime();
                let of_group = group.map(|file| {
                    let file = file.display();
                    format!("; {file} is 0, so that its group has no real-time: raise it")
                });
                format!(
                    "run as root or with CAP_SYS_NICE (setcap cap_sys_nice+ep on the program), or raise RLIMIT_RTPRIO \
                     with ulimit -r {priority} as root{}",
                    of_group.unwrap_or_default()
                )
            }
            _ => "see man 2 sched_setscheduler".to_owned(),
        };
        let object = format!("{THIS_THREAD} to {wanted}");
        HostError::system("sched_setscheduler", object, advice)(errno)
    })?;
    let found = current()?;
    if found == wanted {
        Ok(())
    } else {
        Err(HostError::PriorityNotSet(wanted, found))
    }
}

/// The policy of the calling thread, and the priority that it has with SCHED_FIFO.
fn current() -> Result<String, HostError> {
    let advice = "the priority cannot be verified in this environment";
    let failed = |operation| HostError::system(operation, THIS_THREAD, advice);
    let policy = scheduler().map_err(failed("sched_getscheduler"))?;
    let Parameters { priority } = parameters().map_err(failed("sched_getparam"))?;
    Ok(match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER => "SCHED_OTHER".to_owned(),
        libc::SCHED_FIFO => format!("SCHED_FIFO {priority}"),
        other => format!("scheduling policy {other}"),
    })
}

/// The kernel's `struct sched_param`. The calls below are of the kernel, because those of musl always fail by ENOSYS.
#[repr(C)]
struct Parameters {
    priority: libc::c_int,
}

fn set_scheduler(policy: libc::c_int, parameters: &Parameters) -> nix::Result<()> {
    // SAFETY: `parameters` is alive and has the layout that the call reads; 0 is the calling thread.
    let set = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            policy,
            parameters as *const Parameters,
        )
    };
    Errno::result(set).map(drop)
}

fn scheduler() -> nix::Result<libc::c_int> {
    // SAFETY: takes and returns numbers; 0 is the calling thread.
    let policy = Errno::result(unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) })?;
    libc::c_int::try_from(policy).map_err(|_| Errno::ERANGE)
}

fn parameters() -> nix::Result<Parameters> {
    let mut parameters = Parameters { priority: 0 };
    // SAFETY: `parameters` is alive, exclusive, and has the layout that the call fills; 0 is the calling thread.
    let filled = unsafe {
        libc::syscall(
            libc::SYS_sched_getparam,
            0,
            &mut parameters as *mut Parameters,
        )
    };
    Errno::result(filled).map(|_| parameters)
}

/// Whether the kernel keeps some time for threads without a real-time priority (`kernel.sched_rt_runtime_us`). Without,
/// threads that spin at such a priority on all CPUs leave none to anybody else.
pub fn is_throttled() -> bool {
    let limit = SystemFiles::of_this_machine().number::<i64>("proc/sys/kernel/sched_rt_runtime_us");
    limit.is_none_or(|limit| limit >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn it_takes_effect_or_tells_what_is_missing() {
        thread::spawn(|| match set_fifo(1) {
            Ok(()) => assert_eq!(current().unwrap(), "SCHED_FIFO 1"),
            Err(error) => {
                assert_eq!(current().unwrap(), "SCHED_OTHER");
                let error = error.to_string();
                let told = "SCHED_FIFO 1|EPERM|CAP_SYS_NICE|RLIMIT_RTPRIO|ulimit -r 1";
                assert!(told.split('|').all(|part| error.contains(part)), "{error}");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_priority_that_does_not_exist_is_refused_with_the_range() {
        for priority in [-1, 0, 100] {
            let error = set_fifo(priority).unwrap_err().to_string();
            let told = format!("SCHED_FIFO has no priority {priority}; choose one from 1 to 99");
            assert_eq!(error, told);
        }
    }
}
