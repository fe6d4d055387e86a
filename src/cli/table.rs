//! Aligned tables for a terminal.
//!
//! Numbers stand right with their decimal points under each other, units in a line of their own below the titles.
//! Settings that are the same in every row stand in a line above the table; when it is wider than the terminal, figures
//! that are the same do, too. What is still too wide continues in a further block that repeats the settings. No cell is
//! ever cut or dropped.

use std::fmt::Write;

use crate::results::text::printable;

/// What stands between two columns.
const GAP: &str = "  ";

/// A column: its title, its unit, and how its cells are aligned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    title: String,
    unit: String,
    number: bool,
    setting: bool,
}

impl Column {
    /// A column of text, aligned left.
    pub fn text(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            unit: String::new(),
            number: false,
            setting: false,
        }
    }

    /// A column of numbers, aligned at their decimal points; the unit may be empty.
    pub fn number(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            unit: unit.into(),
            number: true,
            ..Self::text(title)
        }
    }

    /// Says that the column tells what was measured rather than what came out: it is the first to move above the table
    /// when it does not vary, and is repeated when the table continues below.
    pub fn setting(mut self) -> Self {
        self.setting = true;
        self
    }
}

/// Rows of text under columns.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Debug, Clone)]
enum Row {
    Cells(Vec<String>),
    Separator,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row, a cell for each column.
    pub fn row<I: IntoIterator<Item: Into<String>>>(&mut self, cells: I) -> &mut Self {
        let shown = |cell: String| printable(&cell).into_owned();
        let cells: Vec<String> = cells.into_iter().map(Into::into).map(shown).collect();
        assert_eq!(
            cells.len(),
            self.columns.len(),
            "a row has a cell for each column"
        );
        self.rows.push(Row::Cells(cells));
        self
    }

    /// Adds an empty line between the rows before it and those after it, if there are both.
    pub fn separator(&mut self) -> &mut Self {
        self.rows.push(Row::Separator);
        self
    }

