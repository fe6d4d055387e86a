//! The listings in C that need no RDMA device. A machine under load may stop a program at any time: no figure has to be
//! small. `oneway` runs in `tests/softroce`.

use crate::common;
use crate::testing::Has as _;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::LIMIT;
use crate::program::said::Said;
use common::listings::{COMPILERS, LISTINGS, run, start};
use hcabench::time::TscTrust;
use nix::sys::signal::Signal;

/// The Rust items that the listings name. That this compiles shows that each exists.
macro_rules! named_items {
    ($($(#[$when:meta])* $item:path,)*) => {
        mod named {
            $($(#[$when])* #[allow(unused_imports)] use $item as _;)*
        }
        /// Their paths, whether or not this build has them.
        const NAMED: &[&str] = &[$(stringify!($item)),*];
    };
}

named_items! {
    hcabench::bench::cores::loops,
    hcabench::bench::hca,
    hcabench::bench::hca::result::analysis::judge,
    hcabench::bench::hca::loops::completion,
    hcabench::bench::hca::loops::completion::Collector,
    hcabench::bench::hca::loops::control::Control,
    #[cfg(feature = "rdma")]
    hcabench::bench::hca::ends::endpoints::Endpoints,
    hcabench::bench::hca::loops::receiver,
    hcabench::bench::hca::loops::receiver::receive,
    #[cfg(feature = "rdma")]
    hcabench::bench::hca::run::PointRunner,
    hcabench::bench::hca::loops::sender,
    hcabench::bench::hca::loops::sender::send,
    hcabench::bench::hca::loops::stamper::restamp,
    hcabench::buffer::HugeBuffer,
    hcabench::buffer::PageSize,
    hcabench::buffer::PayloadBuffer,
    hcabench::buffer::Region,
    hcabench::cli,
    hcabench::generators::Chase,
    hcabench::generators::Generators,
    hcabench::generators::accesses::Accesses,
    hcabench::host::pinning::pin_current_thread,
    #[cfg(feature = "rdma")]
    hcabench::rdma::cm::ActiveEndpoint,
    #[cfg(feature = "rdma")]
    hcabench::rdma::cm::EventChannel,
    #[cfg(feature = "rdma")]
    hcabench::rdma::cm::PassiveEndpoint,
    hcabench::pacing::ConstantRate,
    hcabench::pacing::Pacing,
    hcabench::stats::percentile_of_sorted,
    hcabench::time::Clock,
    hcabench::time::Posix,
    hcabench::time::Counter,
    hcabench::time::TscTrust,
    hcabench::time::calibrate_against,
}

fn listings() -> Vec<(String, String)> {
    let mut all: Vec<_> = std::fs::read_dir(LISTINGS)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|kind| kind == "c" || kind == "h")
        })
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

fn items_in(text: &str) -> BTreeSet<String> {
    text.match_indices("hcabench::")
        .map(|(at, _)| {
            text[at..]
                .chars()
                .take_while(|&one| one.is_alphanumeric() || one == '_' || one == ':')
                .collect::<String>()
        })
        .collect()
}

#[test]
fn every_listing_names_the_rust_item_that_does_the_same_and_it_exists() {
    let mut named = BTreeSet::new();
    for (name, text) in listings() {
        let (head, _) = text.split_once("*/").unwrap();
        assert!(head.starts_with("/*\n"), "{name} begins with a comment");
        assert!(head.contains("In Rust: "), "{name} names no Rust item");
        let items = items_in(head);
        assert!(!items.is_empty(), "{name} names no Rust item");
        named.extend(items);
    }
    let known: BTreeSet<String> = NAMED.iter().map(|&path| path.replace(' ', "")).collect();
    assert_eq!(named, known);
}

#[test]
fn the_table_of_the_readme_lists_every_listing_with_its_items() {
    let readme = std::fs::read_to_string(format!("{LISTINGS}/README.md")).unwrap();
    for (name, text) in listings() {
        let row = readme
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("{name} has no row in listings/README.md"));
        let (head, _) = text.split_once("*/").unwrap();
        assert_eq!(items_in(row), items_in(head), "{name}");
    }
}

#[test]
fn what_the_method_consists_of_is_there() {
    let names: Vec<String> = listings().into_iter().map(|(name, _)| name).collect();
    for name in [
        "timespec",
        "send_time",
        "cq_time",
        "time_thread",
        "cm_switch",
        "signal_generation",
        "timerfd_wait",
        "rdtsc",
        "rdtscp",
        "rdtscp_wait",
        "clock_loop",
        "oneway",
        "pointer_chase",
        "memory_bandwidth",
        "cache_line",
    ] {
        let found = [format!("{name}.h"), format!("{name}.c")]
            .iter()
            .any(|file| names.contains(file));
        assert!(found, "no listing {name}");
    }
}

/// On whose word the TSC is a clock here, as the listings put it.
fn trusted() -> &'static str {
    match TscTrust::find() {
        Ok(TscTrust::Invariant) => "invariant",
        Ok(TscTrust::ClockSource) => "clock-source",
        Ok(TscTrust::Architecture) => unreachable!("this is x86-64"),
        Err(_) => "none",
    }
}

