//! What tells a publisher that the next step is due: the steps of a schedule, of which some may be missed.

use std::os::fd::{AsFd as _, AsRawFd as _};

use nix::sys::time::TimeSpec;
use nix::sys::timer::TimerSetTimeFlags;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags};

use serde::{Deserialize, Serialize};

use super::config::MissPolicy;
use crate::node::NodeError;
use crate::time::{Clock, Nanos, Ticks};

/// Binary digits behind a tick of a period.
const FRACTION_BITS: u32 = 24;

/// A schedule of equal steps. Each moment is computed from the start, so that nothing adds up.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Schedule {
    start: Ticks,
    /// In fractions of a tick.
    period: u128,
}

impl Schedule {
    pub(super) fn of_rate(clock: &impl Clock, rate_per_s: f64) -> Self {
        let second = clock.ticks_in(Nanos(1_000_000_000)).0 as f64;
        let period = second * f64::from(1 << FRACTION_BITS) / rate_per_s;
        Schedule {
            start: Ticks(0),
            period: period.round() as u128,
        }
    }

    /// The same with a period of whole ticks.
    fn whole(mut self) -> Self {
        let half = 1 << (FRACTION_BITS - 1);
        self.period = ((self.period + half) >> FRACTION_BITS).max(1) << FRACTION_BITS;
        self
    }

    pub(super) fn begin(&mut self, start: Ticks) {
        self.start = start;
    }

    /// When a step is due.
    #[inline(always)]
    pub(super) fn due(&self, step: u64) -> Ticks {
        let since = (u128::from(step) * self.period) >> FRACTION_BITS;
        Ticks(self.start.0.wrapping_add(since as u64))
    }

    fn period_ticks(&self) -> u64 {
        (self.period >> FRACTION_BITS) as u64
    }

    /// Whole periods in a time.
    fn periods_in(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) << FRACTION_BITS) / self.period) as u64
    }
}

/// Waits for the steps of a schedule.
pub(super) trait Timer<C: Clock>: Send {
    /// The first step is due at `start`.
    fn begin(&mut self, start: Ticks) -> Result<(), NodeError>;

    /// Waits for the next step and returns its number, from 0; those between it and the last one were missed. `None`
    /// once `go_on` says no.
    fn wait(&mut self, clock: &C, go_on: impl FnMut() -> bool) -> Result<Option<u64>, NodeError>;

    /// Steps that were due before they were waited for, missed ones not counted.
    fn late(&self) -> u64;

    fn schedule(&self) -> &Schedule;
}

/// What every timer knows.
#[derive(Debug, Clone, Copy)]
struct TimerState {
    schedule: Schedule,
    after_miss: MissPolicy,
    next: u64,
    late: u64,
}

impl TimerState {
    fn new(schedule: Schedule, after_miss: MissPolicy) -> Self {
        TimerState {
            schedule,
            after_miss,
            next: 0,
            late: 0,
        }
    }

    /// The next step, less those that were `missed` before it.
    #[inline(always)]
    fn take(&mut self, missed: u64) -> u64 {
        let step = self.next + missed;
        self.next = step + 1;
        step
    }
}

/// Reads the clock until a step is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct BusyTimer(TimerState);

impl BusyTimer {
    pub(super) fn new(schedule: Schedule, after_miss: MissPolicy) -> Self {
        BusyTimer(TimerState::new(schedule, after_miss))
    }
}

impl<C: Clock> Timer<C> for BusyTimer {
    fn begin(&mut self, start: Ticks) -> Result<(), NodeError> {
        self.0.schedule.begin(start);
        Ok(())
    }

    #[inline(always)]
    fn wait(
        &mut self,
        clock: &C,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Option<u64>, NodeError> {
        let due = self.0.schedule.due(self.0.next);
        let ahead = |now: Ticks| due.0.wrapping_sub(now.0) as i64;
        let left = ahead(clock.now());
        if left < 0 {
            self.0.late += 1;
            let behind = left.unsigned_abs();
            let skips =
                self.0.after_miss == MissPolicy::Skip && behind >= self.0.schedule.period_ticks();
            let missed = if skips {
                self.0.schedule.periods_in(behind)
            } else {
                0
            };
            return Ok(go_on().then(|| self.0.take(missed)));
        }
        loop {
            if !go_on() {
                return Ok(None);
            }
            if ahead(clock.now()) <= 0 {
                return Ok(Some(self.0.take(0)));
            }
        }
    }

    fn late(&self) -> u64 {
        self.0.late
    }

    fn schedule(&self) -> &Schedule {
        &self.0.schedule
    }
}

/// Sleeps in the kernel, one `read` a step. The clock must be `CLOCK_MONOTONIC`, whose period is in whole nanoseconds.
#[derive(Debug)]
pub(super) struct KernelTimer {
    progress: TimerState,
    timer: TimerFd,
    /// Steps that are due and were not taken yet.
    pending: u64,
}

impl KernelTimer {
    pub(super) fn new(schedule: Schedule, after_miss: MissPolicy) -> Result<Self, NodeError> {
        let made = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC);
        Ok(KernelTimer {
            progress: TimerState::new(schedule.whole(), after_miss),
            timer: made.map_err(|errno| failed("timerfd_create")(errno.into()))?,
            pending: 0,
        })
    }
}

