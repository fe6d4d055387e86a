//! Which events of which of perf's devices count what memory controllers read and write.

use super::super::cpu_set::CpuSet;
use super::super::error::HostError;
use super::super::system_files::SystemFiles;
use super::UncoreError;
use super::chosen::{ChosenEvent, ChosenEvents};
use super::device::{DEVICES, Device};

/// The bytes of a count where the kernel does not report them: a cache line.
const LINE: u64 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferDirection {
    Read,
    Written,
}

/// An event of a device, as `perf_event_open` wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub device: String,
    /// As the kernel or who chose it names it.
    pub name: String,
    pub kind: u32,
    /// `config`, `config1` and `config2`.
    pub config: [u64; 3],
    /// Where it must be opened.
    pub cpus: CpuSet,
    pub direction: TransferDirection,
    /// What a count stands for.
    pub bytes: u64,
}

/// Where an event's numbers come from.
#[derive(Debug, Clone, Copy)]
enum EventSource<'a> {
    /// The kernel has a file of that name.
    Named(&'a str),
    /// They are these.
    Given(&'a str),
}

/// Devices of a name, with or without a number behind it, and what they count.
struct Controllers {
    name: &'static str,
    read: &'static [EventSource<'static>],
    written: &'static [EventSource<'static>],
}

use EventSource::{Given, Named};

/// The first of these that is there counts: the others would count the same again.
const KNOWN: [Controllers; 5] = [
    Controllers {
        name: "uncore_imc",
        read: &[Named("cas_count_read")],
        written: &[Named("cas_count_write")],
    },
    Controllers {
        name: "uncore_imc",
        read: &[Named("cas_count_read_sch0"), Named("cas_count_read_sch1")],
        written: &[Named("cas_count_write_sch0"), Named("cas_count_write_sch1")],
    },
    Controllers {
        name: "uncore_imc",
        read: &[Named("data_reads")],
        written: &[Named("data_writes")],
    },
    Controllers {
        name: "uncore_imc_free_running",
        read: &[Named("data_read")],
        written: &[Named("data_write")],
    },
    Controllers {
        name: "amd_umc",
        read: &[Given("event=0x0a,rdwrmask=0x1")],
        written: &[Given("event=0x0a,rdwrmask=0x2")],
    },
];

/// What a device that is not known may have: names that the kernel gives such events on others. Of a device the first
/// pair counts, and of devices all that have the same one.
const BY_NAME: [(&str, &str); 3] = [
    ("cas_count_read", "cas_count_write"),
    ("data_reads", "data_writes"),
    ("data_read", "data_write"),
];

/// Whether a device has a name, with or without a number behind it.
fn is_named(name: &str, device: &str) -> bool {
    device.strip_prefix(name).is_some_and(|rest| {
        let number = rest.strip_prefix('_');
        rest.is_empty()
            || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Whether a pattern, in which `*` stands for any text, is that of a name.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|from| matches(rest, &name[from..])),
        Some((byte, rest)) => name
            .split_first()
            .is_some_and(|(first, behind)| first == byte && matches(rest, behind)),
    }
}

impl Controllers {
    fn are_named(&self, device: &str) -> bool {
        is_named(self.name, device)
    }

    fn sources(&self) -> impl Iterator<Item = (TransferDirection, EventSource<'static>)> {
        let with = |direction| move |&source: &'static EventSource<'static>| (direction, source);
        let read = self.read.iter().map(with(TransferDirection::Read));
        read.chain(self.written.iter().map(with(TransferDirection::Written)))
    }

    /// Their events on a device; none if one is missing.
    fn events(&self, device: &Device, near: Option<&CpuSet>) -> Result<Vec<Event>, HostError> {
        let mut events = Vec::new();
        for (direction, source) in self.sources() {
            match event(device, source, direction, near)? {
                Some(event) => events.push(event),
                None => return Ok(Vec::new()),
            }
        }
        Ok(events)
    }
}