#[test]
fn rdtsc_rdtscp_and_clock_gettime_measure_the_same_interval() {
    let trust = trusted();
    for compiler in COMPILERS {
        let said = Said::by(&run(compiler, "clocks", "--interval 300 --readings 200000").expect(0));
        assert_eq!(said.text("tsc_trust"), trust);
        assert_eq!(said.count("readings"), 200_000);
        let raw = said.number("raw_ns");
        // It was slept by the monotonic clock, which is slewed and may be that much faster than the raw one.
        assert!(raw >= 299e6, "{raw}");
        // Both instructions read one counter. The closest readings may be torn apart: a microsecond is granted.
        let apart = said.number("rdtsc_cycles") - said.number("rdtscp_cycles");
        assert!(apart.abs() <= said.number("tsc_hertz") / 1e6, "{apart}");
        if trust != "none" {
            assert_eq!(said.count("backward_steps"), 0);
            for clock in ["rdtsc_ns", "rdtscp_ns"] {
                let ratio = said.number(clock) / raw;
                assert!((0.999..1.001).contains(&ratio), "{clock}: {ratio}");
            }
        }
    }
}

/// Whether the steps of a run add up to its time. A step is noticed after it was due, so the time may be longer.
fn adds_up(said: &Said) {
    let (taken, missed) = (said.count("taken"), said.count("missed"));
    assert_eq!(taken + missed, said.count("last_number"));
    let periods = said.number("elapsed_ns") / said.number("period_ns");
    let steps = (taken + missed) as f64;
    // The end may be many steps after the last; then as many are missing. Two clocks agree within a thousandth.
    let late = said.number("elapsed_ns") * 0.05 + 50e6;
    let fewest = periods - late / said.number("period_ns");
    let is_possible = (fewest..=periods * 1.001 + 1.0).contains(&steps);
    assert!(is_possible, "{steps} steps in {periods} periods");
}

#[test]
fn the_two_waits_lose_no_step_and_count_those_of_a_stall() {
    for compiler in COMPILERS {
        for wait in ["timerfd", "rdtscp"] {
            for rate in [1_000, 100_000] {
                let words = format!("--wait {wait} --rate {rate} --duration 200 --stall 30");
                let said = Said::by(&run(compiler, "signal_generation", &words).expect(0));
                if wait == "rdtscp" {
                    assert_eq!(said.text("tsc_trust"), trusted());
                    if trusted() == "none" {
                        continue;
                    }
                }
                adds_up(&said);
                let period = said.number("period_ns");
                let (stall, gap) = (said.number("stall_ns"), said.number("stall_gap_ns"));
                assert!(stall >= 30e6 && gap >= stall, "{stall}, {gap}");
                // A stall of 30 periods swallows 29 whole steps at the least, and no more than the gap has room for.
                let missed = said.number("stall_missed");
                assert!(
                    missed >= (stall / period).floor() - 1.0
                        && missed <= gap / period * 1.001 + 1.0,
                    "{compiler} {wait} {rate}: {missed} steps missed, {stall} ns stalled, {gap} ns between samples"
                );
                assert!(said.number("missed") >= missed);
            }
        }
    }
}

#[test]
fn a_program_that_is_stopped_has_missed_as_many_steps_as_that_took() {
    // Without a trusted TSC the second wait has no period of known length.
    let waits = ["timerfd", "rdtscp"];
    for wait in &waits[..if trusted() == "none" { 1 } else { 2 }] {
        let words = format!("--wait {wait} --rate 1000 --duration 5000");
        let running = start("gcc", "signal_generation", &words);
        running.wait_for_line("generating=1");
        std::thread::sleep(Duration::from_millis(100));
        running.signal(Signal::SIGSTOP);
        let stopped = Instant::now();
        std::thread::sleep(Duration::from_millis(200));
        let length = stopped.elapsed();
        running.signal(Signal::SIGCONT);
        let said = Said::by(&running.wait(LIMIT).expect(0));
        adds_up(&said);
        // It may take some milliseconds until the signal stops it.
        let least = length.as_millis() as u64 - 50;
        let missed = said.count("missed");
        assert!(missed >= least, "{wait}: {missed} missed in {length:?}");
    }
}

#[test]
fn the_bare_clock_loops_say_what_an_iteration_costs() {
    for compiler in COMPILERS {
        let text = run(compiler, "clock_loop", "all 20000").expect(0).stdout;
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<serde_json::Value> = lines.collect();
        let names = lines.iter().map(|line| line["clock"].as_str().unwrap());
        let expected = [
            "realtime",
            "monotonic",
            "monotonic-raw",
            "rdtsc",
            "rdtscp",
            "rdtscp-lfence",
        ];
        assert!(names.eq(expected), "{text}");
        for line in &lines {
            assert_eq!(line["iterations"], 20_000);
            let [median, min] = ["median", "min"].map(|key| line[key].as_f64().unwrap());
            assert!(median > 0.0 && median >= min, "{line}");
            if line["unit"] == "ns" {
                assert_eq!(line["median"], line["median_ns"]);
            } else {
                // Cycles of the counter; no TSC counts at less than 100 MHz or more than 10 GHz.
                let hertz = median / line["median_ns"].as_f64().unwrap() * 1e9;
                assert!((1e8..1e10).contains(&hertz), "{line}");
            }
        }
    }
}

