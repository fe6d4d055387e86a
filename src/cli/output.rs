//! What the commands with results share: where results go, and how wide they may be shown.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::UsageError;
use crate::report::ReportError;

/// `results/DATE-TIME`, with a number behind it if there is one already.
pub fn default_folder(now: SystemTime) -> PathBuf {
    let stamp = humantime::format_rfc3339_seconds(now).to_string();
    let stamp = stamp.replace(['-', ':', 'Z'], "").replace('T', "-");
    let base = Path::new("results").join(&stamp);
    let mut candidates = (2..).map(|number| base.with_file_name(format!("{stamp}-{number}")));
    if base.exists() {
        candidates
            .find(|candidate| !candidate.exists())
            .unwrap_or(base)
    } else {
        base
    }
}

/// Columns of the terminal; `None` when standard output is no terminal and nobody says how wide it will be shown.
pub fn terminal_width() -> Option<usize> {
    let told = || {
        std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok())
    };
    let found =
        terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    found.or_else(told)
}

/// A results folder that cannot be used, as bad input.
pub fn bad_folder(out: &Path, error: &ReportError) -> anyhow::Error {
    UsageError(format!("--out {}: {error}", out.display())).into()
}

/// A text with a word in front, in lines that fit, the later ones indented.
pub fn labelled(label: &str, text: &str) -> String {
    super::wrap(&format!("{label}: {text}"), super::TEXT_WIDTH - 2).join("\n  ")
}
