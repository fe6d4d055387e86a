//! The statistics that the driver of a network interface keeps (`ethtool -S`), of which an RDMA port needs those of the
//! physical port: what sysfs has of a port may be counted before the adapter decides whether a packet takes the wire.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// `linux/ethtool.h`.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
const NAME_LENGTH: usize = 32;
/// More than any driver has; more are not asked for.
const MOST: u32 = 100_000;
const PAGE: usize = 4096;

/// The statistics of an interface by name; empty where its driver has none.
pub fn interface_counters(interface: &str) -> Vec<(String, u64)> {
    read(interface).unwrap_or_default()
}

fn read(interface: &str) -> Option<Vec<(String, u64)>> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Datagram, flags, None).ok()?;
    // struct ethtool_sset_info: command, reserved, a bit for each set that is asked for, and the length of one.
    let mut of_set = [pair(ETHTOOL_GSSET_INFO, 0), 1 << ETH_SS_STATS, 0];
    ask(&socket, interface, &mut of_set)?;
    let [count, _] = halves(of_set[2]);
    // The bit is cleared where there is no such set.
    if of_set[1] == 0 || count == 0 || count > MOST {
        return None;
    }
    let length = count as usize;
    // struct ethtool_gstrings: command, set, length, and the names from the twelfth byte on.
    let mut strings = answer_buffer(2 + length * NAME_LENGTH / 8);
    strings[..2].copy_from_slice(&[pair(ETHTOOL_GSTRINGS, ETH_SS_STATS), pair(count, 0)]);
    ask(&socket, interface, &mut strings)?;
    // struct ethtool_stats: command, length, and the values.
    let mut stats = answer_buffer(1 + length);
    stats[0] = pair(ETHTOOL_GSTATS, count);
    ask(&socket, interface, &mut stats)?;
    // The driver's count may have changed between the questions: then names and values do not belong together.
    let [[named, _], [_, valued]] = [halves(strings[1]), halves(stats[0])];
    if [named, valued] != [count; 2] {
        return None;
    }
    let names: Vec<u8> = strings.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let names = names[12..].chunks_exact(NAME_LENGTH).take(length);
    let named = names.zip(&stats[1..]);
    let named = named.map(|(name, value)| {
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        (String::from_utf8_lossy(name).into_owned(), *value)
    });
    Some(named.collect())
}

/// Two neighbours in a structure.
fn pair(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn halves(pair: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = pair.to_ne_bytes();
    [[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes)
}

/// Room for an answer of `words`. Most kernels write as many entries as the driver has by then, whatever count they
/// were asked with (CVE-2025-68795), and that of mlx5 changes with its channels: twice the room and a page are for
/// those that were added since the driver was asked for its count.
fn answer_buffer(words: usize) -> Vec<u64> {
    vec![0; 2 * words + PAGE / size_of::<u64>()]
}

/// Has the driver answer in place.
fn ask(socket: &OwnedFd, interface: &str, question: &mut [u64]) -> Option<()> {
    // SAFETY: the structure is integers, pointers and arrays of these; zero is a value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.as_bytes();
    // With a zero at its end.
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = question.as_mut_ptr().cast();
    // SAFETY: the request names an interface and a buffer that is writable. The kernel may write more entries than were
    // asked for; there is room for twice as many and a page, so that it would take a driver that doubles its count
    // between two calls to write past the end.
    let code = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    (code == 0).then_some(())
}

/// `linux/sockios.h`.
const SIOCETHTOOL: u32 = 0x8946;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_statistics_has_none() {
        for name in [
            "lo",
            "no-such-interface",
            "a-name-longer-than-any-interface-has",
        ] {
            assert_eq!(interface_counters(name), [], "{name}");
        }
    }

    #[test]
    fn neighbours_are_put_together_and_taken_apart() {
        assert_eq!(halves(pair(7, 0xffff_fffe)), [7, 0xffff_fffe]);
    }

    #[test]
    fn an_answer_may_be_twice_as_long_as_was_asked_for() {
        for words in [0, 1, 1000] {
            let bytes = answer_buffer(words).len() * 8;
            assert_eq!(bytes, 2 * 8 * words + 4096);
        }
    }
}