/// An event of a device, if it has it.
fn event(
    device: &Device,
    source: EventSource<'_>,
    direction: TransferDirection,
    near: Option<&CpuSet>,
) -> Result<Option<Event>, HostError> {
    let (name, terms, bytes) = match source {
        Given(terms) => (terms, terms.to_owned(), None),
        Named(name) => match device.terms_of(name) {
            Some(terms) => (name, terms, device.bytes_of(name)?),
            None => return Ok(None),
        },
    };
    let is_near = |cpu: &usize| near.is_none_or(|near| near.contains(*cpu));
    Ok(Some(Event {
        device: device.name.to_owned(),
        name: name.to_owned(),
        kind: device.kind()?,
        config: device.config(&terms)?,
        cpus: device.cpus()?.iter().filter(is_near).collect(),
        direction,
        bytes: bytes.unwrap_or(LINE),
    }))
}

/// The events to be opened: those that were chosen, if any were.
pub(super) fn find(
    files: &SystemFiles,
    node: Option<u32>,
    chosen: &ChosenEvents,
) -> Result<Vec<Event>, UncoreError> {
    let near = match node.map(|node| cpus_of_package(files, node)) {
        None => None,
        Some(Ok(cpus)) => cpus,
        // A user that names events knows which devices serve the node.
        Some(Err(UncoreError::Unassigned { .. })) if !chosen.is_empty() => None,
        Some(Err(error)) => return Err(error),
    };
    let all = files.names(DEVICES);
    if !chosen.is_empty() {
        return chosen_events(files, &all, chosen, near.as_ref());
    }
    let mut without = Vec::new();
    for controllers in KNOWN {
        let mut events = Vec::new();
        for name in all.iter().filter(|name| controllers.are_named(name)) {
            events.extend(controllers.events(&Device { files, name }, near.as_ref())?);
            without.push(name.as_str());
        }
        if events.iter().any(|event| !event.cpus.is_empty()) {
            return Ok(events);
        }
    }
    for (read, written) in BY_NAME {
        let mut events = Vec::new();
        for name in all.iter().filter(|name| !without.contains(&name.as_str())) {
            let device = Device { files, name };
            let read = event(&device, Named(read), TransferDirection::Read, near.as_ref())?;
            let written = event(
                &device,
                Named(written),
                TransferDirection::Written,
                near.as_ref(),
            )?;
            events.extend(
                read.zip(written)
                    .into_iter()
                    .flat_map(|(read, written)| [read, written]),
            );
        }
        if events.iter().any(|event| !event.cpus.is_empty()) {
            return Ok(events);
        }
    }
    without.sort_unstable();
    without.dedup();
    match without.as_slice() {
        [] => Err(UncoreError::NoDevice),
        names => Err(UncoreError::NoEvents {
            devices: names.join(", "),
        }),
    }
}

/// All events that were chosen, each once: what two of them count would be summed twice.
fn chosen_events(
    files: &SystemFiles,
    all: &[String],
    chosen: &ChosenEvents,
    near: Option<&CpuSet>,
) -> Result<Vec<Event>, UncoreError> {
    let with = |direction| move |event| (direction, event);
    let read = chosen.read.iter().map(with(TransferDirection::Read));
    let written = chosen.written.iter().map(with(TransferDirection::Written));
    let mut found: Vec<(&ChosenEvent, Event)> = Vec::new();
    for (direction, choice) in read.chain(written) {
        for event in events_of(files, all, choice, direction, near)? {
            let is_the_same =
                |(_, other): &&(_, Event)| other.kind == event.kind && other.config == event.config;
            if let Some((one, _)) = found.iter().find(is_the_same) {
                return Err(UncoreError::Twice {
                    one: one.to_string(),
                    other: choice.to_string(),
                    device: event.device,
                });
            }
            found.push((choice, event));
        }
    }
    Ok(found.into_iter().map(|(_, event)| event).collect())
}

