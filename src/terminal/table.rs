//! Aligned tables for a terminal.
//!
//! Numbers are aligned right by their decimal points, units in a separate line below the titles. Settings that are the
//! same in every row are in a line above the table, if they are not off; when the table is wider than the terminal,
//! figures that are the same do, too. What is still too wide continues in a further block that repeats the settings. No
//! cell is ever cut, and none is dropped unless a brief table is asked for.

use std::fmt::Write;

use crate::results::text::printable;

/// The separator of two columns.
const GAP: &str = "  ";

/// A column: its title, its unit, and how its cells are aligned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    title: String,
    unit: String,
    number: bool,
    setting: bool,
    first: bool,
}

impl Column {
    /// A column of text, aligned left.
    pub fn text(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            unit: String::new(),
            number: false,
            setting: false,
            first: false,
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

    /// Marks a column of settings rather than results: it is the first to move above the table when it does not vary,
    /// and is repeated when the table continues below.
    pub fn setting(mut self) -> Self {
        self.setting = true;
        self
    }

    /// Marks a column with a main figure, which a brief table shows.
    pub fn first(mut self) -> Self {
        self.first = true;
        self
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }
}

/// Rows of text under columns.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<TableRow>,
    brief: bool,
}

#[derive(Debug, Clone)]
enum TableRow {
    Cells(Vec<String>),
    Separator,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// The same, of which only the settings that vary and the figures asked for first are shown, if that is wanted.
    pub fn brief(mut self, wanted: bool) -> Self {
        self.brief = wanted;
        self
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
        self.rows.push(TableRow::Cells(cells));
        self
    }

    /// Adds an empty line between the rows before it and those after it, if there are both.
    pub fn separator(&mut self) -> &mut Self {
        self.rows.push(TableRow::Separator);
        self
    }

    /// The table as text, each line ending in a line break, for a terminal of this many columns; `None` for any width.
    /// Empty without rows.
    pub fn render(&self, width: Option<usize>) -> String {
        if self.cells().next().is_none() {
            return String::new();
        }
        let width = width.unwrap_or(usize::MAX);
        let layouts: Vec<Layout> = (0..self.columns.len())
            .map(|column| self.layout(column))
            .collect();
        let is_shown = |column: &Column| !self.brief || column.setting || column.first;
        let mut kept: Vec<usize> = (0..layouts.len())
            .filter(|&at| is_shown(&self.columns[at]))
            .collect();
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
        // A setting that is off in all rows is left out.
        let is_off = |column: usize| {
            let mut cells = self.cells().map(|cells| cells[column].as_str());
            cells.all(|cell| matches!(cell, "" | "0" | "off" | "none"))
        };
        same.retain(|&column| !self.columns[column].setting || !(self.brief || is_off(column)));
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
            TableRow::Cells(cells) => Some(cells),
            TableRow::Separator => None,
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

    /// Which columns are beside each other: all that fit, each further block with the settings repeated.
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
                TableRow::Cells(cells) => {
                    if gap == Some(true) {
                        line(&|_| String::new());
                    }
                    line(&|column| layouts[column].body(&cells[column]));
                    gap = Some(false);
                }
                TableRow::Separator => gap = gap.map(|_| true),
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
    /// The parts left and right of the aligned decimal points.
    fn split<'a>(&self, cell: &'a str) -> (&'a str, &'a str) {
        match cell.find('.') {
            // With a unit, its end is aligned.
            Some(point) if self.number && !cell.contains(' ') => cell.split_at(point),
            _ => (cell, ""),
        }
    }

    fn heading(&self, title: &str) -> String {
        let gap = " ".repeat(self.width.saturating_sub(length(title)));
        match self.number {
            true => gap + title,
            false => title.to_owned() + &gap,
        }
    }

    fn body(&self, cell: &str) -> String {
        // Longer cells than the widths that format! knows come from files of others.
        let gap = |width: usize, text: &str| " ".repeat(width.saturating_sub(length(text)));
        if !self.number {
            return cell.to_owned() + &gap(self.width, cell);
        }
        let (whole, fraction) = self.split(cell);
        let before = gap(self.width - self.fraction, whole);
        before + whole + fraction + &gap(self.fraction, fraction)
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn total_width(layouts: &[Layout], columns: &[usize]) -> usize {
    let widths: usize = columns.iter().map(|&column| layouts[column].width).sum();
    widths + GAP.len() * columns.len().saturating_sub(1)
}
