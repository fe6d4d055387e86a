//! `ci/test` boots a machine with four CPUs for it: with two, none is left for a generator.

use crate::testing::Has as _;
use std::thread::available_parallelism;

use nix::sys::signal::Signal;

use crate::loss::wait_for_traffic;
use crate::machine::Machine;
use crate::program::LIMIT;
use crate::results::Row;

/// Whether a generator has a CPU beside sender, receiver and completion thread.
fn has_room() -> bool {
    available_parallelism().unwrap().get() > 3
}

fn load_of(row: &Row) -> &str {
    row.text("memory_load_percent")
}

#[test]
fn each_load_is_a_point_where_a_cpu_is_left_else_it_has_a_reason() {
    let machine = Machine::take();
    let words = "--burst 100 --pause 100us --warmup 10 --memory-load off,50%,100% --rounds 6";
    machine
        .start(words)
        // Each of the rounds makes and calibrates its generators.
        .wait(3 * LIMIT)
        .expect(0);
    let summary = machine.results().summary();
    let loads: Vec<&str> = summary.rows.iter().map(load_of).collect();
    for row in &summary.rows {
        assert_eq!(row.text("rounds"), "6", "{row:?}");
        assert_eq!(row.count("messages_received"), 600, "{row:?}");
        // From six rounds on there is an interval.
        let bounds = ["low", "high"].map(|bound| row.decimal(&format!("latency_p50_{bound}_ns")));
        let median = row.decimal("latency_p50_ns");
        assert!((bounds[0]..=bounds[1]).contains(&median), "{row:?}");
    }
    assert_eq!(summary.rows[0].text("memory_load_mb_s"), "");
    if !has_room() {
        assert_eq!(loads, ["0"]);
        let left_out = machine.results().left_out();
        let loads: Vec<&str> = left_out.rows.iter().map(load_of).collect();
        assert_eq!(loads, ["50", "100"]);
        for row in &left_out.rows {
            let reason = row.text("reason");
            reason.has(&["no CPU is left for a generator"]);
        }
        return;
    }
    assert_eq!(loads, ["0", "50", "100"]);
    for point in machine.results().points() {
        let settings = &point.settings;
        let percent = settings["point"]["memory_load_percent"].as_u64();
        let calibration = &settings["instrument"]["memory_load"];
        let generators = &settings["obtained"]["memory_load"]["generators"];
        if percent == Some(0) {
            assert!(calibration.is_null() && generators.is_null(), "{settings}");
            continue;
        }
        assert!(calibration["peak_mb_s"].as_f64() > Some(0.0), "{settings}");
        assert_eq!(calibration["loads"][1]["pause_nops"], 0);
        let placement = &settings["obtained"]["placement"];
        for thread in ["sender", "receiver", "completion"] {
            let cpu = placement[thread].as_u64().unwrap().to_string();
            assert_ne!(generators.as_str(), Some(cpu.as_str()), "{settings}");
        }
    }
    for row in &summary.rows[1..] {
        assert!(row.decimal("memory_load_mb_s") > 0.0, "{row:?}");
    }
}

#[test]
fn a_signal_ends_a_burst_under_load() {
    let machine = Machine::take();
    let load = if has_room() { "100%" } else { "off" };
    let words = format!("--burst 8192 --pause 10ms --warmup 0 --memory-load {load}");
    let running = machine.start(&words);
    wait_for_traffic();
    running.signal(Signal::SIGINT);
    running.wait(LIMIT).expect(1).says(&["interrupted by"]);
    let results = machine.results();
    assert!(results.is_marked());
    // What was measured until then stays.
    let summary = results.summary();
    assert!(summary.rows[0].count("messages_received") > 0);
    let is_told = !summary.rows[0].text("memory_load_mb_s").is_empty();
    assert_eq!(is_told, has_room(), "{:?}", summary.rows[0]);
}
