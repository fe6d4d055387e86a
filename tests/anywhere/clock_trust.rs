//! `hcabench clock --trust` on the machine that runs the test, as a user would call it.
use crate::common::alone;
use crate::program::{Ended, Program, hcabench};
use crate::testing::Has as _;
use std::time::Duration;

use hcabench::host::pinning;
use nix::sys::signal::Signal;
use serde_json::Value;

fn trust(words: &str) -> Program {
    hcabench(&format!("clock {words}"))
}

fn run(words: &str) -> Ended {
    trust(words).run()
}

#[test]
fn it_comes_to_a_verdict_and_leaves_nothing_out() {
    let _alone = alone();
    let ended = run("--trust --trust-reads 200000 --json");
    let report = ended.json();
    let verdict = report["verdict"].as_str().unwrap();
    let expected = match verdict {
        "trusted" | "usable-with-care" => 0,
        "not-to-be-trusted" => 1,
        other => panic!("{other}"),
    };
    ended.expect(expected);
    let reasons = report["reasons"].as_array().unwrap();
    assert_eq!(verdict == "trusted", reasons.is_empty());
    let sources = report["frequencies"]["sources"].as_array().unwrap();
    let names = sources.iter().map(|it| it["source"].as_str().unwrap());
    let expected = [
        "calibration",
        "cpuid-crystal",
        "cpuid-nominal",
        "hypervisor",
        "kernel-file",
        "kernel-perf",
        "kernel-log",
        "ntp",
    ];
    assert!(names.eq(expected), "{sources:?}");
    for source in sources {
        let is_missing = source["missing"].is_string();
        assert_ne!(source["hertz"].is_number(), is_missing, "{source}");
    }
    let migrations = &report["migrations"]["found"];
    assert_eq!(migrations["reads"], 200_000);
    let cpus = pinning::current_affinity().unwrap();
    assert_eq!(migrations["cpus"], cpus.len());
    assert_eq!(report["cpus"], cpus.to_string());
    if cpus.len() > 1 {
        let offsets = report["offsets"]["found"]["cpus"].as_array().unwrap();
        assert_eq!(offsets.len(), cpus.len() - 1);
        assert!(migrations["crossings"].as_u64().unwrap() > 0);
        let shared = &report["shared"]["found"];
        assert!(shared["reads"].as_u64().unwrap() >= 200_000, "{shared}");
        let compared = shared["crossings"].as_u64().unwrap();
        assert!(compared > 0, "{shared}");
        assert_eq!(has_reason(&report, "few-crossings"), compared < 1000);
    }
}

#[test]
fn on_one_cpu_the_comparison_of_cpus_is_missing_and_says_why() {
    let _alone = alone();
    let report = std::thread::spawn(|| {
        let first = pinning::current_affinity().unwrap().first().unwrap();
        // What this thread starts inherits its CPU.
        pinning::pin_current_thread(first).unwrap();
        run("--trust --trust-reads 10000 --json").json()
    });
    let report = report.join().unwrap();
    for what in ["offsets", "shared"] {
        report[what]["missing"].as_str().unwrap().has(&["one CPU"]);
    }
    assert_eq!(report["migrations"]["found"]["migrations"], 0);
}

#[test]
fn the_text_names_the_verdict_and_quiet_prints_nothing() {
    let _alone = alone();
    let ended = run("--trust --trust-reads 10000");
    let text = ended.stdout;
    assert!(text.starts_with("The TSC of this machine: "), "{text}");
    text.has(&["invariant", "clock source", "CPUID 15H", "moved over CPUs"]);
    let quiet = run("--trust --trust-reads 10000 --quiet");
    assert_eq!([&quiet.stdout, &quiet.stderr], [""; 2]);
    assert!(matches!(quiet.status.code(), Some(0 | 1)), "{quiet:?}");
}

fn has_reason(report: &Value, name: &str) -> bool {
    let reasons = report["reasons"].as_array().unwrap();
    reasons.iter().any(|it| it["reason"] == name)
}

#[test]
fn a_given_rate_is_used_recorded_and_doubted() {
    let _alone = alone();
    let measured = run("--trust --trust-reads 10000 --json").json();
    let Some(hertz) = measured["rate"]["hertz"].as_f64() else {
        // A busy machine: the verdict must say so, and a given rate is used all the same.
        assert!(has_reason(&measured, "rate-unsettled"), "{measured}");
        let report = run("--trust --trust-reads 10000 --json --tsc-khz 2000000").json();
        assert_eq!(report["rate"]["hertz"].as_f64(), Some(2e9));
        return;
    };
    let off = (hertz / 1e3 * 1.01).round();
    let ended = run(&format!(
        "--trust --trust-reads 10000 --json --tsc-khz {off}"
    ));
    let report = ended.json();
    assert_eq!(report["rate"]["hertz"].as_f64(), Some(off * 1e3));
    assert_eq!(report["rate"]["source"], "tsc-khz");
    let Some(ppm) = report["rate"]["given_off_ppm"].as_f64() else {
        assert!(has_reason(&report, "rate-unsettled"), "{report}");
        return;
    };
    assert!((9_900.0..10_100.0).contains(&ppm), "{ppm}");
    assert!(has_reason(&report, "given-rate"), "{report}");
    ended
        .stderr
        .has(&[&format!("warning: --tsc-khz {off} is +")]);
}

#[test]
fn a_signal_ends_it() {
    let _alone = alone();
    let running = trust("--trust --trust-reads 10000000000").start();
    std::thread::sleep(Duration::from_secs(2));
    running.signal(Signal::SIGINT);
    let ended = running.wait(Duration::from_secs(20)).expect(1);
    ended.stderr.has(&["interrupted"]);
    assert_eq!(ended.stdout, "");
}
