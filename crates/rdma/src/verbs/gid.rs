//! The GIDs of a port, as sysfs has them.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::port_folder;

const INTERFACES: &str = "gid_attrs/ndevs";

/// A file that is not there or cannot be read, and why.
pub type UnreadFile = (PathBuf, io::Error);

/// An entry of a port's GID table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Gid {
    /// Its place in the table.
    pub index: u8,
    /// The GID in eight groups of four hexadecimal digits.
    pub gid: String,
    /// What packets look like that are sent by it: `IB/RoCE v1` or `RoCE v2`. None where the kernel does not report it.
    pub kind: Option<String>,
    /// The network interface that it was made from (RoCE).
    pub interface: Option<String>,
}

impl Gid {
    /// Reads an entry; none if it is empty or not there.
    pub fn read(device: &str, port: u8, index: u8) -> Option<Self> {
        Self::read_in(&port_folder(device, port), index, &mut Vec::new())
    }

    /// `gids/INDEX`, `gid_attrs/types/INDEX` and `gid_attrs/ndevs/INDEX` in the folder of a port
    /// (Documentation/ABI/stable/sysfs-class-infiniband of the kernel). The last two cannot be read of an empty entry.
    /// Those of them that cannot be read are added to `unread`, but for the interface of a GID that has none: EINVAL
    /// (print_ndev in drivers/infiniband/core/sysfs.c of the kernel).
    pub(super) fn read_in(port: &Path, index: u8, unread: &mut Vec<UnreadFile>) -> Option<Self> {
        let mut text = |folder: &str| {
            let path = port.join(format!("{folder}/{index}"));
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) => {
                    let has_none =
                        folder == INTERFACES && error.raw_os_error() == Some(nix::libc::EINVAL);
                    if !has_none {
                        unread.push((path, error));
                    }
                    return None;
                }
            };
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let gid = text("gids")?;
        let is_set = gid.chars().any(|digit| !matches!(digit, '0' | ':'));
        is_set.then(|| Gid {
            index,
            kind: text("gid_attrs/types"),
            interface: text(INTERFACES),
            gid,
        })
    }

    /// The first half, which identifies an InfiniBand subnet.
    pub fn subnet_prefix(&self) -> &str {
        let end = self.gid.match_indices(':').nth(3);
        end.map_or(self.gid.as_str(), |(end, _)| &self.gid[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::put;

    #[test]
    fn an_entry_is_read_with_its_type_and_interface() {
        let port = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("gids/0", "fe80:0000:0000:0001:0011:22ff:fe33:4455\n"),
            ("gids/1", "0000:0000:0000:0000:0000:ffff:0a4d:0001\n"),
            ("gid_attrs/types/1", "RoCE v2\n"),
            ("gid_attrs/ndevs/1", "veth0\n"),
            ("gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n"),
        ] {
            put(&port, name, text);
        }
        let read = |index| Gid::read_in(port.path(), index, &mut Vec::new());
        let first = read(0).unwrap();
        assert_eq!(first.kind.as_ref(), None);
        assert_eq!(first.interface.as_ref(), None);
        assert_eq!(first.subnet_prefix(), "fe80:0000:0000:0001");
        let second = read(1).unwrap();
        assert_eq!(second.kind.as_deref(), Some("RoCE v2"));
        assert_eq!(second.interface.as_deref(), Some("veth0"));
        assert_eq!([read(2), read(3)], [None, None]);
    }
}
