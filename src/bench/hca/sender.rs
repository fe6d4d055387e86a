//! The sending loop.

use super::completion::Collect;
use super::control::Control;
use super::port::{Failure, SendPort};
use crate::pacing::Pacing;
use crate::time::{Clock, Ticks};

/// Whether others may rewrite the stamp of a message that is being posted.
pub trait StampMode {
    /// Called between the stamp and the posting of message `sequence`.
    fn stamped(control: &Control, sequence: u32);
}

/// The stamp stays as it is: t_subm.
#[derive(Debug)]
pub struct SubmitStamp;

impl StampMode for SubmitStamp {
    #[inline(always)]
    fn stamped(_control: &Control, _sequence: u32) {}
}

/// The stamp is rewritten by a thread of its own until the HCA reads it: t_send.
#[derive(Debug)]
pub struct SendStamp;

impl StampMode for SendStamp {
    // Before posting, because an HCA may read the message before the posting call has returned.
    #[inline(always)]
    fn stamped(control: &Control, sequence: u32) {
        control.set_posted(sequence + 1);
    }
}

/// How a sending loop ended.
#[derive(Debug)]
pub struct SendOutcome {
    /// Messages that were accepted by the port.
    pub posted: u32,
    /// When the last posting had returned.
    pub last_post: Ticks,
    /// What kept the rest from being posted.
    pub failure: Option<Failure>,
}

/// Posts `submitted.len()` messages and stores t_subm of each. Every `signal_every`-th is signalled, and so is the last;
/// `collect` takes completions in the pauses and after the last.
#[expect(clippy::too_many_arguments, reason = "each is a component of the loop")]
pub fn send<C: Clock, P: SendPort, W: Pacing, K: Collect, S: StampMode>(
    clock: &C,
    port: &mut P,
    pacing: &mut W,
    collect: &mut K,
    _stamp_mode: S,
    signal_every: u32,
    submitted: &mut [Ticks],
    control: &Control,
) -> SendOutcome {
    let count = submitted.len() as u32;
    let mut posted = 0;
    let mut failure = None;
    let mut last_post = clock.now();
    let mut until_signaled = signal_every;
    for (sequence, slot) in submitted.iter_mut().enumerate() {
        let sequence = sequence as u32;
        until_signaled -= 1;
        let signaled = until_signaled == 0 || sequence + 1 == count;
        if until_signaled == 0 {
            until_signaled = signal_every;
        }
        port.prepare(sequence, signaled);
        let stamp = clock.now();
        port.stamp(stamp);
        S::stamped(control, sequence);
        if let Err(error) = port.post() {
            failure = Some(error);
            // `S` may have announced it.
            control.set_posted(posted);
            control.set_failed();
            break;
        }
        *slot = stamp;
        posted = sequence + 1;
        control.set_posted(posted);
        if posted == count {
            break;
        }
        pacing.pause(clock, || {
            collect.collect(clock);
            !control.stopped()
        });
        if control.stopped() {
            break;
        }
    }
    if posted > 0 {
        last_post = clock.now();
    }
    control.set_sender_done();
    collect.finish(clock, control);
    SendOutcome {
        posted,
        last_post,
        failure,
    }
}