#[test]
fn the_pointer_chase_goes_along_all_lines_in_the_pages_that_were_asked_for() {
    for compiler in COMPILERS {
        for pages in ["4k", "2m"] {
            let words = format!("--size 4 --window 2 --windows 3 --pages {pages}");
            let ended = run(compiler, "pointer_chase", &words);
            if pages == "2m" && !ended.is_success() {
                ended.stderr.has(&["asked for huge pages"]);
                continue;
            }
            let said = Said::by(&ended);
            let expected: &[&str] = match pages {
                "4k" => &["small"],
                _ => &["huge", "transparent-huge"],
            };
            assert!(expected.contains(&said.text("pages")), "{pages}");
            assert_eq!(said.count("lines"), (4 << 20) / 64);
            assert_eq!(said.count("cycle"), said.count("lines"));
            assert!(said.count("steps") >= 3 * 4096);
            assert!(said.number("ns") > 0.0 && said.number("mean_ns") > 0.0);
        }
    }
}

#[test]
fn a_cache_line_goes_to_and_fro_between_two_cpus() {
    let cpus = hcabench::host::pinning::current_affinity().unwrap();
    let mut cpus = cpus.iter();
    let (first, second) = (cpus.next().unwrap(), cpus.next());
    for compiler in COMPILERS {
        let words = |other| format!("--ask {first} --answer {other} --batches 50");
        // With itself a CPU makes no pair.
        let same = run(compiler, "cache_line", &words(first));
        same.expect(2).stderr.has(&["usage:", "two CPUs"]);
        let Some(second) = second else { continue };
        let said = Said::by(&run(compiler, "cache_line", &words(second)).expect(0));
        assert_eq!(said.count("batches"), 45);
        let [least, median, mean] = ["least_ns", "ns", "mean_ns"].map(|name| said.number(name));
        assert!(
            0.0 < least && least <= median && least <= mean,
            "{least} {median} {mean}"
        );
    }
}

#[test]
fn each_bandwidth_is_measured_by_each_instruction_set_that_there_is() {
    let sets = [
        ("sse2", true),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
    ];
    // Of two threads on one CPU, both do their part.
    let cpu = hcabench::host::pinning::current_cpu().unwrap().to_string();
    let cpus = format!("{cpu},{cpu}");
    let words = format!("--size 2 --window 1 --windows 2 --pages 4k --cpus {cpus}");
    for compiler in COMPILERS {
        for (set, is_there) in sets {
            for kind in ["read", "copy", "triad"] {
                for store in ["regular", "non-temporal"] {
                    // What it reads and stores it checks itself.
                    let words = format!("{words} --kind {kind} --store {store}");
                    let ended = run(compiler, &format!("memory_bandwidth-{set}"), &words);
                    if !is_there {
                        ended.expect(2);
                        continue;
                    }
                    let ended = ended.expect(0);
                    let said = Said::by(&ended);
                    assert_eq!((said.text("set"), said.count("threads")), (set, 2));
                    assert!(said.number("mb_s") > 0.0 && said.number("mean_mb_s") > 0.0);
                }
            }
        }
    }
}

#[test]
fn what_is_not_allowed_is_refused_with_what_is() {
    for (program, words, said) in [
        (
            "signal_generation",
            "--wait timerfd --rate 0",
            "--rate: '0' is not allowed, must be a whole number from 1",
        ),
        ("signal_generation", "--rate 10", "usage:"),
        (
            "clocks",
            "--interval 1e3",
            "--interval: '1e3' is not allowed",
        ),
        (
            "clock_loop",
            "sundial 10",
            "CLOCK: 'sundial' is not allowed",
        ),
        ("clock_loop", "rdtsc 0", "ITERATIONS: '0' is not allowed"),
        ("pointer_chase", "--size 0", "--size: '0' is not allowed"),
        (
            "pointer_chase",
            "--pages 1g",
            "--pages: '1g' is not allowed, must be 2m or 4k",
        ),
        (
            "memory_bandwidth-sse2",
            "--kind write",
            "--kind: 'write' is not allowed",
        ),
        (
            "memory_bandwidth-sse2",
            "--kind read --cpus 0,x",
            "--cpus: 'x' is not allowed",
        ),
        ("memory_bandwidth-sse2", "--cpus 0", "usage:"),
        ("cache_line", "--ask 0", "usage:"),
        (
            "cache_line",
            "--ask 0 --answer 1 --batches 9",
            "--batches: '9' is not allowed, must be a whole number from 10",
        ),
    ] {
        run("gcc", program, words).expect(2).stderr.has(&[said]);
    }
}
