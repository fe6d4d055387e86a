//! Ports over memory that two threads share: no fabric at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::port::{Completion, CompletionPort, Failure, Polled, SendPort};
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
#[derive(Debug)]
struct Shared {
    slots: Vec<Slot>,
}

/// The sending end.
#[derive(Debug)]
pub struct MemorySendPort {
    shared: Arc<Shared>,
    label: u64,
    next: usize,
}

/// The receiving end.
#[derive(Debug)]
pub struct MemoryReceivePort {
    shared: Arc<Shared>,
    next: usize,
}

/// Both ends of a connection for `messages` messages, whose immediate data are `first_label` and what follows.
pub fn connect(messages: usize, first_label: u32) -> (MemorySendPort, MemoryReceivePort) {
    let shared = Arc::new(Shared {
        slots: (0..messages).map(|_| Slot::default()).collect(),
    });
    let send = MemorySendPort {
        shared: Arc::clone(&shared),
        label: u64::from(first_label),
        next: 0,
    };
    (send, MemoryReceivePort { shared, next: 0 })
}

impl MemoryReceivePort {
    /// The stamp that message `index` brought.
    pub fn stamp_of(&self, index: usize) -> Ticks {
        Ticks(self.shared.slots[index].stamp.load(Ordering::Relaxed))
    }
}

impl SendPort for MemorySendPort {
    #[inline(always)]
    fn prepare(&mut self, sequence: u32, _signaled: bool) {
        self.next = sequence as usize;
    }

    #[inline(always)]
    fn stamp(&mut self, stamp: Ticks) {
        self.shared.slots[self.next]
            .stamp
            .store(stamp.0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn post(&mut self) -> Result<(), Failure> {
        // Release: who sees the flag sees the stamp.
        let label = PRESENT | (self.label + self.next as u64);
        self.shared.slots[self.next]
            .label
            .store(label, Ordering::Release);
        Ok(())
    }
}

impl CompletionPort for MemoryReceivePort {
    #[inline(always)]
    fn poll(&mut self) -> Polled {
        let Some(slot) = self.shared.slots.get(self.next) else {
            return Polled::Empty;
        };
        let label = slot.label.load(Ordering::Acquire);
        if label & PRESENT == 0 {
            return Polled::Empty;
        }
        let request = self.next as u64;
        self.next += 1;
        Polled::Done(Completion {
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
    use crate::bench::hca::completion::LeftToThread;
    use crate::bench::hca::control::Control;
    use crate::bench::hca::port::BusyPolling;
    use crate::bench::hca::receiver::{ReceiveOutcome, Strays, receive};
    use crate::bench::hca::sender::{Sending, SubmitStamp, send};
    use crate::bench::hca::tag::{Expected, Tag};
    use crate::buffer::Arrival;
    use crate::pacing::{ConstantWait, NoPause, Pacing};
    use crate::time::{Clock, Monotonic, Nanos};

    const MESSAGES: usize = 8192;

    /// Both loops on threads of their own, with every stamp that arrived beside the one that was sent.
    fn exchange<W: Pacing + Send>(
        mut pacing: W,
        sent: Tag,
        burst: u32,
        end_after: Option<usize>,
    ) -> Exchange {
        let clock = Monotonic::default();
        let control = Control::default();
        let (mut send_port, mut receive_port) = connect(MESSAGES, sent.immediate_data(0));
        let mut submitted = vec![Ticks(0); end_after.unwrap_or(MESSAGES)];
        let mut arrivals = vec![Arrival::default(); MESSAGES];
        let limit = Instant::now() + Duration::from_secs(20);
        let outcome = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                receive(
                    &clock,
                    &mut receive_port,
                    BusyPolling,
                    Expected::new(burst, MESSAGES, None),
                    &mut arrivals,
                    &control,
                )
            });
            while control.ready() == 0 {
                if Instant::now() > limit {
                    control.stop();
                    panic!("the receiver never says that it is ready");
                }
                std::thread::yield_now();
            }
            let sending = send::<SubmitStamp>(
                &clock,
                &mut send_port,
                &mut pacing,
                &mut LeftToThread,
                Sending {
                    signal_every: 1,
                    submitted: &mut submitted,
                    control: &control,
                },
            );
            assert_eq!(sending.posted as usize, submitted.len());
            if submitted.len() < MESSAGES || sent != Tag::new(burst) {
                control.stop();
            }
            receiver.join().unwrap()
        });
        let stamps = (0..MESSAGES)
            .map(|index| receive_port.stamp_of(index))
            .collect();
        Exchange {
            outcome,
            submitted,
            arrivals,
            stamps,
        }
    }

    struct Exchange {
        outcome: ReceiveOutcome,
        submitted: Vec<Ticks>,
        arrivals: Vec<Arrival>,
        stamps: Vec<Ticks>,
    }

    fn check_all_arrived(exchange: &Exchange, tag: Tag) {
        assert_eq!(
            (exchange.outcome.received, exchange.outcome.strays),
            (MESSAGES, Strays::default())
        );
        assert_eq!(exchange.stamps, exchange.submitted);
        for (sequence, (arrival, sent)) in exchange
            .arrivals
            .iter()
            .zip(&exchange.submitted)
            .enumerate()
        {
            assert_eq!(arrival.label, tag.immediate_data(sequence as u32));
            assert_eq!((arrival.slot as usize, arrival.bytes), (sequence, 8));
            assert!(arrival.stamp >= *sent);
        }
        assert!(exchange.submitted.is_sorted() && exchange.submitted[0].0 > 0);
    }

    #[test]
    fn every_stamp_arrives_as_it_was_sent() {
        let tag = Tag::new(65_535);
        check_all_arrived(&exchange(NoPause, tag, 65_535, None), tag);
        let pacing = ConstantWait::new(&Monotonic::default(), Nanos(1_000));
        check_all_arrived(&exchange(pacing, tag, 65_535, None), tag);
    }

    #[test]
    fn what_was_not_sent_is_missing() {
        let tag = Tag::new(0);
        let exchange = exchange(NoPause, tag, 0, Some(100));
        assert_eq!(exchange.outcome.received, 100);
        assert_eq!(exchange.stamps[..100], exchange.submitted[..]);
        assert_eq!(exchange.stamps[100..], vec![Ticks(0); MESSAGES - 100]);
    }

    #[test]
    fn the_messages_of_another_burst_are_late() {
        let outcome = exchange(NoPause, Tag::new(1), 2, None).outcome;
        assert_eq!(outcome.received, 0);
        assert!(outcome.strays.late > 0);
    }

    #[test]
    fn a_port_has_no_more_messages_than_it_was_made_for() {
        let (mut send_port, mut receive_port) = connect(1, 0);
        assert!(matches!(receive_port.poll(), Polled::Empty));
        send_port.prepare(0, true);
        send_port.stamp(Monotonic::default().now());
        assert!(matches!(receive_port.poll(), Polled::Empty));
        send_port.post().unwrap();
        assert!(matches!(receive_port.poll(), Polled::Done(_)));
        assert!(matches!(receive_port.poll(), Polled::Empty));
    }
}
