//! What changed between two runs of a series: machine, settings, label, program and options, as `settings.json` has them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::runs::{Settings, StoredRun};
use crate::compare::circumstances::{self, Differs};
use crate::compare::matching::{Matched, Pair};
use crate::compare::rounds;
use crate::driver::command_line::settings_of;
use crate::results::read::{Point, Run};
use crate::results::schema::column_of_option;

/// Something that is not the same in two runs that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) what: String,
    /// Empty where it is unknown.
    pub(super) before: String,
    pub(super) after: String,
}

/// Places in `settings.json`, and what people call them; those that are asked for first come first. `*` is sender or
/// receiver.
const NAMES: [(&str, &str); 11] = [
    ("machine.kernel_release", "kernel"),
    ("machine.kernel_version", "kernel build"),
    (
        "obtained.devices.*.device.firmware",
        "firmware of the *'s adapter",
    ),
    (
        "obtained.devices.*.device.driver.module",
        "driver of the *'s slot",
    ),
    (
        "obtained.devices.*.device.driver.version",
        "driver version of the *'s slot",
    ),
    ("machine.firmware.version", "system firmware"),
    ("machine.firmware.date", "system firmware date"),
    ("machine.processor.microcode", "microcode"),
    ("machine.processor.governors", "CPU governor"),
    ("machine.processor.frequency_driver", "frequency driver"),
    ("machine.processor.name", "processor"),
];
const LABEL: &str = "label";
const PROGRAM: &str = "hcabench";

/// What identifies a host or its ports: where runs of several hosts are put together, it differs all the time.
const IDENTITIES: [&str; 24] = [
    "machine.hostname",
    "obtained.devices.*.port",
    "obtained.devices.*.address",
    "obtained.devices.*.device.name",
    "obtained.devices.*.device.node_guid",
    "obtained.devices.*.device.adapter_guid",
    "obtained.devices.*.device.pci_address",
    "obtained.devices.*.device.ports.number",
    "obtained.devices.*.device.ports.lid",
    "obtained.devices.*.device.ports.sm_lid",
    "obtained.devices.*.device.ports.subnet_prefix",
    "obtained.devices.*.device.ports.addresses",
    "obtained.devices.*.device.ports.networks",
    "obtained.hosts.*.name",
    "obtained.hosts.*.host",
    "obtained.hosts.*.boot_id",
    "obtained.path.*.gid.gid",
    "obtained.path.*.gid.interface",
    "obtained.path.*.queue_pair.route.destination_lid",
    "obtained.path.*.queue_pair.route.global.destination_gid",
    "run.peer",
    "run.sender",
    "run.receiver",
    "--peer",
];

/// Runs whose circumstances were read, each once.
#[derive(Debug)]
pub(super) struct Circumstances {
    opened: BTreeMap<PathBuf, Option<Run>>,
    /// Whether runs of all hosts are put together.
    any_host: bool,
}

impl Circumstances {
    pub(super) fn new(any_host: bool) -> Self {
        Self {
            opened: BTreeMap::new(),
            any_host,
        }
    }

