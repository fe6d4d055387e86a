//! Addresses in texts: where they are, in which spelling, and the names that take their place.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{Ipv4Addr, Ipv6Addr};

const LINK_LOCAL: u64 = 0xfe80 << 48;

/// The names that were given, in the order in which the addresses came.
#[derive(Debug, Default)]
pub(super) struct AddressNames {
    /// The MAC addresses of this host, which GIDs of iWARP begin with.
    macs: BTreeSet<u64>,
    given: HashMap<(&'static str, u128), usize>,
    counts: HashMap<&'static str, usize>,
}

impl AddressNames {
    /// `macs` are the MAC addresses of the host.
    pub(super) fn new<'a>(macs: impl IntoIterator<Item = &'a str>) -> Self {
        let macs = macs
            .into_iter()
            .filter_map(|text| number(&text.replace(':', "")));
        Self {
            macs: macs.filter(|mac| *mac != 0).collect(),
            ..Self::default()
        }
    }

    /// One name for the whole of a text of any length.
    pub(super) fn id(&mut self, text: &str) -> String {
        let mut hash = DefaultHasher::new();
        text.to_lowercase().hash(&mut hash);
        self.name("id", hash.finish().into())
    }

    /// Replaces the MAC addresses of this host in all spellings, wherever they are.
    pub(super) fn own_macs_replaced(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for mac in self.macs.clone() {
            let digits = format!("{mac:012x}");
            let pairs: Vec<_> = (0..12).step_by(2).map(|at| &digits[at..at + 2]).collect();
            for spelling in [pairs.join(":"), pairs.join("-"), digits.clone()] {
                while let Some(start) = find_part(&text, &spelling) {
                    let name = self.name("mac", mac.into());
                    text.replace_range(start..start + spelling.len(), &name);
                }
            }
        }
        text
    }

    /// A text with the names of all addresses in it.
    pub(super) fn replaced(&mut self, text: &str) -> String {
        let text = self.digits(text);
        self.addresses(&text)
    }

    /// Replaces what its digits alone show to be an address, beside whatever it is: UUIDs, six pairs with - between
    /// them, and 12, 16 or 32 and more hexadecimal digits.
    fn digits(&mut self, text: &str) -> String {
        let is_part = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            let (before, from) = rest.split_at(start);
            let length = from.find(|letter| !is_part(letter)).unwrap_or(from.len());
            let (run, after) = from.split_at(length);
            out += before;
            // A colon belongs to an address of another form.
            let is_beside_colon = before.ends_with(':') || after.starts_with(':');
            out += &self.groups(run, is_beside_colon);
            rest = after;
        }
        out + rest
    }

    /// Replaces in groups of hexadecimal digits with - between them.
    fn groups(&mut self, run: &str, is_beside_colon: bool) -> String {
        let groups: Vec<&str> = run.split('-').collect();
        let mut out: Vec<String> = Vec::new();
        let mut at = 0;
        while let Some(group) = groups.get(at) {
            let have = |lengths: &[usize]| {
                let own = groups.get(at..at + lengths.len());
                own.filter(|own| {
                    own.iter()
                        .map(|group| group.len())
                        .eq(lengths.iter().copied())
                })
            };
            let found = match (have(&[8, 4, 4, 4, 12]), have(&[2; 6])) {
                (Some(own), _) => number_of(&own.concat()).map(|id| (5, Some(self.name("id", id)))),
                (_, Some(own)) => number(&own.concat()).map(|mac| (6, self.mac(mac))),
                _ => None,
            };
            let (taken, name) = found.unwrap_or_else(|| match group.len() {
                12 | 16 | 32.. if !is_beside_colon => (1, self.address(group)),
                _ => (1, None),
            });
            out.push(name.unwrap_or_else(|| groups[at..at + taken].join("-")));
            at += taken;
        }
        out.join("-")
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
            let is_version = before.ends_with("so") && run.starts_with('.');
            let replaced = self.run(&run[start..end]);
            out += &match replaced == run[start..end] && !is_version {
                true => self.within(run),
                false => [&run[..start], &replaced, &run[end..]].concat(),
            };
            rest = after;
        }
        out + rest
    }

    /// Replaces what is an IPv4 address or six pairs with : between them, within what is more than that.
    fn within(&mut self, run: &str) -> String {
        let mut out = String::new();
        let mut rest = run;
        while !rest.is_empty() {
            let found = match out.ends_with(|letter: char| letter.is_ascii_hexdigit()) {
                true => None,
                false => self.begins(rest),
            };
            let (name, length) = found.unwrap_or_else(|| (rest[..1].to_owned(), 1));
            out += &name;
            rest = &rest[length..];
        }
        out
    }

    /// The name of the address that a text begins with, and its length in the text.
    fn begins(&mut self, text: &str) -> Option<(String, usize)> {
        for (separator, count) in [('.', 4), (':', 6)] {
            let mut separators = text.match_indices(separator).map(|(at, _)| at);
            let Some(before_last) = separators.nth(count - 2) else {
                continue;
            };
            let last = &text[before_last + 1..];
            let digits = last.find(|letter: char| !letter.is_ascii_hexdigit());
            let length = before_last + 1 + digits.unwrap_or(last.len());
            if let Some(name) = self.address(&text[..length]) {
                return Some((name, length));
            }
        }
        None
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

pub(super) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric()
}

fn number(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

/// Of as many digits as there are; those of a longer text that are the last.
fn number_of(digits: &str) -> Option<u128> {
    u128::from_str_radix(digits.get(digits.len().saturating_sub(32)..)?, 16).ok()
}

/// Where a text contains another one, in capital letters or not.
pub(super) fn find_part(text: &str, part: &str) -> Option<usize> {
    text.to_ascii_lowercase().find(&part.to_ascii_lowercase())
}
