//! The content of the kernel's records: who begins and ends to take a CPU.

use std::collections::HashMap;

use super::TraceError;
use super::format::{Field, Format};
use crate::host::system_files::SystemFiles;

/// Something that takes a CPU from a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interrupter {
    /// An interrupt with a handler, by its number.
    Interrupt(u32),
    /// An interrupt with a separate vector in x86, by its place in [`Decoder`]'s list.
    Vector(u8),
    Softirq(u8),
    Thread(i32),
}

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    Begin(Interrupter),
    End(Interrupter),
    /// From one thread to another.
    Switch {
        from: i32,
        to: i32,
    },
    /// Records between the one before and this are lost.
    Lost,
}

/// A record, and when it was written, in nanoseconds of CLOCK_MONOTONIC_RAW.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub at: u64,
    pub what: RecordKind,
}

/// Softirqs by number, as the kernel has had them for years.
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// What /proc/interrupts calls the vectors of x86.
const VECTORS: [(&str, &str); 8] = [
    ("local_timer", "LOC local timer"),
    ("reschedule", "RES rescheduling"),
    ("call_function", "CAL function call"),
    ("call_function_single", "CAL function call of one CPU"),
    ("thermal_apic", "TRM thermal event"),
    ("threshold_apic", "THR threshold of machine checks"),
    ("x86_platform_ipi", "PLT platform"),
    ("spurious_apic", "SPU spurious"),
];

/// perf refuses it: writing the records raises it.
const NOT_TRACED: &str = "irq_work";

/// Names that are remembered; of further sources, their number is used.
const NAMES: usize = 1 << 14;

/// The tracepoints to open, and what their records mean.
#[derive(Debug, Clone)]
pub(super) struct Decoder {
    points: Vec<(u16, TracepointFields)>,
    vectors: Vec<String>,
    names: HashMap<Interrupter, String>,
}

#[derive(Debug, Clone, Copy)]
enum TracepointFields {
    Begin(InterrupterFields),
    End(InterrupterFields),
    Switch { from: Field, to: Field, name: Field },
}

#[derive(Debug, Clone, Copy)]
enum InterrupterFields {
    Interrupt { number: Field, name: Option<Field> },
    Softirq(Field),
    Vector(u8),
}

impl Decoder {
    /// The kinds below `events`, a folder of tracefs.
    pub(super) fn read(files: &SystemFiles, events: &str) -> Result<Self, TraceError> {
        let format = |name: &str| {
            let path = format!("{events}/{name}/format");
            Format::parse(&files.text(&path)?).ok_or(TraceError::Malformed(path))
        };
        let field = |format: &Format, name: &str| {
            let missing = || TraceError::Malformed(format!("{events}, field {name}"));
            format.field(name).ok_or_else(missing)
        };
        let mut points = Vec::new();
        for (name, begins) in [
            ("irq/irq_handler_entry", true),
            ("irq/irq_handler_exit", false),
        ] {
            let format = format(name)?;
            let number = field(&format, "irq")?;
            let name = format.field("name");
            points.push((
                format.id,
                TracepointFields::of(begins, InterrupterFields::Interrupt { number, name }),
            ));
        }
        for (name, begins) in [("irq/softirq_entry", true), ("irq/softirq_exit", false)] {
            let format = format(name)?;
            let number = InterrupterFields::Softirq(field(&format, "vec")?);
            points.push((format.id, TracepointFields::of(begins, number)));
        }
        let switch = format("sched/sched_switch")?;
        let point = TracepointFields::Switch {
            from: field(&switch, "prev_pid")?,
            to: field(&switch, "next_pid")?,
            name: field(&switch, "next_comm")?,
        };
        points.push((switch.id, point));
        let mut vectors = Vec::new();
        for entry in files.names(&format!("{events}/irq_vectors")) {
            let Some(name) = entry
                .strip_suffix("_entry")
                .filter(|name| *name != NOT_TRACED)
            else {
                continue;
            };
            let vector = InterrupterFields::Vector(vectors.len() as u8);
            for (end, begins) in [("entry", true), ("exit", false)] {
                let id = format(&format!("irq_vectors/{name}_{end}"))?.id;
                points.push((id, TracepointFields::of(begins, vector)));
            }
            vectors.push(name.to_owned());
        }
        Ok(Decoder {
            points,
            vectors,
            names: HashMap::new(),
        })
    }

