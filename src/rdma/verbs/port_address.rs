//! The IP addresses by which the RDMA connection manager finds a port.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

/// Addresses of the network interfaces that belong to a port: those its GIDs were made from (RoCE) and those of the
/// device itself with this port's number (IPoIB). IPv4 first; link-local ones are left out, as they need an interface
/// to be of use.
pub fn port_addresses(device: &str, port: u8) -> Vec<IpAddr> {
    let interfaces = interfaces_of(Path::new("/sys/class/infiniband"), device, port);
    let Ok(all) = nix::ifaddrs::getifaddrs() else {
        return Vec::new();
    };
    let mut addresses: Vec<IpAddr> = all
        .filter(|entry| interfaces.contains(&entry.interface_name))
        .filter_map(|entry| {
            let address = entry.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        })
        .filter(|address| match address {
            IpAddr::V4(v4) => !v4.is_link_local(),
            IpAddr::V6(v6) => !v6.is_unicast_link_local(),
        })
        .collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

/// Names of the interfaces of a port, from sysfs (Documentation/ABI/stable/sysfs-class-infiniband of the kernel).
fn interfaces_of(class: &Path, device: &str, port: u8) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let device = class.join(device);
    let of_gids = device.join(format!("ports/{port}/gid_attrs/ndevs"));
    for entry in std::fs::read_dir(of_gids).into_iter().flatten().flatten() {
        // An empty entry of the GID table gives EINVAL when read.
        if let Ok(name) = std::fs::read_to_string(entry.path()) {
            names.insert(name.trim().to_owned());
        }
    }
    let own = std::fs::read_dir(device.join("device/net"));
    for entry in own.into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path().join("dev_port")).ok();
        let number = text.and_then(|text| text.trim().parse::<u8>().ok());
        if number.is_some_and(|number| number + 1 == port) {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.remove("");
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_come_from_gids_and_from_the_device_itself() {
        let class = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = class.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("roce0/ports/1/gid_attrs/ndevs/0", "eth7\n");
        write("roce0/ports/1/gid_attrs/ndevs/1", "eth7\n");
        write("roce0/ports/2/gid_attrs/ndevs/0", "eth8\n");
        write("ib0/device/net/ipoib0/dev_port", "0\n");
        write("ib0/device/net/ipoib1/dev_port", "1\n");
        for (device, port, expected) in [
            ("roce0", 1, &["eth7"][..]),
            ("roce0", 2, &["eth8"]),
            ("ib0", 1, &["ipoib0"]),
            ("ib0", 2, &["ipoib1"]),
            ("none", 1, &[]),
        ] {
            let names = interfaces_of(class.path(), device, port);
            assert!(names.iter().eq(expected), "{device}, {port}: {names:?}");
        }
    }
}
