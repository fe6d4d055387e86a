use std::fs;
use std::time::{Duration, SystemTime};

use super::*;
use crate::results::hlog::{LoggedRound, RoundLog, append, keep_rounds};
use crate::stats::{LatencyHistogram, TimedSamples};
use crate::testing::{Refused as _, temporary};
use proptest::prelude::*;

/// Samples that the test of the notebooks computes as well: one every 10 ms for a time, but for a stall.
fn samples(round: u64) -> Vec<(u64, i64)> {
    let moments = (0..250).filter(|at| !(120..200).contains(at));
    let sample = |at: u64| {
        let value = 1000 + at * at * 7919 * (round + 1) % 1_000_003;
        (at * 10_000_000, value as i64)
    };
    moments.map(sample).collect()
}

fn log_of(round: u32, samples: &[(u64, i64)], interval: Duration, not_kept: u64) -> RoundLog {
    let how = LoggedRound {
        number: round,
        interval,
        zero: SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_000_000 + 100 * u64::from(round)),
    };
    let samples: TimedSamples = samples.iter().copied().collect();
    RoundLog::of("latency.hlog".to_owned(), samples, not_kept, &how).unwrap()
}

/// The log that the test of the notebooks reads: two rounds of those samples in intervals of half a second.
fn two_rounds() -> String {
    let log = |round| log_of(round, &samples(round.into()), Duration::from_millis(500), 0).text;
    [0, 1].map(log).concat()
}

fn read(path: &Path) -> Result<Vec<LoggedInterval>, ReadError> {
    let mut all = Vec::new();
    each_interval(path, false, |interval| all.push(interval.clone()))?;
    Ok(all)
}

#[test]
fn a_log_comes_back_as_it_was_made() {
    let file = temporary("latency.hlog");
    for round in 0..2 {
        let one = log_of(round, &samples(round.into()), Duration::from_millis(500), 0);
        append(&file, &one.text).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), two_rounds());
    let found = read(&file).unwrap();
    let times = found
        .iter()
        .map(|it| (it.round, it.begin_ms, it.length_ms, it.count()));
    let of_a_round = |round| {
        [
            (round, 0, 500, 50),
            (round, 500, 500, 50),
            (round, 1000, 500, 20),
            (round, 1500, 500, 0),
            (round, 2000, 490, 50),
        ]
    };
    assert!(times.eq([of_a_round(0), of_a_round(1)].concat()));
    assert_eq!(
        (found[3].max_ns(), found[3].percentile_ns(50.0)),
        (None, None)
    );
    for interval in found {
        let own = samples(interval.round.into()).into_iter();
        let own = own.filter(|it| it.0 / 500_000_000 == interval.begin_ms / 500);
        let own: Vec<i64> = own.map(|it| it.1).collect();
        let expected = LatencyHistogram::of(&own);
        let Some(max) = expected.max_ns() else {
            continue;
        };
        let about = |found: Option<u64>, exact: i64| {
            let (found, exact) = (found.unwrap() as f64, exact as f64);
            assert!(
                found >= exact && found <= exact * 1.001 + 1.0,
                "{found} {exact}"
            );
        };
        about(interval.max_ns(), max);
        let mut sorted = own;
        sorted.sort_unstable();
        about(
            interval.percentile_ns(50.0),
            sorted[sorted.len().div_ceil(2) - 1],
        );
    }
}

/// It is read by the test of the notebooks as well, with the library of Python.
#[test]
fn the_log_that_others_read_is_what_is_written_now() {
    let kept = include_str!("two_rounds.hlog");
    let written = two_rounds();
    // How well it is compressed depends on a library.
    let without = |text: &str| -> Vec<String> {
        let line = |line: &str| line.split("HIST").next().unwrap_or(line).to_owned();
        text.lines().map(line).collect()
    };
    assert_eq!(without(kept), without(&written));
    let [kept, written] = [kept, &written].map(|text| {
        let file = temporary("latency.hlog");
        fs::write(&file, text).unwrap();
        let counts = |it: LoggedInterval| {
            let buckets = it.buckets.iter_recorded();
            Vec::from_iter(buckets.map(|it| (it.value_iterated_to(), it.count_at_value())))
        };
        Vec::from_iter(read(&file).unwrap().into_iter().map(counts))
    });
    assert_eq!(kept, written);
}

