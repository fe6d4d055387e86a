//! The partition keys of a port, as sysfs has them.

use std::collections::BTreeMap;
use std::path::Path;

use super::port_folder;

/// The bit of full members: a limited one reaches these only (InfiniBand Architecture Specification, volume 1, 10.9.3).
const FULL: u16 = 0x8000;

/// The keys of a port by their index.
pub type PartitionKeys = BTreeMap<u16, u16>;

/// The partition keys of a port.
pub fn partition_keys(device: &str, port: u8) -> PartitionKeys {
    keys_in(&port_folder(device, port))
}

/// From `pkeys/INDEX` in the folder of a port (Documentation/ABI/stable/sysfs-class-infiniband of the kernel); 0 is not
/// a key.
fn keys_in(port: &Path) -> PartitionKeys {
    let entries = std::fs::read_dir(port.join("pkeys"))
        .into_iter()
        .flatten()
        .flatten();
    let key = |entry: std::fs::DirEntry| {
        let index = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path()).ok()?;
        let key = u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()?;
        (key & !FULL > 0).then_some((index, key))
    };
    entries.filter_map(key).collect()
}

/// The indices at which two ports have a partition in which they reach each other, in ascending order.
pub fn common_partitions(here: &PartitionKeys, there: &PartitionKeys) -> Vec<u16> {
    let reach = |here: u16, there: u16| here & !FULL == there & !FULL && (here | there) & FULL > 0;
    let common = here.iter().filter(|(index, key)| {
        let other = there.get(index);
        other.is_some_and(|other| reach(**key, *other))
    });
    common.map(|(index, _)| *index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::put;

    #[test]
    fn a_partition_has_a_full_member_at_one_end_at_least_and_empty_entries_are_none() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("a/pkeys/0", "0xffff\n"),
            ("a/pkeys/1", "0x8001\n"),
            ("a/pkeys/2", "0x0000\n"),
            ("a/pkeys/3", "0x0004\n"),
            ("a/pkeys/10", "0x8002\n"),
            ("b/pkeys/0", "0x7fff\n"),
            ("b/pkeys/1", "0x8003\n"),
            ("b/pkeys/2", "0x0000\n"),
            ("b/pkeys/3", "0x0004\n"),
            ("b/pkeys/10", "0x8002\n"),
        ] {
            put(&folder, path, text);
        }
        let keys = |port: &str| keys_in(&folder.path().join(port));
        assert_eq!(common_partitions(&keys("a"), &keys("b")), [0, 10]);
        assert!(common_partitions(&keys("a"), &keys("c")).is_empty());
    }
}
