//! The baton that demotes, for elements whose size is known only at run time, in memory that the caller brings.
//!
//! As in [`demoting`](super::demoting) each slot itself shows whether it is full, is given back at once, and its lines
//! are demoted by the end that is done with them. A slot begins on a cache line with the first word of its element, or
//! with zero if it is empty. So that word is never zero, and an element of up to eight words travels in one line.
//!
//! The memory holds nothing but slots: no index, which each end keeps for itself, and no pointer. So two processes can
//! share it, each having mapped it elsewhere. All zeros is an empty ring. All words are atomic: what another process
//! does to the memory can make elements wrong, but nothing else.

use super::demoting::{LINE, demote_lines, inside_line};
use super::sync::Ordering;
use crate::buffer::AtomicWords;

/// A word of the memory.
pub type Word = super::sync::AtomicU64;

/// Memory that both ends see, whole cache lines of it.
pub trait Memory {
    /// Its words.
    fn words(&self) -> &[Word];
}

/// Mapped memory, which two processes may share.
impl Memory for AtomicWords {
    #[inline(always)]
    fn words(&self) -> &[Word] {
        #[cfg(not(loom))]
        return self;
        #[cfg(loom)]
        unreachable!("loom has separate atomics, and checks the rings alone")
    }
}

/// How many elements there is room for, and how large they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Elements that a ring holds, at least one.
    pub capacity: usize,
    /// Words of an element, at least one.
    pub words: usize,
}

impl Shape {
    /// Words of a slot, which has its lines for itself.
    const fn slot_words(&self) -> usize {
        self.words.next_multiple_of(LINE)
    }

    /// Words of a ring.
    pub const fn ring_words(&self) -> usize {
        self.capacity * self.slot_words()
    }
}

/// A place on a ring.
#[derive(Debug)]
#[repr(align(128))]
struct RingEnd<M> {
    memory: M,
    /// Where the ring begins and ends, and where the next slot does.
    first: usize,
    end: usize,
    next: usize,
    words: usize,
    slot_words: usize,
    demotes: bool,
}

impl<M: Memory> RingEnd<M> {
    fn new(memory: M, ring: usize, shape: Shape) -> Self {
        let (first, words) = (ring * shape.ring_words(), shape.ring_words());
        assert!(shape.words > 0 && words > 0 && first + words <= memory.words().len());
        RingEnd {
            memory,
            first,
            end: first + words,
            next: first,
            words: shape.words,
            slot_words: shape.slot_words(),
            demotes: inside_line(shape.capacity, shape.slot_words()) == 0,
        }
    }

    /// The first word of the next slot, and the rest of it.
    #[inline(always)]
    fn slot(&self) -> (&Word, &[Word]) {
        let slot = &self.memory.words()[self.next..self.next + self.words];
        (&slot[0], &slot[1..])
    }

    /// The first word of the next slot, 0 if it is empty. Acquire: who sees it empty comes after the receiver's reading
    /// of the element, and who sees it full after the sender's writing of it. So the rest needs no separate order.
    #[inline(always)]
    fn first_word(&self) -> u64 {
        self.slot().0.load(Ordering::Acquire)
    }

    /// Hands the slot to the other end and goes on to the next one. Release: who sees this sees all that was done to
    /// the element before, or comes after it.
    #[inline(always)]
    fn advance(&mut self, word: u64) {
        let (first, _) = self.slot();
        first.store(word, Ordering::Release);
        if self.demotes {
            // SAFETY: the slot lies in the memory, where `slot` has found it, with all its lines.
            unsafe { demote_lines(std::ptr::from_ref(first).cast(), self.slot_words / LINE) };
        }
        self.next += self.slot_words;
        if self.next == self.end {
            self.next = self.first;
        }
    }
}

/// The end that sends. A ring has one.
#[derive(Debug)]
pub struct RingSender<M>(RingEnd<M>);

impl<M: Memory> RingSender<M> {
    /// Of the ring of that number among rings of one shape that lie behind one another.
    ///
    /// # Panics
    /// If the memory ends before the ring does.
    pub fn new(memory: M, ring: usize, shape: Shape) -> Self {
        RingSender(RingEnd::new(memory, ring, shape))
    }