/// A chosen event of all devices that have its name: at least one, on at least one CPU.
fn events_of(
    files: &SystemFiles,
    all: &[String],
    chosen: &ChosenEvent,
    direction: TransferDirection,
    near: Option<&CpuSet>,
) -> Result<Vec<Event>, UncoreError> {
    let refused = |what: &str, there: Vec<String>| UncoreError::NotThere {
        event: chosen.to_string(),
        what: what.to_owned(),
        there: if there.is_empty() {
            "none".to_owned()
        } else {
            there.join(", ")
        },
    };
    let is_chosen = |name: &&String| match chosen.device.contains('*') {
        true => matches(chosen.device.as_bytes(), name.as_bytes()),
        false => is_named(&chosen.device, name),
    };
    let mut devices = all.iter().filter(is_chosen).peekable();
    if devices.peek().is_none() {
        // Those that count for a whole package have it.
        let uncore = |name: &&String| {
            files
                .optional(&format!("{DEVICES}/{name}/cpumask"))
                .is_some()
        };
        let there = all.iter().filter(uncore).cloned().collect();
        return Err(refused(
            "no device of perf has that name; these count beside the cores",
            there,
        ));
    }
    let source = match chosen.event.contains('=') {
        true => Given(&chosen.event),
        false => Named(&chosen.event),
    };
    let mut events = Vec::new();
    for name in devices {
        let device = Device { files, name };
        let Some(mut event) = event(&device, source, direction, near)? else {
            let what = format!("{name} has no event of that name; it names");
            return Err(refused(&what, device.event_names()));
        };
        event.bytes = chosen.bytes.unwrap_or(event.bytes);
        events.push(event);
    }
    match events.iter().any(|event| !event.cpus.is_empty()) {
        true => Ok(events),
        false => Err(refused(
            "CPUs in its cpumask, of those that are asked for",
            Vec::new(),
        )),
    }
}

