//! Time stamps: what a clock is, what it returns, and what reading it costs.

use serde::Serialize;

/// A raw reading of a clock, in that clock's own unit (nanoseconds for POSIX clocks, cycles for the TSC).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[repr(transparent)]
pub struct Ticks(pub u64);

/// A number of nanoseconds: a point on a clock or a length of time, as its name says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[repr(transparent)]
pub struct Nanos(pub u64);
