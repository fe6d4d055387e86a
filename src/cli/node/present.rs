//! The table of one host, and what it shares with that of two; both are made of the rows of `summary.csv`.

use super::layers::{Layer, LayerGroup};
use crate::driver::{Shown, View};
use crate::results::schema::node as columns;
use crate::results::schema::{Column, ColumnKind, Data, POINT};
use crate::results::text::printable_path;
use crate::results::{Record, units};
use crate::terminal::table::{Column as Heading, Table};
use crate::terminal::{text_width_of, wrap};
use serde_json::{Value, json};

/// The settings of the table.
const SETTINGS: [Column; 9] = [
    columns::TYPE,
    columns::SERVICE,
    columns::SCENARIO,
    columns::PUBLISHERS,
    columns::SUBSCRIBERS,
    columns::ENDS,
    columns::RATE,
    columns::VALUES,
    columns::POLL,
];

/// How the results of one host are shown.
const LAYOUT: Layout = Layout {
    figures: &FIGURES,
    first: &FIRST,
    compared: columns::latency::P50,
    metric: "",
};

/// Its figures.
const FIGURES: [Column; 11] = [
    columns::SENT,
    columns::STEPS_MISSED,
    columns::REFUSED,
    columns::LOST,
    columns::DELIVERY_RATE,
    columns::latency::MIN,
    columns::latency::P50,
    columns::latency::P99,
    columns::latency::MAX,
    columns::intended::P99,
    columns::FAIRNESS,
];

/// Those that people ask for first.
const FIRST: [Column; 4] = [
    columns::STEPS_MISSED,
    columns::LOST,
    columns::latency::P50,
    columns::latency::P99,
];

/// How results are shown.
pub(crate) const VIEW: View = View {
    tables: |shown| LAYOUT.tables(shown),
    columns: || LAYOUT.columns(),
    json: |shown| LAYOUT.json(shown),
};

/// What is shown of rows, beside their settings.
pub(super) struct Layout {
    /// The figures of the table.
    pub(super) figures: &'static [Column],
    /// Those that people ask for first.
    pub(super) first: &'static [Column],
    /// By which node-types are compared.
    pub(super) compared: Column,
    /// The options of `plot percentiles` that draw it.
    pub(super) metric: &'static str,
}

fn title(column: &Column) -> String {
    match *column == columns::intended::P99 {
        true => "intended p99".to_owned(),
        false => column.title.to_owned(),
    }
}

/// Latencies are shown in microseconds.
fn is_latency(column: &Column) -> bool {
    column.kind == ColumnKind::Measured && column.unit() == "ns"
}

impl Layout {
    /// The columns that rows can be sorted by, with their headings.
    pub(super) fn columns(&self) -> Vec<(String, Column)> {
        let columns = SETTINGS.iter().chain(self.figures);
        columns.map(|column| (title(column), *column)).collect()
    }

