//! The receive requests that are posted.

use super::config::LARGEST_BURST;
use super::port::{CompletionPort, EventPort, Failure, Polled};
use super::receiver::Strays;
use super::tag::Expected;

/// The receive requests of all queue pairs of an end.
pub(super) struct ReceiveRequests {
    /// Slots of each queue pair.
    slots: usize,
    queue_pairs: Vec<Ring>,
}

/// Those of one queue pair. Its slots are used in turn, so a request that a lost message left behind keeps its slot to
/// itself.
#[derive(Clone, Default)]
struct Ring {
    next: usize,
    outstanding: usize,
}

impl ReceiveRequests {
    /// None yet, for `slots` slots in all.
    pub(super) fn new(slots: usize, queue_pairs: u32) -> Self {
        let queue_pairs = queue_pairs as usize;
        ReceiveRequests {
            slots: slots / queue_pairs,
            queue_pairs: vec![Ring::default(); queue_pairs],
        }
    }

    /// Posts so many to each queue pair that one is outstanding for each of its slots; `post` posts one for a slot.
    pub(super) fn top_up<E>(
        &mut self,
        mut post: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        for (number, ring) in self.queue_pairs.iter_mut().enumerate() {
            while ring.outstanding < self.slots {
                post(number * self.slots + ring.next)?;
                ring.next = (ring.next + 1) % self.slots;
                ring.outstanding += 1;
            }
        }
        Ok(())
    }

    /// Takes the completions of messages that came between two bursts, so that their requests are posted anew.
    pub(super) fn drain(
        &mut self,
        port: &mut impl CompletionPort,
        expected: &Expected<'_>,
    ) -> Strays {
        let mut strays = Strays::default();
        let mut port = self.counting(port);
        loop {
            match port.poll() {
                Polled::Done(completion) => strays.file(&completion, expected, LARGEST_BURST),
                Polled::Failed(failure) if failure.foreign => strays.foreign += 1,
                // A failed one says no more than the burst to come will say itself.
                Polled::Empty | Polled::Failed(_) => return strays,
            }
        }
    }

    /// A port before `port` that counts which queue pair's requests were taken.
    pub(super) fn counting<'a, P>(&'a mut self, port: &'a mut P) -> CountingPort<'a, P> {
        CountingPort {
            port,
            requests: self,
            taken: None,
        }
    }

    /// Messages have taken so many requests of the only queue pair.
    pub(super) fn took_of_only(&mut self, count: usize) {
        let only = &mut self.queue_pairs[0];
        only.outstanding -= count.min(only.outstanding);
    }

    /// A message has taken this request.
    fn took(&mut self, request: u64) {
        if let Some(ring) = self.queue_pairs.get_mut(request as usize / self.slots) {
            ring.outstanding = ring.outstanding.saturating_sub(1);
        }
    }
}

/// A port that tells [`ReceiveRequests`] of each request that a message took: at the look after it, so that nothing
/// stands between a completion and its stamp.
pub(super) struct CountingPort<'a, P> {
    port: &'a mut P,
    requests: &'a mut ReceiveRequests,
    /// The request that the look before brought.
    taken: Option<u64>,
}

impl<P> CountingPort<'_, P> {
    #[inline(always)]
    fn count(&mut self) {
        if let Some(request) = self.taken.take() {
            self.requests.took(request);
        }
    }
}

impl<P> Drop for CountingPort<'_, P> {
    fn drop(&mut self) {
        self.count();
    }
}

impl<P: CompletionPort> CompletionPort for CountingPort<'_, P> {
    #[inline(always)]
    fn poll(&mut self) -> Polled {
        self.count();
        let polled = self.port.poll();
        self.taken = match &polled {
            Polled::Done(completion) => Some(completion.request),
            Polled::Failed(failure) if failure.foreign => failure.request,
            Polled::Empty | Polled::Failed(_) => None,
        };
        polled
    }
}

impl<P: EventPort> EventPort for CountingPort<'_, P> {
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
    use crate::bench::hca::control::Control;
    use crate::bench::hca::port::scripted::{Look, Script};
    use crate::bench::hca::tag::Tag;

    /// The slots that topping up posts requests for.
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
        let mut requests = ReceiveRequests::new(6, 2);
        assert_eq!(posted(&mut requests), [0, 1, 2, 3, 4, 5]);
        assert_eq!(posted(&mut requests), [0_usize; 0]);
        let control = Control::default();
        let (message, stray) = (Look::Done(0, 0), Look::Done(3, 0));
        let misfit = Look::Done(4, 0);
        let mut script = Script::new([message, Look::Empty, stray, misfit], Look::Empty, &control);
        let mut port = requests.counting(&mut script);
        for _ in 0..4 {
            port.poll();
        }
        // What the last look brought counts, too.
        drop(port);
        assert_eq!(posted(&mut requests), [0, 3, 4]);
        requests.took(2);
        requests.took(5);
        // One was lost and left its request behind; the next of the ring is posted.
        assert_eq!(posted(&mut requests), [1, 5]);
    }

    #[test]
    fn those_of_a_single_queue_pair_are_counted_after_the_burst() {
        let mut requests = ReceiveRequests::new(4, 1);
        posted(&mut requests);
        requests.took_of_only(3);
        assert_eq!(posted(&mut requests), [0, 1, 2]);
        requests.took_of_only(9);
        assert_eq!(posted(&mut requests), [3, 0, 1, 2]);
    }

    #[test]
    fn what_came_between_two_bursts_is_told_and_its_requests_are_posted_anew() {
        let mut requests = ReceiveRequests::new(4, 2);
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
