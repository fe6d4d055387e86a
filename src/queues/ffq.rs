//! FFQ: each slot carries the number of the element in it.
//!
//! Sergei Arnautov, Pascal Felber, Christof Fetzer, Bohdan Trach: FFQ: A Fast Single-Producer/Multiple-Consumer Concurrent
//! FIFO Queue. IPDPS 2017. A receiver knows its element by the rank in the slot, so several could wait for different
//! ones without touching a common index. Here there is one receiver: it takes a rank when it finds the element instead of in
//! advance (it must not block), and the sender says "full" where the paper's would skip a slot that is still in use.

use crate::queues::element::Element;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::{SharedSlots, ValueSlot, check_capacity};
use crate::queues::sync::{AtomicUsize, Ordering};

/// FFQ with one receiver.
#[derive(Debug)]
pub struct Ffq;

/// The rank of a slot without an element. Ranks are odd.
const FREE: usize = 0;

#[derive(Debug)]
struct Cell<T> {
    rank: AtomicUsize,
    value: ValueSlot<T>,
}

/// Where an end is.
#[derive(Debug)]
struct Place {
    /// The slot; less than their number.
    slot: usize,
    /// The rank of the element in it, wrapping.
    rank: usize,
}

impl Place {
    #[inline(always)]
    fn advance(&mut self, slots: usize) {
        self.rank = self.rank.wrapping_add(2);
        self.slot += 1;
        if self.slot == slots {
            self.slot = 0;
        }
    }
}

/// The sending end.
#[derive(Debug)]
pub struct FfqSender<T> {
    cells: SharedSlots<Cell<T>>,
    place: Place,
}

/// The receiving end.
#[derive(Debug)]
pub struct FfqReceiver<T> {
    cells: SharedSlots<Cell<T>>,
    place: Place,
}

impl<T: Element> Sender<T> for FfqSender<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        // SAFETY: a place is always less than the number of slots.
        let cell = unsafe { self.cells.at(self.place.slot) };
        // Acquire: a slot that is free was read before.
        if cell.rank.load(Ordering::Acquire) != FREE {
            return false;
        }
        // SAFETY: while a slot is free only the sender touches its value.
        unsafe { cell.value.write(element) };
        // Release: who sees the rank sees the element.
        cell.rank.store(self.place.rank, Ordering::Release);
        self.place.advance(self.cells.count());
        true
    }
}

impl<T: Element> Receiver<T> for FfqReceiver<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        // SAFETY: a place is always less than the number of slots.
        let cell = unsafe { self.cells.at(self.place.slot) };
        // Acquire: the element was written before its rank.
        if cell.rank.load(Ordering::Acquire) != self.place.rank {
            return None;
        }
        // SAFETY: while a slot has a rank it is written, and only the receiver touches its value.
        let element = unsafe { cell.value.read() };
        // Release: the slot is given back after it was read.
        cell.rank.store(FREE, Ordering::Release);
        self.place.advance(self.cells.count());
        Some(element)
    }
}

impl Ffq {
    /// An empty queue that has seen so many elements.
    pub(crate) fn starting_at<T: Element>(
        capacity: usize,
        start: usize,
    ) -> Result<(FfqSender<T>, FfqReceiver<T>), QueueError> {
        let capacity = check_capacity("ffq", capacity)?;
        let cells = SharedSlots::new(capacity, || Cell {
            rank: AtomicUsize::new(FREE),
            value: ValueSlot::new(),
        });
        let place = || Place {
            slot: 0,
            rank: start.wrapping_mul(2) | 1,
        };
        let sender = FfqSender {
            cells: cells.clone(),
            place: place(),
        };
        let receiver = FfqReceiver {
            cells,
            place: place(),
        };
        Ok((sender, receiver))
    }
}

impl<T: Element> Queue<T> for Ffq {
    type Sender = FfqSender<T>;
    type Receiver = FfqReceiver<T>;

    const NAME: &'static str = "ffq";
    const SOURCE: &'static str = "Arnautov, Felber, Fetzer, Trach: FFQ: A Fast Single-Producer/Multiple-Consumer Concurrent FIFO Queue. IPDPS 2017";
    const ENDS: Ends = Ends::Spsc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        Self::starting_at(capacity, 0)
    }
}
