//! The partition keys of a port, as sysfs has them.

use std::path::Path;

/// Membership: full members and limited ones reach each other.
const FULL: u16 = 0x8000;

/// The indices at which two ports have the same partition, in ascending order.
pub fn common_partitions(ends: [(&str, u8); 2]) -> Vec<u16> {
    common(Path::new("/sys/class/infiniband"), ends)
}

/// From `pkeys/INDEX` of both ports (Documentation/ABI/stable/sysfs-class-infiniband of the kernel); 0 is no key.
fn common(class: &Path, ends: [(&str, u8); 2]) -> Vec<u16> {
    let [here, there] =
        ends.map(|(device, port)| class.join(format!("{device}/ports/{port}/pkeys")));
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
        let class = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("a/ports/1/pkeys/0", "0xffff\n"),
            ("a/ports/1/pkeys/1", "0x8001\n"),
            ("a/ports/1/pkeys/2", "0x0000\n"),
            ("a/ports/1/pkeys/10", "0x8002\n"),
            ("b/ports/2/pkeys/0", "0x7fff\n"),
            ("b/ports/2/pkeys/1", "0x8003\n"),
            ("b/ports/2/pkeys/2", "0x0000\n"),
            ("b/ports/2/pkeys/10", "0x8002\n"),
        ] {
            let path = class.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(common(class.path(), [("a", 1), ("b", 2)]), [0, 10]);
        assert!(common(class.path(), [("a", 1), ("c", 1)]).is_empty());
    }
}
