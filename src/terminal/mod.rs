//! What people see: running text, tables, progress, and where output goes.

pub(crate) mod output;
pub(crate) mod progress;
pub mod table;
pub mod table_options;

/// The columns that running text takes at most.
pub(crate) const TEXT_WIDTH: usize = 100;
/// The columns that it takes at least, however narrow a terminal is.
const LEAST_TEXT_WIDTH: usize = 40;

/// The columns that running text fits in.
pub(crate) fn text_width() -> usize {
    text_width_of(output::terminal_width())
}

/// The columns that it fits in where this many are there; `None` where there is no limit.
pub(crate) fn text_width_of(width: Option<usize>) -> usize {
    let width = width.unwrap_or(TEXT_WIDTH);
    width.clamp(LEAST_TEXT_WIDTH, TEXT_WIDTH)
}

/// Breaks a text between words into lines of at most `width` characters; a longer word has a separate line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Lines of a label and what belongs to it, which starts in the same column in all of them and is broken to fit.
pub(crate) fn label_rows<L: AsRef<str>>(rows: &[(L, String)]) -> String {
    const GAP: usize = 2;
    let width = rows
        .iter()
        .map(|(label, _)| label.as_ref().chars().count())
        .max()
        .unwrap_or(0)
        .max(LABEL_WIDTH);
    let mut text = String::new();
    for (label, value) in rows {
        let lines = wrap(value, text_width().saturating_sub(width + GAP));
        let indent = format!("\n{:indent$}", "", indent = width + GAP);
        let line = format!(
            "{:width$}{:GAP$}{}",
            label.as_ref(),
            "",
            lines.join(&indent)
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The least width of a column of labels, so that several such lists in one output align.
const LABEL_WIDTH: usize = 20;
