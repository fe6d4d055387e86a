//! The option table, from text to configuration.

use crate::testing::Has as _;
use std::collections::HashSet;

use clap::Args as _;
use proptest::prelude::*;

use super::*;
use crate::bench::hca::plan::{Limits, made_up::single};
use crate::bench::hca::settings::resources::{ResourceOption, ResourceSettings};
use crate::cli::refused::{self, assert_refused, parse_words};

fn parse(words: &str) -> Result<Config, clap::Error> {
    refused::parse(words).map(|it: HcaArguments| it.config())
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let config = parse("").unwrap();
    assert_eq!(config.sweep, single());
    let (warmup, repeat, timeout) = (Warmup::Messages(100), 1, Duration::from_secs(5));
    assert_eq!((config.warmup, config.repeat), (warmup, repeat));
    assert_eq!((config.timeout, config.priority), (timeout, None));
    assert_eq!(config.huge_pages, HugePagePolicy::Try);
    assert_eq!(config.uc_route, UcRouteRequest::Auto);
}

#[test]
fn a_switch_alone_is_on_and_a_list_sweeps() {
    let switches = |words| {
        let sweep = parse(words).unwrap().sweep;
        (sweep.inline, sweep.unsignaled)
    };
    let (off, on) = (Switch::Off, Switch::On);
    let alone = switches("--service rc --inline --burst 8192");
    assert_eq!(alone, (vec![on], vec![off]));
    let swept = switches("--inline off,on --unsignaled");
    assert_eq!(swept, (vec![off, on], vec![on]));
    let given = switches("--inline=on --unsignaled off");
    assert_eq!(given, (vec![on], vec![off]));
}

#[test]
fn a_named_route_needs_a_point_that_is_uc() {
    let checked = |words: &str| {
        let config = parse(words).unwrap();
        let plan = Plan::new(&config.sweep);
        check_uc_route(&config, &plan).map_err(|error| error.to_string())
    };
    for words in [
        "--service rc",
        "--service rc --uc-route auto",
        "--service rc,uc --uc-route patched",
        "--service uc --uc-route endpoint",
    ] {
        assert_eq!(checked(words), Ok::<(), String>(()), "{words}");
    }
    for (words, option) in [
        ("--service rc --uc-route patched", "--uc-route patched: "),
        ("--service ud --uc-route endpoint", "--uc-route endpoint: "),
    ] {
        let error = checked(words).unwrap_err();
        assert!(error.starts_with(option), "{words}: {error}");
        assert!(error.contains("--service uc"), "{words}: {error}");
    }
}

#[test]
fn poll_sets_both_sides_and_the_others_one_each() {
    let polls = |words| parse(words).unwrap().sweep.polls;
    let expected = [(Poll::Busy, Poll::Busy), (Poll::Event, Poll::Event)];
    assert_eq!(polls("--poll busy,event"), expected);
    assert_eq!(polls("--poll-recv event"), [(Poll::Event, Poll::Busy)]);
    let expected = [(Poll::Event, Poll::Busy)];
    assert_eq!(polls("--poll event --poll-comp busy"), expected);
    assert_eq!(
        polls("--poll-recv busy,event --poll-comp busy,event").len(),
        4
    );
}

#[test]
fn a_rate_stands_in_for_the_pause_and_each_is_spread_in_each_way() {
    let sweep = parse("--pause 1us,2us").unwrap().sweep;
    assert_eq!((sweep.pauses.len(), sweep.rates), (2, vec![None]));
    let sweep = parse("--rate 5k,20k --arrivals poisson,constant")
        .unwrap()
        .sweep;
    let rates: Vec<_> = (sweep.rates.iter().flatten())
        .map(|rate| (rate.per_second, rate.arrivals.name()))
        .collect();
    let each = [
        (5000, "poisson"),
        (5000, "constant"),
        (20_000, "poisson"),
        (20_000, "constant"),
    ];
    assert_eq!(sweep.pauses, vec![crate::time::Nanos(0)]);
    assert_eq!(rates, each.to_vec());
}

