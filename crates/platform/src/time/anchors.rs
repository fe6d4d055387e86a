//! From the ticks of any clock to the nanoseconds of CLOCK_MONOTONIC_RAW.
//!
//! Both are read one after the other, again and again while something else is measured. Between two such anchors the
//! way is a straight line. How far an anchor lies from the line between its neighbours, and how long it took, is the
//! error. Left out is by how much the clock of another CPU differs from that of the CPU where it is read.

use super::{AnyReading, Clock as _, Posix};

/// Anchors that are kept: when there are more, every second is left out from then on.
const ROOM: usize = 1024;
/// Readings of which the quickest is the anchor.
const TRIES: usize = 5;

/// The same moment on both clocks.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    ticks: u64,
    nanos: u64,
    /// By how much `nanos` can be off.
    within: u64,
}

/// Moments on both clocks, and the way between them.
#[derive(Debug, Clone, Default)]
pub struct Anchors {
    kept: Vec<Anchor>,
    /// Only the first of this many is kept.
    every: usize,
    seen: usize,
}

/// CLOCK_MONOTONIC_RAW, in nanoseconds.
pub fn raw_now() -> u64 {
    Posix::MONOTONIC_RAW.now().0
}

impl Anchors {
    /// None yet.
    pub fn new() -> Self {
        Anchors {
            kept: Vec::with_capacity(ROOM + 1),
            every: 1,
            seen: 0,
        }
    }

    /// Reads both clocks.
    pub fn drop_one(&mut self, reading: AnyReading) {
        if self.seen.is_multiple_of(self.every) {
            self.read(reading);
        }
        self.seen += 1;
        if self.kept.len() >= ROOM {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
    }

    /// The same, whatever there is already: for the last.
    pub fn read(&mut self, reading: AnyReading) {
        let tries = (0..TRIES).map(|_| {
            let before = raw_now();
            let ticks = reading.read().0;
            let within = (raw_now() - before).div_ceil(2);
            Anchor {
                ticks,
                nanos: before + within,
                within,
            }
        });
        self.kept.extend(tries.min_by_key(|anchor| anchor.within));
    }

    /// Leaves out those whose reading was interrupted.
    pub fn finish(&mut self) {
        let least = self.kept.iter().map(|anchor| anchor.within).min();
        let usual = least.unwrap_or(0) * 4 + 100;
        self.kept.retain(|anchor| anchor.within <= usual);
    }

    /// The time of a reading on CLOCK_MONOTONIC_RAW; its ticks where there are no two anchors.
    pub fn nanos(&self, ticks: u64) -> u64 {
        let next = self.kept.partition_point(|anchor| anchor.ticks <= ticks);
        let from = next.clamp(1, self.kept.len().max(2) - 1) - 1;
        match self.kept.get(from..from + 2) {
            Some([from, to]) => between(from, to, ticks),
            _ => ticks,
        }
    }

    /// By how much that can be off, in nanoseconds.
    pub fn error(&self) -> u64 {
        let within = self.kept.iter().map(|anchor| anchor.within).max();
        let bent = self.kept.windows(3).map(|anchors| {
            let line = between(&anchors[0], &anchors[2], anchors[1].ticks);
            line.abs_diff(anchors[1].nanos)
        });
        within.unwrap_or(0) + bent.max().unwrap_or(0)
    }
}

fn between(from: &Anchor, to: &Anchor, ticks: u64) -> u64 {
    let slope = (to.nanos - from.nanos) as f64 / (to.ticks - from.ticks).max(1) as f64;
    let behind = (ticks as i64).wrapping_sub(from.ticks as i64) as f64 * slope;
    from.nanos.saturating_add_signed(behind.round() as i64)
}

#[cfg(any(test, feature = "testing"))]
impl Anchors {
    /// The nanoseconds at a number of ticks, each within 10.
    pub fn made_up(points: &[(u64, u64)]) -> Self {
        let anchor = |&(ticks, nanos): &(u64, u64)| Anchor {
            ticks,
            nanos,
            within: 10,
        };
        Anchors {
            kept: points.iter().map(anchor).collect(),
            ..Anchors::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ReadingKind;
    use super::*;

    #[test]
    fn between_anchors_the_way_is_straight_and_the_error_is_how_much_it_bends() {
        let straight = Anchors::made_up(&[(1000, 500), (3000, 1500), (5000, 2500)]);
        for (ticks, nanos) in [
            (1000, 500),
            (2000, 1000),
            (4000, 2000),
            (600, 300),
            (6000, 3000),
        ] {
            assert_eq!(straight.nanos(ticks), nanos);
        }
        assert_eq!(straight.error(), 10);
        let bent = Anchors::made_up(&[(1000, 500), (3000, 1540), (5000, 2500)]);
        assert_eq!((bent.nanos(2000), bent.error()), (1020, 50));
        assert_eq!(Anchors::new().nanos(7), 7);
    }

    #[test]
    fn anchors_stay_few_and_those_that_were_interrupted_do_not_count() {
        let reading = AnyReading::prepare(ReadingKind::MonotonicRaw, None).unwrap();
        let mut anchors = Anchors::new();
        for _ in 0..5000 {
            anchors.drop_one(reading);
        }
        let is_within = (256..ROOM).contains(&anchors.kept.len());
        assert!(is_within, "{}", anchors.kept.len());
        // Both are one clock.
        anchors.finish();
        let first = anchors.kept[0].ticks;
        assert!(anchors.nanos(first).abs_diff(first) <= anchors.error());
        let mut anchors = Anchors::made_up(&[(10, 10), (20, 20)]);
        anchors.kept[1].within = 1_000_000;
        anchors.finish();
        assert_eq!(anchors.kept.len(), 1);
    }
}
