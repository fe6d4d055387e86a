//! MCRingBuffer: Lamport's indices, but each end keeps a copy of the other's and publishes its own once a batch.
//!
//! Patrick P. C. Lee, Tian Bu, Girish Chandranmenon: A Lock-Free, Cache-Efficient Multi-Core Synchronization Mechanism
//! for Line-Rate Network Traffic Monitoring. IPDPS 2010. The copy is refreshed only when by it the queue is full or empty,
//! so control lines travel once a batch.
//!
//! What is held back must get out in the end. An end publishes the rest of its batch when it finds the queue full or
//! empty, and the sender when it is told to [flush](Sender::flush). So a receiver that was told "empty" has given back
//! all it took, a sender that was told "full" has handed over all it put in, and neither can wait for the other for ever,
//! whatever the capacity. Until then the sender can find the queue full although up to a batch of slots is free.

use crate::queues::element::Element;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::{Slots, ValueSlot, check_capacity};
use crate::queues::sync::{Alone, Arc, AtomicUsize, Ordering};

/// The largest batch; in a small queue a batch is a quarter of it.
const BATCH: usize = 64;

/// MCRingBuffer.
#[derive(Debug)]
pub struct McRingBuffer;

#[derive(Debug)]
struct Shared<T> {
    slots: Slots<ValueSlot<T>>,
    mask: usize,
    capacity: usize,
    batch: usize,
    /// How many elements were handed over, wrapping. Written by the sender.
    written: Alone<AtomicUsize>,
    /// How many were given back, wrapping. Written by the receiver.
    read: Alone<AtomicUsize>,
}

/// The sending end.
#[derive(Debug)]
pub struct McRingBufferSender<T> {
    queue: Arc<Shared<T>>,
    /// How many elements were put in.
    next: usize,
    /// How many of them were handed over.
    published: usize,
    /// What `read` was when last looked at.
    read: usize,
}

/// The receiving end.
#[derive(Debug)]
pub struct McRingBufferReceiver<T> {
    queue: Arc<Shared<T>>,
    /// How many elements were taken out.
    next: usize,
    /// How many of them were given back.
    published: usize,
    /// What `written` was when last looked at.
    written: usize,
}

impl<T: Element> Sender<T> for McRingBufferSender<T> {
    const HOLDS_BACK: bool = true;

    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        let queue = &*self.queue;
        if self.next.wrapping_sub(self.read) == queue.capacity {
            // Acquire: a slot that is free was read before it was given back.
            self.read = queue.read.load(Ordering::Acquire);
            if self.next.wrapping_sub(self.read) == queue.capacity {
                self.flush();
                return false;
            }
        }
        // SAFETY: masked, so within the slots. Free by the copy of `read`, and what is not published the receiver does
        // not touch.
        unsafe { queue.slots.at(self.next & queue.mask).write(element) };
        self.next = self.next.wrapping_add(1);
        if self.next.wrapping_sub(self.published) >= queue.batch {
            self.flush();
        }
        true
    }

    #[inline(always)]
    fn flush(&mut self) {
        if self.next != self.published {
            // Release: who sees the index sees the elements.
            self.queue.written.store(self.next, Ordering::Release);
            self.published = self.next;
        }
    }
}

impl<T> McRingBufferReceiver<T> {
    #[inline(always)]
    fn give_back(&mut self) {
        if self.next != self.published {
            // Release: the slots are given back after they were read.
            self.queue.read.store(self.next, Ordering::Release);
            self.published = self.next;
        }
    }
}

impl<T: Element> Receiver<T> for McRingBufferReceiver<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        let queue = &*self.queue;
        if self.next == self.written {
            // Acquire: the elements were written before the index.
            self.written = queue.written.load(Ordering::Acquire);
            if self.next == self.written {
                self.give_back();
                return None;
            }
        }
        // SAFETY: masked, so within the slots. Written, by the copy of `written`, and what is not given back the sender
        // does not touch.
        let element = unsafe { queue.slots.at(self.next & queue.mask).read() };
        self.next = self.next.wrapping_add(1);
        if self.next.wrapping_sub(self.published) >= queue.batch {
            self.give_back();
        }
        Some(element)
    }
}

impl McRingBuffer {
    /// An empty queue whose indices start where they are told to.
    pub(crate) fn starting_at<T: Element>(
        capacity: usize,
        start: usize,
    ) -> Result<(McRingBufferSender<T>, McRingBufferReceiver<T>), QueueError> {
        let capacity = check_capacity("mcringbuffer", capacity)?;
        let slots = Slots::new(capacity.next_power_of_two(), ValueSlot::new);
        let queue = Arc::new(Shared {
            mask: slots.count() - 1,
            slots,
            capacity,
            batch: (capacity / 4).clamp(1, BATCH),
            written: Alone(AtomicUsize::new(start)),
            read: Alone(AtomicUsize::new(start)),
        });
        let sender = McRingBufferSender {
            queue: queue.clone(),
            next: start,
            published: start,
            read: start,
        };
        let receiver = McRingBufferReceiver {
            queue,
            next: start,
            published: start,
            written: start,
        };
        Ok((sender, receiver))
    }
}

impl<T: Element> Queue<T> for McRingBuffer {
    type Sender = McRingBufferSender<T>;
    type Receiver = McRingBufferReceiver<T>;

    const NAME: &'static str = "mcringbuffer";
    const SOURCE: &'static str = "Lee, Bu, Chandranmenon: A Lock-Free, Cache-Efficient Multi-Core Synchronization Mechanism for Line-Rate Network Traffic Monitoring. IPDPS 2010";
    const ENDS: Ends = Ends::Spsc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        Self::starting_at(capacity, 0)
    }
}
