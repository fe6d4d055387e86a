//! How late a timer wakes a thread: what somebody sees who waits for a moment and does not read the clock all along.
//!
//! A thread on each CPU sleeps until a moment on CLOCK_MONOTONIC and reads that clock as soon as it runs again. The
//! difference is the lateness: the timer's interrupt, what the idle CPU takes to wake, and the scheduler. The next
//! moment is an interval later; those that have passed by then are counted as missed. Differences are counted in
//! constant memory. The first few wake-ups do not count.
//!
//! Left out: what of the lateness is whose.

use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId as FdClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use serde_json::{Value, json};

use crate::host::CpuSet;
use crate::host::pinning::{self, ThreadMigration};
use crate::host::throttling::ThrottleCounters;
use crate::results::Record;
use crate::results::schema::clock as column;
use crate::rig::benchmark::{Outcome, Progress, RowOutcome};
use crate::rig::control::{Control, StopFlag};
use crate::rig::findings::of_throttled_watch;
use crate::rig::named::named;
use crate::rig::workers::Crew;
use crate::time::{Clock, Posix, ReadingKind};

use super::conclude::judged;
use super::config::{Config, Length};
use super::distribution::Distribution;
use super::error::RunError;
use super::files::DISTRIBUTION;
use super::findings::broken_limits;
use super::recorder::{CountingRecorder, Recorder};
use super::run::{Observer, seat, supervise};

/// Moments are on this clock.
pub const CLOCK: ReadingKind = ReadingKind::Monotonic;
/// Wake-ups that do not count: what is touched for the first time takes longer.
pub const FOR_NOTHING: u64 = 5;
/// Who sleeps longer wakes up in between to see whether to stop, and sleeps at least half as long before the moment.
const LONGEST_SLEEP: u64 = 400_000_000;

named! {
    /// What wakes a thread.
    Timer {
        /// `clock_nanosleep` until a moment; the kernel may add the thread's timer slack, 50 us unless it has a priority.
        Nanosleep = "nanosleep",
        /// A read of a `timerfd` that expires at a moment.
        Timerfd = "timerfd",
    }
}

impl Timer {
    /// A way to sleep until a moment.
    fn sleeper(self) -> Result<impl FnMut(u64) -> Result<(), RunError>, RunError> {
        let name = self.name();
        let failed = move |errno| RunError::Timer(name, errno);
        let descriptor = match self {
            Timer::Nanosleep => None,
            Timer::Timerfd => Some(
                TimerFd::new(FdClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC).map_err(failed)?,
            ),
        };
        Ok(move |until: u64| {
            let moment = TimeSpec::from_duration(Duration::from_nanos(until));
            let slept = match &descriptor {
                None => loop {
                    let absolute = ClockNanosleepFlags::TIMER_ABSTIME;
                    match clock_nanosleep(ClockId::CLOCK_MONOTONIC, absolute, &moment) {
                        Err(Errno::EINTR) => {}
                        other => break other.map(|_| ()),
                    }
                },
                Some(timer) => {
                    let at = Expiration::OneShot(moment);
                    let set = timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
                    set.and_then(|()| timer.wait())
                }
            };
            slept.map_err(failed)
        })
    }
}

/// How late one CPU's thread was woken, in nanoseconds.
#[derive(Debug)]
struct WakeupLateness {
    cpu: usize,
    lateness: Distribution,
    wakeups: u64,
    total: u64,
    missed: u64,
    elapsed: u64,
    moved: Option<ThreadMigration>,
}

/// Sleeps by `sleep` again and again, as many times as asked for, or until told to stop.
fn wake(
    read: impl Fn() -> u64,
    interval: u64,
    wanted: Option<u64>,
    mut sleep: impl FnMut(u64) -> Result<(), RunError>,
    stop: &StopFlag,
) -> Result<WakeupLateness, RunError> {
    let mut counted = CountingRecorder::default();
    let (mut wakeups, mut total, mut missed) = (0, 0, 0);
    let begun = read();
    let (mut next, mut now, mut left_out) = (begun + interval, begun, FOR_NOTHING);
    while wanted.is_none_or(|wanted| wakeups < wanted) {
        while next.saturating_sub(now) > LONGEST_SLEEP && !stop.is_raised() {
            sleep((now + LONGEST_SLEEP).min(next - LONGEST_SLEEP / 2))?;
            now = read();
        }
        if stop.is_raised() {
            break;
        }
        sleep(next)?;
        now = read();
        let late = now.saturating_sub(next);
        let passed = late / interval;
        next += interval * (passed + 1);
        if left_out > 0 {
            left_out -= 1;
            continue;
        }
        counted.record(late);
        wakeups += 1;
        total += late;
        missed += passed;
    }
    Ok(WakeupLateness {
        cpu: 0,
        lateness: Distribution::of_counted(&counted),
        wakeups,
        total,
        missed,
        elapsed: now - begun,
        moved: None,
    })
}

