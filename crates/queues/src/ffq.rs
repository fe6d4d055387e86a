//! FFQ: each slot carries the number of the element in it.
//!
//! Sergei Arnautov, Pascal Felber, Christof Fetzer, Bohdan Trach: FFQ: A Fast Single-Producer/Multiple-Consumer
//! Concurrent FIFO Queue. IPDPS 2017. A receiver knows its element by the rank in the slot, so several could wait for
//! different ones without touching a common index. Here there is one receiver: it takes a rank when it finds the
//! element instead of in advance (it must not block), and the sender reports "full" where the paper's would skip a slot
//! that is still in use.

use crate::element::Element;
use crate::interface::{NewEnds, Queue, ReceiveOnly, Receiver, SendOnly, Sender};
use crate::slots::{SharedSlots, ValueSlot, check_capacity};
use crate::sync::{AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Ffq;

/// The rank of a slot without an element. Ranks are odd.
const FREE: usize = 0;

#[derive(Debug)]
pub(crate) struct Cell<T> {
    rank: AtomicUsize,
    value: ValueSlot<T>,
}

/// A place on the ring.
#[derive(Debug)]
pub struct FfqEnd<T> {
    cells: SharedSlots<Cell<T>>,
    /// The slot; less than their number.
    slot: usize,
    /// The rank of the element in it, wrapping.
    rank: usize,
}

impl<T> FfqEnd<T> {
    #[inline(always)]
    fn cell(&self) -> &Cell<T> {
        // SAFETY: a place is always less than the number of slots.
        unsafe { self.cells.at(self.slot) }
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.rank = self.rank.wrapping_add(2);
        self.slot += 1;
        if self.slot == self.cells.count() {
            self.slot = 0;
        }
    }
}

impl<T: Element> Sender<T> for SendOnly<FfqEnd<T>> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        let cell = self.0.cell();
        // Acquire: a slot that is free was read before.
        if cell.rank.load(Ordering::Acquire) != FREE {
            return false;
        }
        // SAFETY: while a slot is free only the sender touches its value.
        unsafe { cell.value.write(element) };
        // Release: who sees the rank sees the element.
        cell.rank.store(self.0.rank, Ordering::Release);
        self.0.advance();
        true
    }
}

impl<T: Element> Receiver<T> for ReceiveOnly<FfqEnd<T>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        let cell = self.0.cell();
        // Acquire: the element was written before its rank.
        if cell.rank.load(Ordering::Acquire) != self.0.rank {
            return None;
        }
        // SAFETY: while a slot has a rank it is written, and only the receiver touches its value.
        let element = unsafe { cell.value.read() };
        // Release: the slot is given back after it was read.
        cell.rank.store(FREE, Ordering::Release);
        self.0.advance();
        Some(element)
    }
}

impl<T: Element> Queue<T> for Ffq {
    type Sender = SendOnly<FfqEnd<T>>;
    type Receiver = ReceiveOnly<FfqEnd<T>>;

    fn starting_at(capacity: usize, start: usize) -> NewEnds<Self, T> {
        let capacity = check_capacity(capacity)?;
        let cells = SharedSlots::new(capacity, || Cell {
            rank: AtomicUsize::new(FREE),
            value: ValueSlot::new(),
        });
        let end = |cells| FfqEnd {
            cells,
            slot: 0,
            rank: start | 1,
        };
        Ok((SendOnly(end(cells.clone())), ReceiveOnly(end(cells))))
    }
}
