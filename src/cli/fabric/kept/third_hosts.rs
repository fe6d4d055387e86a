//! What third hosts tell of a pair: how fast its clocks can be apart, whether that can be, and which way is slower than it
//! has to be.

use super::{ColumnPlace, Ends, RoundFigures, RowFigures, place_of};
use crate::results::Cell;
use crate::results::schema::Column;
use crate::results::schema::between::CONTRADICTION;
use crate::results::schema::fabric as columns;
use crate::time::between::{HostExchanges, HostPairs, Hosts, ThirdHostComparison};

/// Lower and upper bounds of one way.
const BOUNDS: [(Column, Column); 3] = [
    (columns::ONE_WAY_MIN_LOW, columns::ONE_WAY_MIN_HIGH),
    (columns::ONE_WAY_P50_LOW, columns::ONE_WAY_P50_HIGH),
    (columns::ONE_WAY_P99_LOW, columns::ONE_WAY_P99_HIGH),
];

/// What third hosts tell of an ordered pair in a round.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in super::super) struct ThirdHostGain {
    /// By how much they raise the lower bound of one way, and lower the upper one.
    pub(super) gains: Option<[f64; 2]>,
    /// By how many nanoseconds the way is slower than it has to be, at least: 0 where that is not proved, `None` where
    /// nothing can be said, as no third host can be asked, or clocks of the round contradict each other.
    slower_by: Option<u64>,
    /// Whether the pair's clocks are part of a contradiction.
    contradicts: bool,
}

/// What clocks contradict each other in over third hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Contradictions {
    /// In words.
    pub(in super::super) told: Vec<String>,
    /// In which rounds.
    pub(in super::super) rounds: Vec<u32>,
}

impl RowFigures {
    /// Asks third hosts, round by round. `narrow`: whether clocks do not drift, so that bounds of one way become as tight as
    /// third hosts leave them. Returns what the clocks contradict each other in; pairs that are part of that have no
    /// bounds.
    pub(in super::super) fn ask_third_hosts(
        &mut self,
        names: &[String],
        narrow: bool,
    ) -> Contradictions {
        let place = |column: &Column| {
            let mut figures = self.figures.iter();
            figures.position(|(it, _)| it.name == column.name)
        };
        let bounds = place(&columns::ONE_WAY_P50_LOW).zip(place(&columns::ONE_WAY_P50_HIGH));
        let pairs = &self.pairs;
        let mut contradictions = Contradictions::default();
        for (number, round) in &mut self.rounds {
            let mut all = Vec::new();
            let compared = round.compare(pairs);
            let told = compared.disagreements.iter().map(|found| {
                let hosts: Vec<&str> = found.hosts.iter().map(|host| names[*host].as_str()).collect();
                let missing = match found.missing_ns {
                    0 => "their rates do not go together".to_owned(),
                    missing => format!("bounds miss each other by {missing} ns"),
                };
                format!(
                    "round {number}: the clocks of {} contradict each other: {missing}. One of them was set or changed its \
                     rate meanwhile",
                    hosts.join(", ")
                )
            });
            all.extend(told);
            if compared.untold > 0 {
                all.push(format!(
                    "round {number}: and {} times more",
                    compared.untold
                ));
            }
            if narrow && let Err(reason) = round.narrow(pairs, names) {
                all.push(format!("round {number}: {reason}"));
            }
            if !all.is_empty() {
                contradictions.rounds.push(*number);
                contradictions.told.extend(all);
            }
            // As long as all else of a large fabric, and of no more use.
            (round.exchanged, round.theta) = (Vec::new(), Vec::new());
            let Some((of_low, of_high)) = bounds else {
                continue;
            };
            for (from, to) in pairs.each() {
                let place = pairs.place(from, to).expect("it is one of them");
                let third = round.third[place];
                for (place, by) in [(of_low, 0), (of_high, 1)] {
                    let figures = &mut round.figures[place];
                    if third.contradicts {
                        figures.set(from, to, f64::NAN);
                    } else if let Some((figure, gains)) = figures.get(from, to).zip(third.gains) {
                        let gain = [gains[0], -gains[1]][by];
                        figures.set(from, to, figure + gain);
                    }
                }
            }
        }
        contradictions
    }

