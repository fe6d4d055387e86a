//! Every setting: what can be measured is, and delivers everything; what cannot is left out with a reason, or refused.

use crate::machine::{Disturbance, Machine};
use crate::program::{Ended, hcabench};
use crate::results::{Point, Results, Row};
use crate::testing::Has as _;

pub(crate) struct Swept {
    results: Results,
    pub ended: Ended,
    _machine: Machine,
}

impl std::ops::Deref for Swept {
    type Target = Results;

    fn deref(&self) -> &Results {
        &self.results
    }
}

/// Runs a sweep in which nothing may be lost, and checks its points.
#[track_caller]
pub(crate) fn sweep(words: &str, points: usize) -> Swept {
    let machine = Machine::take();
    let ended = machine.ends(words, 0);
    let results = machine.results();
    results.check(points);
    for row in &results.summary().rows {
        let [sent, received] = ["sent", "received"].map(|it| row.count(&format!("messages_{it}")));
        assert_eq!(sent, received, "{row:?}");
        row.has_no(&["lost", "corrupted", "duplicated", "late", "foreign"]);
        assert_eq!(row.count("failed_completions"), 0, "{row:?}");
    }
    Swept {
        results,
        ended,
        _machine: machine,
    }
}

/// Runs a sweep over a wire that loses messages, and checks its points: all that is missing was lost there.
#[track_caller]
pub(crate) fn lossy_sweep(
    loss: &str,
    words: &str,
    points: usize,
) -> (Machine, Disturbance, Vec<Row>) {
    let machine = Machine::take();
    let loss = Disturbance::of_messages("veth0", loss);
    let ended = machine.ends(&format!("{words} --warmup 0 --timeout 1s"), 0);
    ended.warns("were lost");
    let results = machine.results();
    results.check(points);
    let rows = results.summary().rows;
    let lost: u64 = rows.iter().map(|row| row.count("messages_lost")).sum();
    assert!(lost > 0 && lost == loss.dropped(), "{lost}");
    // With what is checked above, all others have arrived.
    for row in &rows {
        assert_eq!(row.count("messages_corrupted"), 0, "{row:?}");
    }
    (machine, loss, rows)
}

/// The reasons of these points, which all have these words.
#[track_caller]
fn reasons(results: &Results, cells: &[(&str, &str)], words: &str) -> usize {
    let left_out = results.left_out();
    let found = left_out.matching(cells);
    for row in &found {
        row.text("reason").has(&[words]);
    }
    found.len()
}

#[test]
fn every_service_operation_poll_mode_and_signalling_delivers() {
    let words = "--service rc,uc,ud --operation send,write --poll busy,event --unsignaled off,on --burst 40 --warmup 10";
    let results = sweep(words, (3 * 2 - 1) * 2 * 2);
    let of_ud_write = [("service", "ud"), ("operation", "write")];
    assert_eq!(reasons(&results, &of_ud_write, "--operation write"), 4);
    assert_eq!(results.left_out().rows.len(), 4);
}

#[test]
fn both_stamps_on_every_clock() {
    let words = "--service rc,uc,ud --timestamp submit,send --clock monotonic,monotonic-raw,tsc --burst 20 --pause 200us";
    let results = sweep(words, 3 * 2 * 3);
    // The time until the HCA reads a message is printed for each pair, or why not.
    let shown = &results.ended.stdout;
    shown.has(&["submit to read"]);
    let (_, pairs) = shown.split_once("submit to read").unwrap();
    let services = ["rc ", "uc ", "ud "];
    let pairs = (pairs.lines()).filter(|line| services.iter().any(|one| line.starts_with(one)));
    assert!(pairs.count() >= 9, "{shown}");
    for point in results.points() {
        let calibrated = point.settings["instrument"]["tsc"]["hertz"].is_number();
        assert_eq!(calibrated, point.settings["point"]["clock"] == "tsc");
        let row = results.row_of(&point);
        let not_restamped = row.count("messages_not_restamped");
        let refreshed = !row.text("stamp_refresh_ns").is_empty();
        if point.settings["point"]["timestamp"] == "submit" {
            assert!(!refreshed && not_restamped == 0, "{row:?}");
        } else if not_restamped > 0 {
            // On two CPUs the stamp thread has none to itself.
            let warning = "messages were received before their stamp was rewritten";
            results.ended.warns(warning);
        } else {
            assert!(refreshed, "{row:?}");
        }
    }
}

#[test]
fn each_side_can_wait_in_its_own_way() {
    let words = "--service rc,ud --poll-recv busy,event --poll-comp event --burst 30";
    let results = sweep(words, 4);
    for row in results.summary().rows {
        assert_eq!(row.text("poll_comp"), "event");
    }
}

