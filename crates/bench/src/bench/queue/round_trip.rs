//! The two loops of a round trip: an element goes there through one queue, and its answer comes back through another.
//! Both stamps are of one CPU, so that no offset of clocks is in the time.

use super::control::Ending;
use super::measurer::Measurer;
use super::patience::{ATTEMPTS_PER_LOOK, ELEMENTS_PER_LOOK};
use super::retry::pause;
use super::runner::{LoopCounts, Runner, Waiting, give_back, taken};
use crate::pacing::{Pacing, wait_until};
use crate::queues::element::Element;
use crate::queues::interface::{Receiver, Sender};
use crate::time::Clock;

/// An end of each of two queues.
#[derive(Debug)]
pub struct EndPair<S, R> {
    pub sender: S,
    pub receiver: R,
}

impl<T, S: Send, R: Receiver<T>> Receiver<T> for EndPair<S, R> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        self.receiver.dequeue()
    }
}

/// What an end does about attempts that fail.
struct Retries<'a> {
    waiting: Waiting<'a>,
    failed: u64,
    /// Whether to leave, when asked at a look.
    end: fn(&mut Waiting<'a>, usize) -> Option<Ending>,
}

impl<'a> Retries<'a> {
    fn new(
        waiting: &Waiting<'a>,
        failed: u64,
        end: fn(&mut Waiting<'a>, usize) -> Option<Ending>,
    ) -> Self {
        Retries {
            waiting: waiting.anew(),
            failed,
            end,
        }
    }

    /// Tries until it succeeds.
    ///
    /// # Errors
    /// With the reason why it has to leave.
    #[inline(always)]
    fn until<T>(
        &mut self,
        done: usize,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<T, Ending> {
        let mut pauses = 1;
        loop {
            if let Some(found) = attempt() {
                return Ok(found);
            }
            self.failed += 1;
            if self.failed.is_multiple_of(ATTEMPTS_PER_LOOK)
                && let Some(reason) = (self.end)(&mut self.waiting, done)
            {
                // What the other end did before it left is there by now.
                return attempt().ok_or(reason);
            }
            pause(&mut pauses, self.waiting.most_pauses);
        }
    }
}

impl<S, R, M: Measurer + Default, W: Pacing, C: Clock> Runner<'_, '_, EndPair<S, R>, M, W, C> {
    /// Puts `count` elements in, each when the answer to the one before it is there, unless it has to leave before.
    #[inline(never)]
    pub fn ask<T: Element>(self, count: usize)
    where
        S: Sender<T>,
        R: Receiver<T>,
    {
        let (mut queue, mut measurer) = (taken(self.queue), std::mem::take(self.measurer));
        let (waiter, clock, control) = (self.waiter, *self.clock, self.waiting.control);
        let LoopCounts {
            failed,
            mut damaged,
            mut unanswered,
            mut ending,
        } = *self.counted;
        let mut retries = Retries::new(self.waiting, failed, Waiting::end_of_sender);
        for done in 0..count {
            measurer.pre(&clock);
            let stamp = measurer.stamp();
            let EndPair { sender, receiver } = &mut *queue;
            let asked = retries.until(done, || sender.enqueue(T::with_stamp(stamp)).then_some(()));
            sender.flush();
            let is_asked = asked.is_ok();
            let answer = asked.and_then(|()| retries.until(done, || receiver.dequeue()));
            match answer {
                Ok(answer) => {
                    measurer.post(&clock, stamp.get());
                    let is_its_own = answer.stamp() == stamp.get() && answer.is_intact();
                    damaged += u64::from(!is_its_own);
                }
                Err(reason) => {
                    if is_asked {
                        // It went in: whether it is lost is to be seen.
                        measurer.post(&clock, stamp.get());
                        unanswered = true;
                    }
                    ending = reason;
                    break;
                }
            }
            if let Some(due) = waiter.next_due(self.clock) {
                control.sender.beat();
                wait_until(due, &clock, || !control.sender_is_over());
            }
            if done.is_multiple_of(ELEMENTS_PER_LOOK)
                && let Some(reason) = control.look_of_sender()
            {
                ending = reason;
                break;
            }
        }
        *self.counted = LoopCounts {
            failed: retries.failed,
            damaged,
            unanswered,
            ending,
        };
        *self.waiting = retries.waiting;
        *self.measurer = measurer;
        give_back(self.queue, queue);
    }

    /// Takes `count` elements out and answers each with itself, unless it has to leave before.
    #[inline(never)]
    pub fn answer<T: Element>(self, count: usize)
    where
        S: Sender<T>,
        R: Receiver<T>,
    {
        let (mut queue, mut measurer) = (taken(self.queue), std::mem::take(self.measurer));
        let (waiter, clock, control) = (self.waiter, *self.clock, self.waiting.control);
        let LoopCounts {
            failed,
            mut damaged,
            mut unanswered,
            mut ending,
        } = *self.counted;
        let mut retries = Retries::new(self.waiting, failed, Waiting::end_of_receiver);
        for done in 0..count {
            let EndPair { sender, receiver } = &mut *queue;
            let element = match retries.until(done, || receiver.dequeue()) {
                Ok(element) => element,
                Err(reason) => {
                    ending = reason;
                    break;
                }
            };
            let answered = retries.until(done, || sender.enqueue(element).then_some(()));
            sender.flush();
            measurer.post(&clock, element.stamp());
            damaged += u64::from(!element.is_intact());
            if let Err(reason) = answered {
                unanswered = true;
                ending = reason;
                break;
            }
            if let Some(due) = waiter.next_due(self.clock) {
                control.receiver.beat();
                wait_until(due, &clock, || !control.stopped());
            }
            if done.is_multiple_of(ELEMENTS_PER_LOOK)
                && let Some(reason) = control.look_of_receiver()
            {
                ending = reason;
                break;
            }
        }
        *self.counted = LoopCounts {
            failed: retries.failed,
            damaged,
            unanswered,
            ending,
        };
        *self.waiting = retries.waiting;
        *self.measurer = measurer;
        give_back(self.queue, queue);
    }
}
