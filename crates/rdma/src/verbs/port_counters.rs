//! The counters of a port, as sysfs has them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

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
        Self::read_in(&port_folder(device, port))
    }

    /// Waits as long as the kernel may give out older values, and reads then.
    pub fn read_fresh(device: &str, port: u8) -> Self {
        let folder = port_folder(device, port);
        let lifespan = number_in(&folder.join(LIFESPAN)).map(Duration::from_millis);
        std::thread::sleep(lifespan.unwrap_or_default().min(LONGEST_WAIT));
        Self::read_in(&folder)
    }

    fn read_in(port: &Path) -> Self {
        let mut counters = BTreeMap::new();
        for folder in FOLDERS {
            let entries = std::fs::read_dir(port.join(folder));
            for entry in entries.into_iter().flatten().flatten() {
                let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                // One that the device does not have gives an error, or a text: "N/A (no PMA)".
                if let (true, Some(value)) = (name != LIFESPAN, number_in(&entry.path())) {
                    counters.insert(name, value);
                }
            }
        }
        PortCounters(counters)
    }

    /// By how much each grew since `earlier`. One that became less was set back and is left out, unless it has 32 bits
    /// and was near its end.
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = self.0.iter().filter_map(|(name, &now)| {
            let before = *earlier.0.get(name)?;
            let wraps = u32::try_from(before).is_ok_and(|before| before > u32::MAX / 2);
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
        let port = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("counters/port_xmit_packets", "17\n"),
            ("counters/symbol_error", "N/A (no PMA)\n"),
            ("hw_counters/sent_pkts", "4711\n"),
            ("hw_counters/RNR sent", "3\n"),
            ("hw_counters/lifespan", "10\n"),
            ("pkeys/0", "65535\n"),
        ] {
            put(&port, name, text);
        }
        let expected = PortCounters::of(&[
            ("counters/port_xmit_packets", 17),
            ("hw_counters/RNR sent", 3),
            ("hw_counters/sent_pkts", 4711),
        ]);
        assert_eq!(PortCounters::read_in(port.path()), expected);
        let nowhere = port.path().join("none");
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
}