#[test]
fn repetitions_restart_the_numbers() {
    let words = "--service rc,uc,ud --operation send,write --repeat 3 --burst 50 --warmup 0";
    let results = sweep(words, 5);
    for row in results.summary().rows {
        assert_eq!((row.count("repeat"), row.count("messages_sent")), (3, 150));
    }
}

#[test]
fn a_burst_of_one() {
    sweep("--service rc,uc,ud --burst 1 --warmup 0", 3);
}

#[test]
fn a_warm_up_is_whole_bursts_or_a_time() {
    // The messages that were asked for, and those that came before the measured ones.
    for (asked, column, least) in [
        ("0", "0", 0),
        ("7", "40", 40),
        ("41", "80", 80),
        ("50ms", "", 40),
    ] {
        let results = sweep(&format!("--service rc,ud --burst 40 --warmup {asked}"), 2);
        for row in results.summary().rows {
            assert_eq!(row.text("warmup"), column);
            assert_eq!(row.count("messages_sent"), 40);
        }
        for point in results.points() {
            let settings = &point.settings;
            let done = settings["obtained"]["warmup_messages"].as_u64().unwrap();
            assert!(done >= least && done % 40 == 0, "{done}");
            assert!(column.is_empty() || done == least, "{done}");
            let asked = settings["run"]["warmup_ns"].as_u64();
            assert_eq!(asked, column.is_empty().then_some(50_000_000));
        }
    }
}

#[test]
fn every_size_that_the_service_type_can_carry() {
    let words = "--service rc,uc,ud --operation send,write --size 8..32768 --burst 12 --warmup 4";
    let results = sweep(words, 2 * 2 * 13 + 8);
    let left_out = results.left_out();
    let too_long: Vec<_> = left_out
        .matching(&[("service", "ud"), ("operation", "send")])
        .iter()
        .map(|row| row.count("size_bytes"))
        .collect();
    assert_eq!(too_long, [2048, 4096, 8192, 16384, 32768]);
    let of_send = [("service", "ud"), ("operation", "send")];
    assert_eq!(reasons(&results, &of_send, "path MTU is 1024"), 5);
    assert_eq!(left_out.rows.len(), 13 + 5);
}

#[test]
fn sizes_between_the_powers_of_two() {
    let words = "--service rc,uc,ud --operation send,write --size 9,100,1001 --burst 12 --warmup 4";
    let results = sweep(words, 5 * 3);
    for size in ["9", "100", "1001"] {
        let summary = results.summary();
        assert_eq!(summary.matching(&[("size_bytes", size)]).len(), 5);
    }
}

#[test]
fn sizes_up_to_the_largest_message_of_the_device() {
    let largest = 8 << 20;
    let results = sweep("--service rc --size 100000,8M,16M --burst 1 --warmup 0", 2);
    let said = format!("the largest message of these ports is {largest} bytes");
    let of_size = [("size_bytes", "16777216")];
    assert_eq!(reasons(&results, &of_size, &said), 1);
}

#[test]
fn inline_up_to_what_the_device_grants() {
    let granted: u64 = {
        let _machine = Machine::take();
        let ended = hcabench("devices --json").ends(0);
        let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let of = &document["devices"][0]["inline_bytes_granted"];
        let [rc, uc, ud] = ["rc", "uc", "ud"].map(|service| of[service].as_u64().unwrap());
        assert!(rc == uc && uc == ud, "rxe grants all the same: {of}");
        rc
    };
    assert!((8..32_768).contains(&granted), "{granted}");
    let fits = |size: &u64| *size <= granted;
    let sizes: Vec<u64> = (0..=12).map(|power| 8 << power).collect();
    let inline = sizes.iter().copied().filter(fits).count();
    let inline_datagrams = sizes
        .iter()
        .copied()
        .filter(fits)
        .filter(|size| *size <= 1024)
        .count();
    let words = "--service rc,uc,ud --inline --size 8..32768 --burst 12 --warmup 4";
    let results = sweep(words, 2 * inline + inline_datagrams);
    let limit = format!("at most {granted} bytes inline");
    assert_eq!(reasons(&results, &[("service", "rc")], &limit), 13 - inline);
    for point in results.points() {
        let size = point.settings["point"]["size_bytes"].as_u64().unwrap();
        let obtained = &point.settings["obtained"]["granted_inline"];
        assert!(obtained.as_u64().unwrap() >= size);
    }
}

#[test]
fn a_pause_spaces_the_messages() {
    let results = sweep("--service rc --burst 30 --pause 2ms", 1);
    let messages = results.points()[0].messages();
    for pair in messages.windows(2) {
        assert!(pair[1].t_subm - pair[0].t_subm >= 2_000_000, "{pair:?}");
    }
}

