//! Node-types against each other: rows that differ by their type alone, the fastest first, and how many times as long
//! the others take.

use crate::driver::row::is_complete;
use crate::results::schema::node as columns;
use crate::results::schema::{Column, POINT};
use crate::results::{Record, units};
use crate::sorting::sort_by;
use crate::stats::rank::Shift;
use crate::stats::ranking::{ERROR, Ranking};

/// The share of copies that arrive, from which on a row is ranked.
const DELIVERS: f64 = 0.99;

/// A row and its rounds.
pub(super) struct Layer<'a> {
    pub(super) record: &'a Record,
    /// The figure that is compared; none without a round.
    median: Option<f64>,
    /// The same of each round.
    rounds: Vec<f64>,
    /// Whether it has a place: it delivers, or none of its group does.
    is_ranked: bool,
    /// How many times that of the fastest which is ranked.
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
    fn new(record: &'a Record, runs: &[Record], compared: &Column) -> Self {
        let name = record.text(&POINT);
        let is_of_it = |run: &&Record| run.text(&POINT) == name && is_complete(run);
        let rounds = runs.iter().filter(is_of_it);
        let rounds = rounds.filter_map(|run| run.number(compared.name));
        let rounds: Vec<f64> = rounds.collect();
        let median = record.number(compared.name);
        Layer {
            record,
            median: median.filter(|_| !rounds.is_empty()),
            rounds,
            is_ranked: false,
            relative: None,
        }
    }

    /// The share of copies that arrived, where it is too low for latencies to be compared with others.
    fn low_delivery(&self) -> Option<f64> {
        let delivered = self.record.number(columns::DELIVERY_RATE.name);
        delivered.filter(|delivered| *delivered < DELIVERS)
    }

    fn delivers(&self) -> bool {
        self.median.is_some() && self.low_delivery().is_none()
    }

    /// The type, and where it has one, the service.
    pub(super) fn name(&self) -> String {
        let parts = [columns::TYPE, columns::SERVICE].map(|column| self.record.text(&column));
        parts.join(" ").trim_end().to_owned()
    }
}

/// Rows that differ by their type alone: first those that are ranked, the fastest first, and last those without a
/// latency.
pub(super) struct LayerGroup<'a> {
    pub(super) layers: Vec<Layer<'a>>,
    /// The settings that they share, as texts.
    pub(super) shared: Vec<String>,
}

impl<'a> LayerGroup<'a> {
    /// The groups of all rows, in the order of their first rows.
    pub(super) fn all(
        summary: &'a [Record],
        runs: &[Record],
        settings: &[Column],
        compared: &Column,
    ) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for record in summary {
            let shared = settings.iter().filter(|column| !Self::is_of_type(column));
            let shared: Vec<String> = shared.map(|column| record.text(column)).collect();
            let layer = Layer::new(record, runs, compared);
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
        let any_delivers = self.layers.iter().any(Layer::delivers);
        for layer in &mut self.layers {
            layer.is_ranked = layer.median.is_some() && layer.delivers() == any_delivers;
        }
        let median = |layer: &Layer<'_>| layer.median.unwrap_or(f64::INFINITY);
        sort_by(&mut self.layers, |one, other| {
            let place = |layer: &Layer<'_>| (layer.median.is_none(), !layer.is_ranked);
            let places = place(one).cmp(&place(other));
            places.then_with(|| median(one).total_cmp(&median(other)))
        });
        let Some(fastest) = self.layers.first().filter(|it| it.is_ranked) else {
            return;
        };
        let fastest = fastest.rounds.clone();
        for (place, layer) in self.layers.iter_mut().enumerate() {
            layer.relative = match place {
                0 => Some(Relative {
                    times: 1.0,
                    bounds: None,
                }),
                _ if layer.median.is_none() => None,
                _ => Relative::of(&fastest, &layer.rounds),
            };
        }
    }

    /// Which is the fastest, as far as rounds distinguish them, and of which too few copies arrived.
    pub(super) fn verdict(&self) -> String {
        let ranked = self.layers.iter().filter(|layer| layer.is_ranked);
        let ranked: Vec<&Layer<'_>> = ranked.collect();
        let rounds = ranked.iter().map(|layer| layer.rounds.clone());
        let ranking = Ranking::of(&Vec::from_iter(rounds), false);
        let name = |place: usize| ranked[ranking.order[place]].name();
        let verdict = crate::cli::ranking::verdict(&ranking, "node-types", name);
        let few = self.layers.iter().filter_map(|layer| {
            let share = units::digits(100.0 * layer.low_delivery()?);
            Some(format!("{} delivered {share} %", layer.name()))
        });
        match Vec::from_iter(few).join(", ").as_str() {
            "" => verdict,
            few if self.layers.iter().any(Layer::delivers) => {
                format!("{verdict} Not ranked, as their latencies are of what arrived: {few}.")
            }
            few => format!("{verdict} Latencies are of what arrived: {few}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::schema::STATUS;
    use crate::testing::Has as _;

    #[test]
    fn a_layer_that_loses_samples_is_behind_and_no_measure_of_others() {
        let row = |name: &str, median: f64, delivered: f64| {
            let mut record = Record::new();
            record
                .set(&columns::TYPE, name)
                .set(&POINT, name)
                .set(&STATUS, "complete")
                .set(&columns::latency::P50, median)
                .set(&columns::DELIVERY_RATE, delivered);
            record
        };
        let summary = [
            row("udp", 1e3, 0.4),
            row("tcp", 4e3, 1.0),
            row("unix", 2e3, 0.995),
        ];
        let p50 = columns::latency::P50;
        let groups = LayerGroup::all(&summary, &summary, &[columns::TYPE], &p50);
        let [group] = groups.as_slice() else {
            panic!("{} groups", groups.len());
        };
        let shown = group.layers.iter();
        let shown = shown.map(|it| (it.name(), it.relative.unwrap().times));
        let [first, second, third] = Vec::from_iter(shown).try_into().unwrap();
        assert_eq!(first, ("unix".to_owned(), 1.0));
        assert_eq!((second.0.as_str(), third.0.as_str()), ("tcp", "udp"));
        assert!((second.1 - 2.0).abs() < 1e-9 && (third.1 - 0.5).abs() < 1e-9);
        let verdict = group.verdict();
        verdict.has(&["1 pair", "Not ranked", "udp delivered 40.0 %"]);

        // Where none delivers they are compared all the same.
        let groups = LayerGroup::all(&summary[..1], &summary[..1], &[columns::TYPE], &p50);
        let layer = &groups[0].layers[0];
        assert_eq!(layer.relative.unwrap().times, 1.0);
        (groups[0].verdict()).has(&["Latencies are of what arrived: udp delivered 40.0 %"]);
    }

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
