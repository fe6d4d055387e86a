//! The messages themselves: one slot each, a time stamp in the first eight bytes, a pattern behind it.
//!
//! The HCA (or another thread) writes this memory, so it is only ever touched through raw pointers, as atomic words.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{BufferError, Bytes, HugeBuffer, HugePagePolicy, PageKind, StableMemory};
use crate::time::Ticks;

const CACHE_LINE: usize = 64;
/// Bytes of the stamp at the start of each message.
const STAMP: usize = 8;

/// Where a message lies.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    start: *mut u8,
    buffer: PhantomData<&'a PayloadBuffer>,
}

impl Slot<'_> {
    /// The same slot without the borrow, for one who holds the buffer and never lends this out.
    fn of_held_buffer(self) -> Slot<'static> {
        Slot {
            start: self.start,
            buffer: PhantomData,
        }
    }

    /// Address of the message's first byte.
    #[inline(always)]
    pub fn address(self) -> u64 {
        self.start as u64
    }

    /// Has the cache line of the stamp come into this processor's cache, to be written soon.
    #[inline(always)]
    fn prefetch_for_writing(self) {
        // For _mm_prefetch the compiler falls back to fetching for reading, as not each x86-64 has PREFETCHW. Those
        // without it pass over it (Intel SDM, volume 2B, PREFETCHW).
        // SAFETY: the instruction changes no data and never faults.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        unsafe {
            std::arch::asm!(
                "prefetchw [{}]",
                in(reg) self.start,
                options(readonly, nostack, preserves_flags)
            );
        }
        // SAFETY: as above.
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        unsafe {
            std::arch::asm!(
                "prfm pstl1keep, [{}]",
                in(reg) self.start,
                options(readonly, nostack, preserves_flags)
            );
        }
    }

    /// Stores the time stamp, little endian.
    #[inline(always)]
    pub fn store_stamp(self, stamp: Ticks) {
        // SAFETY: a slot is made by `PayloadBuffer::slot` only, aligned to a cache line, larger than a stamp, and
        // borrows the buffer. Stamps are only accessed atomically.
        let at = unsafe { AtomicU64::from_ptr(self.start.cast()) };
        at.store(stamp.0.to_le(), Ordering::Relaxed);
    }

    /// Reads the time stamp.
    #[inline(always)]
    pub fn load_stamp(self) -> Ticks {
        // SAFETY: as in `store_stamp`; what the HCA wrote is ordered before by the completion that was polled.
        let at = unsafe { AtomicU64::from_ptr(self.start.cast()) };
        Ticks(u64::from_le(at.load(Ordering::Relaxed)))
    }
}

/// Slots for messages of one size, each on separate cache lines.
#[derive(Debug)]
pub struct PayloadBuffer {
    memory: HugeBuffer,
    message: usize,
    header: usize,
    stride: usize,
    slots: usize,
}

/// The place of the stamp to be written next: it is looked up when there is time, and then written by a single store.
#[derive(Debug)]
pub struct StampCursor {
    at: Slot<'static>,
    payload: Payload,
}

// SAFETY: the pointer leads into the payload that is held, and payloads may be used from any thread.
unsafe impl Send for StampCursor {}

impl StampCursor {
    /// Starts at the first slot.
    ///
    /// # Panics
    /// When there are no slots.
    pub fn new(payload: &Payload) -> Self {
        StampCursor {
            at: payload.slot(0).of_held_buffer(),
            payload: Arc::clone(payload),
        }
    }

    /// Moves to slot number `index`, asks for its cache line so that the store finds it, and returns the address of its
    /// first byte.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline(always)]
    pub fn move_to(&mut self, index: usize) -> u64 {
        self.at = self.payload.slot(index).of_held_buffer();
        self.at.prefetch_for_writing();
        self.at.address()
    }

    /// Stores the time stamp, little endian.
    #[inline(always)]
    pub fn store_stamp(&self, stamp: Ticks) {
        self.at.store_stamp(stamp);
    }
}

/// A payload buffer shared by the threads and handles that use its memory.
pub type Payload = Arc<PayloadBuffer>;

// SAFETY: all access goes through raw pointers and is atomic.
unsafe impl Sync for PayloadBuffer {}
// SAFETY: the memory is not bound to a thread.
unsafe impl Send for PayloadBuffer {}

// SAFETY: the mapping belongs to the buffer until it is dropped; slots are reached through raw pointers, atomically.
unsafe impl StableMemory for PayloadBuffer {
    fn region(&self) -> (*mut u8, usize) {
        (self.memory.as_ptr(), self.memory.length().0 as usize)
    }
}

