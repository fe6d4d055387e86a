//! How much faster one clock runs than another, as an exact fraction.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Neg;

use serde::{Deserialize, Serialize};

/// How far the rates of two clocks may lie apart, in whole parts per million: what is known before anything is
/// measured.
///
/// What is proved is proved under this limit. [`RateLimit::ANY`] assumes no more than that neither clock stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RateLimit(u32);

impl RateLimit {
    /// Both clocks run at the same rate: theta is constant.
    pub const CONSTANT: RateLimit = RateLimit(0);
    /// Clock B may gain up to a nanosecond on each nanosecond of clock A, or lose as much.
    pub const ANY: RateLimit = RateLimit(Self::HIGHEST_PPM);
    /// The largest limit.
    pub const HIGHEST_PPM: u32 = 1_000_000;

    /// A limit in parts per million; `None` above [`RateLimit::HIGHEST_PPM`].
    pub fn new(ppm: u32) -> Option<Self> {
        (ppm <= Self::HIGHEST_PPM).then_some(RateLimit(ppm))
    }

    /// Parts per million.
    pub fn ppm(self) -> u32 {
        self.0
    }

    /// The greatest rate that it allows; the least is its negative.
    pub(super) fn most(self) -> Rate {
        Rate::of(self.0.into(), Self::HIGHEST_PPM.into())
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ppm", self.0)
    }
}

/// Nanoseconds gained in a nanosecond, as a fraction: `rise` in `run`, which is above 0.
///
/// Both have 62 bits at most, so that the product of two of them fits in 128.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) rise: i128,
    pub(super) run: i128,
}

impl Rate {
    /// The fraction; `run` must not be 0.
    pub(super) fn of(rise: i128, run: i128) -> Self {
        match run < 0 {
            true => Rate {
                rise: -rise,
                run: -run,
            },
            false => Rate { rise, run },
        }
    }

    /// The gain in this many nanoseconds, rounded up.
    pub(super) fn gain_up(self, ns: i128) -> i128 {
        -(-self.rise * ns).div_euclid(self.run)
    }

    /// The gain in this many nanoseconds, rounded down.
    pub(super) fn gain_down(self, ns: i128) -> i128 {
        (self.rise * ns).div_euclid(self.run)
    }

    /// In parts per million, to the nearest number that there is.
    pub(super) fn ppm(self) -> f64 {
        self.rise as f64 / self.run as f64 * 1e6
    }

    /// In whole parts per billion, rounded down.
    pub(super) fn ppb(self) -> i64 {
        // A rate is 1 at most.
        (self.rise * 1_000_000_000).div_euclid(self.run) as i64
    }

    /// In parts per million, rounded down to four decimals.
    pub(super) fn ppm_down(self) -> f64 {
        (self.rise * STEPS).div_euclid(self.run) as f64 / 1e4
    }

    /// In parts per million, rounded up to four decimals.
    pub(super) fn ppm_up(self) -> f64 {
        -(-self.rise * STEPS).div_euclid(self.run) as f64 / 1e4
    }
}

/// This many steps of 0.0001 ppm are 1.
const STEPS: i128 = 10_000_000_000;

impl Neg for Rate {
    type Output = Rate;

    fn neg(self) -> Rate {
        Rate {
            rise: -self.rise,
            run: self.run,
        }
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rate {}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.rise * other.run).cmp(&(other.rise * self.run))
    }
}
