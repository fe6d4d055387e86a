//! A small file, read in one piece.

use std::io::Read;
use std::path::Path;

use super::content::BYTE_ORDER_MARK;
use super::durable::open_regular;
use super::read_error::{ReadError, ReadErrorKind};

/// The most that is read in one piece.
const MOST_BYTES: u64 = 64 << 20;

/// The whole of a small file, without a byte order mark.
pub(super) fn whole(path: &Path, why: &str) -> Result<String, ReadError> {
    let file = open_regular(path).map_err(|cause| ReadError::opening(path, cause, why))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|cause| ReadError::io(path, cause))?;
    if bytes.len() as u64 > MOST_BYTES {
        let size = path.metadata().map_or(MOST_BYTES + 1, |found| found.len());
        return Err(ReadErrorKind::TooLarge(size, MOST_BYTES).at(path));
    }
    if let Some(wrong) = ReadErrorKind::of_beginning(&bytes) {
        return Err(wrong.at(path));
    }
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    let foreign = |good: &[u8], reason: &str| {
        let line = good.split(|&byte| byte == b'\n').count();
        ReadError::foreign(path, line as u64, reason)
    };
    if let Some(place) = bytes.iter().position(|&byte| byte == 0) {
        let reason = "it has zeros in place of text: its disk, or the copy, lost them";
        return Err(foreign(&bytes[..place], reason));
    }
    String::from_utf8(bytes).map_err(|cause| {
        let good = &cause.as_bytes()[..cause.utf8_error().valid_up_to()];
        foreign(good, "it is not text")
    })
}
