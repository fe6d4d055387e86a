//! What ends a run that its two threads do not end themselves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::ends::EndsMaker;
use super::error::{RunError, ThreadError};
use super::notes::EndReport;
use super::patience::ELEMENTS_PER_LOOK;
use super::result::PerEnd;
use super::stage::Stage;
use super::task::{PREPARATION, SLOWEST_ELEMENT, Task};
use super::threads;
use crate::generators::ActiveLoad;
use crate::host::interrupt;
use crate::host::throttling::{ThrottleCounters, ThrottlingRecord};
use crate::rig::control::{Heartbeat, Silence};
use crate::rig::error::RigError;
use crate::rig::role::Role;
use crate::rig::workers::{Cause, Crew, SupervisorTimeouts};
use crate::sorting::sort_by_key;

const PATIENCE: SupervisorTimeouts = SupervisorTimeouts {
    look: Duration::from_millis(50),
    grace: Duration::from_secs(2),
    grace_after_signal: Duration::from_millis(300),
};

/// Makes a run, under a memory load if there is one: it begins when all threads are ready, before the first element.
/// Returns what both ends report, and what CPU quotas did behind the warm-up.
pub(super) fn make_run(
    make: EndsMaker,
    task: &Task,
    load: Option<&mut ActiveLoad<'_>>,
) -> Result<(PerEnd<Vec<EndReport>>, ThrottlingRecord), RunError> {
    supervise(make, task, &interrupt::requested, load)
}

/// The same with signals from elsewhere.
pub(super) fn supervise(
    make: EndsMaker,
    task: &Task,
    requested: &dyn Fn() -> Option<Signal>,
    load: Option<&mut ActiveLoad<'_>>,
) -> Result<(PerEnd<Vec<EndReport>>, ThrottlingRecord), RunError> {
    let stage = Arc::new(Stage::new(task, load.is_some()));
    let mut crew = Crew::new(&stage.run)?;
    if let Some(signal) = requested() {
        return Err(RunError::Rig(RigError::Interrupted(signal)));
    }
    let places = threads::start(make, task, &stage, &mut crew)?;
    let pulses = places
        .iter()
        .map(|place| (place.role(task), place.pulse(stage.control(*place))));
    let watch = RunWatch::new(task, &stage, pulses.collect(), load);
    let (mut sender, throttled) = reports(crew, watch, requested)?;
    let receiver = sender.split_off(task.cpus[0].len());
    Ok((PerEnd { sender, receiver }, throttled))
}

/// Waits for the reports of all ends, in the order in which they were started; beside them, what CPU quotas did.
fn reports<R: Send + 'static>(
    mut crew: Crew<R, ThreadError>,
    mut watch: RunWatch<'_, '_>,
    requested: &dyn Fn() -> Option<Signal>,
) -> Result<(Vec<R>, ThrottlingRecord), RunError> {
    let found = crew.collect_under(requested, &PATIENCE, || watch.complaint(), || ())?;
    let throttled = watch.throttling.record();
    watch.load.map_or(Ok(()), ActiveLoad::end)?;
    match found.cause {
        // Once told to stop, an end goes on without its pauses to its next look, and may complete: that is no result.
        Some(Cause::Signal(signal)) => {
            return Err(RunError::Rig(RigError::Interrupted(signal)));
        }
        Some(Cause::Watch(reason)) => return Err(reason),
        Some(Cause::Worker) | None => {}
    }
    // Of several, all but one may be only that another one failed.
    let (alone, others): (Vec<_>, Vec<_>) =
        (found.failures.into_iter()).partition(|(_, error)| matches!(error, ThreadError::Alone));
    if let Some((role, error)) = others.into_iter().chain(alone).next() {
        return Err(RunError::of_thread(role, error));
    }
    crew.dismiss(PATIENCE.grace);
    let mut reports = found.reports;
    sort_by_key(&mut reports, |(place, _)| *place);
    let reports = reports.into_iter().map(|(_, report)| report);
    Ok((reports.collect(), throttled))
}

struct RunWatch<'a, 'g> {
    task: &'a Task,
    stage: &'a Stage,
    ends: Vec<(Role, &'a Heartbeat)>,
    load: Option<&'a mut ActiveLoad<'g>>,
    made: Instant,
    /// Since all are ready.
    began: Option<Instant>,
    silence: Silence,
    throttling: ThrottleCounters,
}

impl<'a, 'g> RunWatch<'a, 'g> {
    /// Of these ends, whose threads are being started.
    fn new(
        task: &'a Task,
        stage: &'a Stage,
        ends: Vec<(Role, &'a Heartbeat)>,
        load: Option<&'a mut ActiveLoad<'g>>,
    ) -> Self {
        RunWatch {
            task,
            stage,
            silence: Silence::of(ends.len()),
            throttling: ThrottleCounters::open(),
            ends,
            load,
            made: Instant::now(),
            began: None,
        }
    }

    /// What is wrong, if anything is: ends that do not get ready, that are silent, or that go on and on.
    fn complaint(&mut self) -> Option<RunError> {
        if !self.stage.has_warmed_up(self.task) {
            // Of the warm-up at most what lies between two looks counts.
            self.throttling.begin();
        }
        let ends = self.ends.iter().enumerate();
        let silences: Vec<Duration> = ends
            .map(|(place, (_, pulse))| self.silence.of_thread(place, pulse))
            .collect();
        let Some(began) = self.began else {
            let late = self.ends.iter().find(|(_, pulse)| pulse.beats() == Some(0));
            let Some(&(role, _)) = late else {
                if let Some(load) = &mut self.load {
                    if let Err(error) = load.begin() {
                        return Some(error.into());
                    }
                    self.stage.run.announce_ready();
                }
                self.silence.begin();
                self.began = Some(Instant::now());
                return None;
            };
            let limit = PREPARATION;
            let is_late = self.made.elapsed() >= limit;
            return is_late.then_some(RunError::Rig(RigError::NotReady { role, limit }));
        };
        let most = longest_silence(self.task);
        if let Some(place) = silences.iter().position(|silence| *silence >= most) {
            let (role, silence) = (self.ends[place].0, most);
            return Some(RunError::Rig(RigError::Silent { role, silence }));
        }
        let limit = self.task.limit;
        (began.elapsed() >= limit).then_some(RunError::TooSlow { limit })
    }
}

/// How long nothing may be heard of an end: a pause, or what lies between two looks of its loop.
fn longest_silence(task: &Task) -> Duration {
    task.patience
        .saturating_add(SLOWEST_ELEMENT * ELEMENTS_PER_LOOK as u32)
}

#[cfg(test)]
mod tests;
