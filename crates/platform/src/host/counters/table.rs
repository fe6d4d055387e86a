//! Tables of counters with a column a CPU: `/proc/interrupts` and `/proc/softirqs`.
//!
//! Source of the layout: Documentation/filesystems/proc.rst of the kernel. Rows can come and go while the machine runs;
//! CPUs that do are not followed.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// One CPU's column of a table of counters, and what it held when it was last read.
#[derive(Debug)]
pub struct CounterTable {
    file: File,
    text: Vec<u8>,
    column: usize,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    label: Box<[u8]>,
    name: String,
    value: u64,
}

impl CounterTable {
    /// Opens the table and reads it once; an error is the reason why it cannot be used.
    ///
    /// # Errors
    /// With the reason, if the file cannot be read, or has no column of that CPU or no rows.
    pub fn open(path: &str, cpu: usize) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
        let mut table = CounterTable {
            file,
            text: vec![0; 16 << 10],
            column: 0,
            rows: Vec::new(),
        };
        let length = table.load().map_err(|error| format!("{path}: {error}"))?;
        let text = &table.text[..length];
        let header = text.split(|&byte| byte == b'\n').next().unwrap_or(&[]);
        let wanted = format!("CPU{cpu}");
        table.column = words(header)
            .position(|word| word == wanted.as_bytes())
            .ok_or_else(|| format!("{path} has no column {wanted}"))?;
        // Room for what is added while the machine runs.
        table.text.resize(length * 2 + 4096, 0);
        table.read(|_, _| ());
        if table.rows.is_empty() {
            return Err(format!("{path} has no counters"));
        }
        Ok(table)
    }

    /// Reads the table; calls `risen` with the row and the difference of each counter that rose. A table that cannot be
    /// read any more has no rows that rose.
    pub fn read(&mut self, mut risen: impl FnMut(u16, u32)) {
        let Ok(length) = self.load() else { return };
        let text = &self.text[..length];
        let first = self.rows.is_empty();
        let lines = text.split(|&byte| byte == b'\n').skip(1);
        for (number, line) in lines.enumerate() {
            let Some((label, value)) = cell(line, self.column) else {
                continue;
            };
            // As a rule the rows are those of last time; those that are not counted shift them a little.
            let mut place = number.saturating_sub(2)..self.rows.len().min(number + 1);
            let at = place
                .find(|&at| *self.rows[at].label == *label)
                .or_else(|| self.rows.iter().position(|row| *row.label == *label));
            match at {
                Some(at) => {
                    let row = &mut self.rows[at];
                    let by = value.wrapping_sub(row.value);
                    row.value = value;
                    if by > 0 && by <= u64::from(u32::MAX) {
                        risen(at as u16, by as u32);
                    }
                }
                None if self.rows.len() < usize::from(u16::MAX) => {
                    if !first && value > 0 {
                        let by = u32::try_from(value).unwrap_or(u32::MAX);
                        risen(self.rows.len() as u16, by);
                    }
                    self.rows.push(Row {
                        label: label.into(),
                        name: name_of(line),
                        value,
                    });
                }
                None => {}
            }
        }
    }

    /// The rows' names.
    pub fn names(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.name.clone()).collect()
    }

    /// Reads the whole file and returns its length. Grows the memory only if the file has outgrown it.
    fn load(&mut self) -> std::io::Result<usize> {
        let mut length = 0;
        loop {
            if length == self.text.len() {
                self.text.resize(length * 2, 0);
            }
            match self.file.read_at(&mut self.text[length..], length as u64) {
                Ok(0) => return Ok(length),
                Ok(read) => length += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// Label and counter of a line; `None` for one that has no counter for each CPU.
fn cell(line: &[u8], column: usize) -> Option<(&[u8], u64)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let label = line[..colon].trim_ascii();
    // Of the whole machine, not of a CPU.
    if label == b"ERR" || label == b"MIS" {
        return None;
    }
    let number = words(&line[colon + 1..]).nth(column)?;
    let mut value = 0_u64;
    for &digit in number {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
    }
    Some((label, value))
}

/// What a line calls its counter: the label, and behind it the device, or the description where there is none.
fn name_of(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let (label, rest) = text.split_once(':').unwrap_or((&text, ""));
    let about: Vec<&str> = rest
        .split_whitespace()
        .skip_while(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    // A device's line names chip, number and trigger first: "PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0".
    let trigger = about.iter().position(|word| {
        let word = word.to_ascii_lowercase();
        ["edge", "level", "fasteoi"]
            .iter()
            .any(|end| word == *end || word.ends_with(&format!("-{end}")))
    });
    let about = match trigger {
        Some(at) if at + 1 < about.len() => &about[at + 1..],
        _ => &about[..],
    };
    format!("{} {}", label.trim(), about.join(" "))
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Refused as _, temporary};
    use std::io::Write;

    const BEFORE: &str = "\
           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 36:          0    1075969 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:     231101     310183   Local timer interrupts
ERR:          7
MIS:          0
";

    /// The rows that rose, as `NAME +BY`.
    fn risen(table: &mut CounterTable) -> Vec<String> {
        let mut rows = Vec::new();
        table.read(|row, by| rows.push((usize::from(row), by)));
        let names = table.names();
        let rows = rows
            .into_iter()
            .map(|(row, by)| format!("{} +{by}", names[row]));
        rows.collect()
    }

    #[test]
    fn differences_of_one_cpu_by_name() {
        let path = temporary("interrupts");
        std::fs::write(&path, BEFORE).unwrap();
        let mut table = CounterTable::open(path.to_str().unwrap(), 1).unwrap();
        let names = "24 ACPI:Ged, 36 virtio1-req.0, LOC Local timer interrupts";
        assert_eq!(table.names().join(", "), names);
        assert!(risen(&mut table).is_empty());
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        // One row more in front, one counter up, CPU 0 up as well.
        let row = "  4:          5          3  IO-APIC   4-edge      ttyS0\n 24:";
        let after = BEFORE
            .replace("310183", "310185")
            .replace("231101", "231999");
        file.write_all(after.replace(" 24:", row).as_bytes())
            .unwrap();
        let expected = ["4 ttyS0 +3", "LOC Local timer interrupts +2"];
        assert_eq!(risen(&mut table), expected);
        assert!(risen(&mut table).is_empty());
    }

    #[test]
    fn a_table_that_cannot_be_used_says_why() {
        let path = temporary("interrupts");
        let path = path.to_str().unwrap();
        CounterTable::open(path, 0).refused(&[path, "No such file"]);
        for (text, told) in [("", "no column CPU0"), ("   CPU0\n", "no counters")] {
            std::fs::write(path, text).unwrap();
            CounterTable::open(path, 0).refused(&[told]);
        }
    }

    #[test]
    fn names_of_other_machines() {
        for (line, name) in [
            ("  8:  0  IR-IO-APIC    8-edge      rtc0", "8 rtc0"),
            (
                " 11:  5     GICv3  27 Level     arch_timer",
                "11 arch_timer",
            ),
            (
                "RES:  1   Rescheduling interrupts",
                "RES Rescheduling interrupts",
            ),
            ("  HI:  0", "HI"),
        ] {
            assert_eq!(name_of(line.as_bytes()), name);
        }
    }
}
