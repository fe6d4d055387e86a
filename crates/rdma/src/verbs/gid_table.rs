//! The entries in use of a port's GID table, and which of two ports' the ends of a path can have.

use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::OnceLock;

use rdma_sys as sys;

use super::{Context, Gid, UnreadFile, port_folder};
use crate::loaded;

/// The most entries that one query can return, of all ports: attributes of the kernel's ioctl have lengths of 16 bits.
const MOST_ENTRIES: usize = u16::MAX as usize / size_of::<sys::ibv_gid_entry>();
/// No flag is defined.
const UNKNOWN_FLAG: u32 = 1;

/// `_ibv_query_gid_table` of libibverbs (rdma-core 32 or later). Arguments: context, buffer, its capacity in entries,
/// flags, size of an entry. Returns the number of entries of all ports, or a negative errno.
type QueryGidTable = unsafe extern "C" fn(
    *mut sys::ibv_context,
    *mut sys::ibv_gid_entry,
    usize,
    u32,
    usize,
) -> isize;

impl Context {
    /// Indices of the entries in use of a port's GID table. `None` if the library lacks the function, the kernel lacks
    /// the ioctl (before 5.10), or the query returns none.
    ///
    /// sysfs has a file for each entry, in use or not. Reading one takes up to a millisecond, and an RXE port has 1024.
    pub fn gids_in_use(&self, port: u8) -> Option<Vec<u32>> {
        static KERNEL_HAS_IT: OnceLock<bool> = OnceLock::new();
        // SAFETY: infiniband/verbs.h declares it with this type.
        let query: QueryGidTable = unsafe { loaded::optional(c"_ibv_query_gid_table") }?;
        let mut entries: Vec<sys::ibv_gid_entry> = Vec::with_capacity(MOST_ENTRIES);
        let size = size_of::<sys::ibv_gid_entry>();
        let mut entries_with = |flags| {
            // SAFETY: the context is open; the buffer holds MOST_ENTRIES entries of this size.
            unsafe {
                query(
                    self.as_ptr(),
                    entries.as_mut_ptr(),
                    MOST_ENTRIES,
                    flags,
                    size,
                )
            }
        };
        // Without the ioctl the library refuses flags in this way, and without flags it would read three files an entry.
        let refused = -(libc::EOPNOTSUPP as isize);
        let kernel_has_it = || entries_with(UNKNOWN_FLAG) != refused;
        if !*KERNEL_HAS_IT.get_or_init(kernel_has_it) {
            return None;
        }
        let count = usize::try_from(entries_with(0)).ok()?;
        // SAFETY: the library wrote `count` entries.
        unsafe { entries.set_len(count.min(MOST_ENTRIES)) };
        let of_port = entries.iter().filter(|it| it.port_num == u32::from(port));
        let indices: Vec<u32> = of_port.map(|it| it.gid_index).collect();
        // The first kernels with the ioctl leave ports out that are neither InfiniBand nor RoCE.
        (!indices.is_empty()).then_some(indices)
    }
}

/// The entries in use of a port's GID table.
pub fn gid_table(context: &Context, port: u8) -> Vec<Gid> {
    let folder = port_folder(context.device_name(), port);
    match context.gids_in_use(port) {
        Some(indices) => {
            let indices = indices.into_iter().filter_map(|it| u8::try_from(it).ok());
            let entries = indices.filter_map(|it| Gid::read_in(&folder, it, &mut Vec::new()));
            entries.collect()
        }
        None => gid_files_in(&folder).0,
    }
}

/// Reads all entries of the table without opening the device; also returns the files that are missing or cannot be
/// read.
pub fn gid_files(device: &str, port: u8) -> (Vec<Gid>, Vec<UnreadFile>) {
    gid_files_in(&port_folder(device, port))
}

fn gid_files_in(port: &Path) -> (Vec<Gid>, Vec<UnreadFile>) {
    let mut unread = Vec::new();
    let entries = (0..=u8::MAX).filter_map(|index| Gid::read_in(port, index, &mut unread));
    (entries.collect(), unread)
}

impl Gid {
    /// The GID as an address; one of an IPv4 address is the mapped `::ffff:a.b.c.d`.
    pub fn address(&self) -> Ipv6Addr {
        self.gid.parse().unwrap_or(Ipv6Addr::UNSPECIFIED)
    }

    /// Whether packets with it are RoCE v2: UDP over IP.
    fn is_roce_v2(&self) -> bool {
        self.kind.as_deref() == Some("RoCE v2")
    }

