//! The counters of a port, as sysfs has them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::Context;
use super::interface_counters::interface_counters;
use super::physical_counters::of_physical_port;
use super::physical_port::on_wire;

/// The folder of the driver's own counters.
const HARDWARE: &str = "hw_counters";
/// What the names of counters of the device as a whole begin with.
pub(super) const OF_DEVICE: &str = "device/";
/// What the names of statistics of network interfaces begin with.
pub(super) const OF_INTERFACE: &str = "ethtool/";
/// A setting among the driver's counters: for how many milliseconds the kernel gives out what it has read before.
const LIFESPAN: &str = "lifespan";
/// Longer than this it is not waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Counters of a port, or by how much they grew: folder and name, such as `hw_counters/out_of_sequence`, and the value,
/// or none where the growth of one that the port has is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct PortCounters(BTreeMap<String, Option<u64>>);

/// Which counters of a port are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub enum CounterReading {
    /// All. The device's may be as old as the kernel keeps them, some 10 ms.
    All,
    /// Those of the physical port, which the driver of its network interfaces reads at once.
    Interfaces,
    /// Those of the device, after waiting as long as the kernel may give out older values.
    FreshOfDevice,
}

impl PortCounters {
    /// Reads those of a port; empty where it has none.
    pub fn read(context: &Context, port: u8, reading: CounterReading) -> Self {
        let (class, device) = (Path::new("/sys/class"), context.device_name());
        let interfaces = || context.interfaces(port);
        Self::read_below(
            class,
            (device, port),
            reading,
            interfaces,
            interface_counters,
        )
    }

    /// The same in a folder like `/sys/class`.
    fn read_below(
        class: &Path,
        (device, port): (&str, u8),
        reading: CounterReading,
        interfaces: impl Fn() -> BTreeSet<String>,
        counters_of: impl Fn(&str) -> Vec<(String, u64)>,
    ) -> Self {
        let folder = class.join(format!("infiniband/{device}/ports/{port}"));
        let of_interfaces = || {
            let interfaces = on_wire(class, (device, port), interfaces());
            Self::of_interfaces(&interfaces, counters_of)
        };
        match reading {
            CounterReading::All => Self::read_in(&folder).and(of_interfaces()),
            CounterReading::Interfaces => of_interfaces(),
            CounterReading::FreshOfDevice => {
                std::thread::sleep(longest_lifespan(&folder));
                Self::read_in(&folder)
            }
        }
    }

    /// Those of the physical port that the drivers of its network interfaces keep, as `ethtool/NAME`.
    fn of_interfaces(
        interfaces: &BTreeSet<String>,
        counters_of: impl Fn(&str) -> Vec<(String, u64)>,
    ) -> Self {
        let mut counters = BTreeMap::new();
        for interface in interfaces {
            for (name, value) in of_physical_port(counters_of(interface)) {
                let sum: &mut u64 = counters.entry(format!("{OF_INTERFACE}{name}")).or_default();
                *sum = sum.saturating_add(value);
            }
        }
        counters.into_iter().collect()
    }

    /// With others of the same port.
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    fn read_in(port: &Path) -> Self {
        let mut counters = BTreeMap::new();
        for (prefix, path) in folders(port) {
            let entries = std::fs::read_dir(path);
            for entry in entries.into_iter().flatten().flatten() {
                let name = entry.file_name();
                // One that the device does not have gives an error, or a text: "N/A (no PMA)".
                if let (true, Some(value)) = (name != LIFESPAN, number_in(&entry.path())) {
                    let name = format!("{prefix}/{}", name.to_string_lossy());
                    counters.insert(name, Some(value));
                }
            }
        }
        PortCounters(counters)
    }

    /// By how much each grew since `earlier`. It is unknown of one that became less, as it was set back, unless it has
    /// 32 bits and was near its end, and of one that has stopped at its largest value, which missed some or all.
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = self.0.iter().filter_map(|(name, now)| {
            let before = *earlier.0.get(name)?;
            let difference = now.zip(before);
            let difference = difference.and_then(|(now, before)| growth(name, before, now));
            Some((name.clone(), difference))
        });
        PortCounters(grown.collect())
    }

    /// One of them; `None` where the port does not have it or its growth is unknown.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied().flatten()
    }

    /// Whether the port has it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// All that are known, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let all = self.0.iter();
        all.filter_map(|(name, value)| Some((name.as_str(), (*value)?)))
    }
}

/// From `before` to `now`, where that is known.
fn growth(name: &str, before: u64, now: u64) -> Option<u64> {
    let stops_at = largest_value(name);
    if stops_at == Some(now) {
        return None;
    }
    let near_end = u32::try_from(before).is_ok_and(|before| before > u32::MAX / 2);
    let wraps = stops_at.is_none() && near_end;
    match now.checked_sub(before) {
        Some(difference) => Some(difference),
        None if wraps => Some(now + (1 << 32) - before),
        None => None,
    }
}

