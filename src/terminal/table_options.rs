//! The options of tables: how much is shown, and by which column the rows are sorted.

use clap::Args;

use crate::arguments::UsageError;
use crate::results::Record;
use crate::results::record::Cell;
use crate::results::schema::{COMPLETE, Column, ColumnKind, STATUS, split_unit};
use crate::sorting::sort_by;

/// Of the commands that show a table or a list.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct BriefOption {
    /// Print fewer columns: the settings that vary and the main figures
    #[arg(long, help_heading = "Output")]
    pub brief: bool,
}

/// Of the commands whose tables have many rows.
#[derive(Debug, Clone, Default, Args)]
pub struct TableOptions {
    /// How much is shown.
    #[command(flatten)]
    pub brief: BriefOption,

    /// Sort the rows by a column, named by its heading or its name in summary.csv; with - before it, from high to low
    #[arg(
        long,
        value_name = "[-]COLUMN",
        help_heading = "Output",
        allow_hyphen_values = true
    )]
    pub sort: Option<String>,
}

impl TableOptions {
    /// What the rows are sorted by, if by anything. `columns`: the heading and the name of each.
    ///
    /// # Errors
    /// When no column has that name or heading. Of several with a heading, the first is taken.
    pub fn order(&self, columns: &[(String, &str)]) -> Result<Option<Order>, UsageError> {
        let Some(asked) = &self.sort else {
            return Ok(None);
        };
        let name = plain(asked.strip_prefix('-').unwrap_or(asked));
        let by_name = (columns.iter())
            .position(|(_, it)| plain(it) == name || plain(split_unit(it).0) == name);
        let by_heading = || {
            columns
                .iter()
                .position(|(heading, _)| plain(heading) == name)
        };
        let Some(column) = by_name.or_else(by_heading) else {
            let names: Vec<&str> = columns.iter().map(|(_, name)| *name).collect();
            return Err(UsageError(format!(
                "--sort {asked}: the table has no such column; it has {}",
                names.join(", ")
            )));
        };
        let descending = asked.starts_with('-');
        Ok(Some(Order { column, descending }))
    }
}

/// A name as it is compared: `recv-pause` is the heading `recv pause`.
fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-'], "_")
}

/// The column to sort by, as a place in the list of them, and the direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Its place in the list.
    pub column: usize,
    /// From high to low.
    pub descending: bool,
}

/// What a row is sorted by. Text follows numbers, and figures that were not measured are at the end in either
/// direction.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    /// A number.
    Number(f64),
    /// Text, by its characters.
    Text(String),
    /// Nothing was measured.
    Missing,
}

impl From<Option<f64>> for Key {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Key::Missing, Key::Number)
    }
}

impl Order {
    /// Sorts rows by their key in the column; those that are equal keep their order.
    pub fn sort<R>(&self, rows: &mut [R], key: impl Fn(&R) -> Key) {
        sort_by(rows, |a, b| {
            let keys = (key(a), key(b));
            let order = match &keys {
                (Key::Number(a), Key::Number(b)) => a.total_cmp(b),
                (Key::Text(a), Key::Text(b)) => a.cmp(b),
                (a, b) => return rank(a).cmp(&rank(b)),
            };
            if self.descending {
                order.reverse()
            } else {
                order
            }
        });
    }
}

fn rank(key: &Key) -> u8 {
    match key {
        Key::Number(_) => 0,
        Key::Text(_) => 1,
        Key::Missing => 2,
    }
}

/// What a row of the summary is sorted by: figures of a point that is not whole are not to be believed.
pub fn key_of(record: &Record, column: &Column) -> Key {
    let is_figure = matches!(column.kind, ColumnKind::Measured | ColumnKind::Count);
    if is_figure && record.text(&STATUS) != COMPLETE {
        return Key::Missing;
    }
    match (record.number(column.name), record.get(column.name)) {
        (Some(number), _) => Key::Number(number),
        (None, None | Some(Cell::Empty)) => Key::Missing,
        (None, Some(cell)) => Key::Text(cell.text()),
    }
}
