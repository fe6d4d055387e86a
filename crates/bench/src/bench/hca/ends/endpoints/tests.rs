//! What two ends agree on before they are connected, among made-up ports.

use super::*;

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
