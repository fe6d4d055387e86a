//! The ring buffer of rtrb: indices that each end caches.

use crate::queues::element::Element;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::check_capacity;

/// The ring buffer of rtrb.
#[derive(Debug)]
pub struct Rtrb;

/// The sending end.
pub struct RtrbSender<T>(rtrb::Producer<T>);

/// The receiving end.
pub struct RtrbReceiver<T>(rtrb::Consumer<T>);

impl<T: Element> Sender<T> for RtrbSender<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        self.0.push(element).is_ok()
    }
}

impl<T: Element> Receiver<T> for RtrbReceiver<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        self.0.pop().ok()
    }
}

impl<T: Element> Queue<T> for Rtrb {
    type Sender = RtrbSender<T>;
    type Receiver = RtrbReceiver<T>;

    const NAME: &'static str = "rtrb";
    const SOURCE: &'static str = "crate rtrb 0.4";
    const ENDS: Ends = Ends::Spsc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        let capacity = check_capacity("rtrb", capacity)?;
        let (sender, receiver) = rtrb::RingBuffer::new(capacity);
        super::touched(
            "rtrb",
            capacity,
            (RtrbSender(sender), RtrbReceiver(receiver)),
        )
    }
}
