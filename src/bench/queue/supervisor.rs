//! Sees a run through to its end, from beside its two threads.
//!
//! They leave their loops by themselves: when all went through, or when nothing did for too long. The supervisor sees to
//! what they cannot see to: signals, a queue or memory that does not get ready, an operation of the queue that does not
//! return (by the threads' signs of life, [`Pulse`]), and runs that go on and on. A thread that does not leave when it is
//! told to is left behind.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::control::{Control, ELEMENTS_PER_LOOK, Pulse};
use super::notes::EndReport;
use super::result::PerEnd;
use super::role::Role;
use super::run::{RunError, SLOWEST_ELEMENT};
use super::task::Task;
use super::threads::{PREPARATION, Start, ThreadError};
use crate::host::interrupt;

/// How long a thread may take to leave its loop after it was told to.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// The same after a signal, which is to end the program within a second.
const GRACE_AFTER_SIGNAL: Duration = Duration::from_millis(300);
/// How often the supervisor looks.
const LOOK: Duration = Duration::from_millis(50);

/// Runs both threads to their end.
pub(super) fn make_run(start: Start, task: &Task) -> Result<PerEnd<EndReport>, RunError> {
    supervise(start, task, &interrupt::requested)
}

/// The same with signals from elsewhere.
pub(super) fn supervise(
    start: Start,
    task: &Task,
    requested: &dyn Fn() -> Option<Signal>,
) -> Result<PerEnd<EndReport>, RunError> {
    if let Some(signal) = requested() {
        return Err(RunError::Interrupted(signal));
    }
    let control = Arc::new(Control::default());
    let (reports, incoming) = channel();
    let handles = start(task, &control, &reports).map_err(|error| {
        control.stop();
        RunError::Spawn(error)
    })?;
    drop(reports);
    let mut watch = Watch::new(task, &control);
    let mut told: Option<(Instant, RunError)> = None;
    let mut ends: PerEnd<Option<Option<EndReport>>> = PerEnd::default();
    let mut failure = None;
    while ends.sender.is_none() || ends.receiver.is_none() {
        let end = |role, ends: &mut PerEnd<_>, report| match role {
            Role::Sender => ends.sender = Some(report),
            _ => ends.receiver = Some(report),
        };
        match incoming.recv_timeout(LOOK) {
            Ok((role, Ok(report))) => end(role, &mut ends, Some(report)),
            Ok((role, Err(error))) => {
                end(role, &mut ends, None);
                // Of two, one is only that the other one failed.
                if failure.is_none() || !matches!(error, ThreadError::Alone) {
                    failure = Some(RunError::Thread(role, error));
                }
            }
            // A thread has ended without a report: joining it says why.
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let at_work = PerEnd {
            sender: ends.sender.is_none(),
            receiver: ends.receiver.is_none(),
        };
        // Nobody is left to be told anything.
        if !at_work.sender && !at_work.receiver {
            break;
        }
        let reason = match (requested(), &told) {
            (Some(signal), None | Some((_, RunError::Interrupted(_)))) => {
                Some(RunError::Interrupted(signal))
            }
            // Whatever else there was: a signal ends it sooner.
            (Some(signal), Some(_)) => {
                told = None;
                Some(RunError::Interrupted(signal))
            }
            (None, None) => watch.complaint(at_work),
            (None, Some(_)) => None,
        };
        match (&mut told, reason) {
            (None, Some(reason)) => {
                control.stop();
                told = Some((Instant::now(), reason));
            }
            (Some((since, reason)), _) if is_over(*since, reason) => {
                let role = if at_work.sender {
                    Role::Sender
                } else {
                    Role::Receiver
                };
                return Err(match told {
                    Some((_, reason @ (RunError::Interrupted(_) | RunError::NotReady { .. }))) => {
                        reason
                    }
                    _ => RunError::Stuck { role },
                });
            }
            _ => {}
        }
    }
    for handle in handles {
        handle.join().map_err(|_| RunError::Panicked)?;
    }
    if let Some(signal) = requested() {
        return Err(RunError::Interrupted(signal));
    }
    let (sender, receiver) = (ends.sender.flatten(), ends.receiver.flatten());
    match (sender, receiver, failure) {
        // Told to leave while it was still getting ready, an end has nothing to report.
        (_, _, Some(failure)) => match (failure, told) {
            (RunError::Thread(_, ThreadError::Alone), Some((_, reason))) => Err(reason),
            (failure, _) => Err(failure),
        },
        // Once told to stop, an end goes on without its pauses to its next look, and may even complete: that is no result.
        (Some(sender), Some(receiver), None) => match told {
            Some((_, reason)) => Err(reason),
            None => Ok(PerEnd { sender, receiver }),
        },
        (_, receiver, None) => Err(RunError::Thread(
            if receiver.is_none() {
                Role::Receiver
            } else {
                Role::Sender
            },
            ThreadError::Alone,
        )),
    }
}

/// Whether a thread that was told to leave, for that reason, has had its time.
fn is_over(since: Instant, reason: &RunError) -> bool {
    let grace = match reason {
        RunError::Interrupted(_) => GRACE_AFTER_SIGNAL,
        _ => GRACE,
    };
    since.elapsed() >= grace
}

/// When an end was last heard of.
struct Heard {
    beats: Option<u64>,
    at: Instant,
}

impl Heard {
    /// How long it has not been heard of; [`Duration::ZERO`] where it need not be.
    fn silence(&mut self, pulse: &Pulse, at_work: bool) -> Duration {
        let beats = pulse.beats();
        if beats != self.beats {
            *self = Heard {
                beats,
                at: Instant::now(),
            };
        }
        if at_work && beats.is_some() {
            self.at.elapsed()
        } else {
            Duration::ZERO
        }
    }
}

/// What the supervisor knows of both ends.
struct Watch<'a> {
    task: &'a Task,
    control: &'a Control,
    made: Instant,
    /// Since both are ready.
    began: Option<Instant>,
    heard: PerEnd<Heard>,
}

impl<'a> Watch<'a> {
    fn new(task: &'a Task, control: &'a Control) -> Self {
        let made = Instant::now();
        let heard = || Heard {
            beats: Some(0),
            at: made,
        };
        Watch {
            task,
            control,
            made,
            began: None,
            heard: PerEnd {
                sender: heard(),
                receiver: heard(),
            },
        }
    }

    /// What is wrong with the ends that are still at work, if anything is.
    fn complaint(&mut self, at_work: PerEnd<bool>) -> Option<RunError> {
        let silence = PerEnd {
            sender: (self.heard.sender).silence(&self.control.sender, at_work.sender),
            receiver: (self.heard.receiver).silence(&self.control.receiver, at_work.receiver),
        };
        let Some(began) = self.began else {
            let is_ready = |pulse: &Pulse| pulse.beats() != Some(0);
            let sender_is = is_ready(&self.control.sender) || !at_work.sender;
            let receiver_is = is_ready(&self.control.receiver) || !at_work.receiver;
            if sender_is && receiver_is {
                let now = Instant::now();
                (self.heard.sender.at, self.heard.receiver.at) = (now, now);
                self.began = Some(now);
            }
            let role = if sender_is {
                Role::Receiver
            } else {
                Role::Sender
            };
            let is_late = self.began.is_none() && self.made.elapsed() >= PREPARATION;
            return is_late.then_some(RunError::NotReady { role });
        };
        let most = longest_silence(self.task);
        for (role, silence) in [
            (Role::Sender, silence.sender),
            (Role::Receiver, silence.receiver),
        ] {
            if silence >= most {
                return Some(RunError::Stalled {
                    role,
                    silence: most,
                });
            }
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
