//! One row with named cells, in the order in which they were added.
//!
//! The summary of a sweep has some forty columns that come from several places (the point's settings, two summaries
//! with a prefix each, counts). A record gathers them once; the same record is a row of `summary.csv`, an object of the
//! JSON output, and gives the table its texts.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;

use super::schema::{Column, Data, NamedColumn};
use super::units::fixed;
use crate::stats::Summary;

/// One value of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Not measured: an empty cell, `null` in JSON.
    Empty,
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i128),
    /// A number with a fixed number of decimals.
    Decimal(f64, usize),
    /// Yes or no, as `true` or `false`.
    Flag(bool),
}

macro_rules! cell_from {
    ($($kind:ty => $variant:ident($make:expr)),+ $(,)?) => {
        $(impl From<$kind> for Cell {
            fn from(value: $kind) -> Self {
                #[allow(clippy::redundant_closure_call)]
                Cell::$variant($make(value))
            }
        })+
    };
}

cell_from! {
    &str => Text(str::to_owned),
    String => Text(|text| text),
    u64 => Integer(i128::from),
    u32 => Integer(i128::from),
    i64 => Integer(i128::from),
    usize => Integer(|number| number as i128),
    bool => Flag(|flag| flag),
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Cell::Decimal(number, MOST_DECIMALS)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Empty, Into::into)
    }
}

impl Cell {
    /// The cell as it is written in a CSV file.
    pub fn text(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Decimal(number, decimals) => fixed(*number, *decimals),
            Self::Flag(flag) => flag.to_string(),
        }
    }

    /// The cell of a column from its text in a CSV file; `None` when the column has no such cells.
    pub fn parse(column: &Column, text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::Empty);
        }
        match column.data {
            Data::Text | Data::Moment => Some(Self::Text(text.to_owned())),
            Data::Whole => text.parse().ok().map(Self::Integer),
            Data::Number(decimals) => text
                .parse()
                .ok()
                .map(|number| Self::Decimal(number, decimals)),
            Data::Flag => text.parse().ok().map(Self::Flag),
        }
    }

    /// The number in it.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Decimal(number, _) => Some(*number),
            Self::Empty | Self::Text(_) | Self::Flag(_) => None,
        }
    }

    /// Rounded to the decimals of its column: what a run prints is then what the file has, from which it is printed
    /// again.
    pub fn with_decimals_of(self, column: &Column) -> Self {
        let rounded = |number, decimals| {
            let cell = Self::Decimal(number, decimals);
            Self::Decimal(cell.text().parse().unwrap_or(number), decimals)
        };
        match (self, column.data) {
            (Self::Integer(number), Data::Number(decimals)) => rounded(number as f64, decimals),
            (Self::Decimal(number, _), Data::Number(decimals)) => rounded(number, decimals),
            (Self::Decimal(number, _), Data::Whole) => Self::Integer(number.round() as i128),
            (cell, _) => cell,
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Empty => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Integer(number) => match i64::try_from(*number) {
                Ok(number) => serializer.serialize_i64(number),
                Err(_) => serializer.serialize_i128(*number),
            },
            // The same digits as in the CSV file.
            Self::Decimal(number, decimals) => {
                serializer.serialize_f64(fixed(*number, *decimals).parse().unwrap_or(*number))
            }
            Self::Flag(flag) => serializer.serialize_bool(*flag),
        }
    }
}

/// A row of named cells. Serializes as a map in the order of its columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    pub(super) cells: Vec<(String, Cell)>,
}

impl Record {
    /// A record without cells.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a cell under a column name, which must not occur twice.
    pub fn push(&mut self, column: impl Into<String>, cell: Cell) -> &mut Self {
        let column = column.into();
        debug_assert!(self.get(&column).is_none(), "column {column} occurs twice");
        self.cells.push((column, cell));
        self
    }

    /// Sets the cell of a declared column; nothing of a missing value. Columns may be set in any order, see
    /// [`arranged`](Self::arranged).
    pub fn set(&mut self, column: &Column, value: impl Into<Cell>) -> &mut Self {
        self.push(column.name, value.into().with_decimals_of(column))
    }

    /// Sets the cell of a declared column that may have been set before.
    pub fn replace(&mut self, column: &Column, value: impl Into<Cell>) -> &mut Self {
        let cell = value.into().with_decimals_of(column);
        match self.cells.iter_mut().find(|(name, _)| name == column.name) {
            Some((_, known)) => *known = cell,
            None => self.cells.push((column.name.to_owned(), cell)),
        }
        self
    }

