//! What leaves the program: files, tables and the progress of a sweep.
//!
//! Everything here takes results as data and runs no benchmark. Two rules hold for all of it: a file is
//! either whole on disk when the call returns, or the folder it lies in is marked as incomplete; and every error names
//! the operation, the path and the cause.
//!
//! | module | what it writes |
//! | --- | --- |
//! | [`folder`] | the results folder and one folder a point, marked until complete |
//! | [`csv`] | rows as they come, and the summary, each row of it durable |
//! | [`record`] | one row with named cells, for CSV, JSON and tables alike |
//! | [`json`] | settings and whole results, in one piece or not at all |
//! | [`hgrm`] | a distribution, for HdrHistogram's plotter |
//! | [`table`] | aligned text for a terminal |
//! | [`progress`] | a bar over the sweep on standard error |
//! | [`page`] | a whole run as one HTML file |
//! | [`units`] | durations, bytes and rates for people |
//!
//! [`plot`] draws figures of plain data; [`read`] reads a results folder back as data, [`compare`] tells two of them apart.

pub mod csv;
pub mod datapackage;
pub mod document;
pub mod error;
pub mod folder;
pub mod hgrm;
pub mod json;
pub mod read;
pub mod record;
pub mod runs;
pub mod samples;
pub mod schema;
pub mod text;
pub mod units;

pub(crate) mod durable;

pub use self::csv::{CsvFile, Micros3, SummaryFile};
pub use document::Document;
pub use error::ReportError;
pub use folder::{PointFolder, ResultsFolder};
pub use record::{Cell, Record};
pub use runs::RunsFile;
pub use samples::SampleWriter;
