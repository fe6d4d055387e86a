//! The GID table of a port: the addresses that queue pairs can have there.

use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use serde::Serialize;

/// An entry of a port's GID table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gid {
    /// Its place in the table.
    pub index: u8,
    /// The GID itself; one of an IPv4 address is the mapped `::ffff:a.b.c.d`.
    pub address: Ipv6Addr,
    /// What the kernel calls its type: `IB/RoCE v1` or `RoCE v2`.
    pub kind: String,
}

impl Gid {
    /// Whether packets with it are RoCE v2: UDP over IP.
    pub fn is_roce_v2(&self) -> bool {
        self.kind == "RoCE v2"
    }

    /// Whether it was made from an IPv4 address.
    fn is_ipv4(&self) -> bool {
        self.address.to_ipv4_mapped().is_some()
    }

    /// Whether two entries, of two ports, can be the two ends of a path.
    pub fn suits(&self, other: &Gid) -> bool {
        let local = |gid: &Gid| gid.address.is_unicast_link_local();
        self.kind == other.kind && self.is_ipv4() == other.is_ipv4() && local(self) == local(other)
    }
}

/// The entries in use of a port's GID table, from sysfs (Documentation/ABI/stable/sysfs-class-infiniband of the kernel).
pub fn gid_table(device: &str, port: u8) -> Vec<Gid> {
    read(Path::new("/sys/class/infiniband"), device, port)
}

fn read(class: &Path, device: &str, port: u8) -> Vec<Gid> {
    let port = class.join(device).join(format!("ports/{port}"));
    let entry = |index: u8| {
        let text = |path: &str| std::fs::read_to_string(port.join(path).join(index.to_string()));
        let address: Ipv6Addr = text("gids").ok()?.trim().parse().ok()?;
        // The type of an entry that is not in use cannot be read.
        let kind = text("gid_attrs/types").ok()?.trim().to_owned();
        (!address.is_unspecified()).then_some(Gid {
            index,
            address,
            kind,
        })
    };
    (0..=u8::MAX).filter_map(entry).collect()
}

/// The entries by which two ports reach each other: of RoCE v2 where both have it, those of their IP addresses before
/// others. `None` where no entry of one suits one of the other.
pub fn usual_pair([here, there]: [&[Gid]; 2], addresses: [Option<IpAddr>; 2]) -> Option<[&Gid; 2]> {
    let mapped = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let [one, other] = addresses.map(|address| address.map(mapped));
    let pairs = here
        .iter()
        .flat_map(|gid| there.iter().map(move |peer| [gid, peer]));
    let rank = |[gid, peer]: &[&Gid; 2]| {
        let of_addresses = Some(gid.address) == one && Some(peer.address) == other;
        let local = gid.address.is_unicast_link_local();
        // The first of what is equally good, as its index is the lowest.
        (!gid.is_roce_v2(), !of_addresses, !gid.is_ipv4(), local)
    };
    pairs.filter(|[gid, peer]| gid.suits(peer)).min_by_key(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(index: u8, address: &str, version: u8) -> Gid {
        Gid {
            index,
            address: address.parse().unwrap(),
            kind: if version == 2 {
                "RoCE v2"
            } else {
                "IB/RoCE v1"
            }
            .to_owned(),
        }
    }

    #[test]
    fn entries_in_use_are_read_with_their_types() {
        let class = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = class.path().join("roce0/ports/1").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
        write("gid_attrs/types/0", "IB/RoCE v1\n");
        write("gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
        write("gids/3", "0000:0000:0000:0000:0000:ffff:0a4d:0001\n");
        write("gid_attrs/types/3", "RoCE v2\n");
        let expected = [gid(0, "fe80::1", 1), gid(3, "::ffff:10.77.0.1", 2)];
        assert_eq!(read(class.path(), "roce0", 1), expected);
        assert_eq!(read(class.path(), "roce0", 2), []);
    }

    #[test]
    fn the_entries_of_the_addresses_by_roce_v2_are_the_usual_ones() {
        let table = |last: u8| {
            vec![
                gid(0, &format!("fe80::{last}"), 1),
                gid(1, &format!("fe80::{last}"), 2),
                gid(2, &format!("::ffff:10.0.0.{last}"), 1),
                gid(3, &format!("::ffff:10.0.0.{last}"), 2),
                gid(4, &format!("::ffff:10.0.1.{last}"), 2),
            ]
        };
        let (here, mut there) = (table(1), table(2));
        there.swap(3, 4);
        let chosen = |here: &[Gid], there: &[Gid], addresses: [&str; 2]| {
            let addresses = addresses.map(|text| text.parse().ok());
            usual_pair([here, there], addresses).map(|pair| pair.map(|gid| gid.index))
        };
        assert_eq!(
            chosen(&here, &there, ["10.0.0.1", "10.0.0.2"]),
            Some([3, 3])
        );
        assert_eq!(
            chosen(&here, &there, ["10.0.1.1", "10.0.1.2"]),
            Some([4, 4])
        );
        // Without an address it is the first by IPv4; without IPv4 the one of the link.
        assert_eq!(chosen(&here[..4], &there[..3], ["", ""]), Some([1, 1]));
        assert_eq!(chosen(&here[..1], &there, ["", ""]), Some([0, 0]));
        assert_eq!(chosen(&here[..1], &there[1..], ["", ""]), None);
        assert_eq!(chosen(&[], &there, ["", ""]), None);
    }
}
