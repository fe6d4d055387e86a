use proptest::prelude::*;

use super::*;
use crate::bench::clock::config::Report;
use crate::cli::refused::{assert_refused, parse, parse_words};

fn config(words: &str) -> Config {
    parse::<ClockArguments>(words).unwrap().config()
}

#[test]
fn defaults() {
    let config = config("");
    assert_eq!(config.clock.name(), DEFAULT_CLOCK);
    // In constant memory.
    assert!(config.reports.len() == 3 && !config.wants(Report::Percentiles));
    assert_eq!(config.length, Length::Duration(DEFAULT_DURATION));
    assert_eq!(config.window, Nanos(1_000_000));
    assert_eq!(config.coincidence, Nanos(10_000));
    assert_eq!(config.baseline_iterations, None);
    assert_eq!(config.threshold, None);
    assert_eq!(config.limits.len(), 0);
    assert_eq!(config.keep, None);
}

#[test]
fn everything_has_the_percentiles_only_if_they_are_asked_for() {
    let reports = |words: &str| config(words).reports.len();
    assert_eq!(reports("--everything"), Report::ALL.len() - 1);
    assert!(!config("--everything").wants(Report::Percentiles));
    assert_eq!(
        reports("--everything --report percentiles"),
        Report::ALL.len()
    );
    assert_eq!(
        reports("--everything --report highest"),
        Report::ALL.len() - 1
    );
}

#[test]
fn percentiles_keep_all_and_limits_on_percentiles_count() {
    let kept = config("--report percentiles --iterations 5M");
    assert!(kept.wants(Report::Percentiles) && !kept.counts());
    assert_eq!(kept.length, Length::Iterations(5_000_000));
    // A percentile must be known to be judged.
    assert!(config("--report highest --fail-above 50us@p99.99").counts());
    assert!(!config("--report highest --fail-above 50us").counts());
}

#[test]
fn errors_name_the_option_the_value_and_what_is_allowed() {
    let table = [
        ("--clock tsc", ["--clock", "tsc", "rdtscp-lfence"]),
        (
            "--report most",
            [
                "--report",
                "most",
                "percentiles, highest, cumulative, histogram, wakeup, all",
            ],
        ),
        (
            "--iterations 0",
            ["--iterations", "\"0\"", "from 1 to 9000000000000000000"],
        ),
        ("--duration 10", ["--duration", "\"10\"", "such as 50us"]),
        ("--duration 1us", ["--duration", "1us", "1ms"]),
        ("--cpu 3-1", ["--cpu", "3-1", "backwards"]),
        ("--cpu=", ["--cpu", "", "0-3,8"]),
        ("--threshold 5", ["--threshold", "\"5\"", "us"]),
        ("--window 0ns", ["--window", "0ns", "1ns"]),
        (
            "--baseline-iterations x",
            ["--baseline-iterations", "\"x\"", "20k"],
        ),
        ("--fail-above 50us@99", ["--fail-above", "99", "p99.99"]),
        (
            "--keep-jumps 1",
            ["--keep-jumps", "\"1\"", "from 2 to 100000000"],
        ),
        (
            "--hugepages 1G",
            ["--hugepages", "1G", "required, try, off"],
        ),
        (
            "--iterations 5 --duration 1s",
            ["--iterations", "--duration", "cannot"],
        ),
        (
            "--until 0",
            ["--until", "\"0\"", "from 1 to 9000000000000000000"],
        ),
        ("--causes all", ["--causes", "all", "off, counters, trace"]),
        ("--interval 1us", ["--interval", "1us", "10us to 10s"]),
        ("--priority 100", ["--priority", "100", "from 1 to 99"]),
        (
            "--until 9 --duration 1s",
            ["--until", "--duration", "cannot"],
        ),
        (
            "--everything --until 5",
            ["--everything", "--until", "cannot"],
        ),
        ("--cpu 1 --all-cpus", ["--cpu", "--all-cpus", "cannot"]),
        (
            "--trust --tsc-khz 99999",
            ["--tsc-khz", "99999", "100000 to 10000000"],
        ),
        (
            "--trust --tsc-khz fast",
            ["--tsc-khz", "fast", "100000 to 10000000"],
        ),
        (
            "--trust --trust-reads 9999",
            ["--trust-reads", "9999", "from 10000 to 10000000000"],
        ),
        (
            "--trust-reads 20000",
            ["--trust", "required", "--trust-reads"],
        ),
    ];
    assert_refused(parse::<ClockArguments>, &table);
}

proptest! {
    #[test]
    fn no_arguments_panic(
        words in prop::collection::vec((prop::sample::select(vec![
            "--clock", "--report", "--iterations", "--duration", "--cpu", "--threshold", "--window", "--fail-above", "--keep-jumps",
        ]), prop_oneof!["\\PC{0,12}", "[0-9kMG@p.,usmn-]{0,12}"]), 0..4),
    ) {
        let words = words.into_iter().flat_map(|(option, value)| [option.to_owned(), value]);
        if let Ok(arguments) = parse_words::<ClockArguments>(words) {
            let config = arguments.config();
            prop_assert!(!config.reports.is_empty());
        }
    }
}
