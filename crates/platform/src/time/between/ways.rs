//! Ways between two hosts that are slower than they have to be, as third hosts prove it.
//!
//! The clocks of A and B are compared over a third host C: what C knows of both bounds theta = B - A, and no message
//! between A and B takes part in it. Each message from A to B was received so much later than it was posted, less theta,
//! at least. With one rate that is
//!
//! ```text
//! (least apparent from A to B) - (least apparent from A to C + least apparent from C to B)
//! ```
//!
//! where all offsets cancel out: the way from A to B takes so much longer than the ways from A to C and from C to B
//! together. A detour over C would have been faster. Where this is above 0 for any third host, the direction is named.
//! A delay of all that a host sends is on both sides, and is not found: only the clock shows it. All of this takes that
//! clocks keep their rates while all pairs of a round are measured, one after the other. A change that is small against
//! the round trips is not a contradiction yet, and may be taken for a slow way of about its size.
//!
//! Clocks that drift are compared at one moment. The bounds of a pair hold in the middle of its exchanges, and grow from
//! there with the bounds of its rate; these are narrowed by the pair's two measurements, each by one of its hosts, which
//! are apart in time. The exchanges of the pair that is judged lie between two moments, their first and their last. As
//! theta is a straight line, and they are above one, it is enough to look at these two.

use super::{HostPairs, Span};
use crate::time::Nanos;

/// What a host proved of a peer, at one moment, in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExchangeSummary {
    /// The middle of the exchanges, by the host's own clock.
    pub at: Nanos,
    /// From the first to the last, in nanoseconds.
    pub lasted_ns: u64,
    /// The peer's clock less the host's, then.
    pub theta: Span,
    /// How much faster the peer's clock runs: at least and at most, in parts per million.
    pub rate_ppm: [f64; 2],
    /// Two lines of one rate between which theta may lie.
    pub lines: BoundingLines,
}

/// Two parallel lines: the highest that lies below all apparent latencies to the peer, and the lowest that lies above
/// all apparent latencies from it, negated. Their rate is the one that leaves most room between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundingLines {
    /// In parts per billion.
    pub rate_ppb: i64,
    /// The lower line in the middle of the exchanges, in nanoseconds.
    pub low_ns: i64,
    /// The upper line there, in nanoseconds.
    pub high_ns: i64,
}

/// Two or three hosts whose clocks cannot be as was proved of each two of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// Their numbers.
    pub hosts: Vec<usize>,
    /// By how many nanoseconds the bounds miss each other; 0 where it is their rates.
    pub missing_ns: u64,
}

/// What each host of several proved of each other.
#[derive(Debug, Clone)]
pub struct HostExchanges {
    pairs: HostPairs,
    rows: Vec<Option<ExchangeSummary>>,
}

/// The bounds by third hosts.
#[derive(Debug, Clone)]
pub struct ThirdHostComparison {
    pairs: HostPairs,
    slower: Vec<Option<u64>>,
    is_concerned: Vec<bool>,
    /// Clocks that contradict each other, the first of them; these pairs have no bounds.
    pub disagreements: Vec<Disagreement>,
    /// How many there are beyond these; of three hosts up to three, as each two of them look at the third.
    pub untold: usize,
}

/// At most this many third hosts are used, those whose exchanges were nearest in time.
const THIRD_HOSTS: usize = 32;
/// At most this many contradictions are listed.
const MOST_TOLD: usize = 32;
/// What the last decimal of a rate may have been rounded by, and more, in nanoseconds a nanosecond.
const ROUNDED: f64 = 1e-10;

impl HostExchanges {
    /// Hosts that know nothing of each other yet.
    pub fn new(pairs: &HostPairs) -> Self {
        HostExchanges {
            pairs: pairs.clone(),
            rows: vec![None; pairs.places()],
        }
    }

    /// Takes what host `from` proved of host `to`, with its own clock.
    ///
    /// # Panics
    /// When they are none of the pairs.
    pub fn exchanged(&mut self, from: usize, to: usize, exchanged: ExchangeSummary) {
        let place = self.pairs.place(from, to).filter(|_| from != to);
        self.rows[place.expect("it is one of the pairs")] = Some(exchanged);
    }

    fn row(&self, from: usize, to: usize) -> Option<&ExchangeSummary> {
        self.rows[self.pairs.place(from, to)?].as_ref()
    }

