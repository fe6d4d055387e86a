//! Names in place of those of the host and of its addresses: the same name for the same address wherever it appears, so
//! that it can be seen which belong together, and not what they are.

use serde_json::Value;

use super::addresses::{AddressNames, find_part, is_word};
use super::paths::{path, paths, without_users};

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

/// What is replaced, and the names that were given.
#[derive(Debug)]
pub(super) struct Pseudonyms {
    /// The names of the host and of the user, each with what takes its place.
    words: Vec<(String, &'static str)>,
    home: Option<String>,
    addresses: AddressNames,
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
        Self {
            words,
            home: home.filter(|home| home.len() > 1),
            addresses: AddressNames::new(macs),
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
            return self.addresses.id(text);
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
            text = self.addresses.replaced(&text);
        }
        self.addresses.own_macs_replaced(&text)
    }
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
