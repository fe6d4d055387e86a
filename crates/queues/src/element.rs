//! What goes through a queue: a few words, the first of which is a time stamp.

use std::num::NonZeroU64;

/// An element of `N` words of 8 bytes: the enqueue time stamp, and words that follow from it, so that a torn or
/// invented element is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Words<const N: usize>([u64; N]);

impl<const N: usize> Words<N> {
    /// The words as they are: for queues that take an element apart.
    #[inline(always)]
    pub const fn words(&self) -> &[u64; N] {
        &self.0
    }

    /// An element put together again from its words.
    #[inline(always)]
    pub const fn from_words(words: [u64; N]) -> Self {
        Words(words)
    }
}

/// What a queue carries. The bits of the stamp are never all zero, so queues that mark an empty slot by zero can.
pub trait Element: Copy + Send + Sync + 'static {
    /// The size in bytes.
    const BYTES: usize = size_of::<Self>();

    /// An element that carries a stamp.
    fn with_stamp(stamp: NonZeroU64) -> Self;

    /// The first word: the stamp.
    fn stamp(&self) -> u64;

    /// Whether all words are those that belong to the stamp.
    fn is_intact(&self) -> bool;
}

impl<const N: usize> Element for Words<N> {
    #[inline(always)]
    fn with_stamp(stamp: NonZeroU64) -> Self {
        let mut words = [stamp.get(); N];
        for (index, word) in words.iter_mut().enumerate().skip(1) {
            *word = word.wrapping_add(index as u64);
        }
        Words(words)
    }

    #[inline(always)]
    fn stamp(&self) -> u64 {
        self.0[0]
    }

    #[inline(always)]
    fn is_intact(&self) -> bool {
        let stamp = self.stamp();
        stamp != 0
            && (self.0.iter().enumerate())
                .all(|(index, word)| *word == stamp.wrapping_add(index as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_knows_whether_it_is_whole() {
        let mut element = Words::<8>::with_stamp(NonZeroU64::new(u64::MAX).unwrap());
        assert_eq!(Words::<8>::BYTES, 64);
        assert!(element.is_intact());
        element.0[7] ^= 1;
        assert!(!element.is_intact());
        assert!(!Words::<1>([0]).is_intact());
    }
}
