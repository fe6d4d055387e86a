//! The counters of a port, as sysfs has them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::interface_counters::{interface_counters, is_physical};
use super::port_address::interfaces_of;
use super::port_folder;

/// The folders of a port that hold counters: those of the InfiniBand performance management, and the driver's own
/// (Documentation/ABI/stable/sysfs-class-infiniband of the kernel).
const FOLDERS: [&str; 2] = ["counters", "hw_counters"];

/// A setting among the driver's counters: for how many milliseconds the kernel gives out what it has read before.
const LIFESPAN: &str = "hw_counters/lifespan";
/// Longer than this it is not waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Counters of a port, or by how much they grew: folder and name, such as `hw_counters/out_of_sequence`, and the value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct PortCounters(BTreeMap<String, u64>);

impl PortCounters {
    /// Reads those of a port; empty where it has none. The driver's own may be as old as the kernel keeps them, some
    /// 10 ms.
    pub fn read(device: &str, port: u8) -> Self {
        Self::read_in(&port_folder(device, port)).with_physical(device, port)
    }

    /// With those of the physical port that the drivers of its network interfaces keep, as `ethtool/NAME`.
    fn with_physical(mut self, device: &str, port: u8) -> Self {
        for interface in interfaces_of(Path::new("/sys/class"), device, port) {
            let counters = interface_counters(&interface).into_iter();
            let physical = counters.filter(|(name, _)| is_physical(name));
            self.0
                .extend(physical.map(|(name, value)| (format!("ethtool/{name}"), value)));
        }
        self
    }

    /// Waits as long as the kernel may give out older values, and reads then.
    pub fn read_fresh(device: &str, port: u8) -> Self {
        let folder = port_folder(device, port);
        let lifespan = number_in(&folder.join(LIFESPAN)).map(Duration::from_millis);
        std::thread::sleep(lifespan.unwrap_or_default().min(LONGEST_WAIT));
        Self::read_in(&folder).with_physical(device, port)
    }

    fn read_in(port: &Path) -> Self {
        let mut counters = BTreeMap::new();
        let of_port = FOLDERS.map(|folder| (folder, port.join(folder)));
        // Those of the device as a whole, where the driver has no other (cxgb4).
        let [_, hardware] = FOLDERS;
        let of_device = port
            .ancestors()
            .nth(2)
            .map(|device| (hardware, device.join(hardware)));
        for (folder, path) in of_port.into_iter().chain(of_device) {
            let entries = std::fs::read_dir(path);
            for entry in entries.into_iter().flatten().flatten() {
                let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                // One that the device does not have gives an error, or a text: "N/A (no PMA)".
                if let (true, Some(value)) = (name != LIFESPAN, number_in(&entry.path())) {
                    counters.entry(name).or_insert(value);
                }
            }
        }
        PortCounters(counters)
    }

    /// By how much each grew since `earlier`. One that became less was set back and is left out, unless it has 32 bits
    /// and was near its end. So is one that has stopped at its largest value: how much it missed is not known.
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = self.0.iter().filter_map(|(name, &now)| {
            let before = *earlier.0.get(name)?;
            let stops_at = largest_value(name);
            if stops_at == Some(now) {
                return None;
            }
            let near_end = u32::try_from(before).is_ok_and(|before| before > u32::MAX / 2);
            let wraps = stops_at.is_none() && near_end;
            let difference = match now.checked_sub(before) {
                Some(difference) => difference,
                None if wraps => now + (1 << 32) - before,
                None => return None,
            };
            Some((name.clone(), difference))
        });
        grown.collect()
    }

    /// One of them; `None` where the port does not have it.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl FromIterator<(String, u64)> for PortCounters {
    fn from_iter<T: IntoIterator<Item = (String, u64)>>(counters: T) -> Self {
        PortCounters(counters.into_iter().collect())
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
    use super::*;
    use crate::testing::put;

    #[test]
    fn both_folders_are_read_without_what_is_no_number() {
        let device = tempfile::tempdir().unwrap();
        put(&device, "hw_counters/ip4RetransSegs", "5\n");
        put(&device, "hw_counters/sent_pkts", "9999\n");
        let port = device.path().join("ports/1");
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
            ("hw_counters/RNR sent", 3),
            ("hw_counters/ip4RetransSegs", 5),
            ("hw_counters/sent_pkts", 4711),
        ]);
        assert_eq!(PortCounters::read_in(&port), expected);
        let nowhere = tempfile::tempdir().unwrap().path().join("none");
        assert_eq!(PortCounters::read_in(&nowhere), PortCounters::default());
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
        let expected = PortCounters::of(&[("a", 4), ("same", 0), ("wraps", 5)]);
        assert_eq!(after.since(&before), expected);
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
