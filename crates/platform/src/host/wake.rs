//! Getting a thread out of a blocking system call, from another thread.
//!
//! `ibv_get_cq_event` and `rdma_get_cm_event` block in `read`, without a time limit. A signal whose handler does
//! nothing, and which was installed without SA_RESTART, makes that `read` return EINTR.
//!
//! A signal that comes just before the thread enters `read` is lost. So the one who wakes first sets a flag that the
//! thread looks at before each blocking call, and then repeats [`Wakeable::wake`] until the thread is out.

use super::error::HostError;
use nix::errno::Errno;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A real-time signal, of which no library we know makes use.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 4
}

/// A `pthread_t`, which musl has as a pointer, of which a list would not be `Send`.
type ThreadAddress = usize;

/// The threads that are at work inside of [`Wakeable::during`], and can be woken. Clones share them.
#[derive(Debug, Clone)]
pub struct Wakeable {
    threads: Arc<Mutex<Vec<ThreadAddress>>>,
}

/// Takes the thread that made it off the list. Never leaves [`Wakeable::during`], so that it cannot be forgotten.
struct Registration<'a> {
    wakeable: &'a Wakeable,
    thread: ThreadAddress,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let mut registered = self.wakeable.registered();
        // One entry only: calls of `during` may be nested.
        if let Some(index) = registered.iter().rposition(|thread| *thread == self.thread) {
            registered.swap_remove(index);
        }
    }
}

impl Wakeable {
    /// Installs the handler, once in the process.
    pub fn new() -> Result<Self, HostError> {
        static INSTALLED: Mutex<bool> = Mutex::new(false);
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*installed {
            install()?;
            *installed = true;
        }
        Ok(Self {
            threads: Arc::default(),
        })
    }

    /// Does `work`, during which the calling thread can be woken.
    ///
    /// The work must look at the flag that asks it to stop, before each call that blocks, and end when it is set.
    pub fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        unblock();
        // SAFETY: takes nothing and cannot fail.
        let thread = unsafe { libc::pthread_self() } as ThreadAddress;
        self.registered().push(thread);
        let wakeable = self;
        let _registration = Registration { wakeable, thread };
        work()
    }

    /// Signals each thread that is at work, once. Returns their number.
    pub fn wake(&self) -> usize {
        let registered = self.registered();
        for &thread in registered.iter() {
            // SAFETY: pthread_kill needs a thread that has not ended. It is on the list, so it is inside of `during`:
            // it comes off the list at the end of `during`, also by a panic, under the lock we hold. The signal's
            // handler does nothing, so it may run at any moment.
            unsafe { libc::pthread_kill(thread as libc::pthread_t, signal()) };
        }
        registered.len()
    }

    /// No code panics with the lock held, and the list is whole after each single operation on it.
    fn registered(&self) -> MutexGuard<'_, Vec<ThreadAddress>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

extern "C" fn do_nothing(_signal: libc::c_int) {}

fn install() -> Result<(), HostError> {
    let object = format!("real-time signal {}", signal());
    let advice = "a thread that waits for events could not be stopped: use --poll busy";
    let failed = || HostError::system("sigaction", object.as_str(), advice);
    // SAFETY: a sigaction of zeros is valid: no handler, no flags, an empty mask. (nix has no real-time signals.)
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only asks for what is installed, into a structure that is ours.
    Errno::result(unsafe { libc::sigaction(signal(), std::ptr::null(), &mut before) })
        .map_err(failed())?;
    if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN {
        let purpose = "waking a thread that waits for events";
        return Err(HostError::SignalInUse(signal(), purpose));
    }
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // No SA_RESTART: that a call is interrupted is all the signal is for.
    action.sa_sigaction = do_nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler has the signature of one without SA_SIGINFO, lives as long as the program, and does nothing.
    Errno::result(unsafe { libc::sigaction(signal(), &action, std::ptr::null_mut()) })
        .map_err(failed())?;
    Ok(())
}

/// Lets the signal through to the calling thread, which may have inherited a mask that blocks it.
fn unblock() {
    // SAFETY: the set is ours and initialised by sigemptyset before it is used; the old mask is not asked for. None of
    // these can fail with a valid signal and a valid `how`.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal());
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{pipe, read};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    const LIMIT: Duration = Duration::from_secs(10);

    fn until(condition: impl Fn() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < LIMIT, "waited for {LIMIT:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// A thread that reads from a pipe into which nobody writes is woken; it may do something before.
    fn read_is_interrupted(before: fn()) {
        let wakeable = Wakeable::new().unwrap();
        let (reading_end, _writing_end) = pipe().unwrap();
        let reader = thread::spawn({
            let wakeable = wakeable.clone();
            move || {
                before();
                wakeable.during(|| read(&reading_end, &mut [0u8; 8]))
            }
        });
        until(|| !wakeable.registered().is_empty());
        // One signal may come too early for the read; nothing but the signals ends it.
        until(|| wakeable.wake() == 0);
        assert_eq!(reader.join().unwrap(), Err(Errno::EINTR));
    }

    #[test]
    fn a_blocking_read_is_interrupted_although_the_signal_was_blocked() {
        read_is_interrupted(|| ());
        read_is_interrupted(|| {
            // SAFETY: as in `unblock`.
            unsafe {
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::sigfillset(&mut set);
                libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            }
        });
    }

    #[test]
    fn without_a_signal_the_read_goes_on() {
        let wakeable = Wakeable::new().unwrap();
        let (stop, interrupted) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (reading_end, _writing_end) = pipe().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                wakeable.during(|| {
                    while !stop.load(Ordering::Relaxed) {
                        assert_eq!(read(&reading_end, &mut [0u8; 8]), Err(Errno::EINTR));
                        interrupted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
            until(|| !wakeable.registered().is_empty());
            thread::sleep(Duration::from_millis(30));
            assert_eq!(interrupted.load(Ordering::Relaxed), 0);
            // It does not stop for a signal alone.
            until(|| wakeable.wake() == 1 && interrupted.load(Ordering::Relaxed) > 0);
            stop.store(true, Ordering::Relaxed);
            until(|| wakeable.wake() == 0);
        });
    }

    #[test]
    fn a_thread_that_is_out_is_not_signalled() {
        let wakeable = Wakeable::new().unwrap();
        let nested = || wakeable.during(|| wakeable.during(|| wakeable.registered().len()));
        assert_eq!(nested(), 2);
        assert_eq!(wakeable.wake(), 0);
        // Nor one that panicked.
        let panicked = thread::spawn({
            let wakeable = wakeable.clone();
            move || wakeable.during(|| std::panic::resume_unwind(Box::new("on purpose")))
        })
        .join();
        assert!(panicked.is_err());
        assert_eq!(wakeable.wake(), 0);
    }
}
