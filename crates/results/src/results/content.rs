//! What a file contains instead of text in UTF-8 with commas, as programs between the measurement and the reader leave it.

use std::path::Path;

/// What a file is that is not such text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotText {
    /// By which program, and the one that reverses it.
    Compressed(&'static str, &'static str),
    Utf16,
}

/// What editors of other systems put before text in UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// As many bytes as it takes to recognise a file.
pub(super) const BEGINNING: usize = 8;

/// How a compressed file begins, what its name ends in, and the programs that make and unpack it.
const PACKED: [(&[u8], &str, &str, &str); 5] = [
    (b"\x1f\x8b", "gz", "gzip", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zst", "zstd", "unzstd"),
    (b"\xfd7zXZ\0", "xz", "xz", "unxz"),
    (b"BZh", "bz2", "bzip2", "bunzip2"),
    (b"PK\x03\x04", "zip", "zip", "unzip"),
];

/// What a file is that begins like this; `None` where it may be text.
pub(super) fn recognised(beginning: &[u8]) -> Option<NotText> {
    let mut packed = PACKED.iter();
    if let Some((_, _, by, unpack)) = packed.find(|(begins, ..)| beginning.starts_with(begins)) {
        return Some(NotText::Compressed(by, unpack));
    }
    let is_utf_16 = beginning.starts_with(b"\xff\xfe") || beginning.starts_with(b"\xfe\xff");
    is_utf_16.then_some(NotText::Utf16)
}

/// That a compressed file is there in place of one that is not, if so.
pub(super) fn packed_beside(path: &Path) -> Option<String> {
    PACKED.iter().find_map(|(_, ending, _, unpack)| {
        let mut name = path.file_name()?.to_owned();
        name.push(format!(".{ending}"));
        let is_there = path.with_file_name(&name).is_file();
        let name = name.to_string_lossy();
        is_there.then(|| format!("{name} is there in its place; unpack it with {unpack}"))
    })
}

/// What is wrong with the header of a table that has a single column, if something separates cells in it.
pub(super) fn wrong_separator(header: &str) -> Option<String> {
    let separators = [(';', "semicolons"), ('\t', "tabs")];
    let found = separators.iter().find(|(it, _)| header.contains(*it));
    found.map(|(_, name)| format!("its cells are separated by {name}: save it with commas"))
}