    /// The table as text, each line ending in a line break, for a terminal of so many columns; `None` for any width.
    /// Empty without rows.
    pub fn render(&self, width: Option<usize>) -> String {
        if self.cells().next().is_none() {
            return String::new();
        }
        let width = width.unwrap_or(usize::MAX);
        let layouts: Vec<Layout> = (0..self.columns.len())
            .map(|column| self.layout(column))
            .collect();
        let mut kept: Vec<usize> = (0..layouts.len()).collect();
        let mut same: Vec<usize> = Vec::new();
        // Settings first; figures that are alike follow only if that was not enough, and only where there are rows to
        // be alike.
        for settings in [true, false] {
            let is_too_wide = total_width(&layouts, &kept) > width && self.cells().nth(1).is_some();
            if settings || is_too_wide {
                let (out, stay) = kept.into_iter().partition(|&column| {
                    self.columns[column].setting == settings && self.is_constant(column)
                });
                kept = stay;
                same.extend::<Vec<usize>>(out);
            }
        }
        let mut text = String::new();
        same.sort_unstable();
        self.render_constants(&mut text, &same, width.min(super::TEXT_WIDTH));
        for (block, columns) in self.blocks(&layouts, &kept, width).iter().enumerate() {
            if block > 0 || !same.is_empty() {
                text.push('\n');
            }
            self.render_block(&mut text, &layouts, columns);
        }
        text
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<String>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Separator => None,
        })
    }

    fn is_constant(&self, column: usize) -> bool {
        let mut values = self.cells().map(|cells| &cells[column]);
        let first = values.next();
        values.all(|value| Some(value) == first)
    }

    fn layout(&self, index: usize) -> Layout {
        let column = &self.columns[index];
        let mut layout = Layout {
            number: column.number,
            ..Layout::default()
        };
        for cells in self.cells() {
            let (whole, fraction) = layout.split(&cells[index]);
            layout.whole = layout.whole.max(length(whole));
            layout.fraction = layout.fraction.max(length(fraction));
        }
        layout.width = (layout.whole + layout.fraction)
            .max(length(&column.title))
            .max(length(&column.unit));
        layout
    }

    /// Which columns stand beside each other: all that fit, each further block with the settings repeated.
    fn blocks(&self, layouts: &[Layout], kept: &[usize], width: usize) -> Vec<Vec<usize>> {
        if total_width(layouts, kept) <= width {
            return if kept.is_empty() {
                Vec::new()
            } else {
                vec![kept.to_vec()]
            };
        }
        let (settings, figures): (Vec<usize>, Vec<usize>) = kept
            .iter()
            .partition(|&&column| self.columns[column].setting);
        let mut blocks = vec![settings.clone()];
        for figure in figures {
            let mut wider = blocks.last().cloned().unwrap_or_default();
            wider.push(figure);
            let has_figures = wider.len() > settings.len() + 1;
            if has_figures && total_width(layouts, &wider) > width {
                wider = settings.clone();
                wider.push(figure);
                blocks.push(wider);
            } else if let Some(last) = blocks.last_mut() {
                *last = wider;
            }
        }
        blocks
    }

    fn render_constants(&self, text: &mut String, same: &[usize], width: usize) {
        let Some(first) = self.cells().next() else {
            return;
        };
        let mut line = String::new();
        for (place, &column) in same.iter().enumerate() {
            let Column { title, unit, .. } = &self.columns[column];
            let value = if first[column].is_empty() {
                "empty"
            } else {
                &first[column]
            };
            let mut item = format!("{title} {value}");
            if !unit.is_empty() && value.contains(|character: char| character.is_ascii_digit()) {
                let _ = write!(item, " {unit}");
            }
            if place + 1 < same.len() {
                item.push(',');
            }
            if place == 0 {
                line = format!("in all rows: {item}");
            } else if length(&line) + 1 + length(&item) > width {
                text.push_str(&line);
                text.push('\n');
                line = format!("  {item}");
            } else {
                let _ = write!(line, " {item}");
            }
        }
        if !line.is_empty() {
            text.push_str(&line);
            text.push('\n');
        }
    }

    fn render_block(&self, text: &mut String, layouts: &[Layout], columns: &[usize]) {
        let mut line = |cell: &dyn Fn(usize) -> String| {
            let cells: Vec<String> = columns.iter().map(|&column| cell(column)).collect();
            text.push_str(cells.join(GAP).trim_end());
            text.push('\n');
        };
        line(&|column| layouts[column].heading(&self.columns[column].title));
        if columns
            .iter()
            .any(|&column| !self.columns[column].unit.is_empty())
        {
            line(&|column| layouts[column].heading(&self.columns[column].unit));
        }
        line(&|column| "-".repeat(layouts[column].width));
        let mut gap = None;
        for row in &self.rows {
            match row {
                Row::Cells(cells) => {
                    if gap == Some(true) {
                        line(&|_| String::new());
                    }
                    line(&|column| layouts[column].body(&cells[column]));
                    gap = Some(false);
                }
                Row::Separator => gap = gap.map(|_| true),
            }
        }
    }
}

/// How wide the parts of a column are, in characters.
#[derive(Debug, Clone, Default)]
struct Layout {
    number: bool,
    whole: usize,
    fraction: usize,
    width: usize,
}

