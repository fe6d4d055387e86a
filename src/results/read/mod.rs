//! Reading results back: a folder that a benchmark wrote, as data.
//!
//! Everything here goes by what the benchmarks' files have in common; of each it knows by what it is recognized, and where
//! the number of rows stands that a file must have. A run has a
//! summary with one row a point, whose columns in front of `status` are the point's settings; a point has a
//! `settings.json` and files of samples, whose columns are asked for by name. What it cannot tell apart from damage is an
//! error that names file and line; what was marked as incomplete is read and stays marked.
//!
//! | piece | what it reads |
//! | --- | --- |
//! | [`Run::open`] | the folder of a run, or that of one of its points: settings, machine, points, summary |
//! | [`Point`] | one point: its folder, settings, row of the summary, and whether it is incomplete and why |
//! | [`Table`], [`Row`] | `summary.csv`, `runs.csv`, `left_out.csv`: small tables, cells by column |
//! | [`Point::samples`], [`samples`] | one column of nanoseconds of `messages.csv`, `elements.csv` or `jumps.csv`: 8 bytes a row |
//! | [`RowFile`] | the same files row by row, several columns at once, in constant memory |
//! | [`Hgrm`] | a `.hgrm` file: (value, percentile, count) a line |
//!
//! To compare two runs:
//!
//! ```no_run
//! use hcabench::results::read::{Run, samples};
//! # fn main() -> Result<(), hcabench::results::read::ReadError> {
//! let (base, new) = (Run::open("base".as_ref())?, Run::open("new".as_ref())?);
//! for point in &base.points {
//!     // Settings are pairs of a column's name and its text, in the order of summary.csv.
//!     let Some(same) = new.points.iter().find(|other| other.settings == point.settings) else { continue };
//!     let p50 = |point: &hcabench::results::read::Point| point.row.as_ref().and_then(|row| row.number("latency_p50_us"));
//!     println!("{}: {:?} us, was {:?} us", point.name, p50(same), p50(point));
//!     let latency = point.samples("messages.csv", "latency_ns")?; // the lost ones are in `latency.missing`
//!     println!("{} samples, {} lost, incomplete: {:?}", latency.values.len(), latency.missing, point.incomplete);
//! }
//! println!("{}", base.machine()["hostname"]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Run::benchmark`] tells whose results they are. A run of `clock` has a point for each CPU; they share the run's folder
//! and `settings.json`, and [`Point::samples`] takes only rows of that CPU.
//!
//! Left out: what the columns mean, which is known to who asks for them.

mod error;
mod hgrm;
mod rows;
mod run;
mod table;
#[cfg(test)]
pub(crate) mod tests;

pub use error::ReadError;
pub use hgrm::{Hgrm, HgrmLine};
pub use rows::{Cells, RowFile, Samples, samples};
pub use run::{Benchmark, Point, Run};
pub(super) use table::whole;
pub use table::{Row, Table};