/// The folders with counters of a port, and what the names of these begin with: those of the InfiniBand performance
/// management, the driver's own (Documentation/ABI/stable/sysfs-class-infiniband of the kernel), and those that the
/// driver keeps of the device as a whole, which its ports have in common (cxgb4).
fn folders(port: &Path) -> Vec<(String, PathBuf)> {
    let of = |prefix: &str, folder: &Path, name: &str| {
        let path = folder.join(name);
        (format!("{prefix}{name}"), path)
    };
    let device = port.ancestors().nth(2);
    let of_device = device.map(|device| of(OF_DEVICE, device, HARDWARE));
    let of_port = ["counters", HARDWARE].map(|name| of("", port, name));
    of_port.into_iter().chain(of_device).collect()
}

/// The longest time for which the kernel may give out older values of a port.
fn longest_lifespan(port: &Path) -> Duration {
    let folders = folders(port).into_iter();
    let lifespans = folders.filter_map(|(_, folder)| number_in(&folder.join(LIFESPAN)));
    let longest = lifespans.max().map(Duration::from_millis);
    longest.unwrap_or_default().min(LONGEST_WAIT)
}

impl FromIterator<(String, u64)> for PortCounters {
    fn from_iter<T: IntoIterator<Item = (String, u64)>>(counters: T) -> Self {
        let known = counters
            .into_iter()
            .map(|(name, value)| (name, Some(value)));
        PortCounters(known.collect())
    }
}

/// Where a counter of the InfiniBand performance management stops (InfiniBand Architecture Specification, volume 1,
/// 16.1.3.5, PortCounters; the widths are those of the kernel's `core/sysfs.c`). Where the device has one of 64 bits
/// instead, the kernel gives that, which passes this value.
fn largest_value(name: &str) -> Option<u64> {
    let bits = match name.strip_prefix("counters/")? {
        "local_link_integrity_errors" | "excessive_buffer_overrun_errors" => 4,
        "link_error_recovery"
        | "link_downed"
        | "port_xmit_constraint_errors"
        | "port_rcv_constraint_errors" => 8,
        "symbol_error"
        | "port_rcv_errors"
        | "port_rcv_remote_physical_errors"
        | "port_rcv_switch_relay_errors"
        | "port_xmit_discards"
        | "VL15_dropped" => 16,
        "port_xmit_data" | "port_rcv_data" | "port_xmit_packets" | "port_rcv_packets"
        | "port_xmit_wait" => 32,
        _ => return None,
    };
    Some((1 << bits) - 1)
}

