//! What leaves the program: files of results, and reading them back.
//!
//! Everything here takes results as data and runs no benchmark. Two rules hold for all of it: a file is
//! either whole on disk when the call returns, or the folder it lies in is marked as incomplete; and every error names
//! the operation, the path and the cause.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`schema`] | the columns of each file of each benchmark, declared once |
//! | [`folder`] | the results folder and one folder a point, marked until complete |
//! | [`record`] | one row with named cells, for CSV, JSON and tables alike |
//! | [`samples`] | files of many rows, a round behind another |
//! | [`runs`] | `runs.csv`, each row of it durable, and `summary.csv`, made from it |
//! | [`curves`] | rows that make a curve, and what follows from all of them |
//! | [`finding`] | what must be known before figures are believed, worded once |
//! | [`document`] | `settings.json`, the same keys in all benchmarks |
//! | [`datapackage`] | types, units and meanings of all columns, for other programs |
//! | [`exposition`] | gauges for Prometheus and other readers of OpenMetrics |
//! | [`hgrm`] | a distribution, for HdrHistogram's plotter |
//! | [`hlog`] | distributions by interval, for HdrHistogram's readers of logs |
//! | `json` | documents, in one piece or not at all |
//! | `read` | a results folder as data |
//! | `units`, `text` | durations, bytes, rates and text of others for people |

mod content;
pub mod curves;
pub mod datapackage;
pub mod document;
pub mod error;
pub mod exposition;
pub mod finding;
pub mod folder;
pub mod hgrm;
pub mod hlog;
pub mod json;
#[allow(missing_docs)]
pub mod read;
#[allow(missing_docs)]
mod read_error;
pub mod record;
pub mod runs;
pub mod samples;
pub mod schema;
pub mod text;
pub mod units;
mod whole;

pub mod durable;

pub use document::Document;
pub use error::ReportError;
pub use folder::{PointFolder, ResultsFolder};
pub use record::{Cell, Record};
pub use runs::RunsFile;
pub use samples::SampleWriter;
