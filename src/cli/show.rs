//! `hcabench show`: what a run printed, from its folder.

use std::path::PathBuf;

use clap::Args;

use super::{clock, cores, hca, memory, node, queue};
use crate::arguments::UsageError;
use crate::driver::View;
use crate::driver::shown::Report;
use crate::findings::print_damaged;
use crate::report::content;
use crate::results::read::Run;
use crate::results::schema::Schema;
use crate::results::text::{printable, printable_path};
use crate::terminal::label_rows;
use crate::terminal::output::{OutputArguments, print_text};
use crate::terminal::table_options::TableOptions;

/// Arguments of `hcabench show`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArguments {
    /// Print the runs of these results folders
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,

    /// Print all findings with cause and fix, and all facts about the machine and the run
    #[arg(long)]
    pub all: bool,

    /// Print as JSON; takes one folder
    #[arg(long)]
    pub json: bool,

    /// How much of the tables is shown, and in which order.
    #[command(flatten)]
    pub table: TableOptions,
}

/// The facts that are always shown.
const FIRST: [&str; 5] = [
    "Machine",
    "Sender",
    "Receiver",
    content::ADAPTER_TO_OURS[0],
    content::ADAPTER_TO_OURS[1],
];

/// Prints each folder. Returns the exit code.
///
/// # Errors
/// When a folder cannot be read.
pub(crate) fn run(arguments: &ShowArguments) -> anyhow::Result<u8> {
    if arguments.json && arguments.folders.len() > 1 {
        return Err(UsageError("--json: give one folder".to_owned()).into());
    }
    let output = OutputArguments {
        out: None,
        force: false,
        quiet: false,
        verbose: arguments.all,
        json: arguments.json,
        table: arguments.table.clone(),
    };
    let mut code = 0;
    for (place, folder) in arguments.folders.iter().enumerate() {
        let run = Run::salvage(folder)?;
        code |= print_damaged(run.damaged.iter().map(AsRef::as_ref));
        let view = view_of(run.schema).ok_or_else(|| {
            let benchmark = run.schema.benchmark;
            anyhow::anyhow!("this hcabench was built without the benchmark {benchmark}")
        })?;
        let order = view.order(&output.table)?;
        let report = Report::of(&run)?;
        let mut points = run.points.iter();
        if report.summary.is_empty() && points.any(|point| point.folder == run.path) {
            let folder = printable_path(folder);
            anyhow::bail!("{folder} is a point without its run: give the folder of the run");
        }
        if !arguments.json {
            let gap = if place > 0 { "\n" } else { "" };
            let title = content::title(&run);
            let mut facts = content::facts(&run);
            facts.retain(|(label, _)| arguments.all || FIRST.contains(&label.as_str()));
            for (_, fact) in &mut facts {
                *fact = printable(fact).into_owned();
            }
            let path = printable_path(&run.path);
            print_text(&format!("{gap}{title}: {path}\n{}\n", label_rows(&facts)))?;
        }
        report.print(&view, &output, order)?;
    }
    Ok(code)
}

/// How results of a benchmark are shown.
fn view_of(schema: &Schema) -> Option<View> {
    match schema.benchmark {
        "clock" => Some(clock::VIEW),
        "cores" => Some(cores::VIEW),
        "hca" => Some(hca::VIEW),
        #[cfg(feature = "rdma")]
        "hca-between" => Some(hca::VIEW_BETWEEN),
        "memory" => Some(memory::VIEW),
        "node" => Some(node::VIEW),
        "node-between" => Some(node::VIEW_BETWEEN),
        "queue" => Some(queue::VIEW),
        _ => None,
    }
}