    /// What differs between two runs at a point; none if a folder is gone, or was damaged meanwhile.
    pub(super) fn between(
        &mut self,
        [before, after]: [&StoredRun; 2],
        settings: &Settings,
    ) -> Option<Vec<Cause>> {
        self.open(&before.folder);
        self.open(&after.folder);
        let run = |stored: &StoredRun| self.opened.get(&stored.folder).and_then(Option::as_ref);
        let (one, other) = (run(before)?, run(after)?);
        let mut causes = Vec::new();
        let label = |stored: &StoredRun| stored.label.clone().unwrap_or_default();
        add(&mut causes, LABEL, label(before), label(after));
        add(
            &mut causes,
            PROGRAM,
            rounds::version(one),
            rounds::version(other),
        );
        let point = |run| point_of(run, settings);
        let matched = Matched {
            pairs: match (point(one), point(other)) {
                (Some(base), Some(new)) => vec![Pair { base, new }],
                _ => Vec::new(),
            },
            ..Matched::default()
        };
        for Differs { what, base, new } in circumstances::differences(one, other, &matched) {
            add(&mut causes, &what, base, new);
        }
        // Those that a setting follows from are named by it.
        let is_named = |option: &str, causes: &[Cause]| {
            let column = column_of_option(option);
            causes.iter().any(|cause| cause.what.contains(&column))
        };
        let [one, other] = [one, other].map(options);
        let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for name in names {
            let text = |options: &BTreeMap<String, String>| match options.get(name) {
                None => "not given".to_owned(),
                Some(value) if value.is_empty() => "given".to_owned(),
                Some(value) => value.clone(),
            };
            if name != LABEL && !is_named(name, &causes) {
                add(&mut causes, &format!("--{name}"), text(&one), text(&other));
            }
        }
        if self.any_host {
            causes.retain(|cause| !IDENTITIES.contains(&place_of(&cause.what).0.as_str()));
        }
        Some(in_order(causes))
    }

    fn open(&mut self, folder: &Path) {
        let read = || rounds::open(folder).ok();
        self.opened.entry(folder.to_path_buf()).or_insert_with(read);
    }
}

fn point_of<'a>(run: &'a Run, settings: &Settings) -> Option<&'a Point> {
    let is_it = |point: &&Point| {
        let chosen = point.chosen();
        chosen.eq(settings.iter().map(|(name, text)| (*name, text.as_str())))
    };
    run.points.iter().find(is_it)
}

fn options(run: &Run) -> BTreeMap<String, String> {
    let words = run.document()["command_line"]
        .as_array()
        .into_iter()
        .flatten();
    let words = words.filter_map(|word| word.as_str().map(str::to_owned));
    settings_of(words.skip(1))
}

fn add(causes: &mut Vec<Cause>, what: &str, before: String, after: String) {
    let what = what.to_owned();
    let cause = Cause {
        what,
        before,
        after,
    };
    // A fact may stand with the run and with its points.
    if cause.before != cause.after && !causes.contains(&cause) {
        causes.push(cause);
    }
}

/// The label first, then what is asked for first, the sender before the receiver, then the rest; with names for people.
fn in_order(causes: Vec<Cause>) -> Vec<Cause> {
    let placed = |mut cause: Cause| {
        let first = usize::from(cause.what != LABEL);
        let known = known(&cause.what);
        let is_receiver = known.is_some() && cause.what.contains(".receiver.");
        let line = known.as_ref().map_or(NAMES.len(), |(line, _)| *line);
        if let Some((_, name)) = known {
            cause.what = name;
        }
        ((first, line, is_receiver), cause)
    };
    let mut causes: Vec<_> = causes.into_iter().map(placed).collect();
    crate::sorting::sort_by_key(&mut causes, |(place, _)| *place);
    causes.into_iter().map(|(_, cause)| cause).collect()
}

/// A place in `settings.json` with `*` for the end that it belongs to, and that end.
fn place_of(what: &str) -> (String, Option<&'static str>) {
    let parts = ["devices", "hosts", "path"];
    let of_end = |end: &&str| {
        let is_in = |part| what.starts_with(&format!("obtained.{part}.{end}."));
        parts.into_iter().any(is_in)
    };
    let end = ["sender", "receiver", "publishers", "subscribers"]
        .into_iter()
        .find(of_end);
    match end {
        Some(end) => (what.replacen(end, "*", 1), Some(end)),
        None => (what.to_owned(), None),
    }
}

/// The line of [`NAMES`] that has a place in `settings.json`, and its name.
fn known(what: &str) -> Option<(usize, String)> {
    let (place, end) = place_of(what);
    let line = NAMES.iter().position(|(known, _)| *known == place)?;
    Some((line, NAMES[line].1.replace('*', end.unwrap_or_default())))
}
