//! Ports over memory that two threads share: no fabric at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::port::{Completion, CompletionPort, Failure, PollResult, SendPort};
use crate::time::Ticks;

/// A message and the flag that says it is there, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    stamp: AtomicU64,
    /// Immediate data and, in the highest bit, whether the message is there.
    label: AtomicU64,
}

const PRESENT: u64 = 1 << 63;

/// One slot a message, each used once.
type Slots = Arc<Vec<Slot>>;

/// The sending end.
#[derive(Debug)]
pub struct MemorySendPort {
    slots: Slots,
    label: u64,
    next: usize,
}

/// The receiving end.
#[derive(Debug)]
pub struct MemoryReceivePort {
    slots: Slots,
    next: usize,
}

/// Both ends of a connection for `messages` messages, whose immediate data are `first_label` and what follows.
pub fn connect(messages: usize, first_label: u32) -> (MemorySendPort, MemoryReceivePort) {
    let slots: Slots = Arc::new((0..messages).map(|_| Slot::default()).collect());
    let send = MemorySendPort {
        slots: Arc::clone(&slots),
        label: u64::from(first_label),
        next: 0,
    };
    (send, MemoryReceivePort { slots, next: 0 })
}

impl SendPort for MemorySendPort {
    #[inline(always)]
    fn prepare(&mut self, sequence: u32, _signaled: bool) {
        self.next = sequence as usize;
    }

    #[inline(always)]
    fn stamp(&mut self, stamp: Ticks) {
        self.slots[self.next]
            .stamp
            .store(stamp.0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn post(&mut self) -> Result<(), Failure> {
        // Release: who sees the flag sees the stamp.
        let label = PRESENT | (self.label + self.next as u64);
        self.slots[self.next].label.store(label, Ordering::Release);
        Ok(())
    }
}

impl CompletionPort for MemoryReceivePort {
    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        let Some(slot) = self.slots.get(self.next) else {
            return PollResult::Empty;
        };
        let label = slot.label.load(Ordering::Acquire);
        if label & PRESENT == 0 {
            return PollResult::Empty;
        }
        let request = self.next as u64;
        self.next += 1;
        PollResult::Done(Completion {
            request,
            immediate_data: label as u32,
            bytes: 8,
            source_queue_pair: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::bench::hca::loops::completion::NoCollection;
    use crate::bench::hca::loops::control::Control;
    use crate::bench::hca::loops::port::BusyPolling;
    use crate::bench::hca::loops::receiver::{Strays, receive};
    use crate::bench::hca::loops::sender::{BurstSend, SubmitStamp, send};
    use crate::bench::hca::loops::signalling::Signalling;
    use crate::bench::hca::loops::tag::{Expected, Tag};
    use crate::buffer::Arrival;
    use crate::pacing::{ConstantWait, NoPause, Pacing};
    use crate::time::{Clock, Nanos, Posix};

    const MESSAGES: usize = 8192;
    const BURST: u32 = 65_535;

    /// Both loops on threads of their own; every stamp arrives as it was sent.
    fn exchange(mut pacing: impl Pacing) {
        let clock = Posix::MONOTONIC;
        let control = Control::default();
        let tag = Tag::new(BURST);
        let (mut send_port, mut receive_port) = connect(MESSAGES, tag.immediate_data(0));
        let mut submitted = vec![Ticks(0); MESSAGES];
        let mut arrivals = vec![Arrival::default(); MESSAGES];
        let limit = Instant::now() + Duration::from_secs(20);
        let outcome = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let expected = Expected::new(BURST, MESSAGES, &[]);
                let (port, log) = (&mut receive_port, &mut arrivals);
                receive(&clock, port, BusyPolling, expected, log, &control)
            });
            while control.ready() == 0 {
                if Instant::now() > limit {
                    control.stop();
                    panic!("the receiver never says that it is ready");
                }
                std::thread::yield_now();
            }
            let burst = BurstSend {
                signalling: Signalling::new(1, 1),
                submitted: &mut submitted,
                control: &control,
            };
            let collect = &mut NoCollection;
            let sent = send::<SubmitStamp>(&clock, &mut send_port, &mut pacing, collect, burst);
            assert_eq!(sent.posted as usize, MESSAGES);
            receiver.join().unwrap()
        });
        let counts = (outcome.received, outcome.strays);
        assert_eq!(counts, (MESSAGES, Strays::default()));
        for (sequence, (arrival, sent)) in arrivals.iter().zip(&submitted).enumerate() {
            assert_eq!(arrival.label, tag.immediate_data(sequence as u32));
            assert_eq!((arrival.slot as usize, arrival.bytes), (sequence, 8));
            let stamp = &receive_port.slots[sequence].stamp;
            assert_eq!(stamp.load(Ordering::Relaxed), sent.0);
            assert!(arrival.stamp >= *sent);
        }
        assert!(submitted.is_sorted() && submitted[0].0 > 0);
    }

    #[test]
    fn every_stamp_arrives_as_it_was_sent() {
        exchange(NoPause);
        exchange(ConstantWait::new(&Posix::MONOTONIC, Nanos(1_000)));
    }

    #[test]
    fn a_port_has_no_more_messages_than_it_was_made_for() {
        let (mut send_port, mut receive_port) = connect(1, 0);
        assert!(matches!(receive_port.poll(), PollResult::Empty));
        send_port.prepare(0, true);
        send_port.stamp(Posix::MONOTONIC.now());
        assert!(matches!(receive_port.poll(), PollResult::Empty));
        send_port.post().unwrap();
        assert!(matches!(receive_port.poll(), PollResult::Done(_)));
        assert!(matches!(receive_port.poll(), PollResult::Empty));
    }
}
