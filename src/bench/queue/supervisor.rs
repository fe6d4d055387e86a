//! What ends a run that its two threads do not end themselves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::control::Control;
use super::error::{RunError, ThreadError};
use super::notes::EndReport;
use super::patience::ELEMENTS_PER_LOOK;
use super::result::PerEnd;
use super::task::{PREPARATION, RECEIVER, SENDER, SLOWEST_ELEMENT, Task};
use super::threads::Start;
use crate::generators::Drawing;
use crate::host::interrupt;
use crate::rig::control::Silence;
use crate::rig::error::RigError;
use crate::rig::workers::{Cause, Crew, Patience};

const PATIENCE: Patience = Patience {
    look: Duration::from_millis(50),
    grace: Duration::from_secs(2),
    grace_after_signal: Duration::from_millis(300),
};

/// Makes a run, under a memory load if there is one: it begins when both ends are ready, before the first element.
pub(super) fn make_run(
    start: Start,
    task: &Task,
    load: Option<&mut Drawing<'_>>,
) -> Result<PerEnd<EndReport>, RunError> {
    supervise(start, task, &interrupt::requested, load)
}

/// The same with signals from elsewhere.
pub(super) fn supervise(
    start: Start,
    task: &Task,
    requested: &dyn Fn() -> Option<Signal>,
    load: Option<&mut Drawing<'_>>,
) -> Result<PerEnd<EndReport>, RunError> {
    let interrupted = |signal| RunError::Rig(RigError::Interrupted(signal));
    if let Some(signal) = requested() {
        return Err(interrupted(signal));
    }
    let control = Arc::new(match load {
        Some(_) => Control::under_load(),
        None => Control::default(),
    });
    let mut crew = Crew::new(&control.run)?;
    start(task, &control, &mut crew)?;
    let mut watch = Watch {
        task,
        control: &control,
        load,
        made: Instant::now(),
        began: None,
        silence: Silence::of(2),
    };
    let found = crew.collect_under(requested, &PATIENCE, || watch.complaint(), || ())?;
    watch.load.map_or(Ok(()), Drawing::end)?;
    match found.cause {
        // Once told to stop, an end goes on without its pauses to its next look, and may complete: that is no result.
        Some(Cause::Signal(signal)) => return Err(interrupted(signal)),
        Some(Cause::Watch(reason)) => return Err(reason),
        Some(Cause::Worker) | None => {}
    }
    // Of two, one is only that the other one failed.
    let (alone, others): (Vec<_>, Vec<_>) =
        (found.failures.into_iter()).partition(|(_, error)| matches!(error, ThreadError::Alone));
    if let Some((role, error)) = others.into_iter().chain(alone).next() {
        return Err(RunError::of_thread(role, error));
    }
    crew.dismiss(PATIENCE.grace);
    let mut reports = found.reports;
    reports.sort_by_key(|(place, _)| *place);
    let mut ends = reports.into_iter().map(|(_, report)| report);
    match (ends.next(), ends.next()) {
        (Some(sender), Some(receiver)) => Ok(PerEnd { sender, receiver }),
        _ => Err(RunError::Rig(RigError::NoReport { role: RECEIVER })),
    }
}

struct Watch<'a, 'g> {
    task: &'a Task,
    control: &'a Control,
    load: Option<&'a mut Drawing<'g>>,
    made: Instant,
    /// Since both are ready.
    began: Option<Instant>,
    silence: Silence,
}

impl Watch<'_, '_> {
    /// What is wrong, if anything is: ends that do not get ready, that are silent, or that go on and on.
    fn complaint(&mut self) -> Option<RunError> {
        let pulses = [&self.control.sender, &self.control.receiver];
        let roles = [SENDER, RECEIVER];
        let silences = [0, 1].map(|place| self.silence.of_thread(place, pulses[place]));
        let Some(began) = self.began else {
            let late = pulses.iter().position(|pulse| pulse.beats() == Some(0));
            let Some(place) = late else {
                if let Some(load) = &mut self.load {
                    if let Err(error) = load.begin() {
                        return Some(error.into());
                    }
                    self.control.load_has_begun();
                }
                self.silence.begin();
                self.began = Some(Instant::now());
                return None;
            };
            let (role, limit) = (roles[place], PREPARATION);
            let is_late = self.made.elapsed() >= limit;
            return is_late.then_some(RunError::Rig(RigError::NotReady { role, limit }));
        };
        let most = longest_silence(self.task);
        if let Some(place) = silences.iter().position(|silence| *silence >= most) {
            let (role, silence) = (roles[place], most);
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
