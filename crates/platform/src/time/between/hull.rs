//! Apparent latencies of one direction over time, and the lines that lie below all of them.

use super::rate::Rate;

/// Times and values lie this far from the origin at most, 36 years in nanoseconds: products of differences then fit in
/// 128 bits.
pub(super) const FARTHEST: i128 = 1 << 60;

/// A message: when by clock A, and its apparent latency, both in nanoseconds from the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HullPoint {
    pub(super) time: i128,
    pub(super) value: i128,
}

impl HullPoint {
    /// How steep the line to a later point is.
    fn rate_to(self, later: HullPoint) -> Rate {
        Rate::of(later.value - self.value, later.time - self.time)
    }
}

/// The lower convex hull of points, in the order of time; never empty.
///
/// A line lies below all points if it lies below these.
#[derive(Debug, Clone)]
pub(super) struct Hull(Vec<HullPoint>);

impl Hull {
    /// The hull, in O(n log n); `None` without points.
    pub(super) fn of(mut points: Vec<HullPoint>) -> Option<Self> {
        points.sort_unstable();
        // Of those at one time the lowest, which comes first.
        points.dedup_by_key(|point| point.time);
        let mut corners: Vec<HullPoint> = Vec::new();
        for point in points {
            while let [.., before, last] = corners[..]
                && before.rate_to(last) >= last.rate_to(point)
            {
                corners.pop();
            }
            corners.push(point);
        }
        (!corners.is_empty()).then_some(Hull(corners))
    }

    /// Its corners.
    pub(super) fn corners(&self) -> &[HullPoint] {
        &self.0
    }

    /// The place of the corner that the highest line of that rate touches, the earlier one if it touches two.
    fn place_touched(&self, rate: Rate) -> usize {
        // The edges grow steeper.
        let edges = self.0.windows(2);
        let (mut from, mut to) = (0, edges.len());
        while from < to {
            let middle = (from + to) / 2;
            match self.0[middle].rate_to(self.0[middle + 1]) < rate {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }

    /// The corner that the highest line of that rate touches.
    pub(super) fn touched(&self, rate: Rate) -> HullPoint {
        self.0[self.place_touched(rate)]
    }
}

/// All lines below a hull whose rate lies between two.
#[derive(Debug, Clone)]
pub(super) struct LinesBelow {
    /// The part of the hull that they touch.
    corners: Vec<HullPoint>,
    least: Rate,
    most: Rate,
}

impl LinesBelow {
    /// The lines below `hull` with rates from `least` to `most`.
    pub(super) fn of(hull: &Hull, least: Rate, most: Rate) -> Self {
        let touched = hull.place_touched(least)..=hull.place_touched(most);
        LinesBelow {
            corners: hull.0[touched].to_vec(),
            least,
            most,
        }
    }

    /// The highest that one of them is at a time, rounded up.
    pub(super) fn highest(&self, time: i128) -> i128 {
        let (first, last) = (self.corners[0], self.corners[self.corners.len() - 1]);
        let (through, rate) = if time <= first.time {
            (first, self.least)
        } else if time >= last.time {
            (last, self.most)
        } else {
            let later = self.corners.partition_point(|corner| corner.time <= time);
            let edge = self.corners[later - 1].rate_to(self.corners[later]);
            (self.corners[later - 1], edge)
        };
        through.value + rate.gain_up(time - through.time)
    }

    /// The highest line of each rate: the lowest that one of these is at a time, rounded down.
    pub(super) fn lowest(&self, time: i128) -> i128 {
        let (first, last) = (self.corners[0], self.corners[self.corners.len() - 1]);
        let slowest = first.value + self.least.gain_down(time - first.time);
        let fastest = last.value + self.most.gain_down(time - last.time);
        slowest.min(fastest)
    }
}