    /// Asks the third hosts.
    pub fn compare(&self) -> ThirdHostComparison {
        let places = self.pairs.places();
        let mut found = ThirdHostComparison {
            pairs: self.pairs.clone(),
            slower: vec![None; places],
            is_concerned: vec![false; places],
            disagreements: Vec::new(),
            untold: 0,
        };
        let clocks = self.clocks(&mut found);
        for (low, high) in self.unordered() {
            let Some(own) = clocks.of(low, high) else {
                continue;
            };
            let third = clocks.nearest(low, high, own.gates[0].at);
            agree(&clocks, own, [low, high], &third, &mut found);
            for (from, to) in [(low, high), (high, low)] {
                if let Some(place) = self.pairs.place(from, to) {
                    found.slower[place] = self.slower_by(&clocks, from, to, &third);
                }
            }
        }
        if !found.disagreements.is_empty() {
            // Clocks that contradict each other for some may mislead about others.
            found.slower.fill(None);
        }
        found
    }

    fn unordered(&self) -> impl Iterator<Item = (usize, usize)> {
        self.pairs.each().filter(|(low, high)| low < high)
    }

    /// What is known of each pair of clocks by their own exchanges.
    fn clocks(&self, found: &mut ThirdHostComparison) -> Clocks {
        let mut clocks = Clocks {
            pairs: self.pairs.clone(),
            of: vec![None; self.pairs.places()],
        };
        for (low, high) in self.unordered() {
            let rows = [self.row(low, high), self.row(high, low)];
            if rows.iter().all(Option::is_none) {
                continue;
            }
            let both = [(rows[0], rows[1]), (rows[1], rows[0])];
            match both.map(|(own, other)| PairOfClocks::of(own, other)) {
                [Some(there), Some(back)] => {
                    clocks.set((low, high), there);
                    clocks.set((high, low), back);
                }
                _ => found.disagree(&[low, high], 0),
            }
        }
        clocks
    }

    /// By how much the way from a host to another takes longer than one over a third host, at least; `None` where no third
    /// host can be asked.
    fn slower_by(&self, clocks: &Clocks, from: usize, to: usize, third: &[usize]) -> Option<u64> {
        // What was sent there, and what came back when the other host measured.
        let there = self.row(from, to).map(|row| {
            row.ends().map(|(time, lines)| {
                let over = third.iter();
                let over = over.filter_map(|third| clocks.over([from, *third, to], time));
                let most = over.map(|theta| theta.high_ns).min()?;
                Some(lines.high_ns.saturating_sub(most))
            })
        });
        let back = self.row(to, from).map(|row| {
            row.ends().map(|(time, lines)| {
                let over = third.iter();
                let over = over.filter_map(|third| clocks.over([to, *third, from], time));
                let least = over.map(|theta| theta.low_ns).max()?;
                Some(least.saturating_sub(lines.low_ns))
            })
        });
        let found = there.into_iter().chain(back).flatten();
        let least = found.collect::<Option<Vec<i64>>>()?.into_iter().min()?;
        Some(least.max(0).unsigned_abs())
    }
}

impl ExchangeSummary {
    /// The first and the last moment, with the lines there, rounded so that no message is on the wrong side.
    fn ends(&self) -> [(i64, BoundingLines); 2] {
        // The content of a file may be anything.
        let lasted = i64::try_from(self.lasted_ns).unwrap_or(i64::MAX);
        [-(lasted / 2), lasted - lasted / 2].map(|past| {
            let gained = i128::from(past) * i128::from(self.lines.rate_ppb);
            let gained = [
                gained.div_euclid(1_000_000_000),
                -(-gained).div_euclid(1_000_000_000),
            ]
            .map(|ns| ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
            let lines = BoundingLines {
                low_ns: self.lines.low_ns.saturating_add(gained[1]),
                high_ns: self.lines.high_ns.saturating_add(gained[0]),
                ..self.lines
            };
            (time(self.at).saturating_add(past), lines)
        })
    }
}

impl ThirdHostComparison {
    /// By how many nanoseconds the way from a host to another is slower than it has to be, at least: so much longer each
    /// of its messages took than the least over a third host; 0 where that is not proved, `None` where no third host could
    /// be asked, or any clocks contradict each other.
    pub fn slower_by(&self, from: usize, to: usize) -> Option<u64> {
        self.slower[self.pairs.place(from, to)?]
    }

