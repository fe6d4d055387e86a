//! Traffic in the background of the measured one.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::loss::wait_for_traffic;
use crate::machine::{Away, Disturbance, Machine};
use crate::program::{LIMIT, hcabench};
use crate::results::Row;

/// By which every point is measured for half a second, so that a background at 500 messages a second sends some.
const HALF_A_SECOND: &str = "--burst 250 --rate 500 --warmup 0";

fn only<'a>(rows: &[&'a Row]) -> &'a Row {
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0]
}

#[test]
fn it_is_sent_beside_the_measured_messages_and_counted() {
    let machine = Machine::take();
    for connect in ["cm", "direct"] {
        let results = machine.measured_as(
            connect,
            &format!("{HALF_A_SECOND} --connect {connect} --background 0,500@4KiB,500@4KiBx2"),
        );
        let summary = results.summary();
        // The machine has two CPUs, so each background has a point beside it that sends nothing.
        assert_eq!(summary.rows.len(), 5, "{connect}: {:?}", summary.rows);
        let none = only(&summary.matching(&[("background", "0")]));
        for column in ["background_traffic", "background_thread"] {
            assert_eq!(none.text(column), "", "{connect}");
        }
        for column in [
            "background_offered_bytes_per_s",
            "background_delivered_bytes_per_s",
            "background_completed",
        ] {
            assert_eq!(none.decimal(column), 0.0, "{connect}: {column}");
        }
        for (background, queue_pairs) in [("500@4096", 1), ("500@4096x2", 2)] {
            let of = |traffic| {
                only(
                    &summary
                        .matching(&[("background", background), ("background_traffic", traffic)]),
                )
            };
            let (sent, unsent) = (of("sent"), of("none"));
            for row in [sent, unsent] {
                assert_eq!(row.text("background_thread"), "cpu-shared", "{row:?}");
                assert_eq!(row.count("messages_received"), 250, "{row:?}");
                assert!(row.count("background_completed") > 100, "{row:?}");
            }
            let offered = 500.0 * 4096.0;
            assert_eq!(sent.decimal("background_offered_bytes_per_s"), offered);
            let is_delivered = sent.decimal("background_delivered_bytes_per_s") > 0.0;
            assert!(is_delivered, "{sent:?}");
            assert_eq!(unsent.decimal("background_delivered_bytes_per_s"), 0.0);
            // A write of 4 KiB is four packets of the path's MTU. The packets of one that was under way on each queue pair
            // when counting began may have been sent before.
            let packets = |row: &Row| row.count("packets_sent");
            let least = 4 * (sent.count("background_completed") - queue_pairs);
            assert!(packets(sent) >= 250 + least, "{sent:?}");
            let half_of_it = 2 * unsent.count("background_completed");
            assert!(packets(unsent) < 250 + half_of_it, "{unsent:?}");
        }
    }
}

#[test]
fn it_is_rc_whatever_is_measured_and_goes_with_rounds() {
    let machine = Machine::take();
    let results = machine.measured(&format!(
        "{HALF_A_SECOND} --service uc,ud --background 500@1000x3 --background-cpu 0 --rounds 2"
    ));
    let sent = results.summary();
    let sent = sent.matching(&[("background_traffic", "sent")]);
    assert_eq!(sent.len(), 2);
    for row in sent {
        assert!(row.count("background_completed") > 200, "{row:?}");
    }
    let settings = &results.points()[0].settings;
    assert_eq!(settings["run"]["background_cpu"], 0);
    assert_eq!(settings["obtained"]["placement"]["background"], 0);
}

#[test]
fn more_than_the_path_takes_is_told() {
    let machine = Machine::take();
    let slow = Disturbance::of_messages("veth0", "rate 20mbit limit 10000");
    machine
        .ends(&format!("{HALF_A_SECOND} --background 4k@4KiB"), 0)
        .warns("of --background 4000@4096 was delivered");
    drop(slow);
    let summary = machine.results().summary();
    let sent = only(&summary.matching(&[("background_traffic", "sent")]));
    let delivered = sent.decimal("background_delivered_bytes_per_s");
    assert!(delivered < sent.decimal("background_offered_bytes_per_s") / 2.0);
    assert!(sent.count("background_missed") > 0, "{sent:?}");
}

#[test]
fn a_signal_ends_it_with_the_burst() {
    let machine = Machine::take();
    // The third point would take 80 s. The threads and sessions of those before it have ended by then.
    let words = "--burst 20,8192 --pause 10ms --warmup 0 --background 1@8";
    let running = machine.start(words);
    machine.wait_for_point(3);
    wait_for_traffic();
    let signalled = Instant::now();
    running.signal(Signal::SIGINT);
    running.wait(LIMIT).expect(1).says(&["interrupted by"]);
    assert!(signalled.elapsed() < Duration::from_secs(20));
    assert!(machine.results().is_marked());
}

#[test]
fn a_device_that_goes_away_ends_it() {
    let machine = Machine::take();
    let words = "--burst 8192 --pause 10ms --warmup 0 --background 100@4KiB";
    let running = machine.start(words);
    wait_for_traffic();
    let away = Away::take("rxe1");
    running.wait(LIMIT).expect(1).says(&["removed"]);
    away.bring_back();
}

#[test]
fn what_the_devices_cannot_do_is_refused() {
    let _machine = Machine::take();
    // rxe's largest message is 8 MiB.
    hcabench("--background 1@16MiB")
        .ends(2)
        .says(&["--background 1@16777216", "8388608 bytes"]);
    hcabench("--background 1@4k --background-cpu 77")
        .ends(2)
        .says(&["--background-cpu 77", "does not exist"]);
}