#[test]
fn errors_name_the_option_the_value_and_what_is_allowed() {
    let table = [
        ("--service xrc", ["--service", "xrc", "rc, uc, ud"]),
        ("--size 7", ["--size", "7", "from 8 bytes to 2 GiB"]),
        ("--burst 9000", ["--burst", "9000", "1 to 8192"]),
        ("--depth 0", ["--depth", "\"0\"", "from 1 to 8192"]),
        (
            "--queue-pairs 0",
            ["--queue-pairs", "\"0\"", "from 1 to 1024"],
        ),
        (
            "--queue-pairs 8,1025",
            ["--queue-pairs", "1025", "from 1 to 1024"],
        ),
        ("--poll spin", ["--poll", "spin", "busy, event"]),
        ("--pause 50", ["--pause", "50", "ns, us, ms, s"]),
        ("--rate 0", ["--rate", "0", "from 0.001 to 1G"]),
        ("--rate 1.5", ["--rate", "1.5", "whole number"]),
        (
            "--rate 5k --pause 1us",
            ["--rate", "--pause", "cannot be used"],
        ),
        (
            "--memory-load off,0",
            ["--memory-load", "\"0\"", "from 1 to 100"],
        ),
        ("--arrivals poisson", ["--arrivals", "--rate", "required"]),
        (
            "--hugepages 1G",
            ["--hugepages", "1G", "required, try, off"],
        ),
        (
            "--uc-route fast",
            ["--uc-route", "fast", "auto, endpoint, patched"],
        ),
        ("--priority 100", ["--priority", "100", "from 1 to 99"]),
        ("--timeout 0", ["--timeout", "0", "1ms"]),
        (
            "--warmup 9000",
            ["--warmup", "0 to 8192", "not a time from 1ms"],
        ),
        ("--comp-vector 1,x", ["--comp-vector", "x", "N or N,M"]),
        ("--sender rxe0:0", ["--sender", "rxe0:0", "port number"]),
    ];
    assert_refused(parse, &table);
}

fn options() -> Vec<String> {
    let command = HcaArguments::augment_args(clap::Command::new("hca"));
    let names = command.get_arguments().filter_map(|one| one.get_long());
    names.map(|name| format!("--{name}")).collect()
}

const PLAUSIBLE: &str = "rc uc ud send write 8 64 100 1MiB 8..32768 1..8192 4KiB on off busy event 0 50us 1ms submit tsc \
                         cm direct 0x20 512 monotonic-raw rxe0:1@10.0.0.1 1 99 try required patched 5s";

fn value() -> impl Strategy<Value = String> {
    let plausible = prop::sample::select(PLAUSIBLE.split(' ').collect::<Vec<_>>());
    prop_oneof![
        prop::collection::vec(plausible, 1..4).prop_map(|parts| parts.join(",")),
        "\\PC{0,12}",
        any::<i64>().prop_map(|number| number.to_string()),
        "[0-9.,=kKMGiBus]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_arguments_panic_and_every_point_is_measured_or_left_out(
        words in prop::collection::vec((prop::sample::select(options()), value()), 0..6),
        queue in 0_u32..20_000, mtu in 0_u32..5000, inline in 0_u32..2000,
    ) {
        let arguments = words.iter().flat_map(|(option, value)| [option.clone(), value.clone()]);
        if let Ok(arguments) = parse_words::<HcaArguments>(arguments) {
            let config = arguments.config();
            let sweep = &config.sweep;
            // A service type has not all attributes of the path.
            let paths_of = |&service: &Service| {
                let paths: HashSet<_> = sweep.paths.iter().map(|path| path.of(service)).collect();
                paths.len()
            };
            // A depth of a burst or more is a whole burst.
            let depths_of = |&burst: &u32| {
                let depth = |depth: &Option<u32>| depth.map_or(burst, |depth| depth.min(burst));
                sweep.depths.iter().map(depth).collect::<HashSet<_>>().len()
            };
            let product = [
                sweep.services.iter().map(paths_of).sum(), sweep.connects.len(), sweep.operations.len(), sweep.inline.len(), sweep.unsignaled.len(), sweep.polls.len(),
                sweep.timestamps.len(), sweep.clocks.len(), sweep.pauses.len(), sweep.rates.len(), sweep.receiver_pauses.len(), sweep.bursts.iter().map(depths_of).sum(), sweep.sizes.len(),
                sweep.queue_pairs.len(), sweep.backgrounds.len(), sweep.memory_loads.len(),
                sweep.resources.len(),
            ].iter().product::<usize>();
            let limits = Limits {
                reads: 16,
                atomics: true,
                queue_pairs: 1 << 10,
                queue_pair_work_requests: queue,
                completion_queue_entries: queue,
                path_mtu: mtu,
                message: u32::MAX,
                inline: vec![(Service::Rc, inline), (Service::Ud, inline / 2)],
            };
            let plan = Plan::new(sweep).within(&limits);
            prop_assert_eq!(plan.points.len() + plan.left_out.len(), product);
            prop_assert_eq!(plan.check().is_err(), plan.points.is_empty());
        }
    }
}

