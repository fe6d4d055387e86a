//! The threads of the sending end: the sender, and where they are wanted one for the completions and one for the stamps.
//!
//! Each makes ready what belongs to it, runs its hot loop, and reports. Nothing but the loop runs between the two readings
//! of the page fault counter.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::completion::{Collector, LeftToThread};
use super::config::{Poll, Timestamp};
use super::ends::{BurstPort, SendingEnd};
use super::port::{BusyPolling, WaitForEvent};
use super::sender::{SendOutcome, SendStamp, Sending, StampMode, SubmitStamp, send};
use super::stamper::restamp;
use super::tag::Tag;
use super::worker::{Done, Frame, Post, Task, Threads, WorkerError, counting_faults, start};
use crate::buffer::StampBuffer;
use crate::host::HostError;
use crate::pacing::{ConstantWait, NoPause, Pacing};
use crate::rig::error::RigError;
use crate::rig::workers::Seat;
use crate::time::{Clock, Nanos, Ticks};

/// How the sending end works.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendingSettings {
    pub(super) pause: Nanos,
    pub(super) timestamp: Timestamp,
    /// Every so many messages one is signalled.
    pub(super) signal_every: u32,
    /// How completions are waited for by a thread of their own.
    pub(super) poll: Poll,
}

/// Where its threads run; without a thread for them, the sender takes the completions.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendingSeats {
    pub(super) sender: Seat,
    pub(super) completion: Option<Seat>,
    pub(super) stamp: Option<Seat>,
}

/// Starts the threads of the sending end; returns the ways to give them tasks.
pub(super) fn start_sending<C: Clock, E: SendingEnd>(
    threads: &mut Threads,
    clock: C,
    frame: &Frame,
    end: &Arc<E>,
    seats: SendingSeats,
    settings: SendingSettings,
) -> Result<Vec<Sender<Task>>, RigError> {
    let collects = seats.completion.is_none();
    let mut tasks = vec![start_sender(
        threads,
        clock,
        frame,
        end,
        seats.sender,
        settings,
        collects,
    )?];
    if let Some(seat) = seats.completion {
        tasks.push(start_completion(
            threads, clock, frame, end, seat, settings,
        )?);
    }
    if let Some(seat) = seats.stamp {
        let stamps = end.stamps();
        tasks.push(start(threads, seat, move |post| {
            post.placed(None);
            post.each(|task| Ok((Done::Restamped(restamp(&clock, &stamps, &task.control)), 0)))
        })?);
    }
    Ok(tasks)
}

/// Starts the sending thread.
fn start_sender<C: Clock, E: SendingEnd>(
    threads: &mut Threads,
    clock: C,
    frame: &Frame,
    end: &Arc<E>,
    seat: Seat,
    settings: SendingSettings,
    collects: bool,
) -> Result<Sender<Task>, RigError> {
    let (end, frame) = (Arc::clone(end), frame.clone());
    start(threads, seat, move |post| {
        let thread = SendingThread {
            clock,
            settings,
            collects,
            port: end.port(),
            end,
            submitted: StampBuffer::new(frame.capacity, frame.huge_pages)?,
            completed: StampBuffer::new(frame.capacity, frame.huge_pages)?,
        };
        post.placed(Some(thread.submitted.page_kind()));
        let wait = ConstantWait::new(&clock, settings.pause);
        match (settings.pause, settings.timestamp) {
            (Nanos(0), Timestamp::Submit) => thread.work::<SubmitStamp>(post, NoPause),
            (Nanos(0), Timestamp::Send) => thread.work::<SendStamp>(post, NoPause),
            (_, Timestamp::Submit) => thread.work::<SubmitStamp>(post, wait),
            (_, Timestamp::Send) => thread.work::<SendStamp>(post, wait),
        }
    })
}

struct SendingThread<C, E: SendingEnd> {
    clock: C,
    settings: SendingSettings,
    /// Whether it takes the completions itself.
    collects: bool,
    port: E::Port,
    end: Arc<E>,
    submitted: StampBuffer<Ticks>,
    completed: StampBuffer<Ticks>,
}

