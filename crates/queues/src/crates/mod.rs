//! Queues from crates.io, and the one of the standard library, behind the same two ends: one thin adapter each.
//!
//! They allocate without touching, and some grow while they fill for the first time. So each is filled to its capacity
//! and emptied once before it is handed out; from then on it works in memory that is there.

mod heapless;

pub(crate) use heapless::Heapless;

use std::num::NonZeroU64;
use std::sync::{Arc, mpsc};

use crossbeam_queue::ArrayQueue;
use ringbuf::traits::{Consumer, Producer, Split};
use thingbuf::ThingBuf;
use thingbuf::recycling::Recycle;

use crate::element::Element;
use crate::interface::{
    Ends, NewEnds, Queue, QueueError, ReceiveOnly, Receiver, SendOnly, Sender, SharedEnds,
};
use crate::parameters::Parameters;
use crate::slots::check_capacity;

/// The two ends, when the queue was filled and emptied; an error when it holds another number than was asked for.
pub(super) fn touched<T: Element, S: Sender<T>, R: Receiver<T>>(
    capacity: usize,
    (mut sender, mut receiver): (S, R),
) -> Result<(S, R), QueueError> {
    let wrong = QueueError {
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

/// The ends of a queue for several threads: clones, as the crate makes them.
macro_rules! shared_by {
    (senders) => {
        fn shared(
            capacity: usize,
            _: &Parameters,
            senders: usize,
            receivers: usize,
        ) -> SharedEnds<Self, T> {
            assert!(Ends::Mpsc.serve(senders, receivers));
            let (SendOnly(sender), receiver) = <Self as Queue<T>>::with_capacity(capacity)?;
            let senders = (0..senders).map(|_| SendOnly(sender.clone()));
            Ok((senders.collect(), vec![receiver]))
        }
    };
    (all) => {
        fn shared(
            capacity: usize,
            _: &Parameters,
            senders: usize,
            receivers: usize,
        ) -> SharedEnds<Self, T> {
            let (SendOnly(sender), ReceiveOnly(receiver)) =
                <Self as Queue<T>>::with_capacity(capacity)?;
            let senders = (0..senders).map(|_| SendOnly(sender.clone()));
            let receivers = (0..receivers).map(|_| ReceiveOnly(receiver.clone()));
            Ok((senders.collect(), receivers.collect()))
        }
    };
}

/// The adapter of a queue whose two ends are types of its crate.
macro_rules! adapter {
    (
        $(#[$what:meta])*
        $queue:ident;
        $their_sender:ty: |$to:ident, $element:ident| $enqueue:expr;
        $their_receiver:ty: |$from:ident| $dequeue:expr;
        |$capacity:ident| $make:expr
        $(; shared by $shared:ident)?
    ) => {
        $(#[$what])*
        #[derive(Debug)]
        pub(crate) struct $queue;

        impl<T: Element> Sender<T> for SendOnly<$their_sender> {
            #[inline(always)]
            fn enqueue(&mut self, $element: T) -> bool {
                let $to = &mut self.0;
                $enqueue
            }
        }

        impl<T: Element> Receiver<T> for ReceiveOnly<$their_receiver> {
            #[inline(always)]
            fn dequeue(&mut self) -> Option<T> {
                let $from = &mut self.0;
                $dequeue
            }
        }

        impl<T: Element> Queue<T> for $queue {
            type Sender = SendOnly<$their_sender>;
            type Receiver = ReceiveOnly<$their_receiver>;

            fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, T> {
                let $capacity = check_capacity(capacity)?;
                let (sender, receiver) = $make;
                touched(capacity, (SendOnly(sender), ReceiveOnly(receiver)))
            }

            $(shared_by!($shared);)?
        }
    };
}

adapter! {
    /// The array queue of crossbeam, for many threads at both ends: a number in each slot, and indices moved by
    /// compare-and-swap.
    CrossbeamArrayQueue;
    Arc<ArrayQueue<T>>: |end, element| end.push(element).is_ok();
    Arc<ArrayQueue<T>>: |end| end.pop();
    |capacity| {
        let queue = Arc::new(ArrayQueue::new(capacity));
        (queue.clone(), queue)
    };
    shared by all
}

adapter! {
    /// The bounded channel of flume, for many threads at both ends: a deque behind a lock.
    Flume;
    flume::Sender<T>: |end, element| end.try_send(element).is_ok();
    flume::Receiver<T>: |end| end.try_recv().ok();
    |capacity| flume::bounded(capacity);
    shared by all
}

adapter! {
    /// The bounded channel of kanal, for many threads at both ends: a deque behind a spin lock.
    Kanal;
    kanal::Sender<T>: |end, element| end.try_send(element).unwrap_or(false);
    kanal::Receiver<T>: |end| end.try_recv().ok().flatten();
    |capacity| kanal::bounded(capacity);
    shared by all
}

adapter! {
    /// The ring buffer of ringbuf, with the ends that cache indices.
    Ringbuf;
    ringbuf::HeapProd<T>: |end, element| end.try_push(element).is_ok();
    ringbuf::HeapCons<T>: |end| end.try_pop();
    |capacity| ringbuf::HeapRb::new(capacity).split()
}

adapter! {
    /// The ring buffer of rtrb: indices that each end caches.
    Rtrb;
    rtrb::Producer<T>: |end, element| end.push(element).is_ok();
    rtrb::Consumer<T>: |end| end.pop().ok();
    |capacity| rtrb::RingBuffer::new(capacity)
}

adapter! {
    /// The bounded channel of the standard library, for many senders and one receiver.
    SyncChannel;
    mpsc::SyncSender<T>: |end, element| end.try_send(element).is_ok();
    mpsc::Receiver<T>: |end| end.try_recv().ok();
    |capacity| mpsc::sync_channel(capacity);
    shared by senders
}

/// What a slot of thingbuf holds when there is nothing in it: anything, as elements need no dropping.
#[derive(Debug)]
pub struct Reuse;

impl<T: Element> Recycle<T> for Reuse {
    fn new_element(&self) -> T {
        T::with_stamp(NonZeroU64::MIN)
    }

    fn recycle(&self, _: &mut T) {}
}

adapter! {
    /// The queue of thingbuf, for many threads at both ends: slots with numbers, whose contents are reused.
    Thingbuf;
    Arc<ThingBuf<T, Reuse>>: |end, element| end.push(element).is_ok();
    Arc<ThingBuf<T, Reuse>>: |end| end.pop();
    |capacity| {
        let queue = Arc::new(ThingBuf::with_recycle(capacity, Reuse));
        (queue.clone(), queue)
    };
    shared by all
}
