//! Stamps of completions by the adapter's clock, which the model makes of CLOCK_MONOTONIC_RAW: with an offset, and at a
//! rate that is a little off the one that the driver reports (`CLOCK_PPM` in `model.h`).

use serde_json::Value;

use super::{Host, Measured};
use crate::common::{Row, number, rows};
use crate::testing::Has as _;

/// The clock of the run is the one that the model's is made of.
const STAMPED: &str = "--hw-timestamps --clock monotonic-raw";

fn stamp(row: &Row, column: &str) -> Option<i64> {
    row[column].parse().ok()
}

/// Each message of a run has its own stamps, within the stated error, and the summary is of them.
fn has_its_own_stamps(measured: &Measured) -> Vec<Row> {
    let summary = measured.is_whole().rows();
    for row in &summary {
        // Memory that is polled, or read, has no receive completion.
        let is_received = ["send", "write"].contains(&&*row["operation"]);
        let messages = rows(&measured.folder.join(&row["point"]).join("messages.csv"));
        for (end, ours, is_stamped) in [("recv", "t_recv", is_received), ("comp", "t_comp", true)] {
            let figure = |name: &str| &row[&format!("{end}_lag_{name}")];
            if !is_stamped {
                assert_eq!(figure("p50_ns"), "", "{row:?}");
                continue;
            }
            let error: i64 = figure("error_ns").parse().unwrap();
            assert!(error > 0, "{row:?}");
            for name in ["missing", "outside", "too_late"] {
                assert_eq!(figure(name), "0", "{end} {name}: {row:?}");
            }
            let mut lags = Vec::new();
            for message in &messages {
                let submitted = stamp(message, "t_subm_ns").unwrap();
                let ours = stamp(message, &format!("{ours}_ns"));
                let stamped = stamp(message, &format!("t_{end}_hw_ns"));
                // Requests that are not signalled complete with another one.
                assert!(ours.is_some() || row["unsignaled"] == "on", "{row:?}");
                assert_eq!(stamped.is_some(), ours.is_some(), "{message:?}: {row:?}");
                let Some((ours, stamped)) = ours.zip(stamped) else {
                    continue;
                };
                // It is made within the post, so after the one and before the other.
                let within = submitted - error..=ours + error;
                assert!(
                    within.contains(&stamped),
                    "{stamped} in {within:?}: {row:?}"
                );
                lags.push(ours - stamped);
            }
            lags.sort_unstable();
            let ends = [lags.first(), lags.last()].map(|lag| lag.unwrap().to_string());
            assert_eq!([figure("min_ns"), figure("max_ns")], [&ends[0], &ends[1]]);
        }
    }
    let found = measured.findings();
    // How long a loop takes to find a completion, and whether it keeps its CPU, is this machine's.
    let kinds: Vec<&String> = found
        .keys()
        .filter(|kind| kind.starts_with("hw-") && *kind != "hw-lag-unresolved")
        .collect();
    assert!(kinds.is_empty(), "{found:?}");
    summary
}

#[test]
fn each_stamp_lies_where_the_model_made_it_within_the_stated_error() {
    let all = "--service rc,uc,ud --operation send,write,write-polled,read --poll busy,event";
    for character in ["connectx-ib", "connectx-roce"] {
        let measured = Host::with(character).measured(&format!("{STAMPED} {all}"));
        let summary = has_its_own_stamps(&measured);
        assert!(summary.len() > 6, "{summary:?}");
    }
}

#[test]
fn each_message_has_its_own_stamp_however_completions_come() {
    // The clock is that of the default, which NTP may steer.
    for words in [
        "--queue-pairs 3",
        "--unsignaled on --depth 16",
        "--repeat 3 --pause 20us",
        "--queue-pairs 3 --depth 8 --repeat 3 --poll event",
    ] {
        let words = format!("--hw-timestamps --service rc,ud {words}");
        let measured = Host::with("connectx-roce").measured(&words);
        has_its_own_stamps(&measured);
    }
}

#[test]
fn over_half_a_second_the_rate_is_that_of_the_readings_not_that_of_the_driver() {
    const PPM: f64 = 37.0;
    let words = format!("{STAMPED} --service rc --pause 5ms --burst 100 --warmup 0");
    let measured = Host::with("connectx-roce").measured(&words);
    let row = &measured.is_whole().rows()[0];
    let error = number(row, "recv_lag_error_ns");
    // By the driver's rate the last stamps were off by 18 us.
    assert!(error < 9_000, "{row:?}");
    let messages = rows(&measured.folder.join(&row["point"]).join("messages.csv"));
    for message in messages {
        let [from, to, found] =
            ["t_subm_ns", "t_recv_ns", "t_recv_hw_ns"].map(|name| stamp(&message, name).unwrap());
        assert!(
            from - error as i64 <= found && found <= to + error as i64,
            "{message:?}"
        );
    }
    let settings = measured.settings(row);
    let clock = |name: &str| -> f64 {
        let value: &Value = &settings["instrument"]["hardware_stamps"]["receiver"][name];
        value.as_f64().unwrap()
    };
    assert_eq!(clock("nominal_khz"), 156_250.0);
    let off = clock("seen_khz") / clock("nominal_khz") - 1.0;
    let within = clock("seen_within");
    assert!((off - PPM * 1e-6).abs() <= within, "{off} within {within}");
}

#[test]
fn an_adapter_without_stamps_is_refused_by_name_and_devices_shows_who_has_them() {
    for (character, reason) in [
        ("bnxt", "does not stamp completions"),
        ("hns", "does not stamp completions"),
        ("efa", "does not stamp completions"),
        ("irdma-roce", "by a clock that its driver does not read"),
        ("irdma-iwarp", "by a clock that its driver does not read"),
    ] {
        let host = Host::with(character);
        let folder = crate::testing::temporary("results");
        let out = folder.join("none");
        for operation in ["send", "read"] {
            let words = format!("--hw-timestamps --quiet --operation {operation}");
            let ended = host.hcabench(&words).out(&out).ends(2);
            ended
                .stderr
                .has(&["--hw-timestamps: ", reason, "leave it out"]);
            assert!(!out.exists(), "{character}");
        }
        let shown = host.ends("devices", 0).stdout;
        shown.has(&["completion stamps"]);
        shown.lacks(&["MHz"]);
        let is_unreadable = shown.contains("17 bit, clock not readable");
        assert_eq!(is_unreadable, character.starts_with("irdma"), "{shown}");
    }
    let shown = Host::with("connectx-ib").ends("devices", 0).stdout;
    shown.has(&["63 bit, 156.25 MHz"]);
}
