//! The tables, made of the rows of `summary.csv`.

use super::saving;
use crate::driver::{Shown, View};
use crate::results::Record;
use crate::results::schema::hca as columns;
use crate::results::schema::{Column, ColumnKind, Data};
use crate::results::units;
use crate::terminal::table::{Column as Heading, Table};

/// The figures of the table; the settings come before them.
const FIGURES: [Column; 12] = [
    columns::SENT,
    columns::LOST,
    columns::CORRUPTED,
    columns::FOREIGN,
    columns::latency::MIN,
    columns::latency::P50,
    columns::latency::P99,
    columns::latency::P999,
    columns::latency::MAX,
    columns::completion::P50,
    columns::completion::P99,
    columns::POST_RATE,
];

/// Those that people ask for first.
const FIRST: [Column; 3] = [columns::LOST, columns::latency::P50, columns::latency::P99];
/// And of reads and atomics, of which nothing arrives.
const FIRST_OF_REQUESTS: [Column; 3] = [
    columns::CORRUPTED,
    columns::completion::P50,
    columns::completion::P99,
];

/// How results of one host are shown.
pub(crate) const VIEW: View = View {
    tables,
    columns,
    json,
};

/// The columns that rows can be sorted by, with their headings.
pub(crate) fn columns() -> Vec<(String, Column)> {
    let columns = settings().chain(figures(true, true));
    columns
        .map(|column| (column.title.to_owned(), column))
        .collect()
}

/// From the adapters' stamps of completions to ours, and the error of the former.
const LAGS: [Column; 6] = [
    columns::recv_lag::P50,
    columns::recv_lag::P99,
    columns::recv_lag::ERROR,
    columns::comp_lag::P50,
    columns::comp_lag::P99,
    columns::comp_lag::ERROR,
];

/// The figures of the table, those of memory load and of adapters' stamps where there are any.
fn figures(has_memory_load: bool, has_stamps: bool) -> impl Iterator<Item = Column> {
    let of_load = has_memory_load.then_some(columns::MEMORY_LOAD_MB_S);
    let of_stamps = LAGS.into_iter().filter(move |_| has_stamps);
    FIGURES.into_iter().chain(of_load).chain(of_stamps)
}

/// All that is shown of a run.
pub(crate) fn tables(shown: &Shown<'_>) -> String {
    if shown.summary.is_empty() {
        return String::new();
    }
    let (any, all) = (
        shown.summary.iter().any(arrives),
        shown.summary.iter().all(arrives),
    );
    let is_first = |column: &Column| {
        any && FIRST.contains(column) || !all && FIRST_OF_REQUESTS.contains(column)
    };
    let has = |column: Column| {
        let mut records = shown.summary.iter();
        records.any(|record| record.number(column.name).is_some())
    };
    let has_memory_load = has(columns::MEMORY_LOAD_MB_S);
    let has_stamps = LAGS.into_iter().any(has);
    let of_figures: Vec<Column> = figures(has_memory_load, has_stamps).collect();
    let mut text = table(shown, &of_figures, is_first);
    if !shown.brief {
        text += &saving::text(shown, &settings().collect::<Vec<_>>());
    }
    text
}

/// What `--json` has beside the rows.
pub(crate) fn json(shown: &Shown<'_>) -> serde_json::Value {
    saving::json(shown)
}

/// The settings that distinguish points at a glance: all but those that only set how long it was measured.
pub(super) fn settings() -> impl Iterator<Item = Column> {
    let repeated = [columns::WARMUP, columns::REPEAT];
    let point = columns::POINT.into_iter();
    point.filter(move |column| !repeated.contains(column))
}

/// Latencies are shown in microseconds.
fn is_latency(column: &Column) -> bool {
    column.kind == ColumnKind::Measured && column.unit() == "ns"
}

/// Whether messages of a point were to arrive.
fn arrives(record: &Record) -> bool {
    record.number(columns::RECEIVED.name).is_some()
}