fn failed(operation: &'static str) -> impl FnOnce(std::io::Error) -> NodeError {
    NodeError::io(operation, "the timer of a publisher", "use --timer tsc")
}

impl<C: Clock> Timer<C> for KernelTimer {
    fn begin(&mut self, start: Ticks) -> Result<(), NodeError> {
        let schedule = &mut self.progress.schedule;
        schedule.begin(start);
        let time =
            |ns: u64| TimeSpec::new((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64);
        let expiration = Expiration::IntervalDelayed(time(start.0), time(schedule.period_ticks()));
        let set = self
            .timer
            .set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
        set.map_err(|errno| failed("timerfd_settime")(errno.into()))
    }

    fn wait(
        &mut self,
        clock: &C,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Option<u64>, NodeError> {
        let due = self.progress.schedule.due(self.progress.next);
        self.progress.late += u64::from((due.0.wrapping_sub(clock.now().0) as i64) < 0);
        while self.pending == 0 {
            if !go_on() {
                return Ok(None);
            }
            self.pending = match expirations(&self.timer) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(failed("read")(error)),
            };
        }
        let missed = match self.progress.after_miss {
            MissPolicy::Skip => std::mem::replace(&mut self.pending, 0) - 1,
            MissPolicy::CatchUp => {
                self.pending -= 1;
                0
            }
        };
        Ok(Some(self.progress.take(missed)))
    }

    fn late(&self) -> u64 {
        self.progress.late
    }

    fn schedule(&self) -> &Schedule {
        &self.progress.schedule
    }
}

/// How often the timer has expired since it was read last. nix's `TimerFd::wait` does not tell.
fn expirations(timer: &TimerFd) -> std::io::Result<u64> {
    let mut count = [0; 8];
    let fd = timer.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open as long as the timer, and the kernel writes 8 bytes into our array of 8.
    let read = unsafe { libc::read(fd, count.as_mut_ptr().cast(), count.len()) };
    match read {
        8 => Ok(u64::from_ne_bytes(count)),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::scripted;
    use crate::time::Posix;

    #[test]
    fn a_schedule_does_not_drift() {
        let clock = scripted::set(0, 0);
        let mut schedule = Schedule::of_rate(&clock, 3e6);
        schedule.begin(Ticks(50));
        assert_eq!(schedule.due(0), Ticks(50));
        let second = schedule.due(3_000_000).0;
        let is_within = (1_000_000_049..=1_000_000_051).contains(&second);
        assert!(is_within, "{second}");
        assert_eq!(schedule.whole().due(3), Ticks(50 + 3 * 333));
    }

    /// The steps that a timer takes whose publisher is away for 350 ticks after the second of steps of 100.
    fn steps(after_miss: MissPolicy) -> (Vec<u64>, u64) {
        let clock = scripted::set(0, 1);
        let mut timer = BusyTimer::new(Schedule::of_rate(&clock, 1e7), after_miss);
        Timer::<scripted::Scripted>::begin(&mut timer, Ticks(1000)).unwrap();
        let mut found = Vec::new();
        for turn in 0..5 {
            found.extend(timer.wait(&clock, || true).unwrap());
            if turn == 1 {
                scripted::advance(350);
            }
        }
        (found, Timer::<scripted::Scripted>::late(&timer))
    }

    #[test]
    fn steps_that_were_missed_are_skipped_or_made_up_for() {
        assert_eq!(steps(MissPolicy::Skip), (vec![0, 1, 4, 5, 6], 1));
        assert_eq!(steps(MissPolicy::CatchUp), (vec![0, 1, 2, 3, 4], 3));
    }

    #[test]
    fn the_kernel_tells_how_many_steps_have_passed() {
        let clock = Posix::MONOTONIC;
        for (after_miss, second) in [(MissPolicy::Skip, 4..1000), (MissPolicy::CatchUp, 1..2)] {
            let schedule = Schedule::of_rate(&clock, 200.0);
            let mut timer = KernelTimer::new(schedule, after_miss).unwrap();
            Timer::<Posix>::begin(&mut timer, clock.now()).unwrap();
            let first = timer.wait(&clock, || true).unwrap().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(25 + 5 * first));
            let found = timer.wait(&clock, || true).unwrap().unwrap();
            let second = match after_miss {
                MissPolicy::Skip => second,
                // Whatever the machine was busy with: none is left out.
                MissPolicy::CatchUp => first + 1..first + 2,
            };
            assert!(second.contains(&found), "{after_miss:?}: {first}, {found}");
            assert_eq!(
                timer.wait(&clock, || false).unwrap().is_some(),
                after_miss == MissPolicy::CatchUp
            );
        }
    }
}