#[test]
fn what_no_interval_has_is_counted() {
    let file = temporary("latency.hlog");
    let all = [(0, -7), (5, 12), (9, i64::MAX), (3_000_000, -1)];
    let log = log_of(0, &all, Duration::from_secs(1), 4).text;
    assert!(
        log.contains("1 intervals of 1.000 s, 2 samples, 2 below zero, 4 not kept]"),
        "{log}"
    );
    append(&file, &log).unwrap();
    let found = read(&file).unwrap();
    assert_eq!((found[0].count(), found[0].length_ms), (2, 3));
    let max = found[0].max_ns().unwrap() as f64;
    assert!((max / i64::MAX as f64 - 1.0).abs() < 1e-3);
}

#[test]
fn rounds_that_are_not_whole_are_taken_out() {
    let file = temporary("latency.hlog");
    keep_rounds(&file, |_| true).unwrap();
    assert!(!file.exists());
    let whole = two_rounds();
    let end = whole.find("#[Round: 1").unwrap();
    // A killed process tore the last line.
    fs::write(&file, format!("{whole}#[Round: 2, 1 interv")).unwrap();
    keep_rounds(&file, |round| round != 1).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), whole[..end]);
    append(&file, &whole[end..]).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    keep_rounds(&file, |_| false).unwrap();
    assert!(!file.exists());
}

#[test]
fn a_log_that_is_cut_is_named_unless_its_run_was_interrupted() {
    let file = temporary("latency.hlog");
    let whole = two_rounds();
    let begins = whole.find("#[Round: 1").unwrap();
    for length in (0..whole.len()).filter(|it| *it != begins) {
        fs::write(&file, &whole[..length]).unwrap();
        read(&file).refused(&["latency.hlog is cut off"]);
        each_interval(&file, true, |_| ()).unwrap();
    }
    // Without a whole round nothing shows that there was one.
    fs::write(&file, &whole[..begins]).unwrap();
    assert_eq!(read(&file).unwrap().len(), 5);
}

#[test]
fn what_is_wrong_with_a_log_is_named() {
    let file = temporary("latency.hlog");
    let whole = two_rounds();
    let line = |number: usize| whole.lines().nth(number).unwrap().to_owned() + "\n";
    let changed = |from: &str, to: &str| whole.replacen(from, to, 1);
    let (first, second) = (line(6), line(7));
    for (text, told) in [
        (
            changed("#[Round: 0, 5", "#[Round: 0, five"),
            "line 1: it is not the head of a round",
        ),
        (changed(&line(0), ""), "line 1: no round begins before it"),
        (changed(&first, ""), "line 1: 4 of 5 intervals of round 0"),
        (
            changed(&first, &(first.clone() + &first)),
            "line 8: it does not begin behind the interval before it",
        ),
        (changed(&second, ""), "line 1: 4 of 5 intervals of round 0"),
        (
            changed("0, 5 intervals", "0, 4 intervals"),
            "line 1: 5 of 4 intervals of round 0",
        ),
        (
            changed("170 samples", "171 samples"),
            "line 1: the intervals of round 0 have 170 samples, and its head has 171",
        ),
        (
            changed("1764000000.500,", "soon,"),
            "line 8: its time is not one in seconds",
        ),
        (
            changed("1764000000.500,", "17.5,"),
            "line 8: it begins before its round",
        ),
        (
            changed(",0.500,", ",long,"),
            "line 7: its length is not one in seconds",
        ),
        (
            changed(",HIST", ",HEIST"),
            "line 7: its histogram cannot be decoded",
        ),
        (
            changed(",HIST", ",HIST,"),
            "line 7: it is not a time, a length, a maximum and a histogram",
        ),
    ] {
        assert_ne!(text, whole);
        fs::write(&file, text).unwrap();
        read(&file).refused(&["latency.hlog is not as hcabench writes it", told]);
    }
    fs::write(&file, b"\x1f\x8b\x08\0\0\0\0\0").unwrap();
    read(&file).refused(&["is compressed with gzip"]);
    fs::write(&file, [whole.as_bytes(), b"\xff\n"].concat()).unwrap();
    read(&file).refused(&["it is not text"]);
    read(&file.with_file_name("gone.hlog")).refused(&["is missing"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_byte_is_named_or_changes_nothing_that_counts(place in 0_usize..8000, byte in any::<u8>()) {
        let file = temporary("latency.hlog");
        let mut bytes = two_rounds().into_bytes();
        let place = place % bytes.len();
        bytes[place] = byte;
        fs::write(&file, &bytes).unwrap();
        if let Ok(found) = read(&file) {
            let samples: u64 = found.iter().map(LoggedInterval::count).sum();
            prop_assert_eq!(samples, 340);
        }
    }
}
