//! The node-type infiniband of `hcabench node`.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::machine::{Away, Disturbance, Machine};
use crate::program::{END, Ended, LIMIT, hcabench};
use crate::results::{Results, Row, Table};
use crate::scratch;

fn node(arguments: &str, out: &Path) -> Ended {
    let line =
        format!("node --type infiniband --warmup 100ms --drain 2s --timeout 30s {arguments}");
    hcabench(&line).out(out).start().wait(limit())
}

/// That of a run, and a second for 1000 samples where they are many.
fn limit() -> Duration {
    LIMIT + Duration::from_millis(crate::count_or(0) as u64)
}

fn rows(out: &Path) -> Vec<Row> {
    Table::read(&out.join("summary.csv")).rows
}

fn one_row(out: &Path) -> Row {
    let mut rows = rows(out);
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

/// A pool that is not whole at the end, and a sample that is damaged, would end the run with exit code 1.
fn lost_nothing(row: &Row) {
    row.has_no(&["refused"]);
    lost_nothing_of_those_taken(row);
}

/// The same of more samples than queues hold: a machine that stands still for long may have some refused.
fn lost_nothing_of_those_taken(row: &Row) {
    row.has_no(&["lost"]);
    each_arrived_once_or_is_lost(row);
}

/// The same over UC and UD: where the subscriber stands still for longer than its requests last, samples are lost.
fn each_arrived_once_or_is_lost(row: &Row) {
    row.has_no(&["duplicated", "reordered"]);
    let received = row.count("messages_received");
    assert!(received > 0, "{row:?}");
    let lost = row.count("messages_lost");
    assert_eq!(row.count("copies_sent"), received + lost, "{row:?}");
}

fn copies(row: &Row) -> u64 {
    1 + u64::from(row.text("scenario") == "fan-out")
}

#[test]
fn each_service_and_scenario_passes_samples_and_loses_nothing() {
    let machine = Machine::take();
    let scenarios = "straight-run,fan-in,fan-out,round-robin";
    for poll in ["busy", "event"] {
        let out = machine.out(poll);
        let arguments = format!(
            "--service rc,uc,ud --scenario {scenarios} --publishers 2 --subscribers 2 --poll {poll} --rate 200 \
             --count 60 --values 1,60"
        );
        node(&arguments, &out).expect(0);
        let rows = rows(&out);
        assert_eq!(rows.len(), 3 * 4 * 2);
        for row in &rows {
            lost_nothing(row);
            let copies = copies(row);
            assert_eq!(row.count("messages_expected"), 2 * 60 * copies);
            let inline = row.count("values") == 1;
            assert_eq!(row.text("inline"), inline.to_string());
        }
    }
}

#[test]
fn ends_that_are_processes_pass_samples_and_lose_nothing() {
    let machine = Machine::take();
    let out = machine.out("results");
    let arguments = "--ends threads,processes --service rc,uc,ud --scenario straight-run,fan-out --publishers 2 \
                     --subscribers 2 --rate 200 --count 60";
    node(arguments, &out).expect(0);
    let rows = rows(&out);
    assert_eq!(rows.len(), 2 * 3 * 2);
    for row in &rows {
        lost_nothing(row);
        let copies = copies(row);
        assert_eq!(row.count("messages_received"), 2 * 60 * copies);
    }
    let processes = |row: &&Row| row.text("ends") == "processes";
    assert_eq!(rows.iter().filter(processes).count(), 6);
}

/// The signalled requests of one publisher that sends to one subscriber.
fn signalled(arguments: &str, out: &Path) -> (u64, u64) {
    node(arguments, out).expect(0);
    let row = one_row(out);
    match row.text("service") {
        "rc" => lost_nothing_of_those_taken(&row),
        _ => each_arrived_once_or_is_lost(&row),
    }
    (row.count("send_requests"), row.count("send_completions"))
}

/// `ci/measure node-million` passes a million samples.
#[test]
fn one_in_k_inline_samples_has_a_completion_and_each_other_one() {
    let machine = Machine::take();
    const FEW: usize = 8000;
    let count = crate::count_or(FEW);
    let rate = if count == FEW { "2k" } else { "4k" };
    // The pool has the send queue's slots and two more: it went round many times.
    let queues = format!(
        "--send-queue 510 --receive-queue 512 --rate {rate} --count {count} --after-miss catch-up"
    );
    let passed = |name: &str, options: &str| {
        let out = machine.out(name);
        let (requests, completions) = signalled(&format!("{queues} {options}"), &out);
        let row = one_row(&out);
        let counted = ["received", "refused", "lost"];
        let [received, refused, lost] = counted.map(|it| row.count(&format!("messages_{it}")));
        println!(
            "{name}: {received} received, {lost} lost, {requests} requests, {completions} completions"
        );
        let is_whole = lost == 0 && received + refused == count as u64;
        assert!(count == FEW || is_whole, "{row:?}");
        (requests, completions, row)
    };
    for service in ["rc", "uc", "ud"] {
        let options = format!("--service {service} --signal-every 100");
        let (requests, completions, row) = passed(&format!("{service}-inline"), &options);
        assert!(requests >= row.count("messages_sent"), "{requests}");
        assert_eq!(completions, requests / 100);
    }
    let (requests, completions, row) = passed("normal", "--max-inline 0");
    assert_eq!(completions, requests);
    assert_eq!(row.text("signal_every"), "");
    let (requests, completions, _) = passed("usual", "");
    assert_eq!(completions, requests / 255);
}

#[test]
fn each_copy_of_a_sample_is_waited_for() {
    let machine = Machine::take();
    // More samples than the send queues hold: they would fill up if a completion a call were taken.
    let of_all = "--scenario fan-out --subscribers 2 --rate 500 --count 2000";
    for (service, inline) in [("rc", 0), ("ud", 0), ("uc", 128)] {
        let out = machine.out(service);
        let arguments = format!("--service {service} --max-inline {inline} {of_all}");
        let (requests, completions) = signalled(&arguments, &out);
        let expected = match inline {
            0 => requests,
            // Of each of the two queue pairs every 256th.
            _ => requests / 2 / 256 * 2,
        };
        assert_eq!(completions, expected, "{service}");
    }
}

#[test]
fn a_signal_ends_it() {
    let machine = Machine::take();
    for (service, poll, signal) in [
        ("rc", "busy", Signal::SIGINT),
        ("ud", "event", Signal::SIGTERM),
    ] {
        let out = machine.out(service);
        let line = format!(
            "node --type infiniband --service {service} --poll {poll} --rate 1k --duration 10m"
        );
        let running = hcabench(&line).out(&out).start();
        crate::loss::wait_for_traffic();
        running.signal(signal);
        running
            .wait(END)
            .expect(1)
            .says(&["interrupted by", signal.as_str()]);
        assert!(Results::at(&out).is_marked());
    }
}

#[test]
fn the_removal_of_a_device_ends_it() {
    let machine = Machine::take();
    for (service, poll, ends) in [
        ("rc", "busy", "threads"),
        ("ud", "event", "threads"),
        ("rc", "event", "processes"),
        ("uc", "busy", "processes"),
    ] {
        let out = machine.out(format!("{service}-{ends}"));
        let line = format!(
            "node --type infiniband --service {service} --poll {poll} --ends {ends} --duration 10m"
        );
        let running = hcabench(&line).out(&out).start();
        crate::loss::wait_for_traffic();
        let away = Away::take("rxe1");
        let ended = running.wait(END).expect(1).says(&["infiniband"]);
        assert!(Results::at(&out).is_marked(), "{}", ended.stderr);
        away.bring_back();
    }
}

fn assert_refused(cases: &[(&str, &str)]) {
    let folder = scratch();
    for (number, (arguments, said)) in cases.iter().enumerate() {
        let out = folder.path().join(number.to_string());
        node(arguments, &out).expect(2).says(&[said]);
    }
}

#[test]
fn queues_that_cannot_work_are_refused_with_the_rule() {
    let _machine = Machine::take();
    assert_refused(&[
        (
            "--send-queue 64 --signal-every 65",
            "--signal-every 65: must be at most --send-queue, which is 64",
        ),
        (
            "--receive-queue 64 --receive-threshold 63",
            "--receive-threshold 63: must be at most --receive-queue - 2 * --vectorize, which is 62",
        ),
        (
            "--vectorize 8 --receive-threshold 8",
            "--receive-threshold 8: must be above --vectorize, which is 8",
        ),
        (
            "--scenario fan-in --publishers 4 --receive-threshold 3",
            "--receive-threshold 3: must be at least the number of publishers of a subscriber, which is 4",
        ),
        ("--send-queue 900000", "--send-queue 900000"),
        ("--receive-queue 900000", "--receive-queue 900000"),
        ("--max-inline 60000", "--max-inline 60000"),
        (
            "--sender nothing",
            "--sender nothing: there is no device of that name",
        ),
    ]);
}

#[test]
fn a_queue_that_is_too_short_is_named_as_the_user_named_it() {
    let _machine = Machine::take();
    assert_refused(&[
        (
            "--receive-queue 3",
            "--receive-queue 3: must be above 3 * --vectorize, which is 3",
        ),
        (
            "--receive-queue 5 --scenario fan-in --publishers 4",
            "--receive-queue 5: less 2 * --vectorize, it must be at least the number of publishers of a subscriber, \
             which is 4",
        ),
    ]);
    // Datagrams of all publishers come to one queue pair.
    let folder = scratch();
    let out = folder.path().join("datagrams");
    let fan_in = "--scenario fan-in --publishers 4 --rate 50 --count 50";
    node(&format!("--service ud --receive-queue 5 {fan_in}"), &out).expect(0);
    // Of so short a queue a datagram can find no request.
    assert!(one_row(&out).count("messages_received") > 0);
}

fn queue_pairs_of(device: &str) -> usize {
    let text = crate::machine::sh(&format!("rdma -j resource show qp link {device}"));
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let all = all.as_array().unwrap().iter();
    all.filter(|pair| pair["type"] == "UD").count()
}

#[test]
fn a_subscriber_of_datagrams_has_one_queue_pair_for_all_publishers_and_they_one_for_all_subscribers()
 {
    let machine = Machine::take();
    let none = ["rxe0", "rxe1"].map(queue_pairs_of);
    for (scenario, ends) in [
        ("fan-in", [3, 1]),
        ("fan-out", [1, 3]),
        ("round-robin", [3, 3]),
    ] {
        let [publishers, subscribers] = ends;
        let out = machine.out(scenario);
        let running = hcabench(&format!(
            "node --type infiniband --service ud --scenario {scenario} --publishers {publishers} \
             --subscribers {subscribers} --rate 100 --duration 5m --timeout 30s"
        ))
        .out(&out)
        .start();
        crate::loss::wait_for_traffic();
        let pairs = ["rxe0", "rxe1"].map(queue_pairs_of);
        running.signal(Signal::SIGINT);
        running.wait(END).expect(1);
        for end in 0..2 {
            assert_eq!(pairs[end], none[end] + ends[end], "{scenario}");
        }
    }
}

#[test]
fn more_than_the_path_takes_is_missed_or_refused_and_nothing_is_lost() {
    let machine = Machine::take();
    for after_miss in ["catch-up", "skip"] {
        let out = machine.out(after_miss);
        // No machine with this kernel's driver takes so many.
        let arguments = format!("--rate 2M --count 100000 --after-miss {after_miss} --warmup 0");
        node(&arguments, &out).expect(0);
        let row = one_row(&out);
        let (refused, missed) = (row.count("messages_refused"), row.count("steps_missed"));
        match after_miss {
            // Refused where the subscriber is behind, and late where the publisher is.
            "catch-up" => assert!(refused + row.count("steps_late") > 0, "{row:?}"),
            _ => assert!(missed > 0, "{row:?}"),
        }
        let whole = row.decimal("delivery_rate") >= 1.0;
        assert_eq!(whole, refused + missed == 0, "{row:?}");
        assert_eq!(row.count("messages_lost"), 0);
        assert_eq!(row.count("copies_sent"), row.count("messages_received"));
    }
}

/// Sends that the driver of a port has completed, those of the connection manager included.
fn sends_of(device: &str) -> u64 {
    let path = format!("/sys/class/infiniband/{device}/ports/1/hw_counters/rdma_sends");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.trim().parse().unwrap()
}

const SENDS_TO_CONNECT: u64 = 12;

#[test]
fn a_datagram_too_long_for_the_port_is_left_out() {
    let machine = Machine::take();
    let out = machine.out("results");
    node("--service rc,ud --values 200 --rate 100 --count 20", &out).expect(0);
    assert_eq!(one_row(&out).text("service"), "rc");
    let left_out = Table::read(&out.join("left_out.csv")).rows;
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0].text("service"), "ud");
    assert!(left_out[0].text("reason").contains("the port's MTU, 1024"));
}

