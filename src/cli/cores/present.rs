//! The table of kinds of pairs, made of the rows of `summary.csv`; the pairs of a small machine, and which to use, of all
//! rounds.

use serde_json::{Value, json};

use crate::bench::cores::all_pairs::{Advised, AllPairs, advised};
use crate::bench::cores::plan::UNKNOWN;
use crate::driver::{Shown, View};
use crate::results::schema::cores::{self as columns, pair};
use crate::results::schema::{Column, Data};
use crate::results::units;
use crate::terminal::table::{Column as Heading, Table};

/// How results are shown.
pub(crate) const VIEW: View = View {
    tables,
    columns,
    json,
};

/// All columns of the table, the setting first.
const SHOWN: [Column; 8] = [
    columns::CORES,
    columns::DIRECTIONS,
    columns::HALF,
    columns::HALF_MIN,
    columns::HALF_MAX,
    columns::ONE_WAY,
    columns::OFFSET_BOUND,
    columns::STREAM,
];

/// Those that people ask for first.
const FIRST: [Column; 3] = [columns::HALF, columns::HALF_MIN, columns::STREAM];

/// The pairs of more CPUs are a picture.
const MOST_CPUS: usize = 16;

/// The columns that rows can be sorted by, with their headings.
fn columns() -> Vec<(String, Column)> {
    let columns = SHOWN.into_iter();
    columns
        .map(|column| (column.title.to_owned(), column))
        .collect()
}

fn heading(column: &Column) -> Heading {
    let heading = match column.data {
        Data::Text => Heading::text(column.title),
        _ => Heading::number(column.title, column.unit()),
    };
    match FIRST.contains(column) || *column == columns::CORES {
        true => heading.first(),
        false => heading,
    }
}

/// All that is shown of a run.
fn tables(shown: &Shown<'_>) -> String {
    // What two CPUs have in common is shown also where all pairs are of one kind.
    let mut table = Table::new(SHOWN.iter().map(heading).collect());
    for record in shown.summary {
        table.row(SHOWN.iter().map(|column| record.text(column)));
    }
    let mut text = table.brief(shown.brief).render(shown.width);
    let Ok(mut pairs) = AllPairs::salvage(shown.folder) else {
        return text;
    };
    if (3..=MOST_CPUS).contains(&pairs.cpus.len()) && !shown.brief {
        text += "\nhalf of a round trip (ns), each pair\n";
        text += &squares(&mut pairs).render(shown.width);
    }
    let fastest = pairs.fastest(None);
    if let Some(best) = advised(&fastest) {
        text += &format!("\n{}\n", in_words(best));
    }
    text
}

/// What to use for a sender and a receiver.
fn in_words(best: &Advised) -> String {
    let [sender, receiver] = best.cpus;
    let which = match best.cores == UNKNOWN {
        true => "fastest pair, which may share a core",
        false => "fastest pair that shares no core",
    };
    format!(
        "{which}: --sender-cpu {sender} --receiver-cpu {receiver} ({}, half a round trip {})",
        best.cores,
        units::quantity(best.half_ns, "ns")
    )
}

/// A row and a column for each CPU.
fn squares(pairs: &mut AllPairs) -> Table {
    let medians = pairs.medians(&pair::HALF);
    let numbers: Vec<usize> = pairs.cpus.iter().map(|cpu| cpu.cpu).collect();
    let headings = numbers
        .iter()
        .map(|cpu| Heading::number(cpu.to_string(), ""));
    let headings = std::iter::once(Heading::text("CPU")).chain(headings);
    let mut table = Table::new(headings.collect());
    for &row in &numbers {
        let cell = |column: &usize| {
            let found = medians.get(&[row, *column]);
            found.map_or(String::new(), |half| units::fixed(*half, 1))
        };
        let cells = numbers.iter().map(cell);
        table.row(std::iter::once(row.to_string()).chain(cells));
    }
    table
}

/// The fastest pair of each kind, and the one to use.
fn json(shown: &Shown<'_>) -> Value {
    let fastest = AllPairs::salvage(shown.folder).map(|mut pairs| pairs.fastest(None));
    let fastest = fastest.unwrap_or_default();
    let in_json = |pair: &Advised| {
        json!({ "cores": pair.cores, "sender_cpu": pair.cpus[0], "receiver_cpu": pair.cpus[1],
            "half_round_trip_ns": pair.half_ns })
    };
    json!({
        "fastest": fastest.iter().map(in_json).collect::<Vec<_>>(),
        "advised": advised(&fastest).map(in_json),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn a_pair_that_may_share_a_core_is_not_called_one_of_two_cores() {
        let of_kind = |cores: &str| {
            in_words(&Advised {
                cores: cores.to_owned(),
                cpus: [1, 2],
                half_ns: 50.0,
            })
        };
        of_kind("unknown").has(&["which may share a core: --sender-cpu 1", "(unknown, half"]);
        of_kind("same-cache").has(&["that shares no core: --sender-cpu 1"]);
    }
}
