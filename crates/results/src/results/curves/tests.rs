use super::*;
use crate::results::schema::{INCOMPLETE, POINT};

/// A row of a summary: reads, pause, bandwidth and latency.
fn row(reads: u32, pause: Option<u32>, bandwidth: f64, latency: f64) -> Record {
    let mut row = Record::new();
    row.set(&memory::READ_SHARE, reads)
        .set(&memory::PAUSE, pause)
        .set(&memory::GENERATOR_COUNT, u32::from(pause.is_some()))
        .set(&memory::SMOOTH, "savgol:5:2")
        .set(&STATUS, COMPLETE)
        .set(&memory::LATENCY, latency)
        .set(&memory::ESTIMATED, bandwidth)
        .set(&memory::SOURCE, "estimated")
        .set(&memory::STALLED, 0_u32)
        .set(&memory::UNSETTLED, 0_u32)
        .set(&memory::IN_CACHE, false)
        .set(&memory::CORE_LIMITED, false);
    row
}

fn completed(rows: Vec<Record>) -> Vec<Record> {
    let arranged = rows
        .iter()
        .map(|row| row.arranged(&memory::SCHEMA.summary()));
    let mut rows: Vec<Record> = arranged.collect();
    complete(&memory::SCHEMA, &mut rows);
    rows
}

fn curves_of(rows: &[Record]) -> Vec<Curve> {
    Curve::all(rows, |row, column| {
        row.get(column).map(Cell::text).unwrap_or_default()
    })
}

fn rows_of(rows: &[Record]) -> Vec<Vec<usize>> {
    let curves = curves_of(rows).into_iter();
    curves
        .map(|curve| curve.loads.iter().map(|load| load.row).collect())
        .collect()
}

/// A curve that bends backwards: the most load has less bandwidth than the load before.
fn bent() -> Vec<Record> {
    vec![
        row(50, Some(0), 9_000.0, 400.0),
        row(50, Some(8), 10_000.0, 250.0),
        row(50, Some(64), 8_000.0, 150.0),
        row(50, Some(512), 3_000.0, 110.0),
        row(50, Some(4096), 1_000.0, 100.0),
        row(50, None, 10.0, 98.0),
    ]
}

#[test]
fn a_curve_goes_from_no_generators_and_the_longest_pause_to_none() {
    let mut rows = bent();
    rows.insert(2, row(100, Some(0), 12_000.0, 300.0));
    rows.push(row(100, None, 11.0, 97.0));
    let all = rows_of(&rows);
    assert_eq!(all, [vec![6, 5, 4, 3, 1, 0], vec![7, 2]]);
}

#[test]
fn what_was_measured_without_generators_for_all_curves_is_the_first_of_each() {
    let mut rows = bent();
    rows[5] = row(50, None, 10.0, 98.0);
    rows[5].replace(&memory::READ_SHARE, None::<u32>);
    rows.push(row(100, Some(0), 12_000.0, 300.0));
    assert_eq!(rows_of(&rows), [vec![5, 4, 3, 2, 1, 0], vec![5, 6]]);
    // Its place in one of them would not be that in the other.
    let smoothed = completed(rows);
    let cell = |row: usize| smoothed[row].text(&memory::SMOOTHED);
    assert!(cell(5).is_empty() && !cell(4).is_empty());
}

#[test]
fn an_incomplete_row_is_in_no_curve() {
    let mut rows = bent();
    rows[1].replace(&STATUS, INCOMPLETE);
    rows[3].replace(&memory::LATENCY, None::<f64>);
    assert_eq!(rows_of(&rows), [[5, 4, 2, 0]]);
}

#[test]
fn latency_alone_is_smoothed_in_the_order_of_load() {
    let rows = bent();
    let smoothed = completed(rows.clone());
    let latencies = [98.0, 100.0, 110.0, 150.0, 250.0, 400.0];
    let expected = crate::stats::smoothing::savgol(&latencies, 5, 2).unwrap();
    for (place, row) in (0..6).rev().enumerate() {
        let found = smoothed[row].number(memory::SMOOTHED.name).unwrap();
        assert_eq!(found, (100.0 * expected[place]).round() / 100.0, "{row}");
        for column in [memory::LATENCY, memory::ESTIMATED] {
            assert_eq!(smoothed[row].text(&column), {
                let plain = rows[row].clone().arranged(&memory::SCHEMA.summary());
                plain.text(&column)
            });
        }
    }
}

