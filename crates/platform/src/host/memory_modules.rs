//! The memory modules that are installed, by the firmware's table of them (DMI, type 17).
//!
//! The kernel shows the table as the firmware wrote it, to root alone. Makers leave out fields or fill them with text
//! of no meaning: a field that is not given is null. Serial numbers and asset tags are not read. Modules of an array that
//! is not system memory (type 16: of a graphics card, a flash, a cache) are left out.
//!
//! Source: DSP0134, System Management BIOS (SMBIOS) Reference Specification, 6.1.2 (structures) and 7.18 (memory
//! device).

use std::fs::File;
use std::io::Read as _;

use serde::Serialize;

use super::system_files::SystemFiles;

const TABLE: &str = "sys/firmware/dmi/tables/DMI";
/// More than any firmware writes: the table of SMBIOS 2 has 64 KiB at most.
const LARGEST_TABLE: u64 = 4 << 20;
const HEADER: usize = 4;
const MEMORY_ARRAY: u8 = 16;
const MEMORY_DEVICE: u8 = 17;
/// What an array is used for.
const SYSTEM_MEMORY: u64 = 3;
const END_OF_TABLE: u8 = 127;
const MEBIBYTE: u64 = 1 << 20;

/// The modules, or why they are unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum MemoryModules {
    Known {
        /// Those that are alike, with their number.
        installed: Vec<MemoryModule>,
        /// Sockets without a module.
        empty: usize,
    },
    Unknown {
        unknown: String,
    },
}

impl Default for MemoryModules {
    fn default() -> Self {
        MemoryModules::Unknown {
            unknown: "the table was not read".to_owned(),
        }
    }
}

/// Modules that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryModule {
    pub count: usize,
    /// Of one of them.
    pub size_bytes: Option<u64>,
    /// As in DDR5.
    pub kind: Option<&'static str>,
    /// Whether it is DRAM or keeps its content without power.
    pub technology: Option<&'static str>,
    /// As in DIMM.
    pub form: Option<&'static str>,
    pub ranks: Option<u8>,
    /// The fastest that it can do, in megatransfers a second.
    pub speed_mt_s: Option<u32>,
    /// The speed that the firmware has set.
    pub configured_mt_s: Option<u32>,
    pub manufacturer: Option<String>,
    pub part: Option<String>,
}

impl MemoryModules {
    pub(super) fn from_files(files: &SystemFiles) -> Self {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut table = Vec::new();
            let file = File::open(files.path(TABLE))?;
            file.take(LARGEST_TABLE).read_to_end(&mut table)?;
            Ok(table)
        };
        match read() {
            Ok(table) => Self::of_table(&table),
            Err(error) => Self::unknown(match error.kind() {
                std::io::ErrorKind::NotFound => format!("no DMI table (/{TABLE})"),
                std::io::ErrorKind::PermissionDenied => {
                    format!("/{TABLE} may be read by root only")
                }
                _ => format!("/{TABLE}: {error}"),
            }),
        }
    }

    fn unknown(reason: String) -> Self {
        MemoryModules::Unknown { unknown: reason }
    }

    fn of_table(table: &[u8]) -> Self {
        let mut structures = Vec::new();
        let mut rest = table;
        let is_whole = loop {
            let Some((structure, behind)) = next_structure(rest) else {
                // Firmware may end the table without the structure that ends it, and fill the rest with zeros.
                break rest.iter().all(|byte| *byte == 0);
            };
            rest = behind;
            if structure.kind() == END_OF_TABLE {
                break true;
            }
            structures.push(structure);
        };
        let is_other = |array: &&Structure<'_>| {
            let used = array.number(0x05, 1);
            array.kind() == MEMORY_ARRAY && used.is_some_and(|used| used != SYSTEM_MEMORY)
        };
        let others = structures.iter().filter(is_other);
        let others: Vec<u64> = others.filter_map(|array| array.number(0x02, 2)).collect();
        let (mut installed, mut empty) = (Vec::<MemoryModule>::new(), 0);
        for structure in structures.iter().filter(|it| it.kind() == MEMORY_DEVICE) {
            if structure
                .number(0x04, 2)
                .is_some_and(|array| others.contains(&array))
            {
                continue;
            }
            let Some(module) = structure.module() else {
                empty += 1;
                continue;
            };
            let alike = |other: &&mut MemoryModule| {
                module
                    == MemoryModule {
                        count: 1,
                        ..(**other).clone()
                    }
            };
            match installed.iter_mut().find(alike) {
                Some(other) => other.count += 1,
                None => installed.push(module),
            }
        }
        match (is_whole, installed.is_empty()) {
            (false, _) => Self::unknown(format!(
                "/{TABLE} is damaged: a structure ends behind its end"
            )),
            (true, true) => Self::unknown(format!("/{TABLE} has no memory module")),
            (true, false) => MemoryModules::Known { installed, empty },
        }
    }
}