#[test]
fn a_rate_spaces_the_messages_and_tells_when_each_was_meant_to_be_posted() {
    let words = "--service rc,ud --rate 500,1000 --arrivals constant,poisson --seed 5 --burst 40";
    let results = sweep(words, 8);
    let intended = |point: &Point| -> Vec<i64> {
        let messages = point.messages();
        messages.iter().map(|one| one.t_intended.unwrap()).collect()
    };
    for point in results.points() {
        let row = results.row_of(&point);
        assert_eq!(row.text("pause_ns"), "", "{row:?}");
        let step = 1_000_000_000 / row.count("rate_per_s") as i64;
        let steps: Vec<i64> = (intended(&point).windows(2))
            .map(|pair| pair[1] - pair[0])
            .collect();
        if row.text("arrivals") == "constant" {
            let is_close = steps.iter().all(|found| (found - step).abs() <= 1);
            assert!(is_close, "{steps:?}");
        } else {
            assert!(steps.iter().any(|found| *found != steps[0]), "{steps:?}");
        }
        let messages = point.messages();
        let late = messages
            .iter()
            .map(|one| one.t_subm - one.t_intended.unwrap());
        assert!(late.clone().all(|late| late >= 0), "{row:?}");
        let missed = late.filter(|&late| late > step).count() as u64;
        assert_eq!(row.count("missed_steps"), missed, "{row:?}");
        let latencies = messages
            .iter()
            .map(|one| one.t_recv.unwrap() - one.t_intended.unwrap());
        let least = row.decimal("intended_latency_min_ns") as i64;
        assert_eq!(latencies.min(), Some(least), "{row:?}");
    }
    // Equal seeds, equal moments.
    let poisson = (results.points().into_iter())
        .filter(|point| point.name().contains("poisson500-"))
        .map(|point| {
            let moments = intended(&point);
            moments.iter().map(|at| at - moments[0]).collect()
        });
    let poisson: Vec<Vec<i64>> = poisson.collect();
    assert_eq!(poisson.len(), 2);
    assert_eq!(poisson[0], poisson[1]);
}

#[test]
fn a_pause_of_the_receiver_makes_points_of_their_own() {
    let results = sweep("--receiver-pause 0,20us --burst 30 --pause 200us", 2);
    for (point, away) in results.points().iter().zip([0, 20_000]) {
        let ending = format!("-away{away}ns");
        assert!(point.name().ends_with(&ending), "{}", point.name());
        assert_eq!(point.settings["point"]["receiver_pause_ns"], away);
        assert_eq!(results.row_of(point).count("receiver_pause_ns"), away);
    }
    results.ended.stdout.has(&["20000"]);
}

#[test]
fn devices_can_be_named_and_turned_round() {
    let words = "--service rc,ud --sender rxe1:1@10.77.0.2 --receiver rxe0 --burst 20";
    let results = sweep(words, 2);
    let devices = &results.points()[0].settings["obtained"]["devices"];
    assert_eq!(devices["sender"]["device"]["name"], "rxe1");
    assert_eq!(devices["receiver"]["device"]["name"], "rxe0");
}

#[test]
fn cpus_can_be_chosen() {
    let words = "--sender-cpu 1 --receiver-cpu 0 --completion-cpu 0 --poll-comp event --burst 20";
    let results = sweep(words, 1);
    let placement = &results.points()[0].settings["obtained"]["placement"];
    let cpus = ["sender", "receiver", "completion"].map(|role| placement[role].clone());
    assert_eq!(cpus.map(|cpu| cpu.as_u64().unwrap()), [1, 0, 0]);
}

#[test]
fn what_is_impossible_alone_is_refused_and_leaves_nothing_behind() {
    let machine = Machine::take();
    for (arguments, words) in [
        (
            "--service ud --operation write",
            &["--operation write", "--service ud"][..],
        ),
        (
            "--inline --timestamp send",
            &["--timestamp send", "--inline"],
        ),
        (
            "--service ud --size 2048",
            &["--size 2048", "--service ud", "1024"],
        ),
        ("--inline --size 32768", &["--inline", "--size 32768"]),
        ("--rate 0.5", &["--rate", "0.5"]),
        ("--rate 5k --pause 50us", &["--rate", "--pause"]),
        ("--arrivals poisson", &["--arrivals", "--rate"]),
        ("--size 7", &["--size", "7"]),
        ("--burst 8193", &["--burst", "8193"]),
        ("--burst 0", &["--burst"]),
        ("--service xrc", &["--service", "xrc"]),
        ("--pause 5", &["--pause"]),
    ] {
        let out = machine.out("results");
        let ended = machine.ends(arguments, 2);
        ended.stderr.has(words);
        assert_eq!(ended.stdout, "");
        assert!(!out.exists(), "{arguments} left {}", out.display());
    }
}