    /// The numbers of the tracepoints.
    pub(super) fn ids(&self) -> impl Iterator<Item = u16> + '_ {
        self.points.iter().map(|(id, _)| *id)
    }

    /// The content of a record of one of the tracepoints. `raw`: as the tracepoint's format has it.
    pub(super) fn decode(&mut self, raw: &[u8]) -> Option<RecordKind> {
        let id = u16::from_le_bytes(*raw.first_chunk()?);
        let (_, point) = *self.points.iter().find(|(of, _)| *of == id)?;
        Some(match point {
            TracepointFields::Begin(of) => RecordKind::Begin(self.source(of, raw)?),
            TracepointFields::End(of) => RecordKind::End(self.source(of, raw)?),
            TracepointFields::Switch { from, to, name } => {
                let to = to.number(raw)? as i32;
                self.learn(Interrupter::Thread(to), name.text(raw));
                RecordKind::Switch {
                    from: from.number(raw)? as i32,
                    to,
                }
            }
        })
    }

    fn source(&mut self, of: InterrupterFields, raw: &[u8]) -> Option<Interrupter> {
        Some(match of {
            InterrupterFields::Interrupt { number, name } => {
                let source = Interrupter::Interrupt(number.number(raw)?);
                self.learn(source, name.and_then(|name| name.text(raw)));
                source
            }
            InterrupterFields::Softirq(number) => Interrupter::Softirq(number.number(raw)? as u8),
            InterrupterFields::Vector(place) => Interrupter::Vector(place),
        })
    }

    /// The latest name: a thread that begins another program gets that one's.
    fn learn(&mut self, source: Interrupter, name: Option<&[u8]>) {
        let Some(name) = name else { return };
        let has_room = self.names.len() < NAMES;
        match self.names.get_mut(&source) {
            Some(known) if known.as_bytes() == name => {}
            Some(known) => *known = String::from_utf8_lossy(name).into_owned(),
            None if has_room => {
                let name = String::from_utf8_lossy(name).into_owned();
                self.names.insert(source, name);
            }
            None => {}
        }
    }

    /// The name of what was in a record; of an interrupt behind its number.
    pub(super) fn name(&self, source: Interrupter) -> String {
        let name = self.names.get(&source).map(String::as_str);
        match source {
            Interrupter::Interrupt(number) => match name {
                Some(name) => format!("{number} {name}"),
                None => number.to_string(),
            },
            Interrupter::Softirq(number) => SOFTIRQS
                .get(usize::from(number))
                .map_or_else(|| number.to_string(), |name| (*name).to_owned()),
            Interrupter::Vector(place) => {
                let name = self
                    .vectors
                    .get(usize::from(place))
                    .map_or("", String::as_str);
                let known = VECTORS.iter().find(|(of, _)| *of == name);
                known.map_or_else(|| name.replace('_', " "), |(_, words)| (*words).to_owned())
            }
            Interrupter::Thread(0) => "idle".to_owned(),
            Interrupter::Thread(_) => name.unwrap_or("?").to_owned(),
        }
    }
}

