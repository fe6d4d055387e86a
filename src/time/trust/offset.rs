//! How far the counter of one CPU is ahead of another's, from time stamps exchanged between them.
//!
//! One CPU reads its counter and asks, the other reads its own and answers, the first reads again. Wherever between the
//! two readings of the first the answer was stamped, the offset is known to half the round trip. The shortest round trip
//! gives the estimate. All exchanges together must allow one offset; where they do not, it changes.

use serde::Serialize;

/// The stamps of one exchange, in counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The asking CPU's counter before it asked.
    pub asked: u64,
    /// The other CPU's counter before it answered.
    pub answered: u64,
    /// The asking CPU's counter after the answer had come.
    pub returned: u64,
}

/// The counter of a CPU against that of the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Offset {
    /// How far it is ahead, in counts; negative where it is behind.
    pub ticks: f64,
    /// The offset lies within so many counts on either side: half of the shortest round trip.
    pub uncertainty_ticks: f64,
    /// The shortest round trip, in counts.
    pub round_trip_ticks: u64,
    /// Exchanges.
    pub exchanges: u64,
    /// By how many counts the exchanges contradict each other: 0 if there is an offset that all of them allow.
    pub contradiction_ticks: u64,
    /// Exchanges that came back before they had been asked.
    pub backward_steps: u64,
}

impl Offset {
    /// The part of the offset that is proven: what is left of it at the nearer end of the uncertainty.
    pub fn proven_ticks(&self) -> f64 {
        (self.ticks.abs() - self.uncertainty_ticks).max(0.0)
    }

    /// Whether the offset changed while it was measured, by more than the shortest round trip.
    pub fn changes(&self) -> bool {
        self.contradiction_ticks > self.round_trip_ticks
    }
}

#[cfg(test)]
impl Offset {
    /// Of many exchanges that agree.
    pub(crate) fn of(ticks: f64, round_trip: u64) -> Self {
        Offset {
            ticks,
            uncertainty_ticks: round_trip as f64 / 2.0,
            round_trip_ticks: round_trip,
            exchanges: 20_000,
            contradiction_ticks: 0,
            backward_steps: 0,
        }
    }
}

/// Takes exchanges one by one and keeps what an [`Offset`] needs.
#[derive(Debug, Clone, Default)]
pub struct Offsets {
    best: Option<Exchange>,
    /// The bounds that all exchanges together leave.
    lowest: Option<i128>,
    highest: Option<i128>,
    exchanges: u64,
    backward_steps: u64,
}

impl Offsets {
    /// Takes an exchange.
    pub fn push(&mut self, exchange: Exchange) {
        self.exchanges += 1;
        if exchange.returned < exchange.asked {
            self.backward_steps += 1;
            return;
        }
        let round_trip = |it: Exchange| it.returned - it.asked;
        if self
            .best
            .is_none_or(|best| round_trip(exchange) < round_trip(best))
        {
            self.best = Some(exchange);
        }
        let answered = i128::from(exchange.answered);
        let at_least = answered - i128::from(exchange.returned);
        let at_most = answered - i128::from(exchange.asked);
        self.lowest = Some(self.lowest.map_or(at_least, |it| it.max(at_least)));
        self.highest = Some(self.highest.map_or(at_most, |it| it.min(at_most)));
    }

    /// How many exchanges were taken.
    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// What they come to; `None` if none of them came back after it had been asked.
    pub fn estimate(&self) -> Option<Offset> {
        let best = self.best?;
        let round_trip = best.returned - best.asked;
        // Twice the offset is a whole number.
        let doubled =
            2 * i128::from(best.answered) - i128::from(best.asked) - i128::from(best.returned);
        let contradiction = (self.lowest? - self.highest?).max(0);
        Some(Offset {
            ticks: doubled as f64 / 2.0,
            uncertainty_ticks: round_trip as f64 / 2.0,
            round_trip_ticks: round_trip,
            exchanges: self.exchanges,
            contradiction_ticks: u64::try_from(contradiction).unwrap_or(u64::MAX),
            backward_steps: self.backward_steps,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The exchange of two CPUs, the second `ahead` by some counts, whose messages take `to` and `back`.
    fn exchange(at: u64, ahead: i64, to: u64, back: u64) -> Exchange {
        Exchange {
            asked: at,
            answered: (at + to).checked_add_signed(ahead).unwrap(),
            returned: at + to + back,
        }
    }

    fn of(exchanges: impl IntoIterator<Item = Exchange>) -> Option<Offset> {
        let mut offsets = Offsets::default();
        for exchange in exchanges {
            offsets.push(exchange);
        }
        offsets.estimate()
    }

    #[test]
    fn a_counter_that_is_ahead_is_found_exactly_when_the_way_is_the_same_in_both_directions() {
        let found = of([
            exchange(1_000_000, 12_345, 900, 100),
            exchange(2_000_000, 12_345, 50, 50),
            exchange(3_000_000, 12_345, 70, 300),
        ])
        .unwrap();
        assert_eq!(found.ticks, 12_345.0);
        assert_eq!(
            (found.uncertainty_ticks, found.round_trip_ticks),
            (50.0, 100)
        );
        assert_eq!((found.exchanges, found.contradiction_ticks), (3, 0));
        assert_eq!(found.proven_ticks(), 12_295.0);
        let behind = of([exchange(1_000_000, -7, 20, 21)]).unwrap();
        assert_eq!((behind.ticks, behind.uncertainty_ticks), (-7.5, 20.5));
        assert_eq!(behind.proven_ticks(), 0.0);
    }

    #[test]
    fn large_counters_lose_no_count() {
        let found = of([exchange(u64::MAX - 1000, 1, 10, 10)]).unwrap();
        assert_eq!((found.ticks, found.uncertainty_ticks), (1.0, 10.0));
        let far = of([Exchange {
            asked: 0,
            answered: u64::MAX,
            returned: 2,
        }])
        .unwrap();
        assert_eq!(far.ticks, (u64::MAX - 1) as f64);
    }

    #[test]
    fn an_offset_that_moves_contradicts_itself() {
        let steady = of((0..100).map(|number| exchange(number * 10_000, 500, 40, 60))).unwrap();
        assert!(!steady.changes());
        let drifting =
            of((0..100).map(|number| exchange(number * 10_000, 500 + 3 * number as i64, 50, 50)))
                .unwrap();
        // From 500 to 797, less the round trip.
        assert_eq!(drifting.contradiction_ticks, 297 - 100);
        assert!(drifting.changes());
    }

    #[test]
    fn a_counter_that_went_back_is_counted_and_not_used() {
        let backwards = Exchange {
            asked: 1000,
            answered: 1000,
            returned: 900,
        };
        assert_eq!(of([backwards]), None);
        let found = of([backwards, exchange(5000, 0, 10, 10)]).unwrap();
        assert_eq!((found.backward_steps, found.exchanges), (1, 2));
        assert_eq!(found.round_trip_ticks, 20);
        assert_eq!(of([]), None);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_always_within_the_uncertainty(
            ahead in -1_000_000_000i64..1_000_000_000,
            ways in proptest::collection::vec((0u64..100_000, 0u64..100_000), 1..50),
        ) {
            let exchanges = ways.iter().enumerate().map(|(number, &(to, back))| {
                exchange(10_000_000_000 + number as u64 * 1_000_000, ahead, to, back)
            });
            let found = of(exchanges).unwrap();
            prop_assert!((found.ticks - ahead as f64).abs() <= found.uncertainty_ticks);
            prop_assert_eq!(found.contradiction_ticks, 0);
            prop_assert!(found.proven_ticks() <= ahead.abs() as f64);
        }
    }
}