/// Bytes from one message to the next.
fn stride_of(message: usize, header: usize) -> usize {
    message.next_multiple_of(CACHE_LINE) + header.next_multiple_of(CACHE_LINE)
}

impl PayloadBuffer {
    /// Memory for `slots` messages of `message` bytes, with room for `header` bytes (at most a cache line) before each,
    /// such as the 40 bytes of global route header that precede a UD message.
    ///
    /// # Errors
    /// Those of [`HugeBuffer::new`].
    ///
    /// # Panics
    /// When a message is shorter than a time stamp, or the header longer than a cache line.
    pub fn new(
        slots: usize,
        message: usize,
        header: usize,
        policy: HugePagePolicy,
    ) -> Result<Self, BufferError> {
        assert!(message >= STAMP && header <= CACHE_LINE);
        Ok(PayloadBuffer {
            memory: HugeBuffer::new(Self::bytes_needed(slots, message, header), policy)?,
            message,
            header,
            stride: stride_of(message, header),
            slots,
        })
    }

    /// Bytes that buffers of these dimensions need, before rounding up to whole pages.
    pub fn bytes_needed(slots: usize, message: usize, header: usize) -> Bytes {
        Bytes((slots * stride_of(message, header)) as u64)
    }

    /// The slot number `index`.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline(always)]
    pub fn slot(&self, index: usize) -> Slot<'_> {
        assert!(index < self.slots);
        let at = index * self.stride + self.header.next_multiple_of(CACHE_LINE);
        Slot {
            start: self.memory.as_ptr().wrapping_add(at),
            buffer: PhantomData,
        }
    }

    /// The number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes from one slot to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Bytes of a message.
    pub fn message_size(&self) -> usize {
        self.message
    }

    /// Bytes kept free before each message.
    pub fn header_size(&self) -> usize {
        self.header
    }

    /// The pages it got.
    pub fn page_kind(&self) -> PageKind {
        self.memory.page_kind()
    }

    /// Writes the pattern of message `seq` of burst `burst` behind the stamp of a slot, and zero into the stamp.
    pub fn fill(&self, index: usize, burst: u32, seq: u32) {
        self.fill_whole(index, burst, seq);
        self.store_word(index, 0);
    }

    /// The same with the pattern where the stamp would be, too.
    pub fn fill_whole(&self, index: usize, burst: u32, seq: u32) {
        for (word, place) in self.words(index) {
            place.store(pattern(burst, seq, word), Ordering::Relaxed);
        }
    }

    /// Writes the first eight bytes of a slot as a number of this host's byte order, for atomic operations.
    pub fn store_word(&self, index: usize, value: u64) {
        self.word(index, 0).store(value, Ordering::Relaxed);
    }

    /// Reads the first eight bytes of a slot as a number of this host's byte order.
    pub fn load_word(&self, index: usize) -> u64 {
        self.word(index, 0).load(Ordering::Relaxed)
    }

    /// Sets a slot to zero, stamp and pattern.
    pub fn clear(&self, index: usize) {
        for (_, place) in self.words(index) {
            place.store(0, Ordering::Relaxed);
        }
    }

    /// Whether a slot holds the pattern of message `seq` of burst `burst` behind its stamp.
    pub fn holds(&self, index: usize, burst: u32, seq: u32) -> bool {
        self.holds_from(1, index, burst, seq)
    }

    /// The same with the pattern where the stamp would be, too.
    pub fn holds_whole(&self, index: usize, burst: u32, seq: u32) -> bool {
        self.holds_from(0, index, burst, seq)
    }

    fn holds_from(&self, first: usize, index: usize, burst: u32, seq: u32) -> bool {
        self.words(index).skip(first).all(|(word, place)| {
            let differs = place.load(Ordering::Relaxed) ^ pattern(burst, seq, word);
            differs & self.bytes_of(word) == 0
        })
    }

    /// The bytes of a word that belong to the message: the last word may have less than eight.
    fn bytes_of(&self, word: usize) -> u64 {
        let of_message = self.message - word * STAMP;
        u64::from_ne_bytes(std::array::from_fn(|byte| {
            if byte < of_message { 0xff } else { 0 }
        }))
    }

    /// The words of a message with their numbers, the stamp first.
    fn words(&self, index: usize) -> impl Iterator<Item = (usize, &AtomicU64)> {
        (0..self.words_of_message()).map(move |word| (word, self.word(index, word)))
    }

    /// Words of a message; the last may have less than eight bytes.
    pub(super) fn words_of_message(&self) -> usize {
        self.message.div_ceil(STAMP)
    }

    /// A word of a message.
    ///
    /// # Panics
    /// When there is no such slot, or the message has not as many.
    #[inline(always)]
    pub(super) fn word(&self, index: usize, word: usize) -> &AtomicU64 {
        assert!(word < self.words_of_message());
        let start = self.slot(index).start.cast::<u64>();
        // SAFETY: the word lies within the slot (bounded by the message's length, rounded up to a cache line) and is
        // aligned, as slots are; the reference borrows the buffer. All access to the memory but the HCA's is atomic;
        // what the HCA wrote is ordered before by the completion that was polled, or by `PolledSlots`.
        unsafe { AtomicU64::from_ptr(start.add(word)) }
    }
}

