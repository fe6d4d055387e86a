//! Samples: slots of equal size in memory that is mapped, touched and locked once.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::NodeError;
use crate::buffer::{Bytes, HugeBuffer, HugePagePolicy, PageKind, StableMemory};

/// Bytes before each sample, for what some services put there: UD's global routing header takes 40.
pub const HEADROOM: usize = 64;
/// Samples begin on a cache line.
const LINE: usize = 64;
/// Bytes of a word.
pub const WORD: usize = size_of::<u64>();

/// A slot of a pool. Its holder is its only owner; it cannot be copied, so nothing is released twice.
#[derive(Debug, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    /// Its number in its pool, from 0: what a work request can carry.
    #[inline(always)]
    pub fn number(&self) -> u32 {
        self.0
    }
}

/// The memory of a pool, which hardware may work on.
#[derive(Debug)]
struct Memory(HugeBuffer);

// SAFETY: the mapping belongs to the value until it is dropped. What a work request names is a slot that was put down,
// and the only references are those to slots in somebody's hands.
unsafe impl StableMemory for Memory {
    fn region(&self) -> (*mut u8, usize) {
        (self.0.as_ptr(), self.0.length().0 as usize)
    }
}

/// The slots of one end.
#[derive(Debug)]
pub struct Pool {
    memory: Arc<Memory>,
    /// Where it begins: kept here, as each look behind the `Arc` is one more line that may not be in the cache.
    start: NonNull<u8>,
    words: usize,
    stride: usize,
    count: usize,
    free: Vec<Slot>,
    /// The slots that nodes have put down by their number alone.
    held: Vec<bool>,
}

// SAFETY: the memory lives as long as the pool and goes with it.
unsafe impl Send for Pool {}

/// The words of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    first: *const u64,
    words: usize,
    pool: PhantomData<&'a Pool>,
}

impl Sample<'_> {
    /// A word. Volatile, as hardware may have written it.
    #[inline(always)]
    pub fn word(self, at: usize) -> u64 {
        assert!(at < self.words);
        // SAFETY: the first word is that of a slot of the pool, which is borrowed, and `at` below its words: the address
        // lies in the memory, aligned.
        u64::from_le(unsafe { self.first.wrapping_add(at).read_volatile() })
    }
}

/// The words of a sample, to be written.
#[derive(Debug)]
pub struct SampleMut<'a> {
    first: *mut u64,
    words: usize,
    pool: PhantomData<&'a mut Pool>,
}

impl SampleMut<'_> {
    /// Writes a word.
    #[inline(always)]
    pub fn set_word(&mut self, at: usize, value: u64) {
        assert!(at < self.words);
        // SAFETY: as above, and only the holder of the slot, who has lent it, may write it.
        unsafe { self.first.wrapping_add(at).write_volatile(value.to_le()) };
    }
}

impl Pool {
    /// A pool of `count` slots for samples of this many words of 8 bytes.
    ///
    /// # Errors
    /// When the memory cannot be allocated or locked.
    pub fn new(count: usize, words: usize, pages: HugePagePolicy) -> Result<Self, NodeError> {
        let stride = HEADROOM + (words * WORD).next_multiple_of(LINE);
        let memory = HugeBuffer::new(Bytes((count * stride) as u64), pages)?;
        let numbers = (0..u32::try_from(count).unwrap_or(u32::MAX)).rev();
        Ok(Pool {
            start: memory.start(),
            memory: Arc::new(Memory(memory)),
            words,
            stride,
            count,
            free: numbers.map(Slot).collect(),
            held: vec![false; count],
        })
    }

    /// Takes a free slot.
    #[inline(always)]
    pub fn take(&mut self) -> Option<Slot> {
        self.free.pop()
    }

    /// Takes free slots until `samples` has this many, or none is left.
    #[inline(always)]
    pub fn fill(&mut self, samples: &mut Vec<Slot>, count: usize) {
        while samples.len() < count
            && let Some(slot) = self.take()
        {
            samples.push(slot);
        }
    }