    /// Whether the clocks of two hosts are part of a contradiction.
    pub fn is_concerned(&self, from: usize, to: usize) -> bool {
        let place = self.pairs.place(from, to);
        place.is_some_and(|place| self.is_concerned[place])
    }

    fn disagree(&mut self, hosts: &[usize], missing_ns: u64) {
        for one in hosts {
            for other in hosts.iter().filter(|other| *other != one) {
                if let Some(place) = self.pairs.place(*one, *other) {
                    self.is_concerned[place] = true;
                }
            }
        }
        let mut hosts = hosts.to_vec();
        hosts.sort_unstable();
        let is_known = |known: &Disagreement| known.hosts == hosts;
        if self.disagreements.iter().any(is_known) {
            return;
        }
        match self.disagreements.len() < MOST_TOLD {
            true => self.disagreements.push(Disagreement { hosts, missing_ns }),
            false => self.untold += 1,
        }
    }
}

/// Whether third hosts can be right about two clocks.
fn agree(
    clocks: &Clocks,
    own: &PairOfClocks,
    [low, high]: [usize; 2],
    third: &[usize],
    found: &mut ThirdHostComparison,
) {
    let at = own.gates[0].at;
    let Some(direct) = own.theta([at, at]) else {
        return;
    };
    for third in third {
        let over = clocks.over([low, *third, high], at);
        if let Some(over) = over.filter(|over| over.and(direct).is_none()) {
            let missing = direct.low_ns.saturating_sub(over.high_ns);
            let missing = missing.max(over.low_ns.saturating_sub(direct.high_ns));
            found.disagree(&[low, *third, high], missing.unsigned_abs());
        }
    }
}

/// A time as a signed number: offsets are added to it.
fn time(at: Nanos) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

/// What is known of each pair of clocks, by the first one's time.
#[derive(Debug)]
struct Clocks {
    pairs: HostPairs,
    of: Vec<Option<PairOfClocks>>,
}

impl Clocks {
    fn of(&self, from: usize, to: usize) -> Option<&PairOfClocks> {
        self.of[self.pairs.place(from, to)?].as_ref()
    }

    fn set(&mut self, (from, to): (usize, usize), known: PairOfClocks) {
        if let Some(place) = self.pairs.place(from, to) {
            self.of[place] = Some(known);
        }
    }

    /// The clock of the last host less that of the first, over the second, when the first's reads `time`.
    fn over(&self, [from, third, to]: [usize; 3], time: i64) -> Option<Span> {
        let first = self.of(from, third)?.theta([time, time])?;
        let then = [first.low_ns, first.high_ns].map(|theta| time.saturating_add(theta));
        let second = self.of(third, to)?.theta(then)?;
        Some(Span::new(
            first.low_ns.saturating_add(second.low_ns),
            first.high_ns.saturating_add(second.high_ns),
        ))
    }

