//! Settings of which there is a fixed set of named values, whatever benchmark they are of.

use crate::buffer::HugePagePolicy;
use crate::time::ClockKind;

/// A setting that has a fixed set of named values.
pub trait Named: Copy + Sized + 'static {
    /// All values, in the order of the documentation.
    const ALL: &'static [Self];
    /// The value's name on the command line and in results.
    fn name(self) -> &'static str;
}

impl Named for ClockKind {
    const ALL: &'static [Self] = &[
        ClockKind::Monotonic,
        ClockKind::MonotonicRaw,
        ClockKind::Tsc,
    ];
    fn name(self) -> &'static str {
        ClockKind::name(self)
    }
}

impl Named for HugePagePolicy {
    const ALL: &'static [Self] = &[
        HugePagePolicy::Required,
        HugePagePolicy::Try,
        HugePagePolicy::Off,
    ];
    fn name(self) -> &'static str {
        HugePagePolicy::name(self)
    }
}