impl Layout {
    /// What stands left and right of where the decimal points are aligned.
    fn split<'a>(&self, cell: &'a str) -> (&'a str, &'a str) {
        match cell.find('.') {
            Some(point) if self.number => cell.split_at(point),
            _ => (cell, ""),
        }
    }

    fn heading(&self, title: &str) -> String {
        let width = self.width;
        if self.number {
            format!("{title:>width$}")
        } else {
            format!("{title:<width$}")
        }
    }

    fn body(&self, cell: &str) -> String {
        let (width, fractions) = (self.width, self.fraction);
        if !self.number {
            return format!("{cell:<width$}");
        }
        let (whole, fraction) = self.split(cell);
        let whole_width = width - fractions;
        format!("{whole:>whole_width$}{fraction:<fractions$}")
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn total_width(layouts: &[Layout], columns: &[usize]) -> usize {
    let widths: usize = columns.iter().map(|&column| layouts[column].width).sum();
    widths + GAP.len() * columns.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sweep() -> Table {
        let mut table = Table::new(vec![
            Column::text("service").setting(),
            Column::text("operation").setting(),
            Column::number("size", "B").setting(),
            Column::text("inline").setting(),
            Column::number("received", ""),
            Column::number("lost", ""),
            Column::number("p50", "us"),
            Column::number("p99", "us"),
            Column::number("max", "us"),
        ]);
        table
            .row([
                "rc", "send", "8", "on", "1000", "0", "21.345", "44.1", "1021.999",
            ])
            .row([
                "rc", "send", "32768", "off", "1000", "0", "121.345", "144.123", "990.5",
            ])
            .separator()
            .row(["ud", "send", "8", "on", "1000", "0", "9.345", "-", "85"]);
        table
    }

    #[test]
    fn points_under_points_and_what_is_the_same_above() {
        let expected = "\
in all rows: operation send

service   size  inline  received  lost      p50      p99       max
             B                               us       us        us
-------  -----  ------  --------  ----  -------  -------  --------
rc           8  on          1000     0   21.345   44.1    1021.999
rc       32768  off         1000     0  121.345  144.123   990.5

ud           8  on          1000     0    9.345    -        85
";
        assert_eq!(sweep().render(None), expected);
        assert_eq!(sweep().render(Some(66)), expected);
        let narrower = sweep().render(Some(60));
        assert!(
            narrower.starts_with(
                "in all rows: operation send, received 1000, lost 0\n\nservice   size  inline  "
            ),
            "{narrower}"
        );
    }

    #[test]
    fn what_is_still_too_wide_continues_below() {
        let expected = "\
in all rows: operation send,
  received 1000, lost 0

service   size  inline      p50
             B               us
-------  -----  ------  -------
rc           8  on       21.345
rc       32768  off     121.345

ud           8  on        9.345

service   size  inline      p99
             B               us
-------  -----  ------  -------
rc           8  on       44.1
rc       32768  off     144.123

ud           8  on        -

service   size  inline       max
             B                us
-------  -----  ------  --------
rc           8  on      1021.999
rc       32768  off      990.5

ud           8  on        85
";
        assert_eq!(sweep().render(Some(35)), expected);
    }

    #[test]
    fn a_single_row_keeps_its_figures() {
        let mut table = Table::new(vec![
            Column::text("service").setting(),
            Column::number("p50", "us"),
        ]);
        table.row(["rc", "21.3"]);
        assert_eq!(
            table.render(Some(5)),
            "in all rows: service rc\n\n p50\n  us\n----\n21.3\n"
        );
    }

    #[test]
    fn separators_at_the_ends_are_not_shown() {
        let mut table = Table::new(vec![Column::text("a")]);
        table
            .separator()
            .row(["1"])
            .separator()
            .separator()
            .row(["2"])
            .separator();
        assert_eq!(table.render(None), "a\n-\n1\n\n2\n");
    }

    #[test]
    fn a_cell_cannot_steer_the_terminal() {
        let mut table = Table::new(vec![Column::text("host")]);
        table.row(["\x1b[31mred\n"]);
        assert_eq!(
            table.render(None),
            "host\n---------------\n\\u{1b}[31mred\\n\n"
        );
    }

    #[test]
    fn nothing_to_show() {
        assert_eq!(
            Table::new(vec![Column::text("service")]).render(Some(80)),
            ""
        );
    }

    #[test]
    #[should_panic(expected = "a cell for each column")]
    fn a_short_row_is_refused() {
        Table::new(vec![Column::text("a"), Column::text("b")]).row(["1"]);
    }

    proptest! {
        #[test]
        fn no_cell_is_lost_at_any_width(
            rows in prop::collection::vec(prop::collection::vec("[a-z]{1,9}|-?[0-9]{1,6}\\.[0-9]{1,3}", 6), 1..6),
            width in 0_usize..80,
        ) {
            let mut table = Table::new(
                (0..6)
                    .map(|i| {
                        let column = if i % 2 == 0 { Column::text("t") } else { Column::number("n", "us") };
                        if i < 2 { column.setting() } else { column }
                    })
                    .collect(),
            );
            rows.iter().for_each(|row| { table.row(row.clone()); });
            let text = table.render(Some(width));
            let shown: Vec<&str> = text.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
            for cell in rows.iter().flatten() {
                prop_assert!(shown.contains(&cell.as_str()), "{} is not in\n{}", cell, text);
            }
            prop_assert!(text.lines().all(|line| line.trim_end() == line));
        }
    }
}
