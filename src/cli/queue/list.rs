//! `hcabench queue --list`: the queues that there are.

use anyhow::Context as _;

use crate::cli::output::{print_json, print_text};
use crate::cli::table::{Column, Table};
use crate::queues::registry::{self, Entry};

pub(super) fn run(as_json: bool) -> anyhow::Result<u8> {
    let printed = if as_json {
        print_json(&registry::ENTRIES)
    } else {
        print_text(&table(registry::ENTRIES))
    };
    printed.context("cannot write to standard output")?;
    Ok(0)
}

fn table(entries: &[Entry]) -> String {
    let mut table = Table::new(vec![
        Column::text("queue"),
        Column::text("ends"),
        Column::text("written"),
        Column::text("source"),
    ]);
    for entry in entries {
        table.row([
            entry.name,
            entry.ends.name(),
            entry.origin.name(),
            entry.source,
        ]);
    }
    // Sources are long: one too long a line is read more easily than a table in two parts.
    table.render(None)
}
