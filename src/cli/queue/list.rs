//! `hcabench queue --list`: the queues that there are.

use crate::queues::registry::{self, Entry};
use crate::terminal::output::print_as;
use crate::terminal::table::{Column, Table};

pub(super) fn run(as_json: bool) -> anyhow::Result<u8> {
    print_as(as_json, &registry::ENTRIES, || table(registry::ENTRIES))?;
    Ok(0)
}

/// A table, and below it where each queue is from, in what it differs from that, and what can be chosen.
fn table(entries: &[Entry]) -> String {
    let mut table = Table::new(vec![
        Column::text("queue"),
        Column::text("ends"),
        Column::text("written"),
        Column::text("parameters"),
    ]);
    let mut sources = String::new();
    for entry in entries {
        let parameters: Vec<String> = entry.parameters.iter().map(ToString::to_string).collect();
        let parameters = parameters.join(":");
        table.row([
            entry.name,
            entry.ends.name(),
            entry.origin.name(),
            &parameters,
        ]);
        sources += &format!("\n{}: {}\n", entry.name, entry.source);
        if !entry.differs.is_empty() {
            sources += &format!("  differs: {}\n", entry.differs);
        }
        for parameter in entry.parameters {
            sources += &format!("  {}: {}\n", parameter.name, parameter.meaning);
        }
    }
    format!("{}{sources}", table.render(None))
}
