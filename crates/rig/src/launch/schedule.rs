//! Which pairs of ranks measure at once: each pair once, and no rank twice at the same time.
//!
//! All pairs of N ranks are N - 1 rounds of N/2 disjoint ones (N rounds if N is odd, in each of which one rank rests),
//! by the circle method: one rank stays, the others turn around it. A round and its pairs follow from numbers, so that
//! nothing is stored of them, whatever N is. Both directions of a pair are measured in its turn.

mod sample;

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use sample::Sample;

/// Two ranks, the lower one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair(u32, u32);

impl Pair {
    /// The pair of two ranks, in any order.
    ///
    /// # Panics
    /// When they are the same.
    pub fn of(one: u32, other: u32) -> Self {
        assert_ne!(one, other, "no rank is a pair with itself");
        Pair(one.min(other), one.max(other))
    }

    /// The lower rank: it measures.
    pub fn lower(self) -> u32 {
        self.0
    }

    /// The higher rank: it serves.
    pub fn higher(self) -> u32 {
        self.1
    }

    /// Both.
    pub fn ranks(self) -> [u32; 2] {
        [self.0, self.1]
    }

    /// The other one of the two.
    pub fn partner(self, rank: u32) -> u32 {
        if rank == self.0 { self.1 } else { self.0 }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.0, self.1)
    }
}

/// How many pairs measure at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// One on the whole fabric.
    Alone,
    /// All of a round.
    Together,
    /// This many at most.
    AtMost(NonZeroU32),
}

impl Concurrency {
    /// How many of `pairs` disjoint ones.
    fn of(self, pairs: u64) -> u64 {
        match self {
            Concurrency::Alone => 1,
            Concurrency::Together => pairs.max(1),
            Concurrency::AtMost(count) => u64::from(count.get()),
        }
    }
}

impl FromStr for Concurrency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "alone" => Ok(Concurrency::Alone),
            "together" => Ok(Concurrency::Together),
            number => number
                .parse()
                .map(Concurrency::AtMost)
                .map_err(|_| "it takes 'alone', 'together' or a number of pairs from 1".to_owned()),
        }
    }
}

impl fmt::Display for Concurrency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Concurrency::Alone => formatter.write_str("alone"),
            Concurrency::Together => formatter.write_str("together"),
            Concurrency::AtMost(count) => count.fmt(formatter),
        }
    }
}

/// With how many others each rank measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partners {
    /// With all.
    All,
    /// With this many, or all if there are no more.
    AtMost(NonZeroU32),
}

impl fmt::Display for Partners {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Partners::All => formatter.write_str("all"),
            Partners::AtMost(count) => count.fmt(formatter),
        }
    }
}

/// All pairs of this many ranks, or a sample of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    ranks: u32,
    concurrency: Concurrency,
    /// None: all pairs.
    sample: Option<Sample>,
}

impl Schedule {
    /// All pairs of `ranks`, 2 or more.
    pub fn new(ranks: u32, concurrency: Concurrency) -> Self {
        Schedule {
            ranks,
            concurrency,
            sample: None,
        }
    }

    /// The same with fewer partners for each rank, drawn by the seed.
    #[must_use]
    pub fn with(mut self, partners: Partners, seed: u64) -> Self {
        self.sample = Sample::of(partners, self.ranks, seed);
        self
    }

    /// How many ranks there are.
    pub fn ranks(self) -> u32 {
        self.ranks
    }

    /// The partners of each rank, at least, where they are not all others.
    pub fn sampled(self) -> Option<u32> {
        self.sample.map(Sample::partners)
    }

    /// The partners of each rank.
    pub fn partners(self) -> Vec<u32> {
        let mut partners = vec![self.rounds_to_measure() as u32; self.ranks as usize];
        if self.ranks % 2 == 1 {
            let order = self.order();
            for round in self.measured_rounds() {
                // The rank at a place rests in the round of that number.
                partners[order[round as usize] as usize] -= 1;
            }
        }
        partners
    }

    /// The rank at each place of the circle.
    fn order(self) -> Vec<u32> {
        let all = (0..self.ranks).collect();
        self.sample.map_or(all, |sample| sample.order(self.ranks))
    }

    /// The rounds that are measured, in order.
    fn measured_rounds(self) -> Vec<u32> {
        let count = self.rounds_to_measure() as usize;
        let all = (0..self.rounds()).collect();
        self.sample
            .map_or(all, |sample| sample.rounds(self.rounds(), count))
    }

    /// How many there are on the circle: with an odd number, one more, which does not exist.
    fn places(self) -> u32 {
        self.ranks.next_multiple_of(2)
    }

    /// The rounds that it takes if each is measured at once.
    pub fn rounds(self) -> u32 {
        self.places().saturating_sub(1)
    }

    /// The pairs that are measured.
    pub fn pairs(self) -> u64 {
        self.rounds_to_measure() * u64::from(self.ranks / 2)
    }