#[test]
fn completion_vectors_need_a_side_that_waits_for_events() {
    for polls in ["--poll event", "--poll busy,event", "--poll-comp event"] {
        let config = parse(&format!("{polls} --comp-vector 1")).unwrap();
        check_comp_vectors(&config).unwrap();
    }
    let config = parse("--comp-vector 1,2").unwrap();
    let text = check_comp_vectors(&config).unwrap_err().to_string();
    text.has(&["--comp-vector 1,2", "--poll event"]);
}

#[test]
fn stamps_of_adapters_are_of_one_host() {
    let words = |words| refused::parse::<HcaArguments>(words).unwrap();
    assert!(words("--hw-timestamps").config().hw_timestamps);
    assert!(!words("").config().hw_timestamps);
    checked(&words(
        "--hw-timestamps --operation send,read --poll busy,event",
    ))
    .unwrap();
    let error = checked(&words("--hw-timestamps --peer other:7")).unwrap_err();
    error
        .to_string()
        .has(&["--hw-timestamps", "--peer other:7", "two hosts"]);
    assert!(error.is::<UsageError>());
}

#[test]
fn a_rate_of_the_tsc_is_whole_kilohertz_and_needs_that_clock() {
    let rate = |words| parse(words).unwrap().tsc_khz.map(|rate| rate.hertz());
    assert_eq!(rate("--clock tsc"), None);
    assert_eq!(rate("--clock tsc --tsc-khz 2300000"), Some(2.3e9));
    for bad in ["99999", "10000001", "2.3e6", "x"] {
        let error = parse(&format!("--clock tsc --tsc-khz {bad}")).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        for word in ["--tsc-khz", bad, "100000", "10000000"] {
            assert!(text.contains(word), "{word:?} in {text}");
        }
    }
    let config = parse("--clock monotonic,tsc --tsc-khz 2300000").unwrap();
    check_tsc_khz(&config).unwrap();
    let config = parse("--clock monotonic --tsc-khz 2300000").unwrap();
    let text = check_tsc_khz(&config).unwrap_err().to_string();
    text.has(&["--tsc-khz 2300000", "--clock tsc"]);
}

#[test]
fn what_the_ends_are_made_with_is_off_and_each_of_it_is_a_list() {
    let resources = |words| parse(words).unwrap().sweep.resources;
    assert_eq!(resources("--burst 8"), [ResourceSettings::default()]);
    let [all] = resources("--srq --relaxed-ordering --odp --thread-domain")[..] else {
        panic!("one of each");
    };
    assert!(all.chosen().eq(ResourceOption::ALL));
    let config = parse("--srq off,on --odp on,off").unwrap();
    let both = |it: &ResourceSettings| (it.srq.is_on(), it.odp.is_on());
    let found: Vec<_> = config.sweep.resources.iter().map(both).collect();
    let expected = [(false, true), (false, false), (true, true), (true, false)];
    assert_eq!(found, expected);
    // In the results, where a point has it.
    let used = ResourceOption::ALL.map(|it| config.uses(it));
    assert_eq!(used, [true, false, true, false]);
    let error = parse("--srq maybe").unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string().has(&["--srq", "maybe", "off", "on"]);
}
