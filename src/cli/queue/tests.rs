//! The option table, from text to configuration and points.

use clap::Parser;
use proptest::prelude::*;

use super::present::{Finished, Warnings, details, note_on_details, overview};
use super::*;
use crate::bench::queue::judge::Outcome;
use crate::bench::queue::plan::{Cpus, Point};
use crate::bench::queue::result::{Histograms, PointResult, made_up};
use crate::cli::refused::assert_refused;
use crate::host::made_up::Machine;
use crate::queues::registry;
use crate::stats::Summary;

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
    let table = [
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
    ];
    assert_refused(parse, &table);
}

#[test]
fn a_curve_keeps_its_jitter() {
    let load = only_sender("--load-curve --jitter 10%").unwrap();
    assert_eq!(load.jitter, 0.1);
}

#[test]
fn a_row_has_the_same_columns_whatever_was_measured() {
    let config = parse("").unwrap().config().unwrap();
    let full = settings::summary_record(&made_up_result("lamport", &[40, 50], None), &config);
    let empty = settings::summary_record(&made_up_result("lamport", &[], None), &config);
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
    assert_eq!(text("enqueue_p9999_two_modes"), "");
    assert_eq!(text("failed_dequeues"), "7");
    assert_eq!(text("depth_mean"), "1.50");
    assert_eq!(text("sender_stamp_ns"), "12.5");
    assert_eq!(text("dequeue_floor_min_ns"), "11");
    assert_eq!(text("latency_floor_p50_ns"), "100.5");
    // No floor beside a figure that there is not.
    assert_eq!(text("intended_latency_floor_min_ns"), "");
    assert_eq!(text("intended_latency_p50_ns"), "");
}

#[test]
fn a_broken_queue_and_two_modes_are_marked() {
    let config = parse("").unwrap().config().unwrap();
    let failed = |name: &str, outcome: Outcome| {
        let mut result = made_up_result(name, &[40, 41], Some("run 2 failed"));
        result.runs[1].outcome = outcome;
        Finished::new(&result, &config)
    };
    let mut late = made_up_result("late", &[40, 41, 42, 43], None);
    for (run, p50_ns) in late.runs.iter_mut().zip([400.0, 401.0, 900.0, 901.0]) {
        let times = run.times.as_mut().unwrap();
        times.intended = Some(Summary {
            p50_ns,
            ..times.latency.clone()
        });
    }
    let all = [
        Finished::new(&made_up_result("good", &[40, 41, 42, 43], None), &config),
        Finished::new(&made_up_result("split", &[40, 41, 90, 91], None), &config),
        Finished::new(&late, &config),
        failed("bad", Outcome::Wrong),
        failed("slow", Outcome::GaveUp),
        failed("coarse", Outcome::Unjudged),
    ];
    let text = overview(&all, Measure::Time, None);
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("split").ends_with("two modes"), "{text}");
    assert!(line("late").ends_with("two modes"), "{text}");
    assert!(line("bad").ends_with("BROKEN"), "{text}");
    assert!(line("slow").ends_with("GAVE UP"), "{text}");
    assert!(line("coarse").ends_with("UNJUDGED"), "{text}");
    assert!(!line("good").contains("two modes"), "{text}");
    // A queue that is wrong has no figures, also none of a run in which it was not.
    assert!(!line("bad").contains('.'), "{text}");
    let record = settings::summary_record(
        &made_up_result("bad", &[40, 41], Some("run 2 failed")),
        &config,
    );
    for column in ["throughput_per_s", "latency_p50_ns", "failed_enqueues"] {
        assert_eq!(record.get(column).unwrap().text(), "", "{column}");
    }
}

/// A result of runs by what an enqueue took in each.
fn made_up_result(queue: &str, runs: &[i64], failure: Option<&str>) -> PointResult {
    PointResult {
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
    }
}

/// What is warned of where each run had so many late starts.
fn warnings(words: &str, late: u64, failure: Option<&str>) -> String {
    let arguments = parse(words).unwrap();
    let config = arguments.config().unwrap();
    let mut result = made_up_result("lamport", &[40, 41], failure);
    result.point.sender = arguments.senders().unwrap()[0];
    result.point.capacity = arguments.capacity.0[0];
    for run in &mut result.runs {
        run.missed.sender = late;
    }
    Warnings::default().of(&result, &config).join("\n")
}

