//! The table of results between two hosts, made of the rows of `summary.csv`.

use super::present::{SETTINGS, cell, is_latency};
use crate::driver::{Shown, View};
use crate::results::schema::between::{P50_HIGH, P50_LOW, P99_HIGH, P99_LOW, excess, half};
use crate::results::schema::node::{DELIVERY_RATE, LOST, REFUSED, SENT, STEPS_MISSED};
use crate::results::schema::{Column, Data};
use crate::terminal::table::{Column as Heading, Table};

/// Its figures.
const FIGURES: [Column; 14] = [
    SENT,
    STEPS_MISSED,
    REFUSED,
    LOST,
    DELIVERY_RATE,
    half::MIN,
    half::P50,
    half::P99,
    P50_LOW,
    P50_HIGH,
    P99_LOW,
    P99_HIGH,
    excess::P50,
    excess::P99,
];

/// Those that people ask for first.
const FIRST: [Column; 4] = [LOST, half::P50, P50_HIGH, excess::P99];

/// How results are shown.
pub(crate) const VIEW: View = View {
    tables,
    columns,
    json: |_| serde_json::json!({}),
};

/// The columns that rows can be sorted by, with their headings.
fn columns() -> Vec<(String, Column)> {
    let columns = SETTINGS.into_iter().chain(FIGURES);
    columns
        .map(|column| (column.title.to_owned(), column))
        .collect()
}

fn heading(column: &Column) -> Heading {
    let heading = match column.data {
        Data::Text | Data::Flag => Heading::text(column.title),
        _ if is_latency(column) => Heading::number(column.title, "us"),
        _ => Heading::number(column.title, column.unit()),
    };
    match FIRST.contains(column) {
        true => heading.first(),
        false => heading,
    }
}

fn tables(shown: &Shown<'_>) -> String {
    if shown.summary.is_empty() {
        return String::new();
    }
    let settings = SETTINGS.iter().map(|column| heading(column).setting());
    let mut table = Table::new(settings.chain(FIGURES.iter().map(heading)).collect());
    for record in shown.summary {
        let columns = SETTINGS.iter().chain(&FIGURES);
        table.row(Vec::from_iter(columns.map(|column| cell(record, column))));
    }
    table.brief(shown.brief).render(shown.width)
}
