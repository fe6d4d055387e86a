//! The sender is on veth0, whose packets are messages, the receiver on veth1, whose packets are acknowledgements; both
//! carry datagrams of the connection manager.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::machine::{Disturbance, Machine};
use crate::program::{LIMIT, hcabench};
use crate::results::{Results, Row};
use crate::settings::lossy_sweep;

fn row(out: &Path, service: &str) -> Row {
    let summary = Results::at(out).summary();
    let found = summary.matching(&[("service", service)]);
    assert_eq!(found.len(), 1, "{summary:?}");
    found[0].clone()
}

#[test]
fn unreliable_services_report_exactly_what_was_dropped() {
    for percent in [1, 20] {
        // Without a warm-up, whose losses nobody counts.
        let words = "--service uc,ud --burst 2000";
        let (_machine, _loss, rows) = lossy_sweep(&format!("loss {percent}%"), words, 2);
        let lost = rows.iter().map(|row| row.count("messages_lost"));
        assert!(lost.clone().all(|lost| lost > 0), "{rows:?}");
        // The mean is 40 or 800 of 4000; so far from it netem does not come in the lifetime of the universe.
        let (lost, few) = (lost.sum::<u64>(), 4000 * percent / 100 / 4);
        assert!((few..10 * few).contains(&lost), "{lost} at {percent} %");
    }
}

#[test]
fn repetitions_after_losses_stay_right() {
    let words = "--service uc,ud --burst 500 --repeat 3 --poll event --size 64";
    let (machine, _loss, _) = lossy_sweep("loss 20%", words, 2);
    for point in machine.results().points() {
        let messages = point.messages();
        for repeat in 0..3 {
            let of_repeat = |received: bool| {
                messages
                    .iter()
                    .filter(|one| one.repeat == repeat && one.t_recv.is_some() == received)
                    .count()
            };
            assert!(of_repeat(false) > 0, "repetition {repeat} lost nothing");
            assert!(of_repeat(true) > 250, "repetition {repeat} lost the most");
        }
    }
}

#[test]
fn unreliable_services_lose_nothing_by_a_loss_on_the_way_back() {
    let machine = Machine::take();
    let _loss = Disturbance::of_messages("veth1", "loss 20%");
    let results = machine.measured("--service uc,ud --timeout 1s --burst 1000");
    results.check(2);
    for row in results.summary().rows {
        assert_eq!(row.count("messages_lost"), 0, "{row:?}");
    }
}

/// Losses that hit the connection manager and ARP too: either the connections come about, or the error names the step.
#[test]
fn connections_over_a_lossy_link_come_about_or_say_which_step_failed() {
    let machine = Machine::take();
    for interface in ["veth0", "veth1"] {
        let out = machine.out(interface);
        let loss = Disturbance::of_everything(interface, "loss 5%");
        crate::machine::sh("ip neigh flush dev veth0; ip neigh flush dev veth1");
        let ended = hcabench("--service uc,ud --timeout 1s --burst 1000 --warmup 0")
            .out(&out)
            .run();
        if ended.status.code() == Some(0) {
            Results::at(&out).check(2);
            let lost: u64 = ["uc", "ud"]
                .map(|service| row(&out, service).count("messages_lost"))
                .iter()
                .sum();
            if interface == "veth0" {
                assert!(0 < lost && lost <= loss.dropped());
            } else {
                assert_eq!(lost, 0);
            }
        } else {
            let ended = ended.expect(1);
            let last = ended.stderr.lines().last().unwrap_or_default();
            let steps = ["resolving", "connecting", "accepting", "connection request"];
            let is_there = steps.iter().any(|step| last.contains(step));
            assert!(is_there, "{}", ended.stderr);
            assert!(Results::at(&out).is_marked());
        }
    }
}

#[test]
fn a_reliable_connection_delivers_everything_or_tells_what_failed() {
    let machine = Machine::take();
    for (interface, percent) in [("veth0", 1), ("veth0", 20), ("veth1", 20)] {
        let out = machine.out(format!("{interface}-{percent}"));
        let loss = Disturbance::of_messages(interface, &format!("loss {percent}%"));
        let ended = hcabench("--service rc --burst 2000").out(&out).run();
        assert!(loss.dropped() > 0);
        drop(loss);
        if ended.status.code() == Some(0) {
            Results::at(&out).check(1);
            assert_eq!(row(&out, "rc").count("messages_received"), 2000);
        } else {
            let ended = ended.expect(1);
            let has_failed = row(&out, "rc").count("failed_completions") > 0;
            assert!(has_failed, "{}", ended.stderr);
        }
    }
}

