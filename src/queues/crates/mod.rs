//! Queues from crates.io, and the one of the standard library, behind the same two ends: one thin adapter each.
//!
//! They allocate without touching, and some grow while they fill for the first time. So each is filled to its capacity and
//! emptied once before it is handed out; from then on it works in memory that is there.

mod heapless;
mod thingbuf;

pub use heapless::Heapless;
pub use thingbuf::Thingbuf;

use std::num::NonZeroU64;
use std::sync::{Arc, mpsc};

use crossbeam_queue::ArrayQueue;
use ringbuf::traits::{Consumer, Producer, Split};

use crate::queues::element::Element;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::check_capacity;

/// The two ends, when the queue was filled and emptied; an error when it holds another number than was asked for.
fn touched<T: Element, S: Sender<T>, R: Receiver<T>>(
    queue: &'static str,
    capacity: usize,
    (mut sender, mut receiver): (S, R),
) -> Result<(S, R), QueueError> {
    let wrong = QueueError::Capacity {
        queue,
        asked: capacity,
        allowed: "the crate makes one for another number of elements of it",
    };
    let element = T::with_stamp(NonZeroU64::MIN);
    if !(0..capacity).all(|_| sender.enqueue(element)) || sender.enqueue(element) {
        return Err(wrong);
    }
    if !(0..capacity).all(|_| receiver.dequeue().is_some()) || receiver.dequeue().is_some() {
        return Err(wrong);
    }
    Ok((sender, receiver))
}

/// The adapter of a queue whose two ends are types of its crate.
macro_rules! adapter {
    (
        $(#[$what:meta])*
        $queue:ident: $name:literal, $ends:ident, $source:literal;
        $sender:ident($their_sender:ty): |$to:ident, $element:ident| $enqueue:expr;
        $receiver:ident($their_receiver:ty): |$from:ident| $dequeue:expr;
        |$capacity:ident| $make:expr
    ) => {
        $(#[$what])*
        #[derive(Debug)]
        pub struct $queue;

        #[doc = concat!("The sending end of ", $name, ".")]
        pub struct $sender<T>($their_sender);

        #[doc = concat!("The receiving end of ", $name, ".")]
        pub struct $receiver<T>($their_receiver);

        impl<T: Element> Sender<T> for $sender<T> {
            #[inline(always)]
            fn enqueue(&mut self, $element: T) -> bool {
                let $to = &mut self.0;
                $enqueue
            }
        }

        impl<T: Element> Receiver<T> for $receiver<T> {
            #[inline(always)]
            fn dequeue(&mut self) -> Option<T> {
                let $from = &mut self.0;
                $dequeue
            }
        }

        impl<T: Element> Queue<T> for $queue {
            type Sender = $sender<T>;
            type Receiver = $receiver<T>;

            const NAME: &'static str = $name;
            const SOURCE: &'static str = $source;
            const ENDS: Ends = Ends::$ends;

            fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
                let $capacity = check_capacity($name, capacity)?;
                let (sender, receiver) = $make;
                touched($name, capacity, ($sender(sender), $receiver(receiver)))
            }
        }
    };
}

adapter! {
    /// The array queue of crossbeam, for many threads at both ends: a number in each slot, and indices moved by
    /// compare-and-swap.
    CrossbeamArrayQueue: "crossbeam-array", Mpmc, "crate crossbeam-queue 0.3, ArrayQueue";
    CrossbeamArrayQueueSender(Arc<ArrayQueue<T>>): |end, element| end.push(element).is_ok();
    CrossbeamArrayQueueReceiver(Arc<ArrayQueue<T>>): |end| end.pop();
    |capacity| {
        let queue = Arc::new(ArrayQueue::new(capacity));
        (queue.clone(), queue)
    }
}

adapter! {
    /// The bounded channel of flume, for many threads at both ends: a deque behind a lock.
    Flume: "flume", Mpmc, "crate flume 0.12, bounded";
    FlumeSender(flume::Sender<T>): |end, element| end.try_send(element).is_ok();
    FlumeReceiver(flume::Receiver<T>): |end| end.try_recv().ok();
    |capacity| flume::bounded(capacity)
}

adapter! {
    /// The bounded channel of kanal, for many threads at both ends: a deque behind a spin lock.
    Kanal: "kanal", Mpmc, "crate kanal 0.1, bounded";
    KanalSender(kanal::Sender<T>): |end, element| end.try_send(element).unwrap_or(false);
    KanalReceiver(kanal::Receiver<T>): |end| end.try_recv().ok().flatten();
    |capacity| kanal::bounded(capacity)
}

adapter! {
    /// The ring buffer of ringbuf, with the ends that cache indices.
    Ringbuf: "ringbuf", Spsc, "crate ringbuf 0.6";
    RingbufSender(ringbuf::HeapProd<T>): |end, element| end.try_push(element).is_ok();
    RingbufReceiver(ringbuf::HeapCons<T>): |end| end.try_pop();
    |capacity| ringbuf::HeapRb::new(capacity).split()
}

adapter! {
    /// The ring buffer of rtrb: indices that each end caches.
    Rtrb: "rtrb", Spsc, "crate rtrb 0.4";
    RtrbSender(rtrb::Producer<T>): |end, element| end.push(element).is_ok();
    RtrbReceiver(rtrb::Consumer<T>): |end| end.pop().ok();
    |capacity| rtrb::RingBuffer::new(capacity)
}

adapter! {
    /// The bounded channel of the standard library, for many senders and one receiver.
    SyncChannel: "sync-channel", Mpsc, "Rust's standard library, mpsc::sync_channel";
    SyncChannelSender(mpsc::SyncSender<T>): |end, element| end.try_send(element).is_ok();
    SyncChannelReceiver(mpsc::Receiver<T>): |end| end.try_recv().ok();
    |capacity| mpsc::sync_channel(capacity)
}
