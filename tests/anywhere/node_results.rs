//! What `hcabench plot`, `report` and `compare` make of made-up results of the node benchmark.

use crate::common;
use crate::made_up_run;
use crate::testing::{Has as _, temporary};
use std::fs;
use std::path::Path;

use common::ends;
use common::figures::{drawn, not_drawn};
use hcabench::results::folder::HISTOGRAM;
use hcabench::results::schema::node;
use hcabench::results::{Record, SampleWriter, hgrm};
use hcabench::stats::{LatencyHistogram, Summary};
use made_up_run::{MadeRow, run_of};
use serde::Serialize;

const STEPS: u64 = 100;
const ROUNDS: u32 = 8;

#[derive(Debug, Serialize)]
struct OutRow {
    round: u32,
    subscriber: u32,
    publisher: u32,
    seq: u64,
    t_sent_ns: u64,
    t_received_ns: u64,
    latency_ns: i64,
    intact: bool,
}

/// Latencies around a level, in nanoseconds; so many steps were missed, and so many samples lost.
fn point(
    [node_type, level]: [&'static str; 2],
    rate: f64,
    values: u32,
    missed: u64,
    lost: u64,
) -> MadeRow<'static> {
    let level: i64 = level.parse().unwrap();
    let sent = STEPS - missed;
    let latencies = move |round: u32| -> Vec<i64> {
        let latency = |n: u64| level + 10 * n as i64 + i64::from(round);
        (0..sent - lost).map(latency).collect()
    };
    let figures = |round| {
        let latencies = latencies(round);
        let intended: Vec<i64> = latencies.iter().map(|latency| latency + 5000).collect();
        let mut record = Record::new();
        record
            .set(&node::TYPE, node_type)
            .set(&node::SERVICE, None::<&str>)
            .set(&node::SCENARIO, "straight-run")
            .set(&node::RATE, rate)
            .set(&node::VALUES, values)
            .set(&node::SAMPLE, 16 + 8 * values)
            // It follows from the size.
            .set(&node::INLINE, values == 1)
            // As of --duration.
            .set(&node::STEPS, rate as u64 * 5)
            .set(&node::EXPECTED, STEPS)
            .set(&node::SENT, sent)
            .set(&node::COPIES, sent)
            .set(&node::RECEIVED, sent - lost)
            .set(&node::LOST, lost)
            .set(&node::ARRIVALS, sent - lost)
            .set(&node::STEPS_MADE, sent)
            .set(&node::STEPS_MISSED, missed)
            .set(&node::REFUSED, if missed > 0 { 3_u64 } else { 0 })
            .set(&node::DELIVERY_RATE, (sent - lost) as f64 / STEPS as f64)
            .distribution(&node::latency::ALL, Summary::of(&latencies).as_ref())
            .distribution(&node::intended::ALL, Summary::of(&intended).as_ref());
        record
    };
    MadeRow {
        name: format!("{node_type}-rate{rate}-{values}values"),
        rounds: (0..ROUNDS).map(figures).collect(),
        files: Box::new(move |place, round| {
            place.file(node::OUT.name).unwrap();
            let mut writer = SampleWriter::open(place.path(), &node::OUT, round).unwrap();
            for (seq, latency) in latencies(round).into_iter().enumerate() {
                let sent = 1_000_000_000 + 1_000_000 * seq as u64;
                let row = OutRow {
                    round,
                    subscriber: 0,
                    publisher: 0,
                    seq: seq as u64,
                    t_sent_ns: sent,
                    t_received_ns: sent.wrapping_add_signed(latency),
                    latency_ns: latency,
                    intact: true,
                };
                writer.append(&row).unwrap();
            }
            writer.finish().unwrap();
            let all: Vec<i64> = (0..=round).flat_map(latencies).collect();
            let histogram = LatencyHistogram::of(&all);
            hgrm::write(&place.file(HISTOGRAM).unwrap(), &histogram).unwrap();
            let intended: Vec<i64> = all.iter().map(|latency| latency + 5000).collect();
            let histogram = LatencyHistogram::of(&intended);
            hgrm::write(&place.file("intended.hgrm").unwrap(), &histogram).unwrap();
        }),
    }
}