    /// Whether it was made from an IPv4 address.
    fn is_ipv4(&self) -> bool {
        self.address().to_ipv4_mapped().is_some()
    }

    /// Whether two entries, of two ports, can be the two ends of a path.
    pub fn suits(&self, other: &Gid) -> bool {
        let local = |gid: &Gid| gid.address().is_unicast_link_local();
        self.kind == other.kind && self.is_ipv4() == other.is_ipv4() && local(self) == local(other)
    }
}

/// The entries by which two ports reach each other: of RoCE v2 where both have it, those of their IP addresses before
/// others. `None` where no entry of one suits one of the other.
pub fn usual_pair([here, there]: [&[Gid]; 2], addresses: [Option<IpAddr>; 2]) -> Option<[&Gid; 2]> {
    let mapped = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let [one, other] = addresses.map(|address| address.map(mapped));
    let pairs = here
        .iter()
        .flat_map(|gid| there.iter().map(move |peer| [gid, peer]));
    let rank = |[gid, peer]: &[&Gid; 2]| {
        let of_addresses = Some(gid.address()) == one && Some(peer.address()) == other;
        let local = gid.address().is_unicast_link_local();
        // Of what is equally good the first, whose indices are the lowest.
        (!gid.is_roce_v2(), !of_addresses, !gid.is_ipv4(), local)
    };
    pairs.filter(|[gid, peer]| gid.suits(peer)).min_by_key(rank)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::testing::put;

    fn gid(index: u8, address: &str, version: u8) -> Gid {
        let kind = if version == 2 {
            "RoCE v2"
        } else {
            "IB/RoCE v1"
        };
        Gid {
            index,
            gid: address.to_owned(),
            kind: Some(kind.to_owned()),
            interface: None,
        }
    }

    #[test]
    fn files_of_the_table_that_cannot_be_read_are_found() {
        let port = tempfile::tempdir().unwrap();
        put(&port, "gids/0", "fe80:0000:0000:0000:0011:22ff:fe33:4455\n");
        put(&port, "gid_attrs/types/0", "RoCE v2\n");
        // A folder cannot be read as a file, even by root.
        for name in ["gid_attrs/ndevs/0", "gids/4"] {
            std::fs::create_dir_all(port.path().join(name)).unwrap();
        }
        let (read, unread) = gid_files_in(port.path());
        assert_eq!(read, [gid(0, "fe80:0000:0000:0000:0011:22ff:fe33:4455", 2)]);
        let mut refused = Vec::new();
        for (path, error) in &unread {
            let name = path.strip_prefix(port.path()).unwrap().to_str().unwrap();
            match error.kind() {
                ErrorKind::NotFound => assert!(name.starts_with("gids/"), "{name}"),
                _ => refused.push(name),
            }
        }
        assert_eq!(
            (refused, unread.len()),
            (vec!["gid_attrs/ndevs/0", "gids/4"], 256)
        );
    }

    #[test]
    fn the_entries_of_the_addresses_by_roce_v2_are_the_usual_ones() {
        let table = |last: u8| {
            vec![
                gid(0, &format!("fe80::{last}"), 1),
                gid(1, &format!("fe80::{last}"), 2),
                gid(2, &format!("::ffff:10.0.0.{last}"), 1),
                gid(3, &format!("::ffff:10.0.0.{last}"), 2),
                gid(4, &format!("::ffff:10.0.1.{last}"), 2),
            ]
        };
        let (here, there) = (table(1), table(2));
        let chosen = |here: &[Gid], there: &[Gid], addresses: [&str; 2]| {
            let addresses = addresses.map(|text| text.parse().ok());
            usual_pair([here, there], addresses).map(|pair| pair.map(|gid| gid.index))
        };
        let of_first = ["10.0.0.1", "10.0.0.2"];
        assert_eq!(chosen(&here, &there, of_first), Some([3, 3]));
        let of_second = ["10.0.1.1", "10.0.1.2"];
        assert_eq!(chosen(&here, &there, of_second), Some([4, 4]));
        // Without IPv4 by RoCE v2 it is that of the link; without anything in common there is none.
        assert_eq!(chosen(&here[..4], &there[..3], ["", ""]), Some([1, 1]));
        assert_eq!(chosen(&here[..1], &there, ["", ""]), Some([0, 0]));
        assert_eq!(chosen(&here[..1], &there[1..], ["", ""]), None);
        assert_eq!(chosen(&[], &there, ["", ""]), None);
    }
}
