//! Reading results back: a folder that a benchmark wrote, as data.
//!
//! Names of columns come from the schema of the benchmark. A run has a summary with one row a point, and `runs.csv`
//! with one for each point and round; a point has a folder with a `settings.json` and files of samples, whose columns
//! are asked for by name. Anything that it cannot distinguish from damage is an error that names file and line; what
//! was marked as incomplete is read and stays marked. Folders of an older hcabench (format 1) are refused.
//!
//! | piece | what it reads |
//! | --- | --- |
//! | [`Run::open`] | the folder of a run, or that of one of its points: settings, machine, points, summary |
//! | [`Run::salvage`] | the same of a folder with damaged files, which are named |
//! | [`Point`] | one point: its folder, settings, row of the summary, and whether it is incomplete and why |
//! | [`Table`], [`Row`] | `summary.csv`, `runs.csv`, `left_out.csv`: small tables, cells by column |
//! | [`Fabric`] | the folder of a fabric: nodes, a column of all pairs, and what is damaged |
//! | `RowFile` | a file of samples row by row, in constant memory |
//! | [`Hgrm`] | a `.hgrm` file: (value, percentile, count) a line |
//! | [`each_interval`] | a `.hlog` file, an interval at a time |

mod damage;
mod fabric;
mod folder;
mod hgrm;
mod hlog;
mod rows;
mod run;
mod table;
#[cfg(test)]
mod tests;

pub use fabric::{Fabric, FabricNode};
pub use folder::is_of_hcabench;
pub use hgrm::Hgrm;
pub use hlog::{LoggedInterval, each_interval};
pub use rows::Cells;
pub use run::{Point, Run};
pub use table::{Row, Table};

pub use super::read_error::{ReadError, ReadErrorKind};