/// Two node-types at three rates with two sizes of samples; the slower one misses steps at the highest rate, and loses.
fn sweep(path: &Path, slower: &'static str) {
    let mut rows = Vec::new();
    for (node_type, level) in [("shmem", "400"), ("udp", slower)] {
        for rate in [100.0, 1000.0, 10_000.0] {
            for values in [1, 64] {
                let is_udp = node_type == "udp" && rate == 10_000.0;
                let (missed, lost) = if is_udp { (20, 8) } else { (0, 0) };
                rows.push(point([node_type, level], rate, values, missed, lost));
            }
        }
    }
    run_of(path, &node::SCHEMA, &rows, false);
}

#[test]
fn figures_of_a_sweep_of_node_types() {
    let folder = &*temporary("");
    sweep(&folder.join("run"), "8000");

    // The number of steps follows from the rate, and is no setting of its own.
    let (texts, data) = drawn(folder, "median run --only values=64");
    texts.has(&[
        "Latency of a sample by offered rate (per s)",
        "shmem",
        "udp",
        "median latency of a sample (ns)",
    ]);
    let lines = data["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2);
    let first = &lines[0]["middles"][0];
    // Of 400 + 10 n + round, n below 100: the median over rounds 0 to 7 of 895 + round.
    assert_eq!(first["value"], 898.5);
    assert_eq!(first["most"], serde_json::json!([502.5, 1294.5]));
    assert_eq!(first["x"], 100.0);

    let (texts, data) = drawn(folder, "surface run --only type=udp");
    texts.has(&[
        "offered rate (per s)",
        "values of a sample",
        "missed steps",
        "20 %",
    ]);
    let heights = data["heights"].as_array().unwrap();
    let share = |at: usize| heights[at][1]["share"].as_f64().unwrap();
    assert_eq!((share(0), share(1), share(2)), (0.0, 0.0, 0.2));

    let only = "--only rate=10000 --only values=1";
    let (texts, data) = drawn(folder, &format!("histogram run {only} --range auto"));
    texts.has(&["Latency of a sample", "shmem: median 898 ns"]);
    let lost = format!("{} lost", 8 * ROUNDS);
    let absent = format!("{lost}, {} missed, {} refused", 20 * ROUNDS, 3 * ROUNDS);
    let is_udp = |text: &str| text.starts_with("udp: median 8.3") && text.ends_with(&absent);
    assert!(texts.any(is_udp), "{texts:?}");
    assert_eq!(data["series"][0]["total"], STEPS * u64::from(ROUNDS));

    let (texts, _) = drawn(folder, &format!("ecdf run {only}"));
    texts.has(&[
        "share of received samples up to it (%)",
        &format!("udp, {absent}"),
    ]);
    let (texts, _) = drawn(folder, &format!("percentiles run {only}"));
    texts.has(&["shmem", &format!("udp, {absent}")]);
    // What is of one round only is not known of steps without a sample.
    let (texts, _) = drawn(folder, &format!("histogram run {only} --only round=1"));
    assert!(!texts.any(|text| text.contains("missed")), "{texts:?}");
    // Only its distribution is kept.
    let (texts, data) = drawn(folder, &format!("percentiles run {only} --metric intended"));
    texts.has(&["Latency from the intended time", "shmem"]);
    let least = data["curves"][0]["points"][0][1].as_f64().unwrap();
    assert!((5400.0..5406.0).contains(&least), "{least}");
    let histogram = format!("histogram run {only} --metric intended");
    not_drawn(folder, &histogram, 2, &["intended", "only a distribution"]);
    let (texts, _) = drawn(folder, &format!("time run {only}"));
    texts.has(&["Latency of a sample over time", "udp"]);

    let parts = ["results of node have latency, intended"];
    not_drawn(folder, "median run --metric enqueue", 2, &parts);
    not_drawn(folder, "load run", 2, &["these are results of node"]);
}

#[test]
fn node_types_are_sorted_by_their_median_with_ratios_and_bounds() {
    let folder = &*temporary("");
    let rows = [("udp", "8000"), ("zeromq", "40000"), ("shmem", "400")];
    let rows = rows.map(|(node_type, level)| point([node_type, level], 1e3, 8, 0, 0));
    run_of(&folder.join("run"), &node::SCHEMA, &rows, false);
    let shown = ends(folder, "show run", 0).stdout;
    let lines = shown.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let first = cells.first().copied()?;
        ["shmem", "udp", "zeromq"].contains(&first).then_some(cells)
    });
    let lines: Vec<Vec<&str>> = lines.collect();
    // Medians of 400, 8000 and 40000, each and 498.5: 9.46 and 45.1 times the first.
    let cells = ["shmem 1.00", "udp 9.46", "zeromq 45.1"];
    let found = lines.iter().map(|cells| cells[..2].join(" "));
    assert!(found.eq(cells), "{shown}");
    for (cells, truth) in lines[1..].iter().zip([9.458, 45.07]) {
        let (low, high) = cells[2].split_once("..").unwrap();
        let [low, high] = [low, high].map(|bound| bound.parse::<f64>().unwrap());
        assert!(
            low < truth && truth < high && high - low < truth / 100.0,
            "{shown}"
        );
    }
    let words = Vec::from_iter(shown.split_whitespace()).join(" ");
    words.has(&[
        "p50 is",
        "x fastest",
        "rank: shmem is first, and distinguished from all others (3 pairs by their rounds at a shared error of 5 %).",
        "figure: hcabench plot percentiles run --out layers.svg",
    ]);
    let document = ends(folder, "show run --json", 0).json();
    let relative = document["relative"].as_array().unwrap();
    assert_eq!(relative.len(), 3);
    assert_eq!(relative[0]["times_the_fastest"], 1.0);
    let number = |name: &str| relative[2][name].as_f64().unwrap();
    assert!(number("at_least") < number("times_the_fastest"));
    assert!(number("times_the_fastest") < number("at_most"));

    // Rows that are sorted by the reader stay as they are, and have the same ratios.
    let shown = ends(folder, "show run --sort=-p50", 0).stdout;
    let places = ["zeromq", "udp", "shmem"].map(|name| shown.find(&format!("\n{name} ")));
    assert!(places.is_sorted() && places[0].is_some(), "{shown}");
    shown.has(&["45.1"]);
}

