//! The receiving device goes away in the middle of a run.

use crate::loss::wait_for_traffic;
use crate::machine::{Away, Machine};
use crate::program::END;
use crate::testing::Has as _;

fn removed_in_mid_run(service: &str, poll: &str) {
    let machine = Machine::take();
    let running = machine.start(&format!(
        "--service {service} --poll {poll} --burst 50,8000 --pause 2ms --timeout 3s"
    ));
    // The second point of the two, which takes more than 16 s.
    machine.wait_for_point(2);
    wait_for_traffic();
    let away = Away::take("rxe1");
    let ended = running
        .wait(END)
        .expect(1)
        .says(&["burst8000", "rxe1", "removed"]);
    away.bring_back();

    let results = machine.results();
    assert!(results.mark().contains("rxe1"), "{}", results.mark());
    let [whole, broken] = results.whole_and_broken();
    assert_eq!(whole.messages().len(), 50);
    assert_eq!(broken.settings["status"], "incomplete");
    let sent = results.row_of(&broken).count("messages_sent");
    assert!(sent < 8000);
    // The table shows what there is.
    ended.stdout.has(&["p50"]);
}

#[test]
fn under_rc_polled() {
    removed_in_mid_run("rc", "busy");
}

#[test]
fn under_rc_with_events() {
    removed_in_mid_run("rc", "event");
}

#[test]
fn under_uc_polled() {
    removed_in_mid_run("uc", "busy");
}

#[test]
fn under_uc_with_events() {
    removed_in_mid_run("uc", "event");
}

#[test]
fn under_ud_polled() {
    removed_in_mid_run("ud", "busy");
}

#[test]
fn under_ud_with_events() {
    removed_in_mid_run("ud", "event");
}
