//! Seeing by the memory alone that messages have arrived, in the order of their slots.
//!
//! A message has arrived when its last byte is there. Before, that byte is the complement of what the message brings,
//! so that any change of it is the message, whatever its pattern and size. A message of eight bytes is a time stamp,
//! never zero: it has arrived when the word is not zero any more.
//!
//! That the last byte is the last to be written is not promised by the InfiniBand Architecture Specification, which
//! orders the bytes of a message by its completion only (volume 1, 9.5, transaction ordering). Adapters write the bytes
//! of a message in ascending order, and PCI Express keeps the order of writes unless relaxed ordering is allowed, which
//! has to be asked for when the memory is registered. Whether all bytes are as they were sent shows afterwards.

use std::sync::atomic::Ordering;
#[cfg(not(all(target_arch = "aarch64", not(miri))))]
use std::sync::atomic::fence;

use super::Payload;
use super::payload::pattern;

/// The slots of a burst, of which each message will change its own.
#[derive(Debug)]
pub struct PolledSlots {
    payload: Payload,
    /// The word with the last byte, and the bytes of it that count.
    word: usize,
    mask: u64,
    /// What these bytes are before the message, slot by slot.
    before: Vec<u64>,
}

impl PolledSlots {
    /// Prepares the first `messages` slots, which are clear, for those messages of burst `burst`.
    ///
    /// # Panics
    /// When there are fewer slots.
    pub fn new(payload: &Payload, burst: u32, messages: usize) -> Self {
        let last = payload.message_size() - 1;
        let word = last / size_of::<u64>();
        let is_stamp_only = word == 0;
        let mask = match is_stamp_only {
            true => u64::MAX,
            false => u64::from_ne_bytes(std::array::from_fn(|byte| {
                if byte == last % size_of::<u64>() {
                    0xff
                } else {
                    0
                }
            })),
        };
        let before = (0..messages).map(|index| match is_stamp_only {
            true => 0,
            false => !pattern(burst, index as u32, word) & mask,
        });
        let slots = PolledSlots {
            before: before.collect(),
            payload: Payload::clone(payload),
            word,
            mask,
        };
        for (index, before) in slots.before.iter().enumerate() {
            payload.word(index, word).store(*before, Ordering::Relaxed);
        }
        slots
    }

    /// How many messages are awaited.
    pub fn messages(&self) -> usize {
        self.before.len()
    }

    /// Bytes of a message.
    pub fn message_size(&self) -> usize {
        self.payload.message_size()
    }

    /// Whether the message of this slot has arrived; what is read of the slot afterwards is not older. Never, where
    /// none is awaited.
    #[inline(always)]
    pub fn has_arrived(&self, index: usize) -> bool {
        let Some(before) = self.before.get(index) else {
            return false;
        };
        let now = self.payload.word(index, self.word).load(Ordering::Relaxed);
        let arrived = (now ^ before) & self.mask != 0;
        if arrived {
            behind_the_device();
        }
        arrived
    }
}

/// Has what is read behind this be not older than what was seen before it, which a device wrote.
///
/// An acquire fence orders what processors write: on Arm it is `dmb ishld`, for the inner shareable domain. A device
/// may be in the outer one, so that the fence there is `dmb oshld`, as in `udma_from_device_barrier` of rdma-core. On
/// x86-64 loads stay in their order, and only the compiler is held.
#[inline(always)]
fn behind_the_device() {
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a barrier accesses nothing. Not `nomem`: the compiler moves no access over it.
    unsafe {
        std::arch::asm!("dmb oshld", options(nostack, preserves_flags))
    };
    #[cfg(not(all(target_arch = "aarch64", not(miri))))]
    fence(Ordering::Acquire);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::buffer::{HugePagePolicy, PayloadBuffer};
    use crate::time::Ticks;

    const BURST: u32 = 9;
    const MESSAGES: usize = 3;

    fn payload(size: usize) -> Payload {
        let slots = MESSAGES + 1;
        Payload::new(PayloadBuffer::new(slots, size, 0, HugePagePolicy::Off).unwrap())
    }

    /// The slots as a peer sees them that writes byte by byte, and those of a message it has.
    fn pair(size: usize) -> (Payload, PolledSlots, Payload) {
        let (target, source) = (payload(size), payload(size));
        let slots = PolledSlots::new(&target, BURST, MESSAGES);
        for index in 0..MESSAGES {
            source.fill(index, BURST, index as u32);
            source.slot(index).store_stamp(Ticks(u64::MAX / 3));
        }
        (target, slots, source)
    }

    fn write(from: &Payload, to: &Payload, index: usize, byte: usize) {
        let (word, place) = (byte / 8, byte % 8);
        let mut bytes = to.word(index, word).load(Ordering::Relaxed).to_ne_bytes();
        bytes[place] = from.word(index, word).load(Ordering::Relaxed).to_ne_bytes()[place];
        (to.word(index, word)).store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }

    #[test]
    fn a_message_has_arrived_with_its_last_byte_whatever_its_size() {
        for size in [9, 10, 15, 16, 17, 63, 64, 65, 100, 4096] {
            let (target, slots, source) = pair(size);
            for byte in 0..size - 1 {
                write(&source, &target, 1, byte);
                assert!(!slots.has_arrived(1), "byte {byte} of {size}");
            }
            write(&source, &target, 1, size - 1);
            let arrived = [0, 1, 2, 3].map(|index| slots.has_arrived(index));
            assert_eq!(arrived, [false, true, false, false], "{size}");
            assert!(target.holds(1, BURST, 1), "{size}");
        }
    }

    #[test]
    fn a_message_of_eight_bytes_has_arrived_when_it_is_not_zero() {
        let (target, slots, _) = pair(8);
        assert!(!slots.has_arrived(2));
        target.slot(2).store_stamp(Ticks(1));
        assert!(slots.has_arrived(2) && !slots.has_arrived(1));
        assert_eq!((slots.messages(), slots.message_size()), (MESSAGES, 8));
    }

    #[test]
    fn the_slots_are_prepared_anew_for_each_burst() {
        let (target, _, source) = pair(9);
        (0..9).for_each(|byte| write(&source, &target, 0, byte));
        let slots = PolledSlots::new(&target, BURST + 1, MESSAGES);
        assert!(!slots.has_arrived(0));
    }

    proptest! {
        #[test]
        fn no_message_has_the_byte_that_stands_for_none(
            burst in any::<u32>(), size in 9_usize..200,
        ) {
            let target = payload(size);
            let slots = PolledSlots::new(&target, burst, MESSAGES);
            for index in 0..MESSAGES {
                prop_assert!(!slots.has_arrived(index));
                target.fill(index, burst, index as u32);
                prop_assert!(slots.has_arrived(index));
            }
        }
    }
}