#[test]
fn unreliable_services_report_exactly_what_was_dropped() {
    let machine = Machine::take();
    for service in ["uc", "ud"] {
        let out = machine.out(service);
        let line = format!(
            "node --type infiniband --service {service} --warmup 0 --drain 2s --rate 500 --count 6000 --after-miss catch-up"
        );
        // By the opcode a datagram of ours is like one of the connection manager, which sends none by then.
        let loss = match service {
            "ud" => Disturbance::of_everything("veth0", "loss 0%"),
            _ => Disturbance::of_messages("veth0", "loss 0%"),
        };
        let sends = sends_of("rxe0");
        let running = hcabench(&line).out(&out).start();
        crate::loss::wait_for_traffic();
        // From here on, so that greetings, which are repeated until they are heard, are past.
        loss.change("loss 5%");
        running.wait(LIMIT).expect(0).warns("were lost");
        let row = one_row(&out);
        let lost = row.count("messages_lost");
        let others = match service {
            // Requests for the address of the neighbour.
            "ud" => 2,
            _ => 0,
        };
        assert!((lost..=lost + others).contains(&loss.dropped()), "{lost}");
        assert!(lost > 0);
        let (sends, requests) = (sends_of("rxe0") - sends, row.count("send_requests"));
        let usual = requests..=requests + SENDS_TO_CONNECT;
        assert!(usual.contains(&sends), "{service}: {sends} of {usual:?}");
        let received = row.count("messages_received");
        assert_eq!(row.count("copies_sent"), received + lost);
    }
}

#[test]
fn all_types_have_infiniband_among_them_where_there_are_two_ports() {
    let machine = Machine::take();
    let run = |name: &str, more: &str| {
        let out = machine.out(name);
        let line = format!(
            "node --type all --rounds 1 --rate 200 --count 40 --warmup 0 --timeout 30s {more}"
        );
        hcabench(&line).out(&out).start().wait(limit()).expect(0);
        out
    };
    let types = |rows: &[Row]| Vec::from_iter(rows.iter().map(|row| row.text("type").to_owned()));
    let infiniband = "infiniband".to_owned();
    assert!(types(&rows(&run("all", ""))).contains(&infiniband));
    // Datagrams take no such samples: that service is left out, and the other is measured.
    let out = run("long", "--service rc,ud --values 4096");
    assert!(types(&rows(&out)).contains(&infiniband));
    let left_out = Table::read(&out.join("left_out.csv")).rows;
    assert!(types(&left_out).contains(&infiniband), "{left_out:?}");
}
