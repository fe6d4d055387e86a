//! The partition keys of a port, as sysfs has them.

use std::path::{Path, PathBuf};

use super::port_folder;

/// The bit of full members: a limited one reaches these only (InfiniBand Architecture Specification, volume 1, 10.9.3).
const FULL: u16 = 0x8000;

/// The indices at which two ports have a partition in which they reach each other, in ascending order.
pub fn common_partitions(ends: [(&str, u8); 2]) -> Vec<u16> {
    common(ends.map(|(device, port)| port_folder(device, port)))
}

/// From `pkeys/INDEX` in the folders of both ports (Documentation/ABI/stable/sysfs-class-infiniband of the kernel); 0 is no key.
fn common(ports: [PathBuf; 2]) -> Vec<u16> {
    let [here, there] = ports.map(|port| port.join("pkeys"));
    let key = |folder: &Path, index: u16| {
        let text = std::fs::read_to_string(folder.join(index.to_string())).ok()?;
        let key = u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()?;
        Some(key).filter(|key| key & !FULL > 0)
    };
    let reach =
        |(here, there): (u16, u16)| here & !FULL == there & !FULL && (here | there) & FULL > 0;
    let entries = std::fs::read_dir(&here).into_iter().flatten().flatten();
    let indices = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<u16> = indices
        .filter(|&index| key(&here, index).zip(key(&there, index)).is_some_and(reach))
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let of = |ports: [&str; 2]| common(ports.map(|port| folder.path().join(port)));
        assert_eq!(of(["a", "b"]), [0, 10]);
        assert!(of(["a", "c"]).is_empty());
    }
}
