//! Queue pairs are connected directly: on kernel 6.1 a link of rxe that is down when the connection manager sends a
//! message leaves the manager without any connection from then on (docs/softroce.md).

use std::time::Duration;

use crate::machine::{LinkDown, Machine};

/// What a run takes to its end, once the link is down, on an emulated machine.
const END: Duration = Duration::from_secs(3 + 5);

/// Each end of the link tells of it, and which is heard first is the kernel's affair.
fn down_in_mid_run(service: &str) {
    let machine = Machine::take();
    let running = machine.start(&format!(
        "--connect direct --service {service} --burst 50,8000 --pause 2ms --timeout 3s"
    ));
    // The second point of the two, which takes more than 16 s.
    machine.wait_for_point(2);
    let down = LinkDown::take();
    let ended = running.wait(END).expect(1);
    ended.says(&["burst8000", "the port went down (rxe"]);
    let results = machine.results();
    results.whole_and_broken();

    down.take_up();
    // Nothing of it is left in the devices.
    let results = machine.measured_as(
        "again",
        &format!("--connect direct --service {service} --burst 100"),
    );
    results.check_point(&results.points()[0]);
}

#[test]
fn under_rc() {
    down_in_mid_run("rc");
}

#[test]
fn under_uc() {
    down_in_mid_run("uc");
}

#[test]
fn under_ud() {
    down_in_mid_run("ud");
}
