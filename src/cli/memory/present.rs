//! The table, made of the rows of `summary.csv`.

use crate::driver::{Shown, View};
use crate::results::schema::memory as columns;
use crate::results::schema::{Column, Data};
use crate::terminal::table::{Column as Heading, Table};

/// How results are shown.
pub(crate) const VIEW: View = View {
    tables,
    columns,
    json: |_| serde_json::json!({}),
};

/// The settings of the table.
const SETTINGS: [Column; 7] = [
    columns::CPU_NODE,
    columns::MEMORY_NODE,
    columns::READ_SHARE,
    columns::STORE,
    columns::SIZE,
    columns::PAUSE,
    columns::ISA,
];

/// Those of them that most runs do not vary.
const IF_VARYING: [Column; 3] = [columns::CPU_NODE, columns::MEMORY_NODE, columns::SIZE];

/// Its figures.
const FIGURES: [Column; 8] = [
    columns::LATENCY,
    columns::WITHOUT_TLB,
    columns::SMOOTHED,
    columns::ISSUED,
    columns::ESTIMATED,
    columns::MEASURED,
    columns::REMOVED,
    columns::MARKS,
];

/// Those that people ask for first.
const FIRST: [Column; 3] = [columns::LATENCY, columns::ESTIMATED, columns::MARKS];

/// The columns that rows can be sorted by, with their headings.
fn columns() -> Vec<(String, Column)> {
    let columns = SETTINGS.into_iter().chain(FIGURES);
    columns
        .map(|column| (column.title.to_owned(), column))
        .collect()
}

/// All that is shown of a run.
fn tables(shown: &Shown<'_>) -> String {
    let heading = |column: &Column| {
        let heading = match column.data {
            Data::Text | Data::Flag => Heading::text(column.title),
            _ => Heading::number(column.title, column.unit()),
        };
        match FIRST.contains(column) {
            true => heading.first(),
            false => heading,
        }
    };
    let varies = |column: &Column| {
        let mut texts = shown.summary.iter().map(|row| row.text(column));
        texts
            .next()
            .is_some_and(|first| texts.any(|text| text != first))
    };
    let settings = SETTINGS
        .iter()
        .filter(|column| !IF_VARYING.contains(column) || varies(column));
    let settings: Vec<&Column> = settings.collect();
    let figures = FIGURES.iter().filter(|column| {
        // Most machines do not let a guest read these counters.
        ![columns::MEASURED, columns::WITHOUT_TLB].contains(column)
            || shown
                .summary
                .iter()
                .any(|row| row.number(column.name).is_some())
    });
    let figures: Vec<&Column> = figures.collect();
    let mut table = Table::new(
        settings
            .iter()
            .map(|column| heading(column).setting())
            .chain(figures.iter().copied().map(heading))
            .collect(),
    );
    let mut curve = None;
    for record in shown.summary {
        let of = [&columns::READ_SHARE, &columns::STORE].map(|column| record.text(column));
        if !shown.sorted && curve.replace(of.clone()).is_some_and(|before| before != of) {
            table.separator();
        }
        let cell = |column: &Column| {
            let text = record.text(column);
            match *column == columns::PAUSE && text.is_empty() {
                true => "off".to_owned(),
                false => text,
            }
        };
        table.row(settings.iter().chain(&figures).copied().map(cell));
    }
    table.brief(shown.brief).render(shown.width)
}