/// The table of all points, with these figures, of which some are asked for first.
pub(super) fn table(
    shown: &Shown<'_>,
    figures: &[Column],
    is_first: impl Fn(&Column) -> bool,
) -> String {
    let heading = |column: &Column| {
        let heading = match column.data {
            Data::Text | Data::Flag => Heading::text(column.title),
            _ if is_latency(column) => Heading::number(column.title, "us"),
            _ => Heading::number(column.title, column.unit()),
        };
        match is_first(column) {
            true => heading.first(),
            false => heading,
        }
    };
    let headings = settings().map(|column| heading(&column).setting());
    let of_figures = figures.iter().map(heading);
    let mut table = Table::new(headings.chain(of_figures).collect());
    for record in shown.summary {
        let cell = |column: &Column| match record.number(column.name) {
            Some(ns) if is_latency(column) => units::significant(ns / 1e3),
            Some(rate) if *column == columns::POST_RATE => format!("{rate:.0}"),
            _ => record.text(column),
        };
        table.row(
            settings()
                .map(|column| cell(&column))
                .chain(figures.iter().map(cell)),
        );
    }
    table.brief(shown.brief).render(shown.width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Cell;
    use crate::testing::Has as _;

    fn recorded() -> Vec<Record> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/notebooks/sample/hca/summary.csv"
        );
        let mut file = csv::Reader::from_path(path).unwrap();
        let rows = file.deserialize::<std::collections::HashMap<String, String>>();
        let record = |row: std::collections::HashMap<String, String>| {
            let mut record = Record::new();
            for (name, column) in columns::SCHEMA.summary() {
                // The sample may be older than a column.
                let text = row.get(name.as_ref()).map_or("", String::as_str);
                record.push(name.clone(), Cell::parse(&column, text).unwrap());
            }
            record
        };
        rows.map(|row| record(row.unwrap())).collect()
    }

    #[test]
    fn reads_have_their_completions_in_the_short_table_and_no_zeros() {
        let recorded = recorded();
        let mut record = Record::new();
        for (name, _) in columns::SCHEMA.summary() {
            let of_arrivals = name.starts_with("latency_") || name.starts_with("messages_");
            let cell = match name.as_ref() {
                "completions" => Cell::Integer(500),
                _ if of_arrivals => Cell::Empty,
                name => recorded[0].get(name).unwrap().clone(),
            };
            record.push(name, cell);
        }
        let summary = [record];
        let shown = Shown {
            summary: &summary,
            runs: &[],
            details: &[],
            width: None,
            brief: true,
            sorted: false,
        };
        let text = tables(&shown);
        assert!(text.contains("comp p50"), "{text}");
        assert!(!text.contains("lost"), "{text}");
    }

    #[test]
    fn times_from_stamps_of_adapters_have_their_error_beside_them() {
        let mut record = recorded().swap_remove(0);
        let table = |record: &Record| {
            let shown = Shown {
                summary: std::slice::from_ref(record),
                runs: &[],
                details: &[],
                width: None,
                brief: false,
                sorted: false,
            };
            tables(&shown)
        };
        table(&record).lacks(&["hw to t_recv"]);
        // Not resolved: the median is less than the error.
        record
            .replace(&columns::recv_lag::P50, 400.0)
            .replace(&columns::recv_lag::P99, 500.0)
            .replace(&columns::recv_lag::ERROR, 1_230.0);
        let text = table(&record);
        let mut lines = text.lines();
        let heading = lines.find(|line| line.contains("hw to t_recv")).unwrap();
        heading.has(&["hw to t_recv p50  hw to t_recv p99  hw to t_recv within"]);
        let row = lines.find(|line| line.contains("1.230")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        let lag = cells.windows(3).find(|three| three[2] == "1.230");
        assert_eq!(lag, Some(&["0.400", "0.500", "1.230"][..]), "{text}");
    }

    #[test]
    fn no_block_loses_a_setting_that_tells_points_apart() {
        let summary = recorded();
        for (width, brief) in [(60, false), (60, true), (80, false), (120, false)] {
            let shown = Shown {
                summary: &summary,
                runs: &[],
                details: &[],
                width: Some(width),
                brief,
                sorted: false,
            };
            let text = tables(&shown);
            let table = text.split("\nnote").next().unwrap();
            assert!(table.lines().all(|line| line.len() <= width), "{text}");
            let heads: Vec<&str> = table
                .lines()
                .filter(|line| line.starts_with("service"))
                // The pairs without and with inline data follow in tables of their own.
                .filter(|line| !line.contains("inline off") && !line.contains("inline saves"))
                .collect();
            let least = if brief { 1 } else { 2 };
            assert!(heads.len() >= least || width > 60, "{text}");
            assert!(!heads.is_empty(), "{text}");
            for head in heads {
                let titles: Vec<&str> = head.split_whitespace().collect();
                assert_eq!(
                    titles[..4],
                    ["service", "size", "burst", "inline"],
                    "{text}"
                );
            }
        }
    }
}
