//! The table, made of the rows of `summary.csv`.

use crate::driver::{Shown, View};
use crate::results::schema::node as columns;
use crate::results::schema::{Column, ColumnKind, Data};
use crate::results::units;
use crate::terminal::table::{Column as Heading, Table};

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
    tables,
    columns,
    json: |_| serde_json::json!({}),
};

/// The columns that rows can be sorted by, with their headings.
pub(crate) fn columns() -> Vec<(String, Column)> {
    let columns = SETTINGS.into_iter().chain(FIGURES);
    columns.map(|column| (title(&column), column)).collect()
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

/// All that is shown of a run.
pub(crate) fn tables(shown: &Shown<'_>) -> String {
    if shown.summary.is_empty() {
        return String::new();
    }
    let heading = |column: &Column| {
        let heading = match column.data {
            Data::Text | Data::Flag => Heading::text(title(column)),
            _ if is_latency(column) => Heading::number(title(column), "us"),
            _ => Heading::number(title(column), column.unit()),
        };
        match FIRST.contains(column) {
            true => heading.first(),
            false => heading,
        }
    };
    let headings = SETTINGS.iter().map(|column| heading(column).setting());
    let mut table = Table::new(headings.chain(FIGURES.iter().map(heading)).collect());
    for record in shown.summary {
        let cell = |column: &Column| match record.number(column.name) {
            Some(ns) if is_latency(column) => units::significant(ns / 1e3),
            Some(rate) if *column == columns::RATE => format!("{rate}"),
            _ => record.text(column),
        };
        table.row(SETTINGS.iter().chain(&FIGURES).map(cell));
    }
    table.brief(shown.brief).render(shown.width)
}