    /// All pairs, in the sample or not.
    pub fn all_pairs(self) -> u64 {
        u64::from(self.ranks) * u64::from(self.ranks.saturating_sub(1)) / 2
    }

    fn rounds_to_measure(self) -> u64 {
        let rests = self.ranks % 2;
        u64::from(
            self.sample
                .map_or(self.rounds(), |sample| sample.partners() + rests),
        )
    }

    /// The disjoint pairs of a round, by their places on the circle: of all pairs these are the ranks.
    fn round(self, round: u32) -> impl Iterator<Item = Pair> {
        let turning = u64::from(self.rounds());
        let at = move |place: u64| ((u64::from(round) + place) % turning) as u32;
        let stays = std::iter::once((at(0), self.rounds()));
        let turn =
            (1..u64::from(self.places() / 2)).map(move |step| (at(step), at(turning - step)));
        stays
            .chain(turn)
            .filter(move |(one, other)| one.max(other) < &self.ranks)
            .map(|(one, other)| Pair::of(one, other))
    }

    /// In which round a pair of places is.
    fn round_of(self, pair: Pair) -> u32 {
        let turning = u64::from(self.rounds());
        if u64::from(pair.higher()) == turning {
            return pair.lower();
        }
        // Round + step and round - step are the pair: their sum is twice the round, and half the places halve it.
        let sum = u64::from(pair.lower()) + u64::from(pair.higher());
        (sum * u64::from(self.places() / 2) % turning) as u32
    }

    /// What is measured at once, one after the other. Nothing is stored of it.
    pub fn batches(self) -> impl Iterator<Item = Vec<Pair>> {
        let order = self.order();
        self.measured_rounds().into_iter().flat_map(move |round| {
            let places = self.round(round).map(Pair::ranks);
            let ranks = places.map(|places| places.map(|place| order[place as usize]));
            let pairs: Vec<Pair> = ranks.map(|[one, other]| Pair::of(one, other)).collect();
            let size = self.concurrency.of(pairs.len() as u64);
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            pairs.chunks(size).map(<[Pair]>::to_vec).collect::<Vec<_>>()
        })
    }

    /// How many those are.
    pub fn batch_count(self) -> u64 {
        let of_a_round = u64::from(self.ranks / 2);
        self.rounds_to_measure() * of_a_round.div_ceil(self.concurrency.of(of_a_round))
    }

    /// How long all pairs take, if each takes that long.
    pub fn time(self, pair: Duration) -> Duration {
        let seconds = pair.as_secs_f64() * self.batch_count() as f64;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Some of the pairs, packed into as few batches of disjoint ones as come of taking each into the first that has
    /// room: never more than of all pairs. A pair that is given twice is measured once.
    pub fn batches_of(self, pairs: impl IntoIterator<Item = Pair>) -> Vec<Vec<Pair>> {
        let mut pairs: Vec<Pair> = pairs.into_iter().collect();
        let mut place_of = vec![0; self.ranks as usize];
        for (place, rank) in (0..).zip(self.order()) {
            place_of[rank as usize] = place;
        }
        let round_of = |pair: &Pair| {
            let [one, other] = pair.ranks().map(|rank| place_of[rank as usize]);
            self.round_of(Pair::of(one, other))
        };
        // A round's pairs then fit into the batch of that number at the latest.
        pairs.sort_unstable_by_key(|pair| (round_of(pair), *pair));
        pairs.dedup();
        let room = self.concurrency.of(u64::from(self.ranks / 2));
        let mut batches: Vec<Vec<Pair>> = Vec::new();
        let mut taken = vec![Bits::default(); self.ranks as usize];
        let mut full = Bits::default();
        let mut first_open = 0;
        for pair in pairs {
            let [one, other] = pair.ranks().map(|rank| rank as usize);
            let at = Bits::first_in_none([&taken[one], &taken[other], &full], first_open);
            if at == batches.len() {
                batches.push(Vec::new());
            }
            batches[at].push(pair);
            taken[one].set(at);
            taken[other].set(at);
            if batches[at].len() as u64 >= room {
                full.set(at);
                first_open = Bits::first_in_none([&full], first_open);
            }
        }
        batches
    }
}

/// A set of batches.
#[derive(Debug, Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, at: usize) {
        let word = at / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (at % 64);
    }

    /// The first that is in none of these, among those from a multiple of 64 below `from` on.
    fn first_in_none<const N: usize>(sets: [&Bits; N], from: usize) -> usize {
        let mut word = from / 64;
        loop {
            let all = sets
                .iter()
                .fold(0, |all, set| all | set.0.get(word).unwrap_or(&0));
            if all != u64::MAX {
                return word * 64 + all.trailing_ones() as usize;
            }
            word += 1;
        }
    }
}

#[cfg(test)]
mod tests;
