//! What a run holds of the machine, and what it tells of it.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::machine::Machine;
use crate::program::{LIMIT, Program, hcabench};

const LATENCY: &str = "/dev/cpu_dma_latency";

/// The longest time that a CPU may take to wake, in microseconds.
fn latency_us() -> i32 {
    let bytes = std::fs::read(LATENCY).unwrap();
    i32::from_ne_bytes(bytes[..4].try_into().unwrap())
}

#[test]
fn idle_cpus_are_kept_awake_while_it_is_measured() {
    let machine = Machine::take();
    let before = latency_us();
    assert_ne!(before, 0);
    let out = machine.out("held");
    let running = hcabench("--burst 8192 --pause 5ms --warmup 0")
        .out(&out)
        .start();
    let deadline = Instant::now() + LIMIT;
    while latency_us() != 0 {
        assert!(Instant::now() < deadline, "idle states are not held");
        sleep(Duration::from_millis(20));
    }
    running.signal(Signal::SIGINT);
    running.wait(LIMIT);
    assert_eq!(latency_us(), before);

    for (argument, told) in [("", "held off"), ("--allow-idle-states", "allowed")] {
        let settings = &machine
            .measured_as(told, &format!("--burst 20 {argument}"))
            .points()[0]
            .settings;
        assert_eq!(settings["obtained"]["idle_states"], told);
        assert_eq!(settings["run"]["allow_idle_states"], told == "allowed");
    }
}

struct Away(PathBuf);

impl Away {
    fn take(path: &str) -> Self {
        let away = PathBuf::from(format!("{path}.away"));
        std::fs::rename(path, &away).unwrap();
        Away(away)
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        std::fs::rename(&self.0, self.0.with_extension("")).unwrap();
    }
}

#[test]
fn idle_states_that_cannot_be_held_are_told() {
    let machine = Machine::take();
    let away = Away::take(LATENCY);
    let ended = machine.ends("--burst 20", 0);
    drop(away);
    ended.warns("idle CPUs may enter deep sleep states");
    let settings = &machine.results().points()[0].settings;
    assert_eq!(settings["obtained"]["idle_states"], "not held off");
}

#[test]
fn completion_vectors_are_those_of_the_devices() {
    let machine = Machine::take();
    let listed = hcabench("devices --json").ends(0);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let count = listed["devices"][1]["device"]["limits"]["completion_vectors"]
        .as_u64()
        .unwrap();
    let last = count.checked_sub(1).unwrap();
    let out = machine.out("results");
    let too_high = format!("--poll event --comp-vector {last},{count}");
    let refused = machine.ends(&too_high, 2);
    refused.says(&[
        &format!("--comp-vector {count}"),
        "rxe1",
        &format!("has {count}"),
    ]);
    assert!(!out.exists());

    let asked = format!("{last},0");
    let results = machine.measured_as(
        &out,
        &format!("--poll event --burst 20 --comp-vector {asked}"),
    );
    results.check(1);
    let settings = &results.points()[0].settings;
    assert_eq!(settings["run"]["comp_vector"], asked);
    // SoftRoCE has no interrupts.
    let end = |vector: u64| serde_json::json!({ "vector": vector, "interrupt_cpus": null });
    let expected = serde_json::json!({ "sender": end(last), "receiver": end(0) });
    assert_eq!(settings["obtained"]["completion_vectors"], expected);
}

#[test]
fn two_ends_of_one_device_have_two_vectors() {
    let machine = Machine::take();
    let words = "--sender rxe0 --receiver rxe0 --connect direct --poll event --burst 20";
    let results = machine.measured(words);
    let settings = &results.points()[0].settings;
    let found = &settings["obtained"]["completion_vectors"];
    assert_eq!(
        [&found["sender"]["vector"], &found["receiver"]["vector"]],
        [0, 1]
    );
}

#[test]
fn variables_of_the_drivers_are_in_the_result() {
    let machine = Machine::take();
    let out = machine.out("results");
    let starter = ["env", "MLX5_SCATTER_TO_CQE=0", "IBV_SHOW_WARNINGS=1"];
    let program = &crate::program::path();
    Program::under(&starter, program, "--burst 20")
        .out(&out)
        .ends(0);
    let settings = &machine.results().points()[0].settings;
    let expected = serde_json::json!({ "IBV_SHOW_WARNINGS": "1", "MLX5_SCATTER_TO_CQE": "0" });
    assert_eq!(settings["obtained"]["environment"], expected);
}

#[test]
fn the_floor_is_told_in_both_directions_and_the_clocks_are_compared() {
    let machine = Machine::take();
    let results = machine.measured("--burst 20 --clock monotonic,tsc");
    results.check(2);
    for row in results.summary().rows {
        let number = |column: &str| row.text(column).parse::<f64>().unwrap();
        assert!(number("floor_p50_ns") > 0.0 && number("floor_back_p50_ns") > 0.0);
        assert!(number("clock_offset_bound_ns") > 0.0);
        assert!(number("clock_offset_ns").is_finite());
    }
}
