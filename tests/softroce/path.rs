//! What proves the path: counters of the ports, attributes of the queue pairs, and changes of a port.

use std::path::Path;

use hcabench::rdma::verbs::{Context, gid_files};
use serde_json::Value;

use crate::loss::wait_for_traffic;
use crate::machine::{Disturbance, ENDS, Machine, WithoutManager, sh, wait_until};
use crate::program::LIMIT;
use crate::results::{Results, Row, Table};
use crate::testing::Has as _;

/// The rows of `counters.csv` of the only point.
fn counters(results: &Results) -> Table {
    let points = results.points();
    assert_eq!(points.len(), 1, "{points:?}");
    Table::read(&points[0].path.join("counters.csv"))
}

fn only_row(results: &Results) -> Row {
    let rows = results.summary().rows;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

#[test]
fn losses_on_a_reliable_connection_show_as_retransmissions() {
    let machine = Machine::take();
    let loss = Disturbance::of_messages("veth0", "loss 2%");
    machine
        .ends("--service rc --burst 2000 --warmup 0", 0)
        .warns(" retransmissions");
    assert!(loss.dropped() > 0);
    let results = machine.results();
    let row = only_row(&results);
    assert_eq!(row.count("messages_received"), 2000);
    assert!(row.count("retransmissions") > 0, "{row:?}");
    // Those that were sent again left the port as well.
    assert!(row.count("packets_sent") > 2000, "{row:?}");
}

#[test]
fn each_message_is_at_least_a_packet_on_both_ports_and_all_counters_are_kept() {
    let machine = Machine::take();
    for service in ["rc", "uc", "ud"] {
        let results = machine.measured_as(
            service,
            &format!("--service {service} --burst 500 --repeat 2"),
        );
        let row = only_row(&results);
        for column in ["packets_sent", "packets_received"] {
            assert!(row.count(column) >= 1000, "{service}: {row:?}");
        }
        // What rxe does not count.
        for column in ["congestion_notifications", "sender_wait_ticks"] {
            assert_eq!(row.text(column), "", "{service}");
        }
        let kept = counters(&results);
        assert_eq!(row.count("port_counters"), kept.rows.len() as u64);
        for (end, counter, column) in [
            ("sender", "hw_counters/sent_pkts", "packets_sent"),
            ("receiver", "hw_counters/rcvd_pkts", "packets_received"),
        ] {
            let found = kept.matching(&[("end", end), ("counter", counter)]);
            assert_eq!(found.len(), 1, "{end}, {counter}");
            assert_eq!(found[0].count("difference"), row.count(column), "{service}");
        }
    }
}

#[test]
fn counters_are_kept_of_each_round_and_add_up() {
    let machine = Machine::take();
    let results = machine.measured("--service rc --burst 200 --rounds 2");
    let kept = counters(&results);
    let of_round = |round| {
        let cells = [
            ("round", round),
            ("end", "sender"),
            ("counter", "hw_counters/sent_pkts"),
        ];
        kept.matching(&cells)[0].count("difference")
    };
    let packets = ["0", "1"].map(of_round);
    assert!(packets.iter().all(|packets| *packets >= 200), "{packets:?}");
    let row = only_row(&results);
    assert_eq!(row.count("packets_sent"), packets.iter().sum::<u64>());
}

fn sysfs(end: usize, file: &str) -> String {
    let path = format!("/sys/class/infiniband/{}/ports/1/{file}", ENDS[end].0);
    let text = std::fs::read_to_string(Path::new(&path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
        .trim()
        .to_owned()
}

/// Without this query each run reads 1024 slow files of sysfs for each port, several times.
#[test]
fn the_gids_in_use_are_found_by_one_query() {
    let _machine = Machine::take();
    for device in ["rxe0", "rxe1"] {
        let context = Context::open_by_name(device).expect(device);
        let in_use = context.gids_in_use(1).expect("kernel and library have it");
        let (read, _) = gid_files(device, 1);
        let read: Vec<u32> = read.iter().map(|gid| gid.index.into()).collect();
        assert_eq!(in_use, read, "{device}");
    }
}

#[test]
fn queue_pairs_and_gids_are_recorded_as_the_kernel_has_them() {
    let machine = Machine::take();
    machine.ends("--service rc,uc,ud --burst 20", 0);
    for point in machine.results().points() {
        let service = point.settings["point"]["service"].as_str().unwrap();
        let path = &point.settings["obtained"]["path"];
        let ends = ["sender", "receiver"].map(|end| &path[end]);
        let connection = |end: usize| &ends[end]["queue_pair"]["connection"];
        for (number, end) in ends.iter().enumerate() {
            let queue_pair = &end["queue_pair"];
            assert_eq!(queue_pair["state"], "RTS", "{service}: {path}");
            assert_eq!(queue_pair["port"], 1, "{service}");
            assert_eq!(queue_pair["reliability"].is_null(), service != "rc");
            // The way from the receiver is only known to a queue pair that is connected.
            if service == "ud" && number == 1 {
                assert_eq!(end["gid"], Value::Null);
                assert_eq!(queue_pair["route"], Value::Null);
                continue;
            }
            let global = &queue_pair["route"]["global"];
            let index = global["source_gid_index"].as_u64().unwrap();
            assert_eq!(end["gid"]["gid"], sysfs(number, &format!("gids/{index}")));
            assert_eq!(end["gid"]["kind"], "RoCE v2", "{service}");
            assert_eq!(end["gid"]["interface"], ENDS[number].1);
            let other = ENDS[1 - number].2;
            assert_eq!(
                global["destination_gid"],
                format!("::ffff:{other}"),
                "{service}"
            );
            if service == "ud" {
                continue;
            }
            assert_eq!(queue_pair["path_mtu"], 1024, "{service}");
            // Each device counts its own: that of the other end may be the same.
            let own = &connection(number)["queue_pair"];
            assert_eq!(connection(1 - number)["destination"], *own, "{service}");
        }
        if service == "rc" {
            let reliability = &ends[0]["queue_pair"]["reliability"];
            assert_eq!(reliability["timeout"], 15);
            assert_eq!(reliability["retry_count"], 6);
            // As it is where they are connected directly: 0.64 ms, not the 655 ms of the connection manager.
            for end in &ends {
                assert_eq!(end["queue_pair"]["reliability"]["min_rnr_timer"], 12);
            }
        }
    }
}

#[test]
fn ports_that_the_connection_manager_does_not_connect_are_connected_directly_with_a_finding() {
    let machine = Machine::take();
    let _cut = Disturbance::of_requests("veth0", "loss 100%");
    let ended = machine.ends("--service rc,uc,ud --burst 20", 0);
    let results = machine.results();
    results.check(3);
    for row in results.summary().rows {
        assert_eq!(row.text("connect"), "direct");
    }
    ended.warns("the connection manager does not connect these ports");
    ended.warns("no answer within 12 s");
    ended
        .stderr
        .has(&["trying the connection manager between the two ports, for at most 12 s"]);
}

#[test]
fn without_a_connection_manager_all_service_types_are_connected_directly_with_a_finding() {
    let machine = Machine::take();
    let _without = WithoutManager::begin();
    let ended = machine.ends("--service rc,uc,ud --burst 20", 0);
    let results = machine.results();
    results.check(3);
    for row in results.summary().rows {
        assert_eq!(row.text("connect"), "direct");
    }
    ended.warns("the connection manager does not connect these ports");
}

#[test]
fn the_processes_of_rounds_take_over_what_the_trial_of_their_sweep_showed() {
    let machine = Machine::take();
    let cut = Disturbance::of_requests("veth0", "loss 100%");
    let running = machine.start("--service rc --burst 20 --rounds 2");
    // The first process of a round is there when the trial is over: now another would succeed.
    machine.wait_for_point(1);
    drop(cut);
    running.wait(LIMIT).expect(0);
    let results = machine.results();
    let row = only_row(&results);
    assert_eq!(row.text("connect"), "direct");
    assert_eq!(row.count("rounds"), 2);
}

#[test]
fn a_port_to_itself_is_told_to_stay_within_the_adapter() {
    let machine = Machine::take();
    let words = "--sender rxe0 --receiver rxe0 --burst 20 --connect direct";
    machine
        .ends(words, 0)
        .warns("rxe0:1 and rxe0:1 are one port");
}

#[test]
fn the_statistics_of_an_interface_are_those_of_its_driver() {
    let _machine = Machine::take();
    let counters = hcabench::rdma::verbs::interface_counters("veth0");
    // veth's first is the number of the other end.
    let other = sh("cat /sys/class/net/veth1/ifindex");
    let expected = ("peer_ifindex".to_owned(), other.trim().parse().unwrap());
    assert_eq!(counters.first(), Some(&expected), "{counters:?}");
}

/// An address that comes to an interface brings its port a GID, and does not disturb the connection.
#[test]
fn a_change_of_the_receivers_gids_marks_the_point_and_does_not_end_it() {
    let machine = Machine::take();
    let running = machine.start("--service rc --burst 5000 --pause 2ms --warmup 0");
    wait_for_traffic();
    sh("ip address add 10.99.0.2/24 dev veth1");
    wait_until("there is a GID of it", LIMIT, || {
        let gids = std::fs::read_dir("/sys/class/infiniband/rxe1/ports/1/gids").unwrap();
        // Those that are not in use cannot be read.
        let gids = gids.filter_map(|gid| std::fs::read_to_string(gid.unwrap().path()).ok());
        gids.into_iter()
            .any(|gid| gid.trim_end().ends_with(":ffff:0a63:0002"))
    });
    let ended = running.wait(LIMIT);
    sh("ip address del 10.99.0.2/24 dev veth1");
    ended
        .expect(0)
        .warns("ports changed during the measurement: rxe1 port 1: the table of GIDs changed");
    let results = machine.results();
    assert_eq!(only_row(&results).count("messages_received"), 5000);
    let changes = &results.points()[0].settings["details"]["port_changes"];
    assert_eq!(
        *changes,
        serde_json::json!(["rxe1 port 1: the table of GIDs changed"])
    );
}
