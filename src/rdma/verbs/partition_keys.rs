//! The partition keys of a port, as sysfs has them.

use std::path::{Path, PathBuf};

use super::port_folder;

/// Membership: full members and limited ones reach each other.
const FULL: u16 = 0x8000;

/// The indices at which two ports have the same partition, in ascending order.
pub fn common_partitions(ends: [(&str, u8); 2]) -> Vec<u16> {
    common(ends.map(|(device, port)| port_folder(device, port)))
}

/// From `pkeys/INDEX` in the folders of both ports (Documentation/ABI/stable/sysfs-class-infiniband of the kernel); 0 is no key.
fn common(ports: [PathBuf; 2]) -> Vec<u16> {
    let [here, there] = ports.map(|port| port.join("pkeys"));
    let key = |folder: &Path, index: u16| {
        let text = std::fs::read_to_string(folder.join(index.to_string())).ok()?;
        let key = u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()?;
        Some(key & !FULL).filter(|key| *key > 0)
    };
    let entries = std::fs::read_dir(&here).into_iter().flatten().flatten();
    let indices = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<u16> = indices
        .filter(|&index| key(&here, index).is_some() && key(&here, index) == key(&there, index))
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_the_same_whatever_the_membership_and_empty_entries_are_none() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("a/pkeys/0", "0xffff\n"),
            ("a/pkeys/1", "0x8001\n"),
            ("a/pkeys/2", "0x0000\n"),
            ("a/pkeys/10", "0x8002\n"),
            ("b/pkeys/0", "0x7fff\n"),
            ("b/pkeys/1", "0x8003\n"),
            ("b/pkeys/2", "0x0000\n"),
            ("b/pkeys/10", "0x8002\n"),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let of = |ports: [&str; 2]| common(ports.map(|port| folder.path().join(port)));
        assert_eq!(of(["a", "b"]), [0, 10]);
        assert!(of(["a", "c"]).is_empty());
    }
}
