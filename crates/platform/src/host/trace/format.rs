//! The places of the fields in a tracepoint's record, as tracefs describes them.

/// The record of one tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    /// What records of it begin with.
    pub(super) id: u16,
    fields: Vec<(String, Field)>,
}

/// A field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
    /// Whether it holds the place of the text, and not the text.
    located: bool,
}

impl Format {
    /// Of the text of a file `format`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?;
        let lines = text.lines();
        let fields = lines.filter_map(|line| Field::parse(line.trim().strip_prefix("field:")?));
        Some(Format {
            id: id.trim().parse().ok()?,
            fields: fields.collect(),
        })
    }

    pub(super) fn field(&self, name: &str) -> Option<Field> {
        let found = self.fields.iter().find(|(of, _)| of == name);
        found.map(|(_, field)| *field)
    }
}

impl Field {
    /// Of `char prev_comm[16]; offset:8; size:16; signed:0;`.
    fn parse(text: &str) -> Option<(String, Self)> {
        let mut parts = text.split(';').map(str::trim);
        let declaration = parts.next()?;
        let name = declaration.split_whitespace().next_back()?;
        let mut field = Field {
            offset: usize::MAX,
            size: 0,
            located: declaration.starts_with("__data_loc "),
        };
        for (key, value) in parts.filter_map(|part| part.split_once(':')) {
            match key {
                "offset" => field.offset = value.parse().ok()?,
                "size" => field.size = value.parse().ok()?,
                _ => {}
            }
        }
        Some((name.split('[').next()?.to_owned(), field))
    }

    fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset..)?.get(..self.size)
    }

    /// The number that it holds, of four bytes or fewer.
    pub(super) fn number(self, record: &[u8]) -> Option<u32> {
        let bytes = self.bytes(record)?;
        let mut number = [0; 4];
        number.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u32::from_le_bytes(number))
    }

    /// The text that it holds, or whose place it holds.
    pub(super) fn text(self, record: &[u8]) -> Option<&[u8]> {
        let bytes = match self.located {
            false => self.bytes(record)?,
            true => {
                let place = self.number(record)? as usize;
                record.get(place & 0xffff..)?.get(..place >> 16)?
            }
        };
        bytes.split(|byte| *byte == 0).next()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                          \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                          \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                          \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    pub(in crate::host::trace) fn file(name: &str, id: u16, fields: &str) -> String {
        format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}\nprint fmt: \"x=%d\", REC->x\n")
    }

    pub(in crate::host::trace) const SWITCH: &str = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
        \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n";
    pub(in crate::host::trace) const INTERRUPT: &str = "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n";

    #[test]
    fn numbers_and_texts_are_read_from_where_the_format_has_them() {
        let format = Format::parse(&file("irq_handler_entry", 13, INTERRUPT)).unwrap();
        assert_eq!(format.id, 13);
        let mut record = vec![0; 16];
        record[0] = 13;
        record[8..12].copy_from_slice(&36_u32.to_le_bytes());
        record[12..16].copy_from_slice(&(16_u32 | 5 << 16).to_le_bytes());
        record.extend_from_slice(b"disk\0xxx");
        let field = |name| format.field(name).unwrap();
        assert_eq!(field("common_type").number(&record), Some(13));
        assert_eq!(field("irq").number(&record), Some(36));
        assert_eq!(field("name").text(&record), Some(&b"disk"[..]));
        // Of a record that is cut off nothing is made up.
        assert_eq!(field("name").text(&record[..18]), None);
        assert_eq!(field("irq").number(&record[..10]), None);
        assert_eq!(format.field("vec"), None);
        let switch = Format::parse(&file("sched_switch", 300, SWITCH)).unwrap();
        let name = switch.field("next_comm").unwrap();
        let mut record = [0; 64];
        record[40..44].copy_from_slice(b"sshd");
        assert_eq!(name.text(&record), Some(&b"sshd"[..]));
        assert_eq!(Format::parse("name: x\n"), None);
    }
}
