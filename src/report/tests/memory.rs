//! The report of a memory: its curves, and words that speak of no message.

use super::*;
use crate::made_up_run::memory::{MadeCurve, SIZE, memory_run};
use crate::testing::{Has as _, temporary};

fn page_of_curves(curves: &[MadeCurve], rounds: u32, unfinished: bool) -> Page {
    let path = temporary("run");
    page_of_run(&memory_run(&path, curves, rounds, unfinished))
}

/// A curve by its bandwidths and latencies, from no load to full load.
fn curve(reads: u32, points: &[(f64, f64)]) -> MadeCurve {
    let last = points.len() - 1;
    let load = |(place, &(bandwidth, latency)): (usize, &(f64, f64))| {
        let pause = (place > 0).then(|| (last - place) as u32 * 8);
        (pause, bandwidth, latency, "")
    };
    MadeCurve {
        reads,
        store: "non-temporal",
        smooth: "savgol:5:2",
        loads: points.iter().enumerate().map(load).collect(),
        size: SIZE,
        nodes: None,
    }
}

#[test]
fn each_curve_has_a_row_with_its_latencies_before_the_peak() {
    let bent = [
        (0.0, 100.0),
        (2_000.0, 110.0),
        (6_000.0, 150.0),
        (9_000.0, 240.0),
        (10_000.0, 300.0),
        (8_000.0, 500.0),
    ];
    let mut marked = curve(100, &bent[..5]);
    marked.loads[2].3 = "unstable";
    marked.loads.iter_mut().for_each(|load| {
        load.3 = if load.3.is_empty() {
            "in-cache"
        } else {
            "in-cache unstable"
        }
    });
    let page = page_of_curves(&[curve(50, &bent), marked], 1, false);
    assert_eq!(
        titles(&page.answer.sheet),
        [
            "reads",
            "unloaded",
            "largest bandwidth",
            "at 50 % of it",
            "at 80 % of it",
            "at 95 % of it",
            "at it",
            "points",
            "marks"
        ]
    );
    let rows = &page.answer.sheet.rows;
    assert_eq!(rows.len(), 2);
    assert_eq!(page.answer.sheet.columns[2].1, "GB/s");
    assert_eq!((rows[0][0].as_str(), rows[1][0].as_str()), ("50", "100"));
    assert_eq!((rows[0][7].as_str(), rows[0][8].as_str()), ("6", ""));
    assert_eq!(rows[1][8], "in-cache, unstable (1 of 5)");
    let number = |place: usize| rows[0][place].parse::<f64>().unwrap();
    // A step of the chase reads a line as well, and windows scatter by about a per cent.
    for (place, expected) in [
        (1, 100.0),
        (2, 10.0),
        (3, 140.0),
        (4, 210.0),
        (5, 270.0),
        (6, 300.0),
    ] {
        let found = number(place);
        let is_close = (found / expected - 1.0).abs() < 0.04;
        assert!(is_close, "{place}: {found} instead of {expected}");
    }
    told(
        &lines(&page),
        "5 of 11 points: buffers of 64 MiB are smaller than four times the last",
    );
    told(
        &lines(&page),
        "the bandwidth was not stable when --settle was over",
    );
    told(&lines(&page), "11 windows were left out");
}

#[test]
fn it_speaks_of_a_chase_and_of_no_message() {
    let curves = [0, 50, 100].map(|reads| MadeCurve::bent(reads, 12, 2, 9_000.0, 0.01));
    let page = page_of_curves(&curves, 1, false);
    let expected = "Memory: latency by bandwidth, 2026-01-02 03:04 UTC";
    assert_eq!(page.title, expected);
    let wanted = ["Latency by bandwidth", "Latency under load"];
    assert_eq!(figures(&page)[..2], wanted, "{:?}", page.notes);
    let begin = "The latency of a load that waits for the one before it (a pointer chase), by the bandwidth";
    page.opening.begins(begin);
    page.opening.has(&[
        "at 36 points, which differ in read share, pause",
        " Latency 95.",
        "without load; the largest bandwidth is ",
        "GB/s (estimated), at 0 % reads",
    ]);
    let reading: Vec<String> = page
        .reading
        .iter()
        .map(|(what, text)| format!("{what}: {text}"))
        .collect();
    let texts = [&page.opening, &page.verdict.text, &page.sound].into_iter();
    for text in texts.chain(&page.notes).chain(&lines(&page)) {
        text.lacks(&["message", "one-way"]);
    }
    told(&reading, "No message is involved");
    untold(&reading, "percentiles");
    untold(&page.notes, "is not here");
    let html = page.html();
    html.has(&["savgol", "estimated bandwidth"]);
}

#[test]
fn an_incomplete_point_is_in_no_curve() {
    let page = page_of_curves(&[MadeCurve::bent(50, 12, 2, 9_000.0, 0.0)], 1, true);
    assert_eq!(page.answer.sheet.rows[0][7], "11");
    told(&lines(&page), "Interrupted by SIGINT");
}

#[test]
fn a_sweep_over_sizes_has_a_figure_of_them_and_opens_with_the_memory() {
    let of = |size: u64, latency: f64| MadeCurve {
        size,
        ..curve(100, &[(0.0, latency)])
    };
    const TITLE: &str = "Latency by the size of the buffer";
    let sizes = [of(16 << 10, 2.0), of(1 << 20, 8.0), of(SIZE, 120.0)];
    let page = page_of_curves(&sizes, 3, false);
    let titles = figures(&page);
    told(&titles, TITLE);
    page.opening.has(&["Latency 12"]);
    let page = page_of_curves(&[curve(100, &[(0.0, 100.0), (2_000.0, 110.0)])], 3, false);
    untold(&figures(&page), TITLE);
}
