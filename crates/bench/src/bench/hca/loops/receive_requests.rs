//! The receive requests that are posted.

use super::control::Control;
use super::port::{CompletionPort, EventPort, Failure, PollResult};
use super::receiver::Strays;
use super::tag::Expected;
use crate::bench::hca::settings::limits::LARGEST_BURST;

/// The receive requests of an end: in a queue of each queue pair, or in one that they share.
pub(crate) struct ReceiveRequests {
    /// Slots of each queue.
    slots: usize,
    /// Requests that a queue holds at a time: fewer than slots where what is taken is posted anew while a burst runs.
    most: usize,
    queues: Vec<Ring>,
}

/// Those of one queue. Its slots are used in turn, so a request that a lost message left behind keeps its slot to
/// itself.
#[derive(Clone, Default)]
struct Ring {
    next: usize,
    outstanding: usize,
    /// Those that may still be posted in this burst: until each slot was used once, so that none is used twice.
    to_come: usize,
}

impl ReceiveRequests {
    /// None yet, for `slots` slots in all, of which each queue takes up to `most` at a time.
    pub(crate) fn new(slots: usize, most: usize, queues: u32) -> Self {
        let queues = queues as usize;
        ReceiveRequests {
            slots: slots / queues,
            most,
            queues: vec![Ring::default(); queues],
        }
    }

    /// Whether each slot has a request before a burst, so that none is posted anew while it runs.
    pub(crate) fn holds_all_slots(&self) -> bool {
        self.most == self.slots
    }

    /// Posts as many to each queue as it holds, before a burst; `post` posts one for a slot.
    pub(crate) fn top_up<E>(
        &mut self,
        mut post: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        for (number, ring) in self.queues.iter_mut().enumerate() {
            while ring.outstanding < self.most {
                post(number * self.slots + ring.take_next(self.slots))?;
            }
            ring.to_come = self.slots - self.most;
        }
        Ok(())
    }

    /// Takes the completions of messages that came between two bursts, so that their requests are posted anew.
    pub(crate) fn drain(
        &mut self,
        port: &mut impl CompletionPort,
        expected: &Expected<'_>,
    ) -> Strays {
        let mut strays = Strays::default();
        self.queues.iter_mut().for_each(|ring| ring.to_come = 0);
        loop {
            let polled = port.poll();
            if let Some(request) = taken_by(&polled) {
                self.took(request);
            }
            match polled {
                PollResult::Done(completion) => strays.file(&completion, expected, LARGEST_BURST),
                PollResult::Failed(failure) if failure.foreign => strays.foreign += 1,
                // A failed one says no more than the burst to come will say itself.
                PollResult::Empty | PollResult::Failed(_) => return strays,
            }
        }
    }

    /// A port before `port` that counts which queue's requests were taken, and posts them anew by `post` as far as
    /// the burst has use for them.
    pub(crate) fn renewing<'a, P, F: FnMut(usize) -> Result<(), Failure>>(
        &'a mut self,
        port: &'a mut P,
        post: F,
        control: &'a Control,
    ) -> RenewingPort<'a, P, F> {
        RenewingPort {
            port,
            post,
            control,
            requests: self,
            taken: None,
            renewed: 0,
        }
    }

    /// Messages have taken this number of requests of the only queue.
    pub(crate) fn took_of_only(&mut self, count: usize) {
        let only = &mut self.queues[0];
        only.outstanding -= count.min(only.outstanding);
    }

    /// A message has taken this request. Returns the slot for which one is to be posted instead, if any.
    #[inline(always)]
    fn took(&mut self, request: u64) -> Option<usize> {
        let number = request as usize / self.slots;
        let ring = self.queues.get_mut(number)?;
        ring.outstanding = ring.outstanding.saturating_sub(1);
        ring.to_come = ring.to_come.checked_sub(1)?;
        Some(number * self.slots + ring.take_next(self.slots))
    }
}

impl Ring {
    /// Takes the next of so many slots for a request.
    #[inline(always)]
    fn take_next(&mut self, slots: usize) -> usize {
        let slot = self.next;
        self.next = (self.next + 1) % slots;
        self.outstanding += 1;
        slot
    }
}

/// The request that a message has taken, if a look brought one.
#[inline(always)]
fn taken_by(polled: &PollResult) -> Option<u64> {
    match polled {
        PollResult::Done(completion) => Some(completion.request),
        PollResult::Failed(failure) if failure.foreign => failure.request,
        PollResult::Empty | PollResult::Failed(_) => None,
    }
}

/// A port that tells [`ReceiveRequests`] of each request that a message took: at the look after it, so that nothing
/// stands between a completion and its stamp.
pub(crate) struct RenewingPort<'a, P, F> {
    port: &'a mut P,
    post: F,
    control: &'a Control,
    requests: &'a mut ReceiveRequests,
    /// The request that the look before brought.
    taken: Option<u64>,
    renewed: u32,
}

impl<P, F: FnMut(usize) -> Result<(), Failure>> RenewingPort<'_, P, F> {
    #[inline(always)]
    fn renew(&mut self) -> Result<(), Failure> {
        let Some(request) = self.taken.take() else {
            return Ok(());
        };
        if let Some(slot) = self.requests.took(request) {
            (self.post)(slot)?;
        }
        // Where none is to come, those that are posted are enough for all messages to come.
        self.renewed += 1;
        self.control.set_renewed(self.renewed);
        Ok(())
    }

    /// Counts what the last look brought, too.
    ///
    /// # Errors
    /// When a request cannot be posted.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.renew()
    }
}