fn number_in(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(any(test, feature = "testing"))]
impl PortCounters {
    /// Made-up ones.
    pub fn of(values: &[(&str, u64)]) -> Self {
        let named = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::port_address::interfaces_of;
    use super::*;
    use crate::testing::put;

    #[test]
    fn each_folder_is_read_without_what_is_no_number() {
        let device = tempfile::tempdir().unwrap();
        put(&device, "hw_counters/ip4RetransSegs", "5\n");
        put(&device, "hw_counters/sent_pkts", "9999\n");
        put(&device, "hw_counters/lifespan", "250\n");
        let port = device.path().join("ports/1");
        assert_eq!(longest_lifespan(&port), Duration::from_millis(250));
        for (name, text) in [
            ("counters/port_xmit_packets", "17\n"),
            ("counters/symbol_error", "N/A (no PMA)\n"),
            ("hw_counters/sent_pkts", "4711\n"),
            ("hw_counters/RNR sent", "3\n"),
            ("hw_counters/lifespan", "10\n"),
            ("pkeys/0", "65535\n"),
        ] {
            put(&device, &format!("ports/1/{name}"), text);
        }
        let expected = PortCounters::of(&[
            ("counters/port_xmit_packets", 17),
            ("device/hw_counters/ip4RetransSegs", 5),
            ("device/hw_counters/sent_pkts", 9999),
            ("hw_counters/RNR sent", 3),
            ("hw_counters/sent_pkts", 4711),
        ]);
        assert_eq!(PortCounters::read_in(&port), expected);
        // That of the port is no longer.
        assert_eq!(longest_lifespan(&port), Duration::from_millis(250));
        put(&device, "ports/1/hw_counters/lifespan", "300\n");
        assert_eq!(longest_lifespan(&port), Duration::from_millis(300));
        put(&device, "hw_counters/lifespan", "90000\n");
        assert_eq!(longest_lifespan(&port), LONGEST_WAIT);
        let nowhere = tempfile::tempdir().unwrap().path().join("none");
        assert_eq!(PortCounters::read_in(&nowhere), PortCounters::default());
    }

    #[test]
    fn what_is_read_is_that_of_the_interfaces_or_of_the_device() {
        let class = tempfile::tempdir().unwrap();
        let port = "infiniband/mlx5_0/ports/1";
        let packets = format!("{port}/hw_counters/sent_pkts");
        for (file, text) in [
            (&*format!("{port}/link_layer"), "Ethernet\n"),
            (&*format!("{port}/gid_attrs/ndevs/0"), "eth0\n"),
            (&*format!("{port}/hw_counters/lifespan"), "1\n"),
            (&*packets, "4711\n"),
            ("net/eth0/address", "52:54:00:77:ab:01\n"),
        ] {
            put(&class, file, text);
        }
        // While the statistics of the interface are read, the device sends one more.
        let statistics = |interface: &str| {
            assert_eq!(interface, "eth0");
            put(&class, &packets, "4712\n");
            vec![("tx_packets_phy".to_owned(), 3)]
        };
        let interfaces = || interfaces_of(class.path(), "mlx5_0", 1, None);
        let read = |reading| {
            let port = ("mlx5_0", 1);
            PortCounters::read_below(class.path(), port, reading, interfaces, statistics)
        };
        let of_device = |count| ("hw_counters/sent_pkts", count);
        let of_interface = ("ethtool/tx_packets_phy", 3);
        for (reading, expected) in [
            (CounterReading::FreshOfDevice, vec![of_device(4711)]),
            (CounterReading::All, vec![of_device(4711), of_interface]),
            (CounterReading::FreshOfDevice, vec![of_device(4712)]),
            (CounterReading::Interfaces, vec![of_interface]),
        ] {
            assert_eq!(read(reading), PortCounters::of(&expected), "{reading:?}");
        }
        // As at the end of a measurement: what the device does meanwhile is in its counters.
        put(&class, &packets, "4711\n");
        let end = read(CounterReading::Interfaces).and(read(CounterReading::FreshOfDevice));
        assert_eq!(end, PortCounters::of(&[of_interface, of_device(4712)]));
    }

    #[test]
    fn growth_is_told_over_the_end_of_32_bits_and_not_where_a_counter_was_set_back() {
        let end = u64::from(u32::MAX);
        let before = PortCounters::of(&[("a", 5), ("same", 7), ("wraps", end - 1), ("reset", 900)]);
        let after = PortCounters::of(&[
            ("a", 9),
            ("same", 7),
            ("wraps", 3),
            ("reset", 2),
            ("new", 1),
        ]);
        let grown = after.since(&before);
        let known: Vec<_> = grown.iter().collect();
        assert_eq!(known, [("a", 4), ("same", 0), ("wraps", 5)]);
        assert!(grown.has("reset") && !grown.has("new"));
    }

    #[test]
    fn counters_of_the_physical_port_add_up_over_its_interfaces() {
        let of = |names: &[&str]| {
            let interfaces = names.iter().map(|name| (*name).to_owned()).collect();
            PortCounters::of_interfaces(&interfaces, |interface| {
                let packets = match interface {
                    "eth0" => 5,
                    "eth1" => 7,
                    _ => 0,
                };
                let counters = [("tx_packets_phy", packets), ("tx_packets", 9)];
                Vec::from(counters.map(|(name, value)| (name.to_owned(), value)))
            })
        };
        let packets = |count| PortCounters::of(&[("ethtool/tx_packets_phy", count)]);
        assert_eq!(of(&["eth0", "eth1", "vlan"]), packets(12));
        assert_eq!(of(&["eth0"]), packets(5));
        let of_device = PortCounters::of(&[("hw_counters/sent_pkts", 4712)]);
        let both = of_device.and(of(&["eth1"]));
        let both: Vec<_> = both.iter().collect();
        assert_eq!(
            both,
            [
                ("ethtool/tx_packets_phy", 7),
                ("hw_counters/sent_pkts", 4712)
            ]
        );
        // The count of a function that may not read it.
        assert_eq!(of(&["vlan"]), PortCounters::default());
    }

    #[test]
    fn a_counter_at_its_largest_value_tells_nothing() {
        let wait = "counters/port_xmit_wait";
        let grown = |name, before, now| {
            let [before, now] = [before, now].map(|value| PortCounters::of(&[(name, value)]));
            now.since(&before).get(name)
        };
        let end = u64::from(u32::MAX);
        assert_eq!(grown(wait, end, end), None, "it has missed all");
        assert_eq!(grown(wait, 7, end), None, "it has missed some");
        assert_eq!(grown(wait, 7, 9), Some(2));
        assert_eq!(
            grown(wait, end - 1, 3),
            None,
            "it does not wrap: it was set back"
        );
        assert_eq!(grown("counters/link_downed", 255, 255), None);
        assert_eq!(grown("counters/symbol_error", 255, 256), Some(1));
        let packets = "counters/port_xmit_packets";
        assert_eq!(grown(packets, end + 5, end + 9), Some(4), "of 64 bits");
        assert_eq!(grown("hw_counters/anything", end - 1, 3), Some(5));
    }
}
