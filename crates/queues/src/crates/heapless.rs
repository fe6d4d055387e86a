//! The SPSC queue of heapless: indices modulo the number of slots, of which one stays free.
//!
//! Its capacity is part of its type, so it comes in a few only. Both ends of this crate work on a view that has the
//! number of slots beside it, and divide by that. Who uses the crate has one capacity, which the compiler knows once
//! the ends are inlined, and nothing is divided. So the capacities that are compared most have separate ends.

use heapless::spsc::{Consumer, Producer, Queue as HeaplessQueue, QueueView};

use crate::element::Element;
use crate::interface::{NewEnds, Queue, QueueError, Receiver, Sender};
use crate::sync::Arc;

#[derive(Debug)]
/// `KNOWN` is its capacity where the compiler is to know it, or 0.
pub(crate) struct Heapless<const KNOWN: usize>;

/// The memory of the queue, which both ends hold.
pub(crate) struct Storage<T: 'static>(*mut QueueView<T>);

// SAFETY: it is used to free the memory only, by whichever end goes last.
unsafe impl<T: Send> Send for Storage<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Storage<T> {}

impl<T> Drop for Storage<T> {
    fn drop(&mut self) {
        // SAFETY: it was a box, and both ends, which borrow from it, are gone before their share of this one: they are
        // before it in their structures.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// An end of the queue.
pub(crate) struct HeaplessEnd<E, T: 'static, const KNOWN: usize> {
    end: E,
    _storage: Arc<Storage<T>>,
}

impl<T: Element, const KNOWN: usize> Sender<T> for HeaplessEnd<Producer<'static, T>, T, KNOWN> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        if KNOWN > 0 {
            // SAFETY: checked where it was made.
            unsafe { std::hint::assert_unchecked(self.end.capacity() == KNOWN) };
        }
        self.end.enqueue(element).is_ok()
    }
}

impl<T: Element, const KNOWN: usize> Receiver<T> for HeaplessEnd<Consumer<'static, T>, T, KNOWN> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        if KNOWN > 0 {
            // SAFETY: checked where it was made.
            unsafe { std::hint::assert_unchecked(self.end.capacity() == KNOWN) };
        }
        self.end.dequeue()
    }
}

/// An empty queue with `SLOTS` slots, made where it is to stay: it can be larger than a stack.
fn on_the_heap<T: Element, const SLOTS: usize>() -> Box<QueueView<T>> {
    let mut memory = Box::<HeaplessQueue<T, SLOTS>>::new_uninit();
    // SAFETY: it is room for one queue. That consists of two atomic indices and an array of slots that may be
    // uninitialised, so zeros are a value of it: the one of `new`, with both indices 0.
    let queue = unsafe {
        memory.as_mut_ptr().write_bytes(0, 1);
        memory.assume_init()
    };
    assert!(queue.is_empty() && queue.capacity() + 1 == SLOTS);
    queue
}

macro_rules! capacities {
    ($asked:expr, $($capacity:literal)+) => {
        match $asked {
            $($capacity => on_the_heap::<T, { $capacity + 1 }>(),)+
            asked => {
                return Err(QueueError {
                    asked,
                    allowed: "its capacity is fixed at compile time, here to 1, 2, 3, 7, 16, 64, 100, 256, 1000, 1024, 4096, 16384 and 65536",
                });
            }
        }
    };
}

impl<T: Element, const KNOWN: usize> Queue<T> for Heapless<KNOWN> {
    type Sender = HeaplessEnd<Producer<'static, T>, T, KNOWN>;
    type Receiver = HeaplessEnd<Consumer<'static, T>, T, KNOWN>;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, T> {
        assert!(KNOWN == 0 || KNOWN == capacity);
        let queue = capacities!(capacity, 1 2 3 7 16 64 100 256 1000 1024 4096 16384 65536);
        let queue = Box::into_raw(queue);
        let storage = Arc::new(Storage(queue));
        // SAFETY: valid until the storage is dropped, which both ends outlive by no moment; no other thread has a
        // reference.
        let (sender, receiver) = unsafe { &mut *queue }.split_const();
        let sender = HeaplessEnd {
            end: sender,
            _storage: storage.clone(),
        };
        let receiver = HeaplessEnd {
            end: receiver,
            _storage: storage,
        };
        super::touched(capacity, (sender, receiver))
    }
}
