//! RDMA writes without immediate data, reads and atomics with the other settings.

use crate::machine::{Disturbance, Machine};
use crate::program::hcabench;
use crate::testing::Has as _;

#[test]
fn each_point_of_services_operations_and_sizes_has_a_row_or_a_reason() {
    let machine = Machine::take();
    let results = machine.measured("--connect direct --service rc,uc,ud --operation send,write,write-polled,read --size 8..32 --rate 5k --burst 20");
    // RC has all four, UC three, UD one.
    results.check((4 + 3 + 1) * 3);
    let left_out = results.left_out();
    assert_eq!(left_out.rows.len(), (1 + 3) * 3);
    for row in &left_out.rows {
        let [operation, service] = ["operation", "service"].map(|name| row.text(name));
        let reason = row.text("reason");
        for option in [operation, service].map(|value| format!(" {value}")) {
            assert!(reason.contains(&option), "{reason}");
        }
    }
}

#[test]
fn writes_that_are_polled_for_have_the_settings_of_other_messages() {
    let machine = Machine::take();
    let results = machine.measured("--operation write-polled --size 8,1001 --inline off,on --unsignaled off,on --poll-comp busy,event \
         --receiver-pause 0,20us --burst 30 --repeat 2");
    // SoftRoCE takes less inline than that.
    let most = 2 * 2 * 2 * 2 * 2;
    let left_out = results.left_out().rows;
    results.check(most - left_out.len());
    assert!(left_out.len() <= most / 4, "{left_out:?}");
    for row in &results.summary().rows {
        assert_eq!(row.count("messages_received"), 60, "{row:?}");
        row.has_no(&["lost", "corrupted", "duplicated", "late", "foreign"]);
    }
}

#[test]
fn writes_that_are_polled_for_over_uc_pass_over_lost_ones() {
    let machine = Machine::take();
    let loss = Disturbance::of_messages("veth0", "loss 5%");
    // Of one packet: rxe takes no longer write any more once the last packet of one was lost.
    let words = "--operation write-polled --service uc --size 8,1000 --timeout 1s --burst 1000";
    let rows = machine.measured(words).summary().rows;
    assert_eq!(rows.len(), 2);
    let lost = rows.iter().map(|row| {
        row.has_no(&["corrupted", "duplicated", "late", "foreign"]);
        let (received, lost) = (row.count("messages_received"), row.count("messages_lost"));
        assert_eq!(received + lost, 1000);
        // Those behind a lost one are found all the same.
        assert!(lost > 0 && received > 500, "{row:?}");
        lost
    });
    assert!(lost.sum::<u64>() <= loss.dropped());
}

#[test]
fn the_stamps_of_writes_that_are_polled_for_can_be_rewritten() {
    let machine = Machine::take();
    let arguments =
        "--operation write-polled --size 8,64 --timestamp send --pause 200us --burst 20";
    machine.measured(arguments).check(2);
}

#[test]
fn reads_and_atomics_wait_for_completions_in_either_way_and_at_any_pace() {
    let machine = Machine::take();
    let results = machine.measured("--operation read,compare-swap,fetch-add --poll busy,event --poll-recv busy --rate 2k --arrivals constant,poisson \
         --burst 30 --repeat 2");
    results.check(3 * 2 * 2);
    for row in &results.summary().rows {
        assert_eq!(row.count("completions"), 60, "{row:?}");
        let empty = ["latency_p50_ns", "intended_latency_p50_ns"].map(|name| row.text(name));
        assert_eq!(empty, [""; 2]);
        row.count("missed_steps");
    }
}

#[test]
fn what_an_operation_has_no_use_for_is_left_out_or_refused() {
    let machine = Machine::take();
    let results = machine
        .measured("--operation send,read --poll busy,event --receiver-pause 0,5us --burst 10");
    results.check(4 + 1);
    assert_eq!(results.left_out().rows.len(), 3);
    for (arguments, words) in [
        (
            "--operation read --inline",
            ["--inline", "--operation read"],
        ),
        (
            "--operation fetch-add --size 16",
            ["--size 16", "--operation fetch-add"],
        ),
        (
            "--operation write-polled --service ud",
            ["--operation write-polled", "--service ud"],
        ),
        (
            "--operation write-polled --poll event",
            ["--poll event", "--operation write-polled"],
        ),
    ] {
        hcabench(arguments).ends(2).says(&words);
    }
}

#[test]
fn a_run_of_reads_is_shown_compared_and_drawn_by_its_completions() {
    let machine = Machine::take();
    let results = machine.measured("--operation read --size 8,64 --burst 50 --rounds 5");
    let run = results.path.display().to_string();
    let ended = hcabench(&format!("compare {run} {run}")).ends(0);
    ended.stdout.has(&["completion"]);
    let page = machine.out("page.html");
    let report = format!("report {run} --out {}", page.display());
    hcabench(&report).ends(0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("ompletion latency"), "the page");
    for figure in ["median", "histogram", "percentiles", "time"] {
        let image = machine.out(format!("{figure}.svg"));
        let plot = format!("plot {figure} {run} --out {}", image.display());
        hcabench(&plot).ends(0);
        let image = std::fs::read_to_string(image).unwrap();
        assert!(image.contains("ompletion latency"), "{figure}");
    }
}