impl TracepointFields {
    fn of(begins: bool, of: InterrupterFields) -> Self {
        match begins {
            true => TracepointFields::Begin(of),
            false => TracepointFields::End(of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::{INTERRUPT, SWITCH, file};
    use super::*;
    use crate::host::made_up::Machine;

    const EVENTS: &str = "sys/kernel/tracing/events";
    const VECTOR: &str = "\tfield:int vector;\toffset:8;\tsize:4;\tsigned:1;\n";

    fn machine() -> Machine {
        let machine = Machine::new(1, 1, 1);
        let softirq = "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n";
        let exit = "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n";
        for (at, (folder, name, fields)) in [
            ("irq", "irq_handler_entry", INTERRUPT),
            ("irq", "irq_handler_exit", exit),
            ("irq", "softirq_entry", softirq),
            ("irq", "softirq_exit", softirq),
            ("sched", "sched_switch", SWITCH),
            ("irq_vectors", "irq_work_entry", VECTOR),
            ("irq_vectors", "irq_work_exit", VECTOR),
            ("irq_vectors", "local_timer_entry", VECTOR),
            ("irq_vectors", "local_timer_exit", VECTOR),
        ]
        .into_iter()
        .enumerate()
        {
            let text = file(name, 10 + at as u16, fields);
            machine.file(&format!("{EVENTS}/{folder}/{name}/format"), &text);
        }
        machine
    }

    fn raw(id: u16, number: u32, rest: &[u8]) -> Vec<u8> {
        let mut raw = id.to_le_bytes().to_vec();
        raw.extend([0; 6]);
        raw.extend(number.to_le_bytes());
        raw.extend(rest);
        raw
    }

    #[test]
    fn records_are_told_by_their_number_and_sources_have_the_kernels_names() {
        let machine = machine();
        let files = SystemFiles::below(machine.root());
        let mut decoder = Decoder::read(&files, EVENTS).unwrap();
        // What perf refuses is not asked for.
        let expected = [10, 11, 12, 13, 14, 17, 18];
        assert_eq!(decoder.ids().collect::<Vec<_>>(), expected);
        let name = [&(16_u32 | 5 << 16).to_le_bytes()[..], b"disk\0"].concat();
        let mut switch = [0; 64];
        switch[..2].copy_from_slice(&14_u16.to_le_bytes());
        switch[24..28].copy_from_slice(&7_u32.to_le_bytes());
        switch[40..44].copy_from_slice(b"sshd");
        switch[56..60].copy_from_slice(&9_u32.to_le_bytes());
        let (disk, timer, block) = (
            Interrupter::Interrupt(36),
            Interrupter::Vector(0),
            Interrupter::Softirq(4),
        );
        for (raw, what) in [
            (raw(10, 36, &name), RecordKind::Begin(disk)),
            (raw(11, 36, &[]), RecordKind::End(disk)),
            (raw(12, 4, &[]), RecordKind::Begin(block)),
            (raw(13, 4, &[]), RecordKind::End(block)),
            (raw(17, 236, &[]), RecordKind::Begin(timer)),
            (raw(18, 236, &[]), RecordKind::End(timer)),
            (switch.to_vec(), RecordKind::Switch { from: 7, to: 9 }),
        ] {
            assert_eq!(decoder.decode(&raw), Some(what));
        }
        assert_eq!(decoder.decode(&raw(99, 1, &[])), None);
        assert_eq!(decoder.decode(&[10]), None);
        for (source, name) in [
            (disk, "36 disk"),
            (timer, "LOC local timer"),
            (block, "BLOCK"),
            (Interrupter::Thread(9), "sshd"),
            (Interrupter::Thread(7), "?"),
            (Interrupter::Interrupt(1), "1"),
        ] {
            assert_eq!(decoder.name(source), name);
        }
        switch[40..44].copy_from_slice(b"bash");
        decoder.decode(&switch);
        assert_eq!(decoder.name(Interrupter::Thread(9)), "bash");
    }

    #[test]
    fn a_tracefs_that_lacks_what_is_needed_is_an_error() {
        let machine = Machine::new(1, 1, 1);
        let files = SystemFiles::below(machine.root());
        assert!(Decoder::read(&files, EVENTS).is_err());
        let path = format!("{EVENTS}/irq/irq_handler_entry/format");
        machine.file(&path, &file("irq_handler_entry", 10, VECTOR));
        let error = Decoder::read(&files, EVENTS).unwrap_err().to_string();
        assert!(error.contains("field irq"), "{error}");
    }
}