/// Measures on all CPUs at once. The calling thread goes to a CPU that is `free`, if there is one.
pub fn outcome(
    config: &Config,
    free: &CpuSet,
    timer: Timer,
    observer: Observer<'_>,
) -> Result<Outcome, RunError> {
    if !free.is_empty() {
        pinning::pin_current_thread_to(free)?;
    }
    let control = Arc::new(Control::default());
    let mut crew = Crew::<WakeupLateness, RunError>::new(&control)?;
    let (interval, length) = (config.interval.0, config.length);
    let wanted = match length {
        Length::Iterations(wanted) => Some(wanted),
        Length::Duration(_) | Length::Jumps(_) => None,
    };
    for &cpu in &config.cpus {
        let control = Arc::clone(&control);
        crew.start(seat(cpu, config.priority), move |supervisor| {
            let read = || Posix::MONOTONIC.now().0;
            let woken = wake(
                read,
                interval,
                wanted,
                timer.sleeper()?,
                control.stop_flag(),
            )?;
            let moved = pinning::check_still_on(cpu).err();
            supervisor.send(WakeupLateness {
                cpu,
                moved,
                ..woken
            });
            Ok(())
        })?;
    }
    let progress = |elapsed: Duration| Progress {
        done: elapsed.as_millis() as u64,
        of: match length {
            Length::Duration(duration) => duration.as_millis() as u64,
            _ => (interval as u128 * u128::from(wanted.unwrap_or(1)) / 1_000_000) as u64,
        },
        text: Some(format!("woken by {}", timer.name())),
    };
    let mut throttling = ThrottleCounters::open();
    let (woken, signal) = supervise(&mut crew, length, Duration::ZERO, observer, progress)?;
    let throttled = of_throttled_watch(&throttling.record(), config.priority);
    let interrupted = signal.map(|signal| format!("interrupted by {signal}"));
    let mut outcome = Outcome::default();
    for woken in woken {
        let found = |percent: Option<f64>| match percent {
            None => woken.lateness.max(),
            Some(percent) => woken.lateness.percentile(percent),
        };
        let judgements = judged(config, woken.cpu, found, 1.0);
        outcome
            .broken_limits
            .extend(broken_limits(judgements.iter()));
        let moved = woken.moved.as_ref();
        let moved = moved.map(|moved| format!("the thread on CPU {} {moved}", woken.cpu));
        let nothing = (woken.wakeups == 0).then(|| {
            format!(
                "CPU {}: no wake-up counts, as the first {FOR_NOTHING} do not: use a longer --duration",
                woken.cpu
            )
        });
        outcome.rows.push(RowOutcome {
            findings: throttled.clone(),
            figures: figures(&woken),
            ends_sweep: interrupted.is_some(),
            failure: interrupted.clone().or(moved).or(nothing),
            obtained: json!({"cpu": woken.cpu}),
            instrument: Value::Null,
            details: json!({"cpu": woken.cpu, "timer": timer.name(), "limits": judgements}),
            histograms: vec![(DISTRIBUTION.to_owned(), woken.lateness.histogram(1.0))],
            interval_logs: Vec::new(),
        });
    }
    Ok(outcome)
}

fn figures(woken: &WakeupLateness) -> Record {
    let mut record = Record::new();
    let mean = (woken.wakeups > 0).then(|| woken.total as f64 / woken.wakeups as f64);
    let nanos = |value: Option<u64>| value.map(|value| value as f64);
    record
        .set(&column::ITERATIONS, woken.wakeups)
        .set(&column::ELAPSED, woken.elapsed)
        .set(&column::MEAN, mean)
        .set(&column::MIN, nanos(woken.lateness.min()))
        .set(&column::MAX, nanos(woken.lateness.max()))
        .set(&column::MISSED, woken.missed);
    for (percent, column) in &column::PERCENTILES {
        record.set(column, nanos(woken.lateness.percentile(*percent)));
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn each_wake_up_is_as_late_as_it_is_and_what_passed_meanwhile_is_missed() {
        // Late by 0, 300 and 2500 in turn, at an interval of 1000.
        let (now, count) = (Cell::new(5_000), Cell::new(0));
        let sleep = |until: u64| {
            let late = [0, 300, 2500][count.get() % 3];
            count.set(count.get() + 1);
            now.set(until + late);
            Ok(())
        };
        let woken = wake(|| now.get(), 1000, Some(7), sleep, &StopFlag::default()).unwrap();
        let late = woken.lateness.counts().collect::<Vec<_>>();
        // Behind the first five.
        assert_eq!(late, [(0, 2), (300, 2), (2500, 3)]);
        assert_eq!((woken.wakeups, woken.total, woken.missed), (7, 8100, 6));
        let row = figures(&woken);
        assert_eq!(row.number("missed"), Some(6.0));
        assert_eq!(row.number("p50_ns"), Some(300.0));
        assert_eq!(row.number("max_ns"), Some(2500.0));
    }

    #[test]
    fn who_sleeps_for_long_sees_a_stop_within_half_a_second() {
        const INTERVAL: u64 = 10_000_000_000;
        let (now, longest) = (Cell::new(0), Cell::new(0));
        let stop = StopFlag::default();
        let sleep = |until: u64| {
            longest.set(longest.get().max(until - now.get()));
            now.set(until);
            if until > 3 * INTERVAL / 2 {
                stop.raise();
            }
            Ok(())
        };
        let woken = wake(|| now.get(), INTERVAL, None, sleep, &stop).unwrap();
        assert!(longest.get() <= LONGEST_SLEEP, "{}", longest.get());
        let ends_in_time = now.get() <= 3 * INTERVAL / 2 + LONGEST_SLEEP;
        assert!(ends_in_time, "{}", now.get());
        assert_eq!(woken.wakeups, 0);
    }

    #[test]
    fn both_timers_wake_at_the_moment_or_later() {
        for &timer in Timer::ALL {
            let clock = Posix::MONOTONIC;
            let mut sleep = timer.sleeper().unwrap();
            for _ in 0..3 {
                let until = clock.now().0 + 200_000;
                sleep(until).unwrap();
                assert!(clock.now().0 >= until, "{}", timer.name());
            }
        }
    }
}
