//! The option table, from text to configuration and points.

use clap::Parser;
use proptest::prelude::*;

use super::*;
use crate::bench::queue::registry;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    queue: QueueArguments,
}

fn parse(words: &str) -> Result<QueueArguments, clap::Error> {
    let words = std::iter::once("queue").chain(words.split_ascii_whitespace());
    Ok(Line::try_parse_from(words)?.queue)
}

fn only_sender(words: &str) -> Result<EndLoad, UsageError> {
    let senders = parse(words).unwrap().senders()?;
    assert_eq!(senders.len(), 1);
    Ok(senders[0])
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let arguments = parse("").unwrap();
    assert_eq!(arguments.queue.0.len(), registry::names().len());
    assert_eq!(
        (arguments.capacity.0, arguments.payload.0),
        (vec![1024], vec![8])
    );
    let arguments = parse("").unwrap();
    assert_eq!(arguments.senders().unwrap()[0].load, Load::None);
    assert_eq!(arguments.receiver().unwrap().load, Load::None);
    let config = arguments.config().unwrap();
    assert_eq!(
        (config.count, config.warmup, config.repeat),
        (100_000, 10_000, 9)
    );
    assert_eq!(
        (config.measure, config.measure_failed),
        (Measure::Time, false)
    );
    assert_eq!(config.clock, ClockKind::Tsc);
}

#[test]
fn the_commands_of_the_documentation_are_understood() {
    let load = only_sender("--queue all --load constant-rate --rate 1M --count 1000000").unwrap();
    assert_eq!(load.load, Load::ConstantRate { rate_per_s: 1e6 });
    let load = only_sender("--load bursty --burst 20 --wait 100ns --jitter 10%").unwrap();
    let bursty = Load::Bursty {
        wait_ns: 100.0,
        burst: 20,
    };
    assert_eq!((load.load, load.jitter), (bursty, 0.1));
    let load = only_sender("--load constant-wait").unwrap();
    assert_eq!(load.load, Load::ConstantWait { wait_ns: 100.0 });
    assert_eq!(only_sender("--load max").unwrap().load, Load::None);
}

#[test]
fn both_ends_have_loads_of_their_own_and_other_random_numbers() {
    let words = "--load constant-rate --rate 1M,2M --jitter 5% --seed 7 --receiver-load constant-wait \
                 --receiver-wait 1us --receiver-jitter 0.5";
    let arguments = parse(words).unwrap();
    let senders = arguments.senders().unwrap();
    let receiver = arguments.receiver().unwrap();
    assert_eq!(senders.len(), 2);
    assert_eq!(receiver.load, Load::ConstantWait { wait_ns: 1000.0 });
    assert_eq!((senders[0].jitter, receiver.jitter), (0.05, 0.5));
    assert_eq!(senders[0].seed, 7);
    assert_ne!(receiver.seed, 7);
}

#[test]
fn an_option_that_has_no_meaning_is_refused_with_what_would_be_allowed() {
    for (words, expected) in [
        ("--rate 1M", ["--rate", "none", "constant-rate"]),
        (
            "--load bursty --rate 1M",
            ["--rate", "bursty", "constant-rate"],
        ),
        (
            "--load constant-rate --wait 1us",
            ["--wait", "constant-rate", "constant-wait, bursty"],
        ),
        (
            "--load constant-wait --burst 3",
            ["--burst", "constant-wait", "bursty"],
        ),
        ("--jitter 10%", ["--jitter", "none", "constant-wait"]),
    ] {
        let error = parse(words).unwrap().senders().unwrap_err().to_string();
        assert!(
            expected.iter().all(|part| error.contains(part)),
            "{words}: {error}"
        );
    }
    let error = parse("--receiver-rate 1M").unwrap().receiver().unwrap_err();
    assert!(error.to_string().contains("--receiver-rate"), "{error}");
    for words in ["--measure-failed", "--elements", "--load-curve"] {
        let arguments = parse(&format!("{words} --measure throughput")).unwrap();
        let error = arguments.config().unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("time"), "{error}");
    }
}

#[test]
fn errors_name_the_option_the_value_and_what_is_allowed() {
    for (words, expected) in [
        ("--queue quick", ["--queue", "quick", "lamport"]),
        ("--capacity 0", ["--capacity", "\"0\"", "1 to 16777216"]),
        ("--payload 16", ["--payload", "16", "8, 64 or 256"]),
        ("--load fast", ["--load", "fast", "constant-rate"]),
        ("--rate 1Q", ["--rate", "1Q", "such as 1M"]),
        ("--wait 5", ["--wait", "\"5\"", "such as 100ns"]),
        ("--burst 0", ["--burst", "0", "1..=1000000"]),
        ("--jitter 200%", ["--jitter", "200%", "0% to 100%"]),
        ("--measure all", ["--measure", "all", "throughput"]),
        ("--clock hpet", ["--clock", "hpet", "monotonic-raw"]),
        ("--count 0", ["--count", "0", "1..="]),
        ("--timeout 1us", ["--timeout", "1us", "1ms"]),
        (
            "--load-curve --rate 1M",
            ["--load-curve", "--rate", "cannot"],
        ),
        (
            "--topology --sender-cpu 0",
            ["--topology", "--sender-cpu", "cannot"],
        ),
    ] {
        let error = parse(words).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(
            expected.iter().all(|part| text.contains(part)),
            "{words}: {text}"
        );
    }
}

