//! The bounded channel of flume, for many threads at both ends: a deque behind a lock.

use crate::queues::element::Element;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::check_capacity;

/// The bounded channel of flume.
#[derive(Debug)]
pub struct Flume;

/// The sending end.
pub struct FlumeSender<T>(flume::Sender<T>);

/// The receiving end.
pub struct FlumeReceiver<T>(flume::Receiver<T>);

impl<T: Element> Sender<T> for FlumeSender<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        self.0.try_send(element).is_ok()
    }
}

impl<T: Element> Receiver<T> for FlumeReceiver<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T: Element> Queue<T> for Flume {
    type Sender = FlumeSender<T>;
    type Receiver = FlumeReceiver<T>;

    const NAME: &'static str = "flume";
    const SOURCE: &'static str = "crate flume 0.12, bounded";
    const ENDS: Ends = Ends::Mpmc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        let capacity = check_capacity("flume", capacity)?;
        let (sender, receiver) = flume::bounded(capacity);
        super::touched(
            "flume",
            capacity,
            (FlumeSender(sender), FlumeReceiver(receiver)),
        )
    }
}