impl<P, F> CompletionPort for RenewingPort<'_, P, F>
where
    P: CompletionPort,
    F: FnMut(usize) -> Result<(), Failure> + Send,
{
    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        if let Err(failure) = self.renew() {
            return PollResult::Failed(failure);
        }
        let polled = self.port.poll();
        self.taken = taken_by(&polled);
        polled
    }

    #[inline(always)]
    fn keep_stamp(&mut self, place: usize) {
        self.port.keep_stamp(place);
    }

    #[inline(always)]
    fn finds_behind(&mut self, slots: usize) -> bool {
        self.port.finds_behind(slots)
    }
}

impl<P, F> EventPort for RenewingPort<'_, P, F>
where
    P: EventPort,
    F: FnMut(usize) -> Result<(), Failure> + Send,
{
    #[inline(always)]
    fn arm(&mut self) -> Result<(), Failure> {
        self.port.arm()
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Failure> {
        self.port.sleep()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::loops::control::Control;
    use crate::bench::hca::loops::port::scripted::{Look, Script, failure};
    use crate::bench::hca::loops::tag::Tag;

    fn posted(requests: &mut ReceiveRequests) -> Vec<usize> {
        let mut slots = Vec::new();
        let posted = requests.top_up::<()>(|slot| {
            slots.push(slot);
            Ok(())
        });
        posted.unwrap();
        slots
    }

    #[test]
    fn each_queue_pair_keeps_to_its_slots_and_uses_them_in_turn() {
        let mut requests = ReceiveRequests::new(6, 3, 2);
        assert_eq!(posted(&mut requests), [0, 1, 2, 3, 4, 5]);
        assert_eq!(posted(&mut requests), [0_usize; 0]);
        let control = Control::default();
        let (message, stray) = (Look::Done(0, 0), Look::Done(3, 0));
        let misfit = Look::Done(4, 0);
        let mut script = Script::new([message, Look::Empty, stray, misfit], Look::Empty, &control);
        let mut port = requests.renewing(&mut script, |_| unreachable!(), &control);
        for _ in 0..4 {
            port.poll();
        }
        // What the last look brought counts, too.
        port.finish().unwrap();
        assert_eq!(posted(&mut requests), [0, 3, 4]);
        requests.took(2);
        requests.took(5);
        // One was lost and left its request behind; the next of the ring is posted.
        assert_eq!(posted(&mut requests), [1, 5]);
    }

    #[test]
    fn requests_are_posted_anew_until_each_slot_was_used_once() {
        let mut requests = ReceiveRequests::new(10, 2, 2);
        assert_eq!(posted(&mut requests), [0, 1, 5, 6]);
        let control = Control::default();
        // One after the other as they were posted, of both queue pairs in no order.
        let taken = [0, 5, 1, 2, 3, 6, 4];
        let looks = taken.map(|slot| Look::Done(slot, 0));
        let mut script = Script::new(looks, Look::Empty, &control);
        let mut anew = Vec::new();
        let post = |slot| {
            // Told after it was posted, not before.
            anew.push((slot, control.renewed()));
            Ok(())
        };
        let mut port = requests.renewing(&mut script, post, &control);
        for _ in taken {
            port.poll();
        }
        port.finish().unwrap();
        let expected = [(2, 0), (7, 1), (3, 2), (4, 3), (8, 5)];
        assert_eq!((anew, control.renewed()), (expected.to_vec(), 7));
        // The next burst begins with as many again, each in the slot after the last.
        assert_eq!(posted(&mut requests), [0, 1]);
    }

    #[test]
    fn a_request_that_cannot_be_posted_anew_is_a_failure() {
        let mut requests = ReceiveRequests::new(4, 2, 1);
        posted(&mut requests);
        let control = Control::default();
        let mut script = Script::new([Look::Done(0, 0)], Look::Empty, &control);
        let mut port = requests.renewing(&mut script, |_| Err(failure(12, false)), &control);
        assert!(matches!(port.poll(), PollResult::Done(_)));
        assert!(matches!(port.poll(), PollResult::Failed(_)));
        assert_eq!(control.renewed(), 0);
    }

    #[test]
    fn those_of_a_single_queue_pair_are_counted_after_the_burst() {
        let mut requests = ReceiveRequests::new(4, 4, 1);
        posted(&mut requests);
        requests.took_of_only(3);
        assert_eq!(posted(&mut requests), [0, 1, 2]);
        requests.took_of_only(9);
        assert_eq!(posted(&mut requests), [3, 0, 1, 2]);
    }

    #[test]
    fn what_came_between_two_bursts_is_told_and_its_requests_are_posted_anew() {
        let mut requests = ReceiveRequests::new(4, 2, 2);
        posted(&mut requests);
        let control = Control::default();
        let (late, foreign) = (Tag::new(1), Tag::new(9));
        let looks = [
            Look::Done(2, late.immediate_data(1)),
            Look::Done(0, foreign.immediate_data(0)),
            Look::Empty,
            Look::Done(1, late.immediate_data(0)),
        ];
        let mut script = Script::new(looks, Look::Empty, &control);
        let expected = Expected::new(2, 4, &[]);
        let strays = requests.drain(&mut script, &expected);
        assert_eq!((strays.late, strays.foreign), (1, 1));
        assert_eq!(posted(&mut requests), [0, 2]);
    }
}