    fn groups<'a>(&self, shown: &Shown<'a>) -> Vec<LayerGroup<'a>> {
        LayerGroup::all(shown.summary, shown.runs, &SETTINGS, &self.compared)
    }

    /// How node-types compare.
    pub(super) fn json(&self, shown: &Shown<'_>) -> Value {
        let groups = self.groups(shown);
        let compared = groups.iter().filter(|group| group.layers.len() > 1);
        let layers = compared.flat_map(|group| &group.layers);
        let of_layer = |layer: &Layer<'_>| {
            let found = layer.relative?;
            let [low, high] = found.bounds.map_or([None; 2], |bounds| bounds.map(Some));
            Some(json!({
                "point": layer.record.text(&POINT),
                "times_the_fastest": found.times,
                "at_least": low,
                "at_most": high,
            }))
        };
        json!({ "relative": Vec::from_iter(layers.filter_map(of_layer)) })
    }

    /// All that is shown of a run. Node-types that differ in nothing else are sorted by their median, unless the rows are
    /// sorted otherwise.
    pub(super) fn tables(&self, shown: &Shown<'_>) -> String {
        if shown.summary.is_empty() {
            return String::new();
        }
        let groups = self.groups(shown);
        let compares = groups.iter().any(|group| group.layers.len() > 1);
        let heading = |column: &Column| {
            let heading = match column.data {
                Data::Text | Data::Flag => Heading::text(title(column)),
                _ if is_latency(column) => Heading::number(title(column), "us"),
                _ => Heading::number(title(column), column.unit()),
            };
            match self.first.contains(column) {
                true => heading.first(),
                false => heading,
            }
        };
        let headings = SETTINGS.iter().map(|column| heading(column).setting());
        let relative = [
            Heading::number(format!("{} is", title(&self.compared)), "x fastest").first(),
            Heading::number("95 % of it", "x fastest").first(),
        ];
        let relative = relative.into_iter().filter(|_| compares);
        let figures = self.figures.iter().map(heading);
        let mut table = Table::new(headings.chain(relative).chain(figures).collect());
        let row = |layer: &Layer<'_>| {
            let cell = |column: &Column| cell(layer.record, column);
            let relative = relative_cells(layer).into_iter().filter(|_| compares);
            let settings = SETTINGS.iter().map(cell);
            Vec::from_iter(
                settings
                    .chain(relative)
                    .chain(self.figures.iter().map(cell)),
            )
        };
        if compares && !shown.sorted {
            for group in &groups {
                group.layers.iter().for_each(|layer| {
                    table.row(row(layer));
                });
                table.separator();
            }
        } else {
            for record in shown.summary {
                let mut layers = groups.iter().flat_map(|group| &group.layers);
                let is_it = |layer: &&Layer<'_>| std::ptr::eq(layer.record, record);
                if let Some(layer) = layers.find(is_it) {
                    table.row(row(layer));
                }
            }
        }
        let mut text = table.brief(shown.brief).render(shown.width);
        let compared = groups.iter().filter(|group| group.layers.len() > 1);
        let compared: Vec<&LayerGroup<'_>> = compared.collect();
        for line in verdicts(&compared) {
            let line = wrap(&line, text_width_of(shown.width) - 2);
            text += &format!("{}\n", line.join("\n  "));
        }
        if compares && !shown.brief {
            let kind = match compared.len() {
                1 => "percentiles",
                _ => "median",
            };
            // A command stays in one line.
            let (folder, metric) = (printable_path(shown.folder), self.metric);
            text += &format!("figure: hcabench plot {kind} {folder}{metric} --out layers.svg\n");
        }
        text
    }
}

fn cell(record: &Record, column: &Column) -> String {
    match record.number(column.name) {
        Some(ns) if is_latency(column) => units::significant(ns / 1e3),
        Some(rate) if *column == columns::RATE => format!("{rate}"),
        _ => record.text(column),
    }
}

fn relative_cells(layer: &Layer<'_>) -> [String; 2] {
    let Some(found) = layer.relative else {
        return ["-", "-"].map(str::to_owned);
    };
    let bounds = found
        .bounds
        .map(|bounds| bounds.map(units::digits).join(".."));
    [
        units::digits(found.times),
        bounds.unwrap_or_else(|| "-".to_owned()),
    ]
}

/// The verdict on each group, with the settings in which groups differ.
fn verdicts(groups: &[&LayerGroup<'_>]) -> Vec<String> {
    let shared = SETTINGS
        .iter()
        .filter(|column| !LayerGroup::is_of_type(column));
    let varies = |at: &usize| {
        groups
            .iter()
            .any(|it| it.shared[*at] != groups[0].shared[*at])
    };
    let varying = shared.enumerate().filter(|(at, _)| varies(at));
    let varying: Vec<&Column> = varying.map(|(_, column)| column).collect();
    let of_group = |group: &&LayerGroup<'_>| {
        let record = group.layers[0].record;
        let named = varying.iter();
        let named = named.map(|column| format!("{} {}", title(column), cell(record, column)));
        match Vec::from_iter(named).join(", ").as_str() {
            "" => group.verdict(),
            named => format!("{named}: {}", group.verdict()),
        }
    };
    groups.iter().map(of_group).collect()
}