impl<C: Clock, E: SendingEnd> SendingThread<C, E> {
    fn work<S: StampMode>(
        mut self,
        post: Post<'_>,
        mut pacing: impl Pacing,
    ) -> Result<(), WorkerError> {
        post.each(|task| {
            // A large burst takes its time, even longer than a user who wants to end it.
            for sequence in (0..task.count).take_while(|_| !task.control.stopped()) {
                self.end.fill(task.number, sequence as u32);
            }
            let tag = Tag::new(task.number);
            self.port.set_tag(tag);
            let completed = &mut self.completed[..task.count];
            completed.fill(Ticks(0));
            let control = &*task.control;
            let (clock, port) = (&self.clock, &mut self.port);
            let burst = Sending {
                signal_every: self.settings.signal_every,
                submitted: &mut self.submitted[..task.count],
                control,
            };
            let (outcome, completions, faults) = if self.collects {
                let expected = completions_expected(task.count, burst.signal_every);
                let queue = self.end.completions();
                let mut collector = Collector::new(queue, completed, expected, tag, control);
                let (outcome, faults) = once_ready(task, || {
                    send::<S>(clock, port, &mut pacing, &mut collector, burst)
                })?;
                (outcome, Some(collector.into_outcome()), faults)
            } else {
                let (outcome, faults) = once_ready(task, || {
                    send::<S>(clock, port, &mut pacing, &mut LeftToThread, burst)
                })?;
                (outcome, None, faults)
            };
            let done = Done::Sent {
                submitted: self.submitted[..outcome.posted as usize].to_vec(),
                completed: completions
                    .map(|completions| (self.completed[..task.count].to_vec(), completions)),
                outcome,
            };
            Ok((done, faults))
        })
    }
}

/// Waits for the other threads, then runs the sending loop.
fn once_ready(
    task: &Task,
    work: impl FnOnce() -> SendOutcome,
) -> Result<(SendOutcome, u64), HostError> {
    let all_ready = task.control.wait_until_ready(task.others);
    task.control.set_begun();
    if !all_ready {
        task.control.set_sender_done();
        let nothing = SendOutcome {
            posted: 0,
            last_post: Ticks(0),
            failure: None,
        };
        return Ok((nothing, 0));
    }
    counting_faults(work)
}

/// Signalled messages among `count`, when every so many is signalled and the last always is.
pub(super) fn completions_expected(count: usize, every: u32) -> u32 {
    (count as u32).div_ceil(every)
}

/// Starts a thread that takes the send completions.
fn start_completion<C: Clock, E: SendingEnd>(
    threads: &mut Threads,
    clock: C,
    frame: &Frame,
    end: &Arc<E>,
    seat: Seat,
    settings: SendingSettings,
) -> Result<Sender<Task>, RigError> {
    let (end, frame) = (Arc::clone(end), frame.clone());
    start(threads, seat, move |post| {
        let mut completed = StampBuffer::<Ticks>::new(frame.capacity, frame.huge_pages)?;
        post.placed(Some(completed.page_kind()));
        post.each(|task| {
            let stamps = &mut completed[..task.count];
            stamps.fill(Ticks(0));
            let expected = completions_expected(task.count, settings.signal_every);
            let tag = Tag::new(task.number);
            let collector = Collector::new(end.completions(), stamps, expected, tag, &task.control);
            let (outcome, faults) = counting_faults(|| match settings.poll {
                Poll::Busy => collector.run(&clock, BusyPolling),
                Poll::Event => frame
                    .wakeable
                    .during(|| collector.run(&clock, WaitForEvent::default())),
            })?;
            let done = Done::Completed {
                completed: completed[..task.count].to_vec(),
                outcome,
            };
            Ok((done, faults))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_always_signalled() {
        assert_eq!(completions_expected(1000, 1), 1000);
        assert_eq!(completions_expected(1000, 1000), 1);
        assert_eq!(completions_expected(1000, 300), 4);
        assert_eq!(completions_expected(1, 8192), 1);
    }
}
