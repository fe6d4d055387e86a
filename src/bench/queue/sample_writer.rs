//! Until `results::SampleWriter` is there.

use std::fs::OpenOptions;
use std::path::Path;

use serde::Serialize;

use crate::results::ReportError;
use crate::results::schema::SampleFile;

pub(super) struct SampleWriter {
    path: std::path::PathBuf,
    writer: csv::Writer<std::fs::File>,
}

impl SampleWriter {
    pub(super) fn open(folder: &Path, file: &SampleFile, _round: u32) -> Result<Self, ReportError> {
        let path = folder.join(file.name);
        let is_new = !path.exists();
        let opened = OpenOptions::new().append(true).create(true).open(&path);
        let opened = opened.map_err(|cause| ReportError::from_io("open", &path, cause))?;
        let mut writer = csv::WriterBuilder::new()
            .has_headers(false)
            .from_writer(opened);
        if is_new {
            let names = file.columns.iter().map(|column| column.name);
            writer
                .write_record(names)
                .map_err(|cause| ReportError::from_io("write", &path, cause.into()))?;
        }
        Ok(SampleWriter { path, writer })
    }

    pub(super) fn append(&mut self, row: &impl Serialize) -> Result<(), ReportError> {
        self.writer
            .serialize(row)
            .map_err(|cause| ReportError::from_io("write", &self.path, cause.into()))
    }

    pub(super) fn finish(mut self) -> Result<(), ReportError> {
        self.writer
            .flush()
            .map_err(|cause| ReportError::from_io("write", &self.path, cause))
    }
}
