//! A receiver that has other work to do: between two looks at its completion queue it is away for a while.
//!
//! It stands for an application that handles what it received, or polls something else, on the receiving thread. A
//! message that comes while it is away waits, and the wait is in its latency: half of the time away at the least, on
//! average, and more where messages come faster than it looks. The loop itself is the same: this is a port before its
//! port.

use super::port::{CompletionPort, EventPort, Failure, PollResult};
use crate::pacing::Pacing;
use crate::rig::control::StopFlag;
use crate::time::Clock;

/// Slots that a look goes over where messages may be lost without a trace: each further look would cost a pause.
const SLOTS_PER_LOOK: usize = 64;

/// A port whose every look comes after a pause, which the stop flag ends.
#[derive(Debug)]
pub struct BusyReceiver<'a, P, C, W> {
    port: &'a mut P,
    clock: &'a C,
    work: W,
    stop: &'a StopFlag,
}

impl<'a, P, C: Clock, W: Pacing> BusyReceiver<'a, P, C, W> {
    /// `port`, looked at after `work` each time.
    pub fn new(port: &'a mut P, clock: &'a C, work: W, stop: &'a StopFlag) -> Self {
        BusyReceiver {
            port,
            clock,
            work,
            stop,
        }
    }
}

impl<P: CompletionPort, C: Clock, W: Pacing + Send> CompletionPort for BusyReceiver<'_, P, C, W> {
    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        self.work.pause(self.clock, || !self.stop.is_raised());
        match self.port.poll() {
            PollResult::Empty if self.port.finds_behind(SLOTS_PER_LOOK) => self.port.poll(),
            found => found,
        }
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

impl<P: EventPort, C: Clock, W: Pacing + Send> EventPort for BusyReceiver<'_, P, C, W> {
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
    use crate::bench::hca::loops::port::BusyPolling;
    use crate::bench::hca::loops::port::scripted::{Counting, Look, Script};
    use crate::bench::hca::loops::receiver::receive;
    use crate::bench::hca::loops::tag::{Expected, Tag};
    use crate::buffer::Arrival;
    use crate::pacing::{ConstantWait, NoPause};
    use crate::time::Nanos;

    /// The stamps of three messages that are there from the beginning, with one look in between that finds nothing.
    fn stamps(work: impl Pacing + Send) -> Vec<u64> {
        let tag = Tag::new(1);
        let message = |sequence: u32| Look::Done(0, tag.immediate_data(sequence));
        let control = Control::default();
        let mut script = Script::new(
            [message(0), Look::Empty, message(1), message(2)],
            Look::Empty,
            &control,
        );
        let before = Counting.now().0;
        let mut arrivals = vec![Arrival::default(); 3];
        let mut port = BusyReceiver::new(&mut script, &Counting, work, control.stop_flag());
        let outcome = receive(
            &Counting,
            &mut port,
            BusyPolling,
            Expected::new(1, 3, &[]),
            &mut arrivals,
            &control,
        );
        assert_eq!(outcome.received, 3);
        arrivals
            .iter()
            .map(|arrival| arrival.stamp.0 - before)
            .collect()
    }

    #[test]
    fn each_look_comes_after_the_work() {
        assert_eq!(stamps(NoPause), [1, 2, 3]);
        // The clock counts its readings. A wait of 20 takes 21 of them, the stamp one more; one look found nothing.
        let waiting = stamps(ConstantWait::new(&Counting, Nanos(20)));
        assert_eq!(waiting, [22, 22 + 21 + 22, 22 + 21 + 22 + 22]);
    }

    #[test]
    fn a_stop_ends_the_work() {
        let control = Control::default();
        control.stop();
        let mut script = Script::new([], Look::Empty, &control);
        // Without a stop it would take more looks at the clock than anybody waits for.
        let work = ConstantWait::new(&Counting, Nanos(u64::MAX));
        let mut port = BusyReceiver::new(&mut script, &Counting, work, control.stop_flag());
        assert!(matches!(port.poll(), PollResult::Empty));
    }
}
