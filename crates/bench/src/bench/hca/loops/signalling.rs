//! Which messages of a burst ask for a send completion.
//!
//! A send request holds its place in the send queue until a completion of it, or of a later one of the same queue pair,
//! was taken. Message `i` goes over queue pair `i % N`, so those that are signalled stand together, one of each queue
//! pair, and the last of each queue pair always is.

/// Of each block of messages, the last of each queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signalling {
    /// Messages of a block: as many of each queue pair.
    pub(crate) block: u32,
    /// Queue pairs.
    pub(crate) queue_pairs: u32,
}

impl Signalling {
    /// Of each of so many queue pairs one message out of `every` is signalled.
    pub fn new(every: u32, queue_pairs: u32) -> Self {
        Signalling {
            block: every.saturating_mul(queue_pairs),
            queue_pairs,
        }
    }

    /// Of how many messages of a queue pair one must be signalled where `depth` may be in flight over so many queue pairs.
    ///
    /// With each queue pair fewer than that stay unknown to have left after all completions were taken. Those of all
    /// queue pairs together are at most half of the depth less their number, so there is room for the next message and
    /// the sender never waits for a completion that nobody asked for.
    pub fn longest_run(depth: u32, queue_pairs: u32) -> u32 {
        (depth / (2 * queue_pairs)).max(1)
    }

    /// Messages that the completion of this one shows to have left: itself, and those before it over its queue pair that
    /// were not signalled.
    #[inline(always)]
    pub fn freed_by(self, sequence: u32) -> u32 {
        sequence % self.block / self.queue_pairs + 1
    }

    /// Signalled messages of a burst of `count`.
    pub fn among(self, count: u32) -> u32 {
        let Signalling { block, queue_pairs } = self;
        let in_blocks = count / block * queue_pairs;
        // Those of the block that the burst ends in, and the last of queue pairs that have no message in it.
        let of_last = (count % block).min(queue_pairs);
        in_blocks + of_last
    }
}