    /// By how many nanoseconds a way is slower than it has to be, at least, in each round that tells; `None` where that is
    /// not proved.
    pub(in super::super) fn slower_by(&self, (from, to): Ends) -> Option<u64> {
        let at = self.pairs.place(from, to)?;
        let rounds = self.rounds.values().filter(|round| round.is_complete[at]);
        let told = rounds.filter_map(|round| round.third.get(at));
        let least = told.filter_map(|third| third.slower_by).min()?;
        Some(least).filter(|ns| *ns > 0)
    }
}

impl RoundFigures {
    fn compare(&mut self, pairs: &HostPairs) -> ThirdHostComparison {
        let mut ways = HostExchanges::new(pairs);
        for ((from, to), exchanged) in &self.exchanged {
            ways.exchanged(*from, *to, *exchanged);
        }
        let compared = ways.compare();
        self.third = vec![ThirdHostGain::default(); pairs.places()];
        for (from, to) in pairs.each() {
            let place = pairs.place(from, to).expect("it is one of them");
            self.third[place] = ThirdHostGain {
                gains: None,
                slower_by: compared.slower_by(from, to),
                contradicts: compared.is_concerned(from, to),
            };
        }
        compared
    }

    fn narrow(&mut self, pairs: &HostPairs, names: &[String]) -> Result<(), String> {
        let mut hosts = Hosts::new(names.iter().cloned());
        for ((from, to), theta) in &self.theta {
            let place = pairs.place(*from, *to).expect("it is one of them");
            if !self.third[place].contradicts {
                hosts.bound(*from, *to, *theta);
            }
        }
        let tight = match hosts.tighten() {
            Ok(tight) => tight,
            Err(cycle) => {
                // Which of them are right nobody knows.
                for third in &mut self.third {
                    *third = ThirdHostGain {
                        contradicts: true,
                        ..ThirdHostGain::default()
                    };
                }
                return Err(format!("clocks at one rate contradict each other: {cycle}"));
            }
        };
        for ((from, to), own) in &self.theta {
            let place = pairs.place(*from, *to).expect("it is one of them");
            let third = &mut self.third[place];
            if let Some(theta) = tight.theta(*from, *to).filter(|_| !third.contradicts) {
                // What the upper bound of theta loses, the lower bound of the latency there gains.
                let gains = [
                    own.high_ns.saturating_sub(theta.high_ns),
                    theta.low_ns.saturating_sub(own.low_ns),
                ];
                third.gains = Some(gains.map(|gain| gain.max(0) as f64));
            }
        }
        Ok(())
    }
}

/// Raises the lower bounds of one way in a row, and lowers the upper ones; takes them away where they are contradicted.
#[derive(Debug)]
pub(in super::super) struct BoundsNarrowing {
    bounds: [(ColumnPlace, ColumnPlace); 3],
    third_hosts: usize,
    /// Of what the bounds rest on.
    pub(in super::super) status: usize,
}

impl BoundsNarrowing {
    pub(in super::super) fn new() -> Self {
        let with_place = |column: Column| (column, place_of(&column));
        BoundsNarrowing {
            bounds: BOUNDS.map(|(low, high)| (with_place(low), with_place(high))),
            third_hosts: place_of(&columns::THIRD_HOSTS),
            status: place_of(&columns::ONE_WAY_STATUS),
        }
    }

    /// As of clocks that contradict each other.
    pub(in super::super) fn no_bounds(&self, cells: &mut [Cell]) {
        for ((_, low), (_, high)) in &self.bounds {
            cells[*low] = Cell::Empty;
            cells[*high] = Cell::Empty;
        }
        cells[self.status] = CONTRADICTION.into();
    }

