//! A file of samples, to which each round adds its rows.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::results::ReportError;
use crate::results::schema::SampleFile;

/// A file of samples that is written to.
pub(super) struct SampleWriter {
    path: PathBuf,
    csv: csv::Writer<File>,
}

impl SampleWriter {
    /// Creates the file with its header, or opens it where it is there.
    pub(super) fn open(folder: &Path, file: &SampleFile, _round: u32) -> Result<Self, ReportError> {
        let path = folder.join(file.name);
        let failed = |cause| ReportError::from_io("open", &path, cause);
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let (opened, is_new) = match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let opened = OpenOptions::new().append(true).open(&path);
                (opened.map_err(failed)?, false)
            }
            created => (created.map_err(failed)?, true),
        };
        let mut csv = csv::WriterBuilder::new()
            .has_headers(false)
            .from_writer(opened);
        if is_new {
            let names = file.columns.iter().map(|column| column.name);
            csv.write_record(names)
                .map_err(|error| ReportError::from_io("write", &path, error.into()))?;
        }
        Ok(SampleWriter { path, csv })
    }

    pub(super) fn append(&mut self, row: &impl Serialize) -> Result<(), ReportError> {
        self.csv
            .serialize(row)
            .map_err(|error| ReportError::from_io("write", &self.path, error.into()))
    }

    pub(super) fn finish(mut self) -> Result<(), ReportError> {
        let failed = |cause| ReportError::from_io("write", &self.path, cause);
        self.csv.flush().map_err(failed)?;
        self.csv.get_ref().sync_all().map_err(failed)
    }
}
