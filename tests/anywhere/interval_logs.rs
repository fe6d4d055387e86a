//! What runs leave of their distributions by interval, and what is made of that.

use crate::common;
use crate::testing::{Has as _, temporary};
use std::fs;
use std::path::{Path, PathBuf};

use common::figures::{drawn, not_drawn};
use common::{ends, number, rows};
use hcabench::results::read::{LoggedInterval, each_interval};

const LATENCY: &str = "latency.hlog";

/// The folder of the only point of a run.
fn point(run: &Path) -> PathBuf {
    let row = &rows(&run.join("summary.csv"))[0];
    run.join(&row["point"])
}

fn intervals(log: &Path) -> Vec<LoggedInterval> {
    let mut all = Vec::new();
    each_interval(log, false, |interval| all.push(interval.clone())).unwrap();
    all
}

#[test]
fn the_intervals_of_a_node_have_its_samples() {
    let folder = &*temporary("");
    let words = "node --type loopback --rate 1k --duration 400ms --warmup 50ms --drain 1s --rounds 2 --samples \
                 --hlog-interval 100ms --hugepages off --timer timerfd --after-miss catch-up --out run";
    ends(folder, words, 0);
    let point = point(&folder.join("run"));
    let log = intervals(&point.join(LATENCY));
    let samples = rows(&point.join("out.csv"));
    let first = rows(&point.join("in.csv"));
    for round in 0..2 {
        let own = |row: &&common::Row| number(row, "round") == round;
        // The first interval begins when the first sample was meant to be sent.
        let begun = first
            .iter()
            .filter(own)
            .map(|row| number(row, "t_intended_ns"));
        let begun = begun.min().unwrap();
        let of_round = log.iter().filter(|it| u64::from(it.round) == round);
        let of_round: Vec<_> = of_round.collect();
        assert!(of_round.len() >= 4, "{}", of_round.len());
        let counted: u64 = of_round.iter().map(|it| it.count()).sum();
        assert_eq!(counted, samples.iter().filter(own).count() as u64);
        for interval in of_round {
            let begin = begun + interval.begin_ms * 1_000_000;
            let is_inside = |row: &&common::Row| {
                (begin..begin + 100_000_000).contains(&number(row, "t_sent_ns"))
            };
            let inside = samples.iter().filter(own).filter(is_inside);
            let latencies: Vec<u64> = inside.map(|row| number(row, "latency_ns")).collect();
            assert_eq!(latencies.len() as u64, interval.count());
            if let (Some(most), Some(found)) = (latencies.iter().max(), interval.max_ns()) {
                assert!(found >= *most && found as f64 <= *most as f64 * 1.001 + 1.0);
            }
        }
    }
    let intended = intervals(&point.join("intended.hlog"));
    let counted: u64 = intended.iter().map(LoggedInterval::count).sum();
    assert_eq!(counted, samples.len() as u64);

    // Of a hundred samples an interval p99.9 is the maximum.
    let (texts, data) = drawn(folder, "time run");
    texts.has(&["p50", "p99", "max", "time since the round began (ms)"]);
    assert!(!texts.any(|text| text == "p99.9"), "{texts:?}");
    let subtitle = data["words"]["subtitle"].as_str().unwrap();
    subtitle.has(&["intervals of 100 ms"]);
    assert_eq!(data["lines"].as_array().unwrap().len(), 3);
    let (_, samples) = drawn(folder, "time run --show samples");
    assert!(samples["clouds"].is_array());
    let (texts, _) = drawn(
        folder,
        "time run --percentile p90 --only round=1 --metric intended",
    );
    texts.has(&["p90", "max"]);
    ends(folder, "report run --out report.html", 0);
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    page.has(&["Latency over time"]);
    // What reads rows alone is not disturbed by the file.
    ends(folder, "show run", 0);

    let whole = fs::read_to_string(point.join(LATENCY)).unwrap();
    let cut = whole.trim_end().rfind('\n').unwrap() + 1;
    fs::write(point.join(LATENCY), &whole[..cut]).unwrap();
    not_drawn(
        folder,
        "time run",
        1,
        &[LATENCY, "is cut off", "intervals of round 1"],
    );
    let report = ends(folder, "report run --out other.html", 1);
    report.told().has(&[LATENCY, "is cut off"]);
    ends(folder, "show run", 0);
    ends(folder, "compare run run", 0);
}

#[test]
fn queues_and_clocks_have_intervals_too() {
    let folder = &*temporary("");
    let words = "queue --queue lamport --capacity 64 --load constant-rate --rate 10k --duration 300ms --warmup 1ms \
                 --rounds 1 --hlog-interval 50ms --clock monotonic --out run";
    ends(folder, words, 0);
    let run = folder.join("run");
    let elements = number(&rows(&run.join("summary.csv"))[0], "elements_measured");
    for name in ["enqueue", "dequeue", "latency", "intended_latency"] {
        let log = intervals(&point(&run).join(format!("{name}.hlog")));
        let counted: u64 = log.iter().map(LoggedInterval::count).sum();
        assert_eq!(counted, elements, "{name}");
    }
    drawn(folder, "time run").0.has(&["p50", "p99", "max"]);

    let words = "clock --duration 300ms --hlog-interval 50ms --clock monotonic --out clock";
    ends(folder, words, 0);
    let run = folder.join("clock");
    let jumps = rows(&point(&run).join("jumps.csv")).len() as u64;
    let log = intervals(&point(&run).join("jump.hlog"));
    assert!(log.len() >= 6, "{}", log.len());
    let counted: u64 = log.iter().map(LoggedInterval::count).sum();
    assert_eq!(counted, jumps);

    // A run that is taken up again adds its rounds, each once.
    let words = "queue --queue lamport --capacity 64 --load constant-rate --rate 10k --duration 200ms --warmup 1ms \
                 --rounds 2 --hlog-interval 50ms --clock monotonic";
    ends(folder, &format!("{words} --out parts --until-round 1"), 0);
    let part = folder.join("parts");
    let names = fs::read_dir(&part).unwrap();
    let mut names = names.map(|entry| entry.unwrap().path());
    let log = names.find(|path| path.is_dir()).unwrap().join(LATENCY);
    let rounds_of = |log: &Path| {
        let mut rounds: Vec<u32> = intervals(log).iter().map(|it| it.round).collect();
        rounds.dedup();
        rounds
    };
    assert_eq!(rounds_of(&log), [0]);
    // What a killed program has left of a round that counts nowhere goes.
    let whole = fs::read_to_string(&log).unwrap();
    let stray = whole.replace("#[Round: 0", "#[Round: 1");
    fs::write(&log, whole + &stray + "#[Rou").unwrap();
    ends(folder, &format!("{words} --resume parts"), 0);
    assert_eq!(rounds_of(&log), [0, 1]);

    // A short run has none where none was asked for.
    let words = "queue --queue lamport --count 1000 --clock monotonic --out short";
    ends(folder, words, 0);
    let short = point(&folder.join("short"));
    assert!(!short.join(LATENCY).exists());
    not_drawn(
        folder,
        "time short --show intervals",
        2,
        &["--show \"intervals\"", "60s"],
    );
    let refused = ends(folder, "queue --hlog-interval 1ms --out none", 2);
    refused.told().has(&["--hlog-interval", "10ms"]);
}
