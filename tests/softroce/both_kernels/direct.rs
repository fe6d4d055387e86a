//! Queue pairs connected without the connection manager, and the attributes of the path.

use crate::testing::Has as _;
use hcabench::bench::hca::ends::endpoints::Endpoints;
use hcabench::bench::hca::ends::{ReceivingEnd, SendingEnd};
use hcabench::bench::hca::error::RunError;
use hcabench::bench::hca::loops::tag::Tag;
use hcabench::bench::hca::settings::config::Service;
use hcabench::bench::hca::settings::path::Connect;
use hcabench::bench::hca::settings::path::PathSettings;
use serde_json::Value;

use crate::connections::{SERVICES, ends, send_one, settings, type_and_state};
use crate::machine::Machine;
use crate::program::hcabench;
use crate::scratch;

library_tests! {
    fn both_ends_are_ready_and_a_message_arrives() {
        let _machine = Machine::take();
        let [from, to] = ends();
        for service in SERVICES {
            let mut settings = settings(service);
            settings.point.connect = Connect::Direct;
            let endpoints = Endpoints::connect(None, &from, &to, &settings).unwrap();
            let name = format!("{service:?}");
            for queue_pair in [endpoints.sender.queue_pair(), endpoints.receiver.queue_pair()] {
                let expected = (name.to_uppercase(), "RTS".to_owned());
                assert_eq!(type_and_state(queue_pair), expected);
            }
            let completion = send_one(&endpoints, Tag::new(0xfeed), &name);
            assert_eq!(completion.immediate_data, 0xfeed_0002);
            assert_eq!(endpoints.sender.link().trouble(), None);
            assert_eq!(endpoints.receiver.link().trouble(), None);
        }
    }

    fn the_path_mtu_asked_for_is_the_one_in_force() {
        let _machine = Machine::take();
        let [from, to] = ends();
        for (asked, expected) in [(None, 1024), (Some(512), 512)] {
            let mut settings = settings(Service::Rc);
            settings.point.path.path_mtu = asked;
            let endpoints = Endpoints::connect(None, &from, &to, &settings).unwrap();
            assert_eq!(endpoints.sender.queue_pair().path_mtu().unwrap(), expected);
            assert_eq!(endpoints.receiver.queue_pair().path_mtu().unwrap(), expected);
        }
        let mut settings = settings(Service::Rc);
        settings.point.path = PathSettings { gid_index: Some(200), ..PathSettings::default() };
        let refused = Endpoints::connect(None, &from, &to, &settings).unwrap_err();
        assert!(matches!(refused, RunError::NoGid), "{refused}");
    }
}

#[test]
fn every_service_and_operation_delivers_over_either_way() {
    let machine = Machine::take();
    let arguments = "--connect cm,direct,auto --service rc,uc,ud --operation send,write --size 8,1024 --burst 40";
    let results = machine.measured(arguments);
    // Auto is the connection manager here.
    results.check(2 * (3 * 2 - 1) * 2);
    for row in &results.summary().rows {
        assert_eq!(row.count("messages_received"), 40, "{row:?}");
        assert_eq!(row.count("messages_foreign"), 0, "{row:?}");
    }
    let ways: Vec<_> = (results.points().iter())
        .map(|point| point.settings["obtained"]["connection"].to_string())
        .collect();
    let direct = ways.iter().filter(|way| way.contains("ibv_modify_qp"));
    assert_eq!(direct.count(), ways.len() / 2, "{ways:?}");
}

