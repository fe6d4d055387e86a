//! Settings of which there is a fixed set of named values, whatever benchmark they are of.

use crate::buffer::{HugePagePolicy, PageSize};
use crate::stats::Outliers;
use crate::time::{ClockKind, ReadingKind};

/// A setting that has a fixed set of named values.
pub trait Named: Copy + Sized + 'static {
    /// All values, in the order of the documentation.
    const ALL: &'static [Self];
    /// Other names that are understood on the command line.
    const ALSO: &'static [(&'static str, Self)] = &[];
    /// The value's name on the command line and in results.
    fn name(self) -> &'static str;
}

impl Named for ClockKind {
    const ALL: &'static [Self] = &[
        ClockKind::Monotonic,
        ClockKind::MonotonicRaw,
        ClockKind::Counter,
    ];
    /// Its name where it is not the TSC.
    const ALSO: &'static [(&'static str, Self)] = &[("counter", ClockKind::Counter)];
    fn name(self) -> &'static str {
        ClockKind::name(self)
    }
}

impl Named for ReadingKind {
    const ALL: &'static [Self] = ReadingKind::ALL;
    /// Its first name on x86-64.
    #[cfg(target_arch = "x86_64")]
    const ALSO: &'static [(&'static str, Self)] = &[("counter", ReadingKind::Rdtsc)];

    fn name(self) -> &'static str {
        ReadingKind::name(self)
    }
}

/// For enums that have all of their values and names themselves.
#[macro_export]
macro_rules! named_by_itself {
    ($($kind:ident),+) => { $(
        impl $crate::rig::named::Named for $kind {
            const ALL: &'static [Self] = $kind::ALL;
            fn name(self) -> &'static str {
                $kind::name(self)
            }
        }
    )+ };
}

pub use named_by_itself;

named_by_itself!(HugePagePolicy, Outliers, PageSize);

/// An enum whose variants have these names, on the command line and in results.
#[macro_export]
macro_rules! named {
    ($(#[$outer:meta])* $kind:ident { $($variants:tt)+ }) => {
        $crate::rig::named::names! { $(#[$outer])* $kind { $($variants)+ } }
        $crate::rig::named::named_by_itself!($kind);
    };
}

pub use hcabench_platform::names;
pub use named;
