//! Names in place of those of the host and of its addresses: the same name for the same address wherever it appears, so
//! that it can be seen which belong together, and not what they are.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Value;

/// What is written into each file that they are in.
pub(super) const EXPLANATION: &str = "IP and MAC addresses, GUIDs, the names of the host and of its user, and \
     folders outside of the system's are replaced. One address has one name in all files of this report: ipv4-1, \
     mac-1, guid-1, id-1. guid(mac-1) is a GUID that was made from that MAC address; gid(ipv4-1) and gid(mac-1) are \
     GIDs that were made from that address; other GIDs and IPv6 addresses are two halves, PREFIX:GUID, where fe80: is \
     the prefix that all hosts have. /24 after an address is its network. The same address in another report may have \
     another name.";

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

/// Keys of texts that others than the program and the kernel wrote, or that name what others have named: only there
/// is the name of the host looked for. A host may be named `vm`, and the program's own words contain `vm.`
const FOREIGN: [&str; 17] = [
    "bonding/slaves",
    "environment",
    "error",
    "file",
    "hostname",
    "interface",
    "interfaces",
    "master",
    "name",
    "names",
    "path",
    "phys_port_name",
    "receiver",
    "sender",
    "services_refused",
    "why_no_pair",
    "why_not",
];

/// Keys of numbers of one adapter or switch.
const IDS: [&str; 2] = ["phys_port_id", "phys_switch_id"];

/// Folders that hold files of the system, whose paths show nothing of the user.
const SYSTEM: [&str; 7] = ["dev", "etc", "lib", "lib64", "proc", "sys", "usr"];

/// Of those, where the folders are named after users and containers.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup/";

const LINK_LOCAL: u64 = 0xfe80 << 48;

/// What a text is, by its key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kind {
    is_version: bool,
    is_foreign: bool,
    is_id: bool,
}

impl Kind {
    fn of(key: &str) -> Self {
        Kind {
            is_version: VERSIONS.contains(&key),
            is_foreign: FOREIGN.contains(&key),
            is_id: IDS.contains(&key),
        }
    }
}

