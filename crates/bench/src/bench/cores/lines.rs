//! The lines that are handed over, on a NUMA node.
//!
//! A line is 64 bytes, and each that is handed over is alone in a block of 256 bytes, so that no prefetcher brings
//! another one with it. There are several, which are used in turn: where in the processor a line is kept follows from
//! its address, and some places are farther away.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::{PageSize, RegionError, RegionWords};

/// Words of a line.
pub const LINE_WORDS: usize = 8;
/// Bytes of a line.
pub const LINE_BYTES: u64 = 64;
/// Words of the block in which a line is alone.
const BLOCK: usize = 32;
/// Lines of each direction that are handed over in turn.
pub const PLACES: usize = 32;
/// Lines of the ring of a stream: they fit into the second level of cache of any server.
pub const RING: usize = 1024;

/// Where parts begin, in words: the lines of both directions, the progress of the reader, the ring.
const WAY: usize = PLACES * BLOCK;
const TAKEN: usize = 2 * WAY;
const RING_START: usize = TAKEN + BLOCK;
const WORDS: usize = RING_START + RING * LINE_WORDS;

/// The lines on a node, zero at the start.
#[derive(Debug)]
pub struct NodeLines(RegionWords);

impl NodeLines {
    /// On that node; without one, where the calling thread's memory goes.
    ///
    /// # Errors
    /// When they cannot be allocated there.
    pub fn new(node: Option<u32>) -> Result<Self, RegionError> {
        Ok(NodeLines(RegionWords::new(WORDS, PageSize::Small, node)?))
    }

    /// The node that they lie on, if the kernel reports it.
    pub fn node(&self) -> Option<usize> {
        self.0.node()
    }

    /// Sets all to zero, while no other thread uses them.
    pub fn clear(&self) {
        self.0
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Those of the first direction, or of the second.
    pub fn way(&self, is_second: bool) -> Way<'_> {
        let first = if is_second { WAY } else { 0 };
        Way {
            handovers: &self.0[first..][..WAY],
            taken: &self.0[TAKEN],
            ring: &self.0[RING_START..][..RING * LINE_WORDS],
        }
    }
}

/// The lines that one CPU writes and the other reads.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    handovers: &'a [AtomicU64],
    /// The number of the last line that the reader of a stream has taken, which it writes.
    pub(super) taken: &'a AtomicU64,
    /// The lines of the ring.
    pub(super) ring: &'a [AtomicU64],
}

/// A line that is handed over.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandoverLine<'a> {
    /// The number that is waited for.
    pub number: &'a AtomicU64,
    /// When it was written, on the same line.
    pub stamp: &'a AtomicU64,
}

impl<'a> Way<'a> {
    /// The line whose turn it is.
    pub(super) fn line(&self, turn: usize) -> HandoverLine<'a> {
        let block = &self.handovers[turn % PLACES * BLOCK..][..BLOCK];
        HandoverLine {
            number: &block[0],
            stamp: &block[1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_lines_share_a_cache_line() {
        let lines = NodeLines::new(None).unwrap();
        let (there, back) = (lines.way(false), lines.way(true));
        let of = |word: &AtomicU64| &raw const *word as usize / 64;
        let mut used: Vec<usize> = (0..PLACES)
            .flat_map(|turn| [there, back].map(|way| way.line(turn)))
            .map(|line| {
                assert_eq!(of(line.number), of(line.stamp));
                of(line.number)
            })
            .collect();
        used.push(of(there.taken));
        used.extend(there.ring.chunks_exact(LINE_WORDS).map(|line| of(&line[0])));
        let count = used.len();
        used.sort_unstable();
        used.dedup();
        assert_eq!((used.len(), count), (count, 2 * PLACES + 1 + RING));
        // A line of the ring is one.
        assert_eq!(of(&there.ring[0]), of(&there.ring[LINE_WORDS - 1]));
        there.line(PLACES + 3).number.store(9, Ordering::Relaxed);
        assert_eq!(there.line(3).number.load(Ordering::Relaxed), 9);
        lines.clear();
        assert_eq!(there.line(3).number.load(Ordering::Relaxed), 0);
    }
}
