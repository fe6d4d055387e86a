//! Names in place of those of the host and of its addresses: the same name for the same address wherever it appears, so
//! that it can be seen which belong together, and not what they are.

use std::collections::{BTreeSet, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Value;

/// What is written into each file that they are in.
pub(super) const EXPLANATION: &str = "The host's name, IP and MAC addresses, GUIDs and home folders are replaced. One \
     address has one name in all files of this report: ipv4-1, mac-1, guid-1, id-1. guid(mac-1) is a GUID that was made \
     from that MAC address; gid(ipv4-1) and gid(mac-1) are GIDs that were made from that address; other GIDs and IPv6 \
     addresses are two halves, PREFIX:GUID, where fe80: is the prefix that all hosts have. /24 after an address is its network. The same \
     address in another report may have another name.";

/// Keys of texts that are versions, which look like IPv4 addresses where they have four parts, or commits.
const VERSIONS: [&str; 8] = [
    "commit",
    "firmware",
    "fw_ver",
    "kernel_release",
    "kernel_version",
    "path",
    "srcversion",
    "version",
];

const LINK_LOCAL: u64 = 0xfe80 << 48;

/// The names that were given, in the order in which the addresses came.
#[derive(Debug, Default)]
pub(super) struct Pseudonyms {
    hosts: Vec<String>,
    home: Option<String>,
    /// The MAC addresses of this host, which GIDs of iWARP begin with.
    macs: BTreeSet<u64>,
    given: HashMap<(&'static str, u128), usize>,
    counts: HashMap<&'static str, usize>,
}

impl Pseudonyms {
    /// `hosts` are the names of the host, `home` is the user's folder, and `macs` are the MAC addresses of the host.
    pub(super) fn new<'a>(
        hosts: impl IntoIterator<Item = String>,
        home: Option<String>,
        macs: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        // The name itself before its first part.
        let mut all = Vec::new();
        for host in hosts {
            let first = host.split('.').next().unwrap_or_default().to_owned();
            all.extend([host, first]);
        }
        all.retain(|host| !host.is_empty() && host != "localhost");
        all.sort_by_key(|host| std::cmp::Reverse(host.len()));
        all.dedup();
        let macs = macs
            .into_iter()
            .filter_map(|text| number(&text.replace(':', "")));
        Self {
            hosts: all,
            home: home.filter(|home| home.len() > 1),
            macs: macs.filter(|mac| *mac != 0).collect(),
            ..Self::default()
        }
    }

    /// Replaces in all texts of a document; its keys are names that the program or a driver gives.
    pub(super) fn replace(&mut self, value: &mut Value) {
        self.replace_in(value, false);
    }

    fn replace_in(&mut self, value: &mut Value, is_version: bool) {
        match value {
            Value::String(text) => *text = self.text(text, is_version),
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.replace_in(item, is_version)),
            Value::Object(fields) => fields
                .iter_mut()
                .for_each(|(key, item)| self.replace_in(item, VERSIONS.contains(&key.as_str()))),
            _ => {}
        }
    }

    /// A text with the names. Of one that is a version only the host's name and folder are replaced.
    pub(super) fn text(&mut self, text: &str, is_version: bool) -> String {
        let mut text = text.to_owned();
        if let Some(home) = &self.home {
            text = text.replace(home, "~");
        }
        text = without_users(&text);
        for host in &self.hosts {
            text = replace_word(&text, host, "host-1");
        }
        if is_version {
            return text;
        }
        self.addresses(&text)
    }

    /// Replaces the addresses in a text: whatever consists of their characters and is not within a word.
    fn addresses(&mut self, text: &str) -> String {
        let is_part = |letter: char| letter.is_ascii_hexdigit() || matches!(letter, ':' | '.');
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            let (before, from) = rest.split_at(start);
            let length = from.find(|letter| !is_part(letter)).unwrap_or(from.len());
            let (run, after) = from.split_at(length);
            out += before;
            // 0x12, enx525400770001: names of interfaces may contain an address.
            let follows_word = |letter: char| letter != 'x' && is_word(letter);
            // What belongs to a word ends or begins at a colon.
            let start = match before.ends_with(follows_word) {
                true => run.find(':').unwrap_or(length),
                false => 0,
            };
            let end = match after.starts_with(is_word) {
                true => run.rfind(':').map_or(start, |last| start.max(last + 1)),
                false => length,
            };
            out += &run[..start];
            out += &self.run(&run[start..end]);
            out += &run[end..];
            rest = after;
        }
        out + rest
    }

    /// Replaces a run of hexadecimal digits, colons and points, which may be an address with a colon or a point behind
    /// it, or before it, or with a port.
    fn run(&mut self, run: &str) -> String {
        let core = run.trim_end_matches('.');
        let core = match core.strip_suffix(':') {
            Some(core) if !core.ends_with(':') => core,
            _ => core,
        };
        let core = match core.strip_prefix(':') {
            Some(core) if !core.starts_with(':') => core,
            _ => core,
        };
        let Some(start) = run.find(core) else {
            return run.to_owned();
        };
        let replaced = self.address(core).or_else(|| {
            let (first, last) = core.rsplit_once(':')?;
            match (self.address(first), self.address(last)) {
                (None, None) => None,
                (one, other) => {
                    let one = one.unwrap_or_else(|| first.to_owned());
                    let other = other.unwrap_or_else(|| last.to_owned());
                    Some(format!("{one}:{other}"))
                }
            }
        });
        match replaced {
            Some(replaced) => [&run[..start], &replaced, &run[start + core.len()..]].concat(),
            None => run.to_owned(),
        }
    }

    /// The name of an address; none where the text is not one, or is one that all hosts have.
    fn address(&mut self, text: &str) -> Option<String> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return self.ipv4(address);
        }
        let groups: Vec<&str> = text.split(':').collect();
        let have = |count: usize, digits: usize| {
            groups.len() == count && groups.iter().all(|group| group.len() == digits)
        };
        let digits = groups.concat();
        match groups.as_slice() {
            [_] if text.len() == 12 => self.mac(number(text)?),
            [_] if text.len() == 16 => self.guid(number(text)?),
            [_] if text.len() >= 32 && number_of(text).is_some() => {
                Some(self.name("id", number_of(text)?))
            }
            _ if have(6, 2) => self.mac(number(&digits)?),
            _ if have(8, 2) || have(4, 4) => self.guid(number(&digits)?),
            // IPoIB: flags, the number of the queue pair, and the GID.
            _ if have(20, 2) => {
                let gid = u128::from_str_radix(digits.get(8..)?, 16).ok()?;
                self.gid(Ipv6Addr::from_bits(gid))
            }
            _ => self.gid(text.parse().ok()?),
        }
    }

    fn ipv4(&mut self, address: Ipv4Addr) -> Option<String> {
        let is_everyones =
            address.is_loopback() || address.is_unspecified() || address.octets()[0] == 255;
        (!is_everyones).then(|| self.name("ipv4", address.to_bits().into()))
    }

    fn mac(&mut self, mac: u64) -> Option<String> {
        let is_everyones = mac == 0 || mac == 0xffff_ffff_ffff;
        (!is_everyones).then(|| self.name("mac", mac.into()))
    }

    /// One with ff:fe in the middle was made from a MAC address (EUI-64), whose second bit is turned.
    fn guid(&mut self, guid: u64) -> Option<String> {
        if guid == 0 || guid == LINK_LOCAL {
            return None;
        }
        let mac = (guid >> 40) << 24 | guid & 0xff_ffff;
        match (guid >> 24) & 0xffff {
            0xfffe => Some(format!("guid({})", self.mac(mac ^ (2 << 40))?)),
            _ => Some(self.name("guid", guid.into())),
        }
    }

    fn gid(&mut self, gid: Ipv6Addr) -> Option<String> {
        if gid.is_unspecified() || gid.is_loopback() {
            return None;
        }
        if let Some(address) = gid.to_ipv4_mapped() {
            return Some(format!("gid({})", self.ipv4(address)?));
        }
        let (high, low) = ((gid.to_bits() >> 64) as u64, gid.to_bits() as u64);
        if low == 0 && high & 0xffff == 0 && self.macs.contains(&(high >> 16)) {
            return Some(format!("gid({})", self.mac(high >> 16)?));
        }
        let prefix = match high {
            LINK_LOCAL => "fe80:".to_owned(),
            _ => self.name("guid", high.into()),
        };
        let suffix = self.guid(low).unwrap_or_default();
        Some(format!("{prefix}:{suffix}"))
    }

    fn name(&mut self, kind: &'static str, value: u128) -> String {
        let count = self.counts.entry(kind).or_default();
        let number = self.given.entry((kind, value)).or_insert_with(|| {
            *count += 1;
            *count
        });
        format!("{kind}-{number}")
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn number(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

/// Of as many digits as there are; those of a longer text that are the last.
fn number_of(digits: &str) -> Option<u128> {
    u128::from_str_radix(digits.get(digits.len().saturating_sub(32)..)?, 16).ok()
}

/// Replaces what is not within a word.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(word) {
        let (before, from) = rest.split_at(start);
        let after = &from[word.len()..];
        let is_within = (before.ends_with(is_word) || out.ends_with(is_word) && start == 0)
            || after.starts_with(is_word);
        out += before;
        out += if is_within { word } else { by };
        rest = after;
    }
    out + rest
}