#[test]
fn node_types_are_compared_where_nothing_else_differs() {
    let folder = &*temporary("");
    sweep(&folder.join("run"), "8000");
    let shown = ends(folder, "show run", 0).stdout;
    let shown = Vec::from_iter(shown.split_whitespace()).join(" ");
    // Six groups of two, in two of which udp has lost samples.
    assert_eq!(shown.matches("shmem is first").count(), 4, "{shown}");
    shown.has(&[
        "rate 1000, values 64: rank: shmem is first",
        "rate 10000, values 64: rank: fewer than two node-types to compare. Not ranked, as their latencies are of what \
         arrived: udp delivered 72.0 %.",
        "figure: hcabench plot median run --out layers.svg",
    ]);
    // A single type has nothing to be compared with.
    let alone = [point(["udp", "8000"], 1e3, 8, 0, 0)];
    run_of(&folder.join("alone"), &node::SCHEMA, &alone, false);
    let shown = ends(folder, "show alone", 0).stdout;
    shown.lacks(&["fastest", "rank:", "figure:"]);
}

#[test]
fn a_report_of_node_types() {
    let folder = &*temporary("");
    sweep(&folder.join("run"), "8000");
    ends(folder, "report run --out report.html", 0);
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    page.has(&[
        "Samples through node-types",
        "The latency of samples through node-types was measured",
        "at 12 points, which differ in type, rate, values",
        "Median latency of a sample 898 ns",
        "128 of 1280 copies were lost",
        "colour is the share of missed steps",
        "Steps for which no sample was made",
    ]);
    // A median, a surface for each type, and two tails.
    assert_eq!(page.matches("<figcaption>").count(), 1 + 2 + 2);
}

#[test]
fn runs_of_node_types_are_compared() {
    let folder = &*temporary("");
    sweep(&folder.join("base"), "8000");
    sweep(&folder.join("slow"), "9000");
    let compared = ends(folder, "compare base slow --anyway --percentiles p50", 0);
    compared.stdout.has(&["worse", "latency.p50"]);
    // Microseconds repeat the nanoseconds, and are not judged again.
    compared.stdout.lacks(&["_us"]);
    let compared = ends(folder, "compare base slow --anyway --json", 0).json();
    compared.has(&["\"lost\"", "intended"]);
}
