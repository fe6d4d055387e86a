//! `settings.json`: what was asked for, what was obtained, and on which machine. The same keys in all benchmarks, in
//! the folder of a run and of each point.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::ReportError;
use super::json;
use super::read_error::{ReadError, ReadErrorKind};
use super::record::Record;
use super::schema::FORMAT;
use super::text::printable;
use super::whole::whole;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// What wrote it.
    pub hcabench: Program,
    /// The benchmark, by its name in the schema.
    pub benchmark: String,
    /// The command line, the program first.
    pub command_line: Vec<String>,
    /// When it was begun, in RFC 3339, UTC.
    pub started_at: String,
    /// What its user calls the state that was measured, as a commit; of an earlier version none.
    #[serde(default)]
    pub label: Option<String>,
    /// Whether it is whole: [`COMPLETE`](super::schema::COMPLETE) or [`INCOMPLETE`](super::schema::INCOMPLETE).
    pub status: String,
    /// Why it is not.
    pub failure: Option<String>,
    /// The settings of the point; none in the folder of the run.
    pub point: Option<Record>,
    /// The settings of the run that are not the point's.
    pub run: Value,
    /// What was obtained: placement, pages, devices, libraries, route.
    pub obtained: Value,
    /// What the instrument costs: stamps, floor, clock.
    pub instrument: Value,
    /// The machine.
    pub machine: Value,
    /// The checks of the machine that are not good.
    pub readiness: Value,
    /// How many rounds, and in which order.
    pub rounds: Rounds,
    /// The benchmark's own tables.
    pub details: Value,
}

static COMMIT: OnceLock<&str> = OnceLock::new();

/// The commit that this program is built from, which its build script has found; the first that is set counts.
pub fn set_commit(commit: &'static str) {
    COMMIT.get_or_init(|| commit);
}

/// What wrote the results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The commit that it was built from, where it was known when it was built.
    pub commit: Option<String>,
    /// The version of the format.
    pub format: u64,
    /// The C library that it is built with, `glibc` or `musl`: the latter is that of the static program.
    #[serde(default = "usual_c_library")]
    pub c_library: String,
}

/// What programs had that did not record it.
fn usual_c_library() -> String {
    GLIBC.to_owned()
}

/// The name of a C library other than glibc.
pub fn unusual_c_library(library: &str) -> Option<&str> {
    (library != GLIBC).then_some(library)
}

const GLIBC: &str = "glibc";
const MUSL: &str = "musl";

impl Program {
    /// This program, with the commit that was [set](set_commit).
    pub fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: COMMIT.get().map(|commit| (*commit).to_owned()),
            format: FORMAT,
            c_library: if cfg!(target_env = "musl") {
                MUSL
            } else {
                GLIBC
            }
            .to_owned(),
        }
    }

    /// Whether both have the same messages between hosts, which do not depend on the C library.
    pub fn has_messages_of(&self, other: &Self) -> bool {
        (&self.version, &self.commit, self.format) == (&other.version, &other.commit, other.format)
    }

    /// Why the other one cannot go on with what this one measured, in words.
    pub fn differs(&self, other: &Self) -> Option<String> {
        (self != other).then(|| format!("it was measured by {self}, and this is {other}"))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "hcabench {}", printable(&self.version))?;
        if let Some(commit) = &self.commit {
            write!(formatter, " of commit {}", printable(commit))?;
        }
        match unusual_c_library(&self.c_library) {
            None => Ok(()),
            Some(library) => write!(formatter, ", built with {}", printable(library)),
        }
    }
}

/// The rounds of a run or point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rounds {
    /// The number that was requested.
    pub planned: u32,
    /// The number that is complete.
    pub done: u32,
    /// What the order of the points was shuffled from; none where it is the sweep's.
    pub seed: Option<u64>,
}

impl Document {
    /// Writes it to `path`, in one step and durable on return.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        json::write(path, self)
    }

    /// Reads it.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let value = read_value(path)?;
        serde_json::from_value(value)
            .map_err(|cause| ReadError::foreign(path, 1, cause.to_string()))
    }

    /// Reads that of the run in a folder.
    pub fn of_run(folder: &Path) -> Result<Self, ReadError> {
        Self::read(&folder.join(super::folder::SETTINGS))
    }
}

/// The document as it is in the file, of this version of the format.
pub(super) fn read_value(path: &Path) -> Result<Value, ReadError> {
    let why = "settings and machine are in it; copy it from where it was measured";
    let text = whole(path, why)?;
    let value: Value =
        serde_json::from_str(&text).map_err(|cause| ReadError::json(path, &cause))?;
    // Format 1 did not contain its number; its clock benchmark not even the object.
    match value["hcabench"]["format"].as_u64() {
        Some(FORMAT) => Ok(value),
        Some(format) if format > FORMAT => Err(ReadErrorKind::NewerFormat(format).at(path)),
        _ if value["machine"].is_object() => Err(ReadErrorKind::OlderFormat.at(path)),
        _ => {
            let reason = "it does not contain a format of results";
            Err(ReadError::foreign(path, 1, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::schema::{COMPLETE, hca};
    use crate::testing::{Refused as _, temporary};
    use std::fs;

    #[test]
    fn reads_back_and_tells_other_formats_apart() {
        let path = temporary("settings.json");
        let mut point = Record::new();
        point.set(&hca::SERVICE, "rc").set(&hca::SIZE, 8_u32);
        let written = Document {
            hcabench: Program::this(),
            benchmark: "hca".to_owned(),
            command_line: vec!["hcabench".to_owned(), "--size".to_owned(), "8".to_owned()],
            started_at: "2026-01-02T03:04:05.678Z".to_owned(),
            label: Some("commit 0123abc".to_owned()),
            status: COMPLETE.to_owned(),
            failure: None,
            point: Some(point),
            run: Value::Null,
            obtained: serde_json::json!({"pages": "4 KiB"}),
            instrument: Value::Null,
            machine: serde_json::json!({"hostname": "here"}),
            readiness: Value::Null,
            rounds: Rounds {
                planned: 3,
                done: 3,
                seed: Some(u64::MAX),
            },
            details: Value::Null,
        };
        written.write(&path).unwrap();
        assert_eq!(Document::read(&path).unwrap(), written);
        // Of a version before labels, and before there was a static program.
        let mut value = serde_json::to_value(&written).unwrap();
        value.as_object_mut().unwrap().remove("label");
        value["hcabench"]
            .as_object_mut()
            .unwrap()
            .remove("c_library");
        fs::write(&path, value.to_string()).unwrap();
        let read = Document::read(&path).unwrap();
        assert_eq!(
            (read.label, read.hcabench.c_library),
            (None, "glibc".to_owned())
        );
        written.write(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let newer = text.replace("\"format\": 2", "\"format\": 3");
        let older = r#"{"hcabench": {"version": "0.1.0"}, "machine": {}}"#;
        for (text, told) in [
            (newer.as_str(), "newer hcabench (results format 3)"),
            (older, "(results format 1); this version reads format 2"),
            ("{\"editor.tabSize\": 4}", "does not contain a format"),
        ] {
            fs::write(&path, text).unwrap();
            Document::read(&path).refused(&[told]);
        }
    }
}
