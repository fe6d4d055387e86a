//! The option table, from text to configuration and points.

use crate::testing::Refused as _;
use proptest::prelude::*;

use super::*;
use crate::cli::refused::{self, assert_refused, parse_words};
use crate::queues::registry;

fn parse(words: &str) -> Result<QueueArguments, clap::Error> {
    refused::parse(words)
}

fn only_sender(words: &str) -> Result<EndLoad, UsageError> {
    let senders = parse(words).unwrap().senders()?;
    assert_eq!(senders.len(), 1);
    Ok(senders[0])
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let arguments = parse("").unwrap();
    // All but those that baton can be, which have their names.
    let of_baton = ["baton-batching", "baton-demoting"];
    assert_eq!(arguments.queue.0.len(), registry::names().len() - 2);
    assert!(
        of_baton
            .iter()
            .all(|kind| !arguments.queue.0.iter().any(|name| name == kind))
    );
    assert!(parse(&format!("--queue {}", of_baton.join(","))).is_ok());
    assert_eq!(arguments.capacity.0, [1024]);
    assert_eq!(arguments.payload.0, [8]);
    assert_eq!(arguments.senders().unwrap()[0].load, Load::None);
    assert_eq!(arguments.receiver().unwrap().load, Load::None);
    let config = arguments.config().unwrap();
    let times = (config.length, config.warmup);
    let [length, warmup] = [20, 50].map(Duration::from_millis);
    assert_eq!(times, (RoundLength::Time(length), warmup));
    let counted = parse("--count 20k").unwrap().config().unwrap();
    assert_eq!(counted.length, RoundLength::Elements(20_000));
    assert_eq!(arguments.repeat, None);
    assert_eq!(QueueArguments::DEFAULT_ROUNDS, 9);
    assert_eq!(config.measure, Measure::Time);
    assert!(!config.measure_failed);
    assert_eq!(config.clock, ClockKind::finest());
}

#[test]
fn the_commands_of_the_documentation_are_understood() {
    let load = only_sender("--queue all --load constant-rate --rate 1M --count 1000000").unwrap();
    assert_eq!(load.load, Load::ConstantRate { rate_per_s: 1e6 });
    let load = only_sender("--load bursty --burst 20 --wait 100ns --jitter 10%").unwrap();
    let bursty = Load::Bursty {
        wait_ns: 100.0,
        group: 20,
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
            "--load constant-wait --group 3",
            ["--group", "constant-wait", "bursty"],
        ),
        ("--jitter 10%", ["--jitter", "none", "constant-wait"]),
    ] {
        parse(words).unwrap().senders().refused(&expected);
    }
    let receiver = parse("--receiver-rate 1M").unwrap().receiver();
    receiver.refused(&["--receiver-rate"]);
    for words in ["--measure-failed", "--elements", "--load-curve"] {
        let arguments = parse(&format!("{words} --measure throughput")).unwrap();
        arguments.config().refused(&[words, "time"]);
    }
}

#[test]
fn short_operations_are_timed_in_batches_or_without_fences() {
    let config = |words: &str| parse(words).unwrap().config();
    assert_eq!(config("").unwrap().per_stamp, 1);
    let batches = config("--per-stamp 64 --measure-failed --count 65").unwrap();
    assert_eq!((batches.per_stamp, batches.unfenced), (64, false));
    let unfenced = config("--clock counter-unfenced --load constant-rate").unwrap();
    assert_eq!((unfenced.per_stamp, unfenced.unfenced), (1, true));
    assert_eq!(unfenced.clock_name(), UnfencedCounter::NAME);
    for (option, with, allowed) in [
        ("--per-stamp 2", "--measure round-trip", "time"),
        ("--per-stamp 2", "--measure throughput", "time"),
        ("--per-stamp 2", "--measure counters", "time"),
        ("--per-stamp 2", "--producers 2", "--producers 1"),
        ("--per-stamp 2", "--scenario fan-out", "--producers 1"),
        ("--per-stamp 2", "--load constant-rate", "--load none"),
        (
            "--per-stamp 2",
            "--receiver-load bursty",
            "--receiver-load none",
        ),
        ("--per-stamp 2", "--load-curve", "--load none"),
        ("--per-stamp 2", "--elements", "--elements"),
        ("--per-stamp 2", "--clock tsc-unfenced", "with fences"),
        ("--per-stamp 65", "--count 64", "at most 63"),
        ("--per-stamp 64", "--count 64", "at most 63"),
        ("--per-stamp 2", "--count 1", "at most 1"),
        ("--clock tsc-unfenced", "--elements", "clocks with fences"),
        ("--clock tsc-unfenced", "--load-curve", "clocks with fences"),
        ("--clock tsc-unfenced", "--measure round-trip", "time"),
        ("--clock tsc-unfenced", "--measure throughput", "time"),
        ("--clock tsc-unfenced", "--consumers 2", "--consumers 1"),
    ] {
        // What several threads are refused by is not an option.
        let named = match with.split_once(' ') {
            Some(("--producers" | "--consumers" | "--scenario", _)) => "several threads",
            Some(("--clock", _)) => "-unfenced",
            _ => with,
        };
        let option_named = option.replace("tsc-unfenced", UnfencedCounter::NAME);
        config(&format!("{option} {with}")).refused(&[&option_named, named, allowed]);
    }
}

