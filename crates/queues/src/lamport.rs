//! Lamport's ring buffer: two indices, each written by one end and read by both, need no lock.
//!
//! Leslie Lamport: Specifying Concurrent Program Modules. ACM Transactions on Programming Languages and Systems 5 (2),
//! 1983. The measure of all that came after: each operation reads the other end's index, so the line that holds it
//!    travels between the caches with almost every element. The indices are alone on their cache lines.

use crossbeam_utils::CachePadded;

use crate::element::Element;
use crate::interface::{NewEnds, Queue, ReceiveOnly, Receiver, SendOnly, Sender};
use crate::slots::{SharedSlots, ValueSlot, check_capacity};
use crate::sync::{Arc, AtomicUsize, Ordering};

/// Lamport's ring buffer.
#[derive(Debug)]
pub struct Lamport;

/// What each end has: where all is.
#[derive(Debug)]
pub struct LamportEnd<T> {
    slots: SharedSlots<ValueSlot<T>>,
    mask: usize,
    capacity: usize,
    indices: Arc<LamportIndices>,
}

#[derive(Debug)]
pub(crate) struct LamportIndices {
    /// How many elements were put in, wrapping. Written by the sender.
    tail: CachePadded<AtomicUsize>,
    /// How many were taken out, wrapping. Written by the receiver.
    head: CachePadded<AtomicUsize>,
}

impl<T: Element> Sender<T> for SendOnly<LamportEnd<T>> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        let queue = &self.0;
        // Relaxed: only this thread writes it.
        let tail = queue.indices.tail.load(Ordering::Relaxed);
        // Acquire: a slot that is free was read before it was given back.
        let head = queue.indices.head.load(Ordering::Acquire);
        if tail.wrapping_sub(head) == queue.capacity {
            return false;
        }
        // SAFETY: masked, so within the slots. Between tail and head plus capacity the slots are the sender's: the
        // receiver reads none before the store below.
        unsafe { queue.slots.at(tail & queue.mask).write(element) };
        // Release: who sees the index sees the element.
        queue
            .indices
            .tail
            .store(tail.wrapping_add(1), Ordering::Release);
        true
    }
}

impl<T: Element> Receiver<T> for ReceiveOnly<LamportEnd<T>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        let queue = &self.0;
        // Relaxed: only this thread writes it.
        let head = queue.indices.head.load(Ordering::Relaxed);
        // Acquire: the element was written before the index.
        let tail = queue.indices.tail.load(Ordering::Acquire);
        if head == tail {
            return None;
        }
        // SAFETY: masked, so within the slots. Between head and tail the slots are written and are the receiver's: the
        // sender writes none before the store below.
        let element = unsafe { queue.slots.at(head & queue.mask).read() };
        // Release: the slot is given back after it was read.
        queue
            .indices
            .head
            .store(head.wrapping_add(1), Ordering::Release);
        Some(element)
    }
}

impl<T: Element> Queue<T> for Lamport {
    type Sender = SendOnly<LamportEnd<T>>;
    type Receiver = ReceiveOnly<LamportEnd<T>>;

    fn starting_at(capacity: usize, start: usize) -> NewEnds<Self, T> {
        let capacity = check_capacity(capacity)?;
        let slots = SharedSlots::new(capacity.next_power_of_two(), ValueSlot::new);
        let indices = Arc::new(LamportIndices {
            tail: CachePadded::new(AtomicUsize::new(start)),
            head: CachePadded::new(AtomicUsize::new(start)),
        });
        let end = || LamportEnd {
            mask: slots.count() - 1,
            slots: slots.clone(),
            capacity,
            indices: indices.clone(),
        };
        Ok((SendOnly(end()), ReceiveOnly(end())))
    }
}
