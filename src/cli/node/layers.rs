//! Node-types against each other: rows that differ by their type alone, the fastest first, and how many times as long
//! the others take.

use crate::driver::row::is_complete;
use crate::results::schema::node as columns;
use crate::results::schema::{Column, POINT};
use crate::results::{Record, units};
use crate::sorting::sort_by;
use crate::stats::rank::Shift;
use crate::stats::ranking::{ERROR, Ranking};

/// What a row is called whose share of copies that arrived is lower.
const DELIVERS: f64 = 0.99;

/// A row and its rounds.
pub(super) struct Layer<'a> {
    pub(super) record: &'a Record,
    /// The median latency of each round.
    rounds: Vec<f64>,
    /// How many times the median latency of the fastest.
    pub(super) relative: Option<Relative>,
}

/// A ratio, and its 95 % interval, where there are rounds enough for one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Relative {
    pub(super) times: f64,
    pub(super) bounds: Option<[f64; 2]>,
}

impl Relative {
    /// Of the rounds of the fastest and of another: the median of all ratios of two of them.
    fn of(fastest: &[f64], other: &[f64]) -> Option<Self> {
        if fastest.iter().chain(other).any(|figure| *figure <= 0.0) {
            return None;
        }
        let [fastest, other] =
            [fastest, other].map(|all| Vec::from_iter(all.iter().map(|it| it.ln())));
        let shift = Shift::of_samples(&fastest, &other, ERROR)?;
        let (low, high) = shift.interval;
        Some(Relative {
            times: shift.value.exp(),
            bounds: shift.can_be_shown.then(|| [low.exp(), high.exp()]),
        })
    }
}

impl<'a> Layer<'a> {
    fn new(record: &'a Record, runs: &[Record]) -> Self {
        let name = record.text(&POINT);
        let is_of_it = |run: &&Record| run.text(&POINT) == name && is_complete(run);
        let rounds = runs.iter().filter(is_of_it);
        let rounds = rounds.filter_map(|run| run.number(columns::latency::P50.name));
        Layer {
            record,
            rounds: rounds.collect(),
            relative: None,
        }
    }

    fn median(&self) -> Option<f64> {
        let median = self.record.number(columns::latency::P50.name);
        median.filter(|_| !self.rounds.is_empty())
    }

    /// The type, and where it has one, the service.
    pub(super) fn name(&self) -> String {
        let parts = [columns::TYPE, columns::SERVICE].map(|column| self.record.text(&column));
        parts.join(" ").trim_end().to_owned()
    }
}

/// Rows that differ by their type alone, the fastest first; those without a latency are last.
pub(super) struct LayerGroup<'a> {
    pub(super) layers: Vec<Layer<'a>>,
    /// The settings that they share, as texts.
    pub(super) shared: Vec<String>,
}

impl<'a> LayerGroup<'a> {
    /// The groups of all rows, in the order of their first rows.
    pub(super) fn all(summary: &'a [Record], runs: &[Record], settings: &[Column]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for record in summary {
            let shared = settings.iter().filter(|column| !Self::is_of_type(column));
            let shared: Vec<String> = shared.map(|column| record.text(column)).collect();
            let layer = Layer::new(record, runs);
            match groups.iter_mut().find(|group| group.shared == shared) {
                Some(group) => group.layers.push(layer),
                None => groups.push(LayerGroup {
                    layers: vec![layer],
                    shared,
                }),
            }
        }
        groups.iter_mut().for_each(Self::relate);
        groups
    }

    /// Whether rows of a group may differ in it.
    pub(super) fn is_of_type(column: &Column) -> bool {
        [columns::TYPE.name, columns::SERVICE.name].contains(&column.name)
    }

    fn relate(&mut self) {
        let median = |layer: &Layer<'_>| layer.median().unwrap_or(f64::INFINITY);
        sort_by(&mut self.layers, |one, other| {
            median(one).total_cmp(&median(other))
        });
        let Some(fastest) = self.layers.first().filter(|it| it.median().is_some()) else {
            return;
        };
        let fastest = fastest.rounds.clone();
        for (place, layer) in self.layers.iter_mut().enumerate() {
            layer.relative = match place {
                0 => Some(Relative {
                    times: 1.0,
                    bounds: None,
                }),
                _ if layer.median().is_none() => None,
                _ => Relative::of(&fastest, &layer.rounds),
            };
        }
    }

    /// Which is the fastest, as far as rounds distinguish them, and of which of them not all arrived.
    pub(super) fn verdict(&self) -> String {
        let ranked = self.layers.iter().filter(|layer| layer.median().is_some());
        let ranked: Vec<&Layer<'_>> = ranked.collect();
        let rounds = ranked.iter().map(|layer| layer.rounds.clone());
        let ranking = Ranking::of(&Vec::from_iter(rounds), false);
        let name = |place: usize| ranked[ranking.order[place]].name();
        let verdict = crate::cli::ranking::verdict(&ranking, "node-types", name);
        let few = self.layers.iter().filter_map(|layer| {
            let delivered = layer.record.number(columns::DELIVERY_RATE.name)?;
            let share = units::digits(100.0 * delivered);
            (delivered < DELIVERS).then(|| format!("{} delivered {share} %", layer.name()))
        });
        match Vec::from_iter(few).join(", ").as_str() {
            "" => verdict,
            few => format!("{verdict} Latencies are of what arrived: {few}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_bounds_from_four_rounds_on_and_holds_the_truth() {
        let fastest = [1.0, 1.1, 0.9, 1.05];
        let other = fastest.map(|figure| 12.0 * figure);
        let found = Relative::of(&fastest, &other).unwrap();
        let [low, high] = found.bounds.unwrap();
        assert!((found.times - 12.0).abs() < 1e-9, "{found:?}");
        assert!(low < 12.0 && 12.0 < high && low > 9.0, "{found:?}");
        let few = Relative::of(&fastest[..3], &other[..3]).unwrap();
        assert_eq!(few.bounds, None);
        assert_eq!(Relative::of(&fastest, &[]), None);
        assert_eq!(Relative::of(&[0.0], &other), None);
    }
}