    /// Whether there is room for an element. It stays, as no other thread fills the ring.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.0.first_word() == 0
    }

    /// Puts an element in, whose words `word` returns, if there is room. A first word of 0 comes out as 1.
    #[inline(always)]
    pub fn enqueue(&mut self, word: impl Fn(usize) -> u64) -> bool {
        if !self.has_room() {
            return false;
        }
        let (_, rest) = self.0.slot();
        for (place, at) in rest.iter().zip(1..) {
            place.store(word(at), Ordering::Relaxed);
        }
        self.0.advance(word(0).max(1));
        true
    }
}

/// The end that receives. A ring has one.
#[derive(Debug)]
pub struct RingReceiver<M>(RingEnd<M>);

impl<M: Memory> RingReceiver<M> {
    /// As [`RingSender::new`].
    ///
    /// # Panics
    /// If the memory ends before the ring does.
    pub fn new(memory: M, ring: usize, shape: Shape) -> Self {
        RingReceiver(RingEnd::new(memory, ring, shape))
    }

    /// Takes an element out, if there is one, and hands each word to `set`.
    #[inline(always)]
    pub fn dequeue(&mut self, mut set: impl FnMut(usize, u64)) -> bool {
        let first = self.0.first_word();
        if first == 0 {
            return false;
        }
        set(0, first);
        let (_, rest) = self.0.slot();
        for (place, at) in rest.iter().zip(1..) {
            set(at, place.load(Ordering::Relaxed));
        }
        self.0.advance(0);
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sync::Arc;

    impl Memory for Shared {
        fn words(&self) -> &[Word] {
            self
        }
    }

    type Shared = Arc<Vec<Word>>;

    pub(crate) fn ends(rings: usize, shape: Shape) -> (RingSender<Shared>, RingReceiver<Shared>) {
        let words = (0..rings * shape.ring_words()).map(|_| Word::new(0));
        let memory = Arc::new(words.collect::<Vec<_>>());
        let sender = RingSender::new(memory.clone(), rings - 1, shape);
        (sender, RingReceiver::new(memory, rings - 1, shape))
    }

    #[cfg(not(loom))]
    #[test]
    fn elements_of_any_size_come_out_in_order_and_a_full_ring_takes_no_more() {
        for (capacity, words) in [(1, 1), (3, 7), (2, 9), (5, 66)] {
            let (mut sender, mut receiver) = ends(3, Shape { capacity, words });
            assert!(!receiver.dequeue(|_, _| panic!("it is empty")));
            for lap in 0..3_u64 {
                for element in 0..capacity as u64 {
                    assert!(sender.has_room());
                    assert!(sender.enqueue(|at| lap << 32 | element << 16 | at as u64));
                }
                assert!(!sender.has_room() && !sender.enqueue(|_| panic!("it is full")));
                for element in 0..capacity as u64 {
                    let mut found = vec![0; words];
                    assert!(receiver.dequeue(|at, word| found[at] = word));
                    let expected = (0..words as u64).map(|at| lap << 32 | element << 16 | at);
                    // The very first word of all is 0.
                    found[0] -= u64::from((lap, element) == (0, 0));
                    assert_eq!(found, expected.collect::<Vec<_>>());
                }
                assert!(!receiver.dequeue(|_, _| panic!("it is empty")));
            }
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn rings_lie_behind_one_another_and_a_slot_begins_on_a_line() {
        let shape = |words| Shape { capacity: 4, words };
        assert_eq!(shape(8).ring_words(), 4 * LINE);
        assert_eq!(shape(9).ring_words(), 8 * LINE);
        let memory = Arc::new((0..2 * 4 * LINE).map(|_| Word::new(0)).collect::<Vec<_>>());
        let mut sender = RingSender::new(memory.clone(), 1, shape(2));
        assert!(sender.enqueue(|at| 10 + at as u64) && sender.enqueue(|at| 20 + at as u64));
        let word = |at: usize| memory[at].load(Ordering::Relaxed);
        assert!((0..4 * LINE).all(|at| word(at) == 0));
        assert_eq!(
            [0, 1, 2, LINE, LINE + 1].map(|at| word(4 * LINE + at)),
            [10, 11, 0, 20, 21]
        );
    }
}
