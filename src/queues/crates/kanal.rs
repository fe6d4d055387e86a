//! The bounded channel of kanal, for many threads at both ends: a deque behind a spin lock.

use crate::queues::element::Element;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::check_capacity;

/// The bounded channel of kanal.
#[derive(Debug)]
pub struct Kanal;

/// The sending end.
pub struct KanalSender<T>(kanal::Sender<T>);

/// The receiving end.
pub struct KanalReceiver<T>(kanal::Receiver<T>);

impl<T: Element> Sender<T> for KanalSender<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        self.0.try_send(element).unwrap_or(false)
    }
}

impl<T: Element> Receiver<T> for KanalReceiver<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        self.0.try_recv().ok().flatten()
    }
}

impl<T: Element> Queue<T> for Kanal {
    type Sender = KanalSender<T>;
    type Receiver = KanalReceiver<T>;

    const NAME: &'static str = "kanal";
    const SOURCE: &'static str = "crate kanal 0.1, bounded";
    const ENDS: Ends = Ends::Mpmc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        let capacity = check_capacity("kanal", capacity)?;
        let (sender, receiver) = kanal::bounded(capacity);
        super::touched(
            "kanal",
            capacity,
            (KanalSender(sender), KanalReceiver(receiver)),
        )
    }
}
