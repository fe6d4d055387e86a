//! The job that the program is for, and what stands where afterwards.

use crate::machine::Machine;
use crate::program::hcabench;
use crate::results::Results;
use crate::testing::Has as _;
use hcabench::results::units;
use serde_json::Value;
use std::fs;

#[test]
fn the_main_job_gives_8192_latencies_that_agree_with_their_summary() {
    let machine = Machine::take();
    let out = machine.out("results");
    let [lines, gauges] = ["run.jsonl", "run.prom"].map(|name| out.with_file_name(name));
    let exports = format!(
        "--json-lines {} --prometheus {}",
        lines.display(),
        gauges.display()
    );
    let ended = machine.ends(&format!("--service rc --inline --burst 8192 {exports}"), 0);

    let results = machine.results();
    results.check(1);
    let point = &results.points()[0];
    let messages = point.messages();
    assert_eq!(messages.len(), 8192);
    assert!(messages.iter().map(|one| one.seq).eq(0..8192));
    assert!(messages.iter().all(|one| one.latency.is_some()));
    assert!(messages.iter().all(|one| one.t_comp.is_some()));
    let row = results.row_of(point);
    assert_eq!(row.text("delivery_rate"), "1.000000");
    assert_eq!(row.count("loop_page_faults"), 0);
    assert_eq!(row.count("failed_completions"), 0);
    assert_eq!(row.count("completions"), 8192);
    assert!(!out.join("left_out.csv").exists());

    // What other programs get of it; tests/anywhere has the formats.
    let lines = fs::read_to_string(lines).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_type = |name: &str| {
        lines
            .iter()
            .filter(|line| line["type"] == name)
            .collect::<Vec<_>>()
    };
    assert_eq!(lines[0]["columns"]["latency_p50_ns"]["unit"], "ns");
    for kind in ["round", "point"] {
        let [line] = of_type(kind)[..] else {
            panic!("{kind}: {lines:?}")
        };
        assert_eq!(
            line["row"]["latency_p50_ns"].as_f64(),
            Some(row.decimal("latency_p50_ns"))
        );
    }
    assert_eq!(lines.last().unwrap()["status"], "complete");
    let gauges = fs::read_to_string(gauges).unwrap();
    let seconds = row.decimal("latency_p50_ns") / 1e9;
    let gauge = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        name.starts_with("hcabench_hca_latency_p50_seconds{")
            .then(|| value.parse::<f64>().ok())?
    };
    assert_eq!(gauges.lines().find_map(gauge), Some(seconds));

    // A table whose rows are as wide as its heading, with the figures of the summary.
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let heading = lines
        .iter()
        .position(|line| line.contains("p50") && line.contains("p99.9"))
        .unwrap_or_else(|| panic!("no table in:\n{}", ended.stdout));
    let p50 = units::significant(row.decimal("latency_p50_ns") / 1000.0);
    assert!(
        lines[heading..]
            .iter()
            .any(|line| line.split_whitespace().any(|cell| cell == p50)),
        "no {p50} in:\n{}",
        ended.stdout
    );
    ended.stdout.has(&["floor"]);
    ended.stderr.has(&[
        "sender:   rxe0 port 1 at 10.77.0.1",
        "receiver: rxe1 port 1 at 10.77.0.2",
        "software devices (rxe0, rxe1)",
        &format!("results:  {}", out.display()),
    ]);
}

#[test]
fn the_settings_tell_all_that_was_asked_for_and_obtained() {
    let machine = Machine::take();
    let words = "--service uc --burst 64 --size 512 --clock monotonic-raw --timeout 3s --warmup 7";
    let results = machine.measured(words);
    results.check(1);
    let settings = &results.points()[0].settings;
    let point = serde_json::json!({
        "service": "uc", "operation": "send", "size_bytes": 512, "burst": 64, "inline": "off", "unsignaled": "off",
        "poll_recv": "busy", "poll_comp": "busy", "pause_ns": 0, "receiver_pause_ns": 0, "timestamp": "submit",
        "clock": "monotonic-raw", "warmup": 64, "repeat": 1, "rate_per_s": null, "arrivals": null, "connect": "cm",
        "gid_index": null, "service_level": null, "traffic_class": null, "path_mtu_bytes": null, "pkey_index": null,
        "flow_label": null, "retry_count": null, "rnr_retry": null, "qp_timeout": null,
        "queue_pairs": 1, "depth": null, "srq": null, "relaxed_ordering": null, "odp": null, "thread_domain": null,
        "background": "0", "background_traffic": null, "background_thread": null, "memory_load_percent": null,
    });
    assert_eq!(settings["point"], point);
    assert_eq!(settings["run"]["timeout_ns"], 3_000_000_000_u64);
    let obtained = &settings["obtained"];
    // A warm-up is at least a burst.
    assert_eq!(obtained["warmup_messages"], 64);
    let [sender, receiver] = ["sender", "receiver"].map(|end| &obtained["devices"][end]);
    assert_eq!(sender["device"]["name"], "rxe0");
    assert_eq!(sender["address"], "10.77.0.1");
    assert_eq!(receiver["device"]["name"], "rxe1");
    assert_eq!(receiver["port"], 1);
    assert_eq!(receiver["device"]["ports"][0]["mtu"], 1024);
    let cpus = [
        &obtained["placement"]["sender"],
        &obtained["placement"]["receiver"],
    ];
    assert!(cpus[0].is_u64() && cpus[1].is_u64() && cpus[0] != cpus[1]);
    assert!(["thread", "sender"].contains(&obtained["completion_by"].as_str().unwrap()));
    let pages = obtained["pages"].as_array().unwrap();
    assert!(pages.len() == 3 && pages.iter().all(serde_json::Value::is_string));
    obtained["connection"]
        .as_str()
        .unwrap()
        .has(&["RDMA_PS_IB"]);
    for faults in ["sender", "receiver", "completion"] {
        assert_eq!(obtained["loop_faults"][faults], 0);
    }
    let instrument = &settings["instrument"];
    assert!(instrument["stamp"]["cost_ns"].as_f64().unwrap() > 0.0);
    assert!(instrument["stamp"]["resolution_ns"].as_f64().unwrap() > 0.0);
    assert!(instrument["floor"]["p50_ns"].as_f64().unwrap() > 0.0);
    let release = nix::sys::utsname::uname().unwrap();
    assert_eq!(
        settings["machine"]["kernel_release"].as_str(),
        release.release().to_str()
    );
    assert!(obtained["libraries"]["libibverbs"]["version"].is_string());
}

#[test]
fn json_is_all_that_stands_on_standard_output() {
    let machine = Machine::take();
    let words = "--json --service rc,ud --operation send,write --burst 64";
    let ended = machine.ends(words, 0);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let results = machine.results();
    results.check(3);
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    assert_eq!(document["left_out"].as_array().unwrap().len(), 1);
    for (row, point) in results.summary().rows.iter().zip(points) {
        assert_eq!(point["messages_received"], row.count("messages_received"));
        assert_eq!(point["latency_p50_ns"], row.decimal("latency_p50_ns"));
    }
}

#[test]
fn quiet_prints_nothing_and_without_out_the_results_are_dated() {
    let machine = Machine::take();
    let ended = hcabench("--quiet --burst 16")
        .in_folder(machine.path())
        .ends(0);
    assert_eq!(ended.stdout, "");
    let made: Vec<_> = std::fs::read_dir(machine.out("results"))
        .unwrap_or_else(|error| panic!("{error}\n{}", ended.stderr))
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(made.len(), 1, "{made:?}");
    Results::at(&made[0]).check(1);
}