/// The names that were given, in the order in which the addresses came.
#[derive(Debug, Default)]
pub(super) struct Pseudonyms {
    /// The names of the host and of the user, each with what takes its place.
    words: Vec<(String, &'static str)>,
    home: Option<String>,
    /// The MAC addresses of this host, which GIDs of iWARP begin with.
    macs: BTreeSet<u64>,
    given: HashMap<(&'static str, u128), usize>,
    counts: HashMap<&'static str, usize>,
}

impl Pseudonyms {
    /// `hosts` are the names of the host, `users` those of the user, `home` is the user's folder, and `macs` are the
    /// MAC addresses of the host.
    pub(super) fn new<'a>(
        hosts: impl IntoIterator<Item = String>,
        users: impl IntoIterator<Item = String>,
        home: Option<String>,
        macs: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        // The name itself before its first part.
        let mut words = Vec::new();
        for host in hosts {
            let first = host.split('.').next().unwrap_or_default().to_owned();
            words.extend([host, first].map(|host| (host, "host-1")));
        }
        words.extend(users.into_iter().map(|user| (user, "user-1")));
        words.retain(|(word, _)| !["", "localhost", "root"].contains(&word.as_str()));
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        words.dedup();
        let macs = macs
            .into_iter()
            .filter_map(|text| number(&text.replace(':', "")));
        Self {
            words,
            home: home.filter(|home| home.len() > 1),
            macs: macs.filter(|mac| *mac != 0).collect(),
            ..Self::default()
        }
    }

    /// Replaces in all texts of a document; its keys are names that the program or a driver gives.
    pub(super) fn replace(&mut self, value: &mut Value) {
        self.replace_in(value, Kind::default());
    }

    /// What an object has below a foreign key, such as the values of variables, is foreign as well, unless it is a list
    /// of objects, which have keys of their own.
    fn replace_in(&mut self, value: &mut Value, kind: Kind) {
        match value {
            Value::String(text) => *text = self.text(text, kind),
            Value::Array(items) => items.iter_mut().for_each(|item| {
                let kind = if item.is_object() {
                    Kind::default()
                } else {
                    kind
                };
                self.replace_in(item, kind);
            }),
            Value::Object(fields) => fields.iter_mut().for_each(|(key, item)| {
                let mut own = Kind::of(key);
                own.is_foreign |= kind.is_foreign;
                self.replace_in(item, own);
            }),
            _ => {}
        }
    }

    /// A text with the names. Of one that is a version no addresses are replaced.
    pub(super) fn text(&mut self, text: &str, kind: Kind) -> String {
        if kind.is_id {
            return self.id(text);
        }
        let mut text = text.to_owned();
        // One that is a path as a whole may contain blanks.
        if kind.is_foreign && text.starts_with('/') && !text.contains(':') {
            text = path(&text);
        }
        text = paths(&text);
        if let Some(home) = &self.home {
            text = text.replace(home, "~");
        }
        text = without_users(&text);
        if kind.is_foreign {
            for (word, by) in &self.words {
                text = replace_word(&text, word, by);
            }
        }
        if !kind.is_version {
            text = self.digits(&text);
            text = self.addresses(&text);
        }
        self.own_macs(&text)
    }

    /// One name for the whole of a text of any length.
    fn id(&mut self, text: &str) -> String {
        let mut hash = DefaultHasher::new();
        text.to_lowercase().hash(&mut hash);
        self.name("id", hash.finish().into())
    }

    /// Replaces the MAC addresses of this host in all spellings, wherever they are.
    fn own_macs(&mut self, text: &str) -> String {
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

fn is_word(letter: char) -> bool {
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
fn find_part(text: &str, part: &str) -> Option<usize> {
    text.to_ascii_lowercase().find(&part.to_ascii_lowercase())
}

/// Replaces what is not within a word, in capital letters or not.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = find_part(rest, word) {
        let (before, from) = rest.split_at(start);
        let (found, after) = from.split_at(word.len());
        let is_within = (before.ends_with(is_word) || out.ends_with(is_word) && start == 0)
            || after.starts_with(is_word);
        out += before;
        out += if is_within { found } else { by };
        rest = after;
    }
    out + rest
}

/// A text with `.../NAME` in place of the paths of files outside of the system's folders.
fn paths(text: &str) -> String {
    let is_around = |letter: char| letter.is_whitespace() || ",:;='\"()[]<>|&@".contains(letter);
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        let (before, from) = rest.split_at(start);
        let (found, after) = from.split_at(from.find(is_around).unwrap_or(from.len()));
        out += before;
        // Not 16 GT/s, a / b, 10.77.0.0/24, fd00::/64, sys/class, https://.
        let is_one = before.chars().next_back().is_none_or(is_around)
            && found[1..].contains(|letter: char| !letter.is_ascii_digit())
            && !found.starts_with("//");
        out += &match is_one {
            true => path(found),
            false => found.to_owned(),
        };
        rest = after;
    }
    out + rest
}

/// A path, of which only the last part is left unless it is of the system.
fn path(path: &str) -> String {
    let first = path.split('/').nth(1).unwrap_or_default();
    match SYSTEM.contains(&first) && !path.starts_with(CONTROL_GROUPS) {
        true => path.to_owned(),
        false => last_part(path),
    }
}

fn last_part(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some((_, name)) => format!(".../{name}"),
        None => path.to_owned(),
    }
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
        let users = ["alice".to_owned(), "root".to_owned()];
        let home = Some("/root".to_owned());
        Pseudonyms::new(hosts, users, home, ["52:54:00:77:ab:01"])
    }

    const OWN: Kind = Kind {
        is_version: false,
        is_foreign: false,
        is_id: false,
    };
    const FOREIGN: Kind = Kind {
        is_foreign: true,
        ..OWN
    };

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
            assert_eq!(names.text(text, FOREIGN), shown, "{text}");
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
            ("NODE7 and Node7_ib0", "host-1 and host-1_ib0"),
            ("/root/lib:/home/me/lib", ".../lib:.../lib"),
            ("-L/root/lib -L/home/me/lib", "-L~/lib -L/home/user/lib"),
            ("/opt/my own/lib so", ".../lib so"),
            (
                "dlopen /opt/a/libx.so.1.2.3.4: no",
                "dlopen .../libx.so.1.2.3.4: no",
            ),
            ("of alice, not alice2", "of user-1, not alice2"),
        ] {
            assert_eq!(names.text(text, FOREIGN), shown, "{text}");
        }
    }

    #[test]
    fn addresses_are_found_beside_letters_dots_and_underscores() {
        let mut names = names();
        for (text, shown) in [
            ("enx0c42a1030041.100", "enxmac-1.100"),
            ("enx0c42a1030041np0", "enxmac-1np0"),
            ("0c-42-a1-03-00-41", "mac-1"),
            ("eth0_0c:42:a1:03:00:41_x", "eth0_mac-1_x"),
            ("m0C:42:A1:03:00:41np", "mmac-1np"),
            ("own52540077AB01bee", "ownmac-2bee"),
            ("10.77.0.1.nip.io", "ipv4-1.nip.io"),
            ("v10.77.0.1_x", "vipv4-1_x"),
            ("host_fe80::1", "host_fe80::guid-1"),
            ("4c4c4544-0042-3510-8052-b4c04f4d3232", "id-1"),
            ("GPU-4c4c4544-0042-3510-8052-b4c04f4d3232.x", "GPU-id-1.x"),
        ] {
            assert_eq!(names.text(text, OWN), shown, "{text}");
        }
    }

    #[test]
    fn the_words_of_the_program_stay_and_folders_of_control_groups_go() {
        let hosts = ["vm".to_owned()];
        let mut names = Pseudonyms::new(hosts, ["cores".to_owned()], None, []);
        let mut document = serde_json::json!({
            "checks": [{
                "title": "vm",
                "advice": "sysctl vm.nr_hugepages=4 > /proc/sys/vm/x, keep cores in /etc/vm",
                "found": "0.3 CPUs, /sys/fs/cgroup/user.slice/user-1000.slice/docker-0123abc.scope/cpu.max",
            }],
            "machine": {"hostname": "vm", "kernel_version": "vm 1"},
            "environment": {"MLX5_LOG": "vm/cores", "MLX5_FILE": "/srv/vm/my own.log"},
            "interfaces": [{
                "name": "vm_ib0",
                "type": "vm",
                "phys_switch_id": "000102030405060708",
                "phys_port_id": "000102030405060708",
            }],
            "services_refused": {"uc": "vm refuses"},
        });
        names.replace(&mut document);
        let expected = serde_json::json!({
            "checks": [{
                "title": "vm",
                "advice": "sysctl vm.nr_hugepages=4 > /proc/sys/vm/x, keep cores in /etc/vm",
                "found": "0.3 CPUs, .../cpu.max",
            }],
            "machine": {"hostname": "host-1", "kernel_version": "vm 1"},
            "environment": {"MLX5_LOG": "host-1/user-1", "MLX5_FILE": ".../my own.log"},
            "interfaces": [{
                "name": "host-1_ib0",
                "type": "vm",
                "phys_switch_id": "id-1",
                "phys_port_id": "id-1",
            }],
            "services_refused": {"uc": "host-1 refuses"},
        });
        assert_eq!(document, expected);
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
            assert_eq!(names.text(text, FOREIGN), text);
        }
        assert_eq!(
            names.text(
                "1.14.44.0",
                Kind {
                    is_version: true,
                    ..OWN
                }
            ),
            "1.14.44.0"
        );
        let mut document = serde_json::json!({
            "libibverbs": {"version": "1.14.44.0", "path": "/root/libibverbs.so.1.14.44.0"},
            "addresses": ["10.77.0.1"],
        });
        names.replace(&mut document);
        let expected = serde_json::json!({
            "libibverbs": {"version": "1.14.44.0", "path": ".../libibverbs.so.1.14.44.0"},
            "addresses": ["ipv4-1"],
        });
        assert_eq!(document, expected);
    }
}
