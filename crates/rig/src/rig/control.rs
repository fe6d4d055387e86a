//! The flags between the threads of a run, or its processes, while it lasts: that they are ready, alive, or have
//! failed, and the stop flag.
//!
//! A benchmark keeps its own counters beside it. Nothing here costs a hot loop more than a load of a line that no
//! thread writes.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::buffer::all_atomic;

/// The flag at which all loops end. It is never taken back.
#[derive(Debug, Default)]
pub struct StopFlag(CachePadded<AtomicBool>);

all_atomic!(StopFlag { 0 });

impl StopFlag {
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is raised. Relaxed: nothing else is learnt from it, and a look that is late by a turn does no harm.
    #[inline(always)]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A count of a thread's progress, which it increments and only the supervisor reads.
#[derive(Debug, Default)]
pub struct Heartbeat(CachePadded<AtomicU64>);

impl Heartbeat {
    /// No sign is to be expected any more.
    const OVER: u64 = u64::MAX;

    /// Gives a sign. A load and a store, because no other thread stores; relaxed, as nothing else is learnt from it.
    #[inline(always)]
    pub fn beat(&self) {
        let count = self.0.load(Ordering::Relaxed);
        self.0.store(count + 1, Ordering::Relaxed);
    }

    /// The last sign.
    pub fn end(&self) {
        self.0.store(Self::OVER, Ordering::Relaxed);
    }

    /// How many signs there were, 0 before the thread is ready; `None` behind the last.
    pub fn beats(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|count| *count != Self::OVER)
    }
}

#[derive(Debug, Default)]
pub struct Control {
    stop: StopFlag,
    ready: CachePadded<AtomicU32>,
    failed: CachePadded<AtomicBool>,
}

// Ends that are processes share it as threads do.
all_atomic!(Control {
    stop,
    ready,
    failed
});

impl AsRef<Control> for Control {
    fn as_ref(&self) -> &Control {
        self
    }
}

impl Control {
    /// Raises the stop flag: all threads leave their loops.
    pub fn stop(&self) {
        self.stop.raise();
    }

    #[inline(always)]
    pub fn stopped(&self) -> bool {
        self.stop.is_raised()
    }

    /// The stop flag, for a loop that needs no more.
    pub fn stop_flag(&self) -> &StopFlag {
        &self.stop
    }

    /// Something failed, so that the run cannot become what it should. Threads that wait for others stop waiting.
    pub fn set_failed(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// The calling thread is about to enter its loop. Release: who waits for it sees what it has prepared.
    pub fn announce_ready(&self) {
        self.ready.fetch_add(1, Ordering::Release);
    }

    pub fn ready(&self) -> u32 {
        self.ready.load(Ordering::Acquire)
    }

    /// Waits until `count` threads are ready. Returns false if the stop flag is raised, or one of them failed. The time
    /// limit is the supervisor's, who raises the flag.
    pub fn wait_until_ready(&self, count: u32) -> bool {
        let mut looks = 0_u32;
        while self.ready() < count {
            if self.stopped() || self.failed() {
                return false;
            }
            looks = looks.wrapping_add(1);
            // Where threads share a CPU the other one comes only if this one lets it.
            if looks.is_multiple_of(1024) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        true
    }

    /// Announces the calling thread and waits for the others, so that all start together.
    pub fn start_together(&self, count: u32) -> bool {
        self.announce_ready();
        self.wait_until_ready(count)
    }
}

/// How long threads have made no progress.
#[derive(Debug)]
pub struct Silence(Vec<(Option<u64>, Instant)>);

impl Silence {
    /// For this many threads, from now on.
    pub fn of(threads: usize) -> Self {
        Silence(vec![(Some(0), Instant::now()); threads])
    }

    /// How long the thread at that place has been silent: none behind its last sign.
    pub fn of_thread(&mut self, place: usize, pulse: &Heartbeat) -> Duration {
        let (last, at) = &mut self.0[place];
        let beats = pulse.beats();
        if beats != *last {
            (*last, *at) = (beats, Instant::now());
        }
        beats.map_or(Duration::ZERO, |_| at.elapsed())
    }

    /// What was silent until now does not count.
    pub fn begin(&mut self) {
        let now = Instant::now();
        self.0.iter_mut().for_each(|(_, at)| *at = now);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn waiting(control: &Arc<Control>) -> std::thread::JoinHandle<bool> {
        let control = Arc::clone(control);
        std::thread::spawn(move || control.wait_until_ready(2))
    }

    #[test]
    fn a_thread_waits_for_all_others() {
        let control = Arc::new(Control::default());
        let waits = waiting(&control);
        control.announce_ready();
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waits.is_finished());
        assert!(control.start_together(2));
        assert!(waits.join().unwrap());
    }

    #[test]
    fn who_waits_sees_the_stop_flag_and_failures() {
        for tell in [Control::stop, Control::set_failed] {
            let control = Arc::new(Control::default());
            let waits = waiting(&control);
            tell(&control);
            assert!(!waits.join().unwrap());
        }
    }

    #[test]
    fn silence_ends_with_a_sign_and_with_the_last_one() {
        let pulse = Heartbeat::default();
        let mut silence = Silence::of(1);
        std::thread::sleep(Duration::from_millis(20));
        assert!(silence.of_thread(0, &pulse) >= Duration::from_millis(20));
        pulse.beat();
        assert_eq!(pulse.beats(), Some(1));
        assert!(silence.of_thread(0, &pulse) < Duration::from_millis(20));
        pulse.end();
        assert_eq!(pulse.beats(), None);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(silence.of_thread(0, &pulse), Duration::ZERO);
    }

    #[test]
    fn what_different_threads_write_shares_no_cache_line() {
        let control = Control::default();
        let lines = [
            &raw const control.stop as usize,
            &raw const control.ready as usize,
            &raw const control.failed as usize,
        ]
        .map(|address| address / 128);
        assert!(lines[0] != lines[1] && lines[1] != lines[2] && lines[0] != lines[2]);
    }
}
