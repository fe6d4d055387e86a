//! JSON documents for people and programs: indented, and whole or not there.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::durable;
use super::error::ReportError;

/// Writes `document` to `path`, replacing what was there, in one step: a reader sees the old document or the new one.
/// On return it is durable.
pub fn write(path: &Path, document: &impl Serialize) -> Result<(), ReportError> {
    durable::replace(path, |out| {
        serde_json::to_writer_pretty(&mut *out, document)?;
        out.write_all(b"\n")
    })
}

/// Reads a document that [`write()`] wrote.
pub fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ReportError> {
    let file = durable::open_regular(path).map_err(ReportError::on("read", path))?;
    serde_json::from_reader(std::io::BufReader::new(file))
        .map_err(|cause| ReportError::unfit("read", path, cause.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Refused as _, temporary};
    use std::collections::BTreeMap;
    use std::fs;

    #[test]
    fn indented_with_a_newline_at_the_end() {
        let path = temporary("settings.json");
        write(&path, &BTreeMap::from([("size", 8)])).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"size\": 8\n}\n");
    }

    #[test]
    fn a_full_disk_is_an_error_of_its_own() {
        let path = temporary("settings.json");
        // Short, so that it fails at the end, and longer than any buffer, so that it fails in the middle.
        for length in [10, 1 << 20] {
            durable::tests::fill_the_disk_for(&path);
            let error = write(&path, &"x".repeat(length)).unwrap_err();
            assert!(error.is_full(), "{error}");
            assert!(!path.exists());
        }
    }

    #[test]
    fn what_json_cannot_hold_leaves_the_old_document() {
        let path = temporary("settings.json");
        write(&path, &1).unwrap();
        let written = write(&path, &BTreeMap::from([((1, 2), 3)]));
        written.refused(&["cannot write", "key must be a string"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    }
}