#[test]
fn several_threads_share_queues_by_scenarios() {
    let wirings = |words: &str| parse(words).unwrap().wirings();
    let found = |words: &str| -> Vec<_> {
        let wirings = wirings(words).unwrap().into_iter();
        wirings
            .map(|it| (it.scenario, it.publishers, it.subscribers))
            .collect()
    };
    assert_eq!(found(""), []);
    assert_eq!(found("--producers 3"), [(Scenario::RoundRobin, 3, 1)]);
    let words = "--producers 2 --consumers 2 --scenario fan-in,straight-run";
    assert_eq!(
        found(words),
        [(Scenario::FanIn, 2, 2), (Scenario::StraightRun, 2, 2)]
    );
    assert_eq!(found("--scenario fan-out"), [(Scenario::FanOut, 1, 1)]);
    let length = |words: &str| parse(words).unwrap().config().unwrap().length;
    assert_eq!(
        length("--consumers 2"),
        RoundLength::Time(Duration::from_millis(200))
    );
    assert_eq!(
        length("--consumers 2 --duration 3s"),
        RoundLength::Time(Duration::from_secs(3))
    );

    let words = "--producers 1 --consumers 2 --scenario";
    for (scenario, rule) in [
        ("straight-run", "both numbers must be equal"),
        ("round-robin,fan-in", "at least as many"),
    ] {
        let expected = ["--scenario", "--producers 1", "--consumers 2", rule];
        wirings(&format!("{words} {scenario}")).refused(&expected);
    }
    for option in [
        "--load-curve",
        "--count 5",
        "--topology",
        "--sender-cpu 0",
        "--receiver-cpu 0",
        "--memory-load 50%",
        "--elements",
        "--measure round-trip",
        "--measure counters",
    ] {
        let name = option.split(' ').next().unwrap();
        wirings(&format!("--producers 2 {option}")).refused(&[
            name,
            "several threads",
            "--producers 1",
        ]);
        assert!(parse(option).unwrap().wirings().unwrap().is_empty());
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
        ("--wait 5", ["--wait", "\"5\"", "1ns to 1day"]),
        ("--group 0", ["--group", "0", "from 1 to 1000000"]),
        ("--jitter 200%", ["--jitter", "200%", "0% to 100%"]),
        ("--measure all", ["--measure", "all", "throughput"]),
        ("--clock hpet", ["--clock", "hpet", "monotonic-raw"]),
        ("--count 0", ["--count", "0", "from 1 to 1073741824"]),
        ("--clock hpet", ["--clock", "hpet", "-unfenced"]),
        ("--per-stamp 0", ["--per-stamp", "0", "from 1 to 1024"]),
        (
            "--per-stamp 1025",
            ["--per-stamp", "1025", "from 1 to 1024"],
        ),
        ("--timeout 1us", ["--timeout", "1us", "1ms"]),
        ("--producers 0", ["--producers", "0", "from 1 to 64"]),
        ("--scenario ring", ["--scenario", "ring", "fan-in"]),
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

fn value() -> impl Strategy<Value = String> {
    let plausible = "all lamport 64 1024 8 256 none constant-wait constant-rate bursty 1M 10% 100ns 20 0 tsc \
                     monotonic time throughput try 5s";
    let plausible = prop::sample::select(plausible.split_whitespace().collect::<Vec<_>>());
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
            "--timeout", "--sender-cpu", "--per-stamp",
        ]), value()), 0..6),
    ) {
        let arguments = words.iter().flat_map(|(option, value)| [(*option).to_owned(), value.clone()]);
        if let Ok(queue) = parse_words::<QueueArguments>(arguments) {
            if let Ok(senders) = queue.senders() {
                for sender in senders {
                    // What is accepted can be paced.
                    let clock = crate::time::Posix::MONOTONIC;
                    sender.waiter(&clock, crate::pacing::MissPolicy::CatchUp);
                    prop_assert!(!sender.to_string().contains('/'));
                }
            }
            let _ = (queue.receiver(), queue.config());
        }
    }
}