/// The CPUs of the package that a node is in; `None` where the kernel knows no nodes. From a node without CPUs it cannot
/// be derived, nor from one whose CPUs are of no package.
pub(super) fn cpus_of_package(
    files: &SystemFiles,
    node: u32,
) -> Result<Option<CpuSet>, UncoreError> {
    const CPUS: &str = "sys/devices/system/cpu";
    let package = |cpu| files.optional(&format!("{CPUS}/cpu{cpu}/topology/physical_package_id"));
    let Some(own) = files.cpu_list(&format!("sys/devices/system/node/node{node}/cpulist"))? else {
        return Ok(None);
    };
    let Some(wanted) = own.first().and_then(package) else {
        return Err(UncoreError::Unassigned { node });
    };
    let online = files
        .cpu_list(&format!("{CPUS}/online"))?
        .unwrap_or_default();
    Ok(Some(
        online
            .iter()
            .filter(|&cpu| package(cpu).as_ref() == Some(&wanted))
            .collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::super::made_up::Machine;
    use super::*;
    use crate::testing::Refused as _;

    fn device(machine: &Machine, name: &str, files: &[(&str, &str)]) {
        for (file, text) in files {
            machine.file(&format!("{DEVICES}/{name}/{file}"), text);
        }
    }

    const FORMAT: [(&str, &str); 4] = [
        ("format/event", "config:0-7"),
        ("format/umask", "config:8-15,32-55"),
        ("format/edge", "config:18"),
        ("cpumask", "0,4"),
    ];

    fn server(events: &[(&str, &str)], channels: usize) -> Machine {
        let machine = Machine::new(2, 4, 1);
        for channel in 0..channels {
            let name = format!("uncore_imc_{channel}");
            device(&machine, &name, &FORMAT);
            device(&machine, &name, &[("type", &(20 + channel).to_string())]);
            for (event, terms) in events {
                device(
                    &machine,
                    &name,
                    &[
                        (&format!("events/{event}"), terms),
                        (&format!("events/{event}.scale"), "6.103515625e-5"),
                        (&format!("events/{event}.unit"), "MiB"),
                    ],
                );
            }
        }
        machine
    }

    const CAS: [(&str, &str); 2] = [
        ("cas_count_read", "event=0x05,umask=0xcf"),
        ("cas_count_write", "event=0x05,umask=0xf0"),
    ];

    fn found(machine: &Machine, node: Option<u32>) -> Result<Vec<Event>, UncoreError> {
        find(
            &SystemFiles::below(machine.root()),
            node,
            &ChosenEvents::default(),
        )
    }

    fn chosen(machine: &Machine, read: &str, written: &str) -> Result<Vec<Event>, UncoreError> {
        let events = |text: &str| vec![text.parse().unwrap()];
        let (read, written) = (events(read), events(written));
        find(
            &SystemFiles::below(machine.root()),
            None,
            &ChosenEvents { read, written },
        )
    }

    /// Device, type, `config`, CPUs, direction and bytes.
    fn told(events: &[Event]) -> Vec<String> {
        let told = |event: &Event| {
            let Event {
                device,
                name: _,
                kind,
                config,
                cpus,
                direction,
                bytes,
            } = event;
            assert_eq!(config[1..], [0, 0]);
            format!(
                "{device} {kind} {:#x} {cpus} {direction:?} {bytes}",
                config[0]
            )
        };
        events.iter().map(told).collect()
    }

    #[test]
    fn every_channel_of_a_server_counts_on_a_cpu_of_each_package() {
        let machine = server(&CAS, 2);
        // It would count the same again.
        device(&machine, "uncore_imc_free_running_0", &FORMAT);
        device(
            &machine,
            "uncore_imc_free_running_0",
            &[("type", "9"), ("events/data_read", "event=1")],
        );
        device(&machine, "uncore_imc_extra", &[("type", "9")]);
        let expected = [
            "uncore_imc_0 20 0xcf05 0,4 Read 64",
            "uncore_imc_0 20 0xf005 0,4 Written 64",
            "uncore_imc_1 21 0xcf05 0,4 Read 64",
            "uncore_imc_1 21 0xf005 0,4 Written 64",
        ];
        assert_eq!(told(&found(&machine, None).unwrap()), expected);
    }

    #[test]
    fn only_the_package_of_a_node_counts_where_it_can_be_told() {
        let machine = server(&CAS, 1);
        for (node, cpus) in [(0, "0"), (1, "4")] {
            let found = found(&machine, Some(node)).unwrap();
            let are_of_cpus = found.iter().all(|event| event.cpus.to_string() == cpus);
            assert!(are_of_cpus, "{found:?}");
        }
        // What a node without CPUs reads passes none of these.
        machine.file("sys/devices/system/node/node2/cpulist", "");
        found(&machine, Some(2)).refused(&["which controllers serve NUMA node 2 is not known"]);
        // But whoever names them knows.
        let events = ["uncore_imc/cas_count_read", "uncore_imc/cas_count_write"];
        let [read, written] = events.map(|text| vec![text.parse().unwrap()]);
        let files = SystemFiles::below(machine.root());
        let named = find(&files, Some(2), &ChosenEvents { read, written }).unwrap();
        assert_eq!(named, found(&machine, None).unwrap());
        // Where the kernel knows no nodes there is one.
        machine.without("sys/devices/system/node");
        assert_eq!(
            found(&machine, Some(0)).unwrap(),
            found(&machine, None).unwrap()
        );
    }

    #[test]
    fn other_controllers_of_intel_count_under_other_names() {
        let sub_channels = [
            ("cas_count_read_sch0", "event=0x05,umask=0xcf"),
            ("cas_count_read_sch1", "event=0x06,umask=0xcf"),
            ("cas_count_write_sch0", "event=0x05,umask=0xf0"),
            ("cas_count_write_sch1", "event=0x06,umask=0xf0"),
        ];
        let expected = [
            "0xcf05 0,4 Read",
            "0xcf06 0,4 Read",
            "0xf005 0,4 Written",
            "0xf006 0,4 Written",
        ];
        let expected = expected.map(|event| format!("uncore_imc_0 20 {event} 64"));
        assert_eq!(
            told(&found(&server(&sub_channels, 1), None).unwrap()),
            expected
        );

        let machine = Machine::new(1, 4, 1);
        let events = [
            ("events/data_reads", "event=0x01"),
            ("events/data_writes", "event=0x02"),
        ];
        device(&machine, "uncore_imc", &FORMAT);
        device(&machine, "uncore_imc", &[("type", "11"), ("cpumask", "0")]);
        device(&machine, "uncore_imc", &events);
        let expected = [
            "uncore_imc 11 0x1 0 Read 64",
            "uncore_imc 11 0x2 0 Written 64",
        ];
        assert_eq!(told(&found(&machine, None).unwrap()), expected);
    }

    #[test]
    fn controllers_of_amd_count_without_named_events() {
        let machine = Machine::new(1, 4, 1);
        let format = [
            ("format/event", "config:0-7"),
            ("format/rdwrmask", "config:8-9"),
        ];
        device(&machine, "amd_umc_11", &format);
        device(&machine, "amd_umc_11", &[("type", "25"), ("cpumask", "0")]);
        let expected = [
            "amd_umc_11 25 0x10a 0 Read 64",
            "amd_umc_11 25 0x20a 0 Written 64",
        ];
        assert_eq!(told(&found(&machine, None).unwrap()), expected);
    }

    #[test]
    fn a_device_that_is_not_known_counts_by_the_names_of_its_events() {
        let machine = Machine::new(1, 4, 1);
        for (device_name, kind) in [("new_dmc_0", "31"), ("new_dmc_1", "32"), ("other", "33")] {
            device(&machine, device_name, &FORMAT);
            device(&machine, device_name, &[("type", kind), ("cpumask", "0")]);
        }
        for name in ["new_dmc_0", "new_dmc_1"] {
            let events = [
                ("events/data_read", "event=0x21"),
                ("events/data_write", "event=0x22"),
                // A count of 32 bytes.
                ("events/data_read.scale", "3.0517578125e-5"),
                ("events/data_read.unit", "MiB"),
            ];
            device(&machine, name, &events);
        }
        // Half of a pair is none.
        device(&machine, "other", &[("events/cas_count_read", "event=0x1")]);
        let expected = [
            "new_dmc_0 31 0x21 0 Read 32",
            "new_dmc_0 31 0x22 0 Written 64",
            "new_dmc_1 32 0x21 0 Read 32",
            "new_dmc_1 32 0x22 0 Written 64",
        ];
        let found = found(&machine, None).unwrap();
        assert_eq!(told(&found), expected);
        assert_eq!(found[0].name, "data_read");
    }

    #[test]
    fn events_that_are_chosen_count_in_place_of_those_that_are_known() {
        let machine = server(&CAS, 2);
        let expected = [
            "uncore_imc_0 20 0x4 0,4 Read 32",
            "uncore_imc_1 21 0x4 0,4 Read 32",
            "uncore_imc_1 21 0xf005 0,4 Written 64",
        ];
        let found = chosen(
            &machine,
            "uncore_imc/event=4/32",
            "uncore_imc_1/cas_count_write",
        );
        assert_eq!(told(&found.unwrap()), expected);
        let refused = |read: &str, words: &[&str]| {
            chosen(&machine, read, "uncore_imc/cas_count_write").refused(words);
        };
        refused(
            "imc/cas_count_read",
            &["imc/cas_count_read", "uncore_imc_0, uncore_imc_1"],
        );
        refused(
            "uncore_imc/reads",
            &[
                "uncore_imc/reads",
                "uncore_imc_0 has no event",
                "cas_count_read, cas_count_write",
            ],
        );
        refused("uncore_imc/event=0x100", &["format/event", "does not fit"]);
        machine.file(&format!("{DEVICES}/uncore_imc_0/cpumask"), "");
        refused("uncore_imc_0/event=1", &["uncore_imc_0/event=1", "cpumask"]);
    }

    /// As HiSilicon's, APM's and others': the kernel shows one format, and terms of perf itself.
    fn configured() -> Machine {
        let machine = Machine::new(1, 4, 1);
        for (name, kind) in [("hisi_sccl1_ddrc0", "41"), ("hisi_sccl3_ddrc1", "42")] {
            let files = [
                ("type", kind),
                ("cpumask", "0"),
                ("format/event", "config:0-4"),
                ("events/flux_wr", "config=0x0"),
                ("events/flux_rd", "config=0x1"),
            ];
            device(&machine, name, &files);
        }
        device(&machine, "hisi_sccl1_hha0", &[("type", "43")]);
        machine
    }

    #[test]
    fn terms_of_perf_itself_are_understood_where_no_format_has_their_name() {
        let machine = configured();
        let found = chosen(
            &machine,
            "hisi_sccl*_ddrc*/flux_rd/32",
            "hisi_sccl1_ddrc0/config=0x7/32",
        );
        let expected = [
            "hisi_sccl1_ddrc0 41 0x1 0 Read 32",
            "hisi_sccl3_ddrc1 42 0x1 0 Read 32",
            "hisi_sccl1_ddrc0 41 0x7 0 Written 32",
        ];
        assert_eq!(told(&found.unwrap()), expected);
        let words = "hisi_sccl1_ddrc0/config=1,config1=0x20,config2=3";
        let found = chosen(&machine, words, "hisi_sccl1_ddrc0/flux_wr").unwrap();
        assert_eq!(found[0].config, [1, 0x20, 3]);
        let refused = |read, words: &[&str]| {
            chosen(&machine, read, "hisi_sccl1_ddrc0/flux_wr").refused(words);
        };
        refused("hisi_sccl1_ddrc0/config=many", &["config=many"]);
        refused("hisi_sccl1_ddrc0/other=1", &["format/other"]);
        refused(
            "hisi_sccl*_l3c*/flux_rd",
            &["no device", "hisi_sccl1_ddrc0"],
        );
        // A format of that name is what it says.
        device(
            &machine,
            "hisi_sccl1_ddrc0",
            &[("format/config", "config1:8-15")],
        );
        let found = chosen(
            &machine,
            "hisi_sccl1_ddrc0/config=1",
            "hisi_sccl1_ddrc0/event=2",
        );
        assert_eq!(found.unwrap()[0].config, [0, 0x100, 0]);
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*", "a", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("*_ddrc*", "hisi_sccl1_ddrc0_1", true),
            ("*_ddrc*", "hisi_sccl1_l3c0", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn a_counter_that_is_chosen_twice_is_refused() {
        let machine = server(&CAS, 2);
        for (read, written) in [
            ("uncore_imc/cas_count_read", "uncore_imc_1/cas_count_read"),
            (
                "uncore_imc/cas_count_read",
                "uncore_imc_0/event=0x05,umask=0xcf",
            ),
            (
                "uncore_imc/cas_count_read",
                "uncore_*/umask=0xcf,event=5/32",
            ),
        ] {
            chosen(&machine, read, written).refused(&[
                read,
                written,
                "the same counter",
                "uncore_imc_",
            ]);
        }
        let twice = ["uncore_imc", "uncore_imc_1"];
        let read = twice.map(|device| format!("{device}/cas_count_read").parse().unwrap());
        let chosen = ChosenEvents {
            read: read.to_vec(),
            written: Vec::new(),
        };
        let found = find(&SystemFiles::below(machine.root()), None, &chosen);
        found.refused(&["uncore_imc/cas_count_read", "uncore_imc_1/cas_count_read"]);
    }

    #[test]
    fn what_is_missing_or_not_understood_is_told() {
        found(&Machine::new(1, 1, 1), None).refused(&["uncore_imc*, amd_umc*", "virtual machines"]);
        found(&server(&CAS[..1], 2), None).refused(&["uncore_imc_0, uncore_imc_1", "no events"]);
        let broken = |file: &str, text: &str, words: &[&str]| {
            let machine = server(&CAS, 1);
            device(&machine, "uncore_imc_0", &[(file, text)]);
            found(&machine, None).refused(words);
        };
        broken(
            "events/cas_count_read.unit",
            "GB",
            &["cas_count_read.unit", "MiB"],
        );
        broken(
            "events/cas_count_read.scale",
            "many",
            &["cas_count_read.scale", "many"],
        );
        broken(
            "events/cas_count_read",
            "event=0x100",
            &["format/event", "event=0x100 does not fit"],
        );
        broken(
            "events/cas_count_read",
            "event=?",
            &["event=? does not fit"],
        );
        broken("events/cas_count_read", "other=1", &["format/other"]);
        broken("type", "none", &["uncore_imc_0/type", "none"]);
        broken("cpumask", "first", &["cpumask", "first"]);
    }
}
