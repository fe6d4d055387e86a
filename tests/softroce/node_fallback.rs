//! The node-type infiniband where it cannot connect. rxe and the connection manager bring no route or connect error
//! about: those are tested in crates/rig/src/node/infiniband/fallback.rs.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use hcabench::node::fallback::{ConnectFailure, Fallback};
use hcabench::node::infiniband::{Notices, SubscriberAddress, publisher, subscriber};
use hcabench::node::settings::Verbs;
use hcabench::node::{Node, NodeError, Scenario, Settings};
use hcabench::rdma::cm::EventChannel;
use hcabench::rig::ports::Service;

use crate::connections::{RC, connecting};
use crate::machine::{Disturbance, Machine};
use crate::node_ends::{End, fabric, settings, wiring};
use crate::program::{Ended, hcabench};
use crate::results::Table;

const LIMIT: Duration = Duration::from_secs(2);
/// For failing, on a busy emulated machine as well. The connection manager itself takes more than a minute.
const IN_TIME: Duration = Duration::from_secs(45);

fn failure(service: Service, to: &str) -> ConnectFailure {
    let wiring = wiring(Scenario::StraightRun, 1, 1);
    let settings = Settings {
        timeout: LIMIT,
        ..settings(service, true)
    };
    let address: SocketAddr = to.parse().unwrap();
    let targets = vec![SubscriberAddress {
        subscriber: 0,
        address,
    }];
    let notices = Notices::new(&wiring).unwrap();
    let node = publisher(&fabric(), &wiring, &settings, 0, targets, &notices).unwrap();
    let mut end = End::new(node, 72);
    let begun = Instant::now();
    let error = end.node.start(&mut end.pool, &mut || true).unwrap_err();
    assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
    assert!(end.stop());
    match error {
        NodeError::NotConnected { why, peer, .. } => {
            assert_eq!(peer, address);
            why
        }
        error => panic!("{error}"),
    }
}

library_tests! {
    fn an_address_that_nobody_has_or_that_no_route_leads_to_is_an_address_error() {
        let _machine = Machine::take();
        for service in [Service::Rc, Service::Uc, Service::Ud] {
            assert_eq!(failure(service, "10.77.0.99:1"), ConnectFailure::Address);
            assert_eq!(failure(service, "192.0.2.1:1"), ConnectFailure::Address);
        }
    }

    fn where_nobody_listens_a_connection_is_rejected_and_a_peer_of_datagrams_unreachable() {
        let _machine = Machine::take();
        assert_eq!(failure(Service::Rc, "10.77.0.2:1"), ConnectFailure::Rejected);
        assert_eq!(failure(Service::Uc, "10.77.0.2:1"), ConnectFailure::Rejected);
        assert_eq!(failure(Service::Ud, "10.77.0.2:1"), ConnectFailure::Unreachable);
    }

    fn a_peer_that_does_not_answer_is_unreachable() {
        let _machine = Machine::take();
        let _cut = Disturbance::of_requests("veth0", "loss 100%");
        for service in [Service::Rc, Service::Uc, Service::Ud] {
            assert_eq!(failure(service, "10.77.0.2:1"), ConnectFailure::Unreachable);
        }
    }

    fn without_a_peer_it_listens_and_one_that_comes_later_connects() {
        let _machine = Machine::take();
        for service in [Service::Rc, Service::Uc] {
            later(service);
        }
    }

    fn a_request_whose_sender_has_gone_is_passed_over() {
        let _machine = Machine::take();
        passed_over();
    }
}

fn listening(service: Service) -> Settings {
    let usual = settings(service, true);
    Settings {
        verbs: Verbs {
            fallback: Fallback::Listen,
            ..usual.verbs
        },
        ..usual
    }
}

/// A request comes to a subscriber before that of its publisher, and its sender has gone when it is looked for.
fn passed_over() {
    let (wiring, settings) = (wiring(Scenario::StraightRun, 1, 1), listening(Service::Rc));
    let (fabric, notices) = (fabric(), Notices::new(&wiring).unwrap());
    let (node, address) = subscriber(&fabric, &wiring, &settings, 0, &notices).unwrap();
    let mut subscriber = End::new(node, 136);
    let channel = EventChannel::create().unwrap();
    drop(connecting(&channel, RC, address));
    sleep(Duration::from_secs(1));
    let targets = vec![SubscriberAddress {
        subscriber: 0,
        address,
    }];
    let node = publisher(&fabric, &wiring, &settings, 0, targets, &notices).unwrap();
    let mut publisher = End::new(node, 72);
    scope(|scope| {
        scope.spawn(|| publisher.start());
        subscriber.start();
    });
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut received = 0;
    while received < 100 && Instant::now() < deadline {
        publisher.write(1);
        received += subscriber.read(|| false);
    }
    assert!(received >= 100, "{received}");
    assert!(publisher.stop() && subscriber.stop());
}

