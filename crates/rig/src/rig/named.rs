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

impl Named for PageSize {
    const ALL: &'static [Self] = PageSize::ALL;
    fn name(self) -> &'static str {
        PageSize::name(self)
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

impl Named for Outliers {
    const ALL: &'static [Self] = Outliers::ALL;
    fn name(self) -> &'static str {
        Outliers::name(self)
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

/// An enum whose variants have these names, on the command line and in results.
#[macro_export]
macro_rules! named {
    ($(#[$outer:meta])* $kind:ident { $($(#[$inner:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $kind {
            $($(#[$inner])* #[serde(rename = $name)] $variant,)+
        }
        impl $kind {
            /// Its name on the command line and in results.
            pub const fn name(self) -> &'static str {
                match self { $($kind::$variant => $name,)+ }
            }
        }
        impl $crate::rig::named::Named for $kind {
            const ALL: &'static [Self] = &[$($kind::$variant,)+];
            fn name(self) -> &'static str {
                $kind::name(self)
            }
        }
    };
}

pub use crate::named;