/// A word that differs by burst, message and place. The mixing is the finaliser of SplitMix64 (Steele et al., 2014).
pub(super) fn pattern(burst: u32, seq: u32, word: usize) -> u64 {
    let mut bits =
        ((burst as u64) << 32 | seq as u64) ^ (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_holds_its_own_pattern_only() {
        let payload = PayloadBuffer::new(4, 64, 40, HugePagePolicy::Off).unwrap();
        for index in 0..4 {
            payload.fill(index, 9, index as u32);
        }
        for index in 0..4 {
            let held: Vec<u32> = (0..4).filter(|&seq| payload.holds(index, 9, seq)).collect();
            assert_eq!(held, [index as u32]);
            assert!(!payload.holds(index, 8, index as u32));
        }
        payload.clear(2);
        assert!(!payload.holds(2, 9, 2) && payload.holds(3, 9, 3));
        assert!(!payload.holds_whole(3, 9, 3), "there is a stamp");
        payload.fill_whole(2, 9, 2);
        assert!(payload.holds_whole(2, 9, 2) && payload.holds(2, 9, 2));
        payload.store_word(2, 7);
        assert_eq!(payload.load_word(2), 7);
        assert!(payload.holds(2, 9, 2) && !payload.holds_whole(2, 9, 2));
        // One changed byte is seen.
        let last = payload.slot(3).start.wrapping_add(63);
        // SAFETY: the last byte of the last slot.
        unsafe { last.write(last.read() ^ 1) };
        assert!(!payload.holds(3, 9, 3));
    }

    #[test]
    fn a_message_of_any_size_is_checked_to_its_last_byte_and_no_further() {
        for size in [8, 9, 15, 16, 63, 64, 65, 100] {
            let payload = PayloadBuffer::new(2, size, 0, HugePagePolicy::Off).unwrap();
            payload.fill(0, 9, 0);
            payload.fill(1, 9, 1);
            let flip = |byte: usize| {
                assert!(byte < payload.stride());
                let at = payload.slot(0).start.wrapping_add(byte);
                // SAFETY: a byte of the first slot.
                unsafe { at.write(at.read() ^ 1) };
            };
            for byte in STAMP..size {
                flip(byte);
                assert!(!payload.holds(0, 9, 0), "byte {byte} of {size}");
                flip(byte);
            }
            if size < payload.stride() {
                flip(size);
            }
            assert!(payload.holds(0, 9, 0) && payload.holds(1, 9, 1), "{size}");
        }
    }

    #[test]
    fn a_cursor_writes_where_it_was_moved_to_and_keeps_the_memory() {
        let payload = Payload::new(PayloadBuffer::new(3, 64, 40, HugePagePolicy::Off).unwrap());
        let mut cursor = StampCursor::new(&payload);
        cursor.store_stamp(Ticks(5));
        cursor.move_to(2);
        cursor.store_stamp(Ticks(7));
        let stamps = [0, 1, 2].map(|index| payload.slot(index).load_stamp());
        assert_eq!(stamps, [Ticks(5), Ticks(0), Ticks(7)]);
        drop(payload);
        cursor.store_stamp(Ticks(9));
        assert_eq!(cursor.payload.slot(2).load_stamp(), Ticks(9));
    }

    #[test]
    #[should_panic(expected = "index < self.slots")]
    fn a_cursor_leaves_no_buffer() {
        let payload = Payload::new(PayloadBuffer::new(3, 8, 0, HugePagePolicy::Off).unwrap());
        StampCursor::new(&payload).move_to(3);
    }

    #[test]
    fn slots_are_aligned_apart_and_keep_room_for_the_header() {
        let payload = PayloadBuffer::new(3, 8, 40, HugePagePolicy::Off).unwrap();
        let (start, _) = payload.region();
        assert_eq!(payload.slot(0).address(), start as u64 + 64);
        assert_eq!(payload.slot(1).address() - payload.slot(0).address(), 128);
        payload.slot(1).store_stamp(Ticks(42));
        assert_eq!(payload.slot(1).load_stamp(), Ticks(42));
        assert_eq!(payload.slot(2).load_stamp(), Ticks(0));
    }
}
