//! Runs the benchmark to another host, and prints its table.

use crate::bench::Assignment;
use crate::bench::hca::settings::config::Config;
use crate::cli::hca::{HcaArguments, present, settings_of_run};
use crate::driver;
use crate::driver::{Request, Shown, View};
use crate::host::readiness::Needs;
use crate::results::schema::{Column, between as columns, hca};

/// The figures of the table.
const FIGURES: [Column; 15] = [
    hca::SENT,
    hca::LOST,
    hca::CORRUPTED,
    columns::half::MIN,
    columns::half::P50,
    columns::half::P99,
    columns::P50_LOW,
    columns::P50_HIGH,
    columns::P99_LOW,
    columns::P99_HIGH,
    columns::excess::P50,
    columns::excess::P99,
    hca::completion::P50,
    hca::completion::P99,
    hca::POST_RATE,
];

/// Those that people ask for first.
const FIRST: [Column; 4] = [
    hca::LOST,
    columns::half::P50,
    columns::P50_HIGH,
    columns::excess::P99,
];

/// Runs the benchmark to another host. Returns the exit code.
pub(crate) fn run(arguments: &HcaArguments, config: Config) -> anyhow::Result<u8> {
    let asked = arguments.between.config();
    let mut settings = settings_of_run(&config);
    settings
        .set(&columns::PEER, asked.peer.as_str())
        .set(&columns::PROBES_ASKED, asked.probes);
    driver::run(Request {
        find_rate: None,
        sweep: &arguments.sweep,
        output: &arguments.output,
        run: settings,
        needs: Needs::between_devices().with_priority(config.priority),
        assignment: Assignment::TwoHosts(config, asked),
        default_rounds: 1,
        view: VIEW,
    })
}

/// How results between two hosts are shown.
pub(crate) const VIEW: View = View {
    tables,
    columns: sortable,
    json: |_| serde_json::json!({}),
};

fn tables(shown: &Shown<'_>) -> String {
    match shown.summary {
        [] => String::new(),
        _ => present::table(shown, &FIGURES, |column| FIRST.contains(column)),
    }
}

/// The columns that rows can be sorted by, with their headings.
fn sortable() -> Vec<(String, Column)> {
    let columns = present::settings().chain(FIGURES);
    columns
        .map(|column| (column.title.to_owned(), column))
        .collect()
}