#[test]
fn what_arrives_twice_or_out_of_order_is_not_miscounted() {
    let machine = Machine::take();
    for (number, netem) in ["duplicate 10%", "delay 2ms reorder 50%"]
        .into_iter()
        .enumerate()
    {
        let out = machine.out(number.to_string());
        let disturbance = Disturbance::of_messages("veth0", netem);
        let ended = hcabench("--service rc,uc,ud --burst 600 --repeat 2 --timeout 1s")
            .out(&out)
            .ends(0);
        drop(disturbance);
        let results = Results::at(&out);
        results.check(3);
        let rc = row(&out, "rc");
        assert_eq!(rc.count("messages_received"), 1200, "{netem}");
        assert_eq!(rc.count("messages_duplicated"), 0, "{netem}");
        let ud = row(&out, "ud");
        if netem.starts_with("duplicate") {
            let doubled = ud.count("messages_duplicated");
            assert!(doubled > 20, "{doubled} doubled");
            // A doubled message takes the receive request of another one, which is lost.
            assert!(ud.count("messages_lost") <= doubled + ud.count("messages_late"));
            ended.warns("arrived twice");
        } else {
            for service in ["uc", "ud"] {
                let row = row(&out, service);
                assert_eq!(row.count("messages_received"), 1200, "{netem}, {service}");
            }
        }
    }
}

/// The invariant check sum of RoCE finds a changed bit, so the packet is dropped.
#[test]
fn what_is_changed_on_the_way_is_lost_or_repeated_and_never_taken_for_whole() {
    let machine = Machine::take();
    let out = machine.out("results");
    let corruption = Disturbance::of_messages("veth0", "corrupt 10%");
    let words = "--service rc,uc,ud --burst 1000 --warmup 0 --size 64 --timeout 1s";
    machine.ends(words, 0).warns("were lost");
    drop(corruption);
    machine.results().check(3);
    for service in ["rc", "uc", "ud"] {
        let row = row(&out, service);
        let of = |column| row.count(column);
        assert_eq!(of("messages_corrupted"), 0, "{service}");
        assert_eq!(of("messages_received") + of("messages_lost"), 1000);
        match service {
            "rc" => assert!(of("retransmissions") > 0 && of("messages_lost") == 0),
            _ => assert!(of("messages_lost") > 0, "{service}"),
        }
    }
}

#[test]
fn two_runs_on_the_same_devices_count_their_own_messages_only() {
    let machine = Machine::take();
    let words = "--service rc,uc,ud --burst 400 --timeout 5s";
    let running = machine.start(&format!("{words} --pause 2ms"));
    wait_for_traffic();
    let other = machine.measured_as("other", words);
    running.wait(LIMIT).expect(0);
    for results in [machine.results(), other] {
        results.check(3);
        for row in results.summary().rows {
            assert_eq!(row.count("messages_received"), 400, "{row:?}");
            assert_eq!(row.count("messages_foreign"), 0, "{row:?}");
        }
    }
}

#[test]
fn a_wire_cut_in_mid_run_ends_unreliable_services_by_the_timeout() {
    let machine = Machine::take();
    for service in ["uc", "ud"] {
        let out = machine.out(service);
        // There from the beginning: a discipline that comes in the middle loses packets of its own.
        let wire = Disturbance::of_messages("veth0", "loss 0%");
        let words = "--burst 1000 --pause 1ms --timeout 1s --warmup 0";
        let running = machine.start_as(&out, &format!("--service {service} {words}"));
        wait_for_traffic();
        wire.change("loss 100%");
        running.wait(LIMIT).expect(0);
        Results::at(&out).check(1);
        let row = row(&out, service);
        assert!(row.count("messages_received") > 0);
        assert_eq!(row.count("messages_lost"), wire.dropped());
    }
}

#[test]
fn a_wire_cut_in_mid_run_ends_a_reliable_connection_with_an_error() {
    let machine = Machine::take();
    for poll in ["busy", "event"] {
        let out = machine.out(poll);
        let wire = Disturbance::of_messages("veth0", "loss 0%");
        // Nobody wants to wait for the 100 s that the burst would take.
        let words = format!("--burst 5000 --pause 20ms --warmup 0 --poll {poll}");
        let running = machine.start_as(&out, &words);
        wait_for_traffic();
        wire.change("loss 100%");
        let ended = running
            .wait(Duration::from_secs(30))
            .expect(1)
            .says(&["rc-send", "transport retry counter exceeded"]);
        drop(wire);
        let results = Results::at(&out);
        assert!(results.is_marked() && results.points()[0].is_marked());
        let row = row(&out, "rc");
        assert_eq!(row.text("status"), "incomplete");
        assert!(row.count("failed_completions") > 0, "{}", ended.stderr);
        assert!(row.count("messages_sent") < 5000);
    }
}

/// The kernel's own patience is longer than the user's: what is missing then is no ordinary loss, as it may still come.
#[test]
fn a_timeout_before_a_reliable_connection_gives_up_is_an_error() {
    let machine = Machine::take();
    let cut = Disturbance::of_messages("veth0", "loss 100%");
    machine
        .ends("--burst 50 --warmup 0 --timeout 100ms", 1)
        .says(&["rc-send", "50 messages", "did not arrive within --timeout"]);
    drop(cut);
    assert!(machine.results().is_marked());
}

/// Waits until messages leave veth0: more than connecting takes.
pub(crate) fn wait_for_traffic() {
    let packets = || -> u64 {
        let text = std::fs::read_to_string("/sys/class/net/veth0/statistics/tx_packets").unwrap();
        text.trim().parse().unwrap()
    };
    let before = packets();
    crate::machine::wait_until("messages are sent", Duration::from_secs(60), || {
        packets() > before + 60
    });
    sleep(Duration::from_millis(100));
}