/// A structure of the table: its fields with the header, and its texts.
struct Structure<'a> {
    fields: &'a [u8],
    texts: &'a [u8],
}

/// The first structure of the rest of a table, and what is behind it; `None` where it ends behind the table.
fn next_structure(table: &[u8]) -> Option<(Structure<'_>, &[u8])> {
    let length = usize::from(*table.get(1)?);
    let (fields, behind) = table.split_at_checked(length.max(HEADER))?;
    // Two zeros end the texts, also where there are none.
    let end = behind.windows(2).position(|two| two == [0, 0])?;
    let (texts, behind) = behind.split_at(end);
    (length >= HEADER).then_some((Structure { fields, texts }, &behind[2..]))
}

impl Structure<'_> {
    fn kind(&self) -> u8 {
        self.fields[0]
    }

    /// A number of that many bytes at that offset, if the structure, whose length grew with the specification, has it.
    fn number(&self, at: usize, bytes: usize) -> Option<u64> {
        let field = self.fields.get(at..at + bytes)?;
        let number = field.iter().rev();
        Some(number.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The text whose number is at that offset.
    fn text(&self, at: usize) -> Option<String> {
        let number = self.number(at, 1)?.checked_sub(1)?;
        let text = self.texts.split(|byte| *byte == 0).nth(number as usize)?;
        let text = String::from_utf8_lossy(text);
        let text = text.trim();
        let says_nothing = ["", "unknown", "not specified", "no dimm", "none", "n/a"];
        let is_said = !says_nothing.contains(&text.to_ascii_lowercase().as_str());
        let printable = text.chars().filter(|letter| !letter.is_control());
        is_said.then(|| printable.collect())
    }

    /// A speed: the wide field where the narrow one has no room for it.
    fn speed(&self, narrow: usize, wide: usize) -> Option<u32> {
        let speed = match self.number(narrow, 2)? {
            0xffff => self.number(wide, 4)?,
            speed => speed,
        };
        u32::try_from(speed).ok().filter(|speed| *speed > 0)
    }

    /// What a memory device holds; `None` if it is empty.
    fn module(&self) -> Option<MemoryModule> {
        let size_bytes = match self.number(0x0c, 2) {
            Some(0) => return None,
            None | Some(0xffff) => None,
            // In MiB where it is too large for this one.
            Some(0x7fff) => {
                let size = self.number(0x1c, 4).map(|size| size & 0x7fff_ffff);
                size.map(|size| size * MEBIBYTE)
            }
            Some(kibibytes @ 0x8000..) => Some((kibibytes & 0x7fff) << 10),
            Some(mebibytes) => Some(mebibytes * MEBIBYTE),
        };
        let named = |at: usize, names: &[(u64, &'static str)]| {
            let value = self.number(at, 1)?;
            let mut names = names.iter();
            names.find_map(|(known, name)| (*known == value).then_some(*name))
        };
        Some(MemoryModule {
            count: 1,
            size_bytes,
            kind: named(0x12, &KINDS),
            technology: named(0x28, &TECHNOLOGIES),
            form: named(0x0e, &FORMS),
            ranks: self
                .number(0x1b, 1)
                .map(|attributes| attributes as u8 & 0xf)
                .filter(|it| *it > 0),
            speed_mt_s: self.speed(0x15, 0x54),
            configured_mt_s: self.speed(0x20, 0x58),
            manufacturer: self.text(0x17),
            part: self.text(0x1a),
        })
    }
}

const KINDS: [(u64, &str); 24] = [
    (0x03, "DRAM"),
    (0x0f, "SDRAM"),
    (0x12, "DDR"),
    (0x13, "DDR2"),
    (0x14, "DDR2 FB-DIMM"),
    (0x18, "DDR3"),
    (0x19, "FBD2"),
    (0x1a, "DDR4"),
    (0x1b, "LPDDR"),
    (0x1c, "LPDDR2"),
    (0x1d, "LPDDR3"),
    (0x1e, "LPDDR4"),
    (0x1f, "logical non-volatile device"),
    (0x20, "HBM"),
    (0x21, "HBM2"),
    (0x22, "DDR5"),
    (0x23, "LPDDR5"),
    (0x24, "HBM3"),
    (0x04, "EDRAM"),
    (0x06, "SRAM"),
    (0x07, "RAM"),
    (0x09, "flash"),
    (0x0d, "CDRAM"),
    (0x0e, "3DRAM"),
];

const TECHNOLOGIES: [(u64, &str); 5] = [
    (3, "DRAM"),
    (4, "NVDIMM-N"),
    (5, "NVDIMM-F"),
    (6, "NVDIMM-P"),
    (7, "Intel Optane persistent memory"),
];

const FORMS: [(u64, &str); 8] = [
    (0x03, "SIMM"),
    (0x05, "chip"),
    (0x09, "DIMM"),
    (0x0b, "row of chips"),
    (0x0c, "RIMM"),
    (0x0d, "SODIMM"),
    (0x0f, "FB-DIMM"),
    (0x10, "die"),
];

#[cfg(test)]
mod tests {
    use super::super::made_up::Machine;
    use super::*;
    use crate::testing::Has as _;
    use proptest::prelude::*;

    fn structure(kind: u8, fields: &[(usize, &[u8])], length: usize, texts: &[&str]) -> Vec<u8> {
        let mut bytes = vec![0; length];
        (bytes[0], bytes[1]) = (kind, length as u8);
        for (at, field) in fields {
            bytes[*at..at + field.len()].copy_from_slice(field);
        }
        for text in texts {
            bytes.extend(text.as_bytes());
            bytes.push(0);
        }
        bytes.extend(if texts.is_empty() { &[0, 0][..] } else { &[0] });
        bytes
    }

    /// As SMBIOS 3.3 has it: 64 GiB, DDR5, DIMM, two ranks.
    fn module(part: &str) -> Vec<u8> {
        let fields: [(usize, &[u8]); 10] = [
            (0x0c, &[0xff, 0x7f]),
            (0x0e, &[9]),
            (0x12, &[0x22]),
            (0x15, &5600_u16.to_le_bytes()),
            (0x17, &[1, 2, 3, 4]),
            (0x1b, &[2]),
            (0x1c, &(64_u32 << 10).to_le_bytes()),
            (0x20, &4800_u16.to_le_bytes()),
            (0x28, &[3]),
            (0x10, &[5]),
        ];
        structure(
            17,
            &fields,
            0x5c,
            &["Maker", "SERIAL", "ASSET", part, "DIMM A1"],
        )
    }

    fn empty() -> Vec<u8> {
        structure(17, &[(0x12, &[2])], 0x28, &["NO DIMM"])
    }

    fn end() -> Vec<u8> {
        structure(127, &[], 4, &[])
    }

    fn table() -> Vec<u8> {
        let bios = structure(0, &[], 0x18, &["BIOS"]);
        [
            bios,
            module("P-64 "),
            empty(),
            module("P-64 "),
            module("P-65"),
            end(),
        ]
        .concat()
    }

    fn unknown(table: &[u8]) -> String {
        match MemoryModules::of_table(table) {
            MemoryModules::Unknown { unknown } => unknown,
            known => panic!("{known:?}"),
        }
    }

    #[test]
    fn modules_that_are_alike_are_counted_and_nothing_names_one_of_them() {
        let found = MemoryModules::of_table(&table());
        let text = serde_json::to_string(&found).unwrap();
        text.has(&[
            r#""installed":[{"count":2,"size_bytes":68719476736,"kind":"DDR5","technology":"DRAM","form":"DIMM""#,
            r#""ranks":2,"speed_mt_s":5600,"configured_mt_s":4800,"manufacturer":"Maker","part":"P-64"}"#,
            r#"{"count":1"#,
            r#""part":"P-65"}],"empty":1}"#,
        ]);
        assert!(
            !text.contains("SERIAL") && !text.contains("ASSET"),
            "{text}"
        );
    }

    #[test]
    fn modules_of_an_array_that_is_no_system_memory_do_not_count() {
        let array =
            |handle: u8, used| structure(16, &[(0x02, &[handle, 1]), (0x05, &[used])], 0x17, &[]);
        let of_array = |handle: u8| {
            let mut module = module("P");
            module[4..6].copy_from_slice(&[handle, 1]);
            module
        };
        // The array of a device may come behind it.
        let table = [
            of_array(7),
            array(7, 4),
            array(8, 3),
            of_array(8),
            of_array(9),
            end(),
        ];
        match MemoryModules::of_table(&table.concat()) {
            MemoryModules::Known { installed, .. } => assert_eq!(installed[0].count, 2),
            unknown => panic!("{unknown:?}"),
        }
        unknown(&[of_array(7), array(7, 5)].concat()).has(&["no memory module"]);
    }

    #[test]
    fn zeros_behind_the_last_structure_end_a_table() {
        let whole = MemoryModules::of_table(&table());
        let without = table().len() - end().len();
        for zeros in [1, 2, 3, 64] {
            let padded = [&table()[..without], &vec![0; zeros]].concat();
            assert_eq!(MemoryModules::of_table(&padded), whole, "{zeros}");
        }
    }

    #[test]
    fn older_tables_have_fewer_fields_and_sizes_of_other_units() {
        let first = |fields: &[(usize, &[u8])], length| match MemoryModules::of_table(&structure(
            17,
            fields,
            length,
            &[],
        )) {
            MemoryModules::Known { installed, .. } => installed[0].clone(),
            unknown => panic!("{unknown:?}"),
        };
        // SMBIOS 2.1 ends behind the kind.
        let old = first(&[(0x0c, &[0, 2]), (0x12, &[0x0f])], 0x15);
        assert_eq!((old.size_bytes, old.kind), (Some(512 << 20), Some("SDRAM")));
        assert_eq!(
            (old.speed_mt_s, old.configured_mt_s, old.part),
            (None, None, None)
        );
        assert_eq!(first(&[(0x0c, &[0, 0x84])], 0x22).size_bytes, Some(1 << 20));
        assert_eq!(first(&[(0x0c, &[0xff, 0xff])], 0x22).size_bytes, None);
        // A size of the wide field that is not there.
        assert_eq!(first(&[(0x0c, &[0xff, 0x7f])], 0x1c).size_bytes, None);
        let wide: [(usize, &[u8]); 3] = [
            (0x0c, &[1, 0]),
            (0x15, &[0xff, 0xff]),
            (0x54, &70_000_u32.to_le_bytes()),
        ];
        assert_eq!(first(&wide, 0x5c).speed_mt_s, Some(70_000));
    }

    #[test]
    fn a_table_that_is_cut_anywhere_never_passes_for_the_whole_one() {
        let table = table();
        let whole = MemoryModules::of_table(&table);
        for length in 0..table.len() {
            let found = MemoryModules::of_table(&table[..length]);
            // Firmware may leave out the structure that ends the table.
            let is_all = length == table.len() - end().len();
            assert_eq!(found == whole, is_all, "{length}: {found:?}");
        }
        unknown(&[17]).has(&["damaged"]);
        unknown(&[17, 3, 0, 0, 0, 0]).has(&["damaged"]);
        unknown(&[]).has(&["no memory module"]);
        unknown(&[empty(), end()].concat()).has(&["no memory module"]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..400_usize, with: u8) {
            MemoryModules::of_table(&bytes);
            let mut damaged = table();
            let length = damaged.len();
            damaged[at % length] = with;
            MemoryModules::of_table(&damaged);
        }
    }

    #[test]
    fn a_table_that_cannot_be_read_is_unknown_with_the_reason() {
        let machine = Machine::new(1, 1, 1);
        let files = SystemFiles::below(machine.root());
        let unknown = || serde_json::to_string(&MemoryModules::from_files(&files)).unwrap();
        unknown().has(&[r#"{"unknown":"no DMI table (/sys/firmware/dmi/tables/DMI)"}"#]);
        std::fs::create_dir_all(machine.root().join(TABLE)).unwrap();
        unknown().has(&[r#"{"unknown":"/sys/firmware/dmi/tables/DMI: "#]);
        std::fs::remove_dir(machine.root().join(TABLE)).unwrap();
        std::fs::write(machine.root().join(TABLE), table()).unwrap();
        let found = MemoryModules::from_files(&files);
        assert_eq!(found, MemoryModules::of_table(&table()));
    }
}
