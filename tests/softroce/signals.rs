//! SIGINT and SIGTERM in the middle of a sweep.

use crate::testing::Has as _;
use nix::sys::signal::Signal;

use crate::loss::wait_for_traffic;
use crate::machine::{Disturbance, Machine};
use crate::program::{END, LIMIT, hcabench};
use crate::results::Results;

fn ended_by(signal: Signal, poll: &str) {
    let machine = Machine::take();
    let running = machine.start(&format!(
        "--service rc,ud --poll {poll} --burst 50,8000 --pause 2ms"
    ));
    machine.wait_for_point(2);
    wait_for_traffic();
    running.signal(signal);
    let ended = running
        .wait(END)
        .expect(1)
        .says(&["burst8000", "interrupted by", signal.as_str()]);
    ended.stderr.has(&["(incomplete; go on by"]);

    let results = machine.results();
    assert!(results.mark().contains(signal.as_str()));
    results.whole_and_broken();
    let summary = results.summary();
    assert_eq!(summary.matching(&[("status", "complete")]).len(), 1);
    assert_eq!(summary.matching(&[("status", "incomplete")]).len(), 1);
}

#[test]
fn sigint_while_polling() {
    ended_by(Signal::SIGINT, "busy");
}

#[test]
fn sigterm_while_waiting_for_events() {
    ended_by(Signal::SIGTERM, "event");
}

/// What was posted and had not arrived when the signal came is neither sent nor lost.
#[test]
fn what_was_under_way_on_a_reliable_connection_is_not_lost() {
    let machine = Machine::take();
    for poll in ["busy", "event"] {
        let out = machine.out(poll);
        // As fast as it goes, so that many are under way.
        let words = format!("--poll {poll} --burst 8192 --repeat 50 --warmup 0");
        let running = machine.start_as(&out, &words);
        wait_for_traffic();
        running.signal(Signal::SIGINT);
        let ended = running.wait(LIMIT).expect(1);
        let results = Results::at(&out);
        let row = &results.summary().rows[0];
        assert_eq!(row.text("status"), "incomplete");
        assert_eq!(row.count("messages_lost"), 0, "{}", ended.stderr);
        let received = row.count("messages_received");
        assert!(received > 0, "{row:?}");
        assert!(row.count("messages_sent") == received, "{row:?}");
        let messages = results.points()[0].messages();
        assert_eq!(messages.len() as u64, received);
        assert!(messages.iter().all(|one| one.latency.is_some()));
    }
}

/// Connecting takes as long as the peer lets it; nobody who presses Ctrl-C wants to wait for that.
#[test]
fn sigint_while_connecting() {
    let machine = Machine::take();
    for service in ["rc", "uc", "ud"] {
        let out = machine.out(service);
        let _cut = Disturbance::of_everything("veth1", "loss 100%");
        let running = hcabench(&format!("--service {service} --connect cm"))
            .out(&out)
            .start();
        Results::wait_for_point(&out, 1);
        running.signal(Signal::SIGINT);
        running.wait(END).expect(1).says(&["interrupted"]);
        let results = Results::at(&out);
        assert!(results.is_marked() && results.points()[0].is_marked());
    }
    // Nor for the trial of the connection manager, before there is anything to keep.
    let _cut = Disturbance::of_everything("veth1", "loss 100%");
    let running = hcabench("--service rc").out(machine.out("auto")).start();
    crate::machine::wait_until("a socket of the connection manager is open", END, || {
        let files = format!("readlink /proc/{}/fd/* || true", running.id());
        crate::machine::sh(&files).contains("rdma_cm")
    });
    running.signal(Signal::SIGINT);
    running.wait(END).expect(1).says(&["interrupted"]);
}