    /// Gives a slot back.
    #[inline(always)]
    pub fn release(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// Gives all of them back.
    #[inline(always)]
    pub fn release_all(&mut self, samples: &mut Vec<Slot>) {
        self.free.append(samples);
    }

    /// Puts a slot down by its number: hardware has it.
    #[inline(always)]
    pub fn put_down(&mut self, slot: Slot) -> u32 {
        self.held[slot.0 as usize] = true;
        slot.0
    }

    /// Picks up the slot that was put down under that number; `None` if there is no such.
    #[inline(always)]
    pub fn pick_up(&mut self, number: u32) -> Option<Slot> {
        let held = self.held.get_mut(number as usize)?;
        std::mem::take(held).then_some(Slot(number))
    }

    /// Picks up all that were put down, and releases them; returns how many. Nothing may work on them any more.
    pub fn release_held(&mut self) -> usize {
        let mut released = 0;
        for number in 0..self.count as u32 {
            if let Some(slot) = self.pick_up(number) {
                self.release(slot);
                released += 1;
            }
        }
        released
    }

    /// Whether all slots are free.
    pub fn is_whole(&self) -> bool {
        self.free.len() == self.count
    }

    /// How many slots it has.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of a sample.
    #[inline(always)]
    pub fn sample_bytes(&self) -> usize {
        self.words * WORD
    }

    /// The pages it got.
    pub fn page_kind(&self) -> PageKind {
        self.memory.0.page_kind()
    }

    /// All of its memory, to be registered.
    pub fn memory(&self) -> Arc<dyn StableMemory> {
        Arc::clone(&self.memory) as _
    }

    /// Where the sample of a slot begins. It lies [`HEADROOM`] bytes behind the slot itself, on a cache line.
    #[inline(always)]
    pub fn address(&self, number: u32) -> *mut u8 {
        assert!((number as usize) < self.count, "a slot of another pool");
        let at = number as usize * self.stride + HEADROOM;
        self.start.as_ptr().wrapping_add(at)
    }

    /// A word of a sample.
    #[inline(always)]
    pub fn word(&self, slot: &Slot, at: usize) -> u64 {
        self.sample(slot).word(at)
    }

    /// Writes a word of a sample.
    #[inline(always)]
    pub fn set_word(&mut self, slot: &Slot, at: usize, value: u64) {
        self.sample_mut(slot).set_word(at, value);
    }

    /// A sample of which several words are read: it is looked for once.
    #[inline(always)]
    pub fn sample(&self, slot: &Slot) -> Sample<'_> {
        Sample {
            first: self.address(slot.0).cast(),
            words: self.words,
            pool: PhantomData,
        }
    }

    /// The same, to be written.
    #[inline(always)]
    pub fn sample_mut(&mut self, slot: &Slot) -> SampleMut<'_> {
        SampleMut {
            first: self.address(slot.0).cast(),
            words: self.words,
            pool: PhantomData,
        }
    }

    /// The bytes of a sample, for libraries that copy them.
    #[inline(always)]
    pub fn bytes(&self, slot: &Slot) -> &[u8] {
        // SAFETY: the sample lies in the memory, which is initialised. No thread writes it while its owner has lent the
        // slot for as long as the bytes are used.
        unsafe { std::slice::from_raw_parts(self.address(slot.0), self.sample_bytes()) }
    }

    /// The same, to be written.
    #[inline(always)]
    pub fn bytes_mut(&mut self, slot: &Slot) -> &mut [u8] {
        // SAFETY: as above; `&mut self` keeps all other references to this pool's memory away.
        unsafe { std::slice::from_raw_parts_mut(self.address(slot.0), self.sample_bytes()) }
    }

    /// Copies a sample of the same size in; returns false, and copies nothing, if it is of another one.
    #[inline(always)]
    pub fn copy_in(&mut self, slot: &Slot, sample: &[u8]) -> bool {
        if sample.len() != self.sample_bytes() {
            return false;
        }
        // SAFETY: both are that long, and a caller's slice does not overlap the slot that it has lent.
        unsafe {
            ptr::copy_nonoverlapping(sample.as_ptr(), self.address(slot.0), sample.len());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(count: usize, words: usize) -> Pool {
        Pool::new(count, words, HugePagePolicy::Off).unwrap()
    }

    #[test]
    fn slots_come_back_once_and_the_pool_is_whole_again() {
        let mut pool = pool(3, 2);
        let mut samples = Vec::with_capacity(3);
        pool.fill(&mut samples, 2);
        assert_eq!(samples.len(), 2);
        let down = pool.put_down(samples.pop().unwrap());
        pool.release_all(&mut samples);
        assert!(!pool.is_whole());
        let up = pool.pick_up(down).unwrap();
        assert_eq!(pool.pick_up(down), None);
        assert_eq!(pool.pick_up(99), None);
        pool.release(up);
        assert!(pool.is_whole());
        pool.fill(&mut samples, 9);
        assert_eq!(samples.len(), 3);
        samples.into_iter().for_each(|slot| {
            pool.put_down(slot);
        });
        assert_eq!(pool.release_held(), 3);
        assert!(pool.is_whole());
    }

    #[test]
    fn samples_are_little_endian_on_cache_lines_of_their_own() {
        let mut pool = pool(2, 9);
        let (one, other) = (pool.take().unwrap(), pool.take().unwrap());
        pool.set_word(&one, 8, 0x0102);
        pool.set_word(&other, 0, 7);
        assert_eq!(pool.bytes(&one)[64..], [2, 1, 0, 0, 0, 0, 0, 0]);
        let sample = pool.bytes(&one).to_vec();
        assert!(pool.copy_in(&other, &sample));
        assert!(!pool.copy_in(&other, &sample[1..]));
        assert_eq!((pool.word(&other, 8), pool.word(&other, 0)), (0x0102, 0));
        assert_eq!(pool.address(1) as usize % LINE, 0);
        assert!(pool.address(1) as usize - pool.address(0) as usize >= HEADROOM + 9 * WORD);
    }
}