#[test]
fn a_curve_keeps_its_jitter() {
    let load = only_sender("--load-curve --jitter 10%").unwrap();
    assert_eq!(load.jitter, 0.1);
}

#[test]
fn a_row_has_the_same_columns_whatever_was_measured() {
    use crate::bench::queue::plan::{Cpus, Point};
    use crate::bench::queue::result::{Histograms, PointResult, made_up};
    let config = parse("").unwrap().config().unwrap();
    let point = Point {
        queue: registry::names().next().unwrap().to_owned(),
        capacity: 64,
        payload: 8,
        sender: EndLoad::NONE,
        receiver: EndLoad::NONE,
        percent_of_saturation: None,
        cpus: Cpus {
            sender: 0,
            receiver: 1,
            cores: None,
        },
    };
    let result = |runs| PointResult {
        point: point.clone(),
        saturation_per_s: None,
        runs,
        histograms: Histograms::default(),
        elements: Vec::new(),
        placement_warnings: Vec::new(),
        failure: None,
    };
    let full = settings::summary_record(&result([40, 50].map(made_up::run).into()), &config);
    let empty = settings::summary_record(&result(Vec::new()), &config);
    assert_eq!(
        full.columns().collect::<Vec<_>>(),
        empty.columns().collect::<Vec<_>>()
    );
    let text = |column| full.get(column).unwrap().text();
    // Extremes are those of all runs, the rest is the median over them.
    assert_eq!(
        (text("enqueue_min_ns"), text("enqueue_max_ns")),
        ("39".into(), "51".into())
    );
    assert_eq!(text("enqueue_p50_ns"), "45.0");
    assert_eq!(text("enqueue_p50_low_ns"), "");
    assert_eq!(text("failed_dequeues"), "14");
    assert_eq!(text("depth_mean"), "1.50");
    assert_eq!(text("sender_stamp_ns"), "12.5");
    assert_eq!(text("intended_latency_p50_ns"), "");
}

#[test]
fn a_broken_queue_and_two_modes_are_marked() {
    use super::present::{Finished, overview};
    use crate::bench::queue::plan::{Cpus, Point};
    use crate::bench::queue::result::{Histograms, PointResult, made_up};
    let config = parse("").unwrap().config().unwrap();
    let finished = |queue: &str, runs: &[i64], failure: Option<&str>| {
        let result = PointResult {
            point: Point {
                queue: queue.to_owned(),
                capacity: 64,
                payload: 8,
                sender: EndLoad::NONE,
                receiver: EndLoad::NONE,
                percent_of_saturation: None,
                cpus: Cpus {
                    sender: 0,
                    receiver: 1,
                    cores: None,
                },
            },
            saturation_per_s: None,
            runs: runs.iter().map(|&ns| made_up::run(ns)).collect(),
            histograms: Histograms::default(),
            elements: Vec::new(),
            placement_warnings: Vec::new(),
            failure: failure.map(str::to_owned),
        };
        Finished::new(&result, &config)
    };
    let all = [
        finished("good", &[40, 41, 42, 43], None),
        finished("split", &[40, 41, 90, 91], None),
        finished("bad", &[40], Some("run 1 is wrong")),
    ];
    let text = overview(&all, Measure::Time, None);
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("split").ends_with("two modes"), "{text}");
    assert!(line("bad").ends_with("BROKEN"), "{text}");
    assert!(!line("good").contains("two modes"), "{text}");
}

fn value() -> impl Strategy<Value = String> {
    let plausible = prop::sample::select(vec![
        "all",
        "lamport",
        "64",
        "1024",
        "8",
        "256",
        "none",
        "constant-wait",
        "constant-rate",
        "bursty",
        "1M",
        "10%",
        "100ns",
        "20",
        "0",
        "tsc",
        "monotonic",
        "time",
        "throughput",
        "try",
        "5s",
    ]);
    prop_oneof![
        plausible.prop_map(str::to_owned),
        "\\PC{0,12}",
        "[0-9.,kMG%us]{0,8}"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn no_arguments_panic(
        words in prop::collection::vec((prop::sample::select(vec![
            "--queue", "--capacity", "--payload", "--load", "--rate", "--wait", "--burst", "--jitter", "--seed",
            "--receiver-load", "--receiver-rate", "--receiver-wait", "--count", "--warmup", "--repeat", "--measure", "--clock",
            "--timeout", "--sender-cpu",
        ]), value()), 0..6),
    ) {
        let arguments = words.iter().flat_map(|(option, value)| [(*option).to_owned(), value.clone()]);
        let line = Line::try_parse_from(std::iter::once("queue".to_owned()).chain(arguments));
        if let Ok(Line { queue }) = line {
            if let Ok(senders) = queue.senders() {
                for sender in senders {
                    // What is accepted can be paced.
                    let clock = crate::time::Monotonic::default();
                    sender.waiter(&clock, crate::pacing::AfterMiss::CatchUp);
                    prop_assert!(!sender.to_string().contains('/'));
                }
            }
            let _ = (queue.receiver(), queue.config());
        }
    }
}