    /// Sets the cell of the same column of another record, if it has one.
    pub fn set_from(&mut self, column: &Column, other: &Record) -> &mut Self {
        let cell = other.get(column.name).cloned().unwrap_or(Cell::Empty);
        self.push(column.name, cell)
    }

    /// The figures of a distribution; without a summary all of them are empty. `columns`: the list that
    /// `distribution_columns!` declares.
    pub fn distribution(&mut self, columns: &[Column; 13], summary: Option<&Summary>) -> &mut Self {
        let figures: [fn(&Summary) -> Option<f64>; 13] = [
            |s| Some(s.min_ns as f64),
            |s| Some(s.p10_ns),
            |s| Some(s.p50_ns),
            |s| Some(s.p90_ns),
            |s| Some(s.p95_ns),
            |s| Some(s.p99_ns),
            |s| Some(s.p999_ns),
            |s| Some(s.p9999_ns),
            |s| Some(s.max_ns as f64),
            |s| Some(s.mean_ns),
            |s| s.stdev_ns,
            |s| Some(s.share_above_limit),
            |s| Some(s.negative as f64),
        ];
        for (column, figure) in columns.iter().zip(figures) {
            self.set(column, summary.and_then(figure));
        }
        self
    }

    /// The cells in the order of the columns; those that were not set are empty.
    pub fn arranged(&self, columns: &[NamedColumn]) -> Record {
        for (name, _) in &self.cells {
            let known = columns.iter().any(|(column, _)| column == name);
            assert!(known, "column {name} is not declared");
        }
        let cells = columns.iter().map(|(name, column)| {
            let cell = self.get(name).cloned().unwrap_or(Cell::Empty);
            (name.to_string(), cell.with_decimals_of(column))
        });
        Record {
            cells: cells.collect(),
        }
    }

    /// Those of its cells that are of these columns.
    pub fn of_columns(&self, columns: &[Column]) -> Record {
        let mut record = Record::new();
        for column in columns {
            if let Some(cell) = self.get(column.name) {
                record.set(column, cell.clone());
            }
        }
        record
    }

    /// The number in the cell of a column.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.get(column)?.number()
    }

    /// The text in the cell of a column; empty where there is none.
    pub fn text(&self, column: &Column) -> String {
        self.get(column.name).map(Cell::text).unwrap_or_default()
    }

    /// The cell of a column.
    pub fn get(&self, column: &str) -> Option<&Cell> {
        let found = self.cells.iter().find(|(name, _)| name == column);
        found.map(|(_, cell)| cell)
    }

    /// The cells, in the columns' order.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().map(|(_, cell)| cell)
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.cells.len()))?;
        for (name, cell) in &self.cells {
            map.serialize_entry(name, cell)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Record {
    /// As it was serialized, but for decimals, which [`arranged`](Record::arranged) brings back.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordVisitor)
    }
}

/// Takes the cells in their order, and those of a column that occurs again for the first ones.
struct RecordVisitor;

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = Record;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a row of named cells")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
        let mut record = Record::new();
        while let Some((name, value)) = map.next_entry::<String, Json>()? {
            let cell = match value {
                Json::Bool(flag) => Cell::Flag(flag),
                Json::String(text) => Cell::Text(text),
                Json::Number(number) => match number.as_i128() {
                    Some(whole) => Cell::Integer(whole),
                    None => number.as_f64().into(),
                },
                Json::Null | Json::Array(_) | Json::Object(_) => Cell::Empty,
            };
            match record.cells.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = cell,
                None => record.cells.push((name, cell)),
            }
        }
        Ok(record)
    }
}

/// Decimals of a number whose column is not known.
const MOST_DECIMALS: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::schema::hca;

    #[test]
    fn a_number_is_the_one_that_a_file_has() {
        let mut record = Record::new();
        record.set(&hca::latency::P50, 12_345.67);
        record.set(&hca::latency::P99, 24.996);
        assert_eq!(record.number(hca::latency::P50.name), Some(12_345.7));
        assert_eq!(record.number(hca::latency::P99.name), Some(25.0));
    }

    #[test]
    fn json_keeps_order_and_digits() {
        let mut record = Record::new();
        record
            .set(&hca::SERVICE, "rc")
            .set(&hca::SENT, 3_u64)
            .push("inline", Cell::Flag(true))
            .push("t_ns", Cell::Integer(i64::MIN.into()))
            .set(&hca::latency::P50, 12_345.67)
            .set(&hca::latency::P99, None::<f64>);
        assert_eq!(
            serde_json::to_string(&record).unwrap(),
            r#"{"service":"rc","messages_sent":3,"inline":true,"t_ns":-9223372036854775808,"latency_p50_ns":12345.7,"latency_p99_ns":null}"#
        );
    }
}
