//! The ring buffer of ringbuf, with the ends that cache indices.

use ringbuf::traits::{Consumer, Producer, Split};

use crate::queues::element::Element;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::check_capacity;

/// The ring buffer of ringbuf.
#[derive(Debug)]
pub struct Ringbuf;

/// The sending end.
pub struct RingbufSender<T>(ringbuf::HeapProd<T>);

/// The receiving end.
pub struct RingbufReceiver<T>(ringbuf::HeapCons<T>);

impl<T: Element> Sender<T> for RingbufSender<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        self.0.try_push(element).is_ok()
    }
}

impl<T: Element> Receiver<T> for RingbufReceiver<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        self.0.try_pop()
    }
}

impl<T: Element> Queue<T> for Ringbuf {
    type Sender = RingbufSender<T>;
    type Receiver = RingbufReceiver<T>;

    const NAME: &'static str = "ringbuf";
    const SOURCE: &'static str = "crate ringbuf 0.6";
    const ENDS: Ends = Ends::Spsc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        let capacity = check_capacity("ringbuf", capacity)?;
        let (sender, receiver) = ringbuf::HeapRb::new(capacity).split();
        super::touched(
            "ringbuf",
            capacity,
            (RingbufSender(sender), RingbufReceiver(receiver)),
        )
    }
}
