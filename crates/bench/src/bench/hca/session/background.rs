//! The background's thread, from its start before the warm-up to its end after the last burst.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::background::{
    BackgroundProgress, BackgroundTraffic, Channel, Messages, run,
};
use crate::bench::hca::plan::placement::BACKGROUND;
use crate::bench::hca::settings::background::Background;
use crate::host::pinning;
use crate::pacing::{ConstantRate, Interval, MissPolicy};
use crate::rig::control::Control;
use crate::rig::error::RigError;
use crate::rig::workers::{Cause, Crew, SupervisorTimeouts, WorkerPlacement};
use crate::time::Clock;

/// How long the thread may take until it is at work.
const STARTING: Duration = Duration::from_secs(30);

/// A background at work. It ends when this is dropped.
pub(crate) struct RunningBackground {
    crew: Crew<(), RunError>,
    control: Arc<Control>,
    progress: Arc<BackgroundProgress>,
    /// When the measured bursts began, and what had been done by then.
    began: Option<(Instant, Messages)>,
    requested: fn() -> Option<Signal>,
}

impl RunningBackground {
    /// Starts the thread on a CPU, where it makes the channels that it posts to. `requested` tells of signals.
    ///
    /// # Errors
    /// When the thread cannot be started, or is not at work in time.
    pub(crate) fn start<C: Clock, N: Channel>(
        clock: C,
        background: &Background,
        cpu: usize,
        channels: impl FnOnce() -> Vec<N> + Send + 'static,
        requested: fn() -> Option<Signal>,
    ) -> Result<Self, RunError> {
        let control = Arc::new(Control::default());
        let progress = Arc::new(BackgroundProgress::default());
        let mut crew = Crew::new(&control)?;
        let (flag, counts) = (Arc::clone(&control), Arc::clone(&progress));
        let (per_second, most) = (f64::from(background.per_second), background.in_flight());
        // It is no measuring thread: it has no priority over others.
        let seat = WorkerPlacement {
            role: BACKGROUND,
            cpu,
            priority: None,
        };
        crew.start(seat, move |reporter| {
            let channels = channels();
            let interval = Interval::from_rate(&clock, per_second);
            let pace = ConstantRate::new(interval, MissPolicy::CatchUp);
            reporter.send(());
            let failure = run(&clock, pace, channels, most, &counts, flag.stop_flag()).err();
            let moved = || {
                let (role, moved) = (BACKGROUND, pinning::check_still_on(cpu).err()?);
                Some(RigError::Moved { role, moved }.to_string())
            };
            let failure = failure.map(|failure| failure.to_string());
            if let Some(failure) = failure.or_else(moved) {
                let _ = counts.failure.set(failure);
            }
            reporter.send(());
            Ok(())
        })?;
        let mut running = RunningBackground {
            crew,
            control,
            progress,
            began: None,
            requested,
        };
        let since = Instant::now();
        running.collect(|| (since.elapsed() > STARTING).then_some(()))?;
        Ok(running)
    }

    /// Waits for the next report of the thread.
    fn collect(&mut self, late: impl FnMut() -> Option<()>) -> Result<(), RunError> {
        let patience = SupervisorTimeouts::default();
        let collected = (self.crew).collect_under(&self.requested, &patience, late, || ())?;
        if let Some((role, error)) = collected.failures.into_iter().next() {
            return Err(RunError::Worker(role, Box::new(error)));
        }
        match collected.cause {
            Some(Cause::Signal(signal)) => Err(RigError::Interrupted(signal).into()),
            Some(_) => {
                let (role, limit) = (BACKGROUND, STARTING);
                Err(RigError::NotReady { role, limit }.into())
            }
            None => Ok(()),
        }
    }

    /// The measured bursts begin.
    pub(crate) fn begin(&mut self) {
        self.began = Some((Instant::now(), self.progress.read()));
    }

    /// Why it has ended, if it has. Never blocks.
    pub(crate) fn trouble(&self) -> Option<String> {
        let told = self.progress.failure.get();
        let failure = told.map(|failure| format!("{BACKGROUND}: {failure}"));
        let panicked = || {
            self.control
                .failed()
                .then(|| format!("the {BACKGROUND} panicked"))
        };
        failure.or_else(panicked)
    }

    /// The measured bursts are over: ends it. Returns what it did meanwhile, and why it failed, if it did.
    pub(crate) fn end(mut self) -> (BackgroundTraffic, Option<String>) {
        let now = self.progress.read();
        let (since, before) = self.began.unwrap_or((Instant::now(), now));
        let delivered = BackgroundTraffic {
            time: since.elapsed(),
            messages: Messages {
                posted: now.posted - before.posted,
                completed: now.completed - before.completed,
                missed: now.missed - before.missed,
            },
        };
        let patience = SupervisorTimeouts::default();
        self.crew.dismiss(match (self.requested)() {
            Some(_) => patience.grace_after_signal,
            None => patience.grace,
        });
        let trouble = self.trouble();
        (delivered, trouble)
    }
}

#[cfg(test)]
pub(in crate::bench::hca) mod tests {
    use super::*;
    use crate::bench::hca::loops::background::Copies;
    use crate::bench::hca::loops::port::scripted::failure;
    use crate::bench::hca::loops::port::{Failure, PollResult};
    use crate::bench::hca::settings::background::tests::background;
    use crate::time::Posix;

    fn started<N: Channel>(
        channels: impl FnOnce() -> Vec<N> + Send + 'static,
    ) -> RunningBackground {
        let cpu = pinning::reachable_cpus().unwrap().first().unwrap();
        let background = background(1_000_000, 64, 1);
        RunningBackground::start(Posix::MONOTONIC, &background, cpu, channels, || None).unwrap()
    }

    /// One that copies.
    pub(in crate::bench::hca) fn copying() -> RunningBackground {
        started(|| vec![Copies::new(64, 64)])
    }

    pub(in crate::bench::hca) fn failing() -> RunningBackground {
        let running = started(|| vec![Broken]);
        wait_until(&running, |it| it.trouble().is_some());
        running
    }

    fn wait_until(running: &RunningBackground, done: impl Fn(&RunningBackground) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !done(running) {
            assert!(Instant::now() < deadline, "{:?}", running.progress);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_counts_is_what_is_done_from_the_first_measured_burst_on() {
        let mut running = copying();
        wait_until(&running, |it| it.progress.read().completed > 10);
        running.begin();
        let before = running.progress.read().completed;
        wait_until(&running, |it| it.progress.read().completed > before + 10);
        let all = Arc::clone(&running.progress);
        let (delivered, trouble) = running.end();
        assert_eq!(trouble, None);
        let counted = delivered.messages.completed;
        assert!(counted > 9, "{delivered:?}");
        assert!(counted <= all.read().completed - 10, "{delivered:?}");
        assert!(delivered.rate() > 0.0 && delivered.rate().is_finite());
        // Its thread has ended.
        assert_eq!(Arc::strong_count(&all), 1);
    }

    struct Broken;

    impl Channel for Broken {
        fn post(&mut self, _slot: u32) -> Result<(), Failure> {
            Ok(())
        }

        fn poll(&mut self) -> PollResult {
            PollResult::Failed(failure(12, false))
        }
    }

    #[test]
    fn a_failure_is_told_while_it_runs_and_at_its_end() {
        let running = failing();
        let told = Some("background thread: failure 12".to_owned());
        assert_eq!(running.trouble(), told);
        assert_eq!(running.end().1, told);
    }
}