/// With `/home/user` in place of the home folders of others.
fn without_users(text: &str) -> String {
    const HOMES: &str = "/home/";
    let mut parts = text.split(HOMES);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|letter: char| letter == '/' || letter.is_whitespace())
            .unwrap_or(part.len());
        out += HOMES;
        out += "user";
        out += &part[end..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Pseudonyms {
        let hosts = ["node7.example.org".to_owned()];
        Pseudonyms::new(hosts, Some("/root".to_owned()), ["52:54:00:77:ab:01"])
    }

    #[test]
    fn what_belongs_together_has_one_name() {
        let mut names = names();
        for (text, shown) in [
            ("52:54:00:77:ab:01", "mac-1"),
            (
                "fe80:0000:0000:0000:5054:00ff:fe77:ab01",
                "fe80::guid(mac-1)",
            ),
            ("fe80::5054:ff:fe77:ab01", "fe80::guid(mac-1)"),
            ("5054:00ff:fe77:ab01", "guid(mac-1)"),
            ("505400fffe77ab01", "guid(mac-1)"),
            ("5254:0077:ab01:0000:0000:0000:0000:0000", "gid(mac-1)"),
            ("52540077ab01", "mac-1"),
            ("enx52540077ab01", "enxmac-1"),
            ("52:54:00:77:AB:02", "mac-2"),
            ("10.77.0.1", "ipv4-1"),
            ("0000:0000:0000:0000:0000:ffff:0a4d:0001", "gid(ipv4-1)"),
            ("::ffff:10.77.0.1", "gid(ipv4-1)"),
            ("10.77.0.0/24", "ipv4-2/24"),
            ("0c42:a103:0011:2233", "guid-1"),
            ("0x0c42a10300112233", "0xguid-1"),
            ("fe80:0000:0000:0000:0c42:a103:0011:2233", "fe80::guid-1"),
            ("fec0:0000:0000:0007:0c42:a103:0011:2233", "guid-2:guid-1"),
            ("fec0:0000:0000:0007", "guid-2"),
            ("fd00:1::/64", "guid-3:/64"),
            ("fd00:1::7", "guid-3:guid-4"),
            (
                "80:00:02:08:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:11:22:33",
                "fe80::guid-1",
            ),
            ("0123456789abcdef0123456789abcdef", "id-1"),
        ] {
            assert_eq!(names.text(text, false), shown, "{text}");
        }
    }

    #[test]
    fn addresses_are_found_in_sentences() {
        let mut names = names();
        for (text, shown) in [
            (
                "rdma_resolve_addr on 10.77.0.1: no route to 10.77.0.2.",
                "rdma_resolve_addr on ipv4-1: no route to ipv4-2.",
            ),
            ("--sender rxe0:1@10.77.0.1", "--sender rxe0:1@ipv4-1"),
            ("10.77.0.1:4711", "ipv4-1:4711"),
            ("[fd00::7]:4711", "[guid-1:guid-2]:4711"),
            ("addr:10.77.0.1", "addr:ipv4-1"),
            ("pcie:10.77.0.1:eth0", "pcie:ipv4-1:eth0"),
            ("from fd00::7: refused", "from guid-1:guid-2: refused"),
            (
                "node7.example.org and node7, not node70",
                "host-1 and host-1, not node70",
            ),
            ("/root/lib:/home/me/lib", "~/lib:/home/user/lib"),
        ] {
            assert_eq!(names.text(text, false), shown, "{text}");
        }
    }

    #[test]
    fn what_all_have_and_what_is_no_address_stays() {
        let mut names = names();
        for text in [
            "127.0.0.1, 0.0.0.0, ::1, ::, 255.255.255.0, ff:ff:ff:ff:ff:ff",
            "fe80:0000:0000:0000",
            "0000:0000:0000:0000:0000:0000:0000:0000",
            "0000:3b:00.0",
            "mlx5_comp1@pci:0000:3b:00.0",
            "2026-11-28T21:14:47Z",
            "16.35.2000, 22.31",
            "feed the deadbeef",
            "p50 84.2 us",
            "MT_0000000012",
        ] {
            assert_eq!(names.text(text, false), text);
        }
        assert_eq!(names.text("1.14.44.0", true), "1.14.44.0");
        let mut document = serde_json::json!({
            "libibverbs": {"version": "1.14.44.0", "path": "/root/libibverbs.so.1.14.44.0"},
            "addresses": ["10.77.0.1"],
        });
        names.replace(&mut document);
        let expected = serde_json::json!({
            "libibverbs": {"version": "1.14.44.0", "path": "~/libibverbs.so.1.14.44.0"},
            "addresses": ["ipv4-1"],
        });
        assert_eq!(document, expected);
    }
}
