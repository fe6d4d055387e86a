//! What two ends agree on before they are connected, among made-up ports.

use super::*;
use crate::bench::hca::ends::verbs_link::LinkSide;
use crate::bench::hca::plan::Plan;
use crate::bench::hca::plan::made_up::single;
use crate::bench::hca::settings::config::Switch;

fn gid(index: u8, address: &str, kind: &str) -> Gid {
    Gid {
        index,
        gid: address.to_owned(),
        kind: Some(kind.to_owned()),
        interface: None,
    }
}

#[test]
fn gids_are_those_of_the_addresses_else_those_asked_for_else_link_local() {
    let table = |last: u8| {
        let local = format!("fe80::{last}");
        let mapped = format!("::ffff:10.0.0.{last}");
        vec![
            gid(0, &local, "IB/RoCE v1"),
            gid(1, &local, "RoCE v2"),
            gid(2, &mapped, "IB/RoCE v1"),
            gid(3, &mapped, "RoCE v2"),
        ]
    };
    let (here, there) = (table(1), table(2));
    let found = |addresses: [Option<IpAddr>; 2], index| {
        gids_of(addresses, [&here, &there], index).map(|gids| gids.map(|gid| gid.index))
    };
    let with = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().ok());
    assert_eq!(found(with, None).unwrap(), [3, 3]);
    assert_eq!(found(with, Some(1)).unwrap(), [1, 1]);
    assert!(matches!(found(with, Some(7)), Err(RunError::NoGid)));
    let local = gids_of([None; 2], [&here[..2], &there[..]], None).unwrap();
    assert_eq!(local.map(|gid| gid.index), [1, 1]);
}

#[test]
fn a_path_has_the_smaller_mtu_and_a_global_header_where_it_needs_one() {
    let plain = PathSettings::default();
    let path = path_between([4096, 2048], LinkLayer::InfiniBand, &plain);
    let found = (path.mtu, path.service_level, path.global);
    assert_eq!(found, (2048, 0, false));
    assert!(path_between([1024; 2], LinkLayer::Ethernet, &plain).global);
    let routed = PathSettings {
        path_mtu: Some(512),
        flow_label: Some(7),
        service_level: Some(3),
        retry_count: Some(1),
        ..plain
    };
    let path = path_between([4096; 2], LinkLayer::InfiniBand, &routed);
    assert_eq!((path.mtu, path.flow_label, path.service_level), (512, 7, 3));
    assert!(path.global);
    assert_eq!(path.retries.count, 1);
    assert_eq!(path.retries.timeout, Retries::default().timeout);
}

#[test]
fn a_shared_receive_queue_holds_what_may_be_in_flight_and_not_that_of_each_queue_pair() {
    let point = |service, depth, srq| {
        let mut point = Plan::new(&single()).points[0];
        (point.service, point.burst, point.depth) = (service, 1000, depth);
        (point.queue_pairs, point.resources.srq) = (16, srq);
        point
    };
    let (rc, ud) = (Service::Rc, Service::Ud);
    for (service, depth, own, shared) in [
        (rc, 1000, (63, 63), (1000, 1000)),
        (rc, 8, (8, 63), (8, 1000)),
        (ud, 1000, (67, 67), (1064, 1064)),
        (ud, 8, (67, 67), (1064, 1064)),
    ] {
        for (srq, (requests, slots)) in [(Switch::Off, own), (Switch::On, shared)] {
            let point = point(service, depth, srq);
            let found = receive_requests(&point, 4096);
            assert_eq!(found, Receives { requests, slots }, "{point}");
            let queues = point.receive_queues();
            let plan = LinkSide::Receiving.plan(&point, requests);
            assert_eq!(plan.entries(), [16, requests * queues], "{point}");
            assert_eq!(plan.shares_requests, srq.is_on());
            assert!(!LinkSide::Sending.plan(&point, requests).shares_requests);
        }
    }
    // Where it cannot hold as many, UD has fewer, and posts again.
    let point = point(ud, 1000, Switch::On);
    assert_eq!(receive_requests(&point, 100).requests, 100);
}
