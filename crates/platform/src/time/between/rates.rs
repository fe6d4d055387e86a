//! At which rates a line lies below the upper points and above the lower ones.
//!
//! With the lower points negated, the room of a rate is the least of the upper points plus the least of the negated
//! lower ones, both after the rate was taken out of them. Room is a concave function of the rate, made of straight
//! pieces. Where it is negative, no line of that rate fits. A root of it is found by Newton's method from outside: each
//! step ends exactly on the root of a piece, on the same side, and there are not more pieces than corners.

use super::hull::{Hull, HullPoint};
use super::rate::Rate;

/// Both directions: the hull of the apparent latencies forward, and of those backward.
#[derive(Debug, Clone)]
pub(super) struct Hulls {
    pub(super) forward: Hull,
    pub(super) backward: Hull,
}

/// The messages that leave the least room at a rate, one of each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClosestMessages {
    pub(super) forward: HullPoint,
    pub(super) backward: HullPoint,
}

impl ClosestMessages {
    fn sum(&self) -> i128 {
        self.forward.value + self.backward.value
    }

    /// How much room is gained with the rate: above 0 where a greater rate has more.
    fn slope(&self) -> i128 {
        self.backward.time - self.forward.time
    }

    /// The room between them at a rate, times the rate's denominator.
    fn room(&self, rate: Rate) -> i128 {
        self.sum() * rate.run + rate.rise * self.slope()
    }
}

/// Where there is most room, and still too little.
#[derive(Debug, Clone)]
pub(super) struct BestRate {
    pub(super) rate: Rate,
    /// This many nanoseconds are missing, rounded up.
    pub(super) missing: i128,
    /// The messages that show it: one pair or two.
    pub(super) pairs: Vec<ClosestMessages>,
}

impl Hulls {
    fn closest(&self, rate: Rate) -> ClosestMessages {
        ClosestMessages {
            forward: self.forward.touched(rate),
            backward: self.backward.touched(-rate),
        }
    }

    /// The least and the greatest rate from `least` to `most` at which a line fits; `None` if there is none.
    pub(super) fn rates(&self, least: Rate, most: Rate) -> Option<(Rate, Rate)> {
        let first = self.first_with_room(least, 1);
        // Where there is room beyond `most` only, the way down from there finds none.
        Some((first?, self.first_with_room(most, -1)?))
    }

    /// The first rate with room on the way from a rate, upwards if `sign` is 1, downwards if it is -1.
    fn first_with_room(&self, from: Rate, sign: i128) -> Option<Rate> {
        let mut rate = from;
        loop {
            let pair = self.closest(rate);
            if pair.room(rate) >= 0 {
                return Some(rate);
            }
            if pair.slope() * sign <= 0 {
                return None;
            }
            rate = Rate::of(-pair.sum(), pair.slope());
        }
    }

    /// The rate with most room from `least` to `most`, where none has enough.
    pub(super) fn best(&self, least: Rate, most: Rate) -> BestRate {
        let (mut left, mut right) = (self.closest(least), self.closest(most));
        if left.slope() <= 0 {
            return BestRate::at(least, vec![left]);
        }
        if right.slope() >= 0 {
            return BestRate::at(most, vec![right]);
        }
        loop {
            // Where the two pieces cross there is no less room than anywhere, unless a third one is below.
            let rate = Rate::of(left.sum() - right.sum(), right.slope() - left.slope());
            let between = self.closest(rate);
            if between.room(rate) == left.room(rate) {
                return BestRate::at(rate, vec![left, right]);
            }
            match between.slope() {
                0 => return BestRate::at(rate, vec![between]),
                1.. => left = between,
                _ => right = between,
            }
        }
    }
}

impl BestRate {
    fn at(rate: Rate, pairs: Vec<ClosestMessages>) -> Self {
        BestRate {
            rate,
            missing: -pairs[0].room(rate).div_euclid(rate.run),
            pairs,
        }
    }
}