#[test]
fn a_curve_with_fewer_points_than_the_window_is_not_smoothed() {
    let mut rows = bent();
    rows[0].replace(&STATUS, INCOMPLETE);
    let five = completed(rows.clone());
    assert!(!five[1].text(&memory::SMOOTHED).is_empty());
    assert!(five[0].text(&memory::SMOOTHED).is_empty());
    rows[1].replace(&STATUS, INCOMPLETE);
    let four = completed(rows);
    assert!((four.iter()).all(|row| row.text(&memory::SMOOTHED).is_empty()));
    let mut unasked = bent();
    for row in &mut unasked {
        row.replace(&memory::SMOOTH, "none");
    }
    let unasked = completed(unasked);
    assert!((unasked.iter()).all(|row| row.text(&memory::SMOOTHED).is_empty()));
}

#[test]
fn marks_follow_from_flags_and_counts() {
    let mut rows = bent();
    rows[0].replace(&memory::IN_CACHE, true);
    rows[0].replace(&memory::UNSETTLED, 2_u32);
    rows[1].replace(&memory::CORE_LIMITED, true);
    rows[1].replace(&memory::STALLED, 1_u32);
    let rows = completed(rows);
    let marks = |row: usize| rows[row].text(&memory::MARKS);
    assert_eq!(marks(0), "in-cache unstable");
    assert_eq!(marks(1), "core-limited stalled");
    assert_eq!(marks(2), "");
}

#[test]
fn nothing_follows_where_the_schema_says_nothing() {
    let schema = Schema {
        across: None,
        ..memory::SCHEMA
    };
    let mut rows: Vec<Record> = (bent().iter())
        .map(|row| row.arranged(&schema.summary()))
        .collect();
    let before = rows.clone();
    complete(&schema, &mut rows);
    assert_eq!(rows, before);
    assert!(rows[0].text(&POINT).is_empty());
}

#[test]
fn latencies_at_shares_of_the_peak_lie_before_it() {
    let rows = bent();
    let curve = &curves_of(&rows)[0];
    assert_eq!(curve.unloaded().latency_ns, 98.0);
    assert_eq!(curve.peak(), Some((10_000.0, 250.0)));
    // Between 3000 and 8000 MB/s, with 110 and 150 ns.
    assert_eq!(curve.latency_at(0.5), Some(126.0));
    assert_eq!(curve.latency_at(0.8), Some(150.0));
    // Behind the peak there are 9500 MB/s as well.
    assert_eq!(curve.latency_at(0.95), Some(225.0));
    assert_eq!(curve.latency_at(1.0), Some(250.0));
    // Nothing before the first point is known.
    let alone = curves_of(&rows[..2]);
    assert_eq!(alone[0].latency_at(0.5), None);
    assert_eq!(alone[0].peak(), Some((10_000.0, 250.0)));
}

#[test]
fn the_bandwidth_is_what_controllers_counted_where_all_rows_have_it() {
    let mut rows = bent();
    rows[4].replace(&memory::ESTIMATED, None::<f64>);
    rows[5].replace(&memory::SOURCE, "measured");
    rows[5].replace(&memory::MEASURED, 7.0);
    let found = |rows: &[Record]| -> Vec<_> {
        let curves = curves_of(rows);
        curves[0].loads.iter().map(|it| it.bandwidth_mb_s).collect()
    };
    // One of them alone would be a point of another figure.
    assert_eq!(found(&rows)[..3], [Some(10.0), None, Some(3_000.0)]);
    assert_eq!(curves_of(&rows)[0].points().count(), 5);
    for row in &mut rows {
        row.replace(&memory::SOURCE, "measured");
        row.replace(&memory::MEASURED, 7.0);
    }
    assert!(found(&rows).iter().all(|it| *it == Some(7.0)));
}
