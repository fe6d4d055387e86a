//! MCRingBuffer: Lamport's indices, but each end keeps a copy of the other's and publishes its own once a batch.
//!
//! Patrick P. C. Lee, Tian Bu, Girish Chandranmenon: A Lock-Free, Cache-Efficient Multi-Core Synchronization Mechanism
//! for Line-Rate Network Traffic Monitoring. IPDPS 2010. The copy is refreshed only when by it the queue is full or
//! empty, so control lines travel once a batch. How large a batch is the paper leaves to its user.
//!
//! What is held back must get out in the end. An end publishes the rest of its batch when it finds the queue full or
//! empty, and the sender on [flush](Sender::flush). So a receiver that found it "empty" has given back all it took, a
//! sender that found it "full" has handed over all it put in, and neither can wait for the other forever, whatever the
//! capacity. Until then the sender can find the queue full although up to a batch of slots is free.

use crossbeam_utils::CachePadded;

use crate::element::Element;
use crate::interface::{NewEnds, Queue, ReceiveOnly, Receiver, SendOnly, Sender};
use crate::parameters::{Parameter, Parameters};
use crate::slots::{SharedSlots, ValueSlot, check_capacity};
use crate::sync::{Arc, AtomicUsize, Ordering};

/// What can be chosen.
pub(super) const PARAMETERS: [Parameter; 1] = [Parameter::share(
    "batch",
    16,
    "elements that an end publishes together",
)];

#[derive(Debug)]
pub struct McRingBuffer;

#[derive(Debug)]
pub(crate) struct McRingBufferIndices {
    /// How many elements were handed over, wrapping. Written by the sender.
    written: CachePadded<AtomicUsize>,
    /// How many were given back, wrapping. Written by the receiver.
    read: CachePadded<AtomicUsize>,
}

/// Where an end is.
#[derive(Debug)]
pub struct McRingBufferEnd<T> {
    slots: SharedSlots<ValueSlot<T>>,
    mask: usize,
    capacity: usize,
    batch: usize,
    indices: Arc<McRingBufferIndices>,
    /// How many elements it has put in, or taken out.
    next: usize,
    /// How many of them were handed over, or given back.
    published: usize,
    /// What the other end had published when it was last looked at.
    seen: usize,
}

impl<T: Element> Sender<T> for SendOnly<McRingBufferEnd<T>> {
    const HOLDS_BACK: bool = true;

    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        if self.0.next.wrapping_sub(self.0.seen) == self.0.capacity {
            // Acquire: a slot that is free was read before it was given back.
            self.0.seen = self.0.indices.read.load(Ordering::Acquire);
            if self.0.next.wrapping_sub(self.0.seen) == self.0.capacity {
                self.flush();
                return false;
            }
        }
        // SAFETY: masked, so within the slots. Free by the copy of `read`, and what is not published the receiver does
        // not touch.
        unsafe { self.0.slots.at(self.0.next & self.0.mask).write(element) };
        self.0.next = self.0.next.wrapping_add(1);
        if self.0.next.wrapping_sub(self.0.published) >= self.0.batch {
            self.flush();
        }
        true
    }

    #[inline(always)]
    fn flush(&mut self) {
        if self.0.next != self.0.published {
            // Release: who sees the index sees the elements.
            self.0.indices.written.store(self.0.next, Ordering::Release);
            self.0.published = self.0.next;
        }
    }
}

impl<T> ReceiveOnly<McRingBufferEnd<T>> {
    #[inline(always)]
    fn give_back(&mut self) {
        if self.0.next != self.0.published {
            // Release: the slots are given back after they were read.
            self.0.indices.read.store(self.0.next, Ordering::Release);
            self.0.published = self.0.next;
        }
    }
}

impl<T: Element> Receiver<T> for ReceiveOnly<McRingBufferEnd<T>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        if self.0.next == self.0.seen {
            // Acquire: the elements were written before the index.
            self.0.seen = self.0.indices.written.load(Ordering::Acquire);
            if self.0.next == self.0.seen {
                self.give_back();
                return None;
            }
        }
        // SAFETY: masked, so within the slots. Written, by the copy of `written`, and what is not given back the sender
        // does not touch.
        let element = unsafe { self.0.slots.at(self.0.next & self.0.mask).read() };
        self.0.next = self.0.next.wrapping_add(1);
        if self.0.next.wrapping_sub(self.0.published) >= self.0.batch {
            self.give_back();
        }
        Some(element)
    }
}

impl<T: Element> Queue<T> for McRingBuffer {
    type Sender = SendOnly<McRingBufferEnd<T>>;
    type Receiver = ReceiveOnly<McRingBufferEnd<T>>;

    fn starting_at(capacity: usize, start: usize) -> NewEnds<Self, T> {
        make(capacity, start, &Parameters::default())
    }

    fn with_parameters(capacity: usize, given: &Parameters) -> NewEnds<Self, T> {
        make(capacity, 0, given)
    }
}

fn make<T: Element>(capacity: usize, start: usize, given: &Parameters) -> NewEnds<McRingBuffer, T> {
    let capacity = check_capacity(capacity)?;
    let [batch] = given.values(&PARAMETERS, capacity);
    let slots = SharedSlots::new(capacity.next_power_of_two(), ValueSlot::new);
    let indices = Arc::new(McRingBufferIndices {
        written: CachePadded::new(AtomicUsize::new(start)),
        read: CachePadded::new(AtomicUsize::new(start)),
    });
    let end = || McRingBufferEnd {
        mask: slots.count() - 1,
        slots: slots.clone(),
        capacity,
        batch: batch.clamp(1, capacity),
        indices: indices.clone(),
        next: start,
        published: start,
        seen: start,
    };
    Ok((SendOnly(end()), ReceiveOnly(end())))
}
