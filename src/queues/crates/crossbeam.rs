//! The array queue of crossbeam, for many threads at both ends: a number in each slot, and indices moved by compare-and-swap.

use std::sync::Arc;

use crossbeam_queue::ArrayQueue;

use crate::queues::element::Element;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::check_capacity;

/// The array queue of crossbeam.
#[derive(Debug)]
pub struct CrossbeamArrayQueue;

/// The sending end.
pub struct CrossbeamArrayQueueSender<T>(Arc<ArrayQueue<T>>);

/// The receiving end.
pub struct CrossbeamArrayQueueReceiver<T>(Arc<ArrayQueue<T>>);

impl<T: Element> Sender<T> for CrossbeamArrayQueueSender<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        self.0.push(element).is_ok()
    }
}

impl<T: Element> Receiver<T> for CrossbeamArrayQueueReceiver<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        self.0.pop()
    }
}

impl<T: Element> Queue<T> for CrossbeamArrayQueue {
    type Sender = CrossbeamArrayQueueSender<T>;
    type Receiver = CrossbeamArrayQueueReceiver<T>;

    const NAME: &'static str = "crossbeam-array";
    const SOURCE: &'static str = "crate crossbeam-queue 0.3, ArrayQueue";
    const ENDS: Ends = Ends::Mpmc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        let capacity = check_capacity("crossbeam-array", capacity)?;
        let (sender, receiver) = {
            let queue = Arc::new(ArrayQueue::new(capacity));
            (queue.clone(), queue)
        };
        super::touched(
            "crossbeam-array",
            capacity,
            (
                CrossbeamArrayQueueSender(sender),
                CrossbeamArrayQueueReceiver(receiver),
            ),
        )
    }
}