#[test]
fn starts_that_are_late_are_told_by_their_share_of_the_starts_there_are() {
    let bursty = "--load bursty --burst 20 --count 1000 --warmup 500";
    // All of the blocks, which are a twentieth of the elements.
    let text = warnings(bursty, 50, None);
    assert!(text.contains("100 of 100 blocks"), "{text}");
    assert!(!warnings(bursty, 2, None).contains("late"));
    let rate = "--load constant-rate --count 1000 --warmup 100000";
    assert!(warnings(rate, 51, None).contains("102 of 2000 enqueues"));
    assert!(!warnings(rate, 49, None).contains("late"));
}

#[test]
fn a_queue_that_does_not_wrap_around_is_warned_of() {
    let text = warnings("--capacity 65536 --count 20000", 0, None);
    assert!(text.contains("65536") && text.contains("wraps"), "{text}");
    assert!(!warnings("--capacity 65536 --count 1000000", 0, None).contains("wraps"));
    // The default is enough for the default.
    assert!(!warnings("", 0, None).contains("wraps"));
}

#[test]
fn only_a_queue_that_is_wrong_is_called_broken() {
    let mut result = made_up_result("lamport", &[40], Some("run 1 was given up"));
    let config = parse("").unwrap().config().unwrap();
    for (outcome, is_broken) in [
        (Outcome::Wrong, true),
        (Outcome::GaveUp, false),
        (Outcome::Unjudged, false),
    ] {
        result.runs[0].outcome = outcome;
        let text = Warnings::default().of(&result, &config).join("\n");
        assert!(text.contains("given up"), "{text}");
        assert_eq!(text.contains("broken"), is_broken, "{text}");
    }
}

#[test]
fn queues_for_many_threads_are_marked_in_the_tables() {
    let config = parse("").unwrap().config().unwrap();
    let names = ["lamport", "crossbeam-array"];
    let all = names.map(|name| Finished::new(&made_up_result(name, &[40, 41], None), &config));
    for text in [overview(&all, Measure::Time, None), details(&all, None)] {
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line(names[0]).contains(" spsc "), "{text}");
        if cfg!(feature = "competitors") {
            assert!(line(names[1]).contains(" mpmc "), "{text}");
        }
    }
}

#[test]
fn a_table_that_is_left_out_is_told_of() {
    let config = parse("").unwrap().config().unwrap();
    let one = Finished::new(&made_up_result("lamport", &[40, 41], None), &config);
    assert_eq!(
        note_on_details(&vec![one.clone(); 20], Measure::Time, false),
        None
    );
    for note in [
        note_on_details(&vec![one.clone(); 21], Measure::Time, false),
        note_on_details(std::slice::from_ref(&one), Measure::Time, true),
    ] {
        assert!(note.unwrap().contains("summary.csv"));
    }
    assert_eq!(note_on_details(&[one], Measure::Throughput, true), None);
}

#[test]
fn a_throughput_is_never_shown_as_nothing() {
    let config = parse("").unwrap().config().unwrap();
    // One element takes so many nanoseconds.
    let table = |fast: i64, slow: i64| {
        let finished: Vec<Finished> = [fast, slow]
            .into_iter()
            .map(|ns| Finished::new(&made_up_result("lamport", &[ns; 6], None), &config))
            .collect();
        overview(&finished, Measure::Throughput, None)
    };
    for (fast, slow, expected) in [
        (40, 5_000, ["M/s", "25.00..25.00", "0.20..0.20"]),
        (40, 500_000, ["k/s", "25000.00..25000.00", "2.00..2.00"]),
        (
            1_000_000,
            100_000_000,
            ["/s", "1000.00..1000.00", "10.00..10.00"],
        ),
    ] {
        let text = table(fast, slow);
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn a_topology_is_a_pair_of_each_kind_and_what_there_is_not_is_left_out() {
    use crate::host::CoreRelation::*;
    let machine = Machine::new(1, 2, 2);
    for cpu in 0..4 {
        machine.cache(cpu, 0, 3, "0-3");
    }
    let (cpus, absent) = super::drive::pairs(&machine.topology()).unwrap();
    let kinds: Vec<_> = cpus.iter().map(|cpus| cpus.cores).collect();
    assert_eq!(kinds, [Some(SmtSiblings), Some(SameCache)]);
    assert!(cpus.iter().all(|cpus| cpus.sender != cpus.receiver));
    let missing: Vec<_> = absent.iter().map(|left_out| left_out.cores).collect();
    assert_eq!(missing, [Some(OtherCache), Some(OtherSocket)]);
    assert!(absent[1].reason.contains("other-socket"));

    let one = Machine::new(1, 1, 1);
    let error = super::drive::pairs(&one.topology()).unwrap_err();
    assert!(error.to_string().contains("--topology"), "{error}");
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
