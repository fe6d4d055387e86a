//! The queue of thingbuf, for many threads at both ends: slots with numbers, whose contents are reused.

use std::num::NonZeroU64;
use std::sync::Arc;

use thingbuf::ThingBuf;
use thingbuf::recycling::Recycle;

use crate::queues::element::{Element, Words};
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::check_capacity;

/// The queue of thingbuf.
#[derive(Debug)]
pub struct Thingbuf;

/// The sending end.
pub struct ThingbufSender<T>(Arc<ThingBuf<T, Reuse>>);

/// The receiving end.
pub struct ThingbufReceiver<T>(Arc<ThingBuf<T, Reuse>>);

impl<const N: usize> Sender<Words<N>> for ThingbufSender<Words<N>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        self.0.push(element).is_ok()
    }
}

impl<const N: usize> Receiver<Words<N>> for ThingbufReceiver<Words<N>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        self.0.pop()
    }
}

impl<const N: usize> Queue<Words<N>> for Thingbuf {
    type Sender = ThingbufSender<Words<N>>;
    type Receiver = ThingbufReceiver<Words<N>>;

    const NAME: &'static str = "thingbuf";
    const SOURCE: &'static str = "crate thingbuf 0.1, ThingBuf";
    const ENDS: Ends = Ends::Mpmc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        let capacity = check_capacity("thingbuf", capacity)?;
        let (sender, receiver) = {
            let queue = Arc::new(ThingBuf::with_recycle(capacity, Reuse));
            (queue.clone(), queue)
        };
        super::touched(
            "thingbuf",
            capacity,
            (ThingbufSender(sender), ThingbufReceiver(receiver)),
        )
    }
}

/// What a slot holds when there is nothing in it: anything, as elements need no dropping.
#[derive(Debug)]
struct Reuse;

impl<T: Element> Recycle<T> for Reuse {
    fn new_element(&self) -> T {
        T::with_stamp(NonZeroU64::MIN)
    }

    fn recycle(&self, _: &mut T) {}
}