/// Nobody listens where a publisher is to connect to. The subscriber comes later.
fn later(service: Service) {
    let wiring = wiring(Scenario::StraightRun, 1, 1);
    let settings = listening(service);
    let (fabric, notices) = (fabric(), Notices::new(&wiring).unwrap());
    let targets = vec![SubscriberAddress {
        subscriber: 0,
        address: "10.77.0.2:1".parse().unwrap(),
    }];
    let node = publisher(&fabric, &wiring, &settings, 0, targets, &notices).unwrap();
    let mut publisher = End::new(node, 72);
    let is_received = AtomicBool::new(false);
    scope(|scope| {
        let publishing = scope.spawn(|| {
            publisher.start();
            while !is_received.load(Ordering::Relaxed) {
                publisher.write(1);
                sleep(Duration::from_millis(1));
            }
            publisher.node.work().unwrap().fell_back
        });
        sleep(Duration::from_secs(1));
        assert!(!publishing.is_finished());
        let (node, _) = subscriber(&fabric, &wiring, &settings, 0, &notices).unwrap();
        let mut subscriber = End::new(node, 136);
        subscriber.start();
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut received = 0;
        while received < 100 && Instant::now() < deadline {
            received += subscriber.read(|| Instant::now() < deadline);
        }
        is_received.store(true, Ordering::Relaxed);
        let fell_back = publishing.join().unwrap();
        assert!(received >= 100, "{service:?}: {received}");
        assert_eq!(fell_back.to_string(), "1 rejected");
        assert!(subscriber.stop());
    });
    assert!(publisher.stop());
}

/// Runs the program while requests for a connection do not pass from the publishers' port to that of the subscribers.
fn one_way(arguments: &str, out: &Path) -> Ended {
    let _cut = Disturbance::of_requests("veth0", "loss 100%");
    let line = format!(
        "node --type infiniband --timeout 2s --warmup 100ms --rate 200 --count 100 --after-miss catch-up \
         {arguments}"
    );
    hcabench(&line).out(out).run()
}

#[test]
fn subscribers_connect_where_publishers_cannot() {
    let machine = Machine::take();
    let out = machine.out("results");
    let ended = one_way("--fallback listen --service rc,uc,ud", &out).expect(0);
    let text = "publishers could not connect, so their subscribers did (1 unreachable)";
    ended.warns(text);
    let rows = Table::read(&out.join("summary.csv")).rows;
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(row.count("connections_fallen_back"), 1);
        assert_eq!(row.count("messages_received"), 100, "{row:?}");
        assert_eq!(row.count("messages_lost"), 0);
    }
    let left_out = Table::read(&out.join("left_out.csv")).rows;
    assert_eq!(left_out.len(), 1);
    assert!(left_out[0].text("reason").contains("--fallback listen"));

    // It is the default where it is possible.
    let out = machine.out("default");
    let both = one_way("--service rc,uc --ends threads,processes", &out);
    both.expect(0).warns(text);
    let rows = Table::read(&out.join("summary.csv")).rows;
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert_eq!(
            (row.count("connections_fallen_back"), row.count("errors")),
            (1, 1)
        );
        assert_eq!(row.count("messages_received"), 100, "{row:?}");
    }

    let out = machine.out("fan-out");
    let fan_out = "--fallback listen --scenario fan-out --publishers 2 --subscribers 2";
    one_way(fan_out, &out).expect(0);
    let row = &Table::read(&out.join("summary.csv")).rows[0];
    assert_eq!(row.count("connections_fallen_back"), 4);
    assert_eq!(row.count("messages_received"), 2 * 2 * 100);
}

#[test]
fn a_failure_to_connect_ends_the_run_in_time_and_says_which() {
    let machine = Machine::take();
    // Datagrams cannot fall back: fatal is their default.
    let ways = ["rc --fallback fatal", "uc --fallback fatal", "ud"];
    for (number, service) in ways.into_iter().enumerate() {
        let out = machine.out(number.to_string());
        let begun = Instant::now();
        let ended = one_way(&format!("--service {service}"), &out).expect(1);
        let why = ConnectFailure::Unreachable.name();
        ended.says(&["publisher", why, "no answer within"]);
        assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
    }
}
