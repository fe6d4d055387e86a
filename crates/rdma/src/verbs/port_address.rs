//! The IP addresses by which the RDMA connection manager finds a port.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use nix::sys::socket::SockaddrStorage;
use serde::{Serialize, Serializer};

/// An IP network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IpNetwork {
    first: IpAddr,
    prefix_bits: u8,
}

impl IpNetwork {
    /// That of an address, by the bits of its prefix.
    pub fn of(address: IpAddr, prefix_bits: u8) -> Self {
        let keep = |width: u8| u128::MAX.checked_shl((width - prefix_bits.min(width)).into());
        let first = match address {
            IpAddr::V4(v4) => {
                let kept = keep(32).unwrap_or(0) as u32;
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & kept))
            }
            IpAddr::V6(v6) => {
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & keep(128).unwrap_or(0)))
            }
        };
        IpNetwork { first, prefix_bits }
    }
}

impl fmt::Display for IpNetwork {
    /// As in `10.77.0.0/24`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.first, self.prefix_bits)
    }
}

impl Serialize for IpNetwork {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Addresses of network interfaces, each with its network. IPv4 first; link-local ones are left out, as they need an
/// interface to be of use.
pub(super) fn addresses_of(interfaces: &BTreeSet<String>) -> Vec<(IpAddr, IpNetwork)> {
    let Ok(all) = nix::ifaddrs::getifaddrs() else {
        return Vec::new();
    };
    let ip_of = |address: &SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    };
    let mut addresses: Vec<_> = all
        .filter(|entry| interfaces.contains(&entry.interface_name))
        .filter_map(|entry| {
            let address = ip_of(&entry.address?)?;
            let prefix_bits = match entry.netmask.as_ref().and_then(ip_of) {
                Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones() as u8,
                Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones() as u8,
                // A separate network.
                None => u8::MAX,
            };
            Some((address, IpNetwork::of(address, prefix_bits)))
        })
        .filter(|(address, _)| match address {
            IpAddr::V4(v4) => !v4.is_link_local(),
            IpAddr::V6(v6) => !v6.is_unicast_link_local(),
        })
        .collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

/// Names of the network interfaces that belong to a port, from sysfs (Documentation/ABI/stable/sysfs-class-infiniband of
/// the kernel): those its GIDs were made from (RoCE), those of the device itself with this port's number (IPoIB), and
/// those with the MAC address that is its GID (iWARP). `class` is `/sys/class`; `gids` are the indices of the
/// entries in use of the GID table: if `None`, the file of every entry is read.
pub fn interfaces_of(
    class: &Path,
    device: &str,
    port: u8,
    gids: Option<Vec<u32>>,
) -> BTreeSet<String> {
    let device = class.join("infiniband").join(device);
    let of_gids = device.join(format!("ports/{port}/gid_attrs/ndevs"));
    // An empty entry of the GID table gives EINVAL when read.
    let name_in = |path: PathBuf| Some(std::fs::read_to_string(path).ok()?.trim().to_owned());
    let mut names: BTreeSet<String> = match gids {
        Some(gids) => {
            let files = gids
                .into_iter()
                .map(|index| of_gids.join(index.to_string()));
            files.filter_map(name_in).collect()
        }
        None => {
            let entries = std::fs::read_dir(of_gids).into_iter().flatten().flatten();
            entries.filter_map(|it| name_in(it.path())).collect()
        }
    };
    let own = std::fs::read_dir(device.join("device/net"));
    for entry in own.into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path().join("dev_port")).ok();
        let number = text.and_then(|text| text.trim().parse::<u8>().ok());
        if number.is_some_and(|number| number + 1 == port) {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    if let Some(mac) = mac_of_iwarp(&device, port) {
        let all = std::fs::read_dir(class.join("net"));
        for entry in all.into_iter().flatten().flatten() {
            let address = std::fs::read_to_string(entry.path().join("address"));
            if address.is_ok_and(|address| address.trim() == mac) {
                names.insert(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    names.remove("");
    names
}

/// The MAC address that the GID of an iWARP port begins with (`siw_query_gid`, `iwch_query_gid`, `irdma_iw_query_gid`
/// of the kernel), as sysfs writes that of an interface.
fn mac_of_iwarp(device: &Path, port: u8) -> Option<String> {
    let kind = std::fs::read_to_string(device.join("node_type")).ok()?;
    if !kind.contains("RNIC") {
        return None;
    }
    let gid = std::fs::read_to_string(device.join(format!("ports/{port}/gids/0"))).ok()?;
    let digits: String = gid.trim().split(':').take(3).collect();
    let bytes = (0..6).map(|at| digits.get(2 * at..2 * at + 2));
    let bytes: Vec<&str> = bytes.collect::<Option<_>>()?;
    Some(bytes.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::put;

    #[test]
    fn a_network_is_what_its_addresses_have_in_common() {
        let network = |address: &str, bits| IpNetwork::of(address.parse().unwrap(), bits);
        assert_eq!(network("10.77.3.1", 16).to_string(), "10.77.0.0/16");
        assert_eq!(network("10.77.3.1", 0).to_string(), "0.0.0.0/0");
        assert_eq!(network("10.77.3.1", 32).to_string(), "10.77.3.1/32");
        assert_eq!(network("fd00:1::7", 64).to_string(), "fd00:1::/64");
        assert_eq!(network("10.0.0.1", 24), network("10.0.0.2", 24));
        assert_ne!(network("10.0.0.1", 24), network("10.0.0.2", 25));
        assert_ne!(network("10.0.0.1", 24), network("10.0.1.1", 24));
    }

    #[test]
    fn interfaces_come_from_gids_and_from_the_device_itself() {
        let class = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| put(&class, path, text);
        write("infiniband/roce0/ports/1/gid_attrs/ndevs/0", "eth7\n");
        write("infiniband/roce0/ports/1/gid_attrs/ndevs/1", "eth7\n");
        write("infiniband/roce0/ports/2/gid_attrs/ndevs/0", "eth8\n");
        write("infiniband/ib0/device/net/ipoib0/dev_port", "0\n");
        write("infiniband/ib0/device/net/ipoib1/dev_port", "1\n");
        write("infiniband/siw0/node_type", "4: RNIC\n");
        write(
            "infiniband/siw0/ports/1/gids/0",
            "5254:0077:ab01:0000:0000:0000:0000:0000\n",
        );
        write("net/eth9/address", "52:54:00:77:ab:01\n");
        write("net/eth8/address", "52:54:00:77:ab:02\n");
        for (device, port, expected) in [
            ("siw0", 1, &["eth9"][..]),
            ("siw0", 2, &[]),
            ("roce0", 1, &["eth7"]),
            ("roce0", 2, &["eth8"]),
            ("ib0", 1, &["ipoib0"]),
            ("ib0", 2, &["ipoib1"]),
            ("none", 1, &[]),
        ] {
            let names = interfaces_of(class.path(), device, port, None);
            assert!(names.iter().eq(expected), "{device}, {port}: {names:?}");
        }
        // Only files of entries in use are read.
        write("infiniband/roce0/ports/1/gid_attrs/ndevs/3", "eth9\n");
        let in_use = |gids| interfaces_of(class.path(), "roce0", 1, Some(gids));
        assert!(in_use(vec![0, 1]).iter().eq(["eth7"]));
        assert!(in_use(vec![3, 0]).iter().eq(["eth7", "eth9"]));
        assert_eq!(in_use(Vec::new()), BTreeSet::new());
    }
}