#[test]
fn attributes_of_the_path_are_settings_and_what_the_manager_cannot_set_is_left_out() {
    let machine = Machine::take();
    let arguments = "--connect cm,auto --service rc,ud --service-level 0,3 --traffic-class 0x68 --path-mtu 256,1024 \
                     --pkey-index 0 --flow-label 0xabcde --retry-count 2 --rnr-retry 3 --qp-timeout 14 --burst 20";
    let results = machine.measured(arguments);
    // UD has no path MTU.
    results.check(2 * 2 + 2);
    let left_out = results.left_out();
    assert_eq!(left_out.rows.len(), 2 * 2 + 2);
    for row in &left_out.rows {
        assert_eq!(row.text("connect"), "cm");
        let reason = row.text("reason");
        reason.has(&["--service-level is impossible with --connect cm"]);
    }
    for row in &results.summary().rows {
        assert_eq!(row.text("connect"), "direct");
        assert_eq!(row.count("messages_received"), 20, "{row:?}");
        assert_eq!(row.count("traffic_class"), 0x68);
        let of_rc = if row.text("service") == "rc" {
            ["2", "3", "14"]
        } else {
            [""; 3]
        };
        let found = ["retry_count", "rnr_retry", "qp_timeout"].map(|name| row.text(name));
        assert_eq!(found, of_rc);
    }
    for point in results.points() {
        let (asked, ends) = (
            &point.settings["point"],
            &point.settings["obtained"]["path"],
        );
        for end in ["sender", "receiver"] {
            kernel_has(asked, &ends[end]["queue_pair"], end);
        }
    }
}

fn kernel_has(asked: &Value, queue_pair: &Value, end: &str) {
    let is_rc = asked["service"] == "rc";
    // Where datagrams go to the sender tells with each.
    if is_rc || end == "sender" {
        let route = &queue_pair["route"];
        // rxe keeps no service level of a connection.
        let level = if is_rc {
            &Value::from(0)
        } else {
            &asked["service_level"]
        };
        assert_eq!(&route["service_level"], level, "{queue_pair}");
        assert_eq!(route["global"]["traffic_class"], 0x68, "{queue_pair}");
    }
    assert_eq!(queue_pair["pkey_index"], 0, "{queue_pair}");
    if is_rc {
        let mtu = &asked["path_mtu_bytes"];
        assert_eq!(&queue_pair["path_mtu"], mtu, "{queue_pair}");
        let found = ["retry_count", "rnr_retry", "timeout"]
            .map(|name| queue_pair["reliability"][name].as_u64());
        assert_eq!(found, [Some(2), Some(3), Some(14)], "{queue_pair}");
        let label = &queue_pair["connection"]["flow_label"];
        assert_eq!(label, 0xa_bcde, "{queue_pair}");
    }
}

#[test]
fn what_the_manager_can_set_is_in_force() {
    let machine = Machine::take();
    let arguments = "--connect cm --traffic-class 0x20 --retry-count 2 --rnr-retry 3 --qp-timeout 14 --burst 20";
    let results = machine.measured(arguments);
    results.check(1);
    let ends = &results.points()[0].settings["obtained"]["path"];
    let sender = &ends["sender"]["queue_pair"];
    let found =
        ["retry_count", "rnr_retry", "timeout"].map(|name| sender["reliability"][name].as_u64());
    assert_eq!(found, [Some(2), Some(3), Some(14)], "{sender}");
    assert_eq!(sender["route"]["global"]["traffic_class"], 0x20, "{sender}");
}

#[test]
fn what_the_ports_cannot_do_is_refused_with_their_limit() {
    let _machine = Machine::take();
    for (arguments, said) in [
        (
            "--path-mtu 4096",
            "--path-mtu 4096 is impossible: the smaller MTU of the two ports is 1024 bytes",
        ),
        (
            "--gid-index 250",
            "--gid-index 250 is impossible: both ports have GIDs of one kind at",
        ),
        (
            "--service-level 9",
            "--service-level 9 is impossible: on these ports it is at most 7",
        ),
        (
            "--pkey-index 60000",
            "--pkey-index 60000 is impossible: both ports have the same partition key at",
        ),
        (
            "--connect cm --flow-label 1",
            "--flow-label is impossible with --connect cm",
        ),
    ] {
        let folder = scratch();
        hcabench(arguments)
            .out(folder.path().join("results"))
            .ends(2)
            .says(&[said]);
    }
}
