//! The least and the most that can be asked for.

/// The smallest message, in bytes: a time stamp.
pub const SMALLEST_SIZE: u32 = 8;
/// The largest message of any device, in bytes (InfiniBand Architecture Specification, volume 1, 9.7.1).
pub const LARGEST_SIZE: u32 = 1 << 31;
/// The most messages of a burst.
pub const LARGEST_BURST: u32 = 8192;
/// The most queue pairs that the messages of a burst are spread over.
pub const MOST_QUEUE_PAIRS: u32 = 1024;