    /// As third hosts tell.
    pub(in super::super) fn row(&self, cells: &mut [Cell], third: ThirdHostGain) {
        if third.contradicts {
            self.no_bounds(cells);
        }
        let Some([lower, upper]) = third.gains else {
            return;
        };
        for ((low, at_low), (high, at_high)) in &self.bounds {
            if let Some((from, to)) = cells[*at_low].number().zip(cells[*at_high].number()) {
                cells[*at_low] = Cell::from(from + lower).with_decimals_of(low);
                cells[*at_high] = Cell::from(to - upper).with_decimals_of(high);
            }
        }
        cells[self.third_hosts] = (lower > 0.0 || upper > 0.0).into();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;
    use crate::results::schema::COMPLETE;

    #[test]
    fn third_hosts_narrow_the_bounds_of_their_round_alone() {
        let mut kept = RowFigures::new(HostPairs::all(3), &[]);
        let mut add = |ends: Ends, round: u32, theta: (i64, i64)| {
            let figures = [
                (columns::OFFSET_LOW, theta.0.into()),
                (columns::OFFSET_HIGH, theta.1.into()),
                (columns::ONE_WAY_P50_LOW, 1000.0.into()),
                (columns::ONE_WAY_P50_HIGH, 2000.0.into()),
            ];
            kept.take(ends, 0, &row(round, COMPLETE, &figures));
        };
        add((0, 1), 0, (-500, 400));
        // Of the way back the pair itself knows more: it was measured by itself.
        add((1, 0), 0, (-30, 25));
        // By way of rank 2 the clocks differ by -20 to 20.
        add((0, 2), 0, (-10, 10));
        add((1, 2), 0, (-10, 10));
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            kept.ask_third_hosts(&names, true),
            Contradictions::default()
        );
        let bounds = |kept: &RowFigures, from, to| {
            [columns::ONE_WAY_P50_LOW, columns::ONE_WAY_P50_HIGH]
                .map(|column| kept.matrix(&column).get(from, to).unwrap())
        };
        assert_eq!(bounds(&kept, 0, 1), [1380.0, 1520.0]);
        assert_eq!(bounds(&kept, 1, 0), [1005.0, 1990.0]);
        assert_eq!(bounds(&kept, 0, 2), [1000.0, 2000.0]);
        let (_, third) = kept.rows((0, 1)).next().unwrap();
        let mut cells = row(0, COMPLETE, &[]);
        cells[place_of(&columns::ONE_WAY_P99_LOW)] = 5.0.into();
        cells[place_of(&columns::ONE_WAY_P99_HIGH)] = 900.0.into();
        BoundsNarrowing::new().row(&mut cells, third);
        let text = |column| cells[place_of(&column)].text();
        assert_eq!(text(columns::ONE_WAY_P99_LOW), "385.0");
        assert_eq!(text(columns::ONE_WAY_P99_HIGH), "420.0");
        assert_eq!(text(columns::ONE_WAY_P50_LOW), "");
        assert_eq!(text(columns::THIRD_HOSTS), "true");
    }

    #[test]
    fn clocks_that_contradict_each_other_over_third_hosts_are_told() {
        let mut kept = RowFigures::new(HostPairs::all(3), &[]);
        for (ends, low) in [((0, 1), 100_i64), ((1, 2), 100), ((0, 2), 0)] {
            let figures = [
                (columns::OFFSET_LOW, low.into()),
                (columns::OFFSET_HIGH, (low + 50).into()),
            ];
            kept.take(ends, 0, &row(0, COMPLETE, &figures));
        }
        let found = kept.ask_third_hosts(&["a", "b", "c"].map(str::to_owned), true);
        assert_eq!((found.told.len(), found.rounds), (1, vec![0]));
        assert!(found.told[0].starts_with("round 0: "), "{:?}", found.told);
    }
}