    /// The third hosts that exchanged with both of a pair, nearest to a time of the first.
    fn nearest(&self, from: usize, to: usize, time: i64) -> Vec<usize> {
        let Some(theta) = self.of(from, to).map(|pair| pair.gates[0].theta.low_ns) else {
            return Vec::new();
        };
        let away = |one: usize, third: usize, time: i64| Some(self.of(one, third)?.away(time));
        let third = self.pairs.of(from).filter(|third| *third != to);
        let third = third.filter_map(|third| {
            let of_from = away(from, third, time)?;
            Some((
                of_from.saturating_add(away(to, third, time.saturating_add(theta))?),
                third,
            ))
        });
        let mut third: Vec<(u64, usize)> = third.collect();
        if third.len() > THIRD_HOSTS {
            third.select_nth_unstable(THIRD_HOSTS - 1);
            third.truncate(THIRD_HOSTS);
        }
        third.into_iter().map(|(_, third)| third).collect()
    }
}

/// Between which values theta passes at a moment.
#[derive(Debug, Clone, Copy)]
struct Gate {
    at: i64,
    theta: Span,
}

/// Two clocks: the second less the first is a line through all gates, with a rate between two, in ns a ns.
#[derive(Debug, Clone, Copy)]
struct PairOfClocks {
    gates: [Gate; 2],
    rate: [f64; 2],
}

impl PairOfClocks {
    /// By what the first host measured, and the second; `None` if both cannot be.
    fn of(own: Option<&ExchangeSummary>, other: Option<&ExchangeSummary>) -> Option<Self> {
        let own = own.map(Self::of_one);
        let other = other.map(|other| Self::of_one(other).turned());
        let (mut both, other) = match (own, other) {
            (Some(own), Some(other)) => (own, other),
            (one, other) => return one.or(other),
        };
        both.gates[1] = other.gates[0];
        let [mut first, mut last] = both.gates;
        if first.at > last.at {
            std::mem::swap(&mut first, &mut last);
        }
        let least = last.theta.low_ns.saturating_sub(first.theta.high_ns);
        let most = last.theta.high_ns.saturating_sub(first.theta.low_ns);
        both.rate[0] = both.rate[0].max(other.rate[0]);
        both.rate[1] = both.rate[1].min(other.rate[1]);
        match last.at.saturating_sub(first.at) as f64 {
            0.0 => (least <= 0 && most >= 0).then_some(())?,
            apart => {
                // A clock that does not drift stays one that does not.
                let rounded = if both.rate == [0.0; 2] { 0.0 } else { ROUNDED };
                both.rate[0] = both.rate[0].max(least as f64 / apart - rounded);
                both.rate[1] = both.rate[1].min(most as f64 / apart + rounded);
            }
        }
        (both.rate[0] <= both.rate[1]).then_some(both)
    }

    fn of_one(exchanged: &ExchangeSummary) -> Self {
        let gate = Gate {
            at: time(exchanged.at),
            theta: exchanged.theta,
        };
        let [least, most] = exchanged.rate_ppm.map(|ppm| ppm * 1e-6);
        let rate = match [least, most] {
            [0.0, 0.0] => [0.0; 2],
            _ => [least - ROUNDED, most + ROUNDED],
        };
        PairOfClocks {
            gates: [gate; 2],
            rate,
        }
    }

    /// The same by the other clock's time; of one measurement.
    fn turned(self) -> Self {
        let Gate { at, theta } = self.gates[0];
        let half = (theta.width_ns() / 2) as i64;
        // Not below half the rate of the other clock: limits are far from there.
        let [least, most] = self.rate.map(|rate| -rate / (1.0 + rate).max(0.5));
        // At which time of the other clock it was, is known as well as theta is.
        let errors = [self.rate, [most, least]].map(|rate| {
            let gained = gained(half.saturating_add(1), rate);
            gained
                .low_ns
                .unsigned_abs()
                .max(gained.high_ns.unsigned_abs())
        });
        let error = errors[0].max(errors[1]);
        let negated = Span::new(
            theta.high_ns.saturating_neg(),
            theta.low_ns.saturating_neg(),
        );
        let gate = Gate {
            at: at.saturating_add(theta.low_ns.saturating_add(half)),
            theta: negated.widened(error),
        };
        PairOfClocks {
            gates: [gate; 2],
            rate: [most, least],
        }
    }

    /// Bounds of theta that hold from one time to another.
    fn theta(&self, times: [i64; 2]) -> Option<Span> {
        let of = |gate: &Gate| {
            let at = times.map(|time| {
                let gained = gained(time.saturating_sub(gate.at), self.rate);
                Span::new(
                    gate.theta.low_ns.saturating_add(gained.low_ns),
                    gate.theta.high_ns.saturating_add(gained.high_ns),
                )
            });
            at[0].around(at[1])
        };
        of(&self.gates[0]).and(of(&self.gates[1]))
    }

    /// How far the nearest gate is from a time.
    fn away(&self, time: i64) -> u64 {
        let away = self.gates.map(|gate| gate.at.abs_diff(time));
        away[0].min(away[1])
    }
}

/// What theta gains in a length of time, rounded outwards.
fn gained(past: i64, rate: [f64; 2]) -> Span {
    if rate == [0.0; 2] {
        return Span::new(0, 0);
    }
    let gained = rate.map(|rate| rate * past as f64);
    Span::new(
        (gained[0].min(gained[1]).floor() as i64).saturating_sub(1),
        (gained[0].max(gained[1]).ceil() as i64).saturating_add(1),
    )
}
